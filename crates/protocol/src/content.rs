//! The blocks a message is made of. A block we do not know is kept byte for byte.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Keys that a newer producer added; they survive a round trip.
pub type Extra = Map<String, Value>;

/// Who a block is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Only for the program.
    Internal,
    /// For developers, in logs and traces.
    Developer,
    /// For the person in the conversation.
    User,
}

/// One block of content.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Plain text.
    Text(TextBlock),
    /// A model's thinking, with the signature its service wants back unchanged.
    Thinking(ThinkingBlock),
    /// Thinking that the service sealed.
    RedactedThinking(RedactedThinkingBlock),
    /// A wish to run a tool.
    ToolCall(ToolCallBlock),
    /// What a tool gave.
    ToolResult(ToolResultBlock),
    /// A picture.
    Image(ImageBlock),
    /// Reasoning items that a service wants back between rounds.
    Reasoning(ReasoningBlock),
    /// Anything else, exactly as it came.
    #[serde(untagged)]
    Unknown(UnknownBlock),
}

/// Plain text.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TextBlock {
    /// The text.
    pub text: String,
    /// Who it is meant for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// Other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A model's thinking.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ThinkingBlock {
    /// The text of the thought.
    pub thinking: String,
    /// Proof of the service that the thought is its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Opaque reasoning state of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<Value>>,
    /// Who it is meant for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// Other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Thinking that the service sealed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RedactedThinkingBlock {
    /// The sealed bytes, as text.
    pub data: String,
    /// Who it is meant for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// Other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A wish to run a tool, in its place among the other blocks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolCallBlock {
    /// Joins the call and its result.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The input.
    #[serde(default)]
    pub input: Value,
    /// Who it is meant for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// Other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a tool gave.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolResultBlock {
    /// The id of the call this answers.
    pub tool_call_id: String,
    /// The answer.
    #[serde(default)]
    pub output: Value,
    /// Who it is meant for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// Other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ImageBlock {
    /// Where the bytes are, such as `{type: base64, media_type, data}`.
    pub source: Map<String, Value>,
    /// Who it is meant for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// Other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Reasoning items that a service wants back between rounds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReasoningBlock {
    /// The items.
    #[serde(default)]
    pub content: Vec<Value>,
    /// Their readable summary.
    #[serde(default)]
    pub summary: Vec<Value>,
    /// Who it is meant for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// Other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A block of a type we do not know, as the bytes it came in.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct UnknownBlock(Box<RawValue>);

impl UnknownBlock {
    /// The block's JSON text.
    pub fn as_json(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for UnknownBlock {
    fn eq(&self, other: &Self) -> bool {
        self.as_json() == other.as_json()
    }
}

impl ContentBlock {
    /// A block of plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextBlock { text: text.into(), ..TextBlock::default() })
    }

    /// The value of `type`.
    pub fn kind(&self) -> String {
        match self {
            Self::Text(_) => "text".to_owned(),
            Self::Thinking(_) => "thinking".to_owned(),
            Self::RedactedThinking(_) => "redacted_thinking".to_owned(),
            Self::ToolCall(_) => "tool_call".to_owned(),
            Self::ToolResult(_) => "tool_result".to_owned(),
            Self::Image(_) => "image".to_owned(),
            Self::Reasoning(_) => "reasoning".to_owned(),
            Self::Unknown(block) => kind_of(block.as_json()),
        }
    }
}

fn kind_of(json: &str) -> String {
    #[derive(Deserialize)]
    struct Tag {
        #[serde(rename = "type", default)]
        kind: Option<String>,
    }
    // Not an object, or `type` is not text: no kind we could know.
    serde_json::from_str::<Tag>(json).ok().and_then(|tag| tag.kind).unwrap_or_default()
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        if !raw.get().trim_start().starts_with('{') {
            return Err(D::Error::custom("a content block must be an object"));
        }
        let read = match kind_of(raw.get()).as_str() {
            "text" => parse(&raw).map(Self::Text),
            "thinking" => parse(&raw).map(Self::Thinking),
            "redacted_thinking" => parse(&raw).map(Self::RedactedThinking),
            "tool_call" => parse(&raw).map(Self::ToolCall),
            "tool_result" => parse(&raw).map(Self::ToolResult),
            "image" => parse(&raw).map(Self::Image),
            "reasoning" => parse(&raw).map(Self::Reasoning),
            _ => return Ok(Self::Unknown(UnknownBlock(raw))),
        };
        read.map_err(D::Error::custom)
    }
}

/// Reads one known block. The tag is not one of its own keys, or it would come back twice.
fn parse<T: for<'a> Deserialize<'a>>(raw: &RawValue) -> Result<T, serde_json::Error> {
    #[derive(Deserialize)]
    struct Tagged<T> {
        #[serde(rename = "type")]
        _kind: serde::de::IgnoredAny,
        #[serde(flatten)]
        block: T,
    }
    serde_json::from_str::<Tagged<T>>(raw.get()).map(|tagged| tagged.block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(json: &str) -> String {
        let block: ContentBlock = serde_json::from_str(json).unwrap();
        let written = serde_json::to_string(&block).unwrap();
        assert_eq!(serde_json::from_str::<ContentBlock>(&written).unwrap(), block);
        written
    }

    #[test]
    fn every_known_block_comes_back_equal_with_its_other_keys() {
        for json in [
            r#"{"type":"text","text":"hi","visibility":"user","cache_control":{"type":"ephemeral"}}"#,
            r#"{"type":"thinking","thinking":"hm","signature":"c2ln+/=","content":["enc","rs_1"]}"#,
            r#"{"type":"redacted_thinking","data":"abc"}"#,
            r#"{"type":"tool_call","id":"1","name":"t","input":{"a":1}}"#,
            r#"{"type":"tool_result","tool_call_id":"1","output":[1,2]}"#,
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}"#,
            r#"{"type":"reasoning","content":[{"a":1}],"summary":[]}"#,
        ] {
            assert_eq!(round_trip(json), json);
        }
    }

    #[test]
    fn an_unknown_block_keeps_its_bytes() {
        let json =
            r#"{"type":"server_tool_use", "n": 1.10, "big": 123456789012345678901234567890, "s":"\u00e9"}"#;
        assert_eq!(round_trip(json), json);
        let block: ContentBlock = serde_json::from_str(json).unwrap();
        assert_eq!(block.kind(), "server_tool_use");
    }

    #[test]
    fn a_broken_known_block_is_an_error_and_no_panic() {
        assert!(serde_json::from_str::<ContentBlock>(r#"{"type":"text"}"#).is_err());
        assert!(serde_json::from_str::<ContentBlock>("[]").is_err());
        assert!(serde_json::from_str::<ContentBlock>("\"text\"").is_err());
    }
}
