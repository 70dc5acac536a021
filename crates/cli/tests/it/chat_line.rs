//! The line that is typed: at the prompt and while something runs, with nothing lost between the two, in windows that change.

use serde_json::json;

use crate::chat::{WIDE, desk, open, plan, waiting};
use crate::desk::{Desk, read};

#[test]
fn what_is_typed_behind_an_interrupt_in_one_piece_is_kept() {
    let desk = desk(json!(["Seen.", "Again."]), json!({}));
    let mut terminal = open(&desk, WIDE);
    // On an empty line, on one with something on it, and with a line end behind it.
    terminal.types("\u{3}typed ahead");
    terminal.until("the line", |screen| screen.lines().last() == Some("> typed ahead"));
    assert!(terminal.screen().contains("Ctrl-C again or Ctrl-D leaves"), "{}", terminal.screen());
    terminal.types("\u{3}another one\rand more");
    terminal.sees("Seen.");
    terminal.prompt_with("and more");
    let said = read(&desk.sessions()[0].join("transcript.jsonl"));
    assert!(said.contains("\"another one\"") && !said.contains("typed ahead"), "{said}");
    terminal.types("\u{3}\u{3}");
    let warned = |screen: &str| screen.matches("Ctrl-C again or Ctrl-D leaves").count() == 2;
    terminal.until("another warning", warned);
    terminal.types("\u{3}");
    assert_eq!(terminal.end(), 130);
}

#[test]
fn an_interrupt_that_ends_a_search_takes_no_keys() {
    let desk = desk(json!(["Seen."]), json!({}));
    let terminal = open(&desk, WIDE);
    terminal.types("\u{12}");
    terminal.sees("(``) >");
    terminal.types("\u{3}");
    terminal.prompt();
    terminal.types("hi\r");
    terminal.sees("Seen.");
}

#[test]
fn a_draft_is_edited_in_the_middle() {
    let desk = waiting(json!(["Over.", "Next.", "Last."]));
    let terminal = open(&desk, (40, 12));
    terminal.types("go\r");
    terminal.sees("running ·");
    terminal.types("one three four");
    // Two words back, one in between; the family is one thing.
    terminal.types("\u{1b}b\u{1b}[1;5Dtwo \u{1b}[Fx👩\u{200d}👧\u{7f}\u{1b}[D\u{1b}[3~ five\u{1}zero \u{5}!");
    let screen = terminal.sees("> zero one two three four five!");
    let cursor = terminal.with_screen(vt100::Screen::cursor_position);
    assert_eq!(usize::from(cursor.1), "> zero one two three four five!".len(), "{screen}");
    terminal.types("\u{1b}[H");
    terminal.types(&"wide ".repeat(12));
    // Of a line that is too long the end before the cursor is seen.
    terminal.until("the cursor's place", |screen| {
        screen.lines().last().is_some_and(|line| line.ends_with("wide"))
    });
    terminal.types("\u{15}");
    terminal.until("the rest", |screen| screen.lines().last() == Some("> zero one two three four five!"));
    // At the prompt after it the cursor is where it was.
    desk.file("go-on", "");
    terminal.sees("Over.");
    terminal.prompt_with("zero one two three four five!");
    terminal.types("so: \r");
    terminal.sees("Next.");
    terminal.prompt();
    let said = read(&desk.sessions()[0].join("transcript.jsonl"));
    assert!(said.contains("so: zero one two three four five!"), "{said}");
}

#[test]
fn what_forms_is_never_erased_from_the_very_first_place_on() {
    let answer = "The quick brown fox jumps over the lazy dog and goes on. ".repeat(30);
    let chunks: Vec<String> = answer.split_inclusive(' ').map(str::to_owned).collect();
    let mut slow = plan(json!([{ "chunks": chunks }]), json!({}));
    slow["session"]["orchestrator"]["config"] = json!({"stream_delay": 0.01});
    let desk = Desk::new();
    desk.plan("plan.json", &slow);
    let terminal = open(&desk, (80, 10));
    terminal.types("go\r");
    terminal.until("a screen full of it", |screen| screen.matches("quick").count() > 7);
    terminal.resize((40, 10));
    terminal.sees("in · ");
    terminal.prompt();
    assert!(!terminal.erased_from_home());
}

#[test]
fn wide_characters_are_counted_as_the_terminal_counts_them() {
    let family = "👩\u{200d}👩\u{200d}👧";
    let answer =
        format!("{} {} 日本語テキスト{} end.", family.repeat(3), "❤\u{fe0f}".repeat(9), "👍🏽".repeat(4));
    let call = json!({"tool_calls": [{"name": "echo", "input": {"text": answer}}]});
    let desk = desk(json!([call, answer]), json!({"tools": [{"module": "tool-echo"}]}));
    let terminal = open(&desk, (30, 24));
    terminal.types("go\r");
    terminal.sees("in · ");
    let screen = terminal.prompt();
    // No line was wrapped by the terminal.
    assert!(terminal.with_screen(|screen| (0..24).all(|row| !screen.row_wrapped(row))), "{screen}");
    assert_eq!(screen.matches("✓ echo").count(), 1, "{screen}");
}
