//! What a session that is opened again shows of itself: its last turns as they were shown then, and the calls it made.

use serde_json::{Value, json};

use crate::chat::{desk, open};
use crate::desk::Desk;
use crate::terminal::Terminal;

const TALL: (u16, u16) = (80, 50);

fn call(name: &str, input: Value) -> Value {
    json!({"tool_calls": [{"name": name, "input": input}]})
}

fn id(desk: &Desk) -> String {
    desk.sessions()[0].file_name().unwrap().to_string_lossy().into_owned()
}

fn resume(desk: &Desk) -> Terminal {
    let terminal = Terminal::open(desk, &["resume", &id(desk)], TALL, "xterm-256color");
    terminal.prompt();
    terminal
}

fn say(desk: &Desk, args: &[&str], lines: &[&str]) -> crate::desk::Ran {
    desk.amplifier_with_input(args, (lines.join("\n") + "\n").as_bytes())
}

/// A model that edits a file and says so in Markdown, and then looks for one that is not there.
fn edited() -> Desk {
    let edit =
        call("edit_file", json!({"file_path": "lib.rs", "old_string": "a - b", "new_string": "a + b"}));
    let answer = "## Result\n\nI mended **add**:\n\n```rust\na + b\n```";
    let missing = call("read_file", json!({"file_path": "none.rs"}));
    let desk = desk(
        json!([edit, answer, missing, "There is none."]),
        json!({"tools": [{"module": "tool-filesystem"}]}),
    );
    desk.file("lib.rs", "fn add() {\n    a - b\n}\n");
    desk
}

/// The part of a screen from one text to another.
fn between(screen: &str, from: &str, to: &str) -> String {
    let rest = &screen[screen.find(from).unwrap_or_else(|| panic!("`{from}` in\n{screen}"))..];
    rest[..rest.find(to).unwrap_or_else(|| panic!("`{to}` in\n{screen}"))].to_owned()
}

/// Lines without what a turn took and how long something ran: the first is not shown again, the second is measured anew.
fn bare(part: &str) -> Vec<String> {
    let lines = part.lines().filter(|line| !line.contains(" in · ") && !line.trim().is_empty());
    lines.map(|line| line.split("  0.").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn what_was_said_is_shown_as_it_was_shown_then() {
    let desk = edited();
    let mut terminal = open(&desk, TALL);
    terminal.types("fix add\r");
    terminal.sees("I mended add:");
    terminal.prompt();
    terminal.types("and the other\r");
    terminal.sees("There is none.");
    let then = between(&terminal.prompt(), "> fix add", "There is none.");
    assert!(then.contains("✓ edit_file  lib.rs") && then.contains("  +    a + b"), "{then}");
    terminal.types("\u{4}");
    terminal.end();
    let terminal = resume(&desk);
    let screen = terminal.screen();
    let now = between(&screen, "> fix add", "There is none.");
    assert_eq!(bare(&now), bare(&then), "{screen}");
    assert!(
        !screen.contains("##") && !screen.contains("**") && !screen.contains("\"file_path\""),
        "{screen}"
    );
    // The same in another session of the chat.
    drop(terminal);
    let terminal = open(&desk, TALL);
    terminal.types(&format!("/resume {}\r", id(&desk)));
    terminal.sees("this is session");
    let screen = terminal.prompt();
    assert_eq!(bare(&between(&screen, "> fix add", "There is none.")), bare(&then), "{screen}");
}

#[test]
fn a_long_conversation_says_how_much_of_it_is_not_shown() {
    let desk = desk(json!(["One.", "Two.", "Three.", "Four.", "Five."]), json!({}));
    say(&desk, &["--plan", "plan.json"], &["a", "b", "c", "d", "e"]);
    let screen = resume(&desk).screen();
    let told = format!("… earlier turns: `amplifier session replay {}` shows all", &id(&desk)[..13]);
    assert!(screen.contains(&told), "{screen}");
    assert!(screen.contains("> c\n\nThree.\n\n> d\n\nFour.\n\n> e\n\nFive.\n"), "{screen}");
    assert!(!screen.contains("Two."), "{screen}");
    let ran = desk.amplifier(&["session", "replay", &id(&desk)[..13]]);
    assert!(ran.stdout.contains("Two."), "{}", ran.seen());
    let mut terminal = Terminal::open(&desk, &["continue", "--no-history"], TALL, "xterm-256color");
    let screen = terminal.prompt();
    assert!(!screen.contains("Five.") && !screen.contains("earlier"), "{screen}");
    // The command works as it is printed.
    terminal.types("\u{4}");
    terminal.end();
    let home = desk.home().display().to_string();
    let terminal = Terminal::open(&desk, &["--home", &home, "continue"], TALL, "xterm-256color");
    let screen = terminal.prompt();
    assert!(screen.contains("… earlier turns: `amplifier --home"), "{screen}");
}

#[test]
fn the_calls_of_a_session_are_known_after_a_resume() {
    let desk = edited();
    say(&desk, &["--plan", "plan.json"], &["fix add", "and the other", "thanks", "thanks", "thanks"]);
    let lines = ["/tools last", "/expand 1", "/expand"];
    let ran = say(&desk, &["resume", &id(&desk)], &lines);
    let told = &ran.stderr;
    assert!(told.contains("✓ edit_file  lib.rs") && told.contains("✗ read_file  none.rs"), "{told}");
    assert!(told.contains("#1\n") && told.contains("#2\n"), "{told}");
    assert!(told.contains("+    a + b"), "the diff of the first: {told}");
    let last = told.rsplit("#2\n").next().unwrap();
    assert!(last.contains("none.rs"), "the result of the last: {told}");
    // The numbers go on.
    let terminal = resume(&desk);
    terminal.types("more\r");
    terminal.sees("#3");
    terminal.prompt();
    terminal.types("/tools last\r");
    terminal.until("all three", |screen| {
        let listed = screen.rsplit("/tools last").next().unwrap_or_default();
        ["#1", "#2", "#3"].iter().all(|number| listed.contains(number))
    });
}

#[test]
fn what_was_cleared_counts_no_more() {
    let desk = desk(json!(["One.", "Two.", "Three."]), json!({}));
    let ran =
        say(&desk, &["--plan", "plan.json"], &["a", "b", "/clear", "/status", "/rewind", "c", "/status"]);
    let turns: Vec<_> = ran.stderr.lines().filter_map(|line| line.trim().strip_prefix("turns")).collect();
    let gone = "(2 more are no part of the conversation now)";
    assert_eq!(
        turns.iter().map(|turns| turns.trim().to_owned()).collect::<Vec<_>>(),
        [format!("0 {gone}"), format!("1 {gone}")]
    );
    assert!(ran.stderr.contains("a (not part of the conversation now)"), "{}", ran.stderr);
    let shown = desk.amplifier(&["session", "show", &id(&desk)]).stdout;
    assert_eq!(shown.matches("  (not part of the conversation now)").count(), 2, "{shown}");
    let screen = resume(&desk).screen();
    assert!(screen.contains("> c\n\nThree.") && !screen.contains("Two."), "{screen}");
    // It can still be gone back to.
    let ran = say(&desk, &["resume", &id(&desk)], &["/rewind 2", "/status"]);
    assert!(ran.stderr.contains("2 (1 more is no part of the conversation now)"), "{}", ran.stderr);
}

#[test]
fn of_many_turns_the_last_are_listed_and_the_way_to_the_others_is_told() {
    let desk = desk(json!(["Word."]), json!({}));
    let asked: Vec<_> = (1..=32).map(|turn| format!("question {turn}")).collect();
    let mut lines: Vec<_> = asked.iter().map(String::as_str).collect();
    lines.extend(["/rewind", "/status"]);
    let ran = say(&desk, &["--plan", "plan.json"], &lines);
    let shows = format!("`amplifier session show {}` lists all", id(&desk));
    let said = &ran.stderr;
    assert!(
        said.contains("question 3\n") && !said.contains("question 2\n") && said.contains("question 32\n")
    );
    assert!(said.contains(&shows) && said.contains("turns       32\n"), "{}", ran.stderr);
}

#[test]
fn a_turn_that_failed_is_shown_as_one() {
    let failing = json!({"error": {"kind": "authentication", "message": "the key is wrong"}});
    let desk = desk(json!(["One.", failing]), json!({}));
    say(&desk, &["--plan", "plan.json"], &["a", "b"]);
    let screen = resume(&desk).screen();
    assert!(screen.contains("> a\n\nOne.\n\n> b\n\nthe turn ended: failed\n"), "{screen}");
}

#[test]
fn a_turn_that_was_stopped_is_shown_as_one() {
    let bash = call("bash", json!({"command": "while [ ! -e go-on ]; do sleep 0.02; done", "timeout": 600}));
    let tools = json!([{"module": "tool-bash", "config": {"require_approval": "never"}}]);
    let desk = desk(json!([bash, "Two."]), json!({ "tools": tools }));
    let mut terminal = open(&desk, TALL);
    terminal.types("a\r");
    terminal.sees("running ·");
    terminal.types("\u{3}\u{3}");
    terminal.until("the end of the turn", |screen| screen.lines().any(|line| line == "stopped"));
    terminal.prompt();
    terminal.types("\u{4}");
    terminal.end();
    let screen = resume(&desk).screen();
    assert!(screen.lines().any(|line| line == "stopped"), "{screen}");
    assert!(!screen.contains("[The turn was cancelled"), "{screen}");
}

/// Calls that nobody saw are known when they are asked for, and those that were made since keep their numbers.
#[test]
fn the_calls_of_a_hidden_past_are_read_when_they_are_asked_for() {
    let desk = edited();
    say(&desk, &["--plan", "plan.json"], &["fix add"]);
    let ran = say(&desk, &["resume", &id(&desk)], &["and the other", "/tools last", "/expand 1"]);
    let listed: Vec<_> = ran.stderr.lines().filter(|line| line.contains('#')).collect();
    let is = |line: &str, tool: &str, number: &str| line.contains(tool) && line.ends_with(number);
    let numbers: Vec<_> = listed.iter().filter_map(|line| line.rsplit_once('#')).map(|(_, n)| n).collect();
    assert!(numbers.ends_with(&["1", "2", "1"]), "{}", ran.stderr);
    assert!(listed.iter().any(|line| is(line, "edit_file", "#1")), "{}", ran.stderr);
    assert!(ran.stderr.contains("+    a + b"), "{}", ran.stderr);
}
