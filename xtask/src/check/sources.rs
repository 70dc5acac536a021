//! Rules about source text: what the kernel may not touch, and what nobody writes here.

use super::Finding;
use super::code::{code_only, grouped_std_imports, lines_with, without_tests};

/// A Rust file of the tree, by its path from the root.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The parts of `std` and tokio that reach outside the process.
const OUTSIDE: &[&str] = &["fs", "env", "process", "net"];

/// Ways to read a clock nobody handed in.
const CLOCKS: &[&str] = &["SystemTime", "Instant::now"];

/// Beginnings of paths that exist on one machine only.
const MACHINE_FOLDERS: &[&str] = &["/home/", "/root/", "/Users/", "/work/", "C:\\Users\\"];

/// Names under a machine folder that documents and tests use for nobody in particular.
const NOBODY: &[&str] = &["user", "you", "me", "alice"];

/// Applies every rule about source text.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Finding> {
    files.iter().flat_map(check_one).collect()
}

fn check_one(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    if file.path.ends_with("/mod.rs") {
        findings.push(Finding {
            place: file.path.clone(),
            rule: "mod-rs",
            problem: "a module's own file is called `mod.rs`".into(),
            cure: "move it beside its folder: `tools.rs` next to `tools/`".into(),
        });
    }
    findings.extend(machine_paths(file));
    if is_test_file(&file.path) {
        return findings;
    }
    let code = without_tests(&code_only(&file.text));
    for line in lines_with(&code, "macro_rules!") {
        findings.push(Finding {
            place: format!("{}:{line}", file.path),
            rule: "macros",
            problem: "defines a macro outside tests".into(),
            cure: "use a table or a generic function".into(),
        });
    }
    findings.extend(reaches_outside(file, &code));
    findings
}

/// Test files by place or by name; items under `#[cfg(test)]` are dealt with in the code itself.
fn is_test_file(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("_tests.rs") || path.ends_with("/tests.rs")
}

fn reaches_outside(file: &SourceFile, code: &str) -> Vec<Finding> {
    let in_core = file.path.starts_with("crates/core/src/");
    if !in_core && !file.path.starts_with("crates/protocol/src/") {
        return Vec::new();
    }
    let find = |line: usize, rule, what: &str, cure: &str| Finding {
        place: format!("{}:{line}", file.path),
        rule,
        problem: format!("uses `{what}`"),
        cure: cure.into(),
    };
    let no_io = "do it in `app` or a module and hand the result in through a trait";
    let mut findings = Vec::new();
    for part in OUTSIDE {
        for root in ["std", "tokio"] {
            let word = format!("{root}::{part}");
            findings
                .extend(lines_with(code, &word).into_iter().map(|line| find(line, "no-io", &word, no_io)));
        }
    }
    for (line, name) in grouped_std_imports(code) {
        if OUTSIDE.contains(&name.as_str()) {
            findings.push(find(line, "no-io", &format!("std::{name}"), no_io));
        }
    }
    if in_core {
        for clock in CLOCKS {
            let cure = "ask the clock that was handed in";
            findings
                .extend(lines_with(code, clock).into_iter().map(|line| find(line, "no-clock", clock, cure)));
        }
    }
    findings
}

/// Paths of somebody's machine, in code, strings and comments alike.
fn machine_paths(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        let Some(path) = MACHINE_FOLDERS.iter().find_map(|folder| machine_path(line, folder)) else {
            continue;
        };
        findings.push(Finding {
            place: format!("{}:{}", file.path, number + 1),
            rule: "machine-path",
            problem: format!("names `{path}`, a path of one machine"),
            cure: "use a temporary folder, a relative path, or `/home/user` for nobody in particular".into(),
        });
    }
    findings
}

fn machine_path(line: &str, folder: &str) -> Option<String> {
    line.match_indices(folder).find_map(|(at, _)| {
        let before = line.get(..at)?.chars().next_back();
        // A folder of that name inside another path or a web address is not a path of a machine; after `file://` it is.
        if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | '>' | '~')) {
            return None;
        }
        let rest = line.get(at + folder.len()..)?;
        let name: String =
            rest.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.')).collect();
        (!name.is_empty() && !NOBODY.contains(&name.as_str())).then(|| format!("{folder}{name}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(String, &'static str)> {
        let file = SourceFile { path: path.into(), text: text.into() };
        check(&[file]).into_iter().map(|finding| (finding.place, finding.rule)).collect()
    }

    #[test]
    fn the_kernel_reads_no_file_no_environment_and_no_clock() {
        let text = "use std::fs;\nuse std::{env, fmt};\nlet t = Instant::now();\nlet s: SystemTime;\ntokio::net::x();\n";
        let mut rules = found("crates/core/src/session.rs", text);
        rules.sort();
        let at = |line: usize, rule| (format!("crates/core/src/session.rs:{line}"), rule);
        let expected = [at(1, "no-io"), at(2, "no-io"), at(3, "no-clock"), at(4, "no-clock"), at(5, "no-io")];
        assert_eq!(rules, expected);
        assert_eq!(found("crates/app/src/open.rs", text), []);
        assert_eq!(found("crates/core/tests/it/main.rs", text), []);
        assert_eq!(found("crates/core/src/session_tests.rs", text), []);
    }

    #[test]
    fn words_in_comments_strings_and_tests_do_not_count() {
        let text = "//! Not `std::fs`.\nlet a = \"std::env\";\nenv!(\"X\");\n#[cfg(test)]\nmod tests { use std::fs; }\n";
        assert_eq!(found("crates/core/src/session.rs", text), []);
    }

    #[test]
    fn macros_are_for_tests() {
        let text = "macro_rules! names { () => {} }\n";
        assert_eq!(found("crates/app/src/a.rs", text), [("crates/app/src/a.rs:1".into(), "macros")]);
        assert_eq!(found("crates/app/tests/it/a.rs", text), []);
        assert_eq!(found("crates/app/src/a.rs", &format!("#[cfg(test)]\nmod tests {{ {text} }}")), []);
    }

    #[test]
    fn no_file_is_called_mod_rs() {
        let path = "crates/app/tests/it/mod.rs";
        assert_eq!(found(path, ""), [(path.into(), "mod-rs")]);
    }

    #[test]
    fn a_path_of_one_machine_is_found_anywhere_in_the_file() {
        let folder = "/home".to_owned();
        let text = format!(
            "// see {folder}/bob/notes\nlet a = \"file://{folder}/bob\";\nlet b = \"{folder}/user/x\";\n"
        );
        let at = |line: usize| (format!("crates/app/tests/a.rs:{line}"), "machine-path");
        assert_eq!(found("crates/app/tests/a.rs", &text), [at(1), at(2)]);
        let harmless = format!("let a = \"docs{folder}/bob\"; let b = \"https://example.com{folder}/bob\";");
        assert_eq!(found("crates/app/src/a.rs", &harmless), []);
    }
}
