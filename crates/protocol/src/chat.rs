//! A request to a model and its answer.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content::{ContentBlock, Extra};
use crate::message::{Messages, visible_text};
use crate::tool::{ToolCall, ToolSpec};
use crate::usage::Usage;

/// What a provider is asked. Only `messages` is needed; providers ignore what they cannot do and say so.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The conversation, oldest first.
    pub messages: Messages,
    /// The tools on offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Arc<ToolSpec>>>,
    /// The shape the answer must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// Randomness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The most tokens the answer may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Joins requests of one conversation where a service wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// Whether the caller wants the answer as it forms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Notes for providers and hooks; not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// The model, where the provider's default is not wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Which tools may or must be called: a word or an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<Value>,
    /// Texts that end the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
    /// How hard to think, in the provider's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// Seconds the call may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// Other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ChatRequest {
    /// A request of messages alone.
    pub fn new(messages: Messages) -> Self {
        Self { messages, ..Self::default() }
    }
}

/// The shape an answer must have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponseFormat {
    /// Free text.
    Text,
    /// Any JSON.
    Json,
    /// JSON that fits a schema.
    JsonSchema {
        /// The schema. Written as `schema`, read under both names.
        #[serde(rename = "schema", alias = "json_schema")]
        json_schema: Value,
        /// Whether the service must enforce it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
}

/// What a provider answered.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChatResponse {
    /// The blocks, in the order the model made them.
    pub content: Vec<ContentBlock>,
    /// The calls, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// What the call consumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What the provider had to leave out of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degradation: Option<Degradation>,
    /// Why the answer ended: `stop`, `tool_calls`, `length`, `content_filter`, or a word of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// Notes to be kept with the stored message, such as a response id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ChatResponse {
    /// An answer of plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], ..Self::default() }
    }

    /// The text a person reads; thinking is not part of it.
    pub fn visible_text(&self) -> String {
        visible_text(&self.content).into_owned()
    }

    /// The calls, whether the provider listed them or left them among the blocks.
    pub fn calls(&self) -> Vec<ToolCall> {
        if let Some(calls) = &self.tool_calls {
            return calls.clone();
        }
        let calls = self.content.iter().filter_map(|block| match block {
            ContentBlock::ToolCall(block) => {
                Some(ToolCall::new(block.id.clone(), block.name.clone(), block.input.clone()))
            }
            _ => None,
        });
        calls.collect()
    }
}

/// What was asked for, what was given instead, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Degradation {
    /// What was asked for.
    pub requested: String,
    /// What was given.
    pub actual: String,
    /// Why.
    pub reason: String,
    /// Other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;
    use serde_json::json;

    #[test]
    fn a_request_needs_only_messages_and_keeps_what_it_does_not_know() {
        let json = json!({"messages": [{"role": "user", "content": "hi"}], "tool_choice": {"type": "tool"}, "seed": 7});
        let request: ChatRequest = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(*request.messages[0], Message::user("hi"));
        assert_eq!(serde_json::to_value(&request).unwrap(), json);
    }

    #[test]
    fn a_request_with_every_field_comes_back_as_it_was_written() {
        let json = json!({
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [{"name": "t", "description": "does", "parameters": {"type": "object"}}],
            "response_format": {"type": "json_schema", "schema": {"a": 1}, "strict": true},
            "temperature": 0.5, "top_p": 0.9, "max_output_tokens": 100, "conversation_id": "c",
            "stream": true, "metadata": {"k": "v"}, "model": "m", "tool_choice": {"type": "tool"},
            "stop": ["END"], "reasoning_effort": "high", "timeout": 7.5, "unknown": [1]
        });
        let request: ChatRequest = serde_json::from_value(json.clone()).unwrap();
        let fields = serde_json::to_value(&request).unwrap();
        assert_eq!(fields, json);
        assert_eq!((request.max_output_tokens, request.timeout), (Some(100), Some(7.5)));
    }

    #[test]
    fn a_schema_is_read_under_both_names_and_written_under_one() {
        for key in ["schema", "json_schema"] {
            let format: ResponseFormat =
                serde_json::from_value(json!({"type": "json_schema", key: {"a": 1}})).unwrap();
            assert_eq!(
                serde_json::to_value(&format).unwrap(),
                json!({"type": "json_schema", "schema": {"a": 1}})
            );
        }
    }

    #[test]
    fn calls_are_found_among_the_blocks() {
        let response: ChatResponse = serde_json::from_value(
            json!({"content": [{"type": "tool_call", "id": "c", "name": "t", "input": {"a": 1}}]}),
        )
        .unwrap();
        assert_eq!(response.calls(), vec![ToolCall::new("c", "t", json!({"a": 1}))]);
    }
}
