//! `provider-mock`: a model without a model. It plays a script, or answers from the conversation when it has none.
//!
//! For tests, demonstrations and measurements. It never talks to a network and never pretends to think.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::{Module, Mounted, Provider, ProviderCx};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::event::{Event, LlmRequest, LlmResponse};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::message::Role;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use amplifier_protocol::provider::{ModelInfo, ProviderInfo};
use amplifier_protocol::tool::ToolCall;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

mod answer;
mod converse;
pub(super) mod script;

use crate::table::BuiltIn;
use script::{Reply, Scripted};

/// Who answers when there is no script: the mock, or another provider without a model (`demo.rs`).
pub(super) struct Persona {
    pub(super) name: &'static str,
    pub(super) display_name: &'static str,
    pub(super) model: &'static str,
    /// Makes an answer from the conversation.
    pub(super) converse: fn(&ChatRequest) -> Reply,
}

const MOCK: Persona =
    Persona { name: "mock", display_name: "Mock", model: "mock-1", converse: converse::reply };
const CONTEXT_WINDOW: u64 = 200_000;
const MAX_OUTPUT_TOKENS: u64 = 8_192;

/// What a plan may configure.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// What to answer, in order; one entry for each request of the session. Without it, or with an empty list, answers
    /// are made from the conversation: tools are called when the prompt asks for them, and their results told.
    responses: Vec<Scripted>,
    /// What comes after the last entry: `repeat` begins again, `last` gives the last entry again and again, `error`
    /// fails. Without it: `last`, but a last entry that calls tools is not given again, because that would never end;
    /// what the tools said is told instead.
    on_exhausted: Option<OnExhausted>,
    /// The model's name in events and answers; `default_model` means the same.
    #[serde(alias = "default_model")]
    model: Option<String>,
    /// Which provider is asked first when several are mounted; lower is earlier.
    priority: Option<i64>,
}

/// What comes after the last entry of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OnExhausted {
    /// The first entry again.
    Repeat,
    /// The last entry again.
    Last,
    /// A failure.
    Error,
}

/// A provider that plays a script, or converses as its persona does.
pub(super) struct MockProvider {
    persona: Persona,
    config: Config,
    coordinator: Coordinator,
    played: AtomicUsize,
}

impl MockProvider {
    /// A provider without a script.
    pub(super) fn unscripted(persona: Persona, priority: Option<i64>, coordinator: Coordinator) -> Self {
        let config = Config { priority, ..Config::default() };
        Self { persona, config, coordinator, played: AtomicUsize::new(0) }
    }

    fn model(&self) -> &str {
        self.config.model.as_deref().unwrap_or(self.persona.model)
    }

    /// The entry for this request, or `None` when the conversation decides.
    fn next(&self) -> Result<Option<&Reply>, LlmError> {
        let responses = &self.config.responses;
        let at = self.played.fetch_add(1, Ordering::Relaxed);
        let entry = |at: usize| responses.get(at).map(|Scripted(reply)| reply);
        if responses.is_empty() || at < responses.len() {
            return Ok(entry(at));
        }
        match self.config.on_exhausted {
            Some(OnExhausted::Repeat) => Ok(entry(at % responses.len())),
            Some(OnExhausted::Last) => Ok(entry(responses.len() - 1)),
            None => Ok(entry(responses.len() - 1).filter(|last| last.tool_calls.is_empty())),
            Some(OnExhausted::Error) => {
                let message = format!("all {} scripted responses are used up", responses.len());
                Err(LlmError::new(LlmErrorKind::InvalidRequest, message))
            }
        }
    }

    async fn answer(&self, request: &ChatRequest, cx: &ProviderCx) -> Result<ChatResponse, LlmError> {
        let made;
        let reply = match self.next()? {
            Some(reply) => reply,
            None => {
                made = (self.persona.converse)(request);
                &made
            }
        };
        if reply.delay_ms > 0 {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(reply.delay_ms)) => {}
                () = cx.cancel.cancelled(CancelLevel::Immediate) => {
                    return Err(LlmError::new(LlmErrorKind::Abort, "cancelled while the mock was waiting"));
                }
            }
        }
        if let Some(error) = &reply.error {
            return Err(error.to_llm_error());
        }
        let response = answer::response(reply, request, &cx.request_id, self.model());
        if cx.deltas.is_open() {
            answer::stream(reply, &response, cx).await;
        }
        Ok(response)
    }

    async fn tell_request(&self, request: &ChatRequest, cx: &ProviderCx) {
        if self.coordinator.listens(LlmRequest::NAME) {
            let told = LlmRequest {
                provider: self.persona.name.to_owned(),
                model: self.model().to_owned(),
                message_count: u64::try_from(request.messages.len()).unwrap_or(u64::MAX),
                request_id: Some(cx.request_id.clone()),
                has_system: Some(request.messages.iter().any(|message| message.role == Role::System)),
                stream: Some(cx.deltas.is_open()),
                raw: None,
            };
            self.coordinator.emit(told).await;
        }
    }

    async fn tell_answer(&self, answer: &Result<ChatResponse, LlmError>, took: Duration, cx: &ProviderCx) {
        if self.coordinator.listens(LlmResponse::NAME) {
            let told = LlmResponse {
                provider: self.persona.name.to_owned(),
                model: self.model().to_owned(),
                status: if answer.is_ok() { "ok" } else { "error" }.to_owned(),
                duration_ms: took.as_secs_f64() * 1_000.0,
                request_id: Some(cx.request_id.clone()),
                usage: answer.as_ref().ok().and_then(|response| response.usage.clone()),
                error: answer.as_ref().err().map(ToString::to_string),
                raw: None,
            };
            self.coordinator.emit(told).await;
        }
    }
}

#[async_trait]
impl Provider for MockProvider {
    fn name(&self) -> &str {
        self.persona.name
    }

    fn info(&self) -> ProviderInfo {
        let mut defaults = Map::from_iter([
            ("model".to_owned(), Value::from(self.model())),
            ("context_window".to_owned(), Value::from(CONTEXT_WINDOW)),
            ("max_output_tokens".to_owned(), Value::from(MAX_OUTPUT_TOKENS)),
        ]);
        if let Some(priority) = self.config.priority {
            defaults.insert("priority".to_owned(), Value::from(priority));
        }
        ProviderInfo {
            id: self.persona.name.to_owned(),
            display_name: self.persona.display_name.to_owned(),
            credential_env_vars: Vec::new(),
            capabilities: ["tools", "streaming", "thinking", "local"].map(str::to_owned).to_vec(),
            defaults,
            config_fields: Vec::new(),
        }
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        Ok(vec![ModelInfo {
            id: self.model().to_owned(),
            display_name: self.persona.display_name.to_owned(),
            context_window: CONTEXT_WINDOW,
            max_output_tokens: MAX_OUTPUT_TOKENS,
            capabilities: self.info().capabilities,
            ..ModelInfo::default()
        }])
    }

    async fn complete(&self, request: ChatRequest, cx: &ProviderCx) -> Result<ChatResponse, LlmError> {
        self.tell_request(&request, cx).await;
        let began = tokio::time::Instant::now();
        let answer = self.answer(&request, cx).await.map_err(|error| LlmError {
            provider: Some(self.persona.name.to_owned()),
            model: Some(self.model().to_owned()),
            ..error
        });
        self.tell_answer(&answer, began.elapsed(), cx).await;
        answer
    }

    fn parse_tool_calls(&self, response: &ChatResponse) -> Vec<ToolCall> {
        response.calls()
    }
}

/// The module, as the table lists it.
pub(crate) struct Mock;

#[async_trait]
impl Module for Mock {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("provider-mock")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Provider
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config = cx.read_config(config)?;
        let (coordinator, played) = (cx.coordinator.clone(), AtomicUsize::new(0));
        cx.mount_provider(Arc::new(MockProvider { persona: MOCK, config, coordinator, played }));
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for Mock {
    fn info(&self) -> ModuleInfo {
        self.about("Answers from a script or from the conversation, without a model or a network.")
            .config::<Config>()
            .emits::<LlmRequest>()
            .emits::<LlmResponse>()
    }
}
