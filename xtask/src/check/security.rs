//! Every row of the tables in `docs/security.md` names its test in the last column, and that test is there.

use super::Finding;

const PAGE: &str = "docs/security.md";

/// Looks up the tests. A table without a column for them makes no claims.
pub(crate) fn check(page: &str, has_test: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_tested = false;
    for (number, line) in page.lines().enumerate().filter(|(_, line)| line.starts_with('|')) {
        let cells: Vec<_> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let last = cells.last().copied().unwrap_or_default();
        if page.lines().nth(number + 1).is_some_and(|next| next.starts_with("|--")) {
            is_tested = last == "test";
        } else if is_tested && !line.starts_with("|--") {
            let name = last.trim_matches('`').rsplit("::").next().unwrap_or_default();
            if !has_test(name) {
                findings.push(Finding {
                    place: format!("{PAGE}:{}", number + 1),
                    rule: "security",
                    problem: format!("names the test `{name}`, which is not there"),
                    cure: "name the test that shows the row, or write it".into(),
                });
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_whose_test_is_gone_is_named_with_its_line() {
        let page = "| a | b |\n|---|---|\n| x | y |\n\n| what | test |\n|---|---|\n| x | `m::here` |\n| y | `m::gone` |\n";
        let found = check(page, |name| name == "here");
        let places: Vec<_> = found.iter().map(|finding| finding.place.as_str()).collect();
        assert_eq!(places, ["docs/security.md:8"]);
    }
}
