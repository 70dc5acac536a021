//! The clauses of the hook contract.

use std::sync::Arc;

use amplifier_core::contracts::{EventStamp, HookEvent, HookFailure, HookHandler};
use amplifier_protocol::event::EVENTS;
use amplifier_protocol::hook::{HookAction, HookResult};
use amplifier_protocol::time::Timestamp;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use super::report::{Report, Seen, Suite, ensure, round_trip};
use crate::sync::parsed;

/// Runs a hook handler through its contract. It is shown every agreed event, unknown ones, and data it cannot expect.
pub async fn hook(make: impl AsyncFn() -> Arc<dyn HookHandler>) -> Report {
    let mut suite = Suite::new("hook");
    suite
        .clause("every agreed event is answered or refused, also with empty data", async {
            let handler = make().await;
            for kind in EVENTS {
                judged(kind.name, handler.handle(&event(kind.name, Value::Null)).await)?;
            }
            Ok(())
        })
        .await;
    suite
        .clause("an event nobody knows is answered or refused", async {
            let handler = make().await;
            for name in ["test:event", "bare", "a:b:c"] {
                judged(name, handler.handle(&event(name, json!({"x": 1}))).await)?;
            }
            Ok(())
        })
        .await;
    suite
        .clause("data of the wrong shape is answered or refused", async {
            let handler = make().await;
            let data = json!({
                "tool_name": 7, "tool_input": "text", "prompt": null, "result": [], "messages": {"a": []},
                "session_id": {"deep": [[[[]]]]}, "": "no key"
            });
            for kind in EVENTS {
                judged(kind.name, handler.handle(&event(kind.name, data.clone())).await)?;
            }
            Ok(())
        })
        .await;
    suite
        .clause("the same event is answered each time", async {
            let handler = make().await;
            for _ in 0..3 {
                judged("tool:pre", handler.handle(&event("tool:pre", tool_call())).await)?;
            }
            Ok(())
        })
        .await;
    suite.clause("events side by side are all answered", async { side_by_side(make().await).await }).await;
    suite.finish()
}

fn tool_call() -> Value {
    json!({"tool_name": "echo", "tool_input": {"text": "hi"}, "tool_call_id": "c1"})
}

fn event(name: &str, data: Value) -> HookEvent {
    let data = match data {
        Value::Object(data) => data,
        _ => Map::new(),
    };
    let stamp = EventStamp {
        session_id: parsed("test-session"),
        parent_id: None,
        turn: 1,
        sequence: 1,
        timestamp: Timestamp::default(),
    };
    HookEvent { name: parsed(name), data, stamp }
}

fn judged(name: &str, answer: Result<HookResult, HookFailure>) -> Seen {
    let seen = match answer {
        Ok(result) => complete(&result).and_then(|()| round_trip(&result)),
        Err(failure) => ensure(!failure.message.is_empty(), || "a failure without a message".to_owned()),
    };
    seen.map_err(|seen| format!("`{name}`: {seen}"))
}

/// An answer that asks for something carries what it takes.
fn complete(result: &HookResult) -> Seen {
    match &result.action {
        HookAction::Deny { reason } => ensure(!reason.is_empty(), || "a denial without a reason".to_owned()),
        HookAction::Modify => ensure(result.data.is_some(), || "a change without data".to_owned()),
        HookAction::InjectContext(injection) => {
            ensure(!injection.text.is_empty(), || "an injection without text".to_owned())
        }
        HookAction::AskUser(question) => {
            let askable = !question.prompt.is_empty() && !question.options.is_empty();
            ensure(askable && question.timeout > 0.0, || format!("nobody can answer {question:?}"))
        }
        HookAction::Continue => Ok(()),
    }
}

async fn side_by_side(handler: Arc<dyn HookHandler>) -> Seen {
    let mut events = JoinSet::new();
    for _ in 0..8 {
        let handler = Arc::clone(&handler);
        events.spawn(async move { handler.handle(&event("tool:pre", tool_call())).await });
    }
    while let Some(answer) = events.join_next().await {
        judged("tool:pre", answer.map_err(|error| error.to_string())?)?;
    }
    Ok(())
}
