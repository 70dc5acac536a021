//! `--output jsonl` keeps to its published schema, whatever happens in the run.

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::desk::{Desk, Ran, read};
use crate::provider::with;

fn schema() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/run-jsonl.schema.json");
    serde_json::from_str(&read(path.as_ref())).unwrap()
}

fn validator() -> Validator {
    jsonschema::validator_for(&schema()).unwrap()
}

/// Checks every line and gives the names of the events that came along.
fn checked(validator: &Validator, ran: &Ran) -> Vec<String> {
    let lines = ran.lines();
    for line in &lines {
        let problems: Vec<_> =
            validator.iter_errors(line).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(problems.is_empty(), "{problems:#?}\n{line:#}");
    }
    assert_eq!(lines.last().unwrap()["type"], json!("result"), "{}", ran.seen());
    assert_eq!(lines.iter().filter(|line| line["type"] == "result").count(), 1);
    lines.iter().filter_map(|line| line["event"]["name"].as_str()).map(str::to_owned).collect()
}

fn run(desk: &Desk, args: &[&str]) -> Ran {
    with(desk, &[], &[&["run", "--output", "jsonl"], args].concat())
}

fn plan(responses: Value) -> Value {
    json!({
        "session": {"orchestrator": "loop-streaming", "context": "context-simple"},
        "providers": [{"module": "provider-mock", "config": {"responses": responses}}],
        "tools": [{"module": "tool-filesystem"}, {"module": "tool-search"}, {"module": "tool-todo"}],
        "hooks": [{"module": "hooks-approval"}, {"module": "hooks-redaction"}, {"module": "hooks-status-context"}],
    })
}

fn expect(names: &[String], wanted: &[&str]) {
    for name in wanted {
        assert!(names.iter().any(|known| known == name), "{name} is not in {names:?}");
    }
}

#[test]
fn what_cannot_be_run_ends_with_a_result_too() {
    let (desk, validator) = (Desk::new(), validator());
    let wrong: &[&[&str]] = &[
        &["--bundle", "nope", "hi"],
        &["--plan", "none.json", "hi"],
        &["--provider", "nope", "hi"],
        &["--set", "nothing", "hi"],
        &["--set", "no.where=1", "hi"],
        &["--max-cost", "much", "hi"],
        &["--cwd", "none", "hi"],
        &["--bogus", "hi"],
    ];
    for args in wrong {
        let ran = run(&desk, args);
        assert_eq!(checked(&validator, &ran), [""; 0], "{args:?}");
        let told = ran.lines().pop().unwrap();
        assert_eq!((ran.code, &told["status"], &told["exit_code"]), (2, &json!("error"), &json!(2)));
        let error = told["error"].as_str().unwrap().split(" <").next().unwrap();
        assert!(ran.stderr.contains(error) && told["hint"].is_string(), "{args:?}: {}", ran.seen());
    }
    // A command that knows no lines prints none.
    let ran = desk.amplifier(&["session", "list", "--output", "jsonl"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.seen());
}

#[test]
fn every_line_of_runs_with_tools_denials_and_thoughts_is_valid() {
    let (desk, validator) = (Desk::new(), validator());
    let read = json!({"name": "read_file", "arguments": {"file_path": "n.txt"}});
    let missing = json!({"name": "read_file", "arguments": {"file_path": "none.txt"}});
    let write = json!({"name": "write_file", "arguments": {"file_path": "m.txt", "content": "x"}});
    let unknown = json!({"name": "no_such_tool", "arguments": {}});
    let responses = json!([
        {"thinking": "hm", "text": "Let me look.", "tool_calls": [read, missing]},
        {"tool_calls": [write, unknown]},
        {"text": "Done, in pieces.", "chunks": 3},
    ]);
    desk.file("n.txt", "x\n").plan("a.json", &plan(responses));
    let ran = run(&desk, &["--plan", "a.json", "go"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let names = checked(&validator, &ran);
    expect(&names, &["session:start", "prompt:submit", "tool:pre", "tool:post", "approval:required"]);
    expect(
        &names,
        &["approval:denied", "llm:request", "llm:response", "content_block:delta", "prompt:complete"],
    );
    expect(&names, &["artifact:read", "execution:end", "session:end", "orchestrator:complete"]);
    // Allowed, it writes; and the same session again begins with another event.
    let ran = run(&desk, &["--plan", "a.json", "--approve", "all", "go"]);
    expect(&checked(&validator, &ran), &["approval:granted", "artifact:write", "tool:error"]);
    let id = ran.lines().pop().unwrap()["session_id"].as_str().unwrap().to_owned();
    let ran = run(&desk, &["--resume", &id, "and now?"]);
    expect(&checked(&validator, &ran), &["session:resume"]);
}

#[test]
fn every_line_of_runs_that_fail_stop_or_never_begin_is_valid() {
    let (desk, validator) = (Desk::new(), validator());
    let fails = json!([{"error": {"kind": "authentication", "message": "the key is wrong"}}]);
    desk.plan("fails.json", &plan(fails));
    let ran = run(&desk, &["--plan", "fails.json", "go"]);
    assert_eq!(ran.code, 1, "{}", ran.seen());
    expect(&checked(&validator, &ran), &["provider:error"]);
    let mut limited = plan(json!([{"tool_calls": [{"name": "glob", "arguments": {"pattern": "*"}}]}]));
    limited["session"]["limits"] = json!({"steps": 1});
    limited["tools"] = json!([{"module": "tool-search"}, {"module": "tool-nowhere"}]);
    desk.plan("limited.json", &limited);
    let ran = run(&desk, &["--plan", "limited.json", "go"]);
    assert_eq!(ran.code, 3, "{}", ran.seen());
    expect(&checked(&validator, &ran), &["module:load_failed", "policy:violation"]);
    desk.plan("slow.json", &plan(json!([{"text": "late", "delay_ms": 60_000}])));
    let ran = run(&desk, &["--plan", "slow.json", "--timeout", "1s", "go"]);
    assert_eq!(ran.code, 124, "{}", ran.seen());
    expect(&checked(&validator, &ran), &["cancel:requested", "cancel:completed"]);
    let ran = run(&desk, &["--plan", "none.json", "go"]);
    assert_eq!(ran.code, 2);
    assert!(checked(&validator, &ran).is_empty());
    let result = ran.lines().pop().unwrap();
    assert!(result["causes"][0].is_string() && result["hint"].is_string(), "{result}");
    assert_eq!(result["place"], json!({"file": "none.json", "line": null, "column": null}));
    // A hint, causes and a place of another shape are no result.
    for (key, value) in [("hint", json!(7)), ("causes", json!("why")), ("place", json!({"file": 7}))] {
        let mut wrong = result.clone();
        wrong[key] = value;
        assert!(!validator.is_valid(&wrong), "{key}");
    }
}

#[test]
fn every_line_of_a_run_with_an_agent_and_of_the_demo_is_valid() {
    let (desk, validator) = (Desk::new(), validator());
    desk.file("README.md", "# Here\n");
    let asked = run(&desk, &["-p", "mock", "task {\"agent\": \"explorer\", \"instruction\": \"look\"}"]);
    assert_eq!(asked.code, 0, "{}", asked.seen());
    let names = checked(&validator, &asked);
    expect(&names, &["tool:pre", "tool:post"]);
    assert!(desk.sessions().len() >= 2, "the agent has a session of its own: {}", asked.seen());
    checked(&validator, &run(&desk, &["what is here?"]));
}

#[test]
fn the_schema_refuses_what_is_no_line() {
    let validator = validator();
    let (seq, ts) = (1, "2026-01-01T00:00:00.000000+00:00");
    for wrong in [
        json!({}),
        json!({"type": "surprise", "seq": seq, "ts": ts, "turn": 0}),
        json!({"type": "event", "seq": seq, "ts": ts, "turn": 0}),
        json!({"type": "event", "seq": seq, "ts": ts, "turn": 0, "event": {"name": "tool:pre", "data": {"tool_name": 7}}}),
        json!({"type": "event", "seq": seq, "ts": ts, "turn": 0, "event": {"name": "prompt:submit", "data": {}}}),
        json!({"type": "result", "status": "completed"}),
        json!({"type": "message", "seq": seq, "ts": ts, "turn": 0, "message": {"role": "nobody", "content": ""}}),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
    let own = json!({"name": "my-module:thing", "data": {"anything": 1}});
    assert!(validator.is_valid(&json!({"type": "event", "seq": seq, "ts": ts, "turn": 0, "event": own})));
}
