//! The models that can be asked instead of the one that is.

use std::time::Duration;

use amplifier_protocol::llm_error::LlmError;
use amplifier_protocol::provider::ModelInfo;

use super::Seat;
use crate::providers;

/// How long a provider may take to list its models.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why the models are not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelsError {
    #[error("the session has no provider")]
    NoProvider,
    #[error("`{provider}` took too long to list its models")]
    TooSlow { provider: String },
    #[error(transparent)]
    Provider(#[from] LlmError),
}

impl Seat {
    /// The models of the provider that is asked; empty where its service cannot list them.
    pub async fn models(&self) -> Result<Vec<ModelInfo>, ModelsError> {
        let asked = providers::asked(self.opened.session.coordinator());
        let (provider, asked) = asked.ok_or(ModelsError::NoProvider)?;
        match tokio::time::timeout(PATIENCE, asked.list_models()).await {
            Ok(listed) => Ok(listed?),
            Err(_) => Err(ModelsError::TooSlow { provider }),
        }
    }
}
