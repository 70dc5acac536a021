//! Keys that the program knows stand in nothing that it writes down: not in a log, not in the pieces of a stream, not in what
//! was typed.

use serde_json::{Value, json};

use crate::chat;
use crate::desk::{Desk, plan, read};
use crate::provider::with;
use crate::terminal::Terminal;

/// A key that looks like words: nobody finds it who does not know it.
const KEY: &str = "plain-words-make-a-key";

#[test]
fn a_log_has_no_known_key() {
    let desk = Desk::new();
    let mut logged = plan(json!({"responses": ["ok"]}));
    logged["hooks"] =
        json!([{"module": "hooks-logging", "config": {"output_dir": "logs", "level": "debug"}}]);
    desk.plan("a.json", &logged);
    let asked = format!("my key is {KEY}!");
    let ran = with(&desk, &[("OPENAI_API_KEY", KEY)], &["run", "--plan", "a.json", &asked]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "ok\n"), "{}", ran.seen());
    let logs: Vec<_> =
        std::fs::read_dir(desk.work().join("logs")).unwrap().map(|log| log.unwrap().path()).collect();
    let text: String = logs.iter().filter(|log| log.is_file()).map(|log| read(log)).collect();
    assert!(text.contains("my key is [REDACTED]!") && !text.contains(KEY), "{text}");
}

#[test]
fn a_key_that_a_model_says_in_pieces_is_not_in_the_journal() {
    for chunks in [2, 3, 5, 9, 30] {
        let desk = Desk::new();
        let says = format!("You said {KEY}, and that is no secret.");
        let mut streams = plan(json!({"responses": [{"text": says, "chunks": chunks}]}));
        streams["session"]["orchestrator"] = json!("loop-streaming");
        desk.plan("a.json", &streams);
        let ran = with(&desk, &[("OPENAI_API_KEY", KEY)], &["run", "--plan", "a.json", "what did I say?"]);
        assert_eq!(ran.code, 0, "{}", ran.seen());
        let pieces = pieces(&desk);
        let whole: String = pieces.concat();
        assert!(pieces.len() >= 2 && whole.starts_with("You said "), "{pieces:?}");
        assert!(whole.ends_with(", and that is no secret."), "{pieces:?}");
        assert!(whole.contains("[REDACTED]") && !whole.contains("words-make"), "{pieces:?}");
    }
}

/// What the journal has of the pieces of an answer.
fn pieces(desk: &Desk) -> Vec<String> {
    let journal = read(&desk.sessions().pop().unwrap().join("events.jsonl"));
    let records = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let events = records.map(|record| record["body"]["event"].clone());
    let deltas = events.filter(|event| event["name"] == "content_block:delta");
    deltas.map(|event| event["data"]["text"].as_str().unwrap().to_owned()).collect()
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
    terminal.types("\u{4}");
    assert_eq!(terminal.end(), 0);
    let kept = std::fs::read_dir(desk.home().join("state/history")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(read(&kept), "is [REDACTED] a good one?\n");
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
