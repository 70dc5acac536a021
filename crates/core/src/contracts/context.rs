//! The context contract: who keeps the conversation.

use std::sync::Arc;

use amplifier_protocol::message::{Message, Messages};
use amplifier_protocol::provider::ProviderInfo;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// Keeps the conversation and decides what of it a model sees.
///
/// Shortening is a view: what was stored stays stored, a call and its result are never parted, order is kept and
/// system messages stay. Implementers are safe to call in parallel.
#[async_trait]
pub trait ContextManager: Send + Sync {
    /// Stores a message at the end.
    async fn add_message(&self, message: Arc<Message>) -> Result<(), ContextError>;

    /// What a model shall see now, within the budget.
    #[doc(alias = "get_messages_for_request")]
    async fn messages_for_request(&self, budget: RequestBudget) -> Result<Messages, ContextError>;

    /// Everything that was stored.
    #[doc(alias = "get_messages")]
    async fn messages(&self) -> Result<Messages, ContextError>;

    /// Replaces everything. A context that loaded its own file keeps that instead.
    async fn set_messages(&self, messages: Messages) -> Result<(), ContextError>;

    /// Forgets everything.
    async fn clear(&self) -> Result<(), ContextError>;
}

/// How much a request may hold.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RequestBudget {
    /// A limit in tokens; wins over the provider's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<u64>,
    /// The provider that will get the request, for its window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderInfo>,
}

impl RequestBudget {
    /// Room left free so that an estimate that is a little off does not overflow the window.
    const MARGIN: u64 = 1_000;

    /// The budget of a request to this provider.
    pub fn for_provider(provider: ProviderInfo) -> Self {
        Self { token_budget: None, provider: Some(provider) }
    }

    /// The limit in tokens: the explicit one, else the provider's window less its answer and a margin, else `fallback`.
    pub fn tokens(&self, fallback: u64) -> u64 {
        let from_provider = self.provider.as_ref().and_then(|provider| {
            let window = provider.default_number("context_window")?;
            let answer = provider.default_number("max_output_tokens")?;
            Some(window.saturating_sub(answer).saturating_sub(Self::MARGIN))
        });
        self.token_budget.or(from_provider).unwrap_or(fallback)
    }
}

/// Why the conversation could not be read or changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContextError {
    /// The store behind the context failed.
    #[error("the context's store failed: {message}")]
    Store {
        /// What the store said.
        message: String,
    },
    /// What must be kept does not fit the budget.
    #[error("the conversation needs at least {needed} tokens and may have {budget}")]
    DoesNotFit {
        /// The least it needs, estimated.
        needed: u64,
        /// What it may have.
        budget: u64,
    },
    /// The context did not answer: it ran out of time, broke, or the turn was cancelled.
    #[error("the context did not answer: {message}")]
    NoAnswer {
        /// What happened.
        message: String,
    },
}
