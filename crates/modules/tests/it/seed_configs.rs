//! The config keys that the specification's examples use: all are known, and those that no test of their module covers
//! take effect here. (`allowed_paths`: `filesystem.rs`, `filesystem_changes.rs`; `require_approval`: `filesystem_patch.rs`;
//! `output_dir`, `mode`: `hooks_logging.rs`; `budget_limit`, `alert_threshold`: `schedulers.rs`; `auto_compact`:
//! `context_simple.rs`; `max_iterations`: `loops/golden.rs`; `extended_thinking`: `loop_basic.rs`.)

use amplifier_protocol::event::{ContextPreCompact, LlmResponse};
use amplifier_testing::{Exhausted, ScriptedProvider, TestSession};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::hooks_kit::Desk;
use crate::stage::with;

#[tokio::test]
async fn every_key_of_the_specifications_examples_is_known() {
    let loops = ["loop-basic", "loop-streaming", "loop-events"];
    let contexts = ["context-simple", "context-persistent"];
    for (orchestrator, context) in loops.iter().flat_map(|id| contexts.iter().map(move |other| (*id, *other)))
    {
        let desk = Desk::new();
        let modules = [
            (orchestrator, json!({"extended_thinking": true, "max_iterations": 25})),
            (context, json!({"max_tokens": 200_000, "compact_threshold": 0.92, "auto_compact": true})),
            ("provider-mock", json!({"model": "claude-sonnet-4-5"})),
            ("tool-filesystem", json!({"allowed_paths": ["."], "require_approval": true})),
            ("tool-bash", json!({})),
            ("tool-web", json!({})),
            ("hooks-scheduler-cost-aware", json!({"budget_limit": 10.0, "alert_threshold": 8.0})),
            ("hooks-logging", json!({"output_dir": ".amplifier/logs", "mode": "session-only"})),
        ];
        let builder = desk.with_hook("hooks-backup", json!({})).await;
        let session = with(builder, &modules).await.open().await.unwrap();
        for entry in &session.report().modules {
            let unknown = entry.warnings.iter().find(|warning| warning.contains("unknown config key"));
            assert_eq!(unknown, None, "{}", entry.module);
        }
        assert_eq!(session.report().failed().count(), 0, "{:?}", session.report());
    }
}

/// The turn before whose request a conversation of even turns is shortened for the first time.
async fn shortened_in_turn(context: Value) -> usize {
    let model = Arc::new(ScriptedProvider::new(["ok"]).when_exhausted(Exhausted::Last));
    let builder =
        with(TestSession::builder(), &[("loop-basic", json!({})), ("context-simple", context)]).await;
    let session = builder.provider(model).open().await.unwrap();
    for turn in 1..100 {
        session.execute(format!("{turn} {}", "x".repeat(400))).await.unwrap();
        if !session.recorder().of::<ContextPreCompact>().is_empty() {
            return turn;
        }
    }
    panic!("nothing was shortened");
}

#[tokio::test]
async fn a_lower_compact_threshold_shortens_earlier() {
    let at = async |threshold: f64| {
        shortened_in_turn(json!({"max_tokens": 4_000, "compact_threshold": threshold})).await
    };
    let (low, high) = (at(0.4).await, at(0.9).await);
    assert!(low * 2 < high + 2 && low * 3 > high, "0.4: turn {low}, 0.9: turn {high}");
}

#[tokio::test]
async fn the_model_of_the_config_is_the_one_that_is_told() {
    for key in ["model", "default_model"] {
        let modules = [
            ("loop-basic", json!({})),
            ("context-simple", json!({})),
            ("provider-mock", json!({ key: "claude-sonnet-4-5" })),
        ];
        let session = with(TestSession::builder(), &modules).await.open().await.unwrap();
        session.execute("hi").await.unwrap();
        let told = session.recorder().of::<LlmResponse>();
        assert_eq!(told[0].model, "claude-sonnet-4-5", "{key}");
    }
}
