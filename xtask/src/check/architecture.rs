//! Every file that `ARCHITECTURE.md` names must be there, so that its two paths can be walked.

use super::Finding;

const ENDINGS: &[&str] = &[".rs", ".md", ".toml"];

/// Looks up each file named in backticks. Names with a placeholder (`<id>`) or a space are not paths of the tree.
pub(crate) fn check(text: &str, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_block = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
            continue;
        }
        if in_block {
            continue;
        }
        for path in backticked(line).filter(|path| is_path(path)) {
            if !exists(path) {
                findings.push(Finding {
                    place: format!("ARCHITECTURE.md:{}", number + 1),
                    rule: "architecture",
                    problem: format!("names `{path}`, which is not there"),
                    cure: "name the file that took its place, or bring it back".into(),
                });
            }
        }
    }
    findings
}

fn backticked(line: &str) -> impl Iterator<Item = &str> {
    // Between the first and the second backtick, the third and the fourth, and so on.
    line.split('`').skip(1).step_by(2)
}

fn is_path(text: &str) -> bool {
    ENDINGS.iter().any(|ending| text.ends_with(ending) && text.len() > ending.len())
        && !text.contains([' ', '<', '*', '{', '~'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_gone_is_named_with_its_line() {
        let text = "# Map\n`here.rs` → `crates/core/src/gone.rs`\n";
        let found = check(text, |path| path == "here.rs");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "ARCHITECTURE.md:2");
        assert!(found[0].problem.contains("`crates/core/src/gone.rs`"));
    }

    #[test]
    fn only_file_names_in_backticks_count() {
        let text = "gone.rs, `Session::execute`, `session/<id>/notes.md`, `*.rs`, `events.jsonl`\n\
                    ```text\n`drawn.rs`\n```\n";
        assert_eq!(check(text, |_| false), []);
        assert_eq!(check("`deny.toml` and `README.md`", |_| false).len(), 2);
    }
}
