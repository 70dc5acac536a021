//! What a model, a file or a name says cannot deceive whoever looks at the terminal; programs get it as it is.

use serde_json::json;

use crate::chat::{WIDE, desk, open};
use crate::desk::{Desk, plan, says};
use crate::terminal::Terminal;

const TERM: &str = "xterm-256color";

/// What reorders or hides letters, or steers the terminal.
const DECEITS: [char; 10] = [
    '\u{202e}',
    '\u{202a}',
    '\u{2066}',
    '\u{2069}',
    '\u{200f}',
    '\u{200b}',
    '\u{e0041}',
    '\u{9b}',
    '\u{7}',
    '\u{2028}',
];
/// Innocent: right-to-left letters, joined ones, emoji.
const INNOCENT: &str = "שלום می\u{200c}خواهم 👩\u{200d}💻 ❤\u{fe0f}";

fn deceitful() -> String {
    DECEITS.iter().map(|deceit| format!("a{deceit}b ")).collect()
}

/// Fails when something that deceives has reached the terminal; the program's own sequences are no letters.
fn assert_honest(terminal: &Terminal) {
    let bytes = String::from_utf8(terminal.bytes()).unwrap();
    let found: Vec<_> = DECEITS.iter().filter(|deceit| bytes.contains(**deceit)).collect();
    assert!(found.is_empty(), "{found:?} in {bytes:?}");
}

#[test]
fn an_answer_on_a_terminal_has_no_deceitful_characters_and_all_innocent_ones() {
    let desk = desk(json!([format!("{} {INNOCENT}", deceitful())]), json!({}));
    let mut ways = Vec::new();
    for (args, term) in [(&["run"][..], TERM), (&["run", "-q"], TERM), (&["run"], "dumb")] {
        let args = [args, &["--plan", "plan.json", "hi"]].concat();
        let mut terminal = Terminal::open(&desk, &args, WIDE, term);
        assert_eq!(terminal.end(), 0, "{}", terminal.screen());
        ways.push(terminal);
    }
    let chat = open(&desk, WIDE);
    chat.types("hi\r");
    chat.sees("<U+202E>");
    chat.prompt();
    ways.push(chat);
    for terminal in ways {
        assert_honest(&terminal);
        let bytes = String::from_utf8(terminal.bytes()).unwrap();
        assert!(bytes.contains("a<U+202E>b") && bytes.contains("a<U+E0041>b"), "{bytes:?}");
        for innocent in INNOCENT.split(' ') {
            assert!(bytes.contains(innocent), "`{innocent}` in {bytes:?}");
        }
    }
}

#[test]
fn programs_get_an_answer_as_it_is() {
    let desk = Desk::new();
    let text = format!("{}{INNOCENT}", deceitful());
    desk.plan("a.json", &says(&text));
    let ran = desk.amplifier(&["run", "--plan", "a.json", "hi"]);
    assert_eq!((ran.code, ran.stdout), (0, format!("{text}\n")));
    // In JSON escapes mean the same and deceive nobody, wherever it is shown.
    let ran = desk.amplifier(&["run", "--plan", "a.json", "--output", "json", "hi"]);
    assert_eq!(ran.json()["answer"], json!(text), "{}", ran.seen());
    assert!(!ran.stdout.contains(DECEITS) && ran.stdout.contains("\\u202e"), "{}", ran.stdout);
    let ran = desk.amplifier(&["run", "--plan", "a.json", "--output", "jsonl", "hi"]);
    assert_eq!(ran.lines().last().unwrap()["answer"], json!(text), "{}", ran.seen());
    assert!(!ran.stdout.contains(DECEITS), "{}", ran.stdout);
    let mut terminal =
        Terminal::open(&desk, &["run", "--plan", "a.json", "--output", "json", "hi"], WIDE, TERM);
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    assert_honest(&terminal);
}

#[test]
fn names_of_files_bundles_and_agents_do_not_deceive() {
    let desk = Desk::new();
    let name = "a\u{202e}b";
    // An error that names what was asked for, also in a log.
    let ran = desk.amplifier(&["run", "--plan", &format!("{name}.json"), "hi"]);
    assert!(ran.code != 0 && ran.stderr.contains("a<U+202E>b.json"), "{}", ran.seen());
    desk.file(
        "b/bundle.md",
        format!(
            "---\nbundle: {{name: b, description: \"x {name} y\"}}\n\
             session: {{orchestrator: loop-basic, context: context-simple}}\n\
             agents: {{scout: {{description: \"{name}\"}}}}\n---\nHi.\n"
        ),
    );
    for args in [&["bundle", "show", "./b"][..], &["agents", "list", "--bundle", "./b"]] {
        let mut terminal = Terminal::open(&desk, args, WIDE, TERM);
        assert_eq!(terminal.end(), 0, "{}", terminal.screen());
        assert!(terminal.screen().contains("a<U+202E>b"), "{args:?}: {}", terminal.screen());
        assert_honest(&terminal);
    }
}

#[test]
fn results_of_tools_and_offered_names_do_not_deceive() {
    let name = "notes\u{202e}txt";
    let call = json!({"name": "read_file", "arguments": {"file_path": name}});
    let wrong = json!({"name": "read_file", "arguments": {"file_path": "none\u{202e}"}});
    let mut plan = plan(json!({"responses": [{"tool_calls": [call]}, {"tool_calls": [wrong]}, "Read."]}));
    plan["session"]["orchestrator"] = json!("loop-streaming");
    let desk = Desk::new();
    desk.plan("plan.json", &plan).file(name, "in\u{202e}side\n").file("notes.txt", "x\n");
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    terminal.sees("Read.");
    terminal.prompt();
    terminal.types("/expand 1\r");
    terminal.sees("in<U+202E>side");
    terminal.prompt();
    // Of two names that begin so the honest one alone is offered.
    terminal.types("@not\t");
    terminal.sees("> @notes.txt");
    assert_honest(&terminal);
    let ran = desk.amplifier(&["run", "-v", "--plan", "plan.json", "go"]);
    assert!(!ran.stderr.contains('\u{202e}') && ran.stderr.contains("notes<U+202E>txt"), "{}", ran.seen());
}
