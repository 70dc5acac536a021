//! The hooks keep the hook contract, here and over a wire, with everything they do switched on.

use std::sync::Arc;

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler};
use amplifier_protocol::hook::HookResult;
use amplifier_testing::{TestSession, conformance, wire};
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::hooks_kit::{Desk, built_in, object};

/// All handlers of a session as one.
struct Handlers {
    session: TestSession,
    // Lives as long as what works in it.
    _desk: Desk,
}

#[async_trait]
impl HookHandler for Handlers {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        Ok(self.session.coordinator().hooks().dispatch(event.clone()).await.to_result())
    }
}

async fn handlers(id: &str, config: Value) -> Arc<dyn HookHandler> {
    let desk = Desk::new();
    let session = desk.with_hook(id, config).await.open().await.unwrap();
    Arc::new(Handlers { session, _desk: desk })
}

fn subjects() -> Vec<(&'static str, Value)> {
    let command = json!({"event": "tool:*", "command": "cat >/dev/null", "timeout": 5});
    vec![
        ("hooks-logging", json!({"level": "debug", "exclude_events": []})),
        ("hooks-backup", json!({})),
        ("hooks-approval", json!({})),
        ("hooks-redaction", json!({"skip_events": []})),
        ("hooks-shell", json!({"hooks": [command]})),
    ]
}

#[tokio::test]
async fn every_hook_keeps_the_hook_contract_here_and_over_a_wire() {
    for (id, config) in subjects() {
        let make = async || handlers(id, config.clone()).await;
        conformance::hook(make).await.assert();
        conformance::hook(async || wire::hook(make().await)).await.assert();
    }
}

#[tokio::test]
async fn every_hook_keeps_the_module_contract_with_a_folder_to_write_to() {
    for id in ["hooks-logging", "hooks-backup"] {
        let temp = tempfile::tempdir().unwrap();
        let key = if id == "hooks-logging" { "output_dir" } else { "backup_dir" };
        let config = object(json!({ key: temp.path().join("x").display().to_string() }));
        conformance::module(async || built_in(id).await, config).await.assert();
    }
}
