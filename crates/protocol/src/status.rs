//! How a session stands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::SessionId;
use crate::time::Timestamp;
use crate::usage::Usd;

/// How the last or the running turn stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Open: before the first turn, or in the middle of one.
    #[default]
    Running,
    /// The last turn ended well.
    Completed,
    /// The last turn ended with an error.
    Failed,
    /// The last turn was cancelled.
    Cancelled,
}

impl SessionState {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a session has done so far. Counted by the kernel as calls finish, so it is never stale.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionStatus {
    /// The session.
    pub session_id: SessionId,
    /// When it was opened.
    #[serde(default)]
    pub started_at: Timestamp,
    /// When it was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How the last turn stands.
    #[serde(default)]
    pub status: SessionState,
    /// Turns begun.
    #[serde(default)]
    pub turns: u64,
    /// Messages added to the context.
    #[serde(default)]
    pub total_messages: u64,
    /// Tool calls begun.
    #[serde(default)]
    pub tool_invocations: u64,
    /// Tool calls that did what was asked.
    #[serde(default)]
    pub tool_successes: u64,
    /// Tool calls that did not.
    #[serde(default)]
    pub tool_failures: u64,
    /// Tokens sent.
    #[serde(default)]
    pub total_input_tokens: u64,
    /// Tokens received.
    #[serde(default)]
    pub total_output_tokens: u64,
    /// Money, as far as providers told; absent when no call told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
    /// When something last happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_activity: Option<Timestamp>,
    /// The last turn's error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

impl SessionStatus {
    /// A session that did nothing yet.
    pub fn new(session_id: SessionId, started_at: Timestamp) -> Self {
        Self {
            session_id,
            started_at,
            ended_at: None,
            status: SessionState::Running,
            turns: 0,
            total_messages: 0,
            tool_invocations: 0,
            tool_successes: 0,
            tool_failures: 0,
            total_input_tokens: 0,
            total_output_tokens: 0,
            cost_usd: None,
            last_activity: None,
            last_error: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_alone_is_a_status() {
        let status: SessionStatus = serde_json::from_str(r#"{"session_id": "s"}"#).unwrap();
        assert_eq!(status, SessionStatus::new("s".parse().unwrap(), Timestamp::default()));
    }
}
