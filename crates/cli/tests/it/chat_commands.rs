//! The words with a slash, through a pipe: each line does what it says, and says what it did.

use serde_json::{Value, json};

use crate::desk::{Desk, Ran, read};
use crate::terminal::Terminal;

fn desk(responses: Value) -> Desk {
    let desk = Desk::new();
    desk.plan(
        "plan.json",
        &json!({
            "session": {"orchestrator": {"module": "loop-streaming"}, "context": {"module": "context-simple"}},
            "providers": [{"module": "provider-mock", "config": {"responses": responses}}],
            "tools": [{"module": "tool-filesystem"}],
            "agents": {"explorer": {"description": "Looks around. Changes nothing."}},
        }),
    );
    desk
}

/// Says these lines, one after the other.
fn say(desk: &Desk, lines: &[&str]) -> Ran {
    desk.amplifier_with_input(&["--plan", "plan.json"], (lines.join("\n") + "\n").as_bytes())
}

/// The texts of the conversation that `/save` wrote.
fn saved(desk: &Desk, file: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(desk.work().join(file)).unwrap();
    let messages: Vec<Value> = serde_json::from_str(&text).unwrap();
    let text_of = |content: &Value| match content {
        Value::String(text) => text.clone(),
        blocks => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    messages
        .iter()
        .map(|message| (message["role"].as_str().unwrap().to_owned(), text_of(&message["content"])))
        .collect()
}

fn ids(desk: &Desk) -> Vec<String> {
    let name = |path: &std::path::PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    desk.sessions().iter().map(name).collect()
}

/// What was said beside the answers, without what differs from run to run.
fn told(desk: &Desk, ran: &Ran) -> String {
    let mut text = ran.stderr.clone();
    for (at, id) in ids(desk).iter().enumerate() {
        text = text.replace(id.as_str(), &format!("SESSION{at}")).replace(&id[..13], &format!("SESSION{at}"));
    }
    text.replace(&desk.work().canonicalize().unwrap().display().to_string(), "WORK")
}

#[test]
fn what_looks_says_what_there_is() {
    let desk = desk(
        json!([{"text": "hello", "usage": {"input_tokens": 1500, "output_tokens": 5, "cost_usd": "0.02"}}]),
    );
    let ran = say(
        &desk,
        &[
            "hi",
            "/status",
            "/agents",
            "/agents explorer",
            "/cost",
            "/think",
            "/expand",
            "/mode",
            "/provider",
            "/model",
            "/sessions",
            "/bundle",
            "/allow",
            "/tools last",
        ],
    );
    assert_eq!(ran.stdout, "hello\n");
    insta::assert_snapshot!("chat_looks", told(&desk, &ran));
    let ran = say(&desk, &["/help", "/tools", "/config", "/tools nonsense"]);
    assert!(ran.stderr.contains("/rewind [TURN]"), "{}", ran.stderr);
    assert!(ran.stderr.contains("read_file") && ran.stderr.contains("\"provider-mock\""), "{}", ran.stderr);
    assert!(ran.stderr.contains("there is no tool `nonsense`"), "{}", ran.stderr);
    assert_eq!(ran.code, 1);
}

#[test]
fn in_plan_mode_nothing_is_changed() {
    let write =
        json!({"tool_calls": [{"name": "write_file", "input": {"file_path": "a.txt", "content": "x"}}]});
    let read = json!({"tool_calls": [{"name": "read_file", "input": {"file_path": "b.txt"}}]});
    let desk = desk(json!([write, "planned", read, "read", write, "written"]));
    desk.file("b.txt", "b");
    let ran = say(&desk, &["/mode plan", "go", "look", "/mode normal", "go"]);
    assert_eq!(ran.stdout, "planned\nread\nwritten\n", "{}", ran.stderr);
    assert!(
        ran.stderr.contains("`write_file` could change or run something, and plan mode"),
        "{}",
        ran.stderr
    );
    let (denied, done) =
        (ran.stderr.matches("✗ write_file").count(), ran.stderr.matches("✓ write_file").count());
    assert_eq!((denied, done), (1, 1), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(desk.work().join("a.txt")).unwrap(), "x");
}

#[test]
fn a_summary_takes_the_place_of_the_conversation() {
    let desk = desk(json!(["one", "THE SUMMARY", "three"]));
    let ran = say(&desk, &["/compact", "first", "/compact", "/save a.json", "second"]);
    assert!(ran.stderr.contains("nothing was said yet"), "{}", ran.stderr);
    assert!(ran.stdout.contains("THE SUMMARY") && ran.stdout.ends_with("three\n"), "{}", ran.stdout);
    let saved = saved(&desk, "a.json");
    assert_eq!(saved.len(), 2, "{saved:?}");
    assert!(saved[0].1.contains("THE SUMMARY") && saved[0].0 == "user", "{saved:?}");
}

#[test]
fn what_is_cleared_is_forgotten_and_can_be_brought_back() {
    let desk = desk(json!(["one", "two"]));
    let ran = say(
        &desk,
        &["first", "second", "/clear", "/save a.json", "/rewind", "/rewind 1", "/save b.json", "/rewind 9"],
    );
    assert!(saved(&desk, "a.json").is_empty());
    let back: Vec<_> = saved(&desk, "b.json").into_iter().map(|(_, text)| text).collect();
    assert_eq!(back, ["first", "one"], "{}", ran.stderr);
    assert!(ran.stderr.contains("has no turn 9"), "{}", ran.stderr);
}

#[test]
fn a_fork_goes_on_by_itself() {
    let desk = desk(json!(["one", "two", "three"]));
    let ran = say(&desk, &["first", "second", "/fork 1", "/save a.json", "third", "/sessions"]);
    let saved: Vec<_> = saved(&desk, "a.json").into_iter().map(|(_, text)| text).collect();
    assert_eq!(saved, ["first", "one"], "{}", ran.stderr);
    assert_eq!(ids(&desk).len(), 2);
    assert!(
        ran.stderr.contains("a copy up to turn 1") && ran.stderr.contains("(this one)"),
        "{}",
        ran.stderr
    );
}

#[test]
fn another_session_is_gone_on_with_by_the_beginning_of_its_id() {
    let desk = desk(json!(["one"]));
    say(&desk, &["first", "/rename the old one"]);
    let old = ids(&desk)[0].clone();
    let ran = say(&desk, &["/resume 0", &format!("/resume {}", &old[..30]), "/save a.json", "/resume zzz"]);
    let saved: Vec<_> = saved(&desk, "a.json").into_iter().map(|(_, text)| text).collect();
    assert_eq!(saved, ["first", "one"], "{}", ran.stderr);
    assert!(ran.stderr.contains("2 sessions begin with `0`"), "{}", ran.stderr);
    let ran = desk.amplifier_with_input(&["--resume", &old[..30]], b"/sessions\n/status\n");
    assert!(ran.stderr.contains("the old one (this one)"), "{}", ran.stderr);
}

#[test]
fn a_session_is_exported_in_three_forms() {
    let desk = desk(json!(["one"]));
    let ran = say(&desk, &["first", "/export a.md", "/export a.json", "/export a.html", "/export a.doc"]);
    for (file, text) in [("a.md", "first"), ("a.json", "\"first\""), ("a.html", "<html")] {
        let written = std::fs::read_to_string(desk.work().join(file)).unwrap();
        assert!(written.contains(text), "{file}: {written}");
    }
    assert!(ran.stderr.contains("must end with .md, .json or .html"), "{}", ran.stderr);
}

#[test]
fn another_model_is_asked_from_the_next_turn_on() {
    let desk = desk(json!(["one"]));
    let ran = say(&desk, &["first", "/model other-1", "second", "/status", "/provider no/good"]);
    assert_eq!(ran.stdout, "one\none\n", "{}", ran.stderr);
    assert!(ran.stderr.contains("other-1 of mock"), "{}", ran.stderr);
    assert_eq!(ids(&desk).len(), 1, "it is the same session");
    assert_eq!(ran.code, 1);
}

#[test]
fn after_a_bundle_that_cannot_be_used_the_session_has_its_own_words_again() {
    let bundle = |name: &str, loop_: &str, words: &str| {
        format!(
            "---\nbundle: {{name: {name}}}\nsession:\n  orchestrator: {{module: {loop_}}}\n  context: {{module: context-simple}}\n\
             providers:\n  - module: provider-mock\n    config: {{responses: [One.]}}\n---\n{words}\n"
        )
    };
    let desk = Desk::new();
    desk.file("near.md", bundle("near", "loop-basic", "Near words."));
    desk.file("far.md", bundle("far", "loop-that-is-not", "Far words."));
    let ran = desk.amplifier_with_input(&["--bundle", "./near.md"], b"first\n/bundle ./far.md\nsecond\n");
    // The model of a session that was opened again begins its script again.
    assert_eq!(ran.stdout.matches("One.").count(), 2, "{}", ran.seen());
    assert!(ran.seen().contains("the session goes on as it was"), "{}", ran.seen());
    let sessions = desk.sessions();
    let [session] = sessions.as_slice() else { panic!("{sessions:?}") };
    let [prompt, plan, metadata] =
        ["prompt.json", "mount_plan.json", "metadata.json"].map(|file| read(&session.join(file)));
    assert!(prompt.contains("Near words.") && !prompt.contains("Far words."), "{prompt}");
    assert!(plan.contains("loop-basic") && !plan.contains("loop-that-is-not"), "{plan}");
    assert!(metadata.contains("near.md") && !metadata.contains("far.md"), "{metadata}");
}

#[test]
fn a_script_learns_what_went_wrong_and_a_person_has_seen_it() {
    let desk = desk(json!(["yes"]));
    assert_eq!(say(&desk, &["/nonsense"]).code, 2);
    // Neither what comes after it nor leaving makes it undone.
    assert_eq!(say(&desk, &["/nonsense", "/quit"]).code, 2);
    let ran = say(&desk, &["/mode nonsense", "hi", "/status"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, "yes\n"), "{}", ran.seen());
    assert_eq!(say(&desk, &["hi", "/status", "/quit"]).code, 0);
    for leaves in ["\u{4}", "/quit\r"] {
        let mut terminal = Terminal::open(&desk, &["--plan", "plan.json"], (80, 24), "xterm-256color");
        terminal.prompt();
        terminal.types("/nonsense\r");
        terminal.sees("there is no command `/nonsense`");
        terminal.prompt();
        terminal.types(leaves);
        assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    }
}
