//! Events around a model call, as the loop sees it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Event, LOOP, PROVIDER};
use crate::usage::Usage;

/// A model call is about to be made. Hooks may deny it or add to its context.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProviderRequest {
    /// The provider's name in this session.
    pub provider: String,
    /// Which round of the loop.
    #[serde(default)]
    pub iteration: u64,
    /// The model, where it is chosen already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The messages, where the emitter has them already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Value>,
    /// Whether this is the wrap-up after the iteration limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_reached: Option<bool>,
}

impl Event for ProviderRequest {
    const NAME: &'static str = "provider:request";
    const EMITTER: &'static str = LOOP;
}

/// A model call was answered.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProviderResponse {
    /// The provider's name in this session.
    pub provider: String,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Value>,
    /// What it consumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// How many tools the model called.
    #[serde(default)]
    pub tool_calls: u64,
    /// Why the model stopped: `stop`, `tool_calls`, `length` where the most tokens were used up, `content_filter`, or a word of
    /// the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
}

impl Event for ProviderResponse {
    const NAME: &'static str = "provider:response";
    const EMITTER: &'static str = LOOP;
}

/// What went wrong, in two words and a sentence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorInfo {
    /// The kind of error.
    #[serde(rename = "type")]
    pub kind: String,
    /// What happened.
    pub msg: String,
}

/// A model call failed for good.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderError {
    /// The provider's name in this session.
    pub provider: String,
    /// What went wrong.
    pub error: ErrorInfo,
    /// Whether trying again could help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// The HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_code: Option<u16>,
    /// Joins request, response and retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl Event for ProviderError {
    const NAME: &'static str = "provider:error";
    const EMITTER: &'static str = LOOP;
}

/// A model call failed and will be tried again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderRetry {
    /// The provider.
    pub provider: String,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Which retry, beginning with 1.
    pub attempt: u32,
    /// How many there may be.
    pub max_retries: u32,
    /// Seconds until it is made.
    pub delay: f64,
    /// The kind of the failure.
    pub error_type: String,
    /// What happened.
    pub error_message: String,
    /// Joins request, response and retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl Event for ProviderRetry {
    const NAME: &'static str = "provider:retry";
    const EMITTER: &'static str = PROVIDER;
}

/// A provider slows down before the service does it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProviderThrottle {
    /// The provider.
    pub provider: String,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why, such as `tokens_low`.
    #[serde(default)]
    pub reason: String,
    /// What runs low.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<String>,
    /// How much is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<u64>,
    /// How much there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// What part is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// When it is full again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_timestamp: Option<String>,
    /// Seconds to wait.
    #[serde(default)]
    pub delay: f64,
    /// Joins request, response and retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl Event for ProviderThrottle {
    const NAME: &'static str = "provider:throttle";
    const EMITTER: &'static str = PROVIDER;
}

/// A history with missing tool results was mended before it was sent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProviderToolSequenceRepaired {
    /// The provider.
    pub provider: String,
    /// How many results were made up.
    pub repair_count: u64,
    /// Which.
    #[serde(default)]
    pub repairs: Vec<Value>,
}

impl Event for ProviderToolSequenceRepaired {
    const NAME: &'static str = "provider:tool_sequence_repaired";
    const EMITTER: &'static str = PROVIDER;
}

/// A provider or model is being chosen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProviderResolve {
    /// The provider chosen so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model chosen so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Event for ProviderResolve {
    const NAME: &'static str = "provider:resolve";
    const EMITTER: &'static str = LOOP;
}
