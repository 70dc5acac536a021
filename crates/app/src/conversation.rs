//! What a person does with the conversation of an open session, as the model knows it: keeps it in a file, or has it forgotten.
//! A summary in its place is `compact.rs`'s, going back in it `sessions/rewind.rs`'s.

use std::sync::Arc;

use amplifier_core::contracts::{ContextError, ContextManager};
use amplifier_core::redact::redacted;

use crate::open::{AppError, OpenSession};
use crate::output::{Output, OutputError};

/// Why the conversation was not kept or forgotten.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConversationError {
    /// Nobody keeps one.
    #[error("the session has no context")]
    NoContext,
    #[error(transparent)]
    Context(#[from] ContextError),
    #[error("the conversation cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl ConversationError {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Output(error) => Some(error.hint()),
            Self::NoContext | Self::Context(_) | Self::Json(_) => None,
        }
    }
}

/// The model knows nothing of what was said.
#[derive(Debug)]
pub struct Cleared {
    /// Why the views do not show it yet. The journal has it, and they are made again from it.
    pub stale: Option<AppError>,
}

impl OpenSession {
    /// Writes the conversation as JSON and says how many messages it has. Like an export: secrets stay in the session.
    pub async fn save(&self, output: &Output) -> Result<usize, ConversationError> {
        let messages = self.context()?.messages().await?;
        let text = serde_json::to_string_pretty(&redacted(serde_json::to_value(&messages)?))?;
        output.write(self.secrets().hidden(&text).as_bytes())?;
        Ok(messages.len())
    }

    /// Has the model forget the conversation. The journal keeps it, so a rewind brings it back. Call it between turns.
    pub async fn clear(&self) -> Result<Cleared, ConversationError> {
        self.context()?.clear().await?;
        Ok(Cleared { stale: self.update_views().await.err() })
    }

    fn context(&self) -> Result<Arc<dyn ContextManager>, ConversationError> {
        self.session.coordinator().context().ok_or(ConversationError::NoContext)
    }
}
