//! What changed, as a unified diff for the model and the person: bounded, and never the work of more than a moment.
//!
//! Most changes are small and most of the file is as it was, so only what lies between the common beginning and the common
//! end is looked at line by line.

use std::time::Duration;

use similar::{Algorithm, ChangeTag, DiffOp, TextDiff, group_diff_ops};

use super::endings::plain;

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// The most of a diff that is shown, in bytes.
const DIFF_BYTES: usize = 16 * 1024;
/// How long the smallest diff is looked for; then any diff is good enough.
const PATIENCE: Duration = Duration::from_millis(200);
/// How many bytes are compared at once.
const BLOCK: usize = 1024;

/// The diff between two texts of one file. Line endings do not count: they are kept anyway.
pub(super) fn unified(name: &str, before: &str, after: &str) -> String {
    let text = whole(name, before, after);
    if text.len() <= DIFF_BYTES {
        return text;
    }
    let cut = text.get(..text.floor_char_boundary(DIFF_BYTES)).unwrap_or_default();
    format!("{cut}\n... [diff truncated, {} bytes in all]", text.len())
}

/// The same, however long it is: for whoever has to know all of it.
pub(super) fn whole(name: &str, before: &str, after: &str) -> String {
    let (before, after) = (plain(before), plain(after));
    if before == after { String::new() } else { Changed::between(&before, &after).written(name) }
}

/// The lines that changed, with the lines of context before and after them.
struct Changed<'a> {
    /// How many lines stand before them.
    skipped: usize,
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    operations: Vec<DiffOp>,
}

impl<'a> Changed<'a> {
    fn between(before: &'a str, after: &'a str) -> Self {
        let (head, tail) = common(before, after);
        let part = |text: &'a str| text.get(head..text.len() - tail).unwrap_or_default();
        let (old, new) = (lines(part(before)), lines(part(after)));
        let above = before.get(..head).unwrap_or_default();
        let below = before.get(before.len() - tail..).unwrap_or_default();
        let mut leading: Vec<_> = above.split_inclusive('\n').rev().take(CONTEXT).collect();
        leading.reverse();
        let trailing: Vec<_> = below.split_inclusive('\n').take(CONTEXT).collect();

        let mut operations = vec![DiffOp::Equal { old_index: 0, new_index: 0, len: leading.len() }];
        let diff =
            TextDiff::configure().algorithm(Algorithm::Myers).timeout(PATIENCE).diff_slices(&old, &new);
        operations.extend(diff.ops().iter().map(|operation| moved(*operation, leading.len())));
        operations.push(DiffOp::Equal {
            old_index: leading.len() + old.len(),
            new_index: leading.len() + new.len(),
            len: trailing.len(),
        });
        operations.retain(|operation| !matches!(operation, DiffOp::Equal { len: 0, .. }));
        let around = |lines: Vec<&'a str>| [leading.clone(), lines, trailing.clone()].concat();
        let skipped = above.bytes().filter(|byte| *byte == b'\n').count() - leading.len();
        Self { skipped, old: around(old), new: around(new), operations }
    }

    fn written(self, name: &str) -> String {
        let mut text = format!("--- {name}\n+++ {name}\n");
        for hunk in group_diff_ops(self.operations, CONTEXT) {
            let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
            let old = range(self.skipped, first.old_range().start, last.old_range().end);
            let new = range(self.skipped, first.new_range().start, last.new_range().end);
            text.push_str(&format!("@@ -{old} +{new} @@\n"));
            for change in hunk.iter().flat_map(|operation| operation.iter_changes(&self.old, &self.new)) {
                text.push(match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                });
                text.push_str(change.value());
                if !change.value().ends_with('\n') {
                    text.push_str("\n\\ No newline at end of file\n");
                }
            }
        }
        text
    }
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn moved(operation: DiffOp, by: usize) -> DiffOp {
    let (tag, old, new) = operation.as_tag_tuple();
    let (old_index, new_index) = (old.start + by, new.start + by);
    match tag {
        similar::DiffTag::Equal => DiffOp::Equal { old_index, new_index, len: old.len() },
        similar::DiffTag::Delete => DiffOp::Delete { old_index, old_len: old.len(), new_index },
        similar::DiffTag::Insert => DiffOp::Insert { old_index, new_index, new_len: new.len() },
        similar::DiffTag::Replace => {
            DiffOp::Replace { old_index, old_len: old.len(), new_index, new_len: new.len() }
        }
    }
}

/// A range of lines as diffs write it: an empty one stands behind the line before it.
fn range(skipped: usize, start: usize, end: usize) -> String {
    let (first, length) = (skipped + start + 1, end.saturating_sub(start));
    match length {
        0 => format!("{},0", first - 1),
        1 => first.to_string(),
        _ => format!("{first},{length}"),
    }
}

/// How many bytes two different texts have in common at the beginning and at the end, in whole lines.
fn common(before: &str, after: &str) -> (usize, usize) {
    let same = {
        let (one, other) = (before.as_bytes(), after.as_bytes());
        let blocks = one.chunks_exact(BLOCK).zip(other.chunks_exact(BLOCK));
        let blocks = blocks.take_while(|(one, other)| one == other).count() * BLOCK;
        let rest = one.iter().skip(blocks).zip(other.iter().skip(blocks));
        blocks + rest.take_while(|(one, other)| one == other).count()
    };
    let head = before.as_bytes().get(..same).and_then(|same| same.iter().rposition(|byte| *byte == b'\n'));
    let head = head.map_or(0, |feed| feed + 1);

    let (one, other) =
        (before.get(head..).unwrap_or_default().as_bytes(), after.get(head..).unwrap_or_default().as_bytes());
    let blocks = one.rchunks_exact(BLOCK).zip(other.rchunks_exact(BLOCK));
    let blocks = blocks.take_while(|(one, other)| one == other).count() * BLOCK;
    let rest = one.iter().rev().skip(blocks).zip(other.iter().rev().skip(blocks));
    let same = blocks + rest.take_while(|(one, other)| one == other).count();
    let begins_a_line = |text: &[u8]| {
        let at = text.len() - same;
        at == 0 || text.get(at - 1) == Some(&b'\n')
    };
    if begins_a_line(one) && begins_a_line(other) {
        return (head, same);
    }
    let tail = one.get(one.len() - same..).unwrap_or_default();
    let part_of_a_line = tail.iter().position(|byte| *byte == b'\n').map_or(same, |feed| feed + 1);
    (head, same - part_of_a_line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    #[test]
    fn a_change_far_down_says_where_it_is() {
        let before: String = (1..=5_000).map(|n| format!("line {n}\n")).collect();
        let after = before.replace("line 3000\n", "line three thousand\nand one more\n");
        let expected = "--- f\n+++ f\n@@ -2997,7 +2997,8 @@\n line 2997\n line 2998\n line 2999\n-line 3000\n\
            +line three thousand\n+and one more\n line 3001\n line 3002\n line 3003\n";
        assert_eq!(unified("f", &before, &after), expected);
    }

    #[test]
    fn ends_without_a_line_feed_and_empty_texts_are_shown_as_such() {
        assert_eq!(unified("f", "a", "a"), "");
        assert_eq!(
            unified("f", "a\nb", "a\nb\n"),
            "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
        );
        assert_eq!(unified("f", "", "a\n"), "--- f\n+++ f\n@@ -0,0 +1 @@\n+a\n");
        assert_eq!(unified("f", "a\n", ""), "--- f\n+++ f\n@@ -1 +0,0 @@\n-a\n");
    }

    /// What a reader of the diff would make of the text before.
    fn applied(before: &str, diff: &str) -> String {
        let mut old = before.split_inclusive('\n');
        let (mut made, mut taken) = (String::new(), 0);
        for line in diff.split_inclusive('\n').skip(2) {
            if let Some(hunk) = line.strip_prefix("@@ -") {
                let (start, length) = hunk.split(' ').next().unwrap().split_once(',').unwrap_or((hunk, "1"));
                let start: usize = start.split(' ').next().unwrap().parse().unwrap();
                let start = if length == "0" { start } else { start - 1 };
                made.extend(old.by_ref().take(start - taken));
                taken = start;
                continue;
            }
            let (mark, rest) = line.split_at(1);
            match mark {
                "+" => made.push_str(rest),
                " " => {
                    made.push_str(old.next().unwrap());
                    taken += 1;
                }
                _ => {
                    old.next().unwrap();
                    taken += 1;
                }
            }
        }
        made.extend(old);
        made
    }

    proptest! {
        #[test]
        fn who_follows_the_diff_gets_the_new_text(
            before in "([abc]{0,2}\n){0,30}", after in "([abc]{0,2}\n){0,30}", twins in 0_usize..40,
        ) {
            let same = "the same\n".repeat(twins);
            let (before, after) = (format!("{same}{before}{same}"), format!("{same}{after}{same}"));
            prop_assert_eq!(applied(&before, &unified("f", &before, &after)), after);
        }
    }
}
