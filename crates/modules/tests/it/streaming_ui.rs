//! `hooks-streaming-ui` and a front end that takes its records.

use std::sync::{Arc, Mutex};

use amplifier_core::contracts::{Capability, CapabilityError};
use amplifier_protocol::event::{LlmResponse, ThinkingDelta, ThinkingFinal};
use amplifier_protocol::usage::Usage;
use amplifier_testing::{ScriptedProvider, Step};
use serde_json::{Value, json};

use crate::stage::{calls, offer, script, session};

type Records = Arc<Mutex<Vec<Value>>>;

fn sink(records: &Records) -> Capability {
    let records = Arc::clone(records);
    offer(move |record| {
        records.lock().unwrap().push(record);
        async { Ok(Value::Null) }
    })
}

fn provider() -> Arc<ScriptedProvider> {
    script([
        calls("1", "echo", json!({"text": "a\nb\nc"})),
        Step::say("hello there").in_chunks(["hello ", "there"]),
    ])
}

async fn watched(config: Value) -> Vec<Value> {
    let records = Records::default();
    let sink = sink(&records);
    let modules = [("tool-echo", json!({})), ("hooks-streaming-ui", config)];
    let session = session(&provider(), &modules).await;
    let session = session.configure(|builder| builder.capability("ui.sink", sink)).open().await.unwrap();
    let hub = session.coordinator();
    hub.emit(ThinkingDelta { text: "hm".to_owned() }).await;
    hub.emit(ThinkingFinal { text: "hm!".to_owned() }).await;
    let usage = Usage { cache_read_tokens: Some(50), ..Usage::new(100, 7) };
    hub.emit(LlmResponse { provider: "p".to_owned(), usage: Some(usage), ..LlmResponse::default() }).await;
    session.execute("go").await.unwrap();
    // The end of the session waits for the last record.
    assert_eq!(session.cleanup().await.failed, Vec::<String>::new());
    records.lock().unwrap().clone()
}

fn types(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_front_end_gets_everything_in_order() {
    let records = watched(json!({"ui": {"show_tool_lines": 2}})).await;
    assert_eq!(
        types(&records),
        [
            "thinking_delta",
            "thinking",
            "usage",
            "block_start",
            "block_end",
            "tool_start",
            "tool_end",
            "text_delta",
            "text_delta",
            "block_start",
            "block_end",
            "turn_end"
        ]
    );
    let by = |kind: &str| records.iter().find(|record| record["type"] == kind).unwrap();
    assert_eq!(by("tool_start")["input"], json!(["text: a", "b", "… (1 more lines)"]));
    assert_eq!(by("tool_end")["output"], json!(["a", "b", "… (1 more lines)"]));
    assert_eq!(by("tool_end")["success"], json!(true));
    let usage = by("usage");
    assert_eq!((&usage["cached_percent"], &usage["cost"]), (&json!(50), &json!("?")));
    assert_eq!(by("turn_end")["status"], json!("success"));
    let numbers: Vec<_> = records.iter().map(|record| record["sequence"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    assert!(records.iter().all(|record| record["session_id"] == "test-session"));
}

#[tokio::test]
async fn what_the_config_hides_is_not_told() {
    let config = json!({"show_thinking_stream": false, "show_tool_lines": 0, "show_token_usage": false});
    let records = watched(json!({"ui": config})).await;
    let types = types(&records);
    assert!(!types.contains(&"thinking") && !types.contains(&"thinking_delta") && !types.contains(&"usage"));
    let start = records.iter().find(|record| record["type"] == "tool_start").unwrap();
    assert_eq!(start["input"], Value::Null);
}

#[tokio::test]
async fn a_front_end_that_hangs_or_breaks_holds_up_nothing() {
    let hangs = offer(|_| std::future::pending::<Result<Value, CapabilityError>>());
    let panics = offer(|_| async { panic!("boom") });
    for sink in [hangs, panics] {
        let modules = [("tool-echo", json!({})), ("hooks-streaming-ui", json!({}))];
        let session = session(&provider(), &modules).await;
        let session = session.configure(|builder| builder.capability("ui.sink", sink)).open().await.unwrap();
        let turn = tokio::time::timeout(std::time::Duration::from_secs(5), session.execute("go")).await;
        assert_eq!(turn.unwrap().unwrap(), "hello there");
    }
}

#[tokio::test(start_paused = true)]
async fn records_that_do_not_fit_are_counted_and_told() {
    let records = Records::default();
    let (taken, gate) = (Arc::clone(&records), Arc::new(tokio::sync::Semaphore::new(0)));
    let opened = Arc::clone(&gate);
    let slow = offer(move |record| {
        let (taken, opened) = (Arc::clone(&taken), Arc::clone(&opened));
        async move {
            opened.acquire().await.unwrap().forget();
            taken.lock().unwrap().push(record);
            Ok(Value::Null)
        }
    });
    let session = session(&provider(), &[("hooks-streaming-ui", json!({}))]).await;
    let session = session.configure(|builder| builder.capability("ui.sink", slow)).open().await.unwrap();
    for _ in 0..1_100 {
        session.coordinator().emit(ThinkingDelta { text: "x".to_owned() }).await;
    }
    gate.add_permits(10_000);
    session.cleanup().await;
    let records = records.lock().unwrap().clone();
    let dropped: u64 = records.iter().filter_map(|record| record["count"].as_u64()).sum();
    let told = records.iter().filter(|record| record["type"] == "thinking_delta").count() as u64;
    assert_eq!(told + dropped, 1_100);
    assert!(dropped > 0);
}
