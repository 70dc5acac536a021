//! The provider contract.

use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::llm_error::LlmError;
use amplifier_protocol::provider::{ModelInfo, ProviderInfo};
use amplifier_protocol::stream::StreamEvent;
use amplifier_protocol::tool::ToolCall;
use async_trait::async_trait;
use tokio::sync::mpsc;

use super::tool::Pulse;
use crate::cancel::CancelToken;
use crate::ledger::CallBound;

/// A door to a model service.
///
/// Implementers keep every content block as the service made it, signatures included, report usage, and turn every
/// failure into an [`LlmError`] of the right kind. The kernel may call `complete` in parallel.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The name it is mounted under unless the plan says otherwise.
    fn name(&self) -> &str;

    /// Who it is and what it can do.
    #[doc(alias = "get_info")]
    fn info(&self) -> ProviderInfo;

    /// The models on offer; empty where the service cannot list them.
    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError>;

    /// Answers one request. When `cx.deltas` is open the answer is also sent piece by piece as it forms; the returned
    /// answer is whole either way.
    async fn complete(&self, request: ChatRequest, cx: &ProviderCx) -> Result<ChatResponse, LlmError>;

    /// The most that answering this request may take, where that is known before: never less than it will take. Under a
    /// limit of tokens or money, calls without it run one after the other.
    fn bound(&self, _request: &ChatRequest) -> CallBound {
        CallBound::default()
    }

    /// The calls of an answer, in order.
    fn parse_tool_calls(&self, response: &ChatResponse) -> Vec<ToolCall>;
}

/// What a model call may use.
#[derive(Clone, Default)]
pub struct ProviderCx {
    /// Joins this call's request, answer, retries and pieces in the event log.
    pub request_id: String,
    /// Asks the call to stop; the connection is closed when its future is dropped.
    pub cancel: CancelToken,
    /// Takes the pieces of the answer.
    pub deltas: DeltaSink,
    /// Tells the watch that the call is alive; every piece sent is a beat.
    pub pulse: Pulse,
}

impl ProviderCx {
    /// Passes one piece of the answer on, waiting while the reader is behind.
    pub async fn send(&self, event: StreamEvent) {
        self.pulse.beat();
        self.deltas.send(event).await;
    }
}

/// Where the pieces of an answer go. Closed by default: then nobody wants them.
#[derive(Clone, Default)]
pub struct DeltaSink(Option<mpsc::Sender<StreamEvent>>);

impl DeltaSink {
    /// An open sink and its reading end. The queue is short, so a slow reader slows the sender instead of filling memory.
    pub fn open() -> (Self, mpsc::Receiver<StreamEvent>) {
        let (sender, receiver) = mpsc::channel(64);
        (Self(Some(sender)), receiver)
    }

    /// Whether somebody listens.
    pub fn is_open(&self) -> bool {
        self.0.as_ref().is_some_and(|sender| !sender.is_closed())
    }

    /// Passes one piece on. A reader that went away is not an error: the whole answer is still returned.
    pub async fn send(&self, event: StreamEvent) {
        if let Some(sender) = &self.0 {
            drop(sender.send(event).await);
        }
    }
}
