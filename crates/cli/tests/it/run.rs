//! `amplifier run`.

use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::desk::{Desk, read, wait_until};

fn plan(provider: Value) -> Value {
    json!({
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-mock", "config": provider}],
        "tools": [{"module": "tool-filesystem"}],
    })
}

fn asks_to_read(file: &str) -> Value {
    plan(json!({"responses": [
        {"text": "Let me look.", "tool_calls": [{"name": "read_file", "arguments": {"file_path": file}}]},
        "I have read it."
    ]}))
}

/// The messages of a session, from its transcript.
fn transcript(desk: &Desk) -> Vec<Value> {
    let folder = desk.sessions().pop().unwrap();
    read(&folder.join("transcript.jsonl")).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
    }
}

#[test]
fn a_minimal_plan_prints_the_answer_and_nothing_else() {
    let desk = Desk::new();
    desk.plan("minimal.json", &plan(json!({"responses": ["Hello there."]})));
    let ran = desk.amplifier(&["run", "--plan", "minimal.json", "hi"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "Hello there.\n", ""));
}

#[test]
fn the_examples_of_the_sources_run() {
    let desk = Desk::new();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    desk.file("README.md", "# The title\nsecond line\n");
    for (name, expected) in [("minimal.json", ""), ("read-file.json", "")] {
        let ran = desk.amplifier(&["run", "--plan", &format!("{examples}/{name}"), "hi"]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.seen());
        assert!(!ran.stdout.trim().is_empty() && ran.stdout.contains(expected), "{}", ran.stdout);
    }
}

#[test]
fn the_result_of_a_real_tool_reaches_the_model() {
    let desk = Desk::new();
    desk.file("notes.txt", "the secret word is xyzzy\n").plan("read.json", &asks_to_read("notes.txt"));
    let ran = desk.amplifier(&["run", "--plan", "read.json", "read my notes"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "I have read it.\n"), "{}", ran.seen());
    let messages = transcript(&desk);
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    assert!(text_of(&messages[2]).contains("xyzzy"), "{}", messages[2]);
    assert_eq!(messages[2]["tool_call_id"], messages[1]["tool_calls"][0]["id"]);
}

#[test]
fn without_responses_the_mock_answers_from_the_conversation_with_real_tools() {
    let desk = Desk::new();
    desk.file("notes.txt", "plugh\n").plan("free.json", &plan(json!({})));
    let ran = desk.amplifier(&["run", "--plan", "free.json", "please read notes.txt"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert!(ran.stdout.contains("plugh"), "{}", ran.stdout);
}

#[test]
fn a_missing_tool_is_reported_and_the_rest_answers() {
    let desk = Desk::new();
    let mut plan = plan(json!({"responses": ["Still here."]}));
    plan["tools"] = json!([{"module": "tool-filesytem"}, {"module": "tool-filesystem", "config": {"allowed_path": ["."]}}]);
    desk.plan("part.json", &plan);
    let ran = desk.amplifier(&["run", "--plan", "part.json", "hi"]);
    assert_snapshot!("missing_tool", ran.seen());
    let strict = desk.amplifier(&["run", "--plan", "part.json", "--strict", "hi"]);
    assert_snapshot!("missing_tool_strict", strict.seen());
    assert_eq!(desk.sessions().len(), 1, "a session that never opened leaves nothing behind");
}

#[test]
fn the_summary_for_programs_has_answer_usage_session_and_report() {
    let desk = Desk::new();
    desk.plan("a.json", &plan(json!({"responses": [{"text": "yes", "usage": {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9, "cost_usd": "0.001"}}]})));
    let ran = desk.amplifier(&["run", "--plan", "a.json", "--output", "json", "hi"]);
    let summary = ran.json();
    assert_eq!(ran.code, 0);
    assert_eq!(summary["answer"], json!("yes"));
    assert_eq!(summary["status"], json!("completed"));
    assert_eq!(summary["usage"], json!({"input_tokens": 7, "output_tokens": 2}));
    assert_eq!(summary["cost_usd"], json!("0.001"));
    assert_eq!(summary["load_report"]["modules"].as_array().unwrap().len(), 4);
    let folder = desk.sessions().pop().unwrap();
    assert_eq!(summary["session_id"], json!(folder.file_name().unwrap().to_str().unwrap()));
}

#[test]
fn a_run_and_its_session_are_told_apart() {
    let desk = Desk::new();
    let answer =
        json!({"text": "yes", "usage": {"input_tokens": 7, "output_tokens": 2, "cost_usd": "0.001"}});
    desk.plan("a.json", &plan(json!({"responses": [answer]})));
    let run = |args: &[&str]| {
        let summary = desk.amplifier(&[&["run", "--output", "json"], args, &["hi"]].concat()).json();
        (summary["usage"].clone(), summary["cost_usd"].clone(), summary["session"].clone())
    };
    let (usage, cost) = (json!({"input_tokens": 7, "output_tokens": 2}), json!("0.001"));
    let once = json!({"usage": usage, "cost_usd": cost});
    assert_eq!(run(&["--plan", "a.json"]), (usage.clone(), cost.clone(), once));
    let id = desk.sessions().pop().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let twice = json!({"usage": {"input_tokens": 14, "output_tokens": 4}, "cost_usd": "0.002"});
    assert_eq!(run(&["--resume", &id]), (usage, cost, twice));
}

#[test]
fn the_stream_for_programs_tells_every_record_in_sequence_and_ends_with_the_result() {
    let desk = Desk::new();
    desk.file("notes.txt", "x\n").plan("read.json", &asks_to_read("notes.txt"));
    let ran = desk.amplifier(&["run", "--plan", "read.json", "--output", "jsonl", "read"]);
    let mut lines = ran.lines();
    let result = lines.pop().unwrap();
    assert_eq!(
        (result["type"].clone(), result["answer"].clone()),
        (json!("result"), json!("I have read it."))
    );
    let sequence: Vec<_> = lines.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert_eq!(sequence, (1..=sequence.len() as u64).collect::<Vec<_>>());
    let names: Vec<_> = lines.iter().filter_map(|line| line["event"]["name"].as_str()).collect();
    for expected in [
        "session:start",
        "prompt:submit",
        "provider:request",
        "tool:pre",
        "tool:post",
        "prompt:complete",
        "orchestrator:complete",
    ] {
        assert!(names.contains(&expected), "{expected} is not in {names:?}");
    }
}

#[test]
fn the_prompt_may_come_from_a_pipe() {
    let desk = Desk::new();
    desk.plan("a.json", &plan(json!({"responses": ["ok"]})));
    let ran = desk.amplifier_with_input(&["run", "--plan", "a.json"], b"from a pipe");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "ok\n"));
    assert_eq!(text_of(&transcript(&desk)[0]), "from a pipe");
    let empty = desk.amplifier_with_input(&["run", "--plan", "a.json"], b"");
    assert_eq!(empty.code, 2);
    assert!(empty.stderr.contains("empty"), "{}", empty.stderr);
    let bytes = desk.amplifier_with_input(&["run", "--plan", "a.json"], &[0xff, 0xfe]);
    assert_eq!(bytes.code, 2, "{}", bytes.seen());
}

#[test]
fn wrong_calls_and_wrong_plans_are_exit_2_and_say_what_to_do() {
    let desk = Desk::new();
    desk.file("broken.json", "{").plan("empty.json", &json!({}));
    for args in [
        &["run", "--strict", "hi"][..],
        &["run", "--plan", "missing.json", "hi"],
        &["run", "--plan", "broken.json", "hi"],
        &["run", "--plan", "empty.json", "hi"],
        &["run", "--plan", "empty.json", "--output", "yaml", "hi"],
        &["run", "--resume", "../escape", "hi"],
        &["nonsense"],
    ] {
        let ran = desk.amplifier(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.seen());
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{args:?}: {}", ran.seen());
    }
    assert!(desk.sessions().is_empty());
}

#[test]
fn a_plan_without_a_provider_that_works_says_why() {
    let desk = Desk::new();
    let mut plan = plan(json!({}));
    plan["providers"] =
        json!([{"module": "provider-mock", "config": {"responses": ["${NO_SUCH_VARIABLE}"]}}]);
    desk.plan("a.json", &plan);
    assert_snapshot!(desk.amplifier(&["run", "--plan", "a.json", "hi"]).seen());
}

#[test]
fn a_reference_to_a_secret_is_never_written_down() {
    let desk = Desk::new();
    desk.plan("a.json", &plan(json!({"responses": ["the key is set"], "api_key": "${MY_KEY}"})));
    let mut command = desk.command(&["run", "--plan", "a.json", "--trust", "hi"]);
    let output = command.env("MY_KEY", "hunter2-very-secret").output().unwrap();
    assert!(output.status.success());
    let folder = desk.sessions().pop().unwrap();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains("hunter2"), "{} holds the secret", path.display());
        }
    }
    assert!(read(&folder.join("mount_plan.json")).contains("${MY_KEY}"));
}

#[test]
fn a_step_limit_ends_the_turn_with_exit_3_and_says_who_spent() {
    let desk = Desk::new();
    let mut plan = asks_to_read("notes.txt");
    plan["session"]["limits"] = json!({"steps": 1});
    desk.file("notes.txt", "x\n").plan("a.json", &plan);
    let ran = desk.amplifier(&["run", "--plan", "a.json", "read"]);
    assert_eq!(ran.code, 3, "{}", ran.seen());
    assert!(
        ran.stderr.contains("limit of 1 step reached") && ran.stderr.contains("provider-mock"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_model_that_fails_is_exit_1_with_its_own_words() {
    let desk = Desk::new();
    desk.plan(
        "a.json",
        &plan(json!({"responses": [{"error": {"kind": "authentication", "message": "the key is wrong"}}]})),
    );
    let ran = desk.amplifier(&["run", "--plan", "a.json", "hi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(
        ran.stderr.contains("the key is wrong") && ran.stderr.contains("AuthenticationError"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_session_goes_on_where_it_ended() {
    let desk = Desk::new();
    desk.plan("a.json", &plan(json!({"responses": ["first", "second"]})));
    let first = desk.amplifier(&["run", "--plan", "a.json", "--output", "json", "one"]).json();
    let id = first["session_id"].as_str().unwrap();
    let second = desk.amplifier(&["run", "--resume", id, "--output", "json", "two"]).json();
    assert_eq!((second["session_id"].as_str(), second["turn"].as_u64()), (Some(id), Some(2)));
    let texts: Vec<_> = transcript(&desk).iter().map(text_of).collect();
    assert_eq!(texts.len(), 4);
    assert_eq!((texts[0].as_str(), texts[1].as_str(), texts[2].as_str()), ("one", "first", "two"));
    let unknown = desk.amplifier(&["run", "--resume", "no-such-session", "hi"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("no-such-session"), "{}", unknown.stderr);
}

#[test]
fn two_at_once_on_one_session_are_told_apart() {
    let desk = Desk::new();
    desk.plan("quick.json", &plan(json!({"responses": ["first"]})));
    desk.plan("slow.json", &plan(json!({"responses": [{"text": "late", "delay_ms": 60_000}]})));
    let id = desk.amplifier(&["run", "--plan", "quick.json", "--output", "json", "one"]).json();
    let id = id["session_id"].as_str().unwrap();
    let mut slow = desk.spawn(&["run", "--resume", id, "--plan", "slow.json", "two"]);
    let lease = desk.sessions().pop().unwrap().join("lease");
    let holder = slow.id().to_string();
    wait_until(|| std::fs::read_to_string(&lease).is_ok_and(|text| text.contains(&holder)));
    let refused = desk.amplifier(&["run", "--resume", id, "three"]);
    slow.kill().unwrap();
    slow.wait().unwrap();
    assert_eq!(refused.code, 1, "{}", refused.seen());
    assert!(refused.stderr.contains(&holder), "{}", refused.stderr);
}

#[test]
fn a_killed_turn_is_told_to_the_next_one_and_nothing_said_is_lost() {
    let desk = Desk::new();
    let mut first = asks_to_read("notes.txt");
    first["providers"][0]["config"]["responses"][1] = json!({"text": "never", "delay_ms": 60_000});
    desk.file("notes.txt", "xyzzy\n").plan("first.json", &first);
    desk.plan("next.json", &plan(json!({"responses": ["on we go"]})));
    let mut child = desk.spawn(&["run", "--plan", "first.json", "read"]);
    // The second model call is announced, durably, before it is made; then the process dies.
    wait_until(|| {
        desk.sessions().pop().is_some_and(|folder| {
            std::fs::read_to_string(folder.join("events.jsonl"))
                .is_ok_and(|text| text.matches("\"call_started\"").count() == 3)
        })
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let id = desk.sessions().pop().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let ran = desk.amplifier(&["run", "--resume", &id, "--plan", "next.json", "and now?"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "on we go\n"), "{}", ran.seen());
    assert!(ran.stderr.contains("the plan changed"), "{}", ran.stderr);
    let roles: Vec<_> = transcript(&desk).iter().map(|m| m["role"].as_str().unwrap().to_owned()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user", "assistant"]);
    assert!(text_of(&transcript(&desk)[2]).contains("xyzzy"));
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_turn_with_130_and_keeps_what_was_said() {
    let desk = Desk::new();
    desk.plan("slow.json", &plan(json!({"responses": [{"text": "late", "delay_ms": 60_000}]})));
    let child = desk.spawn(&["run", "--plan", "slow.json", "wait for it"]);
    wait_until(|| {
        desk.sessions().pop().is_some_and(|folder| {
            std::fs::read_to_string(folder.join("events.jsonl"))
                .is_ok_and(|text| text.contains("call_started"))
        })
    });
    // No tool runs, so there is nothing to wait for.
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(text_of(&transcript(&desk)[0]), "wait for it");
}

#[cfg(unix)]
#[test]
fn a_home_that_cannot_be_written_is_named() {
    let desk = Desk::new();
    desk.plan("a.json", &plan(json!({"responses": ["x"]})))
        .file("blocked", "a file where a folder should be");
    let ran = desk.amplifier(&["--home", "blocked", "run", "--plan", "a.json", "hi"]);
    assert_eq!(ran.code, 1, "{}", ran.seen());
    assert!(ran.stderr.contains("blocked") && ran.stderr.contains("--home"), "{}", ran.stderr);
}

#[test]
fn a_reader_that_goes_away_is_no_crash() {
    let desk = Desk::new();
    desk.plan("a.json", &plan(json!({"responses": ["a long answer ".repeat(10_000)]})));
    let mut child = desk.spawn(&["run", "--plan", "a.json", "hi"]);
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("panicked"), "{stderr}");
}
