//! Events of contexts beyond the agreed ones.

use amplifier_protocol::event::{ContextCompaction, ContextPostCompact, ContextPreCompact, Event};
use amplifier_protocol::module_info::ModuleInfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const CONTEXT: &str = "context";

/// What every context that shows a window emits.
pub(super) fn with_events(info: ModuleInfo) -> ModuleInfo {
    info.emits::<ContextPreCompact>()
        .emits::<ContextPostCompact>()
        .emits::<ContextCompaction>()
        .emits::<ContextBudget>()
        .emits::<ToolResultClipped>()
        .emits::<SummaryFailed>()
}

/// The budget of requests is another than it was for the request before.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub(super) struct ContextBudget {
    /// Where it comes from: `explicit`, `provider`, `max_tokens` or `fallback`.
    pub(super) source: String,
    /// The model's window.
    pub(super) context_window: Option<u64>,
    /// The most tokens of an answer.
    pub(super) max_output_tokens: Option<u64>,
    /// What is left free for the answer.
    pub(super) reserved_output: u64,
    /// What the window leaves.
    pub(super) derived_budget: Option<u64>,
    /// What the plan allows.
    pub(super) max_tokens: Option<u64>,
    /// What is taken when nobody names a budget.
    pub(super) max_tokens_fallback: u64,
    /// Whether the plan allows less than the window leaves.
    pub(super) capped: bool,
    /// What counts.
    pub(super) effective_budget: u64,
}

impl Event for ContextBudget {
    const NAME: &'static str = "context:budget";
    const EMITTER: &'static str = CONTEXT;
}

/// A tool result is so long that it is shown cut from the start.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub(super) struct ToolResultClipped {
    /// The tool.
    pub(super) tool_name: Option<String>,
    /// The call.
    pub(super) tool_call_id: Option<String>,
    /// How long its longest text is.
    pub(super) original_text_utf8_bytes: u64,
    /// How much of it is stored: all.
    pub(super) stored_text_utf8_bytes: u64,
    /// How much of it is shown.
    pub(super) shown_text_utf8_bytes: u64,
    /// How much may be shown.
    pub(super) max_tool_result_bytes: u64,
    /// `text` or `blocks`.
    pub(super) content_kind: String,
}

impl Event for ToolResultClipped {
    const NAME: &'static str = "context:tool_result_ingress_truncated";
    const EMITTER: &'static str = CONTEXT;
}

/// What a view leaves out was to be summed up and could not be.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub(super) struct SummaryFailed {
    /// Why.
    pub(super) error: String,
}

impl Event for SummaryFailed {
    const NAME: &'static str = "context:summary_failed";
    const EMITTER: &'static str = CONTEXT;
}

/// A conversation was offered to a context that has the complete one from its file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub(super) struct SetMessagesIgnored {
    /// The file.
    pub(super) path: String,
    /// How many messages it holds.
    pub(super) kept_messages: u64,
    /// How many were offered.
    pub(super) offered_messages: u64,
}

impl Event for SetMessagesIgnored {
    const NAME: &'static str = "context:set_messages_ignored";
    const EMITTER: &'static str = CONTEXT;
}
