//! The provider contract over a wire: `provider.describe`, `provider.list_models`, `provider.complete`.

use std::sync::Arc;

use amplifier_core::contracts::{DeltaSink, Provider, ProviderCx, Pulse};
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::frame::RpcError;
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::provider::{ModelInfo, ProviderInfo};
use amplifier_protocol::tool::ToolCall;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::line::Line;
use super::peer::{Peer, Watch};
use super::serve::{Answer, Incoming, Nothing, Serve, no_pieces, outcome, own_error, raw};

/// The same provider, at the other end of a wire.
pub async fn provider(provider: Arc<dyn Provider>) -> Result<Arc<dyn Provider>, RpcError> {
    at(Line::whole(Peer::connect(Arc::new(Nothing), served(provider)))).await
}

/// The provider that is served there.
pub(super) async fn at(line: Line) -> Result<Arc<dyn Provider>, RpcError> {
    let description = line.call("provider.describe", &(), Watch::default()).await?;
    Ok(Arc::new(Proxy { line, description }))
}

/// Serves a provider.
pub(super) fn served(provider: Arc<dyn Provider>) -> Arc<dyn Serve> {
    Arc::new(Server(provider))
}

#[derive(Serialize, Deserialize)]
struct Description {
    name: String,
    info: ProviderInfo,
}

#[derive(Serialize, Deserialize)]
struct Complete {
    request_id: String,
    request: ChatRequest,
    /// Whether the caller wants pieces.
    stream: Streaming,
}

/// Whether somebody listens to the pieces of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Streaming {
    Pieces,
    WholeOnly,
}

impl Streaming {
    pub(super) fn of(deltas: &DeltaSink) -> Self {
        if deltas.is_open() { Self::Pieces } else { Self::WholeOnly }
    }
}

struct Proxy {
    line: Line,
    description: Description,
}

pub(super) fn broken(message: String) -> LlmError {
    LlmError::new(LlmErrorKind::Network, message)
}

#[async_trait]
impl Provider for Proxy {
    fn name(&self) -> &str {
        &self.description.name
    }

    fn info(&self) -> ProviderInfo {
        self.description.info.clone()
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        let answer = self.line.call("provider.list_models", &(), Watch::default()).await;
        answer.map_err(|error| own_error(error, broken))
    }

    async fn complete(&self, request: ChatRequest, cx: &ProviderCx) -> Result<ChatResponse, LlmError> {
        let stream = Streaming::of(&cx.deltas);
        let params = Complete { request_id: cx.request_id.clone(), request, stream };
        let (cancel, deltas, pulse) = (cx.cancel.clone(), cx.deltas.clone(), cx.pulse.clone());
        let answer = self.line.call("provider.complete", &params, Watch { cancel, deltas, pulse }).await;
        answer.map_err(|error| own_error(error, broken))
    }

    /// The other end has parsed the calls already: this answer may not wait for a wire.
    fn parse_tool_calls(&self, response: &ChatResponse) -> Vec<ToolCall> {
        response.calls()
    }
}

struct Server(Arc<dyn Provider>);

impl Server {
    async fn complete(&self, call: &Incoming) -> Result<Result<ChatResponse, LlmError>, RpcError> {
        let Complete { request_id, request, stream } = call.read()?;
        let (deltas, pieces) = match stream {
            Streaming::Pieces => DeltaSink::open(),
            Streaming::WholeOnly => (DeltaSink::default(), no_pieces()),
        };
        let (cancel, pulse) = (call.cancel.clone(), Pulse::default());
        let cx = ProviderCx { request_id, cancel, deltas, pulse };
        let mut answer = call.attend(&cx.pulse, pieces, self.0.complete(request, &cx)).await;
        if let Ok(response) = &mut answer {
            let calls = self.0.parse_tool_calls(response);
            if !calls.is_empty() {
                response.tool_calls = Some(calls);
            }
        }
        Ok(answer)
    }
}

#[async_trait]
impl Serve for Server {
    async fn serve(&self, call: Incoming) -> Answer {
        match call.method.as_str() {
            "provider.describe" => raw(&Description { name: self.0.name().to_owned(), info: self.0.info() }),
            "provider.list_models" => outcome(self.0.list_models().await),
            "provider.complete" => outcome(self.complete(&call).await?),
            _ => call.unknown(),
        }
    }
}
