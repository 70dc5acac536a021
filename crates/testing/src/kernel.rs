//! What a loop in another process may ask of the kernel, by name.
//!
//! A loop written against [`Kernel`] runs here, with [`LocalKernel`], and elsewhere, with the client of
//! [`crate::wire`]. It is also the list of callbacks that a host of foreign loops has to answer.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::cancel::CancelToken;
use amplifier_core::contracts::{
    Capability, CapabilityError, ContextError, ContextManager, DeltaSink, Prompt, RequestBudget, TurnCx,
    TurnError,
};
use amplifier_core::coordinator::{CallError, MountPoint};
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::ids::EventName;
use amplifier_protocol::message::{Message, Messages};
use amplifier_protocol::tool::{ToolCall, ToolResult, ToolSpec};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The callbacks of a running turn. Every parameter and result is a serde type.
#[async_trait]
pub trait Kernel: Send + Sync {
    /// The wish to stop.
    fn cancel(&self) -> &CancelToken;

    /// `coordinator.mounted`: which providers and tools there are, in plan order.
    async fn mounted(&self) -> Result<Inventory, TurnError>;

    /// `provider.complete`: one model call, with limits, deadline, record and cancel.
    async fn complete(
        &self,
        provider: &str,
        request: ChatRequest,
        deltas: DeltaSink,
    ) -> Result<ChatResponse, TurnError>;

    /// `tool.execute`: one tool call, with limits, deadline, record and cancel.
    async fn execute_tool(&self, call: ToolCall) -> Result<ToolResult, ToolNotRun>;

    /// The conversation: `context.add_message`, `context.messages` and the rest.
    fn context(&self) -> Arc<dyn ContextManager>;

    /// `hooks.emit`: passes an event through the hooks and applies nothing.
    async fn emit(&self, event: EventName, data: Map<String, Value>) -> Result<HookResult, TurnError>;

    /// `hooks.emit_and_collect`: gathers what handlers give.
    async fn emit_and_collect(
        &self,
        event: EventName,
        data: Map<String, Value>,
        timeout: Duration,
    ) -> Result<Vec<Map<String, Value>>, TurnError>;

    /// `coordinator.process_hook_result`: shows, asks and stores what a result of [`Kernel::emit`] wants.
    async fn process_hook_result(
        &self,
        result: HookResult,
        event: EventName,
        hook_name: &str,
    ) -> Result<HookResult, HookResultRefused>;

    /// `capability.get`: data offered under a name; `None` also for what can only be called.
    async fn capability(&self, name: &str) -> Result<Option<Value>, CapabilityError>;

    /// `capability.call`: calls what is offered under a name.
    async fn call_capability(&self, name: &str, arguments: Value) -> Result<Value, CapabilityError>;
}

/// Runs a turn with nothing but the callbacks, and so in any process.
#[async_trait]
pub trait KernelLoop: Send + Sync {
    /// Runs the turn and returns the answer's text.
    async fn run(&self, prompt: Prompt, kernel: &dyn Kernel) -> Result<String, TurnError>;
}

/// What a loop finds mounted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Inventory {
    /// The providers' names, the default one first.
    pub providers: Vec<String>,
    /// What every tool offers.
    pub tools: Vec<Arc<ToolSpec>>,
}

/// Why a tool was not run to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ToolNotRun {
    /// The model shall read why, and the turn goes on.
    #[error("{message}")]
    Answerable {
        /// What happened.
        message: String,
    },
    /// The turn is over.
    #[error(transparent)]
    Turn(#[from] TurnError),
}

impl From<CallError> for ToolNotRun {
    fn from(error: CallError) -> Self {
        match error {
            CallError::UnknownTool { .. } => Self::Answerable { message: format!("Error: {error}") },
            CallError::Broken { .. } => {
                Self::Answerable { message: format!("Error executing tool: {error}") }
            }
            other => Self::Turn(other.into()),
        }
    }
}

/// Why a hook's result could not be applied, as far as the loop has to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct HookResultRefused {
    /// What was refused, and by which rule.
    pub message: String,
}

/// The callbacks answered by the coordinator of this process.
pub struct LocalKernel(pub TurnCx);

#[async_trait]
impl Kernel for LocalKernel {
    fn cancel(&self) -> &CancelToken {
        self.0.coordinator.cancel()
    }

    async fn mounted(&self) -> Result<Inventory, TurnError> {
        let coordinator = &self.0.coordinator;
        let providers = coordinator.mounted(&MountPoint::Providers);
        Ok(Inventory { providers, tools: coordinator.tool_specs() })
    }

    async fn complete(
        &self,
        provider: &str,
        request: ChatRequest,
        deltas: DeltaSink,
    ) -> Result<ChatResponse, TurnError> {
        Ok(self.0.coordinator.call_provider(provider, request, deltas).await?)
    }

    async fn execute_tool(&self, call: ToolCall) -> Result<ToolResult, ToolNotRun> {
        Ok(self.0.coordinator.call_tool(&call).await?)
    }

    fn context(&self) -> Arc<dyn ContextManager> {
        self.0.coordinator.context().unwrap_or_else(|| Arc::new(NoContext))
    }

    async fn emit(&self, event: EventName, data: Map<String, Value>) -> Result<HookResult, TurnError> {
        Ok(self.0.coordinator.dispatch_for_remote(event, data).await)
    }

    async fn emit_and_collect(
        &self,
        event: EventName,
        data: Map<String, Value>,
        timeout: Duration,
    ) -> Result<Vec<Map<String, Value>>, TurnError> {
        Ok(self.0.coordinator.emit_and_collect(event, data, timeout).await)
    }

    async fn process_hook_result(
        &self,
        result: HookResult,
        event: EventName,
        hook_name: &str,
    ) -> Result<HookResult, HookResultRefused> {
        let processed = self.0.coordinator.process_hook_result(result, &event, hook_name).await;
        processed.map_err(|refused| HookResultRefused { message: refused.to_string() })
    }

    async fn capability(&self, name: &str) -> Result<Option<Value>, CapabilityError> {
        Ok(match self.0.coordinator.capability(name) {
            Some(Capability::Value(value)) => Some(value),
            Some(Capability::Call(_)) | None => None,
        })
    }

    async fn call_capability(&self, name: &str, arguments: Value) -> Result<Value, CapabilityError> {
        self.0.coordinator.call_capability(name, arguments).await
    }
}

/// Stands where no context is mounted and says so.
struct NoContext;

impl NoContext {
    fn absent<T>() -> Result<T, ContextError> {
        Err(ContextError::NoAnswer { message: "no context is mounted".to_owned() })
    }
}

#[async_trait]
impl ContextManager for NoContext {
    async fn add_message(&self, _message: Arc<Message>) -> Result<(), ContextError> {
        Self::absent()
    }

    async fn messages_for_request(&self, _budget: RequestBudget) -> Result<Messages, ContextError> {
        Self::absent()
    }

    async fn messages(&self) -> Result<Messages, ContextError> {
        Self::absent()
    }

    async fn set_messages(&self, _messages: Messages) -> Result<(), ContextError> {
        Self::absent()
    }

    async fn clear(&self) -> Result<(), ContextError> {
        Self::absent()
    }
}
