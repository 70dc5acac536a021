//! The environment, read here and nowhere else. Each variable the program knows is a constant below.

use std::collections::BTreeMap;
use std::ffi::OsString;

use amplifier_core::contracts::{CapabilityCall, CapabilityError};
use async_trait::async_trait;
use serde_json::Value;

/// Moves the home folder (`~/.amplifierd`).
pub const AMPLIFIER_HOME: &str = "AMPLIFIER_HOME";
/// The person's own folder, under which the home folder is.
pub const HOME: &str = "HOME";

/// A folder that model calls are written to, for replay.
pub const AMPLIFIER_RECORD: &str = "AMPLIFIER_RECORD";
/// A folder that model calls are answered from, without a network.
pub const AMPLIFIER_REPLAY: &str = "AMPLIFIER_REPLAY";

/// Where an Ollama server is, instead of port 11434 of this machine.
pub const OLLAMA_HOST: &str = "OLLAMA_HOST";
/// Where a llama.cpp server is looked for, instead of port 8080 of this machine.
pub const LLAMA_CPP_HOST: &str = "LLAMA_CPP_HOST";
/// Where a vLLM server is.
pub const VLLM_BASE_URL: &str = "VLLM_BASE_URL";

/// The variables that modules may ask for through the capability `environment.variable`: keys and places of model
/// services, proxies, and where model calls are recorded. Everything else is reached through `${VAR}` in a config, where
/// the plan's author decides.
pub const OFFERED: &[&str] = &[
    AMPLIFIER_RECORD,
    AMPLIFIER_REPLAY,
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "AZURE_MANAGED_IDENTITY_CLIENT_ID",
    "AZURE_OPENAI_AD_TOKEN",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_API_VERSION",
    "AZURE_OPENAI_BASE_URL",
    "AZURE_OPENAI_ENDPOINT",
    "AZURE_OPENAI_KEY",
    "AZURE_POD_IDENTITY_AUTHORITY_HOST",
    "AZURE_USE_DEFAULT_CREDENTIAL",
    "AZURE_USE_MANAGED_IDENTITY",
    "CHAT_COMPLETIONS_API_KEY",
    "CHAT_COMPLETIONS_BASE_URL",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "IDENTITY_ENDPOINT",
    "IDENTITY_HEADER",
    "OLLAMA_API_KEY",
    OLLAMA_HOST,
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "VLLM_API_KEY",
    VLLM_BASE_URL,
    "VLLM_STREAM_IDLE_TIMEOUT",
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Where variables come from: this process, or a fixed set in tests.
#[derive(Debug, Clone, Default)]
pub enum Environment {
    /// The variables of this process.
    #[default]
    Process,
    /// These and no others.
    Fixed(BTreeMap<String, String>),
}

impl Environment {
    /// The value of a variable, if it is set and is text.
    pub fn get(&self, name: &str) -> Option<String> {
        match self {
            #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
            Self::Process => std::env::var(name).ok(),
            Self::Fixed(variables) => variables.get(name).cloned(),
        }
    }

    /// Every variable, for programs that are started with the person's own environment, such as git.
    pub fn all(&self) -> Vec<(OsString, OsString)> {
        match self {
            #[expect(clippy::disallowed_methods, reason = "handed on to programs, never read for a meaning")]
            Self::Process => std::env::vars_os().collect(),
            Self::Fixed(variables) => {
                variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
            }
        }
    }
}

/// The capability `environment.variable`: `{name}` gives the value of an offered variable, or null.
pub struct OfferedVariables(pub Environment);

#[async_trait]
impl CapabilityCall for OfferedVariables {
    async fn call(&self, arguments: Value) -> Result<Value, CapabilityError> {
        let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default();
        if !OFFERED.contains(&name) {
            let message =
                format!("`{name}` is not offered to modules; put `${{{name}}}` into the config instead");
            return Err(CapabilityError::Failed { name: "environment.variable".to_owned(), message });
        }
        Ok(self.0.get(name).map_or(Value::Null, Value::String))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn modules_see_the_offered_variables_and_no_others() {
        let variables = [("OPENAI_API_KEY", "k"), ("OTHER_SECRET", "s")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let offered = OfferedVariables(Environment::Fixed(variables.into()));
        assert_eq!(offered.call(json!({"name": "OPENAI_API_KEY"})).await.unwrap(), json!("k"));
        assert_eq!(offered.call(json!({"name": "GEMINI_API_KEY"})).await.unwrap(), Value::Null);
        assert!(offered.call(json!({"name": "OTHER_SECRET"})).await.is_err());
    }
}
