//! `provider-anthropic`: the Messages API, of Anthropic or of a server that speaks it. `request.rs` and `messages.rs` map
//! what is asked, `reader.rs` what is answered, `model.rs` knows what the families of models take; the rest is `wire`'s.

use std::sync::Arc;

use amplifier_core::contracts::{Module, Mounted};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::llm_error::LlmError;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use amplifier_protocol::provider::ModelInfo;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::wire::{self, About, Ask, Call, Reader, Resumes, Service, Settings, WireProvider};
use crate::table::BuiltIn;
use model::Abilities;

mod messages;
mod model;
mod reader;
mod request;

const NAME: &str = "anthropic";
const KEYS: &[&str] = &["ANTHROPIC_API_KEY"];
const PLACES: &[&str] = &["ANTHROPIC_BASE_URL"];
const PLACE: &str = "https://api.anthropic.com";
const MODEL: &str = "claude-sonnet-4-5";
const VERSION: &str = "2023-06-01";
const CAPABILITIES: &[&str] = &["tools", "streaming", "thinking", "vision", "json_mode"];
/// The larger window, where it must be asked for.
const LONG_WINDOW: u64 = 1_000_000;
/// The status that says that the service has too much to do.
const OVERLOADED: u16 = 529;

/// Keys of older configs that have no effect here, and why.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("throttle_threshold", "waits are what the service asks for"),
    ("throttle_delay", "waits are what the service asks for"),
    ("rate_limit_state_path", "no state is kept on disk"),
    ("persist_fallback_state", "no state is kept on disk"),
    ("fallback_state_path", "no state is kept on disk"),
    ("fallback_on_overload", "another model is a provider of its own in the plan"),
    ("fallback_retry_count", "another model is a provider of its own in the plan"),
    ("fallback_cooldown_seconds", "another model is a provider of its own in the plan"),
    ("fallback_sonnet_model", "another model is a provider of its own in the plan"),
    ("fallback_haiku_model", "another model is a provider of its own in the plan"),
    ("refusal_fallback_enabled", "a refusal is told as it is"),
    ("refusal_fallback_model", "a refusal is told as it is"),
    ("close_timeout", "connections are closed at once"),
    ("cache_infer_stability_from_history", "what passes is marked by whoever adds it"),
];

/// What a plan may configure beside the keys that all providers have.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// The version of the API.
    anthropic_version: String,
    /// Betas to ask for, as a list or as one text with commas.
    beta_headers: Option<Betas>,
    /// Whether the larger window is asked for where a model has one that must be asked for.
    enable_1m_context: bool,
    /// Whether the ends of what stays the same are marked for the prompt cache.
    enable_prompt_caching: bool,
    /// Whether system text and tools stay in the cache for an hour instead of minutes.
    cache_stable_region_ttl_1h: bool,
    /// How hard to think, where a request does not say: `low`, `medium`, `high`, `xhigh`, `max`.
    effort: Option<String>,
    /// The same as `effort`.
    reasoning_effort: Option<String>,
    /// Whether the model thinks, where a request does not say.
    extended_thinking: Option<bool>,
    /// The most tokens of thinking.
    thinking_budget_tokens: Option<u64>,
    /// Tokens of an answer that are left beside the thinking.
    thinking_budget_buffer: u64,
    /// `adaptive` for models that decide themselves how long they think, `enabled` for a budget.
    thinking_type: Option<String>,
    /// `summarized` or `omitted`, where the model can be told.
    thinking_display: Option<String>,
    /// Tokens for a whole task, at least 20000, where the model can be told.
    task_budget_tokens: Option<u64>,
    /// `fast` or `standard`, where the model can be told.
    speed: Option<String>,
    /// Whether the service's own search may be used.
    enable_web_search: bool,
    /// How often it may search in one answer.
    web_search_max_uses: Option<u64>,
    /// Where the searcher is, as the API writes it.
    web_search_user_location: Option<Value>,
    /// How much longer to wait when the service is overloaded.
    overloaded_delay_multiplier: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            anthropic_version: VERSION.to_owned(),
            beta_headers: None,
            enable_1m_context: false,
            enable_prompt_caching: true,
            cache_stable_region_ttl_1h: false,
            effort: None,
            reasoning_effort: None,
            extended_thinking: None,
            thinking_budget_tokens: None,
            thinking_budget_buffer: 8_192,
            thinking_type: None,
            thinking_display: None,
            task_budget_tokens: None,
            speed: None,
            enable_web_search: false,
            web_search_max_uses: None,
            web_search_user_location: None,
            overloaded_delay_multiplier: 10.0,
        }
    }
}

/// Betas, as configs write them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Betas {
    Joined(String),
    Listed(Vec<String>),
}

impl Betas {
    fn names(&self) -> Vec<&str> {
        let texts = match self {
            Self::Joined(text) => text.split(',').collect(),
            Self::Listed(texts) => texts.iter().map(String::as_str).collect::<Vec<_>>(),
        };
        texts.into_iter().map(str::trim).filter(|name| !name.is_empty()).collect()
    }
}

/// The Messages API, with what the plan says about it.
pub(super) struct Messages {
    config: Config,
    key: Option<String>,
}

impl Messages {
    fn signed(&self, call: Call) -> Call {
        let call = call.header("anthropic-version", &self.config.anthropic_version);
        match &self.key {
            Some(key) => call.header("x-api-key", key),
            None => call,
        }
    }

    /// The API as nobody configured it, for tests of all mappers.
    #[cfg(test)]
    pub(super) fn plain() -> Self {
        Self { config: Config::default(), key: None }
    }
}

impl Service for Messages {
    fn about(&self) -> About {
        About {
            id: NAME.to_owned(),
            display_name: "Anthropic".to_owned(),
            credential_env_vars: KEYS,
            capabilities: CAPABILITIES,
            default_model: MODEL.to_owned(),
        }
    }

    fn call(&self, ask: &Ask<'_>) -> Result<Call, LlmError> {
        let (body, betas) = request::body(ask, &self.config);
        let call = self.signed(Call::post("v1/messages", body));
        Ok(if betas.is_empty() { call } else { call.header("anthropic-beta", betas.join(",")) })
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(reader::Events::default())
    }

    fn list(&self) -> Option<Call> {
        Some(self.signed(Call::get("v1/models?limit=1000")))
    }

    fn models(&self, listed: &Value) -> Vec<ModelInfo> {
        let rows = listed.get("data").and_then(Value::as_array);
        let model = |row: &Value| {
            let id = row.get("id")?.as_str()?;
            let number = |key: &str| row.get(key).and_then(Value::as_u64);
            let mut info = wire::models::info(NAME, id, number("max_input_tokens"), CAPABILITIES);
            if let Some(name) = row.get("display_name").and_then(Value::as_str) {
                name.clone_into(&mut info.display_name);
            }
            if let Some(most) = number("max_tokens") {
                info.max_output_tokens = most;
            }
            Some(info)
        };
        rows.into_iter().flatten().filter_map(model).collect()
    }

    fn resumes(&self) -> Resumes {
        // The newer models refuse a begun answer.
        Resumes::Never
    }

    fn judge(&self, error: LlmError) -> LlmError {
        let overloaded = error.status_code == Some(OVERLOADED)
            || (error.retryable && error.message.to_lowercase().contains("overloaded"));
        if overloaded && error.retry_after.is_none() {
            return LlmError { delay_multiplier: Some(self.config.overloaded_delay_multiplier), ..error };
        }
        error
    }
}

/// The module, as the table lists it.
pub(crate) struct Anthropic;

#[async_trait]
impl Module for Anthropic {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("provider-anthropic")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Provider
    }

    async fn mount(&self, mut config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        wire::leave_out(cx, &mut config, WITHOUT_EFFECT);
        let (settings, config) = wire::read::<Config>(cx, config, json!({}))?;
        let settings = settings.with_key(cx, KEYS).await.with_base_url(cx, PLACES, Some(PLACE)).await;
        if settings.key().is_none() {
            return Ok(Settings::missing_key(KEYS));
        }
        let settings = widened(settings, &config);
        let service = Messages { config, key: settings.key().map(str::to_owned) };
        cx.mount_provider(Arc::new(WireProvider::new(service, settings, cx).await?));
        Ok(Mounted::Ready)
    }
}

/// The settings with the window that is asked for, and a place with or without its version.
fn widened(mut settings: Settings, config: &Config) -> Settings {
    let model = settings.default_model.as_deref().unwrap_or(MODEL);
    if config.enable_1m_context && Abilities::of(model).long_window && settings.context_window.is_none() {
        settings.context_window = Some(LONG_WINDOW);
    }
    // Other clients of this API are given the place in both forms.
    let base = settings.base_url.take().map(|url| url.trim_end_matches('/').to_owned());
    settings.base_url = base.map(|url| url.strip_suffix("/v1").map(str::to_owned).unwrap_or(url));
    settings
}

/// A parameter of one request, as callers give those that the request itself does not name.
fn said<'a>(ask: &Ask<'a>, key: &str) -> Option<&'a Value> {
    ask.request.extra.get(key).filter(|value| !value.is_null())
}

type Body = Map<String, Value>;

impl BuiltIn for Anthropic {
    fn info(&self) -> ModuleInfo {
        wire::described::<Config>(self.about("Asks Claude, or a server that speaks its Messages API."))
    }
}
