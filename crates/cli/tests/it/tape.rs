//! Sessions that are recorded once and replayed as often as one likes, by way of the binary.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use amplifier_testing::http::{Reply, Request, Server};
use serde_json::{Value, json};

use crate::desk::{Desk, Ran, git_variables, read};

/// A key that looks like words: nobody finds it who does not know it.
const KEY: &str = "plain-words-make-a-key";

/// The built-in bundle with a server of the Chat Completions protocol.
fn settle(desk: &Desk, base_url: &str) {
    settle_with(desk, "provider-chat-completions", base_url);
}

fn settle_with(desk: &Desk, module: &str, base_url: &str) {
    let entry = json!([{
        "module": module,
        "config": {"base_url": base_url, "default_model": "smol", "max_retries": 0, "api_key": "${SMOL_KEY}"},
    }]);
    desk.file(".amplifier/settings.yaml", json!({"config": {"providers": entry}}).to_string());
    assert_eq!(desk.amplifier(&["trust"]).code, 0);
}

/// A server whose model calls a tool, then answers in pieces.
async fn server() -> Server {
    let asked = AtomicUsize::new(0);
    Server::start(move |request: &Request| {
        if request.method != "POST" {
            return Reply::new(404, "{}");
        }
        let piece = |delta: Value, finish: Value| {
            format!(
                "data: {}\n\n",
                json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
            )
        };
        let body = if asked.fetch_add(1, Ordering::SeqCst) == 0 {
            let call = json!({"index": 0, "id": "call_1", "type": "function",
                "function": {"name": "list_directory", "arguments": "{}"}});
            piece(json!({"tool_calls": [call]}), json!("tool_calls"))
        } else {
            let (first, last) = KEY.split_at(9);
            [
                piece(json!({"content": format!("It is {first}")}), Value::Null),
                piece(json!({"content": last}), json!("stop")),
            ]
            .concat()
        };
        Reply::new(200, body + "data: [DONE]\n\n").with("content-type", "text/event-stream")
    })
    .await
}

fn run(desk: &Desk, variable: &str, tape: &Path, prompt: &str) -> Ran {
    let mut command = desk.command(&["run", prompt]);
    command.envs(git_variables(&desk.path("user")));
    Ran::of(command.env("SMOL_KEY", KEY).env(variable, tape).output().unwrap())
}

/// A desk, and what was recorded of a session at it.
async fn recorded(prompt: &str) -> (Desk, PathBuf) {
    let (desk, server) = (Desk::new(), server().await);
    settle(&desk, &server.url("/v1"));
    desk.file("a.txt", "one\n");
    let tape = desk.path("tape");
    let ran = tokio::task::block_in_place(|| run(&desk, "AMPLIFIER_RECORD", &tape, prompt));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, format!("It is {KEY}\n").as_str()), "{}", ran.seen());
    (desk, tape)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_the_built_in_bundle_is_replayed_elsewhere_and_later() {
    let (_first, tape) = recorded("what is there?").await;
    // Another folder, another home, another session; and nobody listens.
    let desk = Desk::new();
    settle(&desk, "http://127.0.0.1:9/v1");
    desk.file("a.txt", "one\n");
    let ran = run(&desk, "AMPLIFIER_REPLAY", &tape, "what is there?");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "It is [REDACTED]\n"), "{}", ran.seen());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_otherwise_is_told_with_the_first_difference_and_the_way_to_record() {
    let (desk, tape) = recorded("what is there?").await;
    let ran = run(&desk, "AMPLIFIER_REPLAY", &tape, "what is here?");
    assert_eq!(ran.code, 1, "{}", ran.seen());
    for told in [
        "the nearest, `00001-chat-completions.json`, differs first at `/messages/",
        "recorded `what is there?",
        "sent `what is here?",
        "`AMPLIFIER_RECORD` with an empty folder records",
    ] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.seen());
    }
    assert!(!ran.stderr.contains("amplifier provider"), "nothing is wrong with the provider: {}", ran.seen());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_holds_no_known_key_whoever_said_it_and_in_however_many_pieces() {
    let (_desk, tape) = recorded(&format!("is {KEY} there?")).await;
    let files = std::fs::read_dir(&tape).unwrap().map(|file| file.unwrap().path());
    let text: String = files.map(|file| read(&file)).collect();
    assert!(text.contains("is [REDACTED] there?") && text.contains("It is [REDACTED]"), "{text}");
    assert!(!text.contains(KEY) && !text.contains("make-a-key"), "{text}");
}

/// A server of Anthropic's protocol whose model calls two tools, the key in pieces in the second call, and then is done.
async fn calls_two_tools() -> Server {
    let asked = AtomicUsize::new(0);
    Server::start(move |request: &Request| {
        if request.method != "POST" {
            return Reply::new(404, "{}");
        }
        let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "smol", "content": [],
            "usage": {"input_tokens": 1, "output_tokens": 1}});
        let mut events = vec![json!({"type": "message_start", "message": message})];
        let mut block = |index: usize, block: Value, deltas: Vec<Value>| {
            events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
            let delta = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
            events.extend(deltas.into_iter().map(delta));
            events.push(json!({"type": "content_block_stop", "index": index}));
        };
        let first = asked.fetch_add(1, Ordering::SeqCst) == 0;
        if first {
            let (begin, end) = KEY.split_at(9);
            let second = [format!("{{\"file_path\": \"{begin}"), format!("{end}\"}}")];
            let calls = [["{\"file_path\": ".to_owned(), "\"a.txt\"}".to_owned()], second];
            for (index, pieces) in calls.into_iter().enumerate() {
                let call = json!({"type": "tool_use", "id": format!("call_{index}"), "name": "read_file", "input": {}});
                let piece = |text| json!({"type": "input_json_delta", "partial_json": text});
                block(index, call, pieces.into_iter().map(piece).collect());
            }
        } else {
            block(0, json!({"type": "text", "text": ""}), vec![json!({"type": "text_delta", "text": "read"})]);
        }
        let reason = if first { "tool_use" } else { "end_turn" };
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}}));
        events.push(json!({"type": "message_stop"}));
        let event = |event: Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
        let body: String = events.into_iter().map(event).collect();
        Reply::new(200, body).with("content-type", "text/event-stream")
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_in_pieces_in_one_call_leaves_the_other_calls_of_a_recording_as_they_were() {
    let (desk, server) = (Desk::new(), calls_two_tools().await);
    settle_with(&desk, "provider-anthropic", &server.url(""));
    desk.file("a.txt", "one\n");
    let tape = desk.path("tape");
    let ran = tokio::task::block_in_place(|| run(&desk, "AMPLIFIER_RECORD", &tape, "read both"));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "read\n"), "{}", ran.seen());
    let files = std::fs::read_dir(&tape).unwrap().map(|file| file.unwrap().path());
    let text: String = files.map(|file| read(&file)).collect();
    assert!(!text.contains(KEY) && !text.contains("make-a-key"), "{text}");

    let desk = Desk::new();
    settle_with(&desk, "provider-anthropic", "http://127.0.0.1:9");
    desk.file("a.txt", "one\n");
    let ran = run(&desk, "AMPLIFIER_REPLAY", &tape, "read both");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "read\n"), "{}", ran.seen());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_differ_in_a_date_alone_are_not_taken_for_each_other() {
    let days = ["1999-01-01", "1999-01-02"];
    let ask = |day: &str| format!("what was on {day}?");
    let server = Server::start(move |request: &Request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let Some(day) = days.iter().find(|day| body.contains(&ask(day))) else { return Reply::new(404, "{}") };
        let said = json!({"choices": [{"index": 0, "delta": {"content": format!("that of {day}")}, "finish_reason": "stop"}]});
        Reply::new(200, format!("data: {said}\n\ndata: [DONE]\n\n")).with("content-type", "text/event-stream")
    })
    .await;
    let desk = Desk::new();
    settle(&desk, &server.url("/v1"));
    let tape = desk.path("tape");
    tokio::task::block_in_place(|| {
        for day in days {
            let ran = run(&desk, "AMPLIFIER_RECORD", &tape, &ask(day));
            assert_eq!((ran.code, ran.stdout), (0, format!("that of {day}\n")), "{}", ran.stderr);
        }
    });
    let elsewhere = Desk::new();
    settle(&elsewhere, "http://127.0.0.1:9/v1");
    let ran = run(&elsewhere, "AMPLIFIER_REPLAY", &tape, &ask(days[1]));
    assert_eq!((ran.code, ran.stdout), (0, format!("that of {}\n", days[1])), "{}", ran.stderr);
}

#[test]
fn a_place_that_is_of_no_use_for_a_recording_is_told_before_anybody_is_asked() {
    let desk = Desk::new();
    // Nobody listens: who asked would be told something else.
    settle(&desk, "http://127.0.0.1:9/v1");
    desk.file("file", "");
    for (variable, place) in
        [("AMPLIFIER_RECORD", "file/tape"), ("AMPLIFIER_REPLAY", "file"), ("AMPLIFIER_REPLAY", "none")]
    {
        let ran = run(&desk, variable, Path::new(place), "hi");
        assert_eq!(ran.code, 2, "{}", ran.seen());
        for words in [format!("`{variable}` names `{place}`"), format!("hint: `{variable}` takes a folder")] {
            assert!(ran.stderr.contains(&words), "{words}: {}", ran.seen());
        }
    }
    assert!(desk.sessions().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_is_for_its_owner_alone() {
    let (_desk, tape) = recorded("what is there?").await;
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let files: Vec<_> = std::fs::read_dir(&tape).unwrap().map(|entry| mode(&entry.unwrap().path())).collect();
    assert_eq!((mode(&tape), files), (0o700, vec![0o600, 0o600]));
}

#[test]
fn who_asks_nobody_is_told_that_nothing_is_recorded_or_replayed() {
    let desk = Desk::new();
    let tape = desk.path("tape");
    for (variable, done) in [("AMPLIFIER_RECORD", "recorded"), ("AMPLIFIER_REPLAY", "replayed")] {
        let mut command = desk.command(&["run", "--bundle", "minimal", "--provider", "mock", "hi"]);
        let ran = Ran::of(command.env(variable, &tape).output().unwrap());
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "You said: hi\n"), "{}", ran.seen());
        let told = format!(
            "warning: `{variable}` is set, and nothing is {done}: `provider-mock` asks nobody over the network"
        );
        assert_eq!(ran.stderr.matches("warning:").count(), 1, "{}", ran.seen());
        assert!(ran.stderr.contains(&told), "{}", ran.seen());
    }
    // The same of the demo, and of a session that goes on.
    for args in [&["run", "hi"][..], &["continue", "more"]] {
        let ran = Ran::of(desk.command(args).env("AMPLIFIER_RECORD", &tape).output().unwrap());
        assert!(ran.stderr.contains("nothing is recorded: `provider-"), "{}", ran.seen());
    }
    assert_eq!(std::fs::read_dir(&tape).unwrap().count(), 0);
}
