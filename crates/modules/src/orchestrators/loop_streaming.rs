//! `loop-streaming`: like `loop-basic`, but always asks for the answer as it forms and tells every piece of it.
//!
//! Text, thinking and tool arguments go out as `content_block:*` and `thinking:*` events the moment they come. It renders
//! nothing, and it pursues no goals over several turns: that is the application's.

use amplifier_core::contracts::{Module, Mounted};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use serde_json::Value;

use super::driver::{self, Policy, Selection, Streaming};
use crate::table::BuiltIn;

const POLICY: Policy = Policy {
    id: ModuleId::fixed("loop-streaming"),
    streaming: Streaming::Always,
    selection: Selection::ByModel,
};

/// The module, as the table lists it.
pub(crate) struct LoopStreaming;

#[async_trait]
impl Module for LoopStreaming {
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

impl BuiltIn for LoopStreaming {
    fn info(&self) -> ModuleInfo {
        driver::describe(
            POLICY,
            self.about(
                "As `loop-basic`, always streaming: text, thinking and tool input are told as they form.",
            ),
        )
    }
}
