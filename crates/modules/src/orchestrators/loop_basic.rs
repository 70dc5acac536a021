//! `loop-basic`: asks the model, runs the tools it calls side by side, asks again, until the model answers.
//!
//! The answer is streamed only when somebody watches it form. Everything else is the driver's, which all loops share.

use amplifier_core::contracts::{Module, Mounted};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use serde_json::Value;

use super::driver::{self, Policy, Selection, Streaming};
use crate::table::BuiltIn;

const POLICY: Policy = Policy {
    id: ModuleId::fixed("loop-basic"),
    streaming: Streaming::WhenWatched,
    selection: Selection::ByModel,
};

/// The module, as the table lists it.
pub(crate) struct LoopBasic;

#[async_trait]
impl Module for LoopBasic {
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

impl BuiltIn for LoopBasic {
    fn info(&self) -> ModuleInfo {
        driver::describe(
            POLICY,
            self.about("Asks the model, runs the tools it calls, and goes on until it answers in text."),
        )
    }
}
