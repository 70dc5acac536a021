//! `provider-ollama`: an Ollama server, by its own protocol, which tells and sets what Chat Completions cannot: the window
//! and whether to think. `request.rs` maps what is asked, `reader.rs` what is answered.

use std::net::Ipv6Addr;

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

use super::wire::{self, About, Ask, Call, Framing, Learnt, Reader, Resumes, Service, WireProvider};
use crate::table::BuiltIn;

mod reader;
mod request;
#[cfg(test)]
mod request_tests;

const USUAL_PLACE: &str = "http://localhost:11434";
const CAPABILITIES: &[&str] = &["tools", "streaming", "thinking", "vision", "json_mode", "local"];

/// What a plan may configure beside the keys that all providers have.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Config {
    /// Where the server is, with or without `http://`; the same as `base_url`.
    host: Option<String>,
    /// How many tokens the server shall make room for. 0 takes what the model can, up to `max_auto_ctx`: a server that is
    /// not told cuts long conversations without a word.
    num_ctx: u64,
    /// The most room that is made without being told.
    max_auto_ctx: u64,
    /// Whether models that can shall think.
    enable_thinking: bool,
    /// How long the server keeps the model loaded, such as `5m`.
    keep_alive: Option<Value>,
    /// Makes answers repeatable.
    seed: Option<i64>,
    /// Taken; the same as `debug: raw`.
    raw_debug: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            host: None,
            num_ctx: 0,
            max_auto_ctx: 32_768,
            enable_thinking: true,
            keep_alive: None,
            seed: None,
            raw_debug: false,
        }
    }
}

/// The protocol, with what the plan says about it.
pub(super) struct Native {
    config: Config,
    key: Option<String>,
}

impl Native {
    /// The protocol as nobody configured it, for tests of all mappers.
    #[cfg(test)]
    pub(super) fn plain() -> Self {
        Self { config: Config::default(), key: None }
    }

    fn signed(&self, call: Call) -> Call {
        match &self.key {
            Some(key) => call.header("authorization", format!("Bearer {key}")),
            None => call,
        }
    }
}

impl Service for Native {
    fn about(&self) -> About {
        About {
            id: "ollama".to_owned(),
            display_name: "Ollama".to_owned(),
            credential_env_vars: &["OLLAMA_API_KEY"],
            capabilities: CAPABILITIES,
            default_model: "llama3.2:3b".to_owned(),
        }
    }

    fn call(&self, ask: &Ask<'_>) -> Result<Call, LlmError> {
        let call =
            Call { framing: Framing::Lines, ..Call::post("api/chat", request::body(ask, &self.config)) };
        Ok(self.signed(call))
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(reader::Lines::default())
    }

    fn list(&self) -> Option<Call> {
        Some(self.signed(Call::get("api/tags")))
    }

    fn models(&self, listed: &Value) -> Vec<ModelInfo> {
        let rows = listed.get("models").and_then(Value::as_array);
        let model = |row: &Value| {
            let id = row.get("model").or_else(|| row.get("name"))?.as_str()?;
            Some(wire::models::info("ollama", id, None, CAPABILITIES))
        };
        rows.into_iter().flatten().filter_map(model).collect()
    }

    fn probe(&self, model: &str) -> Option<Call> {
        let body = Map::from_iter([("model".to_owned(), Value::from(model))]);
        Some(self.signed(Call::post("api/show", body)))
    }

    fn learn(&self, _model: &str, told: &Value) -> Learnt {
        let facts = told.get("model_info").and_then(Value::as_object);
        // The key begins with the model's architecture, as in `llama.context_length`.
        let window = facts.and_then(|facts| facts.iter().find(|(key, _)| key.ends_with(".context_length")));
        let abilities = told.get("capabilities").and_then(Value::as_array).into_iter().flatten();
        Learnt {
            context_window: window
                .and_then(|(_, window)| window.as_u64())
                .map(|window| self.config.room(window)),
            abilities: abilities.filter_map(|word| word.as_str().map(str::to_owned)).collect(),
        }
    }

    fn resumes(&self) -> Resumes {
        Resumes::Never
    }
}

impl Config {
    /// How many tokens there is room for, with a model that can take this many.
    fn room(&self, window: u64) -> u64 {
        if self.num_ctx > 0 { self.num_ctx.min(window) } else { window.min(self.max_auto_ctx) }
    }
}

/// The server's address as people write it, read as Ollama reads `OLLAMA_HOST`: a host, a host and a port, a port alone, an
/// address in brackets or without them, or a URL, which has the port of its scheme where it names none.
pub fn address(host: &str) -> String {
    let host = host.trim().trim_matches(['"', '\'']).trim_end_matches('/');
    let (scheme, rest, usual) = match host.split_once("://") {
        Some((scheme, rest)) => (scheme, rest, None),
        None => ("http", host, Some("11434")),
    };
    let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_number = |port: &str| !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit());
    let bare = |name: &str| name.trim_start_matches('[').trim_end_matches(']').parse::<Ipv6Addr>().ok();
    let (name, port) = match place.rsplit_once(':') {
        _ if bare(place).is_some() => (place, usual),
        Some((name, port)) if is_number(port) => (name, Some(port)),
        // What stands behind the colon is no port, and whoever uses the address says so.
        Some(_) => (place, None),
        None => (place, usual),
    };
    // What a server listens on everywhere is asked for here; so is a port alone.
    let name = match (name, bare(name)) {
        ("" | "0.0.0.0", _) => "127.0.0.1".to_owned(),
        (_, Some(Ipv6Addr::UNSPECIFIED)) => "[::1]".to_owned(),
        (_, Some(address)) => format!("[{address}]"),
        (name, None) => name.to_owned(),
    };
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    format!("{scheme}://{name}{port}{path}")
}

/// The module, as the table lists it.
pub(crate) struct Ollama;

/// A model that is not in memory yet is loaded before it says a word.
fn defaults() -> Value {
    json!({"first_byte_timeout": 540.0})
}

#[async_trait]
impl Module for Ollama {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("provider-ollama")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Provider
    }

    async fn mount(&self, mut config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        wire::leave_out(cx, &mut config, &[("auto_pull", "fetch models with `ollama pull`")]);
        let (mut settings, config) = wire::read::<Config>(cx, config, defaults())?;
        settings.raw = settings.raw || config.raw_debug;
        settings.base_url = settings.base_url.or_else(|| config.host.clone());
        let settings = settings.with_key(cx, &["OLLAMA_API_KEY"]).await;
        let mut settings = settings.with_base_url(cx, &["OLLAMA_HOST"], Some(USUAL_PLACE)).await;
        settings.base_url = settings.base_url.as_deref().map(address);
        let service = Native { config, key: settings.key().map(str::to_owned) };
        WireProvider::mount_and_learn(service, settings, cx).await
    }
}

impl BuiltIn for Ollama {
    fn info(&self) -> ModuleInfo {
        let about = self.about("Asks an Ollama server in its own protocol.");
        wire::with_defaults(wire::described::<Config>(about), &defaults())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        for (written, read) in [
            ("localhost", "http://localhost:11434"),
            ("0.0.0.0:5000", "http://127.0.0.1:5000"),
            (":5000", "http://127.0.0.1:5000"),
            ("http://10.0.0.1:11434/", "http://10.0.0.1:11434"),
            ("https://ollama.example", "https://ollama.example"),
            ("[::1]", "http://[::1]:11434"),
            ("::1", "http://[::1]:11434"),
            ("[::1]:5000", "http://[::1]:5000"),
            ("::", "http://[::1]:11434"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            ("", "http://127.0.0.1:11434"),
            ("gpu:5000/", "http://gpu:5000"),
            ("'gpu'", "http://gpu:11434"),
            ("gpu/ollama", "http://gpu:11434/ollama"),
            // A URL has the port of its scheme, as Ollama reads it.
            ("http://gpu", "http://gpu"),
            ("gpu:port", "http://gpu:port"),
        ] {
            assert_eq!(address(written), read);
        }
    }

    #[test]
    fn the_window_is_what_the_model_can_up_to_what_the_plan_allows() {
        let native = |config: Config| Native { config, key: None };
        let told = json!({"model_info": {"general.architecture": "llama", "llama.context_length": 131_072}, "capabilities": ["tools", "thinking"]});
        let learnt = native(Config::default()).learn("m", &told);
        assert_eq!((learnt.context_window, learnt.abilities.len()), (Some(32_768), 2));
        let fixed = Config { num_ctx: 65_536, ..Config::default() };
        assert_eq!(native(fixed).learn("m", &told).context_window, Some(65_536));
        assert_eq!(native(Config::default()).learn("m", &json!({})), Learnt::default());
    }
}
