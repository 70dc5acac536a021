//! Events on the wire to a model, and the answer as it forms.

use schemars::JsonSchema;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::{ErrorInfo, Event, LOOP, PROVIDER};
use crate::usage::Usage;

/// A request leaves for the service.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LlmRequest {
    /// The provider.
    pub provider: String,
    /// The model.
    #[serde(default)]
    pub model: String,
    /// How many messages it holds.
    #[serde(default)]
    pub message_count: u64,
    /// Joins request, response and retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Whether it holds system text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_system: Option<bool>,
    /// Whether the answer is streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// The whole request with secrets redacted, when asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

impl Event for LlmRequest {
    const NAME: &'static str = "llm:request";
    const EMITTER: &'static str = PROVIDER;
}

/// The service answered, or failed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LlmResponse {
    /// The provider.
    pub provider: String,
    /// The model.
    #[serde(default)]
    pub model: String,
    /// `ok` or `error`.
    #[serde(default)]
    pub status: String,
    /// How long it took.
    #[serde(default)]
    pub duration_ms: f64,
    /// Joins request, response and retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What it consumed, without `total_tokens`: services disagree on what a total counts.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "without_total")]
    pub usage: Option<Usage>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The whole answer, when asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

fn without_total<S: Serializer>(usage: &Option<Usage>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut written = serde_json::to_value(usage).map_err(S::Error::custom)?;
    if let Value::Object(counts) = &mut written {
        counts.shift_remove("total_tokens");
    }
    written.serialize(serializer)
}

impl Event for LlmResponse {
    const NAME: &'static str = "llm:response";
    const EMITTER: &'static str = PROVIDER;
}

/// A block of the answer begins.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ContentBlockStart {
    /// The block's type.
    pub block_type: String,
    /// The block's place.
    pub block_index: u64,
    /// How many blocks there are, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_blocks: Option<u64>,
    /// Notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

impl Event for ContentBlockStart {
    const NAME: &'static str = "content_block:start";
    const EMITTER: &'static str = LOOP;
}

/// A piece of a forming block: text, thinking, or a tool's arguments.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ContentBlockDelta {
    /// The block's type.
    pub block_type: String,
    /// The block's place.
    pub block_index: u64,
    /// The piece.
    pub text: String,
}

impl Event for ContentBlockDelta {
    const NAME: &'static str = "content_block:delta";
    const EMITTER: &'static str = LOOP;
}

/// A block of the answer is complete.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ContentBlockEnd {
    /// The block's place.
    pub block_index: u64,
    /// How many blocks there are, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_blocks: Option<u64>,
    /// The whole block.
    #[serde(default)]
    pub block: Value,
    /// What the call consumed, on its last block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl Event for ContentBlockEnd {
    const NAME: &'static str = "content_block:end";
    const EMITTER: &'static str = LOOP;
}

/// A piece of forming thought.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ThinkingDelta {
    /// The piece.
    pub text: String,
}

impl Event for ThinkingDelta {
    const NAME: &'static str = "thinking:delta";
    const EMITTER: &'static str = LOOP;
}

/// A whole thought.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ThinkingFinal {
    /// The thought.
    pub text: String,
}

impl Event for ThinkingFinal {
    const NAME: &'static str = "thinking:final";
    const EMITTER: &'static str = LOOP;
}

/// The service begins a block.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LlmStreamBlockStart {
    /// The call.
    pub request_id: String,
    /// The block's place.
    pub block_index: u64,
    /// `text`, `thinking` or `tool_use`.
    pub block_type: String,
    /// The tool, for a tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Event for LlmStreamBlockStart {
    const NAME: &'static str = "llm:stream_block_start";
    const EMITTER: &'static str = PROVIDER;
}

/// The service sent a piece of a block.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LlmStreamBlockDelta {
    /// The call.
    pub request_id: String,
    /// The block's place.
    pub block_index: u64,
    /// `text` or `thinking`.
    pub block_type: String,
    /// The piece's place in the block, beginning with 0.
    pub sequence: u64,
    /// The piece.
    pub text: String,
}

impl Event for LlmStreamBlockDelta {
    const NAME: &'static str = "llm:stream_block_delta";
    const EMITTER: &'static str = PROVIDER;
}

/// The service finished a block.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LlmStreamBlockEnd {
    /// The call.
    pub request_id: String,
    /// The block's place.
    pub block_index: u64,
    /// `text`, `thinking` or `tool_use`.
    pub block_type: String,
}

impl Event for LlmStreamBlockEnd {
    const NAME: &'static str = "llm:stream_block_end";
    const EMITTER: &'static str = PROVIDER;
}

/// A stream broke after at least one piece.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LlmStreamAborted {
    /// The call.
    pub request_id: String,
    /// What went wrong.
    pub error: ErrorInfo,
}

impl Event for LlmStreamAborted {
    const NAME: &'static str = "llm:stream_aborted";
    const EMITTER: &'static str = PROVIDER;
}
