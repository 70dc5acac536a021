//! `hooks-logging` in real sessions.

use std::sync::Arc;

use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::tool::ToolCall;
use amplifier_testing::{EchoTool, ScriptedProvider, Step};
use serde_json::{Value, json};

use crate::hooks_approval::Denying;
use crate::hooks_kit::{Desk, built_in, call, json_lines, looping};

fn of<'a>(lines: &'a [Value], event: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

#[tokio::test]
async fn a_session_leaves_one_line_per_event_in_the_documented_form() {
    let desk = Desk::new();
    let provider = ScriptedProvider::new([
        Step::call([ToolCall::new("c1", "echo", json!({"a": 1}))]),
        Step::say("done"),
    ]);
    let builder = desk.with_hook("hooks-logging", json!({})).await.tool(Arc::new(EchoTool));
    let session = looping(builder, provider).await.open().await.unwrap();
    assert_eq!(session.execute("hi").await.unwrap(), "done");
    assert_eq!(session.cleanup().await.failed, Vec::<String>::new());

    let lines = json_lines(&desk.path(".amplifier/logs/test-session.jsonl"));
    let logged: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap().to_owned()).collect();
    let wanted = |name: &String| !name.ends_with("delta");
    let heard: Vec<_> = session.recorder().names().into_iter().filter(wanted).collect();
    assert_eq!(logged, heard, "every event but the pieces of streams, in order, the end included");
    let pre = of(&lines, "tool:pre")[0];
    assert_eq!(pre["schema"], json!({"name": "amplifier.log", "ver": "1.1.0"}));
    assert_eq!(
        (&pre["lvl"], &pre["session_id"], &pre["turn"]),
        (&json!("INFO"), &json!("test-session"), &json!(1))
    );
    assert!(pre["ts"].as_str().unwrap().starts_with("2025-01-01T00:00:00") && pre["seq"].is_u64());
    assert_eq!(pre["data"]["tool_input"], json!({"a": 1}));
    assert!(pre["data"].get("session_id").is_none());
}

/// The public implementation runs last and never sees what was denied.
#[tokio::test]
async fn denied_events_are_in_the_log() {
    let desk = Desk::new();
    let gate = HookSpec::new("tool:pre".parse::<EventPattern>().unwrap(), "gate").priority(-500);
    let builder = desk.with_hook("hooks-logging", json!({})).await;
    let session = builder.hook(gate, Arc::new(Denying(HookResult::deny("no")))).open().await.unwrap();
    assert_eq!(session.coordinator().emit(call("x", json!({}))).await.denied(), Some("no"));
    session.cleanup().await;
    assert_eq!(of(&json_lines(&desk.path(".amplifier/logs/test-session.jsonl")), "tool:pre").len(), 1);
}

#[tokio::test]
async fn secrets_and_what_the_redaction_rules_name_never_reach_the_log() {
    let desk = Desk::new();
    let builder = desk.with_hook("hooks-logging", json!({})).await;
    let session = builder.module(built_in("hooks-redaction").await).open().await.unwrap();
    let input = json!({
        "api_key": "hunter2", "text": "key AKIAIOSFODNN7EXAMPLE of me@example.org", "env": "DB_PASSWORD=hunter2"
    });
    session.coordinator().emit(call("x", input)).await;
    session.cleanup().await;
    let text = std::fs::read_to_string(desk.path(".amplifier/logs/test-session.jsonl")).unwrap();
    for secret in ["hunter2", "AKIA", "me@example.org"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert!(text.contains("[REDACTED:PII]") && text.contains("[REDACTED]"));
}

#[tokio::test]
async fn levels_patterns_and_raw_payloads_are_chosen_by_the_config() {
    let desk = Desk::new();
    let config = json!({
        "output_dir": "logs", "mode": "session-only", "level": "warning", "strip_raw": true,
        "events": {"include": ["tool:*", "llm:*"], "exclude": ["tool:post"]}
    });
    let session = desk.with_hook("hooks-logging", config).await.open().await.unwrap();
    let emit = async |name: &str, data: Value| {
        let Value::Object(data) = data else { panic!("data is an object") };
        session.coordinator().emit_named(name.parse().unwrap(), data).await;
    };
    emit("tool:pre", json!({"tool_name": "quiet"})).await;
    emit("tool:error", json!({"tool_name": "loud"})).await;
    emit("tool:post", json!({"tool_name": "x", "error": "excluded"})).await;
    emit("llm:response", json!({"status": "error", "raw": {"body": 1}, "model": "m"})).await;
    emit("other:error", json!({})).await;
    session.cleanup().await;
    let lines = json_lines(&desk.path("logs/test-session.jsonl"));
    let seen: Vec<_> = lines.iter().map(|line| (line["event"].as_str().unwrap(), &line["data"])).collect();
    assert_eq!(
        seen,
        [("tool:error", &json!({"tool_name": "loud"})), ("llm:response", &json!({"model": "m"}))]
    );
    assert_eq!(lines[1]["status"], json!("error"), "the usual keys stand in the line itself");
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_a_line_of_the_load_report() {
    let desk = Desk::new();
    desk.write("file", "");
    let session =
        desk.with_hook("hooks-logging", json!({"output_dir": "file/logs"})).await.open().await.unwrap();
    let failed: Vec<_> = session.report().failed().map(ToString::to_string).collect();
    assert!(failed.len() == 1 && failed[0].contains("cannot open the log"), "{failed:?}");
}

#[tokio::test]
async fn sessions_share_a_combined_log_and_off_writes_nothing() {
    let desk = Desk::new();
    for _ in 0..2 {
        let session =
            desk.with_hook("hooks-logging", json!({"mode": "combined"})).await.open().await.unwrap();
        session.cleanup().await;
    }
    assert_eq!(of(&json_lines(&desk.path(".amplifier/logs/events.jsonl")), "session:end").len(), 2);
    let desk = Desk::new();
    desk.with_hook("hooks-logging", json!({"mode": "off"})).await.open().await.unwrap().cleanup().await;
    assert!(!desk.path(".amplifier").exists());
}

#[tokio::test]
async fn the_samples_of_the_reference_page_are_lines_of_this_form() {
    let page = include_str!("../../../../docs/reference/log.md");
    let block = page.split("```jsonl\n").nth(1).unwrap().split("```").next().unwrap();
    let mut count = 0;
    for line in block.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["schema"], json!({"name": "amplifier.log", "ver": "1.1.0"}), "{line}");
        assert!(line["event"].is_string() && line["lvl"].is_string(), "{line}");
        count += 1;
    }
    assert!(count >= 2);
}
