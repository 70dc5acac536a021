//! The mounted context as everybody sees it: each change is recorded first, and no call waits forever.

use std::future::Future;
use std::sync::Arc;

use amplifier_protocol::message::{Message, Messages};
use amplifier_protocol::record::RecordBody;
use async_trait::async_trait;

use super::Coordinator;
use super::mounts::Mounted;
use crate::contracts::{ContextError, ContextManager, RequestBudget};

pub(super) struct Recorded {
    pub(super) coordinator: Coordinator,
    pub(super) mounted: Mounted<dyn ContextManager>,
}

impl Recorded {
    async fn bounded<T>(
        &self,
        operation: &str,
        call: impl Future<Output = Result<T, ContextError>>,
    ) -> Result<T, ContextError> {
        let deadline = self.coordinator.deadlines().context;
        match self.coordinator.wait_for(self.mounted.owner.as_str(), operation, deadline, call).await {
            Ok(answer) => answer,
            Err(fault) => {
                Err(ContextError::NoAnswer { message: format!("`{}` {fault}", self.mounted.owner) })
            }
        }
    }
}

#[async_trait]
impl ContextManager for Recorded {
    async fn add_message(&self, message: Arc<Message>) -> Result<(), ContextError> {
        self.coordinator.record(|| RecordBody::Message(Arc::clone(&message)));
        self.coordinator.update_status(|status| status.total_messages += 1);
        self.bounded("context.add_message", self.mounted.item.add_message(message)).await
    }

    async fn messages_for_request(&self, budget: RequestBudget) -> Result<Messages, ContextError> {
        self.bounded("context.messages_for_request", self.mounted.item.messages_for_request(budget)).await
    }

    async fn messages(&self) -> Result<Messages, ContextError> {
        self.bounded("context.messages", self.mounted.item.messages()).await
    }

    async fn set_messages(&self, messages: Messages) -> Result<(), ContextError> {
        self.coordinator.record(|| RecordBody::Messages(messages.clone()));
        self.bounded("context.set_messages", self.mounted.item.set_messages(messages)).await
    }

    async fn clear(&self) -> Result<(), ContextError> {
        self.coordinator.record(|| RecordBody::Messages(Vec::new()));
        self.bounded("context.clear", self.mounted.item.clear()).await
    }
}
