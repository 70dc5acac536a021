//! One question to the model: what comes before it, the gate, the request, the call, and what is kept of the answer.

use std::sync::Arc;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::{RequestBudget, TurnError};
use amplifier_core::coordinator::{CallError, Emitted};
use amplifier_core::hooks::Sourced;
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::content::ContentBlock;
use amplifier_protocol::event::{
    ContentBlockEnd, ContentBlockStart, ErrorInfo, Event, OrchestratorRateLimitDelay,
    OrchestratorSteeringInjected, ProviderError, ProviderRequest, ProviderResponse,
    ProviderToolSequenceRepaired, ThinkingFinal,
};
use amplifier_protocol::hook::Injection;
use amplifier_protocol::message::{Content, Message, Messages, Role};
use amplifier_protocol::tool::ToolCall;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::Turn;
use super::blocks::Blocks;
use super::choose::Chosen;
use super::request::{append, mend, passing};
use super::step::{Happened, Purpose, Round};

/// What the model reads when its questions are used up.
const WRAP_UP: &str = "<system-reminder source=\"orchestrator-loop-limit\">The number of steps for this turn is used \
    up and no more tools can be called. Answer now with what is known: what was done, what was found, and what is left \
    to do.</system-reminder>";

impl Turn<'_> {
    pub(super) async fn ask(&mut self, round: Round) -> Happened {
        if let Some(last_call) = self.last_call {
            Box::pin(self.keep_distance(last_call, round.iteration)).await;
        }
        if self.coordinator.cancel().is_cancelled() {
            return Happened::Cancelled;
        }
        match self.try_ask(round).await {
            Ok(happened) => happened,
            Err(error) => Happened::Failed(error),
        }
    }

    /// Asks, and asks the next provider where one failed and the config names another.
    async fn try_ask(&mut self, round: Round) -> Result<Happened, TurnError> {
        while let Some((content, remaining)) = self.helm.next() {
            Box::pin(self.take_up(content, remaining, round.iteration)).await?;
        }
        let carried = std::mem::take(&mut self.ephemeral);
        loop {
            let mut chosen = self.provider()?;
            let offered = chosen.model();
            let announced = self.announce(&chosen, round).await;
            if let Some(reason) = announced.denied() {
                return Ok(Happened::Denied { reason: reason.to_owned() });
            }
            if announced.modified
                && announced.event.provider != chosen.name
                && let Some(wanted) = self.by_name(&announced.event.provider)
            {
                chosen = wanted;
            }
            let mut injections = carried.clone();
            injections.extend(items(announced.ephemeral));
            let mut request = self.request(&chosen, round.purpose, injections).await?;
            // Only what a hook chose is asked for: the provider knows its own model best.
            request.model = announced.event.model.filter(|model| chosen_by_hook(model, &offered));
            let mut blocks = Blocks::default();
            match self.call(&chosen.name, request, &mut blocks).await {
                Ok(response) => return self.hear(&chosen, response, blocks, round.purpose).await,
                Err(error) => {
                    let shown = blocks.shown();
                    let error = Box::pin(self.tell_failure(&chosen.name, error, blocks)).await;
                    // Behind half an answer that a person read, another would stand as its second half.
                    if shown || !self.fall_back(chosen.name, &error) {
                        return Err(error.into());
                    }
                }
            }
        }
    }

    /// Waits until the last call is as long ago as the config wants.
    async fn keep_distance(&self, last_call: Instant, iteration: u64) {
        let (elapsed, wanted) = (last_call.elapsed(), self.config.min_delay());
        let delay = wanted.saturating_sub(elapsed);
        if delay.is_zero() {
            return;
        }
        let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (delay_ms, configured_ms, elapsed_ms) = (millis(delay), millis(wanted), millis(elapsed));
        let told = OrchestratorRateLimitDelay { delay_ms, configured_ms, elapsed_ms, iteration };
        self.coordinator.emit(told).await;
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = self.coordinator.cancel().cancelled(CancelLevel::Graceful) => {}
        }
    }

    /// Puts what was sent to the running turn into the conversation.
    async fn take_up(&self, content: String, remaining: usize, iteration: u64) -> Result<(), TurnError> {
        let mut message = Message::user(content.clone());
        message.metadata = Map::from_iter([("source".to_owned(), Value::String("steer".to_owned()))]);
        self.store(message).await?;
        let (orchestrator, metadata) = (self.policy.id.to_string(), None);
        let queued_remaining = u64::try_from(remaining).unwrap_or(u64::MAX);
        let told =
            OrchestratorSteeringInjected { orchestrator, content, iteration, queued_remaining, metadata };
        self.coordinator.emit(told).await;
        Ok(())
    }

    async fn announce(&self, chosen: &Chosen, round: Round) -> Emitted<ProviderRequest> {
        let announced = ProviderRequest {
            provider: chosen.name.clone(),
            model: chosen.model(),
            iteration: round.iteration,
            max_reached: (round.purpose == Purpose::WrapUp).then_some(true),
            ..ProviderRequest::default()
        };
        self.coordinator.emit(announced).await
    }

    async fn request(
        &self,
        chosen: &Chosen,
        purpose: Purpose,
        injections: Vec<Injection>,
    ) -> Result<ChatRequest, TurnError> {
        let budget = RequestBudget::for_provider(chosen.info.clone());
        let (mut messages, missing) = mend(self.context.messages_for_request(budget).await?);
        if !missing.is_empty() {
            Box::pin(self.tell_mended(&chosen.name, &missing)).await;
        }
        append(&mut messages, injections);
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

    /// Tells and keeps what the model answered.
    async fn hear(
        &mut self,
        chosen: &Chosen,
        response: ChatResponse,
        blocks: Blocks,
        purpose: Purpose,
    ) -> Result<Happened, TurnError> {
        let calls = chosen.provider.parse_tool_calls(&response);
        if self.coordinator.listens(ProviderResponse::NAME) {
            let (provider, usage) = (chosen.name.clone(), response.usage.clone());
            let tool_calls = u64::try_from(calls.len()).unwrap_or(u64::MAX);
            let finish_reason = response.finish_reason.clone();
            let told = ProviderResponse { provider, response: None, usage, tool_calls, finish_reason };
            let told = self.coordinator.emit(told).await;
            self.ephemeral.extend(items(told.ephemeral));
        }
        let wanted = [ContentBlockStart::NAME, ContentBlockEnd::NAME, ThinkingFinal::NAME];
        if wanted.into_iter().any(|name| self.coordinator.listens(name)) {
            Box::pin(self.tell_blocks(&response, blocks)).await;
        }
        if let Some(why) = response.finish_reason.as_deref().and_then(cut_off) {
            Box::pin(self.warn(format!("the answer of `{}` is not whole: {why}", chosen.name))).await;
        }
        let text = response.visible_text();
        self.keep(response, &calls, purpose).await?;
        if calls.is_empty() && purpose == Purpose::Work && !self.helm.close_if_empty() {
            return Ok(Happened::Steered { text });
        }
        Ok(Happened::Answered { text, calls })
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

    /// Tells that a call failed, unless it was meant to stop, and closes what was begun of its answer.
    async fn tell_failure(&mut self, provider: &str, error: CallError, blocks: Blocks) -> CallError {
        // However a model call ends that was cut off, it ended because somebody wanted it to.
        let error = match error {
            CallError::Model(_) if self.coordinator.cancel().is_immediate() => CallError::Cancelled,
            other => other,
        };
        if error == CallError::Cancelled {
            self.partial = blocks.text();
        }
        self.tell_broken_off(blocks).await;
        let told = match &error {
            CallError::Model(error) => {
                let request_id = error.request_id.clone();
                Some((error.kind.name(), Some(error.retryable), error.status_code, request_id))
            }
            CallError::UnknownProvider { .. } | CallError::Broken { .. } => {
                Some(("RuntimeError", None, None, None))
            }
            _ => None,
        };
        if let Some((kind, retryable, status_code, request_id)) = told {
            let error = ErrorInfo { kind: kind.to_owned(), msg: error.to_string() };
            let provider = provider.to_owned();
            let told = ProviderError { provider, error, retryable, status_code, request_id };
            self.coordinator.emit(told).await;
        }
        error
    }

    async fn tell_mended(&self, provider: &str, missing: &[ToolCall]) {
        let repair = |call: &ToolCall| json!({"tool_call_id": call.id, "tool_name": call.name});
        let repair_count = u64::try_from(missing.len()).unwrap_or(u64::MAX);
        let (provider, repairs) = (provider.to_owned(), missing.iter().map(repair).collect());
        self.coordinator.emit(ProviderToolSequenceRepaired { provider, repair_count, repairs }).await;
    }
}

/// Why an answer that ended so is not whole; nothing where it is.
fn cut_off(finish_reason: &str) -> Option<&'static str> {
    match finish_reason {
        "length" => Some(
            "the most tokens of an answer are used up; `max_tokens` in the provider's config allows more",
        ),
        "content_filter" => Some("the service broke it off because of its content"),
        _ => None,
    }
}

/// Whether a model is another than the one that was announced.
fn chosen_by_hook(model: &str, offered: &Option<String>) -> bool {
    offered.as_deref() != Some(model)
}

/// What hooks gave, without who gave it.
pub(super) fn items(given: Vec<Sourced<Injection>>) -> impl Iterator<Item = Injection> {
    given.into_iter().map(|sourced| sourced.item)
}
