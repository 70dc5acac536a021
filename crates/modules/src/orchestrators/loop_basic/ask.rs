//! One question to the model: the gate before it, the request, the call, and what is told and kept of the answer.

use std::sync::Arc;

use amplifier_core::contracts::{DeltaSink, Provider, RequestBudget, TurnError};
use amplifier_core::coordinator::{CallError, Coordinator};
use amplifier_core::hooks::Sourced;
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::content::ContentBlock;
use amplifier_protocol::event::{
    ContentBlockDelta, ContentBlockEnd, ContentBlockStart, ErrorInfo, Event, ProviderError, ProviderRequest,
    ProviderResponse, ProviderToolSequenceRepaired, ThinkingDelta, ThinkingFinal,
};
use amplifier_protocol::hook::Injection;
use amplifier_protocol::message::{Content, Message, Messages, Role};
use amplifier_protocol::provider::ProviderInfo;
use amplifier_protocol::stream::StreamEvent;
use amplifier_protocol::tool::ToolCall;
use serde_json::{Value, json};

use super::Turn;
use super::request::{append, mend, passing};
use super::step::{Happened, Purpose, Round};

/// What the model reads when its questions are used up.
const WRAP_UP: &str = "<system-reminder source=\"orchestrator-loop-limit\">The number of steps for this turn is used \
    up and no more tools can be called. Answer now with what is known: what was done, what was found, and what is left \
    to do.</system-reminder>";

/// The provider a turn asks.
#[derive(Clone)]
pub(super) struct Chosen {
    name: String,
    provider: Arc<dyn Provider>,
    info: ProviderInfo,
}

/// A mounted provider by the name it is mounted under or by its module's id.
pub(super) fn named(coordinator: &Coordinator, wanted: &str) -> Option<(String, Arc<dyn Provider>)> {
    let short = wanted.strip_prefix("provider-").unwrap_or(wanted);
    let name = [wanted, short].into_iter().find(|name| coordinator.provider(name).is_some())?;
    Some((name.to_owned(), coordinator.provider(name)?))
}

/// The first of the plan, unless providers tell priorities: then the lowest number, the first of equals.
fn first(coordinator: &Coordinator) -> Option<(String, Arc<dyn Provider>)> {
    let providers = coordinator.providers();
    let priority = |provider: &Arc<dyn Provider>| {
        provider.info().defaults.get("priority").and_then(Value::as_i64).unwrap_or(100)
    };
    match providers.len() {
        0 | 1 => providers.into_iter().next(),
        _ => providers.into_iter().min_by_key(|(_, provider)| priority(provider)),
    }
}

impl Turn<'_> {
    pub(super) async fn ask(&mut self, round: Round) -> Happened {
        if self.coordinator.cancel().is_cancelled() {
            return Happened::Cancelled;
        }
        match self.try_ask(round).await {
            Ok(happened) => happened,
            Err(error) => Happened::Failed(error),
        }
    }

    async fn try_ask(&mut self, round: Round) -> Result<Happened, TurnError> {
        let mut chosen = self.provider()?;
        let announced = ProviderRequest {
            provider: chosen.name.clone(),
            iteration: round.iteration,
            max_reached: (round.purpose == Purpose::WrapUp).then_some(true),
            ..ProviderRequest::default()
        };
        let announced = self.coordinator.emit(announced).await;
        if let Some(reason) = announced.denied() {
            return Ok(Happened::Denied { reason: reason.to_owned() });
        }
        self.ephemeral.extend(items(announced.ephemeral));
        if announced.modified
            && let Some((name, provider)) = named(self.coordinator, &announced.event.provider)
            && name != chosen.name
        {
            chosen = Chosen { info: provider.info(), name, provider };
        }
        let mut request = self.request(&chosen, round.purpose).await?;
        request.model = announced.event.model;
        let response = match self.call(&chosen.name, request).await {
            Ok(response) => response,
            Err(error) => return Err(Box::pin(self.tell_failure(&chosen.name, error)).await),
        };
        let calls = chosen.provider.parse_tool_calls(&response);
        self.tell_answer(&chosen.name, &response, calls.len()).await;
        let text = response.visible_text();
        self.keep(response, &calls, round.purpose).await?;
        Ok(Happened::Answered { text, calls })
    }

    /// Chosen once a turn: a conversation that changes its model from step to step loses its prompt cache.
    fn provider(&mut self) -> Result<Chosen, TurnError> {
        if let Some(chosen) = &self.provider {
            return Ok(chosen.clone());
        }
        let wanted = self.config.default_provider.as_deref();
        let found =
            wanted.and_then(|wanted| named(self.coordinator, wanted)).or_else(|| first(self.coordinator));
        let Some((name, provider)) = found else {
            return Err(TurnError::Broken { message: "no provider is mounted".to_owned() });
        };
        let chosen = Chosen { info: provider.info(), name, provider };
        Ok(self.provider.insert(chosen).clone())
    }

    async fn request(&mut self, chosen: &Chosen, purpose: Purpose) -> Result<ChatRequest, TurnError> {
        let budget = RequestBudget::for_provider(chosen.info.clone());
        let (mut messages, missing) = mend(self.context.messages_for_request(budget).await?);
        if !missing.is_empty() {
            Box::pin(self.tell_mended(&chosen.name, &missing)).await;
        }
        append(&mut messages, std::mem::take(&mut self.ephemeral));
        if purpose == Purpose::WrapUp {
            messages.push(Arc::new(passing(Role::User, WRAP_UP.to_owned())));
        }
        Ok(self.dressed(messages, purpose))
    }

    fn dressed(&self, messages: Messages, purpose: Purpose) -> ChatRequest {
        let mut request = ChatRequest::new(messages);
        if purpose == Purpose::Work {
            request.tools = Some(self.coordinator.tool_specs()).filter(|tools| !tools.is_empty());
        }
        request.reasoning_effort.clone_from(&self.config.reasoning_effort);
        if self.config.extended_thinking {
            request.extra.insert("extended_thinking".to_owned(), Value::Bool(true));
        }
        request
    }

    /// Makes the call; where somebody wants to watch the answer form, the pieces are told as they come.
    async fn call(&mut self, name: &str, request: ChatRequest) -> Result<ChatResponse, CallError> {
        let hooks = self.coordinator.hooks();
        if !hooks.has(ContentBlockDelta::NAME) && !hooks.has(ThinkingDelta::NAME) {
            return self.coordinator.call_provider(name, request, DeltaSink::default()).await;
        }
        // Boxed, like everything below that most turns never do.
        Box::pin(self.call_watched(name, request)).await
    }

    async fn call_watched(
        &mut self,
        name: &str,
        mut request: ChatRequest,
    ) -> Result<ChatResponse, CallError> {
        request.stream = Some(true);
        let (sink, mut pieces) = DeltaSink::open();
        let mut call = std::pin::pin!(self.coordinator.call_provider(name, request, sink));
        let answer = loop {
            tokio::select! {
                biased;
                Some(piece) = pieces.recv() => tell_piece(self.coordinator, piece).await,
                answer = call.as_mut() => break answer,
            }
        };
        while let Ok(piece) = pieces.try_recv() {
            tell_piece(self.coordinator, piece).await;
        }
        answer
    }

    async fn tell_failure(&self, provider: &str, error: CallError) -> TurnError {
        // However a model call ends that was cut off, it ended because somebody wanted it to.
        if matches!(error, CallError::Model(_)) && self.coordinator.cancel().is_immediate() {
            return TurnError::Cancelled;
        }
        let told = match &error {
            CallError::Model(error) => Some((error.kind.name(), Some(error.retryable), error.status_code)),
            CallError::UnknownProvider { .. } | CallError::Broken { .. } => {
                Some(("RuntimeError", None, None))
            }
            _ => None,
        };
        if let Some((kind, retryable, status_code)) = told {
            let error = ErrorInfo { kind: kind.to_owned(), msg: error.to_string() };
            let provider = provider.to_owned();
            self.coordinator.emit(ProviderError { provider, error, retryable, status_code }).await;
        }
        error.into()
    }

    async fn tell_mended(&self, provider: &str, missing: &[ToolCall]) {
        let repair = |call: &ToolCall| json!({"tool_call_id": call.id, "tool_name": call.name});
        let repair_count = u64::try_from(missing.len()).unwrap_or(u64::MAX);
        let (provider, repairs) = (provider.to_owned(), missing.iter().map(repair).collect());
        self.coordinator.emit(ProviderToolSequenceRepaired { provider, repair_count, repairs }).await;
    }

    async fn tell_answer(&mut self, provider: &str, response: &ChatResponse, calls: usize) {
        if self.coordinator.listens(ProviderResponse::NAME) {
            let (provider, usage) = (provider.to_owned(), response.usage.clone());
            let tool_calls = u64::try_from(calls).unwrap_or(u64::MAX);
            let told = ProviderResponse { provider, response: None, usage, tool_calls };
            let told = self.coordinator.emit(told).await;
            self.ephemeral.extend(items(told.ephemeral));
        }
        let wanted = [ContentBlockStart::NAME, ContentBlockEnd::NAME, ThinkingFinal::NAME];
        if wanted.into_iter().any(|name| self.coordinator.listens(name)) {
            Box::pin(self.tell_blocks(response)).await;
        }
    }

    async fn tell_blocks(&self, response: &ChatResponse) {
        let total = response.content.len();
        for (at, block) in response.content.iter().enumerate() {
            let usage = response.usage.clone().filter(|_| at + 1 == total);
            let (block_index, total_blocks) = (count(at), Some(count(total)));
            let start =
                ContentBlockStart { block_type: block.kind(), block_index, total_blocks, metadata: None };
            self.coordinator.emit(start).await;
            // A block that is not JSON cannot exist: it came from JSON or is made of texts and JSON values.
            let whole = serde_json::to_value(block).unwrap_or(Value::Null);
            self.coordinator.emit(ContentBlockEnd { block_index, total_blocks, block: whole, usage }).await;
            if let ContentBlock::Thinking(thinking) = block {
                self.coordinator.emit(ThinkingFinal { text: thinking.thinking.clone() }).await;
            }
        }
    }

    /// Stores the answer as it came. An answer that says nothing is not stored: services refuse empty messages.
    async fn keep(
        &self,
        response: ChatResponse,
        calls: &[ToolCall],
        purpose: Purpose,
    ) -> Result<(), TurnError> {
        let mut blocks = response.content;
        let mut message = Message::new(Role::Assistant, Content::default());
        match purpose {
            Purpose::Work => message.tool_calls = calls.to_vec(),
            // Nobody offered tools and nobody will run these calls.
            Purpose::WrapUp => blocks.retain(|block| !matches!(block, ContentBlock::ToolCall(_))),
        }
        message.content = Content::Blocks(blocks);
        message.metadata = response.metadata.unwrap_or_default();
        if message.content.is_empty() && message.tool_calls.is_empty() {
            return Ok(());
        }
        self.store(message).await
    }
}

async fn tell_piece(coordinator: &Coordinator, piece: StreamEvent) {
    let (index, kind, text) = match piece {
        StreamEvent::TextDelta { index, text } => (index, "text", text),
        StreamEvent::ThinkingDelta { index, text } => {
            coordinator.emit(ThinkingDelta { text: text.clone() }).await;
            (index, "thinking", text)
        }
        StreamEvent::ToolCallDelta { index, arguments_fragment } => (index, "tool_call", arguments_fragment),
        _ => return,
    };
    let delta = ContentBlockDelta { block_type: kind.to_owned(), block_index: u64::from(index), text };
    coordinator.emit(delta).await;
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// What hooks gave, without who gave it.
pub(super) fn items(given: Vec<Sourced<Injection>>) -> impl Iterator<Item = Injection> {
    given.into_iter().map(|sourced| sourced.item)
}
