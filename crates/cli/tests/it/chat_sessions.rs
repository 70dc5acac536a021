//! The chat and its session: who is asked, what stands there after a resume, a chat without a word, a reader that left.

use std::io::{Read, Write};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::chat::{WIDE, desk, open};
use crate::desk::{Desk, Ran, read};
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
    assert_eq!([row("turns"), row("tool calls"), row("tokens")], ["turns 2", "tool calls 1", "tokens 5.0k"]);
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

#[cfg(target_os = "linux")]
#[test]
fn a_folder_whose_name_is_no_text_has_its_sessions() {
    use std::os::unix::ffi::OsStrExt;
    let desk = desk(json!(["one"]), json!({}));
    let strange = desk.path("").join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&strange).unwrap();
    let plan = desk.path("work/plan.json").display().to_string();
    let there = |args: &[&str]| Ran::of(desk.command(args).current_dir(&strange).output().unwrap());
    let ran = there(&["run", "--plan", &plan, "hi"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let listed = there(&["session", "list", "--output", "json"]);
    assert_eq!(listed.json()["total"], json!(1), "{}", listed.seen());
    let ran = there(&["continue", "go on"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
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
