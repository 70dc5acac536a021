//! The host's side of a turn that runs elsewhere: answers what the loop asks of the kernel.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_core::contracts::{DeltaSink, Pulse};
use amplifier_protocol::chat::ChatRequest;
use amplifier_protocol::frame::{RpcError, code};
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::ids::EventName;
use amplifier_protocol::tool::ToolCall;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::context;
use super::provider::Streaming;
use super::serve::{Answer, Incoming, Serve, no_pieces, outcome};
use crate::kernel::{Kernel, LocalKernel};
use crate::sync::lock;

/// The turns that run elsewhere now, by their numbers on the wire.
#[derive(Default)]
pub(super) struct Callbacks {
    open: Mutex<HashMap<u64, Arc<LocalKernel>>>,
    // One wire may serve many sessions, so turns have numbers of their own on it.
    last: AtomicU64,
}

/// A turn that can be called back; closed when dropped.
pub(super) struct OpenTurn<'a> {
    callbacks: &'a Callbacks,
    pub(super) turn: u64,
}

impl Drop for OpenTurn<'_> {
    fn drop(&mut self) {
        lock(&self.callbacks.open).remove(&self.turn);
    }
}

impl Callbacks {
    pub(super) fn open(&self, kernel: LocalKernel) -> OpenTurn<'_> {
        let turn = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        lock(&self.open).insert(turn, Arc::new(kernel));
        OpenTurn { callbacks: self, turn }
    }

    fn kernel(&self, turn: u64) -> Result<Arc<LocalKernel>, RpcError> {
        let kernel = lock(&self.open).get(&turn).cloned();
        kernel.ok_or_else(|| RpcError::new(code::INVALID_PARAMS, format!("turn {turn} is not running")))
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct OfTurn {
    pub(super) turn: u64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Complete {
    pub(super) turn: u64,
    pub(super) provider: String,
    pub(super) request: ChatRequest,
    pub(super) stream: Streaming,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ExecuteTool {
    pub(super) turn: u64,
    pub(super) call: ToolCall,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Emit {
    pub(super) turn: u64,
    pub(super) event: EventName,
    pub(super) data: Map<String, Value>,
    /// Seconds a handler may take, when its answers are collected.
    pub(super) timeout: Option<f64>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Process {
    pub(super) turn: u64,
    pub(super) result: HookResult,
    pub(super) event: EventName,
    pub(super) hook_name: String,
}

#[derive(Serialize, Deserialize)]
pub(super) struct OfCapability {
    pub(super) turn: u64,
    pub(super) name: String,
    pub(super) arguments: Value,
}

#[async_trait]
impl Serve for Callbacks {
    async fn serve(&self, call: Incoming) -> Answer {
        let OfTurn { turn } = call.read()?;
        let kernel = self.kernel(turn)?;
        match call.method.as_str() {
            "coordinator.mounted" => outcome(kernel.mounted().await),
            "provider.complete" => complete(&kernel, &call).await,
            "tool.execute" => outcome(kernel.execute_tool(call.read::<ExecuteTool>()?.call).await),
            "hooks.emit" => {
                let Emit { event, data, .. } = call.read()?;
                outcome(kernel.emit(event, data).await)
            }
            "hooks.emit_and_collect" => {
                let Emit { event, data, timeout, .. } = call.read()?;
                let timeout = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                let timeout = timeout.unwrap_or(Duration::from_secs(1));
                outcome(kernel.emit_and_collect(event, data, timeout).await)
            }
            "coordinator.process_hook_result" => {
                let Process { result, event, hook_name, .. } = call.read()?;
                outcome(kernel.process_hook_result(result, event, &hook_name).await)
            }
            "capability.get" => outcome(kernel.capability(&call.read::<OfCapability>()?.name).await),
            "capability.call" => {
                let OfCapability { name, arguments, .. } = call.read()?;
                outcome(kernel.call_capability(&name, arguments).await)
            }
            _ => context::serve(&*kernel.context(), &call).await,
        }
    }
}

async fn complete(kernel: &LocalKernel, call: &Incoming) -> Answer {
    let Complete { provider, request, stream, .. } = call.read()?;
    let (deltas, pieces) = match stream {
        Streaming::Pieces => DeltaSink::open(),
        Streaming::WholeOnly => (DeltaSink::default(), no_pieces()),
    };
    let answer = kernel.complete(&provider, request, deltas);
    outcome(call.attend(&Pulse::default(), pieces, answer).await)
}
