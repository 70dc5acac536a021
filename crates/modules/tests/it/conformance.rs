//! Every row of the table through the suite of its contract.

use std::sync::Arc;

use amplifier_core::contracts::Module;
use amplifier_modules::MODULES;
use amplifier_protocol::module_info::ModuleKind;
use amplifier_testing::{TestCoordinator, conformance};
use serde_json::{Map, json};

use crate::kit::built_in;

/// A hub in which this module is mounted, and nothing else.
async fn alone(id: &str) -> TestCoordinator {
    let hub = TestCoordinator::new();
    hub.mount(&*built_in(id).await, json!({})).await.unwrap();
    hub
}

#[tokio::test]
async fn every_module_keeps_the_module_contract() {
    for module in MODULES {
        let id = module.id().to_string();
        conformance::module(async || -> Arc<dyn Module> { built_in(&id).await }, Map::new()).await.assert();
    }
}

#[tokio::test]
async fn every_orchestrator_keeps_its_contract() {
    for id in ids(ModuleKind::Orchestrator) {
        conformance::orchestrator(async || alone(&id).await.orchestrator().unwrap()).await.assert();
    }
}

#[tokio::test]
async fn every_context_keeps_its_contract() {
    for id in ids(ModuleKind::Context) {
        conformance::context(async || alone(&id).await.context().unwrap()).await.assert();
    }
}

#[tokio::test]
async fn every_provider_keeps_its_contract() {
    for id in ids(ModuleKind::Provider) {
        let first = async || alone(&id).await.providers().remove(0).1;
        conformance::provider(first).await.assert();
    }
}

#[tokio::test]
async fn every_tool_keeps_its_contract() {
    for id in ids(ModuleKind::Tool) {
        for spec in alone(&id).await.tool_specs() {
            conformance::tool(async || alone(&id).await.tool(&spec.name).unwrap()).await.assert();
        }
    }
}

fn ids(kind: ModuleKind) -> Vec<String> {
    MODULES.iter().filter(|module| module.kind() == kind).map(|module| module.id().to_string()).collect()
}
