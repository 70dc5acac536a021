//! `provider-chat-completions`: any server that speaks the Chat Completions protocol, such as llama.cpp, vLLM, LM Studio,
//! OpenRouter or LiteLLM. `request.rs` maps what is asked, `reader.rs` what is answered; the rest is `wire`'s.

use std::sync::Arc;

use amplifier_core::contracts::{Module, Mounted};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::llm_error::LlmError;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use amplifier_protocol::provider::ModelInfo;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::wire::{self, About, Ask, Call, Reader, Resumes, Service, Settings, WireProvider};
use crate::table::BuiltIn;

mod reader;
mod request;
#[cfg(test)]
mod request_tests;

const NAME: &str = "chat-completions";
const KEYS: &[&str] = &["CHAT_COMPLETIONS_API_KEY"];
const PLACES: &[&str] = &["CHAT_COMPLETIONS_BASE_URL"];
/// What such servers can do; what a model can do is for the server to say.
pub(super) const CAPABILITIES: &[&str] = &["tools", "streaming", "thinking", "vision", "json_mode"];

/// What a plan may configure beside the keys that all providers have.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Config {
    /// The name it is mounted under.
    name: Option<String>,
    /// Makes answers repeatable where the server can.
    seed: Option<i64>,
    /// Whether the model may call several tools at once; left out of requests without tools.
    parallel_tool_calls: Option<bool>,
    /// How hard to think, where a request does not say.
    pub(super) reasoning_effort: Option<String>,
    /// The key under which the most tokens of an answer are sent.
    max_tokens_key: String,
    /// Which thoughts go back to the server that had them: `turn` for those since the last prompt, `all`, `none`.
    reasoning_replay: Replay,
    /// Whether the end of what stays the same is marked for a prompt cache, for gateways to services that want marks.
    cache_markers: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: None,
            seed: None,
            parallel_tool_calls: Some(true),
            reasoning_effort: None,
            max_tokens_key: "max_tokens".to_owned(),
            reasoning_replay: Replay::Turn,
            cache_markers: false,
        }
    }
}

/// Which thoughts go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Replay {
    /// Those since the last prompt.
    Turn,
    /// All.
    All,
    /// None.
    None,
}

/// The protocol, with what the plan says about it.
pub(super) struct Protocol {
    pub(super) about: About,
    pub(super) config: Config,
    pub(super) key: Option<String>,
}

impl Protocol {
    /// The protocol as this provider speaks it.
    pub(super) fn new(about: About, config: Config, settings: &Settings) -> Self {
        Self { about, config, key: settings.key().map(str::to_owned) }
    }

    /// The protocol as nobody configured it, for tests of all mappers.
    #[cfg(test)]
    pub(super) fn plain() -> Self {
        let about = About {
            id: NAME.to_owned(),
            display_name: String::new(),
            credential_env_vars: KEYS,
            capabilities: CAPABILITIES,
            default_model: "m".to_owned(),
        };
        Self::new(about, Config::default(), &Settings::default())
    }

    fn signed(&self, call: Call) -> Call {
        match &self.key {
            Some(key) => call.header("authorization", format!("Bearer {key}")),
            None => call,
        }
    }
}

impl Service for Protocol {
    fn about(&self) -> About {
        self.about.clone()
    }

    fn call(&self, ask: &Ask<'_>) -> Result<Call, LlmError> {
        Ok(self.signed(Call::post("chat/completions", request::body(ask, &self.config))))
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(reader::Chunks::default())
    }

    fn list(&self) -> Option<Call> {
        Some(self.signed(Call::get("models")))
    }

    fn models(&self, listed: &Value) -> Vec<ModelInfo> {
        let rows = listed.get("data").or_else(|| listed.get("models")).and_then(Value::as_array);
        let model = |row: &Value| {
            let id = row.get("id").or_else(|| row.get("name"))?.as_str()?;
            let windows = [
                "/max_model_len",
                "/context_length",
                "/meta/n_ctx",
                "/meta/n_ctx_train",
                "/max_input_tokens",
            ];
            let window = windows.iter().find_map(|place| row.pointer(place)?.as_u64());
            Some(wire::models::info(&self.about.id, id, window, self.about.capabilities))
        };
        rows.into_iter().flatten().filter_map(model).collect()
    }

    fn resumes(&self) -> Resumes {
        Resumes::BehindWholeBlocks
    }
}

/// What it has in place of the defaults that all providers share.
fn defaults() -> Value {
    json!({"max_retries": 3, "max_retry_delay": 30.0})
}

/// The module, as the table lists it.
pub(crate) struct ChatCompletions;

#[async_trait]
impl Module for ChatCompletions {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("provider-chat-completions")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Provider
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let (settings, config) = wire::read::<Config>(cx, config, defaults())?;
        let settings = settings.with_key(cx, KEYS).await.with_base_url(cx, PLACES, None).await;
        if settings.base_url.is_none() {
            let reason = "no server: set `CHAT_COMPLETIONS_BASE_URL` or `base_url` in its config".to_owned();
            return Ok(Mounted::Skipped { reason });
        }
        let about = About {
            id: config.name.clone().unwrap_or_else(|| NAME.to_owned()),
            display_name: "Chat Completions".to_owned(),
            credential_env_vars: KEYS,
            capabilities: CAPABILITIES,
            default_model: "default".to_owned(),
        };
        let protocol = Protocol::new(about, config, &settings);
        cx.mount_provider(Arc::new(WireProvider::new(protocol, settings, cx).await?));
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for ChatCompletions {
    fn info(&self) -> ModuleInfo {
        let about = self.about("Asks any server that speaks the Chat Completions protocol.");
        wire::with_defaults(wire::described::<Config>(about), &defaults())
    }
}
