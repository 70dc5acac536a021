//! The chat and its session: who is asked, what stands there after a resume, a chat without a word, a reader that left.

use std::io::{Read, Write};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::chat::{WIDE, desk, open};
use crate::desk::{Desk, Ran, git_variables, read};
use crate::terminal::Terminal;

fn say(desk: &Desk, args: &[&str], lines: &[&str]) -> Ran {
    desk.amplifier_with_input(args, (lines.join("\n") + "\n").as_bytes())
}

fn id(desk: &Desk) -> String {
    desk.sessions()[0].file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn a_provider_that_cannot_be_asked_is_not_said_to_be_asked() {
    let desk = desk(json!(["one", "two", "three"]), json!({}));
    let ran =
        say(&desk, &["--plan", "plan.json"], &["/provider anthropic", "hi", "/provider zzz", "/status"]);
    assert!(!ran.stderr.contains("from now on"), "{}", ran.stderr);
    assert!(ran.stderr.contains("provider `provider-anthropic` was not mounted"), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("the session goes on as it was").count(), 1, "{}", ran.stderr);
    // A name that nobody has is refused before the session is opened again.
    assert!(ran.stderr.contains("there is no provider `zzz`"), "{}", ran.stderr);
    assert_eq!(ran.stdout, "one\n");
    // What is kept is what works.
    let plan = read(&desk.sessions()[0].join("mount_plan.json"));
    assert!(!plan.contains("anthropic") && !plan.contains("zzz"), "{plan}");
}

#[test]
fn a_session_that_was_opened_again_is_not_taken_for_an_empty_one() {
    let desk = desk(json!(["one"]), json!({}));
    let ran = say(&desk, &["--plan", "plan.json"], &["hi", "/model big", "/quit"]);
    assert_eq!((ran.code, desk.sessions().len()), (0, 1), "{}", ran.seen());
    assert!(read(&desk.sessions()[0].join("transcript.jsonl")).contains("hi"));
}

#[test]
fn a_model_is_that_of_the_provider_that_is_asked() {
    let plan = json!({
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-anthropic"}, {"module": "provider-mock", "config": {"responses": ["x"]}}],
    });
    let desk = Desk::new();
    desk.plan("plan.json", &plan);
    let ran = say(&desk, &["--plan", "plan.json"], &["/model big", "/status"]);
    assert!(ran.stderr.contains("from now on `big` is asked"), "{}", ran.stderr);
    assert!(ran.stderr.contains("big of mock"), "{}", ran.stderr);
    let ran = say(&desk, &["--plan", "plan.json"], &["/provider mock", "/status"]);
    assert!(ran.stderr.contains("from now on `mock` is asked"), "{}", ran.stderr);
}

#[test]
fn after_a_resume_the_session_knows_what_it_did() {
    let read = json!({
        "tool_calls": [{"name": "read_file", "input": {"file_path": "plan.json"}}],
        "usage": {"input_tokens": 1000, "output_tokens": 10},
    });
    let answer = json!({"text": "one", "usage": {"input_tokens": 2000, "output_tokens": 20}});
    let desk = desk(json!([read, answer]), json!({"tools": [{"module": "tool-filesystem"}]}));
    assert_eq!(say(&desk, &["--plan", "plan.json"], &["hi", "and"]).code, 0);
    let ran = say(&desk, &["resume", &id(&desk)], &["/status", "/cost"]);
    let row = |name: &str| {
        let found = ran.stderr.lines().find(|line| line.trim_start().starts_with(name));
        let words = found.unwrap_or_else(|| panic!("{}", ran.stderr)).split_whitespace().collect::<Vec<_>>();
        words.join(" ")
    };
    assert_eq!(
        [row("turns"), row("tool calls"), row("tokens")],
        ["turns 2", "tool calls 1", "tokens 5.0k in, 50 out"]
    );
    assert!(ran.stderr.contains("3 model calls") && ran.stderr.contains("1 tool call\n"), "{}", ran.stderr);
}

#[test]
fn a_chat_without_a_word_is_in_nobodys_way() {
    let desk = desk(json!(["one"]), json!({}));
    let terminal = open(&desk, WIDE);
    let list = |args: &[&str]| {
        let ran = desk.amplifier(&[&["session", "list"], args].concat());
        assert_eq!((ran.code, ran.stderr.contains("warning")), (0, false), "{}", ran.seen());
        ran
    };
    assert_eq!(list(&["--output", "json"]).json()["total"], json!(0));
    let pid = terminal.pid().to_string();
    assert!(std::process::Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    drop(terminal);
    let id = id(&desk);
    assert_eq!(list(&["--all", "--output", "json"]).json()["sessions"], json!([]));
    for args in [&["session", "show", &id][..], &["resume", &id], &["session", "export", &id]] {
        let ran = desk.amplifier(args);
        assert_eq!(ran.code, 1, "{}", ran.seen());
        assert!(ran.stderr.contains(&format!("nothing was said in session `{id}`")), "{}", ran.seen());
        assert!(ran.stderr.contains("hint:") && ran.stderr.contains("session cleanup"), "{}", ran.seen());
    }
    // Not at once: somebody may have just begun it.
    assert_eq!(desk.amplifier(&["session", "cleanup", "--yes"]).code, 0);
    assert_eq!(desk.sessions().len(), 1);
    let journal =
        std::fs::File::options().append(true).open(desk.sessions()[0].join("events.jsonl")).unwrap();
    journal.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)).unwrap();
    let ran = desk.amplifier(&["session", "cleanup", "--yes"]);
    assert!(ran.stdout.contains("removed: 1 folder"), "{}", ran.seen());
    assert!(desk.sessions().is_empty());
}

#[test]
fn a_turn_that_was_killed_did_not_end() {
    let desk = desk(json!([{"text": "late", "delay_ms": 600_000}]), json!({}));
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    terminal.sees("working");
    let shown = || desk.amplifier(&["session", "show", &id(&desk)]);
    terminal.until("the model is asked", |_| shown().stdout.contains("go"));
    assert!(shown().stdout.contains("last turn     running"), "{}", shown().seen());
    let pid = terminal.pid().to_string();
    assert!(std::process::Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    drop(terminal);
    assert!(shown().stdout.contains("last turn     did not end"), "{}", shown().seen());
}

#[test]
fn a_reader_that_left_ends_the_chat() {
    let desk = desk(json!(["one\n", "two\n", "three\n"]), json!({}));
    let mut command = desk.command(&["chat", "--plan", "plan.json"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = child.stdin.take().unwrap();
    let mut answers = child.stdout.take().unwrap();
    lines.write_all(b"first\n").unwrap();
    let mut seen = [0; 4];
    answers.read_exact(&mut seen).unwrap();
    assert_eq!(&seen, b"one\n");
    drop(answers);
    lines.write_all(b"second\nthird\nfourth\n").unwrap();
    drop(lines);
    assert_eq!(child.wait().unwrap().code(), Some(141));
    let transcript = read(&desk.sessions()[0].join("transcript.jsonl"));
    let asked = transcript.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let asked = asked.filter(|message| message["role"] == "user").count();
    assert_eq!(asked, 2, "nobody read the answer to the second, so the third is not asked: {transcript}");
}

#[test]
fn an_export_that_fails_leaves_the_old_file() {
    let desk = desk(json!(["one"]), json!({}));
    desk.file("old.md", "precious");
    // Nothing was said, so there is nothing to export.
    let ran = say(&desk, &["--plan", "plan.json"], &["/export old.md --force"]);
    assert_eq!((ran.code, read(&desk.work().join("old.md")).as_str()), (1, "precious"), "{}", ran.seen());
    let ran = say(&desk, &["--plan", "plan.json"], &["hi", "/export old.md --force"]);
    assert!(ran.stderr.contains("the session is in") && read(&desk.work().join("old.md")).contains("hi"));
}

#[test]
fn the_first_word_of_a_resumed_chat_is_not_a_tally_of_nothing() {
    let desk = desk(json!(["one"]), json!({}));
    assert_eq!(say(&desk, &["--plan", "plan.json"], &["hi"]).code, 0);
    let terminal = Terminal::open(&desk, &["resume", &id(&desk)], WIDE, "xterm-256color");
    terminal.prompt();
    terminal.types("/status\r");
    let screen = terminal.sees("turns");
    assert!(screen.lines().any(|line| line.trim().starts_with("turns") && line.ends_with(" 1")), "{screen}");
}

#[test]
fn a_turn_that_is_denied_is_no_answer() {
    let gate = json!({"event": "UserPromptSubmit", "command": "echo 'not today' >&2; exit 2", "timeout": 10});
    let hooks = json!([{"module": "hooks-shell", "config": {"hooks": [gate]}}]);
    let desk = desk(json!(["Word."]), json!({ "hooks": hooks }));
    let path = git_variables(&desk.path("user")).into_iter().find(|(name, _)| name == "PATH").unwrap().1;
    let mut command = desk.command(&["chat", "--plan", "plan.json"]);
    let mut child = command.env("PATH", path).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hi\n").unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("error: ") && ran.stderr.contains("not today"), "{}", ran.stderr);
}

#[test]
fn a_session_that_is_resumed_in_the_chat_is_told_about() {
    let desk = desk(json!(["Word."]), json!({}));
    let plan = desk.path("work/plan.json").display().to_string();
    std::fs::create_dir(desk.path("elsewhere")).unwrap();
    let ran =
        desk.command(&["run", "--plan", &plan, "hi"]).current_dir(desk.path("elsewhere")).output().unwrap();
    assert!(ran.status.success());
    let journal = desk.sessions()[0].join("events.jsonl");
    let torn = format!("{}{{\"v\":1,\"seq\":", read(&journal));
    std::fs::write(&journal, torn).unwrap();
    let ran = say(&desk, &["--plan", "plan.json"], &[&format!("/resume {}", id(&desk)), "more"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Word.\n"), "{}", ran.stderr);
    for told in ["bytes of the journal were torn", "note: this session began in `"] {
        assert!(ran.stderr.contains(told), "`{told}` in {}", ran.stderr);
    }
}

#[test]
fn a_session_that_cannot_be_come_back_to_is_not_left() {
    let desk = desk(json!(["Word."]), json!({}));
    let terminal = open(&desk, WIDE);
    terminal.types("hi\r");
    terminal.sees("Word.");
    terminal.prompt();
    // What is shown of the session cannot be written.
    let view = desk.sessions()[0].join("metadata.json");
    std::fs::remove_file(&view).unwrap();
    std::fs::create_dir(&view).unwrap();
    terminal.types("/model big\r");
    terminal.sees("the session goes on as it was");
    terminal.prompt();
    std::fs::remove_dir(&view).unwrap();
    terminal.types("/model big\r");
    terminal.sees("from now on `big` is asked");
    terminal.prompt();
}

#[test]
fn a_line_that_is_too_long_is_refused_and_the_next_one_is_taken() {
    let desk = desk(json!(["Word."]), json!({}));
    // The limit lies in the middle of a character.
    let long = format!("x{}\nhi\n", "ä".repeat(600 * 1024));
    let ran = desk.amplifier_with_input(&["--plan", "plan.json"], long.as_bytes());
    assert_eq!((ran.code, ran.stdout.as_str()), (2, "Word.\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("longer than 1.0 MiB and was not sent"), "{}", ran.stderr);
    assert!(ran.stderr.contains("@FILE"), "{}", ran.stderr);
    let only = desk.amplifier_with_input(&["--plan", "plan.json"], "x".repeat(1024 * 1024 + 1).as_bytes());
    assert_eq!((only.code, only.stdout.as_str()), (2, ""), "{}", only.stderr);
    let most = format!("{}\n", "x".repeat(1024 * 1024));
    let most = desk.amplifier_with_input(&["--plan", "plan.json"], most.as_bytes());
    assert!(!most.stderr.contains("longer than"), "{}", most.stderr);
}

#[test]
fn what_is_saved_has_no_secrets() {
    let desk = desk(json!(["Word."]), json!({}));
    let ran = say(&desk, &["--plan", "plan.json"], &["use sk-abc123def456 now", "/save a.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let saved = read(&desk.work().join("a.json"));
    assert!(saved.contains("use [REDACTED] now") && !saved.contains("sk-abc"), "{saved}");
}

#[test]
fn a_summary_is_asked_of_whom_a_turn_asks() {
    let says = |name: &str, text: &str, priority: i64| {
        let config = json!({"responses": [text], "priority": priority});
        json!({"module": "provider-mock", "instance_id": name, "config": config})
    };
    let mut plan = json!({
        "session": {"orchestrator": {"module": "loop-basic"}, "context": {"module": "context-simple"}},
        "providers": [says("dear", "Dear.", 50), says("cheap", "Cheap.", 10)],
    });
    let desk = Desk::new();
    desk.plan("plan.json", &plan);
    let ran = say(&desk, &["--plan", "plan.json"], &["hi", "/compact", "/status"]);
    assert!(ran.stdout.starts_with("Cheap.\nCheap.\n"), "{}", ran.seen());
    assert!(ran.stderr.contains("of cheap"), "{}", ran.stderr);
    // A loop that names its provider asks that one.
    plan["session"]["orchestrator"]["config"] = json!({"default_provider": "dear"});
    desk.plan("plan.json", &plan);
    let ran = say(&desk, &["--plan", "plan.json"], &["hi", "/compact", "/status"]);
    assert!(ran.stdout.starts_with("Dear.\nDear.\n"), "{}", ran.seen());
    assert!(ran.stderr.contains("of dear"), "{}", ran.stderr);
}

#[test]
fn what_is_shown_of_a_session_follows_a_summary_and_a_clearing() {
    let desk = desk(json!(["Word.", "THE SUMMARY"]), json!({}));
    let terminal = open(&desk, WIDE);
    terminal.types("hi\r");
    terminal.sees("Word.");
    terminal.prompt();
    let transcript = || read(&desk.sessions()[0].join("transcript.jsonl"));
    assert!(transcript().contains("Word."));
    terminal.types("/compact\r");
    terminal.sees("THE SUMMARY");
    terminal.prompt();
    assert!(transcript().contains("THE SUMMARY"), "{}", transcript());
    terminal.types("/clear\r");
    terminal.sees("knows nothing");
    terminal.prompt();
    assert_eq!(transcript(), "");
}
