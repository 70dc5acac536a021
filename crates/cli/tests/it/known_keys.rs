//! Keys that the program knows stand in nothing that it writes down: not in a log, not in the pieces of a stream, not in what
//! was typed.

use serde_json::{Value, json};

use crate::chat;
use crate::desk::{Desk, plan, read};
use crate::provider::with;
use crate::terminal::Terminal;

/// A key that looks like words: nobody finds it who does not know it.
const KEY: &str = "plain-words-make-a-key";
/// Another, in a variable that only a plan names.
const OTHER: &str = "other-words-for-one-house";

/// A model that says the key, in so many pieces, to somebody who said it too.
fn told_in(chunks: usize) -> (Desk, String, String) {
    let desk = Desk::new();
    let says = format!("You said {KEY}, and that is no secret.");
    let mut streams = plan(json!({"responses": [{"text": says, "chunks": chunks}]}));
    streams["session"]["orchestrator"] = json!("loop-streaming");
    streams["hooks"] =
        json!([{"module": "hooks-logging", "config": {"output_dir": "logs", "level": "debug"}}]);
    desk.plan("a.json", &streams);
    let asked = format!("my key is {KEY}!");
    let ran = with(&desk, &[("OPENAI_API_KEY", KEY)], &["run", "--plan", "a.json", &asked]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let logs = std::fs::read_dir(desk.work().join("logs")).unwrap().map(|log| log.unwrap().path());
    let log: String = logs.filter(|log| log.is_file()).map(|log| read(&log)).collect();
    let journal = read(&desk.sessions().pop().unwrap().join("events.jsonl"));
    (desk, journal, log)
}

/// The pieces of the answer, by what tells an event's name and data from a line.
fn pieces(lines: &str, name: &str, text: &str) -> Vec<String> {
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let deltas = lines.filter(|line| line.pointer(name) == Some(&json!("content_block:delta")));
    deltas.map(|line| line.pointer(text).unwrap().as_str().unwrap().to_owned()).collect()
}

#[test]
fn nothing_of_a_key_that_a_model_says_in_pieces_is_in_the_journal_or_the_log() {
    for chunks in [1, 2, 3, 5, 9, 30] {
        let (_desk, journal, log) = told_in(chunks);
        for text in [&journal, &log] {
            assert!(text.contains("my key is [REDACTED]!") && !text.contains(KEY), "{text}");
        }
        let journal = pieces(&journal, "/body/event/name", "/body/event/data/text");
        let log = pieces(&log, "/event", "/data/text");
        assert_eq!(journal, log);
        assert!(journal.len() > chunks / 2, "{journal:?}");
        assert_eq!(journal.concat(), "You said [REDACTED], and that is no secret.", "{journal:?}");
    }
}

/// Point 9 of issue 25: what is printed of the records has no key that the journal hides, nor has any that a plan names for
/// a tool, below other keys or behind `Bearer`.
#[test]
fn records_that_are_printed_hide_the_keys_that_the_journal_hides() {
    let desk = Desk::new();
    let said = format!("You said {KEY} and {OTHER}.");
    let mut streams = plan(json!({"responses": [{"text": said, "chunks": 9}]}));
    streams["session"]["orchestrator"] = json!("loop-streaming");
    let headers = json!({"Authorization": "Bearer ${HOUSE}"});
    streams["agents"] = json!({"a": {"tools": [{"module": "tool-mcp", "config": {
        "servers": {"s": {"url": "http://127.0.0.1:9/", "headers": headers}}}}]}});
    desk.plan("a.json", &streams);
    let variables = [("OPENAI_API_KEY", KEY), ("HOUSE", OTHER)];
    let asked = format!("my keys are {KEY} and {OTHER}!");
    let ran = with(&desk, &variables, &["run", "--plan", "a.json", "--output", "jsonl", &asked]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let journal = read(&desk.sessions().pop().unwrap().join("events.jsonl"));
    let records: Vec<_> = ran.stdout.lines().filter(|line| line.contains("\"seq\"")).collect();
    for text in [&journal, &records.join("\n")] {
        assert!(text.contains("my keys are [REDACTED] and [REDACTED]!"), "{text}");
        assert!(!text.contains(KEY) && !text.contains(OTHER), "{text}");
    }
}

#[test]
fn what_is_typed_in_the_chat_is_kept_without_known_keys() {
    let desk = chat::desk(json!(["Word."]), json!({}));
    let home = desk.path("").display().to_string();
    let variables = [("TERM", "xterm-256color"), ("HOME", home.as_str()), ("OPENAI_API_KEY", KEY)];
    let mut terminal = Terminal::open_with(&desk, &["--plan", "plan.json"], chat::WIDE, &variables);
    terminal.prompt();
    terminal.types(&format!("is {KEY} a good one?\r"));
    terminal.sees("Word.");
    terminal.prompt();
    terminal.types("/save said.json\r");
    terminal.sees("messages are in");
    terminal.prompt();
    terminal.types("\u{4}");
    assert_eq!(terminal.end(), 0);
    let kept = std::fs::read_dir(desk.home().join("state/history")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(read(&kept), "is [REDACTED] a good one?\n/save said.json\n");
    let saved = read(&desk.work().join("said.json"));
    assert!(saved.contains("is [REDACTED] a good one?") && !saved.contains(KEY), "{saved}");
}

#[test]
fn what_is_typed_in_the_chat_is_kept_without_the_keys_of_another_bundle() {
    let desk = chat::desk(json!(["Word."]), json!({}));
    let other = "---\nbundle: {name: other}\nsession:\n  orchestrator: {module: loop-basic}\n  context: {module: \
                 context-simple}\nproviders:\n  - module: provider-mock\n    config: {responses: [Other.]}\n  - module: \
                 provider-openai\n    config: {api_key: '${VAULT}', default_model: m}\n---\nOther.\n";
    desk.file("other.md", other);
    let home = desk.path("").display().to_string();
    let variables = [("TERM", "xterm-256color"), ("HOME", home.as_str()), ("VAULT", KEY)];
    let mut terminal = Terminal::open_with(&desk, &["--plan", "plan.json"], chat::WIDE, &variables);
    terminal.prompt();
    terminal.types("/bundle ./other.md\r");
    terminal.sees("the session goes on with");
    terminal.prompt();
    terminal.types(&format!("is {KEY} a good one?\r"));
    terminal.sees("Other.");
    terminal.prompt();
    terminal.types("\u{4}");
    assert_eq!(terminal.end(), 0);
    let kept = std::fs::read_dir(desk.home().join("state/history")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(read(&kept), "/bundle ./other.md\nis [REDACTED] a good one?\n");
}

#[test]
fn a_command_that_is_allowed_always_is_kept_without_known_keys_and_known_again() {
    let command = format!("echo {KEY} {OTHER} > told.txt");
    let call = json!({"tool_calls": [{"name": "bash", "input": {"command": command}}]});
    let more = json!({"tools": [{"module": "tool-bash"}], "hooks": [{"module": "hooks-approval"}]});
    let mut asks = chat::plan(json!([call, "Word."]), more);
    let keyed = json!({"module": "provider-openai", "config": {"api_key": "${HOUSE_KEY}"}});
    asks["providers"].as_array_mut().unwrap().push(keyed);
    let desk = Desk::new();
    desk.plan("plan.json", &asks);
    let variables = [
        ("TERM", "xterm-256color"),
        ("PATH", "/usr/bin:/bin"),
        ("OPENAI_API_KEY", KEY),
        ("HOUSE_KEY", OTHER),
    ];
    for answer in ["a\r", ""] {
        let mut terminal =
            Terminal::open_with(&desk, &["--plan", "plan.json", "--trust"], chat::WIDE, &variables);
        terminal.prompt();
        terminal.types("go\r");
        if !answer.is_empty() {
            terminal.question();
            terminal.types(answer);
        }
        terminal.sees("Word.");
        terminal.prompt();
        terminal.types("\u{4}");
        assert_eq!(terminal.end(), 0);
        assert_eq!(read(&desk.work().join("told.txt")), format!("{KEY} {OTHER}\n"));
        std::fs::remove_file(desk.work().join("told.txt")).unwrap();
    }
    let kept = read(&desk.home().join("state/approvals.json"));
    assert!(kept.contains("echo [REDACTED] [REDACTED] >"), "{kept}");
}

#[test]
fn a_conversation_that_is_kept_beside_the_journal_goes_on_and_has_no_known_key() {
    let desk = Desk::new();
    let mut keeps = plan(json!({"responses": ["You said it.", "Again."]}));
    keeps["session"]["context"] = json!("context-persistent");
    keeps["hooks"] =
        json!([{"module": "hooks-backup", "config": {"backup_dir": "kept", "transcripts": true}}]);
    desk.plan("a.json", &keeps);
    let asked = format!("my key is {KEY}!");
    let variables = [("OPENAI_API_KEY", KEY)];
    let ran = with(&desk, &variables, &["run", "--plan", "a.json", &asked]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "You said it.\n"), "{}", ran.seen());
    let ran = with(&desk, &variables, &["continue", "and again?"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let folder = desk.sessions().pop().unwrap();
    let kept = read(&folder.join("context-messages.jsonl"));
    assert!(kept.contains("my key is [REDACTED]!") && !kept.contains(KEY), "{kept}");
    assert_eq!(kept.lines().count(), 4, "{kept}");
    assert!(
        !read(&folder.join("events.jsonl")).contains("set_messages_ignored"),
        "the file is what was said"
    );
    let kept = desk.work().join("kept").join(folder.file_name().unwrap()).join("transcripts");
    for kept in std::fs::read_dir(kept).unwrap() {
        let kept = read(&kept.unwrap().path());
        assert!(kept.contains("my key is [REDACTED]!") && !kept.contains(KEY), "{kept}");
    }
}
