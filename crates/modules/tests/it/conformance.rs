//! Every row of the table keeps the module contract, and what it mounts keeps the contract of its kind.

use std::sync::Arc;

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler, Module, Mounted, TaskFailure};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_modules::MODULES;
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::ModuleKind;
use amplifier_testing::{TestCoordinator, conformance, wire};
use async_trait::async_trait;
use serde_json::{Map, Value, json};

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
struct Registered(TestCoordinator);

#[async_trait]
impl HookHandler for Registered {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        let outcome = self.0.hooks().dispatch(event.clone()).await;
        match outcome.failures.first() {
            Some(failure) => Err(HookFailure::new(failure.error.clone())),
            None => Ok(outcome.to_result()),
        }
    }
}

#[tokio::test]
async fn every_hook_keeps_the_hook_contract_here_and_over_a_wire() {
    for id in of_kind(ModuleKind::Hook) {
        let make = async || Arc::new(Registered(hub_with(&id).await)) as Arc<dyn HookHandler>;
        conformance::hook(make).await.assert();
        conformance::hook(async || wire::hook(make().await)).await.assert();
    }
}
