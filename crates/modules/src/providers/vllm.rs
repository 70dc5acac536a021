//! `provider-vllm`: a vLLM server. It speaks Chat Completions; what is its own is where it is, that it needs no key, and
//! that it tells how much its model can take.

use amplifier_core::contracts::{Module, Mounted};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::llm_error::LlmError;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use amplifier_protocol::provider::ModelInfo;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::chat_completions::{self, CAPABILITIES, Protocol};
use super::openai::Reasoning;
use super::wire::{self, About, Ask, Call, Learnt, Reader, Resumes, Service, WireProvider};
use crate::table::BuiltIn;

const KEYS: &[&str] = &["VLLM_API_KEY"];
const PLACES: &[&str] = &["VLLM_BASE_URL"];
const USUAL_PLACE: &str = "http://localhost:8000/v1";

/// Keys of older configs that have no effect here, and why.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("reasoning_summary", "the server tells its reasoning whole"),
    ("truncation", "the server never drops what does not fit"),
    ("enable_state", "every request carries the whole conversation"),
];

/// What a plan may configure beside the keys that all providers have.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// How to reason, where neither a request nor `reasoning_effort` says: an effort, or an object with `effort`.
    reasoning: Option<Reasoning>,
    #[serde(flatten)]
    chat: chat_completions::Config,
}

/// Seconds between two parts of an answer: a busy server lets some wait long.
const IDLE: f64 = 300.0;

/// Chat Completions, and a server that knows its limits.
struct Served(Protocol);

impl Service for Served {
    fn about(&self) -> About {
        self.0.about()
    }

    fn call(&self, ask: &Ask<'_>) -> Result<Call, LlmError> {
        self.0.call(ask)
    }

    fn reader(&self) -> Box<dyn Reader> {
        self.0.reader()
    }

    fn list(&self) -> Option<Call> {
        self.0.list()
    }

    fn models(&self, listed: &Value) -> Vec<ModelInfo> {
        self.0.models(listed)
    }

    fn probe(&self, _model: &str) -> Option<Call> {
        self.0.list()
    }

    fn learn(&self, model: &str, told: &Value) -> Learnt {
        let cards = self.0.models(told);
        let card = cards.iter().find(|card| card.id == model);
        let window = card.map(|card| card.context_window).filter(|window| *window > 0);
        Learnt { context_window: window, ..Learnt::default() }
    }

    fn resumes(&self) -> Resumes {
        self.0.resumes()
    }
}

/// The module, as the table lists it.
pub(crate) struct Vllm;

#[async_trait]
impl Module for Vllm {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("provider-vllm")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Provider
    }

    async fn mount(&self, mut config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let patience = wire::variable(&cx.coordinator, "VLLM_STREAM_IDLE_TIMEOUT").await;
        let patience = patience.and_then(|seconds| seconds.trim().parse::<f64>().ok()).unwrap_or(IDLE);
        let defaults = json!({"idle_timeout": patience});
        wire::leave_out(cx, &mut config, WITHOUT_EFFECT);
        let (settings, Config { reasoning, mut chat }) = wire::read(cx, config, defaults)?;
        let effort = reasoning.as_ref().and_then(Reasoning::effort).map(str::to_owned);
        chat.reasoning_effort = chat.reasoning_effort.or(effort);
        let settings = settings.with_key(cx, KEYS).await.with_base_url(cx, PLACES, Some(USUAL_PLACE)).await;
        let about = About {
            id: "vllm".to_owned(),
            display_name: "vLLM".to_owned(),
            credential_env_vars: KEYS,
            capabilities: CAPABILITIES,
            default_model: "openai/gpt-oss-20b".to_owned(),
        };
        let service = Served(Protocol::new(about, chat, &settings));
        WireProvider::mount_and_learn(service, settings, cx).await
    }
}

impl BuiltIn for Vllm {
    fn info(&self) -> ModuleInfo {
        wire::described::<Config>(self.about("Asks a vLLM server."))
    }
}
