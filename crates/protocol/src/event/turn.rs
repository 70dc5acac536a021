//! Events of a turn: the prompt, the loop, its end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Event, HOOK, KERNEL, LOOP};
use crate::hook::ApprovalDecision;

/// A prompt was given. Hooks may deny the turn here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromptSubmit {
    /// What was asked.
    pub prompt: String,
}

impl Event for PromptSubmit {
    const NAME: &'static str = "prompt:submit";
    const EMITTER: &'static str = LOOP;
}

/// A prompt was answered, or given up. Exactly one for each `prompt:submit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromptComplete {
    /// The answer's first 200 characters.
    pub response_preview: String,
    /// The answer's length in characters.
    pub length: u64,
    /// How the turn ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TurnStatus>,
}

impl Event for PromptComplete {
    const NAME: &'static str = "prompt:complete";
    const EMITTER: &'static str = LOOP;
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// The model gave its answer.
    Success,
    /// The model gave none.
    Incomplete,
    /// A hook or the person refused.
    Denied,
    /// It was cancelled.
    Cancelled,
    /// It failed.
    Error,
    /// The iteration limit was reached.
    MaxIterations,
    /// A spending limit was reached.
    LimitReached,
}

/// The loop begins to work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionStart {
    /// What was asked.
    pub prompt: String,
}

impl Event for ExecutionStart {
    const NAME: &'static str = "execution:start";
    const EMITTER: &'static str = LOOP;
}

/// The loop is done. Exactly one for each `execution:start`, on every way out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionEnd {
    /// The answer so far.
    pub response: String,
    /// `completed`, `cancelled` or `error`.
    pub status: ExecutionStatus,
}

/// How the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionStatus {
    /// It ran to its end.
    Completed,
    /// It was cancelled.
    Cancelled,
    /// It failed.
    Error,
}

impl From<TurnStatus> for ExecutionStatus {
    fn from(status: TurnStatus) -> Self {
        match status {
            TurnStatus::Cancelled => Self::Cancelled,
            TurnStatus::Error => Self::Error,
            _ => Self::Completed,
        }
    }
}

impl Event for ExecutionEnd {
    const NAME: &'static str = "execution:end";
    const EMITTER: &'static str = LOOP;
}

/// The turn is over. Exactly one for each turn that began, with the truth about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrchestratorComplete {
    /// The loop's module id.
    pub orchestrator: String,
    /// How many rounds of tools it took.
    pub turn_count: u64,
    /// How it ended.
    pub status: TurnStatus,
}

impl Event for OrchestratorComplete {
    const NAME: &'static str = "orchestrator:complete";
    const EMITTER: &'static str = LOOP;
}

/// A message that came while the turn ran is now part of the conversation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct OrchestratorSteeringInjected {
    /// The loop's module id.
    pub orchestrator: String,
    /// The message.
    pub content: String,
    /// Which round of the loop reads it first.
    pub iteration: u64,
    /// How many more wait.
    #[serde(default)]
    pub queued_remaining: u64,
    /// Notes.
    #[serde(default)]
    pub metadata: Option<Value>,
}

impl Event for OrchestratorSteeringInjected {
    const NAME: &'static str = "orchestrator:steering_injected";
    const EMITTER: &'static str = LOOP;
}

/// The loop waits before it asks the model again, as its config wants.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct OrchestratorRateLimitDelay {
    /// How long it waits.
    pub delay_ms: u64,
    /// How long must lie between two calls.
    pub configured_ms: u64,
    /// How long the last call is ago.
    pub elapsed_ms: u64,
    /// Which round of the loop waits.
    pub iteration: u64,
}

impl Event for OrchestratorRateLimitDelay {
    const NAME: &'static str = "orchestrator:rate_limit_delay";
    const EMITTER: &'static str = LOOP;
}

/// A plan is being made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PlanStart {
    /// What is planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
}

impl Event for PlanStart {
    const NAME: &'static str = "plan:start";
    const EMITTER: &'static str = LOOP;
}

/// A plan was made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PlanEnd {
    /// The plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

impl Event for PlanEnd {
    const NAME: &'static str = "plan:end";
    const EMITTER: &'static str = LOOP;
}

/// Somebody asked to stop. Emitted once for each step up: graceful, then immediate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CancelRequested {
    /// `graceful` or `immediate`.
    pub state: String,
    /// Why, where the asker told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Event for CancelRequested {
    const NAME: &'static str = "cancel:requested";
    const EMITTER: &'static str = KERNEL;
}

/// A cancelled turn has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CancelCompleted {
    /// Whether running work was cut off.
    pub was_immediate: bool,
    /// The error the turn ended with, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Event for CancelCompleted {
    const NAME: &'static str = "cancel:completed";
    const EMITTER: &'static str = KERNEL;
}

/// A hook asks the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRequired {
    /// The tool, when the question is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// The question.
    pub action: String,
    /// How dangerous the asker thinks it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_level: Option<String>,
}

impl Event for ApprovalRequired {
    const NAME: &'static str = "approval:required";
    const EMITTER: &'static str = HOOK;
}

/// The person agreed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalGranted {
    /// The tool, when the question was about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// The answer.
    pub reason: String,
    /// What it means; nothing in journals of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<ApprovalDecision>,
    /// The question, which tells apart answers about the same tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
}

impl Event for ApprovalGranted {
    const NAME: &'static str = "approval:granted";
    const EMITTER: &'static str = HOOK;
}

/// The person refused, or did not answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalDenied {
    /// The tool, when the question was about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// The answer.
    pub reason: String,
    /// The question, which tells apart answers about the same tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
}

impl Event for ApprovalDenied {
    const NAME: &'static str = "approval:denied";
    const EMITTER: &'static str = HOOK;
}
