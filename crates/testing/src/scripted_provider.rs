//! A model that plays a script and remembers what it was asked.

use std::sync::Mutex;
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::{Provider, ProviderCx};
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::content::{ContentBlock, ToolCallBlock};
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::provider::{ModelInfo, ProviderInfo};
use amplifier_protocol::stream::StreamEvent;
use amplifier_protocol::tool::ToolCall;
use amplifier_protocol::usage::Usage;
use async_trait::async_trait;

use crate::sync::lock;

/// One answer of a script.
#[derive(Debug, Clone)]
pub struct Step {
    delay: Duration,
    chunks: Vec<String>,
    outcome: Result<ChatResponse, LlmError>,
}

impl Step {
    /// An answer of plain text that consumed ten tokens and made five.
    pub fn say(text: impl Into<String>) -> Self {
        let usage = Some(Usage::new(10, 5));
        Self::from(ChatResponse { usage, finish_reason: Some("stop".to_owned()), ..ChatResponse::text(text) })
    }

    /// An answer that calls tools.
    pub fn call(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        let calls: Vec<_> = calls.into_iter().collect();
        let block = |call: &ToolCall| {
            let (id, name, input) = (call.id.clone(), call.name.clone(), call.arguments.clone());
            ContentBlock::ToolCall(ToolCallBlock { id, name, input, ..ToolCallBlock::default() })
        };
        Self::from(ChatResponse {
            content: calls.iter().map(block).collect(),
            tool_calls: Some(calls),
            usage: Some(Usage::new(10, 5)),
            finish_reason: Some("tool_calls".to_owned()),
            ..ChatResponse::default()
        })
    }

    /// The same answer, after a while.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The same answer, streamed in these pieces. Without, each text block is one piece.
    #[must_use]
    pub fn in_chunks(mut self, chunks: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.chunks = chunks.into_iter().map(Into::into).collect();
        self
    }
}

impl From<ChatResponse> for Step {
    fn from(response: ChatResponse) -> Self {
        Self { delay: Duration::ZERO, chunks: Vec::new(), outcome: Ok(response) }
    }
}

impl From<LlmError> for Step {
    fn from(error: LlmError) -> Self {
        Self { delay: Duration::ZERO, chunks: Vec::new(), outcome: Err(error) }
    }
}

impl From<&str> for Step {
    fn from(text: &str) -> Self {
        Self::say(text)
    }
}

/// What happens when the script is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Exhausted {
    /// The call fails, and [`ScriptedProvider::assert_played`] tells.
    #[default]
    Fail,
    /// The script begins again.
    Repeat,
    /// The last answer is given again.
    Last,
}

/// A model that gives the answers of a script, in order.
pub struct ScriptedProvider {
    name: String,
    steps: Vec<Step>,
    exhausted: Exhausted,
    requests: Mutex<Vec<ChatRequest>>,
}

impl ScriptedProvider {
    /// A provider named `scripted` with this script.
    pub fn new(steps: impl IntoIterator<Item = impl Into<Step>>) -> Self {
        Self {
            name: "scripted".to_owned(),
            steps: steps.into_iter().map(Into::into).collect(),
            exhausted: Exhausted::Fail,
            requests: Mutex::default(),
        }
    }

    /// The same, under another name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The same, going on like this after the end of the script.
    #[must_use]
    pub fn when_exhausted(mut self, exhausted: Exhausted) -> Self {
        self.exhausted = exhausted;
        self
    }

    /// Everything it was asked, in order.
    pub fn requests(&self) -> Vec<ChatRequest> {
        lock(&self.requests).clone()
    }

    /// How often it was asked.
    pub fn request_count(&self) -> usize {
        lock(&self.requests).len()
    }

    /// Panics unless the script was played exactly once to its end.
    #[expect(clippy::panic, reason = "an assertion for tests")]
    pub fn assert_played(&self) {
        let (asked, scripted) = (self.request_count(), self.steps.len());
        if asked != scripted {
            panic!("provider `{}` has a script of {scripted} answers and was asked {asked} times", self.name);
        }
    }

    fn step(&self, number: usize) -> Option<&Step> {
        self.steps.get(number).or_else(|| match self.exhausted {
            Exhausted::Fail => None,
            Exhausted::Repeat => self.steps.get(number.checked_rem(self.steps.len())?),
            Exhausted::Last => self.steps.last(),
        })
    }

    fn over(&self) -> LlmError {
        let text = format!("the script of {} answers is over", self.steps.len());
        LlmError { provider: Some(self.name.clone()), ..LlmError::new(LlmErrorKind::InvalidRequest, text) }
    }
}

#[async_trait]
impl Provider for ScriptedProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn info(&self) -> ProviderInfo {
        let (id, display_name) = (self.name.clone(), format!("Scripted ({})", self.name));
        let capabilities = vec!["tools".to_owned(), "streaming".to_owned()];
        ProviderInfo { id, display_name, capabilities, ..ProviderInfo::default() }
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        Ok(Vec::new())
    }

    async fn complete(&self, request: ChatRequest, cx: &ProviderCx) -> Result<ChatResponse, LlmError> {
        let number = {
            let mut requests = lock(&self.requests);
            requests.push(request);
            requests.len() - 1
        };
        let step = self.step(number).ok_or_else(|| self.over())?;
        let play = async {
            if !step.delay.is_zero() {
                tokio::time::sleep(step.delay).await;
            }
            if let Ok(response) = &step.outcome
                && cx.deltas.is_open()
            {
                stream(response, &step.chunks, cx).await;
            }
            step.outcome.clone()
        };
        tokio::select! {
            biased;
            () = cx.cancel.cancelled(CancelLevel::Immediate) => Err(LlmError::new(LlmErrorKind::Abort, "cancelled")),
            answer = play => answer,
        }
    }

    fn parse_tool_calls(&self, response: &ChatResponse) -> Vec<ToolCall> {
        response.calls()
    }
}

/// Sends an answer piece by piece, blocks in their order.
pub(crate) async fn stream(response: &ChatResponse, chunks: &[String], cx: &ProviderCx) {
    cx.send(StreamEvent::MessageStart).await;
    for (index, block) in (0_u32..).zip(&response.content) {
        match block {
            ContentBlock::Text(block) if chunks.is_empty() => {
                cx.send(StreamEvent::TextDelta { index, text: block.text.clone() }).await;
            }
            ContentBlock::Text(_) => {
                for text in chunks {
                    cx.send(StreamEvent::TextDelta { index, text: text.clone() }).await;
                }
            }
            ContentBlock::Thinking(block) => {
                cx.send(StreamEvent::ThinkingDelta { index, text: block.thinking.clone() }).await;
            }
            ContentBlock::ToolCall(block) => {
                let (id, name) = (block.id.clone(), block.name.clone());
                cx.send(StreamEvent::ToolCallStart { index, id, name }).await;
                cx.send(StreamEvent::ToolCallEnd { index, arguments: block.input.clone() }).await;
            }
            _ => {}
        }
    }
    cx.send(StreamEvent::MessageEnd { usage: response.usage.clone() }).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use amplifier_core::contracts::DeltaSink;

    #[tokio::test]
    async fn the_script_is_played_in_order_and_its_end_is_an_error() {
        let error = LlmError::new(LlmErrorKind::RateLimit, "slow down");
        let provider = ScriptedProvider::new([Step::say("a"), Step::from(error.clone())]);
        let cx = ProviderCx::default();
        let mut answers = Vec::new();
        for _ in 0..3 {
            answers.push(provider.complete(ChatRequest::default(), &cx).await);
        }
        assert_eq!(answers[0].as_ref().unwrap().visible_text(), "a");
        assert_eq!(answers[1], Err(error));
        assert_eq!(answers[2].as_ref().unwrap_err().kind, LlmErrorKind::InvalidRequest);
        assert_eq!(provider.request_count(), 3);
    }

    #[tokio::test]
    async fn pieces_arrive_before_the_answer() {
        let provider = ScriptedProvider::new([Step::say("ab").in_chunks(["a", "b"])]);
        let (deltas, mut pieces) = DeltaSink::open();
        let cx = ProviderCx { deltas, ..ProviderCx::default() };
        provider.complete(ChatRequest::default(), &cx).await.unwrap();
        drop(cx);
        let mut texts = Vec::new();
        while let Some(piece) = pieces.recv().await {
            if let StreamEvent::TextDelta { text, .. } = piece {
                texts.push(text);
            }
        }
        assert_eq!(texts, ["a", "b"]);
        provider.assert_played();
    }
}
