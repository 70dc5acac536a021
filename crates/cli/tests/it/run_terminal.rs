//! `amplifier run` at a terminal: the answer as it forms, tools as they run, questions in between, colours.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Sender, channel};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::desk::{Desk, plan, says};
use crate::terminal::Terminal;

const TERM: &str = "xterm-256color";
const WIDE: (u16, u16) = (80, 24);

/// A model that says the beginning of its answer, and the rest when it is told to.
fn halting(beginning: &'static str, rest: &'static str) -> (String, Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("http://{}/v1", listener.local_addr().unwrap());
    let (go_on, told) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        reader.read_exact(&mut vec![0; length]).unwrap();
        let piece = |text: &str, end: Value| {
            let choice = json!({"index": 0, "delta": {"content": text}, "finish_reason": end});
            format!("data: {}\n\n", json!({"choices": [choice]}))
        };
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        write!(stream, "{head}{}", piece(beginning, Value::Null)).unwrap();
        stream.flush().unwrap();
        // A test that failed tells nothing any more.
        if told.recv().is_ok() {
            write!(stream, "{}data: [DONE]\n\n", piece(rest, json!("stop"))).unwrap();
        }
    });
    (place, go_on)
}

fn asks(place: &str) -> Value {
    json!({
        "session": {"orchestrator": "loop-streaming", "context": "context-simple"},
        "providers": [{"module": "provider-chat-completions", "config": {"base_url": place, "model": "m", "api_key": "none"}}],
    })
}

fn looks(second: Value) -> Value {
    let call = json!({"name": "read_file", "arguments": {"file_path": "notes.txt"}});
    plan(json!({"responses": [{"text": "Let me look.", "tool_calls": [call]}, second]}))
}

#[test]
fn the_answer_is_seen_while_it_forms() {
    for term in [TERM, "dumb"] {
        let desk = Desk::new();
        let (place, go_on) = halting("The **first** half,\n\n", "and the second.");
        desk.plan("a.json", &asks(&place));
        let mut terminal = Terminal::open(&desk, &["run", "--plan", "a.json", "hi"], WIDE, term);
        let screen = terminal.sees("The first half,");
        assert!(!screen.contains("second"), "{screen}");
        go_on.send(()).unwrap();
        assert_eq!(terminal.end(), 0, "{}", terminal.screen());
        assert_eq!(terminal.screen(), "The first half,\n\nand the second.", "{term}");
    }
}

#[test]
fn tools_are_seen_as_they_run_and_an_interrupt_stops() {
    let desk = Desk::new();
    desk.file("notes.txt", "x\n").plan("a.json", &looks(json!({"text": "late", "delay_ms": 60_000})));
    let mut terminal = Terminal::open(&desk, &["run", "--plan", "a.json", "hi"], WIDE, TERM);
    terminal.sees("✓ read_file  notes.txt");
    let screen = terminal.sees("working");
    assert!(screen.starts_with("Let me look.\n"), "{screen}");
    // No tool runs any more, so there is nothing to wait for.
    terminal.types("\u{3}");
    assert_eq!(terminal.end(), 130, "{}", terminal.screen());
    assert!(!terminal.screen().contains("working"), "{}", terminal.screen());
}

#[test]
fn what_stays_reads_well_in_80_and_in_40_columns() {
    for (name, size) in [("shown_80", WIDE), ("shown_40", (40, 24))] {
        let desk = Desk::new();
        let answer = "## Notes\n\nThe file has **one line**, and nothing in it that anybody would have to know.\n\n- `x`\n";
        desk.file("notes.txt", "x\n").plan("a.json", &looks(json!(answer)));
        let mut terminal = Terminal::open(&desk, &["run", "--plan", "a.json", "hi"], size, TERM);
        assert_eq!(terminal.end(), 0, "{}", terminal.screen());
        let mut settings = insta::Settings::clone_current();
        settings.add_filter(r"\d\.\ds · ", "0.0s · ");
        settings.bind(|| assert_snapshot!(name, terminal.screen()));
    }
}

#[test]
fn quiet_shows_the_final_answer_and_nothing_else() {
    let desk = Desk::new();
    desk.file("notes.txt", "x\n").plan("a.json", &looks(json!("I have *read* it.")));
    let mut terminal = Terminal::open(&desk, &["run", "-q", "--plan", "a.json", "hi"], WIDE, TERM);
    assert_eq!((terminal.end(), terminal.screen().as_str()), (0, "I have read it."));
}

#[test]
fn verbose_tells_every_step_beside_the_answer() {
    let desk = Desk::new();
    desk.file("notes.txt", "x\n").plan("a.json", &looks(json!("I have read it.")));
    let mut terminal = Terminal::open(&desk, &["run", "-v", "--plan", "a.json", "hi"], (120, 24), TERM);
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    let screen = terminal.screen();
    for words in ["Let me look.", "`read_file` notes.txt …", "I have read it.", "1 tool call; session "] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    assert!(!screen.contains('✓'), "a call is told once: {screen}");
}

#[test]
fn a_question_stands_alone_and_the_turn_goes_on_below_it() {
    let desk = Desk::new();
    let call = json!({"name": "write_file", "arguments": {"file_path": "new.txt", "content": "x\n"}});
    let mut asks = plan(json!({"responses": [{"text": "I write it.", "tool_calls": [call]}, "Written."]}));
    asks["hooks"] = json!([{"module": "hooks-approval"}]);
    desk.plan("a.json", &asks);
    let mut terminal = Terminal::open(&desk, &["run", "--plan", "a.json", "hi"], WIDE, TERM);
    let screen = terminal.sees("[y] once");
    assert!(screen.starts_with("I write it.") && screen.contains("new.txt"), "{screen}");
    assert!(!screen.contains("working"), "nothing is drawn while somebody types: {screen}");
    terminal.types("y\r");
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    let screen = terminal.screen();
    assert!(screen.contains("✓ write_file") && screen.ends_with("Written."), "{screen}");
    assert!(!screen.contains("working") && desk.work().join("new.txt").exists(), "{screen}");
}

/// Part C of issue 25, for the question in plain lines.
#[test]
fn a_long_question_is_answered_only_after_it_was_shown_whole() {
    let desk = Desk::new();
    let command = format!("{}touch ran", "echo a line of many\n".repeat(60));
    let mut asks = plan(
        json!({"responses": [{"tool_calls": [{"name": "bash", "arguments": {"command": command}}]}, "Done."]}),
    );
    asks["hooks"] = json!([{"module": "hooks-approval"}]);
    asks["tools"] = json!([{"module": "tool-bash"}]);
    desk.plan("a.json", &asks);
    let mut terminal = Terminal::open(&desk, &["run", "--plan", "a.json", "hi"], WIDE, TERM);
    let screen = terminal.sees("[v] view all, before it can be allowed");
    assert!(screen.contains("touch ran") && screen.contains("lines left out"), "{screen}");
    assert!(!screen.contains("[y] once"), "{screen}");
    terminal.types("y\r");
    terminal.sees("not allowed yet: part of it was left out");
    assert!(!desk.work().join("ran").exists());
    terminal.types("v\r");
    terminal.sees("[y] once");
    terminal.types("y\r");
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    assert!(desk.work().join("ran").exists(), "{}", terminal.screen());
}

#[test]
fn a_question_shows_what_runs_to_the_letter_also_with_a_home_of_its_own() {
    let desk = Desk::new();
    let command = "echo '`amplifier run`'";
    let calls = json!([{"name": "write_file", "arguments": {"file_path": "new.txt", "content": "ask `amplifier run`\n"}},
        {"name": "bash", "arguments": {"command": command}}]);
    let mut asks = plan(json!({"responses": [{"tool_calls": calls}, "Done."]}));
    asks["hooks"] = json!([{"module": "hooks-approval"}]);
    asks["tools"] = json!([{"module": "tool-filesystem"}, {"module": "tool-bash"}]);
    desk.plan("a.json", &asks);
    let args = ["--home", "x", "run", "-v", "--plan", "a.json", "hi"];
    let mut terminal = Terminal::open(&desk, &args, (120, 40), TERM);
    for _ in 0..2 {
        terminal.sees("[y] once");
        let asked = terminal.screen().matches("[y] once").count();
        terminal.types("n\r");
        terminal.until("the answer was taken", |screen| {
            screen.matches("[y] once").count() > asked || screen.contains("Done.")
        });
    }
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    let screen = terminal.screen();
    assert!(screen.contains("+ask `amplifier run`") && screen.contains(command), "{screen}");
    assert!(!screen.contains("amplifier --home"), "{screen}");
}

#[test]
fn what_is_typed_ahead_is_for_the_shell() {
    let desk = Desk::new();
    let (place, go_on) = halting("The first half,\n\n", "and the second.");
    desk.plan("a.json", &asks(&place));
    let script = "\"$AMPLIFIER\" run --plan a.json hi; read line; echo \"the shell got $line\"";
    let mut terminal = Terminal::open_script(&desk, script, WIDE, &[("TERM", TERM)]);
    terminal.sees("The first half,");
    terminal.types("make test\r");
    terminal.sees("make test");
    go_on.send(()).unwrap();
    terminal.sees("the shell got make test");
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
}

#[test]
fn what_was_typed_before_a_question_is_no_answer_to_it() {
    let desk = Desk::new();
    let call = json!({"name": "write_file", "arguments": {"file_path": "new.txt", "content": "x\n"}});
    let mut asks =
        plan(json!({"responses": [{"text": "I write it.", "tool_calls": [call]}, "Not written."]}));
    asks["hooks"] = json!([{"module": "hooks-approval"}]);
    desk.plan("a.json", &asks);
    // The shell takes the first line, so that the second one is typed when the program begins.
    let script = "read line; exec \"$AMPLIFIER\" run --plan a.json hi";
    let mut terminal = Terminal::open_script(&desk, script, WIDE, &[("TERM", TERM)]);
    terminal.types("go\ry\r");
    terminal.sees("[y] once");
    terminal.types("n\r");
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    assert!(!desk.work().join("new.txt").exists(), "{}", terminal.screen());
}

#[test]
fn no_color_in_the_environment_means_none() {
    let desk = Desk::new();
    desk.plan("a.json", &says("Some **bold** words"));
    let bytes = |args: &[&str], variables: &[(&str, &str)]| {
        let variables = [&[("TERM", TERM)], variables].concat();
        let mut terminal = Terminal::open_with(&desk, args, WIDE, &variables);
        terminal.end();
        String::from_utf8(terminal.bytes()).unwrap()
    };
    let (fails, runs) = (["run", "--plan", "none.json", "hi"], ["run", "--plan", "a.json", "hi"]);
    assert!(bytes(&fails, &[]).contains("\u{1b}[1;31merror:"), "{:?}", bytes(&fails, &[]));
    assert!(bytes(&runs, &[]).contains("\u{1b}[1m"), "{:?}", bytes(&runs, &[]));
    for args in [&fails, &runs] {
        // Sequences that end in `m` are colours; those that move the cursor are not meant.
        let shown = bytes(args, &[("NO_COLOR", "1")]);
        let painted = shown
            .split("\u{1b}[")
            .skip(1)
            .any(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m'));
        assert!(!painted, "{shown:?}");
        // Set and empty is not set.
        let shown = bytes(args, &[("NO_COLOR", "")]);
        assert!(shown.contains("\u{1b}[1"), "{shown:?}");
    }
}
