//! The environment, read for its meaning here and nowhere else. Each variable the program knows is a constant below.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use amplifier_core::contracts::{CapabilityCall, CapabilityError};
use amplifier_core::redact::names_a_secret;
use amplifier_modules::environment;
use async_trait::async_trait;
use serde_json::Value;

use crate::keys::{Keys, Problem};
use crate::paths::Home;
use crate::plain::{KnownPlain, Plain};

mod seal;

pub use seal::seal;

/// Moves the home folder (`~/.amplifierd`).
pub const AMPLIFIER_HOME: &str = "AMPLIFIER_HOME";
/// The person's own folder, under which the home folder is.
pub const HOME: &str = "HOME";

/// The bundle to use when none is named, as the setting `bundle.active`.
pub const AMPLIFIER_BUNDLE: &str = "AMPLIFIER_BUNDLE";
/// As the setting `prefer`.
pub const AMPLIFIER_PREFER: &str = "AMPLIFIER_PREFER";
/// As the setting `approve`.
pub const AMPLIFIER_APPROVE: &str = "AMPLIFIER_APPROVE";
/// As the setting `limits.max_cost_usd`.
pub const AMPLIFIER_MAX_COST_USD: &str = "AMPLIFIER_MAX_COST_USD";
/// As the setting `limits.timeout_seconds`.
pub const AMPLIFIER_TIMEOUT_SECONDS: &str = "AMPLIFIER_TIMEOUT_SECONDS";
/// As the setting `limits.max_tokens`.
pub const AMPLIFIER_MAX_TOKENS: &str = "AMPLIFIER_MAX_TOKENS";
/// As the setting `ui.color`.
pub const AMPLIFIER_COLOR: &str = "AMPLIFIER_COLOR";
/// As the setting `ui.thinking`.
pub const AMPLIFIER_THINKING: &str = "AMPLIFIER_THINKING";

/// Where the secret service of the session is; without it there is no keyring to ask on Linux.
pub const DBUS_SESSION_BUS_ADDRESS: &str = "DBUS_SESSION_BUS_ADDRESS";
/// Where programs are looked for.
pub const PATH: &str = "PATH";
/// The person's editor for whole screens.
pub const VISUAL: &str = "VISUAL";
/// The person's editor.
pub const EDITOR: &str = "EDITOR";
/// Set to anything, it keeps colours out of what is printed.
pub const NO_COLOR: &str = "NO_COLOR";
/// What kind of terminal this is; a `dumb` one has no colours.
pub const TERM: &str = "TERM";

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

/// The language and letters of the person; the first that is set counts.
pub const LC_ALL: &str = "LC_ALL";
/// See [`LC_ALL`].
pub const LC_CTYPE: &str = "LC_CTYPE";
/// See [`LC_ALL`].
pub const LANG: &str = "LANG";

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
    /// Those of another environment, and keys that a person has stored for the ones that are not set there.
    WithKeys(Box<Environment>, Arc<Keys>),
    /// Those of another environment, and keys that stand in plain text somewhere, under the names that stand for them.
    WithPlain(Box<Environment>, KnownPlain),
}

impl Environment {
    /// The value of a variable, if it is set and is text.
    pub fn get(&self, name: &str) -> Option<String> {
        match self {
            Self::Process => environment::own().get(OsStr::new(name))?.to_str().map(str::to_owned),
            Self::Fixed(variables) => variables.get(name).cloned(),
            // The store is opened when something is missing, and not before.
            Self::WithKeys(first, keys) => match first.get(name).filter(|value| !value.is_empty()) {
                Some(value) => Some(value),
                None => keys.find(name).or_else(|| first.get(name)),
            },
            Self::WithPlain(first, plain) => plain.find(name).or_else(|| first.get(name)),
        }
    }

    /// A folder that a variable names, whatever its name is made of.
    pub fn folder(&self, name: &str) -> Option<PathBuf> {
        let value = match self {
            Self::Process => environment::own().get(OsStr::new(name)).cloned(),
            Self::Fixed(variables) => variables.get(name).map(OsString::from),
            Self::WithKeys(first, _) | Self::WithPlain(first, _) => return first.folder(name),
        };
        value.filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// The variables of these that are set to something that is no text. Nobody reads them, so they must not be passed over:
    /// one may be a limit.
    pub fn garbled<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
        let all = self.all();
        let is_garbled =
            |name: &&str| all.iter().any(|(set, value)| set.as_os_str() == *name && value.to_str().is_none());
        names.filter(is_garbled).collect()
    }

    /// The same variables, and room for what stands in plain text; it is shared by all copies.
    #[must_use]
    pub fn with_plain(self) -> Self {
        match self {
            Self::WithPlain(..) => self,
            other => Self::WithPlain(Box::new(other), KnownPlain::default()),
        }
    }

    /// Remembers what stands in plain text somewhere, where there is room for it.
    pub fn learn(&self, plain: &Plain) {
        if let Self::WithPlain(_, known) = self {
            known.learn(plain);
        }
    }

    /// Remembers that a value is a key, where there is room for it.
    pub(crate) fn note_secret(&self, value: &str) {
        if let Self::WithPlain(_, known) = self {
            known.note(value);
        }
    }

    /// The same variables for one session: what is learned for another from now on changes none of its references.
    #[must_use]
    pub(crate) fn of_session(&self) -> Self {
        match self {
            Self::WithPlain(first, known) => Self::WithPlain(first.clone(), known.of_session()),
            other => other.clone(),
        }
    }

    /// What stands in plain text, by the references for it.
    pub(crate) fn plain(&self) -> Plain {
        match self {
            Self::WithPlain(_, known) => known.plain(),
            _ => Plain::default(),
        }
    }

    /// The keys that can be told without asking anybody: those of variables that are offered to modules, those in the file,
    /// those that the keyring has given already, those in plain text, and those that were noted.
    pub(crate) fn known_secrets(&self) -> Vec<String> {
        match self {
            Self::Process | Self::Fixed(_) => {
                let secret = |name: &&str| names_a_secret(name);
                OFFERED.iter().copied().filter(secret).filter_map(|name| self.get(name)).collect()
            }
            Self::WithKeys(first, keys) => {
                first.known_secrets().into_iter().chain(keys.values_at_hand()).collect()
            }
            Self::WithPlain(first, plain) => {
                first.known_secrets().into_iter().chain(plain.values()).collect()
            }
        }
    }

    /// The stored keys, where there are any.
    fn keys(&self) -> Option<&Keys> {
        match self {
            Self::WithKeys(_, keys) => Some(keys),
            Self::WithPlain(first, _) => first.keys(),
            Self::Process | Self::Fixed(_) => None,
        }
    }

    /// The same variables, and the stored keys of a home for those that are not set.
    #[must_use]
    pub fn with_keys(self, home: &Home) -> Self {
        let keys = Keys::new(home, &self);
        Self::WithKeys(Box::new(self), Arc::new(keys))
    }

    /// What went wrong while a stored key was looked for; without it a key would be missing in silence.
    pub fn problems(&self) -> Vec<Problem> {
        self.keys().map(Keys::problems).unwrap_or_default()
    }

    /// Every variable but secrets: for programs that the user has named, such as an editor, which need the rest to find the
    /// terminal, the display and their configuration.
    pub fn without_secrets(&self) -> Vec<(OsString, OsString)> {
        let mut all = self.all();
        all.retain(|(name, value)| !seal::is_secret(name.as_encoded_bytes(), value.as_encoded_bytes()));
        all
    }

    /// Every variable, also those that hold secrets.
    pub fn all(&self) -> Vec<(OsString, OsString)> {
        match self {
            Self::Process => {
                environment::own().iter().map(|(name, value)| (name.clone(), value.clone())).collect()
            }
            Self::Fixed(variables) => {
                variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
            }
            // Programs get what the person gave them; stored keys are for modules.
            Self::WithKeys(first, _) | Self::WithPlain(first, _) => first.all(),
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
        // A keyring may ask the person first; nobody else shall wait for the answer.
        let waits = self.0.keys().is_some_and(|keys| keys.asks_keyring(name));
        let value = if waits {
            let (environment, name) = (self.0.clone(), name.to_owned());
            let asked = tokio::task::spawn_blocking(move || environment.get(&name)).await;
            asked.map_err(|error| {
                let (name, message) = ("environment.variable".to_owned(), error.to_string());
                CapabilityError::Failed { name, message }
            })?
        } else {
            self.0.get(name)
        };
        Ok(value.map_or(Value::Null, Value::String))
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
