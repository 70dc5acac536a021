//! `hooks-redaction` in real sessions, and the golden cases of the public implementation with what is better here.

use std::sync::Arc;

use amplifier_protocol::event::{ContextInclude, PromptSubmit, ToolPost};
use amplifier_protocol::tool::ToolCall;
use amplifier_testing::{MockTool, ScriptedProvider, Step};
use serde_json::{Value, json};

use crate::hooks_kit::{Desk, call, looping, object};

/// What becomes of a text in an event that is only watched.
async fn watched(config: Value, text: &str) -> String {
    let desk = Desk::new();
    let session = desk.with_hook("hooks-redaction", config).await.open().await.unwrap();
    let event = ContextInclude { path: text.to_owned(), bytes: 1 };
    let emitted = session.coordinator().emit(event).await;
    assert_eq!(emitted.denied(), None);
    emitted.event.path
}

/// Golden case 11.8: redaction.
#[tokio::test]
async fn golden_known_keys_addresses_and_numbers_are_replaced() {
    for (text, clean) in [
        ("AKIAIOSFODNN7EXAMPLE", "[REDACTED]"),
        ("a me@example.org b", "a [REDACTED:PII] b"),
        ("call +49 30 901820", "call [REDACTED:PII]"),
    ] {
        assert_eq!(watched(json!({}), text).await, clean, "{text}");
    }
}

/// Better than the golden cases: they mask ids and dates as telephone numbers, miss `sk-ant-` keys and halve GitHub's.
/// Golden case 11.8: redaction.
#[tokio::test]
async fn better_ids_and_dates_stay_and_every_known_key_goes_whole() {
    for text in ["id 1234567890 ok", "2026-11-15 19:44", "da39a3ee5e6b4b0d3255bfef95601890afd80709"] {
        assert_eq!(watched(json!({}), text).await, text);
    }
    for key in ["sk-ant-api03-abcdefghijklmnop", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"] {
        assert_eq!(watched(json!({}), &format!("a {key} b")).await, "a [REDACTED] b");
    }
}

/// Better than the golden case: the action is `modify` even when nothing changed there.
/// Golden case 11.8: redaction.
#[tokio::test]
async fn better_an_event_without_secrets_is_not_changed() {
    let desk = Desk::new();
    let session = desk.with_hook("hooks-redaction", json!({})).await.open().await.unwrap();
    let hub = session.coordinator();
    let quiet = ContextInclude { path: "all is well".to_owned(), bytes: 1 };
    assert!(!hub.emit(quiet).await.modified);
    let loud = object(json!({"path": "me@example.org"}));
    let loud = hub.emit_named("context:include".parse().unwrap(), loud).await;
    assert!(loud.modified);
    assert_eq!(loud.event["redaction"], json!({"applied": true, "rules": ["pii-basic"]}));
}

#[tokio::test]
async fn the_model_reads_no_secret_from_a_tool_and_a_tool_gets_what_it_was_sent() {
    let desk = Desk::new();
    let tool =
        Arc::new(MockTool::new("env").return_value("TOKEN=abc mail me@example.org key AKIAIOSFODNN7EXAMPLE"));
    let input = json!({"note": "AKIAIOSFODNN7EXAMPLE"});
    let provider =
        ScriptedProvider::new([Step::call([ToolCall::new("c1", "env", input.clone())]), Step::say("ok")]);
    let context = Arc::new(amplifier_testing::MockContextManager::new());
    let builder =
        desk.with_hook("hooks-redaction", json!({})).await.tool(tool.clone()).context(context.clone());
    let session = looping(builder, provider).await.open().await.unwrap();
    session.execute("go").await.unwrap();
    assert_eq!(tool.last_input(), Some(input), "what a tool gets is its own business");
    let result = context.texts().into_iter().find(|text| text.contains("mail")).unwrap();
    assert_eq!(result, "TOKEN=[REDACTED] mail me@example.org key [REDACTED]");
}

#[tokio::test]
async fn the_config_chooses_rules_places_and_events() {
    assert_eq!(watched(json!({"rules": ["secrets"]}), "me@example.org").await, "me@example.org");
    assert_eq!(watched(json!({"allowlist": ["path"]}), "me@example.org").await, "me@example.org");
    assert_eq!(watched(json!({"skip_events": ["context:*"]}), "me@example.org").await, "me@example.org");
    let random = "9fK2mQ7vLz4TbX8sWnR3cYhJ6pDgAe5U";
    assert_eq!(watched(json!({}), random).await, "[REDACTED]");
    assert_eq!(watched(json!({"high_entropy": false}), random).await, random);
    let desk = Desk::new();
    let session =
        desk.with_hook("hooks-redaction", json!({"pii_for_model": true})).await.open().await.unwrap();
    let prompt = PromptSubmit { prompt: "write to me@example.org".to_owned() };
    assert_eq!(session.coordinator().emit(prompt).await.event.prompt, "write to [REDACTED:PII]");
    let post = ToolPost {
        tool_name: "t".to_owned(),
        result: json!({"output": "me@example.org"}),
        ..ToolPost::default()
    };
    assert_eq!(session.coordinator().emit(post).await.event.result["output"], json!("[REDACTED:PII]"));
    assert!(!session.coordinator().emit(call("t", json!({"to": "me@example.org"}))).await.modified);
}
