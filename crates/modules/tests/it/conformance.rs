//! Every row of the table keeps the module contract, and what it mounts keeps the contract of its kind.

use std::any::Any;
use std::sync::Arc;

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler, Module, Mounted, TaskFailure};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_modules::MODULES;
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::ModuleKind;
use amplifier_testing::{Exhausted, ScriptedProvider, TestCoordinator, conformance, wire};
use async_trait::async_trait;
use serde_json::{Map, Value, json};

use crate::hooks_kit::Desk;
use crate::kit;

async fn built_in(id: &str) -> Arc<dyn Module> {
    let module = kit::built_in(id).await;
    if id == "context-persistent" { Arc::new(InFreshFolder(module)) } else { module }
}

/// A module with a file of its own, mounted each time with another.
struct InFreshFolder(Arc<dyn Module>);

#[async_trait]
impl Module for InFreshFolder {
    fn id(&self) -> ModuleId {
        self.0.id()
    }

    fn kind(&self) -> ModuleKind {
        self.0.kind()
    }

    async fn mount(&self, mut config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let folder = tempfile::tempdir().unwrap();
        config["transcript_path"] = json!(folder.path().join("t.jsonl").display().to_string());
        let mounted = self.0.mount(config, cx).await;
        cx.register_cleanup(move || async move {
            drop(folder);
            Ok::<(), TaskFailure>(())
        });
        mounted
    }
}

/// A hub with one built-in module mounted.
async fn hub_with(id: &str) -> TestCoordinator {
    let hub = TestCoordinator::new();
    hub.mount(&*built_in(id).await, json!({})).await.unwrap();
    hub
}

fn of_kind(kind: ModuleKind) -> Vec<String> {
    let rows = MODULES.iter().filter(|module| module.kind() == kind);
    rows.map(|module| module.id().to_string()).collect()
}

#[tokio::test]
async fn every_row_keeps_the_module_contract() {
    for module in MODULES {
        let id = module.id().to_string();
        conformance::module(async || built_in(&id).await, Map::new()).await.assert();
    }
}

#[tokio::test]
async fn every_tool_keeps_the_tool_contract_here_and_over_a_wire() {
    for id in of_kind(ModuleKind::Tool) {
        for spec in hub_with(&id).await.tool_specs() {
            let make = async || hub_with(&id).await.tool(&spec.name).unwrap();
            conformance::tool(make).await.assert();
            conformance::tool(async || wire::tool(make().await).await.unwrap()).await.assert();
        }
    }
}

#[tokio::test]
async fn every_provider_keeps_the_provider_contract_here_and_over_a_wire() {
    // The others need a server; each keeps the contract against one, in a test of its own.
    for id in ["provider-mock"] {
        let id = id.to_owned();
        let make = async || hub_with(&id).await.providers().remove(0).1;
        conformance::provider(make).await.assert();
        conformance::provider(async || wire::provider(make().await).await.unwrap()).await.assert();
    }
}

#[tokio::test]
async fn every_context_keeps_the_context_contract_here_and_over_a_wire() {
    for id in of_kind(ModuleKind::Context) {
        let make = async || hub_with(&id).await.context().unwrap();
        conformance::context(make).await.assert();
        conformance::context(async || wire::context(make().await)).await.assert();
    }
}

#[tokio::test]
async fn every_loop_keeps_the_orchestrator_contract() {
    for id in of_kind(ModuleKind::Orchestrator) {
        conformance::orchestrator(async || hub_with(&id).await.orchestrator().unwrap()).await.assert();
    }
}

/// Everything a hook module registered, as one handler.
struct Registered {
    hub: Coordinator,
    // What the hub belongs to lives as long as somebody asks it.
    _alive: Box<dyn Any + Send + Sync>,
}

#[async_trait]
impl HookHandler for Registered {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        let outcome = self.hub.hooks().dispatch(event.clone()).await;
        match outcome.failures.first() {
            Some(failure) => Err(HookFailure::new(failure.error.clone())),
            None => Ok(outcome.to_result()),
        }
    }
}

/// In a hub that has nothing but the hook.
async fn bare(id: &str) -> Arc<dyn HookHandler> {
    let hub = hub_with(id).await;
    Arc::new(Registered { hub: hub.clone(), _alive: Box::new(hub) })
}

/// In a session with a folder, and with everything the hook can do switched on.
async fn at_work(id: &str) -> Arc<dyn HookHandler> {
    let config = match id {
        "hooks-logging" => json!({"level": "debug", "exclude_events": []}),
        "hooks-redaction" => json!({"skip_events": []}),
        "hooks-shell" => {
            json!({"hooks": [
                {"event": "tool:*", "command": "cat >/dev/null", "timeout": 5},
                {"event": "tool:pre", "prompt": "Is this safe?", "timeout": 5},
            ]})
        }
        _ => json!({}),
    };
    let desk = Desk::new();
    let decides = ScriptedProvider::new(["{\"ok\": true}"]).when_exhausted(Exhausted::Last);
    let builder = desk.with_hook(id, config).await.without_provider().provider(Arc::new(decides));
    let session = builder.open().await.unwrap();
    assert_eq!(session.report().failed().count(), 0, "{id}: {:?}", session.report());
    Arc::new(Registered { hub: session.coordinator().clone(), _alive: Box::new((session, desk)) })
}

#[tokio::test]
async fn every_hook_keeps_the_hook_contract_here_and_over_a_wire() {
    for id in of_kind(ModuleKind::Hook) {
        conformance::hook(async || bare(&id).await).await.assert();
        conformance::hook(async || wire::hook(bare(&id).await)).await.assert();
        conformance::hook(async || at_work(&id).await).await.assert();
        conformance::hook(async || wire::hook(at_work(&id).await)).await.assert();
    }
}

#[tokio::test]
async fn hooks_that_write_keep_the_module_contract_with_a_folder_to_write_to() {
    for (id, key) in [("hooks-logging", "output_dir"), ("hooks-backup", "backup_dir")] {
        let temp = tempfile::tempdir().unwrap();
        let config = kit::object(json!({ key: temp.path().join("x").display().to_string() }));
        conformance::module(async || built_in(id).await, config).await.assert();
    }
}
