//! What `run` says when it fails: the thing, the place and the cure, once, on standard error, with the right exit code.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use amplifier_testing::http::{End, Reply, Request, Server};
use serde_json::{Value, json};

use crate::desk::{Desk, Ran, plan, read, says};
use crate::provider::{closed, with};

const KEY: &str = "sk-very-secret-and-long";

/// A plan that asks a server of the Chat Completions protocol.
fn asks(base_url: &str) -> Value {
    let config = json!({
        "base_url": base_url, "default_model": "smol", "max_retries": 0, "api_key": "${SMOL_KEY}",
    });
    json!({
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-chat-completions", "config": config}],
    })
}

fn run(desk: &Desk, args: &[&str]) -> Ran {
    let ran = with(desk, &[("SMOL_KEY", KEY)], &[&["run", "--trust"], args].concat());
    assert!(!ran.seen().contains(KEY), "{}", ran.seen());
    ran
}

/// The id of the last session.
fn last(desk: &Desk) -> String {
    desk.sessions().pop().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

#[track_caller]
fn tells(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, code, "{}", ran.seen());
    for word in words {
        assert!(ran.stderr.contains(word), "`{word}` is not told: {}", ran.seen());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_fails_is_told_with_its_name_its_place_its_model_and_a_cure() {
    let refused = r#"{"error":{"message":"the server said no"}}"#;
    let server = Server::start(move |request: &Request| {
        let status = request.path.split('/').nth(1).and_then(|word| word.parse().ok());
        match status {
            Some(status) => Reply::new(status, refused).with("retry-after", "7"),
            None => {
                let piece = json!({"choices": [{"index": 0, "delta": {"content": "Hel"}}]});
                let body = format!("data: {piece}\n\n");
                Reply::new(200, body).with("content-type", "text/event-stream").ending(End::Torn)
            }
        }
    })
    .await;
    let desk = Desk::new();
    let cases = [
        (
            "401",
            "status 401",
            "the key comes from `SMOL_KEY`; `amplifier provider test chat-completions --base-url",
        ),
        ("401", "status 401", "`amplifier init` takes another key"),
        ("403", "status 403", "it may not do this: `--model`"),
        ("404", "status 404", "is the name of the model right, and `base_url`? `amplifier provider test"),
        ("429", "status 429", "the service asks to wait 7 s; then `amplifier run --resume ID --continue`"),
        ("500", "status 500", "trouble of its own; later `amplifier run --resume ID --continue` asks again"),
        ("cut", "StreamError", "the answer was not kept; `amplifier run --resume ID --continue` asks again"),
    ];
    for (path, said, hint) in cases {
        let place = server.url(&format!("/{path}/v1"));
        desk.plan("a.json", &asks(&place));
        let ran = run(&desk, &["--plan", "a.json", "hi"]);
        let hint = hint.replace("ID", &last(&desk));
        let named = format!("error: `chat-completions` at {place}, model `smol`: ");
        tells(&ran, 1, &[&named, said, "\n  hint: ", &hint]);
        assert_eq!(ran.stderr.lines().count(), 2, "once, and nothing else: {}", ran.seen());
        assert!(ran.stdout.is_empty(), "{}", ran.seen());
    }
}

#[test]
fn a_place_where_nobody_listens_is_told_in_one_line_with_its_cause() {
    let (desk, place) = (Desk::new(), format!("http://{}/v1", closed()));
    desk.plan("a.json", &asks(&place));
    let ran = run(&desk, &["--plan", "a.json", "hi"]);
    let named =
        format!("error: `chat-completions` at {place}, model `smol`: cannot be reached: Connection refused");
    tells(
        &ran,
        1,
        &[
            &named,
            &format!(
                "  hint: nobody listens at {place}: start the server, or name another place with `base_url`; "
            ),
        ],
    );
    assert_eq!(ran.stderr.matches("refused").count(), 1, "{}", ran.seen());
    assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.seen());
}

#[test]
fn a_server_that_hangs_up_behind_a_part_of_its_answer_is_not_told_to_be_started() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let piece =
            |delta: Value| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}));
        let call =
            json!({"index": 0, "id": "a", "type": "function", "function": {"name": "x", "arguments": "{"}});
        let said = [piece(json!({"content": "Let me look."})), piece(json!({"tool_calls": [call]}))].concat();
        let head =
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\ncontent-length: 9999";
        // First a part of an answer, then none at all; and all the while somebody listens.
        for answer in [format!("{head}\r\n\r\n{said}"), String::new()] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while !request.ends_with(b"}") {
                let count = stream.read(&mut buffer).unwrap();
                request.extend_from_slice(&buffer[..count]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
        }
        listener
    });
    let desk = Desk::new();
    let mut asks = asks(&place);
    asks["session"]["orchestrator"] = json!("loop-streaming");
    asks["providers"][0]["config"]["max_retries"] = json!(1);
    asks["providers"][0]["config"]["min_retry_delay"] = json!(0.001);
    desk.plan("a.json", &asks);
    let ran = run(&desk, &["--plan", "a.json", "hi"]);
    drop(server.join().unwrap());
    tells(&ran, 1, &["connection closed", "(NetworkError)", "hint: is there a server at "]);
    assert!(!ran.stderr.contains("nobody listens"), "{}", ran.seen());
}

#[test]
fn a_provider_of_the_settings_is_tried_by_its_name_there() {
    let (desk, place) = (Desk::new(), format!("http://{}/v1", closed()));
    let entry = json!([{
        "module": "provider-chat-completions", "id": "mine",
        "config": {"base_url": place, "default_model": "smol", "max_retries": 0, "api_key": "${SMOL_KEY}"},
    }]);
    desk.file(".amplifier/settings.yaml", json!({"config": {"providers": entry}}).to_string());
    let ran = run(&desk, &["hi"]);
    tells(&ran, 1, &["error: `mine` at http://", "`amplifier provider test mine` tries it"]);
    assert_eq!(desk.amplifier(&["trust"]).code, 0);
    let tried = with(&desk, &[("SMOL_KEY", KEY)], &["provider", "test", "mine"]);
    tells(&tried, 1, &["Connection refused"]);
}

#[test]
fn what_is_too_long_is_told_with_ways_to_make_it_shorter() {
    let desk = Desk::new();
    let mut small = says("x");
    small["session"]["context"] = json!({"module": "context-simple", "config": {"max_tokens": 50}});
    desk.plan("a.json", &small);
    let ran = run(&desk, &["--plan", "a.json", &"many words ".repeat(5_000)]);
    let id = last(&desk);
    tells(
        &ran,
        1,
        &["the conversation needs at least", "`--model`", &format!("`/compact` in `amplifier resume {id}`")],
    );
}

#[test]
fn every_form_tells_the_error_once_on_standard_error() {
    let desk = Desk::new();
    let fails = json!({"responses": [{"error": {"kind": "authentication", "message": "the key is wrong"}}]});
    let mut limited = says("x");
    limited["session"]["limits"] = json!({"steps": 0});
    desk.plan("fails.json", &plan(fails)).plan("limited.json", &limited);
    for (file, code, word) in [("fails.json", 1, "the key is wrong"), ("limited.json", 3, "limit")] {
        for form in ["text", "json", "jsonl"] {
            let ran = run(&desk, &["--plan", file, "--output", form, "hi"]);
            tells(&ran, code, &["error: ", word, "\n  hint: "]);
            assert_eq!(ran.stderr.matches("error: ").count(), 1, "{form}: {}", ran.seen());
            if form != "text" {
                let result = if form == "json" { ran.json() } else { ran.lines().pop().unwrap() };
                let told = result["error"].as_str().unwrap();
                assert!(ran.stderr.contains(&format!("error: {told}\n")), "{form}: {}", ran.seen());
            }
        }
    }
}

#[test]
fn the_chat_tells_the_same_with_what_can_be_done_there() {
    let (desk, place) = (Desk::new(), format!("http://{}/v1", closed()));
    let mut small = says("x");
    small["session"]["context"] = json!({"module": "context-simple", "config": {"max_tokens": 50}});
    desk.plan("a.json", &asks(&place)).plan("small.json", &small);
    let mut child = desk.command(&["chat", "--plan", "a.json", "--trust"]);
    let mut child = child.env("SMOL_KEY", KEY).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hi\n").unwrap();
    // The chat breaks its lines where the page ends.
    let whole = |ran: Ran| Ran { stderr: ran.stderr.split_whitespace().collect::<Vec<_>>().join(" "), ..ran };
    let ran = whole(Ran::of(child.wait_with_output().unwrap()));
    let named =
        format!("error: `chat-completions` at {place}, model `smol`: cannot be reached: Connection refused");
    tells(&ran, 1, &[&named, "hint: nobody listens at "]);
    let long = "many words ".repeat(5_000);
    let ran = whole(desk.amplifier_with_input(&["chat", "--plan", "small.json"], long.as_bytes()));
    tells(&ran, 1, &["the conversation needs at least", "hint: `/compact` shortens what was said, `/model`"]);
}

/// Starts a turn that waits for its model, and goes on when it does.
fn waiting(desk: &Desk, args: &[&str]) -> std::process::Child {
    let slow = json!({"responses": [{"text": "late", "delay_ms": 60_000}, "done after all"]});
    desk.plan("slow.json", &plan(slow));
    let child = desk.spawn(&[&["run", "--plan", "slow.json"], args, &["wait"]].concat());
    let begun = Instant::now();
    let asked = || {
        let folder = desk.sessions().pop()?;
        std::fs::read_to_string(folder.join("events.jsonl")).ok().filter(|text| text.contains("call_started"))
    };
    while asked().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the model is not asked");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

#[test]
fn who_stops_a_turn_is_told_how_to_finish_it_and_that_works() {
    for (signal, code, word) in [
        ("-INT", 130, "error: interrupted"),
        ("-TERM", 143, "error: ended by another program"),
        ("-HUP", 129, "error: the terminal was closed"),
        ("", 124, "error: not done in"),
    ] {
        let desk = Desk::new();
        let child = waiting(&desk, if signal.is_empty() { &["--timeout", "2s"] } else { &[] });
        if !signal.is_empty() {
            let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
            assert!(sent.success());
        }
        let ran = Ran::of(child.wait_with_output().unwrap());
        let id = last(&desk);
        let command = format!("amplifier run --resume {id} --continue");
        tells(&ran, code, &[word, &format!("  hint: `{command}` finishes the turn; `amplifier continue`")]);
        desk.plan("quick.json", &says("done after all"));
        let finished = run(&desk, &["--resume", &id, "--continue", "--plan", "quick.json"]);
        assert_eq!((finished.code, finished.stdout.as_str()), (0, "done after all\n"), "{}", finished.seen());
        let asked = read(&desk.sessions().pop().unwrap().join("transcript.jsonl"));
        // Where the stop cut off an answer, the model is asked to go on; where it came before the call began, the prompt is
        // the last message and is simply answered.
        let role =
            |line: &str| serde_json::from_str::<Value>(line).unwrap()["role"].as_str().unwrap().to_owned();
        let roles: Vec<_> = asked.lines().map(role).collect();
        let answers_itself = roles.windows(2).any(|pair| pair == ["assistant", "assistant"]);
        assert!(!answers_itself, "the model does not answer itself: {asked}");
        assert_eq!(roles.last().map(String::as_str), Some("assistant"), "{asked}");
        let again = run(&desk, &["--resume", &id, "--continue", "--plan", "quick.json"]);
        tells(&again, 0, &["nothing to finish"]);
    }
}

#[test]
fn a_time_that_is_up_while_standard_input_is_awaited_is_told() {
    let desk = Desk::new();
    let mut child = desk.command(&["run", "-p", "mock", "--timeout", "500ms"]);
    let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    let code = child.wait().unwrap().code();
    drop(stdin);
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(
        (code, told.as_str()),
        (Some(124), "error: not done in 500 ms, the time that `--timeout` gives\n")
    );
}

#[cfg(unix)]
#[test]
fn an_answer_that_nobody_takes_is_no_success_and_one_that_cannot_be_written_is_told() {
    let desk = Desk::new();
    desk.plan("a.json", &says("yes"));
    let begun = desk.amplifier(&["run", "--plan", "a.json", "hi"]);
    assert_eq!(begun.code, 0, "{}", begun.seen());
    let id = last(&desk);
    let commands: &[&[&str]] = &[
        &["run", "--plan", "a.json", "-q", "hi"],
        &["run", "--plan", "a.json", "-q", "--output", "json", "hi"],
        &["run", "--plan", "a.json", "-q", "--output", "jsonl", "hi"],
        &["session", "list"],
        &["session", "export", &id],
        &["module", "list"],
        &["man"],
        &["completions", "bash"],
        &["--help"],
        &["run", "--help"],
        &["--version"],
        &["version"],
        &["version", "--json"],
        &["config", "show"],
        &["plan", "show", "--plan", "a.json"],
        &["doctor", "--offline"],
    ];
    for args in commands {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = Ran::of(desk.command(args).stdout(writer).output().unwrap());
        assert_eq!((ran.code, ran.stderr.as_str()), (141, ""), "{args:?}");
        if std::path::Path::new("/dev/full").exists() {
            let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
            let ran = Ran::of(desk.command(args).stdout(full).output().unwrap());
            tells(
                &ran,
                1,
                &["error: standard output", "No space left on device", "hint: make room where it goes"],
            );
            assert_eq!(ran.stderr.matches("error: ").count(), 1, "{args:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn continue_finishes_the_turn_that_failed_and_offers_no_other_session() {
    let desk = Desk::new();
    let fails = json!({"responses": [{"error": {"kind": "authentication", "message": "no"}}]});
    desk.plan("fails.json", &plan(fails)).plan("good.json", &says("here it is"));
    assert_eq!(run(&desk, &["--plan", "fails.json", "hi"]).code, 1);
    let ran = desk.amplifier(&["continue", "--continue", "--plan", "good.json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "here it is\n"), "{}", ran.seen());
    let turns = desk.amplifier(&["session", "show", &last(&desk)]);
    assert!(turns.stdout.contains("(continued)"), "{}", turns.seen());
    let help = desk.amplifier(&["continue", "--help"]).stdout;
    assert!(
        help.contains("--continue") && !help.contains("--resume") && help.contains("Exit codes"),
        "{help}"
    );
    assert_eq!(desk.amplifier(&["continue", "--resume", "x", "hi"]).code, 2);
    let alone = desk.amplifier(&["run", "--continue"]);
    tells(&alone, 2, &["--resume <SESSION>"]);
}

#[test]
fn a_turn_that_is_complete_is_not_asked_again() {
    let desk = Desk::new();
    desk.plan("a.json", &says("yes"));
    assert_eq!(run(&desk, &["--plan", "a.json", "hi"]).code, 0);
    let (id, journal) = (last(&desk), desk.sessions().pop().unwrap().join("events.jsonl"));
    let before = read(&journal);
    let ran = run(&desk, &["--resume", &id, "--continue"]);
    tells(&ran, 0, &["note: there is nothing to finish", &format!("`amplifier run --resume {id} PROMPT`")]);
    assert!(ran.stdout.is_empty(), "{}", ran.seen());
    let told = run(&desk, &["--resume", &id, "--continue", "--output", "json"]).json();
    assert_eq!(
        (&told["status"], &told["answer"], &told["error"], &told["session_id"]),
        (&json!("completed"), &json!(null), &json!(null), &json!(id))
    );
    assert_eq!(read(&journal), before, "nothing was done");
}

#[test]
fn what_the_plan_gets_wrong_is_told_once_with_what_there_is() {
    let desk = Desk::new();
    desk.plan("a.json", &says("yes"));
    for (path, word) in [("session.orchestrator", "`loop-basic`"), ("session.context", "`context-simple`")] {
        let ran = run(&desk, &["--plan", "a.json", "--set", &format!("{path}=nosuch"), "hi"]);
        tells(&ran, 2, &["Module 'nosuch' not found", "  hint: there are ", word, "`amplifier module list`"]);
        assert_eq!(ran.stderr.matches("not found").count(), 1, "{}", ran.seen());
    }
    let mut missing = says("yes");
    missing["tools"] = json!([{"module": "tool-nowhere"}]);
    desk.plan("missing.json", &missing);
    let ran = run(&desk, &["--plan", "missing.json", "--strict", "hi"]);
    tells(&ran, 2, &["tool-nowhere", "without `--strict`"]);
    let nothing = Desk::new();
    tells(&nothing.amplifier(&["continue", "hi"]), 2, &["no session was started in", "hint: "]);
}

#[test]
fn the_load_report_names_what_is_wrong_and_counts_the_rest() {
    let desk = Desk::new();
    let mut missing = says("yes");
    missing["tools"] = json!([{"module": "tool-filesystem"}, {"module": "tool-nowhere"}]);
    desk.plan("missing.json", &missing);
    let ran = run(&desk, &["--plan", "missing.json", "hi"]);
    let report = ran.stderr.split_once("load report:\n").unwrap_or_else(|| panic!("{}", ran.seen())).1;
    let lines: Vec<_> = report.lines().collect();
    assert!(lines[0].starts_with("  tool `tool-nowhere` did not load: "), "{report}");
    assert!(lines[1].starts_with("    hint: `amplifier module list`"), "{report}");
    assert_eq!(lines[2..], ["  4 other modules are mounted"], "{report}");
    let all = run(&desk, &["--plan", "missing.json", "--output", "json", "hi"]).json();
    assert_eq!(all["load_report"]["modules"].as_array().unwrap().len(), 5);
}

#[test]
fn a_flag_is_no_change_of_the_plan_and_hashes_are_short() {
    let desk = Desk::new();
    desk.plan("a.json", &says("yes")).plan("b.json", &says("no"));
    assert_eq!(run(&desk, &["--plan", "a.json", "hi"]).code, 0);
    for flags in [&["--max-cost", "5"][..], &["--set", "session.limits.steps=9"], &["--max-tokens", "50"]] {
        let ran = desk.amplifier(&[&["continue"], flags, &["hi"]].concat());
        assert_eq!(ran.code, 0, "{}", ran.seen());
        assert!(!ran.stderr.contains("the plan changed"), "{flags:?}: {}", ran.seen());
    }
    let ran = desk.amplifier(&["continue", "--plan", "b.json", "hi"]);
    let told = ran.stderr.split_once("last ran (").unwrap_or_else(|| panic!("{}", ran.seen())).1;
    let hashes: Vec<_> = told.split_once(')').unwrap().0.split(" to ").map(str::len).collect();
    assert_eq!(hashes, [12, 12], "{}", ran.seen());
}

#[test]
fn a_turn_that_cannot_begin_leaves_no_session_in_the_way_of_the_last_one() {
    let desk = Desk::new();
    assert_eq!(with(&desk, &[], &["run", "-p", "mock", "good"]).code, 0);
    let mut wrong = says("never");
    wrong["providers"][0]["module"] = json!("provider-mok");
    desk.plan("wrong.json", &wrong);
    let failed = with(&desk, &[], &["run", "--plan", "wrong.json", "--output", "json", "hi"]);
    assert_eq!((failed.code, &failed.json()["session_id"]), (2, &Value::Null), "{}", failed.seen());
    assert_eq!(desk.sessions().len(), 1);
    let next = with(&desk, &[], &["continue", "more"]);
    assert_eq!((next.code, next.stdout.as_str()), (0, "You said: more\n"), "{}", next.seen());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_cut_off_is_told_to_people_and_to_programs() {
    let server = Server::start(move |_: &Request| {
        let whole = json!({"choices": [{
            "index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": "half of"},
        }]});
        Reply::new(200, whole.to_string()).with("content-type", "application/json")
    })
    .await;
    let desk = Desk::new();
    let mut cut = asks(&server.url("/v1"));
    cut["providers"][0]["config"]["stream"] = json!(false);
    desk.plan("a.json", &cut);
    let ran = run(&desk, &["--plan", "a.json", "hi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "half of\n"), "{}", ran.seen());
    assert_eq!(ran.stderr.matches("is not whole: the most tokens of an answer").count(), 1, "{}", ran.seen());
    let told = run(&desk, &["--plan", "a.json", "--output", "json", "hi"]).json();
    assert_eq!((&told["answer"], &told["finish_reason"]), (&json!("half of"), &json!("length")), "{told}");
}

#[test]
fn a_server_of_this_machine_that_does_not_run_is_told_at_once_with_how_to_start_it() {
    let desk = Desk::new();
    desk.plan(
        "a.json",
        &json!({
            "session": {"orchestrator": "loop-basic", "context": "context-simple"},
            "providers": [{"module": "provider-ollama", "config": {"default_model": "smol"}}],
        }),
    );
    let ran = run(&desk, &["--plan", "a.json", "hi"]);
    tells(
        &ran,
        1,
        &["Connection refused", "start it with `ollama serve`, or name another place with `OLLAMA_HOST`"],
    );
    assert!(!ran.stderr.contains("again"), "nothing is tried again: {}", ran.stderr);
}

#[test]
fn an_answer_that_broke_off_is_told_although_the_server_is_gone_since() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("http://{}/v1", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // Nobody listens any more when the answer breaks off.
        drop(listener);
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).unwrap() > 0);
        let call = json!([{"index": 0, "id": "call_1", "function": {"name": "x", "arguments": "{"}}]);
        let piece = |delta: Value| {
            let line = format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}));
            format!("{:x}\r\n{line}\r\n", line.len())
        };
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let pieces = [piece(json!({"content": "Let me look."})), piece(json!({"tool_calls": call}))];
        stream.write_all(format!("{head}{}ff\r\ndata:", pieces.concat()).as_bytes()).unwrap();
    });
    let (desk, mut plan) = (Desk::new(), asks(&place));
    plan["providers"][0]["config"]["max_retries"] = json!(1);
    plan["session"]["orchestrator"] = json!("loop-streaming");
    desk.plan("a.json", &plan);
    let ran = run(&desk, &["--plan", "a.json", "hi"]);
    serving.join().unwrap();
    let told = "the answer broke off behind a complete part: cannot be reached: Connection refused";
    tells(&ran, 1, &[told, "hint: nobody listens at "]);
}
