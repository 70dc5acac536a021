//! A conversation in memory. It never shortens: what does not fit is refused.

use std::sync::{Arc, Mutex};

use amplifier_core::contracts::{ContextError, ContextManager, RequestBudget};
use amplifier_core::estimate::estimate_tokens;
use amplifier_protocol::message::{Message, Messages};
use async_trait::async_trait;

use crate::sync::lock;

/// Keeps messages in a list that tests can look at.
#[derive(Default)]
pub struct MockContextManager {
    messages: Mutex<Messages>,
    broken: Mutex<Option<ContextError>>,
}

impl MockContextManager {
    /// An empty conversation.
    pub fn new() -> Self {
        Self::default()
    }

    /// A conversation that has these messages already.
    pub fn with_messages(messages: impl IntoIterator<Item = Message>) -> Self {
        let messages: Messages = messages.into_iter().map(Arc::new).collect();
        Self { messages: Mutex::new(messages), broken: Mutex::default() }
    }

    /// What it holds now.
    pub fn messages(&self) -> Messages {
        lock(&self.messages).clone()
    }

    /// The text of every message, in order: enough for most assertions.
    pub fn texts(&self) -> Vec<String> {
        lock(&self.messages).iter().map(|message| message.content.visible_text().into_owned()).collect()
    }

    /// Lets every operation fail from now on, or work again.
    pub fn set_broken(&self, broken: Option<ContextError>) {
        *lock(&self.broken) = broken;
    }

    fn check(&self) -> Result<(), ContextError> {
        lock(&self.broken).clone().map_or(Ok(()), Err)
    }
}

#[async_trait]
impl ContextManager for MockContextManager {
    async fn add_message(&self, message: Arc<Message>) -> Result<(), ContextError> {
        self.check()?;
        lock(&self.messages).push(message);
        Ok(())
    }

    async fn messages_for_request(&self, budget: RequestBudget) -> Result<Messages, ContextError> {
        self.check()?;
        let messages = self.messages();
        let needed = messages.iter().map(|message| estimate_tokens(&message.content.visible_text())).sum();
        let budget = budget.tokens(u64::MAX);
        if needed > budget { Err(ContextError::DoesNotFit { needed, budget }) } else { Ok(messages) }
    }

    async fn messages(&self) -> Result<Messages, ContextError> {
        self.check()?;
        Ok(Self::messages(self))
    }

    async fn set_messages(&self, messages: Messages) -> Result<(), ContextError> {
        self.check()?;
        *lock(&self.messages) = messages;
        Ok(())
    }

    async fn clear(&self) -> Result<(), ContextError> {
        self.check()?;
        lock(&self.messages).clear();
        Ok(())
    }
}
