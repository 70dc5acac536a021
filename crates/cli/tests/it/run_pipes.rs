//! Paths that are no files: what was handed over open is read like one, everything else is refused at once and by its name.

use std::io::Write;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use amplifier_testing::http::{End, Reply, Request, Server};
use serde_json::{Value, json};

use crate::desk::{Desk, Ran, read, says, wait_until};

/// A pipe that nobody writes to; whoever opens it to read waits.
fn pipe(desk: &Desk, name: &str) {
    let path = desk.work().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Refused; nothing but the end of patience ends what waits for a writer.
#[track_caller]
fn refused(desk: &Desk, args: &[&str], code: i32, words: &[&str]) {
    let ran = desk.amplifier(args);
    assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{}", ran.seen());
    for word in words.iter().chain(&["\n  hint: "]) {
        assert!(ran.stderr.contains(word), "`{word}` is not told: {}", ran.seen());
    }
    assert!(desk.sessions().is_empty(), "{}", ran.seen());
}

#[test]
fn what_is_no_file_is_refused_at_once_and_named() {
    let desk = Desk::new();
    pipe(&desk, "pipe.json");
    pipe(&desk, "pipe.yaml");
    let listener = UnixListener::bind(desk.work().join("socket.json")).unwrap();
    for (path, what) in
        [("pipe.json", "it is a pipe"), ("socket.json", "it is a socket"), ("/dev/zero", "it is a device")]
    {
        refused(&desk, &["run", "--plan", path, "hi"], 2, &[path, what]);
        refused(&desk, &["plan", "validate", path], 2, &[path, what]);
        refused(&desk, &["plan", "hash", "--plan", path], 2, &[path, what]);
    }
    refused(&desk, &["run", "--bundle", "./pipe.yaml", "hi"], 2, &["pipe.yaml", "not a regular file"]);
    refused(&desk, &["bundle", "show", "./pipe.yaml"], 2, &["pipe.yaml", "not a regular file"]);
    drop(listener);
}

#[test]
fn settings_that_are_no_file_are_refused_at_once_and_named() {
    let desk = Desk::new();
    desk.plan("a.json", &says("hi"));
    pipe(&desk, ".amplifier/settings.yaml");
    let words = ["settings.yaml`", "it is a pipe"];
    refused(&desk, &["run", "--plan", "a.json", "hi"], 2, &words);
    refused(&desk, &["config", "show"], 2, &words);
}

#[test]
fn a_plan_may_be_piped_in() {
    let desk = Desk::new();
    let plan = says("piped");
    let ran = desk.amplifier_with_input(&["run", "--plan", "/dev/stdin", "hi"], plan.to_string().as_bytes());
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "piped\n"), "{}", ran.seen());
    let folder = desk.sessions().pop().unwrap();
    assert!(
        !read(&folder.join("transcript.jsonl")).contains("loop-basic"),
        "the plan is no part of the prompt"
    );
    // What it came from is gone, and that is nothing to tell.
    let id = folder.file_name().unwrap().to_str().unwrap();
    let again = desk.amplifier_with_input(&["run", "--resume", id], b"more");
    assert_eq!((again.code, again.stderr.as_str()), (0, ""), "{}", again.seen());

    let ran = desk.amplifier_with_input(&["run", "--plan", "/dev/stdin"], plan.to_string().as_bytes());
    assert_eq!(ran.code, 2, "{}", ran.seen());
    assert!(ran.stderr.contains("no prompt is given"), "{}", ran.seen());

    desk.plan("a.json", &plan);
    let mut shell = Command::new("bash");
    let script = format!("{} run --plan <(cat a.json) hi", env!("CARGO_BIN_EXE_amplifier"));
    shell.arg("-c").arg(script).current_dir(desk.work()).env("AMPLIFIER_HOME", desk.home());
    let ran = Ran::of(shell.stdin(Stdio::null()).output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "piped\n"), "{}", ran.seen());
}

#[test]
fn a_plan_that_never_ends_is_stopped_when_the_time_is_up() {
    let desk = Desk::new();
    let mut child = desk
        .command(&["run", "--timeout", "300ms", "--plan", "/dev/stdin", "hi"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // It stays open until the program has ended.
    let mut writer = child.stdin.take().unwrap();
    writer.write_all(b"{").unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    drop(writer);
    assert_eq!(ran.code, 124, "{}", ran.seen());
}

#[test]
fn a_dash_stands_for_standard_input() {
    let desk = Desk::new();
    desk.plan("a.json", &says("yes"));
    let ran = desk.amplifier_with_input(&["run", "--plan", "a.json", "-"], b"what is piped");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "yes\n"), "{}", ran.seen());
    let transcript = read(&desk.sessions().pop().unwrap().join("transcript.jsonl"));
    assert!(transcript.contains("\"what is piped\"") && !transcript.contains("<stdin>"), "{transcript}");
    let ran = desk.amplifier(&["run", "--plan", "a.json", "-"]);
    assert_eq!(ran.code, 2, "{}", ran.seen());
    assert!(ran.stderr.contains("standard input is empty"), "{}", ran.seen());
}

/// A plan whose model says half of an answer, and then ends like this.
async fn half(end: End) -> (Server, Value) {
    let server = Server::start(move |_: &Request| {
        let piece = json!({"choices": [{"index": 0, "delta": {"content": "half of"}}]});
        let body = format!("data: {piece}\n\n");
        Reply::new(200, body).with("content-type", "text/event-stream").ending(end)
    })
    .await;
    let config = json!({"base_url": server.url("/v1"), "default_model": "m", "max_retries": 0});
    let plan = json!({
        "session": {"orchestrator": "loop-streaming", "context": "context-simple"},
        "providers": [{"module": "provider-chat-completions", "config": config}],
    });
    (server, plan)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_an_answer_is_none() {
    let desk = Desk::new();
    let (server, plan) = half(End::Stalled).await;
    desk.plan("a.json", &plan);
    let told = |ran: &Ran| {
        let sessions = desk.sessions();
        let mut ids = sessions.iter().map(|folder| folder.file_name().unwrap().to_str().unwrap());
        let is_told = |id: &&str| ran.stderr.contains(&format!("`amplifier session show {id} --transcript`"));
        let id = ids.find(is_told).unwrap_or_else(|| panic!("{}", ran.seen()));
        let shown = desk.amplifier(&["session", "show", id, "--transcript"]);
        assert!(shown.stdout.contains("half of"), "{}", shown.seen());
    };
    // Side by side: the time must be enough for a busy machine to come to the half.
    let waiting = [&[] as &[&str], &["--quiet"], &["--verbose"]]
        .map(|flags| desk.spawn(&[&["run", "--plan", "a.json", "--timeout", "6", "hi"], flags].concat()));
    for child in waiting {
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.stdout.as_str()), (124, ""), "{}", ran.seen());
        told(&ran);
    }
    let child = desk.spawn(&["run", "--plan", "a.json", "hi"]);
    wait_until(|| server.log().len() == 4);
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (130, ""), "{}", ran.seen());
    // Programs are told what it is.
    let ran = desk.amplifier(&["run", "--plan", "a.json", "--timeout", "1", "--output", "json", "hi"]);
    assert_eq!((ran.code, &ran.json()["status"]), (124, &json!("timed_out")), "{}", ran.seen());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_breaks_off_is_none() {
    let desk = Desk::new();
    let (_server, plan) = half(End::Torn).await;
    desk.plan("a.json", &plan);
    let ran = desk.amplifier(&["run", "--plan", "a.json", "hi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.seen());
    assert!(ran.stderr.contains("broke off"), "{}", ran.seen());
}
