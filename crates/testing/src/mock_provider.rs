//! A model that always says the same.

use amplifier_core::contracts::{Provider, ProviderCx};
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::llm_error::LlmError;
use amplifier_protocol::provider::{ModelInfo, ProviderInfo};
use amplifier_protocol::tool::ToolCall;
use async_trait::async_trait;

use crate::scripted_provider::{Exhausted, ScriptedProvider, Step};

/// Says one text, as often as it is asked. Named `mock`.
pub struct MockProvider(ScriptedProvider);

impl MockProvider {
    /// A provider that says this.
    pub fn saying(text: impl Into<String>) -> Self {
        let script = ScriptedProvider::new([Step::say(text)]);
        Self(script.named("mock").when_exhausted(Exhausted::Last))
    }

    /// The same, under another name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self(self.0.named(name))
    }

    /// Everything it was asked, in order.
    pub fn requests(&self) -> Vec<ChatRequest> {
        self.0.requests()
    }

    /// How often it was asked.
    pub fn request_count(&self) -> usize {
        self.0.request_count()
    }
}

impl Default for MockProvider {
    fn default() -> Self {
        Self::saying("Mock response")
    }
}

#[async_trait]
impl Provider for MockProvider {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn info(&self) -> ProviderInfo {
        ProviderInfo { display_name: "Mock".to_owned(), ..self.0.info() }
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        let (id, display_name) = ("mock-model".to_owned(), "Mock model".to_owned());
        let (context_window, max_output_tokens) = (200_000, 8_192);
        Ok(vec![ModelInfo { id, display_name, context_window, max_output_tokens, ..ModelInfo::default() }])
    }

    async fn complete(&self, request: ChatRequest, cx: &ProviderCx) -> Result<ChatResponse, LlmError> {
        self.0.complete(request, cx).await
    }

    fn parse_tool_calls(&self, response: &ChatResponse) -> Vec<ToolCall> {
        self.0.parse_tool_calls(response)
    }
}
