//! `context-simple`: keeps the conversation in memory and shows the model as much of it as fits.
//!
//! Nothing that was said is ever lost here: what the model does not see stays stored. How a view is made shorter is in
//! `window`. It writes no file; the journal does.

use std::sync::Arc;

use amplifier_core::contracts::{ContextError, ContextManager, Module, Mounted, RequestBudget};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::message::{Message, Messages};
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use serde_json::Value;

use super::events::with_events;
use super::window::{Window, WindowConfig};
use crate::table::BuiltIn;

struct SimpleContext(Arc<Window>);

#[async_trait]
impl ContextManager for SimpleContext {
    async fn add_message(&self, message: Arc<Message>) -> Result<(), ContextError> {
        let clipped = self.0.add(message);
        self.0.tell(clipped).await;
        Ok(())
    }

    async fn messages_for_request(&self, budget: RequestBudget) -> Result<Messages, ContextError> {
        self.0.for_request(budget).await
    }

    async fn messages(&self) -> Result<Messages, ContextError> {
        Ok(self.0.all())
    }

    async fn set_messages(&self, messages: Messages) -> Result<(), ContextError> {
        self.0.replace(messages);
        Ok(())
    }

    async fn clear(&self) -> Result<(), ContextError> {
        self.0.replace(Messages::new());
        Ok(())
    }
}

/// The module, as the table lists it.
pub(crate) struct Simple;

#[async_trait]
impl Module for Simple {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("context-simple")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Context
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: WindowConfig = cx.read_config(config)?;
        if let Some(message) = config.fault() {
            return Err(LoadError::Mount { id: self.id(), message });
        }
        let window = Window::new(config, cx.coordinator.clone());
        cx.mount_context(Arc::new(SimpleContext(window)));
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for Simple {
    fn info(&self) -> ModuleInfo {
        let info = self
            .about(
                "Keeps the conversation in memory and shortens what the model sees when it grows too long.",
            )
            .config::<WindowConfig>();
        with_events(info)
    }
}
