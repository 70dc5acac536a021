//! The approval contract: who is asked.

use amplifier_protocol::hook::Question;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// Puts a question to a person.
///
/// The kernel asks one question at a time, joins equal questions, keeps the time itself, and takes everything that was
/// not offered for a no. What an answer means is the decision of its option, never its words.
#[async_trait]
pub trait ApprovalSystem: Send + Sync {
    /// Returns the text of the option that was chosen, as it was offered.
    async fn request_approval(&self, question: Question) -> Result<String, ApprovalError>;
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalError {
    /// Nobody answered in time; the question's default holds.
    #[error("nobody answered in time")]
    Timeout,
    /// The question could not be put.
    #[error("the question could not be put: {message}")]
    Unavailable {
        /// What happened.
        message: String,
    },
}
