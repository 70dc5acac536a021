//! The display contract: where messages for the person go.

use amplifier_protocol::hook::MessageLevel;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// Shows messages to the person.
#[async_trait]
pub trait DisplaySystem: Send + Sync {
    /// Shows one message. A display that cannot show it is silent: nothing depends on it.
    async fn show_message(&self, message: DisplayMessage);
}

/// A message for the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DisplayMessage {
    /// The text.
    pub message: String,
    /// How serious it is.
    pub level: MessageLevel,
    /// Who says it, such as `hook:lint`.
    pub source: String,
}
