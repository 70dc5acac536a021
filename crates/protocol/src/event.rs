//! Events: a struct each, with its name on the wire. Between its two typed ends an event is JSON.
//!
//! The set is open. A module defines its own events with its own struct and [`Event`]; nothing here changes.
//! [`EVENTS`] lists the agreed ones, and `docs/reference/events.md` is generated from it.

use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

mod call;
mod context;
mod llm;
mod provider;
mod session;
mod tool;
mod turn;

pub use call::*;
pub use context::*;
pub use llm::*;
pub use provider::*;
pub use session::*;
pub use tool::*;
pub use turn::*;

/// A typed event.
///
/// Readers ignore keys they do not know and every optional key may be missing: emitters of other versions exist.
pub trait Event: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The name on the wire, `namespace:action`.
    const NAME: &'static str;
    /// Who emits it.
    const EMITTER: &'static str;
}

/// An entry of the list of agreed events.
pub struct EventKind {
    /// The name on the wire.
    pub name: &'static str,
    /// Who emits it.
    pub emitter: &'static str,
    /// The JSON Schema of its data, made on demand.
    pub schema: fn() -> Schema,
    /// Reads data as this event and writes it down again as its emitter would.
    pub rewrite: fn(&Value) -> Result<Value, serde_json::Error>,
}

impl EventKind {
    const fn of<E: Event>() -> Self {
        Self {
            name: E::NAME,
            emitter: E::EMITTER,
            schema: || schema_for!(E),
            rewrite: |data| serde_json::to_value(E::deserialize(data)?),
        }
    }
}

const KERNEL: &str = "kernel";
const LOOP: &str = "orchestrator";
const PROVIDER: &str = "provider";
const CONTEXT: &str = "context";
const TOOL: &str = "tool";
const HOOK: &str = "hook";
const APP: &str = "application";

/// The agreed events: the 42 canonical names in their order, then ours.
pub static EVENTS: &[EventKind] = &[
    EventKind::of::<SessionStart>(),
    EventKind::of::<SessionEnd>(),
    EventKind::of::<SessionFork>(),
    EventKind::of::<SessionResume>(),
    EventKind::of::<PromptSubmit>(),
    EventKind::of::<PromptComplete>(),
    EventKind::of::<PlanStart>(),
    EventKind::of::<PlanEnd>(),
    EventKind::of::<ProviderRequest>(),
    EventKind::of::<ProviderResponse>(),
    EventKind::of::<ProviderRetry>(),
    EventKind::of::<ProviderError>(),
    EventKind::of::<ProviderThrottle>(),
    EventKind::of::<ProviderToolSequenceRepaired>(),
    EventKind::of::<ProviderResolve>(),
    EventKind::of::<LlmRequest>(),
    EventKind::of::<LlmResponse>(),
    EventKind::of::<ContentBlockStart>(),
    EventKind::of::<ContentBlockDelta>(),
    EventKind::of::<ContentBlockEnd>(),
    EventKind::of::<ThinkingDelta>(),
    EventKind::of::<ThinkingFinal>(),
    EventKind::of::<ToolPre>(),
    EventKind::of::<ToolPost>(),
    EventKind::of::<ToolError>(),
    EventKind::of::<ContextPreCompact>(),
    EventKind::of::<ContextPostCompact>(),
    EventKind::of::<ContextCompaction>(),
    EventKind::of::<ContextInclude>(),
    EventKind::of::<OrchestratorComplete>(),
    EventKind::of::<ExecutionStart>(),
    EventKind::of::<ExecutionEnd>(),
    EventKind::of::<UserNotification>(),
    EventKind::of::<ArtifactWrite>(),
    EventKind::of::<ArtifactRead>(),
    EventKind::of::<PolicyViolation>(),
    EventKind::of::<ApprovalRequired>(),
    EventKind::of::<ApprovalGranted>(),
    EventKind::of::<ApprovalDenied>(),
    EventKind::of::<CancelRequested>(),
    EventKind::of::<CancelCompleted>(),
    EventKind::of::<ModuleReadyFailed>(),
    EventKind::of::<ModuleLoadFailed>(),
    EventKind::of::<CallStalled>(),
    EventKind::of::<HookFailed>(),
    EventKind::of::<LlmStreamBlockStart>(),
    EventKind::of::<LlmStreamBlockDelta>(),
    EventKind::of::<LlmStreamBlockEnd>(),
    EventKind::of::<LlmStreamAborted>(),
    EventKind::of::<ToolSelecting>(),
    EventKind::of::<ToolSelected>(),
    EventKind::of::<OrchestratorSteeringInjected>(),
    EventKind::of::<OrchestratorRateLimitDelay>(),
    EventKind::of::<MentionsResolved>(),
    EventKind::of::<SessionDescribed>(),
    EventKind::of::<SessionRewound>(),
    EventKind::of::<SessionChildSpent>(),
    EventKind::of::<HookInjected>(),
    EventKind::of::<HookDenied>(),
];

/// How many of [`EVENTS`] are the canonical ones.
pub const CANONICAL_EVENTS: usize = 42;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::EventName;

    #[test]
    fn every_name_is_unique_and_has_a_namespace_and_an_action() {
        let mut seen = std::collections::BTreeSet::new();
        for kind in EVENTS {
            let name: EventName = kind.name.parse().unwrap();
            let (namespace, action) = kind.name.split_once(':').unwrap();
            let fits =
                |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            assert!(fits(namespace) && fits(action), "{name}");
            assert!(seen.insert(kind.name), "{name} twice");
        }
    }

    #[test]
    fn the_first_42_are_the_canonical_ones_in_their_order() {
        let canonical = [
            "session:start",
            "session:end",
            "session:fork",
            "session:resume",
            "prompt:submit",
            "prompt:complete",
            "plan:start",
            "plan:end",
            "provider:request",
            "provider:response",
            "provider:retry",
            "provider:error",
            "provider:throttle",
            "provider:tool_sequence_repaired",
            "provider:resolve",
            "llm:request",
            "llm:response",
            "content_block:start",
            "content_block:delta",
            "content_block:end",
            "thinking:delta",
            "thinking:final",
            "tool:pre",
            "tool:post",
            "tool:error",
            "context:pre_compact",
            "context:post_compact",
            "context:compaction",
            "context:include",
            "orchestrator:complete",
            "execution:start",
            "execution:end",
            "user:notification",
            "artifact:write",
            "artifact:read",
            "policy:violation",
            "approval:required",
            "approval:granted",
            "approval:denied",
            "cancel:requested",
            "cancel:completed",
            "module:on_session_ready_failed",
        ];
        let ours: Vec<_> = EVENTS.iter().take(CANONICAL_EVENTS).map(|kind| kind.name).collect();
        assert_eq!(ours, canonical);
    }

    #[test]
    fn the_usage_of_a_response_has_no_total_and_what_is_read_back_is_otherwise_equal() {
        let usage = crate::usage::Usage { cache_read_tokens: Some(2), ..crate::usage::Usage::new(3, 4) };
        let told = LlmResponse { usage: Some(usage.clone()), ..LlmResponse::default() };
        let json = serde_json::to_value(&told).unwrap();
        let counts = serde_json::json!({"input_tokens": 3, "output_tokens": 4, "cache_read_tokens": 2});
        assert_eq!(json["usage"], counts);
        let back: LlmResponse = serde_json::from_value(json).unwrap();
        assert_eq!(back.usage, Some(crate::usage::Usage { total_tokens: 0, ..usage }));
    }

    #[test]
    fn every_event_and_every_field_is_described() {
        for kind in EVENTS {
            let schema = (kind.schema)().to_value();
            assert!(schema["description"].is_string(), "{} has no description", kind.name);
            for (field, value) in schema["properties"].as_object().into_iter().flatten() {
                assert!(value["description"].is_string(), "{}.{field} has no description", kind.name);
            }
        }
    }
}
