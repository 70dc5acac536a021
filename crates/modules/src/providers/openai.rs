//! `provider-openai`: the Responses API, of OpenAI or of a server that speaks it. `request.rs` and `items.rs` map what is
//! asked, `reader.rs` what is answered; the rest is `wire`'s. Nothing is kept with the service: every request carries the
//! whole conversation, sealed reasoning included.

use std::sync::Arc;

use amplifier_core::contracts::{Module, Mounted};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::llm_error::LlmError;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use amplifier_protocol::provider::{ModelInfo, capability};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::wire::{self, About, Ask, Call, Reader, Resumes, Service, Settings, Tokens, WireProvider};
use crate::table::BuiltIn;

mod items;
mod reader;
mod request;

const NAME: &str = "openai";
const MODEL: &str = "gpt-5.5";
const KEYS: &[&str] = &["OPENAI_API_KEY"];
const PLACES: &[&str] = &["OPENAI_BASE_URL"];
const PLACE: &str = "https://api.openai.com/v1";
pub(super) const CAPABILITIES: &[&str] = &["tools", "streaming", "thinking", "vision", "json_mode"];
/// Above so many tokens some models cost more; the window ends here unless the plan wants more.
const USUAL_PRICE_WINDOW: u64 = 272_000;

/// Keys of older configs that have no effect here, and why.
pub(super) const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("enable_state", "every request carries the whole conversation"),
    ("enable_response_chaining", "every request carries the whole conversation"),
    ("poll_interval", "answers are streamed, not fetched"),
    ("background_timeout", "answers are streamed, not fetched"),
    ("thinking_budget_tokens", "the API takes an effort, not a number"),
    ("thinking_budget_buffer", "the API takes an effort, not a number"),
    ("hide_dated_models", "models are listed as the service lists them"),
    ("tool_search", "tools are always sent"),
];

/// What a plan may configure beside the keys that all providers have.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Config {
    /// How to reason, where a request does not say: an effort, or an object with `effort` and `summary`.
    reasoning: Option<Reasoning>,
    /// Whether the model reasons, where its name does not tell, as that of a deployment may not.
    reasoning_model: Option<bool>,
    /// How hard to reason, where neither the request nor `reasoning` says.
    reasoning_effort: Option<String>,
    /// How much of the reasoning is told: `auto`, `concise`, `detailed`, or `none`.
    reasoning_summary: Option<String>,
    /// Which turns the model may reason over again: `auto`, `current_turn`, `all_turns`.
    reasoning_context: Option<String>,
    /// Which reasoning goes back: `turn` for that since the last prompt, `all`, `none`.
    reasoning_replay_scope: Scope,
    /// How long answers are: `low`, `medium`, `high`.
    text_verbosity: Option<String>,
    /// How an answer of a wanted shape is asked for: `format` as the API has it, `tool` by a call that the model must make,
    /// for servers that do not take the first.
    schema_by: SchemaBy,
    /// Whether the model may call several tools at once; left out of requests without tools.
    parallel_tool_calls: Option<bool>,
    /// How many of the service's own tools may be called in one answer.
    max_tool_calls: Option<u64>,
    /// `auto` lets the service drop what does not fit, `disabled` makes that an error.
    truncation: Option<String>,
    /// Joins requests that begin alike. Without it a request's conversation is the key.
    prompt_cache_key: Option<String>,
    /// How long beginnings are kept: `in_memory` or `24h`.
    prompt_cache_retention: Option<String>,
    /// More about the prompt cache, as the API writes it.
    prompt_cache_options: Option<Map<String, Value>>,
    /// Names the person to the service without saying who it is.
    safety_identifier: Option<String>,
    /// Which tier of the service answers.
    service_tier: Option<String>,
    /// Whether the whole window is used where the part behind 272000 tokens costs more.
    enable_long_context: bool,
    /// The organization that pays.
    organization: Option<String>,
    /// The project that pays.
    project: Option<String>,
}

/// Reasoning, as configs write it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Reasoning {
    Effort(String),
    Both { effort: Option<String>, summary: Option<String> },
}

impl Reasoning {
    /// How hard, where it says.
    pub(super) fn effort(&self) -> Option<&str> {
        match self {
            Self::Effort(effort) => Some(effort),
            Self::Both { effort, .. } => effort.as_deref(),
        }
    }
}

/// Which reasoning goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Scope {
    /// That since the last prompt.
    #[default]
    Turn,
    /// All.
    All,
    /// None.
    None,
}

/// How an answer of a wanted shape is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SchemaBy {
    /// With the schema as the format of the text.
    #[default]
    Format,
    /// With the schema as the input of a tool, whose call is the answer.
    Tool,
}

/// How a request proves whose it is.
pub(super) enum Proof {
    /// A token, as the standard says.
    Bearer(String),
    /// A key in a header of this name.
    Header(&'static str, String),
    /// A token that is fetched for every request that needs one.
    Fetched(Box<dyn Tokens>),
}

/// The Responses API, with what the plan says about it.
pub(super) struct Responses {
    pub(super) about: About,
    pub(super) config: Config,
    pub(super) proof: Proof,
    /// Behind every path, such as `?api-version=preview`.
    pub(super) query: String,
    /// Where the models are listed, if they are.
    pub(super) models: Option<&'static str>,
}

impl Responses {
    fn signed(&self, call: Call) -> Call {
        let payers =
            [("openai-organization", &self.config.organization), ("openai-project", &self.config.project)];
        let call = payers.into_iter().fold(call, |call, (name, value)| match value {
            Some(value) => call.header(name, value),
            None => call,
        });
        match &self.proof {
            Proof::Bearer(token) => call.header("authorization", format!("Bearer {token}")),
            Proof::Header(name, key) => call.header(*name, key),
            // The provider adds it: fetching waits, and a service never does.
            Proof::Fetched(_) => call,
        }
    }

    /// The API as nobody configured it, for tests of all mappers.
    #[cfg(test)]
    pub(super) fn plain() -> Self {
        let config = Config { reasoning_replay_scope: Scope::All, ..Config::default() };
        let (proof, query) = (Proof::Bearer(String::new()), String::new());
        Self { about: about(), config, proof, query, models: None }
    }

    /// The same as it is without a config: only the reasoning since the last prompt goes back.
    #[cfg(test)]
    pub(super) fn within_the_turn() -> Self {
        Self { config: Config::default(), ..Self::plain() }
    }
}

impl Service for Responses {
    fn about(&self) -> About {
        self.about.clone()
    }

    fn call(&self, ask: &Ask<'_>) -> Result<Call, LlmError> {
        let path = format!("responses{}", self.query);
        Ok(self.signed(Call::post(path, request::body(ask, &self.config))))
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(reader::Events::default())
    }

    fn list(&self) -> Option<Call> {
        Some(self.signed(Call::get(format!("{}{}", self.models?, self.query))))
    }

    fn models(&self, listed: &Value) -> Vec<ModelInfo> {
        let rows = listed.get("data").or_else(|| listed.get("models")).and_then(Value::as_array);
        let model = |row: &Value| {
            let id = row.get("id")?.as_str()?;
            Some(wire::models::info(
                NAME,
                id,
                row.pointer("/meta/n_ctx").and_then(Value::as_u64),
                CAPABILITIES,
            ))
        };
        rows.into_iter().flatten().filter_map(model).filter(|info| answers(&info.id)).collect()
    }

    fn tokens(&self) -> Option<&dyn Tokens> {
        match &self.proof {
            Proof::Fetched(tokens) => Some(&**tokens),
            Proof::Bearer(_) | Proof::Header(..) => None,
        }
    }

    fn resumes(&self) -> Resumes {
        // Sealed reasoning is only taken with the answer it led to.
        Resumes::Never
    }
}

/// Whether a listed model is one that answers in text; the list also holds those that draw, speak and embed.
fn answers(id: &str) -> bool {
    const OTHERS: [&str; 12] = [
        "embedding",
        "whisper",
        "tts",
        "dall-e",
        "moderation",
        "image",
        "audio",
        "realtime",
        "transcribe",
        "sora",
        "babbage",
        "davinci",
    ];
    !OTHERS.iter().any(|word| id.contains(word))
}

/// Whether a model of this id reasons; none when nobody knows.
fn reasons(model: &str, config: &Config) -> Option<bool> {
    let [_, _, thinking, ..] = capability::CORE;
    let listed = || {
        let known = wire::models::known(NAME, model)?;
        Some(known.capabilities.iter().any(|word| word == thinking))
    };
    config.reasoning_model.or_else(listed).or_else(|| sounds_newer(model).then_some(true))
}

/// Whether an id is like those of models that reason: since `gpt-5` all do, and so does the o-series. What is not in the
/// catalogue is most likely newer than it, and without its sealed reasoning it would begin to think anew after every call.
fn sounds_newer(model: &str) -> bool {
    let plain = model.rsplit('/').next().unwrap_or(model);
    let number = |rest: &str| {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| rest.split_at(end).0);
        digits.parse::<u32>().ok()
    };
    match (plain.strip_prefix("gpt-"), plain.strip_prefix('o')) {
        // The models behind the chat product are made to answer at once.
        (Some(rest), _) => number(rest).is_some_and(|version| version >= 5) && !rest.contains("chat"),
        (None, Some(rest)) => number(rest).is_some(),
        (None, None) => false,
    }
}

fn about() -> About {
    About {
        id: NAME.to_owned(),
        display_name: "OpenAI".to_owned(),
        credential_env_vars: KEYS,
        capabilities: CAPABILITIES,
        default_model: MODEL.to_owned(),
    }
}

/// The settings with the window that costs the usual price, and with `max_output_tokens` as what is asked for: here it is
/// the newer name of `max_tokens`.
pub(super) fn narrowed(mut settings: Settings, config: &Config) -> Settings {
    let model = settings.default_model.as_deref().unwrap_or(MODEL);
    if !config.enable_long_context && model.starts_with("gpt-5.4") && settings.context_window.is_none() {
        settings.context_window = Some(USUAL_PRICE_WINDOW);
    }
    settings.max_tokens = settings.max_tokens.or(settings.max_output_tokens);
    settings
}

/// The module, as the table lists it.
pub(crate) struct OpenAi;

#[async_trait]
impl Module for OpenAi {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("provider-openai")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Provider
    }

    async fn mount(&self, mut config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        wire::leave_out(cx, &mut config, WITHOUT_EFFECT);
        let (settings, config) = wire::read::<Config>(cx, config, json!({}))?;
        let settings = settings.with_key(cx, KEYS).await.with_base_url(cx, PLACES, Some(PLACE)).await;
        let Some(key) = settings.key().map(str::to_owned) else { return Ok(Settings::missing_key(KEYS)) };
        let settings = narrowed(settings, &config);
        let (proof, query) = (Proof::Bearer(key), String::new());
        let service = Responses { about: about(), config, proof, query, models: Some("models") };
        cx.mount_provider(Arc::new(WireProvider::new(service, settings, cx).await?));
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for OpenAi {
    fn info(&self) -> ModuleInfo {
        wire::described::<Config>(self.about("Asks OpenAI, or a server that speaks its Responses API."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_models_are_taken_to_reason_and_a_config_that_says_otherwise_counts_more() {
        let plain = Config::default();
        for model in ["gpt-5.6-sol", "gpt-6", "gpt-6.1-mini", "gpt-10", "o1", "o5-mini", "openai/gpt-6"] {
            assert_eq!(reasons(model, &plain), Some(true), "{model}");
        }
        for model in ["gpt-4.1", "gpt-4o", "gpt-oss-20b", "omni", "our-deployment", "gpt-6-chat-latest"] {
            assert_eq!(reasons(model, &plain), None, "{model}");
        }
        assert_eq!(reasons("gpt-5-mini", &plain), Some(false), "the catalogue knows");
        for said in [true, false] {
            let config = Config { reasoning_model: Some(said), ..Config::default() };
            for model in ["our-deployment", "gpt-5.5", "gpt-5-mini"] {
                assert_eq!(reasons(model, &config), Some(said), "{model}");
            }
        }
    }
}
