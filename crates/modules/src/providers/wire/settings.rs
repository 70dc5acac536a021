//! The config keys that every provider has. Reading them is forgiving where wizards and variables make texts of numbers;
//! what is not forgiven names the key.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use amplifier_core::contracts::Mounted;
use amplifier_core::loader::{LoadError, MountCx, near_misses};
use amplifier_core::redact::REDACTED;
use amplifier_core::retry::RetryPolicy;
use amplifier_protocol::chat::ResponseFormat;
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::environment::variable;
use super::keys::Keys;
use super::price::Price;

/// The variable that names the folder of recorded calls.
pub(super) const REPLAY: &str = "AMPLIFIER_REPLAY";
/// Other names of keys, as older configs write them.
const ALIASES: [(&str, &str); 3] = [
    ("model", "default_model"),
    ("stream_idle_timeout", "idle_timeout"),
    ("extra_body", "extra_request_params"),
];

/// What a plan may configure for any provider.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Settings {
    /// The key of the service; `${VAR}` reads a variable.
    pub(crate) api_key: Option<Secret>,
    /// Where the service is.
    pub(crate) base_url: Option<String>,
    /// The variable that said so, for whoever has to mend it.
    #[serde(skip)]
    pub(crate) base_url_from: Option<String>,
    /// The model that is asked when a request names none. `model` is the same key.
    pub(crate) default_model: Option<String>,
    /// The most tokens of an answer, where a request does not say.
    pub(crate) max_tokens: Option<u64>,
    /// Randomness, where a request does not say.
    pub(crate) temperature: Option<f64>,
    /// Nucleus sampling, where a request does not say.
    pub(crate) top_p: Option<f64>,
    /// Texts that end an answer, where a request does not say.
    pub(crate) stop: Option<Vec<String>>,
    /// The shape of answers, where a request does not say: `{type: json_schema, schema: …}` or `{type: json}`.
    #[schemars(with = "Option<Value>")]
    pub(crate) response_format: Option<ResponseFormat>,
    /// More headers for every request.
    pub(crate) headers: BTreeMap<String, String>,
    /// A proxy for every request. Without it the usual variables count, but never for this machine itself.
    pub(crate) proxy: Option<String>,
    /// Seconds one try may take.
    pub(crate) timeout: Seconds,
    /// Seconds to reach the service.
    pub(crate) connect_timeout: Seconds,
    /// Seconds until the answer begins.
    pub(crate) first_byte_timeout: Seconds,
    /// Seconds between two parts of an answer. `stream_idle_timeout` is the same key.
    pub(crate) idle_timeout: Seconds,
    /// The largest answer, in bytes.
    pub(crate) max_response_bytes: u64,
    /// Tries after the first.
    pub(crate) max_retries: u32,
    /// Seconds before the second try.
    pub(crate) min_retry_delay: f64,
    /// The most seconds that growth alone reaches.
    pub(crate) max_retry_delay: f64,
    /// Whether waits are spread.
    pub(crate) retry_jitter: bool,
    /// The most seconds a service may ask to wait; more than that ends the call.
    pub(crate) max_retry_after: Seconds,
    /// How many requests run at once for one key, over all sessions of this process; 0 for no limit.
    pub(crate) max_concurrent_requests: u32,
    /// Whether answers come piece by piece.
    pub(crate) use_streaming: bool,
    /// Which provider is asked first when several are mounted; lower is earlier.
    pub(crate) priority: Option<i64>,
    /// Whether events carry whole requests and answers; the same as `debug: raw`.
    pub(crate) raw: bool,
    /// How much of requests and answers events carry, secrets redacted: `off`, `short` (long texts cut), `raw`.
    pub(crate) debug: Detail,
    /// Keys put into every request last, as they are. `extra_body` is the same key.
    pub(crate) extra_request_params: Map<String, Value>,
    /// Tokens that fit into a request and its answer, where it is not known otherwise.
    pub(crate) context_window: Option<u64>,
    /// The most tokens the model can answer with, where it is not known otherwise.
    pub(crate) max_output_tokens: Option<u64>,
    /// Prices by model, instead of the built-in ones.
    pub(crate) prices: BTreeMap<String, Price>,
    /// Taken and without effect: only models that work are listed anyway.
    pub(crate) filtered: Option<bool>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            api_key: None,
            base_url: None,
            base_url_from: None,
            default_model: None,
            max_tokens: None,
            temperature: None,
            top_p: None,
            stop: None,
            response_format: None,
            headers: BTreeMap::new(),
            proxy: None,
            timeout: Seconds::new(600),
            connect_timeout: Seconds::new(10),
            first_byte_timeout: Seconds::new(300),
            idle_timeout: Seconds::new(120),
            max_response_bytes: 32 * 1024 * 1024,
            max_retries: 5,
            min_retry_delay: 1.0,
            max_retry_delay: 60.0,
            retry_jitter: true,
            max_retry_after: Seconds::new(600),
            max_concurrent_requests: 5,
            use_streaming: true,
            priority: None,
            raw: false,
            debug: Detail::Off,
            extra_request_params: Map::new(),
            context_window: None,
            max_output_tokens: None,
            prices: BTreeMap::new(),
            filtered: None,
        }
    }
}

impl Settings {
    /// The same settings with a key: the config's, else that of the first variable that is set.
    pub(crate) async fn with_key(mut self, cx: &MountCx, variables: &[&str]) -> Self {
        self.api_key = self.api_key.filter(|key| !key.0.trim().is_empty());
        for name in variables {
            if self.api_key.is_none() {
                self.api_key = variable(&cx.coordinator, name).await.map(Secret);
            }
        }
        if self.api_key.is_none() && variable(&cx.coordinator, REPLAY).await.is_some() {
            // Recorded answers need no key.
            self.api_key = Some(Secret("none-needed-for-recorded-answers".to_owned()));
        }
        self
    }

    /// The same settings with a place: the config's, else that of the first variable that is set, else this.
    pub(crate) async fn with_base_url(
        mut self,
        cx: &MountCx,
        variables: &[&str],
        usual: Option<&str>,
    ) -> Self {
        self.base_url = self.base_url.filter(|url| !url.trim().is_empty());
        for name in variables {
            if self.base_url.is_none() {
                self.base_url = variable(&cx.coordinator, name).await;
                self.base_url_from = self.base_url.is_some().then(|| (*name).to_owned());
            }
        }
        self.base_url = self.base_url.or_else(|| usual.map(str::to_owned));
        self
    }

    /// The key, if there is one.
    pub(crate) fn key(&self) -> Option<&str> {
        self.api_key.as_ref().map(|key| key.0.as_str())
    }

    /// How a provider without its key declines.
    pub(crate) fn missing_key(variables: &[&str]) -> Mounted {
        let names: Vec<_> = variables.iter().map(|name| format!("`{name}`")).collect();
        let reason = format!("no key: set {} or `api_key` in its config", names.join(" or "));
        Mounted::Skipped { reason }
    }

    pub(super) fn policy(&self) -> RetryPolicy {
        RetryPolicy {
            max_retries: self.max_retries,
            initial_delay: self.min_retry_delay,
            max_delay: self.max_retry_delay,
            jitter: self.retry_jitter,
            ..RetryPolicy::default()
        }
    }

    pub(super) fn detail(&self) -> Detail {
        if self.raw { Detail::Raw } else { self.debug }
    }

    /// A text without the key, whatever the service did with it.
    pub(super) fn scrub(&self, text: &str) -> String {
        match self.key() {
            Some(key) if key.len() >= 6 => text.replace(key, REDACTED),
            _ => text.to_owned(),
        }
    }
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// A time, as seconds in the config.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(with = "f64")]
pub(crate) struct Seconds(Duration);

impl Seconds {
    pub(crate) const fn new(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    pub(crate) fn get(self) -> Duration {
        self.0
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_secs_f64().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        match Duration::try_from_secs_f64(seconds) {
            Ok(time) if !time.is_zero() => Ok(Self(time)),
            _ => Err(D::Error::custom(format!("{seconds} is not a positive number of seconds"))),
        }
    }
}

/// How much of requests and answers events carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Detail {
    /// Nothing.
    #[default]
    Off,
    /// Everything, long texts cut.
    Short,
    /// Everything.
    Raw,
}

impl<'de> Deserialize<'de> for Detail {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(false) | Value::Null => Ok(Self::Off),
            Value::Bool(true) => Ok(Self::Short),
            Value::String(word) => match word.as_str() {
                "off" | "false" => Ok(Self::Off),
                "short" | "true" => Ok(Self::Short),
                "raw" => Ok(Self::Raw),
                other => Err(D::Error::custom(format!("`debug` is `off`, `short` or `raw`, not `{other}`"))),
            },
            other => Err(D::Error::custom(format!("`debug` is `off`, `short` or `raw`, not {other}"))),
        }
    }
}

/// Reads a config: the keys every provider has, and the provider's own. `defaults` is what this provider sets where the
/// plan sets nothing. A key that neither knows is a warning that names the nearest one.
pub(crate) fn read<T: DeserializeOwned + JsonSchema>(
    cx: &MountCx,
    config: Value,
    defaults: Value,
) -> Result<(Settings, T), LoadError> {
    let (shared, own) = (Keys::of::<Settings>(), Keys::of::<T>());
    let (mut for_all, mut for_one) = (into_map(defaults), Map::new());
    for (key, value) in into_map(config) {
        let key = match ALIASES.iter().find(|(alias, _)| *alias == key && !own.has(&key)) {
            Some((_, name)) => (*name).to_owned(),
            None => key,
        };
        if own.has(&key) {
            let value = own.tidy(&key, value);
            for_one.insert(key, value);
        } else if shared.has(&key) {
            // A key without a value asks for the default.
            if !value.is_null() {
                let value = shared.tidy(&key, value);
                for_all.insert(key, value);
            }
        } else {
            let known: Vec<_> = shared.names().chain(own.names()).collect();
            let near = near_misses(&key, &known);
            let hint = if near.is_empty() {
                String::new()
            } else {
                format!("; did you mean {}?", near.join(" or "))
            };
            cx.warn(format!("unknown config key `{key}` is ignored{hint}"));
        }
    }
    // Every key was looked at above.
    let settings = cx.read_part(Value::Object(for_all), |_| {})?;
    Ok((settings, cx.read_config(Value::Object(for_one))?))
}

fn into_map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
