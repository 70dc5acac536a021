//! What a provider tells of a call: the request, the answer, retries, mending, waiting, and what broke off.

use std::time::Duration;

use amplifier_core::contracts::ProviderCx;
use amplifier_core::coordinator::Coordinator;
use amplifier_core::redact::{redacted, truncate};
use amplifier_protocol::chat::ChatResponse;
use amplifier_protocol::event::{
    ErrorInfo, Event, LlmRequest, LlmResponse, LlmStreamAborted, LlmStreamBlockDelta, LlmStreamBlockEnd,
    LlmStreamBlockStart, ProviderRetry, ProviderToolSequenceRepaired,
};
use amplifier_protocol::llm_error::LlmError;
use amplifier_protocol::stream::StreamEvent;
use amplifier_protocol::tool::ToolCall;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::settings::Detail;
use super::{Ask, Call, Delivery};

/// A request waits because as many as allowed run already.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub(super) struct ProviderConcurrency {
    /// The provider.
    pub(super) provider: String,
    /// The model.
    pub(super) model: String,
    /// How many run.
    pub(super) active_requests: u64,
    /// How many wait, this one among them.
    pub(super) waiting_requests: u64,
    /// How many may run.
    pub(super) max_concurrent: u64,
}

impl Event for ProviderConcurrency {
    const NAME: &'static str = "provider:concurrency";
    const EMITTER: &'static str = "provider";
}

/// Tells the events of one provider.
pub(super) struct Teller {
    pub(super) provider: String,
    pub(super) coordinator: Coordinator,
    pub(super) detail: Detail,
}

impl Teller {
    pub(super) async fn repaired(&self, missing: &[ToolCall]) {
        let repair = |call: &ToolCall| json!({"tool_call_id": call.id, "tool_name": call.name});
        let repair_count = u64::try_from(missing.len()).unwrap_or(u64::MAX);
        let (provider, repairs) = (self.provider.clone(), missing.iter().map(repair).collect());
        self.coordinator.emit(ProviderToolSequenceRepaired { provider, repair_count, repairs }).await;
    }

    pub(super) async fn request(&self, ask: &Ask<'_>, call: &Call, cx: &ProviderCx) {
        if !self.coordinator.listens(LlmRequest::NAME) {
            return;
        }
        let told = LlmRequest {
            provider: self.provider.clone(),
            model: ask.model.to_owned(),
            message_count: u64::try_from(ask.history.turns.len()).unwrap_or(u64::MAX),
            request_id: Some(cx.request_id.clone()),
            has_system: Some(!ask.history.system.is_empty()),
            stream: Some(ask.delivery == Delivery::Streamed),
            raw: call.body.as_ref().and_then(|body| self.shown(|| body.clone())),
        };
        self.coordinator.emit(told).await;
    }

    pub(super) async fn response(
        &self,
        model: &str,
        answer: &Result<ChatResponse, LlmError>,
        took: Duration,
        cx: &ProviderCx,
    ) {
        if !self.coordinator.listens(LlmResponse::NAME) {
            return;
        }
        let whole = answer.as_ref().ok();
        let told = LlmResponse {
            provider: self.provider.clone(),
            model: model.to_owned(),
            status: if answer.is_ok() { "ok" } else { "error" }.to_owned(),
            duration_ms: took.as_secs_f64() * 1_000.0,
            request_id: Some(cx.request_id.clone()),
            usage: whole.and_then(|response| response.usage.clone()),
            error: answer.as_ref().err().map(ToString::to_string),
            raw: self.shown(|| match answer {
                Ok(response) => json!(response),
                Err(error) => json!(error),
            }),
        };
        self.coordinator.emit(told).await;
    }

    pub(super) async fn retry(
        &self,
        model: &str,
        (attempt, max_retries): (u32, u32),
        delay: Duration,
        error: &LlmError,
        cx: &ProviderCx,
    ) {
        let told = ProviderRetry {
            provider: self.provider.clone(),
            model: Some(model.to_owned()),
            attempt,
            max_retries,
            delay: delay.as_secs_f64(),
            error_type: error.kind.name().to_owned(),
            error_message: error.message.clone(),
            request_id: Some(cx.request_id.clone()),
        };
        self.coordinator.emit(told).await;
    }

    pub(super) async fn aborted(&self, error: &LlmError, cx: &ProviderCx) {
        let error = ErrorInfo { kind: error.kind.name().to_owned(), msg: error.message.clone() };
        self.coordinator.emit(LlmStreamAborted { request_id: cx.request_id.clone(), error }).await;
    }

    pub(super) async fn waiting(&self, told: ProviderConcurrency) {
        self.coordinator.emit(told).await;
    }

    /// The value as events may carry it, when they shall.
    fn shown(&self, value: impl FnOnce() -> Value) -> Option<Value> {
        match self.detail {
            Detail::Off => None,
            Detail::Short => Some(cut(redacted(value()))),
            Detail::Raw => Some(redacted(value())),
        }
    }
}

fn cut(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(truncate(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(cut).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, cut(value))).collect(),
        other => other,
    }
}

/// Tells the blocks of a streamed answer to hooks that want them. Nobody wants them in most sessions, so it asks first.
pub(super) struct BlockTeller<'a> {
    teller: &'a Teller,
    request_id: &'a str,
    wanted: bool,
    open: Option<(u32, &'static str, u64)>,
}

impl<'a> BlockTeller<'a> {
    pub(super) fn new(teller: &'a Teller, request_id: &'a str) -> Self {
        let hooks = teller.coordinator.hooks();
        let names = [LlmStreamBlockStart::NAME, LlmStreamBlockDelta::NAME, LlmStreamBlockEnd::NAME];
        let wanted = names.into_iter().any(|name| hooks.has(name));
        Self { teller, request_id, wanted, open: None }
    }

    pub(super) async fn tell(&mut self, event: &StreamEvent) {
        if !self.wanted {
            return;
        }
        match event {
            StreamEvent::TextDelta { index, text } => self.delta(*index, "text", text).await,
            StreamEvent::ThinkingDelta { index, text } => self.delta(*index, "thinking", text).await,
            StreamEvent::ToolCallStart { index, name, .. } => {
                self.begin(*index, "tool_use", Some(name.clone())).await
            }
            StreamEvent::MessageEnd { .. } => self.end().await,
            _ => {}
        }
    }

    async fn delta(&mut self, index: u32, block_type: &'static str, text: &str) {
        self.begin(index, block_type, None).await;
        let Some((_, _, sequence)) = &mut self.open else { return };
        let told = LlmStreamBlockDelta {
            request_id: self.request_id.to_owned(),
            block_index: u64::from(index),
            block_type: block_type.to_owned(),
            sequence: *sequence,
            text: text.to_owned(),
        };
        *sequence += 1;
        self.teller.coordinator.emit(told).await;
    }

    async fn begin(&mut self, index: u32, block_type: &'static str, name: Option<String>) {
        if self.open.is_some_and(|(open, _, _)| open == index) {
            return;
        }
        self.end().await;
        self.open = Some((index, block_type, 0));
        let (request_id, block_type) = (self.request_id.to_owned(), block_type.to_owned());
        let told = LlmStreamBlockStart { request_id, block_index: u64::from(index), block_type, name };
        self.teller.coordinator.emit(told).await;
    }

    async fn end(&mut self) {
        let Some((index, block_type, _)) = self.open.take() else { return };
        let (request_id, block_type) = (self.request_id.to_owned(), block_type.to_owned());
        let told = LlmStreamBlockEnd { request_id, block_index: u64::from(index), block_type };
        self.teller.coordinator.emit(told).await;
    }
}
