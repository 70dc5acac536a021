//! Model servers on this machine: looked for where they usually are, by asking for their models through the provider that
//! would be used. A server without a model is none.

use std::time::Duration;

use amplifier_core::session::OpenError;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::mount_plan::ModuleSpec;
use amplifier_protocol::provider::{ModelInfo, ProviderInfo};
use serde_json::{Value, json};

use super::{Detected, Looked, Tape, patience};
use crate::connect::fit;
use crate::env::{self, Environment};

const USUAL_OLLAMA: &str = "127.0.0.1:11434";
const USUAL_LLAMA_CPP: &str = "127.0.0.1:8080";
/// A server on this machine answers at once or is not there.
const PATIENCE: Duration = Duration::from_millis(700);

/// Where servers are looked for, and for how long.
#[derive(Debug, Clone)]
pub struct Places {
    /// An Ollama server: a host, a host and a port, or a URL.
    pub ollama: String,
    /// A llama.cpp server, in the same way.
    pub llama_cpp: String,
    /// A vLLM server, where somebody says that there is one: its port is everybody's.
    pub vllm: Option<String>,
    /// How long one may take to answer.
    pub patience: Duration,
}

impl Places {
    /// The usual places, unless a variable names another.
    pub fn of(environment: &Environment) -> Self {
        let named = |name: &str| environment.get(name).filter(|place| !place.trim().is_empty());
        Self {
            ollama: named(env::OLLAMA_HOST).unwrap_or_else(|| USUAL_OLLAMA.to_owned()),
            llama_cpp: named(env::LLAMA_CPP_HOST).unwrap_or_else(|| USUAL_LLAMA_CPP.to_owned()),
            vllm: named(env::VLLM_BASE_URL),
            patience: PATIENCE,
        }
    }
}

/// A server that was looked for.
pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) module: ModuleId,
    /// What its provider says about itself.
    pub(super) info: ProviderInfo,
    pub(super) found: Result<Detected, String>,
    /// Whether the place that somebody names for it cannot be one.
    pub(super) is_broken: bool,
}

struct Candidate {
    name: &'static str,
    module: &'static str,
    place: String,
    variable: &'static str,
}

/// Looks for all of them at once; in the order in which they are preferred.
pub(super) async fn look(places: &Places, environment: &Environment) -> Result<Vec<Server>, Box<OpenError>> {
    let ollama = Candidate {
        name: "Ollama",
        module: "provider-ollama",
        place: amplifier_modules::ollama_address(&places.ollama),
        variable: env::OLLAMA_HOST,
    };
    let llama_cpp = Candidate {
        name: "llama.cpp",
        module: "provider-chat-completions",
        place: format!("{}/v1", url(&places.llama_cpp).trim_end_matches("/v1")),
        variable: env::LLAMA_CPP_HOST,
    };
    let vllm = async {
        let Some(place) = places.vllm.clone() else { return Ok(None) };
        let (name, module) = ("vLLM", "provider-vllm");
        ask(Candidate { name, module, place, variable: env::VLLM_BASE_URL }, places, environment)
            .await
            .map(Some)
    };
    let (vllm, ollama, llama_cpp) =
        tokio::join!(vllm, ask(ollama, places, environment), ask(llama_cpp, places, environment));
    Ok([vllm?, Some(ollama?), Some(llama_cpp?)].into_iter().flatten().collect())
}

/// An address as people write it, as a URL. A port alone means this machine.
fn url(place: &str) -> String {
    let place = place.trim().trim_end_matches('/');
    let place = if place.contains("://") { place.to_owned() } else { format!("http://{place}") };
    place.replace("://:", "://127.0.0.1:")
}

/// Why a place that somebody names for a server cannot be one.
fn unfit(place: &str, variable: &str) -> Option<String> {
    let unfit = fit::address(place).err()?;
    let cure = if place.contains("://") { "" } else { ": begin it with `http://`" };
    Some(format!("`{variable}`: {unfit}{cure}"))
}

async fn ask(
    candidate: Candidate,
    places: &Places,
    environment: &Environment,
) -> Result<Server, Box<OpenError>> {
    let Candidate { name, module, place, variable } = candidate;
    let module = ModuleId::fixed(module);
    if let Some(reason) = unfit(&place, variable) {
        let (info, found) = (ProviderInfo::default(), Err(reason));
        return Ok(Server { name, module, info, found, is_broken: true });
    }
    let mut hasty = ModuleSpec::new(module.clone());
    let config = patience(places.patience).into_iter().chain([("base_url", json!(place))]);
    hasty.config = config.map(|(key, value)| (key.to_owned(), value)).collect();
    let looked = Looked::at(vec![hasty], environment, Tape::Offered).await?;
    let (info, found) = match looked.first() {
        Err(reason) => (ProviderInfo::default(), Err(reason)),
        Ok(provider) => {
            let info = provider.info();
            let text = |key: &str| info.defaults.get(key).and_then(Value::as_str);
            // As the provider reads it, with the port that people leave out.
            let place = text("base_url").unwrap_or(&place);
            let found = match tokio::time::timeout(places.patience, provider.list_models()).await {
                Err(_) => Err(missed(name, place, variable, None)),
                Ok(Err(error)) => Err(missed(name, place, variable, Some(&error))),
                Ok(Ok(models)) => match choose(&models, text("model")) {
                    Some(model) => Ok(detected(&module, name, place, model)),
                    None => Err(format!("the server at {place} lists no model; load one first")),
                },
            };
            (info, found)
        }
    };
    looked.close().await;
    Ok(Server { name, module, info, found, is_broken: false })
}

/// The provider's usual model where the server has it, else the first it has.
fn choose<'a>(models: &'a [ModelInfo], usual: Option<&str>) -> Option<&'a str> {
    let usual = models.iter().find(|model| Some(model.id.as_str()) == usual);
    usual.or(models.first()).map(|model| model.id.as_str())
}

fn detected(module: &ModuleId, name: &str, place: &str, model: &str) -> Detected {
    let mut spec = ModuleSpec::new(module.clone());
    spec.config.insert("base_url".to_owned(), json!(place));
    spec.config.insert("default_model".to_owned(), json!(model));
    let article = if name.starts_with('O') { "an" } else { "a" };
    Detected { spec, reason: format!("{article} {name} server at {place} has `{model}`") }
}

fn missed(name: &str, place: &str, variable: &str, error: Option<&LlmError>) -> String {
    let elsewhere = format!("`{variable}` names another place");
    match error {
        Some(error) if error.kind == LlmErrorKind::Network => {
            format!("no server at {place}; {elsewhere}")
        }
        None => format!("no answer from {place} in time; {elsewhere}"),
        Some(error) if error.kind == LlmErrorKind::Timeout => {
            format!("no answer from {place} in time; {elsewhere}")
        }
        Some(error) => {
            format!("what answers at {place} is no {name} server ({}); {elsewhere}", error.kind.name())
        }
    }
}
