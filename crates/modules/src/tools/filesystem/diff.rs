//! What changed, as a unified diff for the model and the person: bounded, and never the work of more than a moment.

use std::time::Duration;

use similar::{Algorithm, TextDiff};

use super::endings::plain;

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// The most of a diff that is shown, in bytes.
const DIFF_BYTES: usize = 16 * 1024;
/// How long the smallest diff is looked for; then any diff is good enough.
const PATIENCE: Duration = Duration::from_millis(200);

/// The diff between two texts of one file. Line endings do not count: they are kept anyway.
pub(super) fn unified(name: &str, before: &str, after: &str) -> String {
    let (before, after) = (plain(before), plain(after));
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .timeout(PATIENCE)
        .diff_lines(before.as_str(), after.as_str());
    let text = diff.unified_diff().context_radius(CONTEXT).header(name, name).to_string();
    if text.len() <= DIFF_BYTES {
        return text;
    }
    let cut = text.get(..text.floor_char_boundary(DIFF_BYTES)).unwrap_or_default();
    format!("{cut}\n... [diff truncated, {} bytes in all]", text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_its_surroundings_whatever_ends_the_lines() {
        let diff = unified("a.txt", "one\r\ntwo\r\n", "one\r\n2\r\n");
        assert_eq!(diff, "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n");
    }

    #[test]
    fn a_huge_diff_is_cut_and_made_in_time() {
        let before: String = (0..50_000).map(|n| format!("{n}\n")).collect();
        let after: String = (0..50_000).map(|n| format!("{}\n", n * 7 % 50_021)).collect();
        let diff = unified("big", &before, &after);
        assert!(diff.len() < DIFF_BYTES + 100 && diff.contains("diff truncated"));
    }
}
