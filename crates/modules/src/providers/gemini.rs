//! `provider-gemini`: Google's `generateContent` API. `request.rs` and `contents.rs` map what is asked, `reader.rs` what is
//! answered; the rest is `wire`'s.

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
use serde_json::{Value, json};

use super::wire::{self, About, Ask, Call, Delivery, Reader, Resumes, Service, Settings, WireProvider};
use crate::table::BuiltIn;

mod contents;
mod reader;
mod request;

const NAME: &str = "gemini";
const KEYS: &[&str] = &["GEMINI_API_KEY", "GOOGLE_API_KEY"];
const PLACE: &str = "https://generativelanguage.googleapis.com/v1beta";
const MODEL: &str = "gemini-2.5-flash";
const CAPABILITIES: &[&str] = &["tools", "streaming", "thinking", "vision", "json_mode"];

/// What a plan may configure beside the keys that all providers have.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// The most tokens of thinking: -1 lets the model decide, 0 is none.
    thinking_budget: Option<i64>,
    /// How hard to think, where a request does not say: `minimal`, `low`, `medium`, `high`.
    reasoning_effort: Option<String>,
    /// Whether thoughts are told.
    include_thoughts: bool,
    /// What is let through, as the API writes it.
    safety_settings: Vec<Value>,
    /// Makes answers repeatable where the model can.
    seed: Option<i64>,
    /// The name of a cache that was made for these requests.
    cached_content: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            thinking_budget: None,
            reasoning_effort: None,
            include_thoughts: true,
            safety_settings: Vec::new(),
            seed: None,
            cached_content: None,
        }
    }
}

/// The API, with what the plan says about it.
pub(super) struct GenerateContent {
    config: Config,
    key: Option<String>,
}

impl GenerateContent {
    fn signed(&self, call: Call) -> Call {
        match &self.key {
            Some(key) => call.header("x-goog-api-key", key),
            None => call,
        }
    }

    /// The API as nobody configured it, for tests of all mappers.
    #[cfg(test)]
    pub(super) fn plain() -> Self {
        Self { config: Config::default(), key: None }
    }
}

impl Service for GenerateContent {
    fn about(&self) -> About {
        About {
            id: NAME.to_owned(),
            display_name: "Gemini".to_owned(),
            credential_env_vars: KEYS,
            capabilities: CAPABILITIES,
            default_model: MODEL.to_owned(),
        }
    }

    fn call(&self, ask: &Ask<'_>) -> Result<Call, LlmError> {
        let model = ask.model.strip_prefix("models/").unwrap_or(ask.model);
        let verb = match ask.delivery {
            Delivery::Streamed => "streamGenerateContent?alt=sse",
            Delivery::Whole => "generateContent",
        };
        let body = request::body(ask, model, &self.config);
        Ok(self.signed(Call::post(format!("models/{model}:{verb}"), body)))
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(reader::Chunks::default())
    }

    fn list(&self) -> Option<Call> {
        Some(self.signed(Call::get("models?pageSize=1000")))
    }

    fn models(&self, listed: &Value) -> Vec<ModelInfo> {
        let rows = listed.get("models").and_then(Value::as_array);
        let model = |row: &Value| {
            let name = row.get("name")?.as_str()?;
            let methods = row.get("supportedGenerationMethods").and_then(Value::as_array);
            if methods.is_some_and(|methods| !methods.iter().any(|method| method == "generateContent")) {
                return None;
            }
            let number = |key: &str| row.get(key).and_then(Value::as_u64);
            let id = name.strip_prefix("models/").unwrap_or(name);
            let mut info = wire::models::info(NAME, id, number("inputTokenLimit"), CAPABILITIES);
            if let Some(name) = row.get("displayName").and_then(Value::as_str) {
                name.clone_into(&mut info.display_name);
            }
            if let Some(most) = number("outputTokenLimit") {
                info.max_output_tokens = most;
            }
            Some(info)
        };
        rows.into_iter().flatten().filter_map(model).collect()
    }

    fn resumes(&self) -> Resumes {
        // A conversation ends with a person's turn here.
        Resumes::Never
    }
}

/// The module, as the table lists it.
pub(crate) struct Gemini;

#[async_trait]
impl Module for Gemini {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("provider-gemini")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Provider
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let (settings, config) = wire::read::<Config>(cx, config, json!({}))?;
        let settings = settings.with_key(cx, KEYS).await.with_base_url(cx, &[], Some(PLACE)).await;
        if settings.key().is_none() {
            return Ok(Settings::missing_key(KEYS));
        }
        let service = GenerateContent { config, key: settings.key().map(str::to_owned) };
        cx.mount_provider(Arc::new(WireProvider::new(service, settings, cx).await?));
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for Gemini {
    fn info(&self) -> ModuleInfo {
        wire::described::<Config>(self.about("Asks Google's Gemini models."))
    }
}
