//! Events of the kernel's watch over calls, hooks and limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Event, KERNEL};
use crate::hook::InjectionRole;

/// A call has been running for longer than expected. It is not over: it may still answer, or meet its deadline.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CallStalled {
    /// The module that is waited for.
    pub owner: String,
    /// What was called.
    pub operation: String,
    /// How long it has been running.
    pub waited_ms: u64,
    /// When it will be given up; 0 for a turn that only a cancel ends.
    pub deadline_ms: u64,
}

impl Event for CallStalled {
    const NAME: &'static str = "call:stalled";
    const EMITTER: &'static str = KERNEL;
}

/// A hook handler failed, panicked or ran out of time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HookFailed {
    /// The handler.
    pub hook: String,
    /// The event it was handling.
    pub event: String,
    /// What happened.
    pub error: String,
    /// `open`: the event went on; `closed`: it was denied.
    pub policy: String,
}

impl Event for HookFailed {
    const NAME: &'static str = "hook:failed";
    const EMITTER: &'static str = KERNEL;
}

/// A hook refused what an event announced, or asked about it and was told no. Recorded for each refusal, so that also those
/// leave a trace that nobody was asked about.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HookDenied {
    /// The hook; `kernel` where what hooks made of the event cannot be used.
    pub hook: String,
    /// The event it answered.
    pub event: String,
    /// Why.
    pub reason: String,
    /// Whether it was asked about, so that the answer refused it.
    pub asked: bool,
    /// The tool, when it was about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// What the tool was called with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_input: Option<Value>,
    /// The call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl Event for HookDenied {
    const NAME: &'static str = "hook:denied";
    const EMITTER: &'static str = KERNEL;
}

/// A hook told the model something. Recorded for each injection that was let in, so that also those leave a trace that no
/// message keeps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HookInjected {
    /// The hook.
    pub hook: String,
    /// The event it answered.
    pub event: String,
    /// In whose name it speaks.
    pub role: InjectionRole,
    /// How many bytes.
    pub bytes: u64,
    /// How many tokens, estimated.
    pub tokens: u64,
    /// Whether it was for the next model call only.
    pub ephemeral: bool,
}

impl Event for HookInjected {
    const NAME: &'static str = "hook:injected";
    const EMITTER: &'static str = KERNEL;
}

/// Something was refused because a limit or a rule stands against it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PolicyViolation {
    /// The limit or rule, such as `injection_size_limit`, `injection_budget_per_turn` or `steps`.
    pub policy: String,
    /// Who wanted it: a hook, or the module that would have spent.
    pub source: String,
    /// What was refused and why, as a sentence.
    pub message: String,
    /// Numbers.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

impl Event for PolicyViolation {
    const NAME: &'static str = "policy:violation";
    const EMITTER: &'static str = KERNEL;
}
