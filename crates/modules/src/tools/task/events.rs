//! The events of tasks. Each `task:agent_spawned` and `task:agent_resumed` is followed by one `task:agent_completed`,
//! unless an immediate cancel cuts the call off.

use amplifier_protocol::event::Event;
use amplifier_protocol::ids::SessionId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const EMITTER: &str = "tool";

/// A task is about to be handed to an agent. Hooks may deny it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct AgentSpawned {
    /// The agent.
    pub(super) agent: String,
    /// The session it will work in.
    pub(super) sub_session_id: String,
    /// The session that hands it out.
    pub(super) parent_session_id: SessionId,
    /// The call.
    pub(super) tool_call_id: String,
}

impl Event for AgentSpawned {
    const NAME: &'static str = "task:agent_spawned";
    const EMITTER: &'static str = EMITTER;
}

/// An earlier task is about to be gone on with. Hooks may deny it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct AgentResumed {
    /// The session of the earlier task.
    pub(super) session_id: String,
    /// The session that goes on with it.
    pub(super) parent_session_id: SessionId,
}

impl Event for AgentResumed {
    const NAME: &'static str = "task:agent_resumed";
    const EMITTER: &'static str = EMITTER;
}

/// An agent gave its answer, or failed to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct AgentCompleted {
    /// The agent, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<String>,
    /// The session it worked in.
    pub(super) sub_session_id: String,
    /// The session that handed the task out.
    pub(super) parent_session_id: SessionId,
    /// Whether there is an answer.
    pub(super) success: bool,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl Event for AgentCompleted {
    const NAME: &'static str = "task:agent_completed";
    const EMITTER: &'static str = EMITTER;
}
