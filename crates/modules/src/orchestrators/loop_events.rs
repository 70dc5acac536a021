//! `loop-events`: like `loop-basic`, but hooks have a say in which tool a call becomes.
//!
//! Before a call runs, `tool:selecting` gathers what schedulers propose and `tool:selected` tells what was chosen. It
//! decides nothing itself: without a proposal the model's choice stands.

use amplifier_core::contracts::{Module, Mounted};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use serde_json::Value;

use super::driver::{self, Policy, Selection, Streaming};
use crate::table::BuiltIn;

const POLICY: Policy = Policy {
    id: ModuleId::fixed("loop-events"),
    streaming: Streaming::WhenWatched,
    selection: Selection::ByProposals,
};

/// The module, as the table lists it.
pub(crate) struct LoopEvents;

#[async_trait]
impl Module for LoopEvents {
    fn id(&self) -> ModuleId {
        POLICY.id
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Orchestrator
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        driver::mount(POLICY, config, cx)
    }
}

impl BuiltIn for LoopEvents {
    fn info(&self) -> ModuleInfo {
        driver::describe(
            POLICY,
            self.about("As `loop-basic`, and hooks may propose another tool for each call."),
        )
    }
}
