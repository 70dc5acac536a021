//! The guest's side of a turn: the kernel as a loop in another process sees it.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::cancel::CancelToken;
use amplifier_core::contracts::{CapabilityError, ContextManager, DeltaSink, TurnError};
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::frame::RpcError;
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::ids::EventName;
use amplifier_protocol::tool::{ToolCall, ToolResult};
use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::callbacks::{Complete, Emit, ExecuteTool, OfCapability, OfTurn, Process};
use super::context::RemoteContext;
use super::line::Line;
use super::peer::{Peer, Watch};
use super::provider::Streaming;
use super::serve::own_error;
use crate::kernel::{HookResultRefused, Inventory, Kernel, ToolNotRun};

/// Asks the kernel at the other end of the wire.
pub(super) struct Client {
    peer: Arc<Peer>,
    turn: u64,
    cancel: CancelToken,
}

fn broken(message: String) -> TurnError {
    TurnError::Broken { message }
}

impl Client {
    pub(super) fn new(peer: Arc<Peer>, turn: u64, cancel: CancelToken) -> Self {
        Self { peer, turn, cancel }
    }

    async fn ask<R: DeserializeOwned>(&self, method: &str, params: &impl Serialize) -> Result<R, RpcError> {
        self.peer.call(method, params, Watch::default()).await
    }
}

#[async_trait]
impl Kernel for Client {
    fn cancel(&self) -> &CancelToken {
        &self.cancel
    }

    async fn mounted(&self) -> Result<Inventory, TurnError> {
        let answer = self.ask("coordinator.mounted", &OfTurn { turn: self.turn }).await;
        answer.map_err(|error| own_error(error, broken))
    }

    async fn complete(
        &self,
        provider: &str,
        request: ChatRequest,
        deltas: DeltaSink,
    ) -> Result<ChatResponse, TurnError> {
        let (turn, provider, stream) = (self.turn, provider.to_owned(), Streaming::of(&deltas));
        let params = Complete { turn, provider, request, stream };
        let answer = self.peer.call("provider.complete", &params, Watch { deltas, ..Watch::default() }).await;
        answer.map_err(|error| own_error(error, broken))
    }

    async fn execute_tool(&self, call: ToolCall) -> Result<ToolResult, ToolNotRun> {
        let answer = self.ask("tool.execute", &ExecuteTool { turn: self.turn, call }).await;
        answer.map_err(|error| own_error(error, |message| ToolNotRun::Turn(broken(message))))
    }

    fn context(&self) -> Arc<dyn ContextManager> {
        Arc::new(RemoteContext { line: Line::whole(Arc::clone(&self.peer)), turn: Some(self.turn) })
    }

    async fn emit(&self, event: EventName, data: Map<String, Value>) -> Result<HookResult, TurnError> {
        let answer = self.ask("hooks.emit", &Emit { turn: self.turn, event, data, timeout: None }).await;
        answer.map_err(|error| own_error(error, broken))
    }

    async fn emit_and_collect(
        &self,
        event: EventName,
        data: Map<String, Value>,
        timeout: Duration,
    ) -> Result<Vec<Map<String, Value>>, TurnError> {
        let params = Emit { turn: self.turn, event, data, timeout: Some(timeout.as_secs_f64()) };
        let answer = self.ask("hooks.emit_and_collect", &params).await;
        answer.map_err(|error| own_error(error, broken))
    }

    async fn process_hook_result(
        &self,
        result: HookResult,
        event: EventName,
        hook_name: &str,
    ) -> Result<HookResult, HookResultRefused> {
        let params = Process { turn: self.turn, result, event, hook_name: hook_name.to_owned() };
        let answer = self.ask("coordinator.process_hook_result", &params).await;
        answer.map_err(|error| own_error(error, |message| HookResultRefused { message }))
    }

    async fn capability(&self, name: &str) -> Result<Option<Value>, CapabilityError> {
        let params = OfCapability { turn: self.turn, name: name.to_owned(), arguments: Value::Null };
        let answer = self.ask("capability.get", &params).await;
        answer.map_err(|error| own_error(error, |message| failed(name, message)))
    }

    async fn call_capability(&self, name: &str, arguments: Value) -> Result<Value, CapabilityError> {
        let params = OfCapability { turn: self.turn, name: name.to_owned(), arguments };
        let answer = self.ask("capability.call", &params).await;
        answer.map_err(|error| own_error(error, |message| failed(name, message)))
    }
}

fn failed(name: &str, message: String) -> CapabilityError {
    CapabilityError::Failed { name: name.to_owned(), message }
}
