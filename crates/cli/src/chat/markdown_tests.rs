//! What answers look like, and that it does not matter in which pieces they come.

use super::*;
use crate::chat::paint::{Colour, line_width, written};
use proptest::prelude::*;

fn plain(text: &str, room: usize) -> String {
    let mut stream = Stream::new(room);
    let mut lines = stream.push(text);
    lines.extend(stream.finish());
    lines.iter().map(|line| written(line, Colour::Off)).collect::<Vec<_>>().join("\n")
}

const ANSWER: &str = "# What I found\n\nThe *server* starts in `main.rs` and **never** stops, see [the docs](https://example.com/a).\n\
    - one item that is long enough to be wrapped at least once\n- two\n  - nested item\n\n1. first\n2. second\n   more of it\n\n\
    > a quotation\n> of two lines\n\n```rust\nfn main() {\n    let x = 1;\n}\n```\n\n\
    | name | what |\n|---|--:|\n| a | 1 |\n| bb | 22 |\n\n---\n\nThe end, 日本語 too.\n";

const WIDE: &str = "\
What I found

The server starts in main.rs and never stops, see the docs
(https://example.com/a).
• one item that is long enough to be wrapped at least once
• two
  • nested item

1. first
2. second more of it

│ a quotation of two lines

  fn main() {
      let x = 1;
  }

name  what
────  ────
a        1
bb      22

────────────────────────────────────────

The end, 日本語 too.";

const NARROW: &str = "\
The server starts in main.rs and never
stops, see the docs
(https://example.com/a).
• one item that is long enough to be
  wrapped at least once
";

#[test]
fn an_answer_reads_well_in_a_wide_terminal() {
    assert_eq!(plain(ANSWER, 80), WIDE);
}

#[test]
fn an_answer_reads_well_in_a_narrow_terminal() {
    let text = plain(ANSWER, 40);
    assert!(text.contains(NARROW), "{text}");
}

#[test]
fn styles_are_written_with_the_colours_of_the_terminal() {
    let mut stream = Stream::new(80);
    let mut lines = stream.push("**bold** `code` *it* ~~no~~\n");
    lines.extend(stream.finish());
    let text: Vec<_> = lines.iter().map(|line| written(line, Colour::On)).collect();
    assert_eq!(
        text,
        ["\u{1b}[1mbold\u{1b}[0m \u{1b}[36mcode\u{1b}[0m \u{1b}[3mit\u{1b}[0m \u{1b}[9mno\u{1b}[0m"]
    );
}

#[test]
fn a_model_cannot_steer_the_terminal() {
    let text = plain("a\u{1b}[2Jb\u{7}\n\n```\n\u{1b}]0;x\u{7}c\n```\n", 80);
    assert_eq!(text, "ab\n\n  c");
    // A string without an end hides nothing of what follows, and a backslash is no end.
    assert_eq!(safe("a\u{1b}_apc\nrest\u{1b}]0;C:\\x\u{7}.\u{1b}Pq\u{1b}\\!"), "aapc\nrest.!");
    assert_eq!(safe("\u{1b}[3\nx\u{1b}\ny\u{1b}"), "\nx\ny");
    assert_eq!(safe("\u{1b}[1;31mred\u{1b}[0m\u{1b}(B\tx\r\n"), "redB    x\n");
}

#[test]
fn what_is_finished_goes_out_at_once_and_the_rest_can_be_looked_at() {
    let mut stream = Stream::new(80);
    assert!(stream.push("one ").is_empty());
    let draft =
        |stream: &Stream| stream.draft().iter().map(|line| written(line, Colour::Off)).collect::<Vec<_>>();
    assert_eq!(draft(&stream), ["one"]);
    let lines = stream.push("two\n\n```\nfirst\nsec");
    let lines: Vec<_> = lines.iter().map(|line| written(line, Colour::Off)).collect();
    assert_eq!(lines, ["one two", "", "  first"]);
    assert_eq!(draft(&stream), ["  sec"]);
}

#[test]
fn the_cost_of_an_answer_grows_with_its_length_alone() {
    // A paragraph without an end: each look at it must stay small however long it is.
    let mut stream = Stream::new(80);
    for _ in 0..2_000 {
        stream.push("some words that never end ");
    }
    assert!(stream.draft().iter().map(|line| line_width(line)).sum::<usize>() <= DRAFT);
}

proptest! {
    #[test]
    fn the_pieces_do_not_matter(
        text in "([a-z *_`#>|-]{0,12}(\n|\n\n|```|- |1\\. |日本| \\| )){0,12}",
        cuts in prop::collection::vec(0_usize..200, 0..8),
        room in 1_usize..60,
    ) {
        let whole = plain(&text, room);
        let mut stream = Stream::new(room);
        let mut lines = Vec::new();
        let mut edges: Vec<usize> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut.min(text.len()))).collect();
        edges.sort_unstable();
        let mut from = 0;
        for edge in edges.into_iter().chain([text.len()]) {
            lines.extend(stream.push(&text[from..edge]));
            stream.draft();
            from = edge;
        }
        lines.extend(stream.finish());
        let pieces = lines.iter().map(|line| written(line, Colour::Off)).collect::<Vec<_>>().join("\n");
        prop_assert_eq!(pieces, whole);
    }

    #[test]
    fn prose_never_leaves_the_screen(text in "[a-z日 *_\n]{0,200}", room in 8_usize..60) {
        let mut stream = Stream::new(room);
        let mut lines = stream.push(&text);
        lines.extend(stream.finish());
        for line in lines.iter().filter(|line| !written(line, Colour::Off).starts_with("  ")) {
            prop_assert!(line_width(line) <= room, "{line:?}");
        }
    }
}
