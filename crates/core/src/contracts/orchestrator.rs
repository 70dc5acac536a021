//! The orchestrator contract: who runs a turn.

use amplifier_protocol::llm_error::LlmError;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::context::ContextError;
use crate::coordinator::Coordinator;
use crate::ledger::LimitReached;

/// Runs one turn: from a prompt to an answer, through models and tools.
///
/// The kernel runs at most one turn of a session at a time. Implementers reach everything through `cx.coordinator`:
/// `call_provider` and `call_tool` bring limits, deadlines, journal and cancellation along; `emit` brings hooks.
/// Every turn that emitted `prompt:submit` ends with one `prompt:complete` and one `orchestrator:complete` that tell the
/// truth. After an immediate cancel a turn that does not end by itself is dropped a moment later.
#[async_trait]
pub trait Orchestrator: Send + Sync {
    /// Runs the turn and returns the answer's text.
    async fn execute(&self, prompt: Prompt, cx: &TurnCx) -> Result<String, TurnError>;
}

/// What a turn begins with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prompt {
    /// Something new is asked.
    Text(String),
    /// An interrupted turn goes on from what the context holds.
    Continue,
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// What a turn may use.
#[derive(Clone)]
pub struct TurnCx {
    /// The session's hub.
    pub coordinator: Coordinator,
    /// Which turn this is, beginning with 1.
    pub turn: u64,
}

/// Why a turn gave no answer. The original error travels unchanged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnError {
    /// A model call failed for good.
    #[error(transparent)]
    Model(#[from] LlmError),
    /// A spending limit was reached.
    #[error(transparent)]
    Limit(#[from] LimitReached),
    /// The conversation could not be read or changed.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// The turn was cancelled.
    #[error("the turn was cancelled")]
    Cancelled,
    /// What happened could not be written down, so nothing further was done.
    #[error("the journal could not be written: {message}")]
    Journal {
        /// What the journal said.
        message: String,
    },
    /// The orchestrator itself broke.
    #[error("orchestrator broke: {message}")]
    Broken {
        /// What happened.
        message: String,
    },
}
