//! What every loop says about itself: its config, the events of a turn, what it offers. What a loop does is not here.

use amplifier_protocol::event::{
    ContentBlockDelta, ContentBlockEnd, ContentBlockStart, ExecutionEnd, ExecutionStart,
    OrchestratorComplete, OrchestratorRateLimitDelay, OrchestratorSteeringInjected, PromptComplete,
    PromptSubmit, ProviderError, ProviderRequest, ProviderResponse, ProviderToolSequenceRepaired,
    ThinkingDelta, ThinkingFinal, ToolError, ToolPost, ToolPre, ToolSelected, ToolSelecting,
    UserNotification,
};
use amplifier_protocol::module_info::ModuleInfo;

use super::config::Config;
use super::steer::STEER;
use super::{Policy, Selection};

/// Adds what all loops have in common, and what the policy adds to it.
pub(in crate::orchestrators) fn describe(policy: Policy, info: ModuleInfo) -> ModuleInfo {
    let info = turn(info.config::<Config>()).gives(STEER);
    match policy.selection {
        Selection::ByModel => info,
        Selection::ByProposals => info.emits::<ToolSelecting>().emits::<ToolSelected>(),
    }
}

fn turn(info: ModuleInfo) -> ModuleInfo {
    info.emits::<PromptSubmit>()
        .emits::<ExecutionStart>()
        .emits::<ProviderRequest>()
        .emits::<ProviderResponse>()
        .emits::<ProviderError>()
        .emits::<ProviderToolSequenceRepaired>()
        .emits::<ContentBlockStart>()
        .emits::<ContentBlockDelta>()
        .emits::<ContentBlockEnd>()
        .emits::<ThinkingDelta>()
        .emits::<ThinkingFinal>()
        .emits::<ToolPre>()
        .emits::<ToolPost>()
        .emits::<ToolError>()
        .emits::<OrchestratorSteeringInjected>()
        .emits::<OrchestratorRateLimitDelay>()
        .emits::<UserNotification>()
        .emits::<ExecutionEnd>()
        .emits::<PromptComplete>()
        .emits::<OrchestratorComplete>()
}
