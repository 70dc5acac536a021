//! A message of a conversation, as contexts store it and providers send it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::content::{ContentBlock, Extra};
use crate::tool::ToolCall;

/// Messages are written once and read by many: history, requests, journal and views share them.
pub type Messages = Vec<Arc<Message>>;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions that frame the conversation.
    System,
    /// Instructions of the developer.
    Developer,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// An old name of a tool's answer.
    Function,
    /// A tool's answer.
    Tool,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said. Null, as older producers write beside tool calls, is read as nothing.
    #[serde(default)]
    pub content: Content,
    /// The speaker's name, or the tool's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The call this answers, on a tool's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The calls of an assistant's message.
    #[serde(default, deserialize_with = "null_is_none", skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// What programs noted about the message; never sent to a model.
    #[serde(default, deserialize_with = "null_is_none", skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

fn null_is_none<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// What a message says: text, or a list of blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Blocks in order.
    Blocks(Vec<ContentBlock>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Content {
    /// The text a reader sees: text blocks joined by a blank line, thinking left out.
    pub fn visible_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Blocks(blocks) => visible_text(blocks),
        }
    }

    /// Whether nothing is said at all.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }
}

/// The text blocks of a list, joined by a blank line.
pub fn visible_text(blocks: &[ContentBlock]) -> Cow<'_, str> {
    let mut texts = blocks.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let first = texts.next().unwrap_or_default();
    texts.fold(Cow::Borrowed(first), |joined, text| Cow::Owned(format!("{joined}\n\n{text}")))
}

// By hand and not `untagged`: an untagged enum buffers, and a buffer loses the bytes of unknown blocks.
impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, a list of content blocks, or null")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.to_owned()))
            }

            fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Content, E> {
                Ok(Content::Text(text))
            }

            fn visit_unit<E: serde::de::Error>(self) -> Result<Content, E> {
                Ok(Content::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(Content::Blocks(blocks))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl Message {
    /// A message of plain text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self::new(role, Content::Text(text.into()))
    }

    /// What the person said.
    pub fn user(text: impl Into<String>) -> Self {
        Self::text(Role::User, text)
    }

    /// A message without calls or notes.
    pub fn new(role: Role, content: Content) -> Self {
        Self {
            role,
            content,
            name: None,
            tool_call_id: None,
            tool_calls: Vec::new(),
            metadata: Map::new(),
            extra: Extra::new(),
        }
    }

    /// What a tool answered.
    pub fn tool_result(call: &ToolCall, content: impl Into<Content>) -> Self {
        let mut message = Self::new(Role::Tool, content.into());
        message.tool_call_id = Some(call.id.clone());
        message.name = Some(call.name.clone());
        message
    }

    /// Every call this message makes, whether it stands in `tool_calls`, among the blocks, or in both.
    pub fn calls(&self) -> Vec<ToolCall> {
        let mut calls = self.tool_calls.clone();
        if let Content::Blocks(blocks) = &self.content {
            let known: HashSet<String> = calls.iter().map(|call| call.id.clone()).collect();
            for block in blocks {
                if let ContentBlock::ToolCall(block) = block
                    && !known.contains(&block.id)
                {
                    calls.push(ToolCall::new(block.id.clone(), block.name.clone(), block.input.clone()));
                }
            }
        }
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_blocks_and_null_are_all_content() {
        let text: Message = serde_json::from_value(json!({"role": "user", "content": "hi"})).unwrap();
        assert_eq!(text, Message::user("hi"));
        let blocks: Message =
            serde_json::from_value(json!({"role": "user", "content": [{"type": "text", "text": "hi"}]}))
                .unwrap();
        assert_eq!(blocks.content.visible_text(), "hi");
        let null: Message = serde_json::from_value(
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}]}),
        )
        .unwrap();
        assert!(null.content.is_empty());
        assert_eq!(null.calls(), vec![ToolCall::new("c", "t", json!({}))]);
    }

    #[test]
    fn a_bad_role_is_an_error() {
        assert!(serde_json::from_value::<Message>(json!({"role": "robot", "content": "x"})).is_err());
    }

    #[test]
    fn unknown_keys_and_unknown_blocks_survive_in_place() {
        let json = r#"{"role":"assistant","content":[{"type":"x","n":1.0e2},{"type":"text","text":"a"}],"metadata":{"openai:response_id":"r"},"thinking_block":{"a":1}}"#;
        let message: Message = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), json);
    }

    #[test]
    fn a_call_that_stands_twice_counts_once() {
        let message: Message = serde_json::from_value(json!({
            "role": "assistant",
            "content": [{"type": "tool_call", "id": "a", "name": "t", "input": {}}, {"type": "tool_call", "id": "b", "name": "t", "input": {}}],
            "tool_calls": [{"id": "a", "tool": "t", "arguments": {}}]
        }))
        .unwrap();
        let ids: Vec<_> = message.calls().into_iter().map(|call| call.id).collect();
        assert_eq!(ids, ["a", "b"]);
    }

    #[test]
    fn thinking_stays_out_of_the_visible_text() {
        let blocks = serde_json::from_value::<Content>(json!([
            {"type": "thinking", "thinking": "secret"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}
        ]))
        .unwrap();
        assert_eq!(blocks.visible_text(), "a\n\nb");
    }
}
