//! Tools as the model and the wire see them: what is offered, what is called, what comes back, and what a call touches.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::text::sanitize;

mod pictures;

pub use pictures::{MAX_PICTURES, picture_bytes};

/// A tool as it is offered to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSpec {
    /// The name the model calls it by: short, snake_case, unique in a session.
    pub name: String,
    /// What it does and expects, for the model to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the input.
    #[serde(default)]
    pub parameters: Value,
    /// Native keys of a provider, kept as they came.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A model's wish to run a tool.
///
/// Reads what every known producer writes: `name` or `tool`, `arguments` or `input`, an object or its JSON text, flat
/// or inside `function`. Writes `{id, name, arguments}`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ToolCall {
    /// Joins the call and its result.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The input. An object, unless the model wrote something that is not one; then it is kept as it came.
    pub arguments: Value,
    /// Other keys, such as a provider's signature.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ToolCall {
    /// A call with an object of arguments.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: Value) -> Self {
        Self { id: id.into(), name: name.into(), arguments: tidy_arguments(arguments), extra: Map::new() }
    }
}

/// Null means no arguments, and JSON text means the object it spells.
fn tidy_arguments(arguments: Value) -> Value {
    match arguments {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
        Value::String(text) => match serde_json::from_str::<Value>(&text) {
            Ok(parsed @ Value::Object(_)) => parsed,
            _ => Value::String(text),
        },
        other => other,
    }
}

impl<'de> Deserialize<'de> for ToolCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut map = Map::<String, Value>::deserialize(deserializer)?;
        if let Some(Value::Object(function)) = map.shift_remove("function") {
            map.shift_remove("type");
            for (key, value) in function {
                map.entry(key).or_insert(value);
            }
        }
        let mut text = |names: [&'static str; 2]| -> Result<String, D::Error> {
            for name in names {
                match map.shift_remove(name) {
                    Some(Value::String(text)) => return Ok(text),
                    Some(Value::Null) | None => {}
                    Some(other) => {
                        return Err(D::Error::custom(format!(
                            "tool call `{name}` must be text, found {other}"
                        )));
                    }
                }
            }
            Err(D::Error::missing_field(names[0]))
        };
        let id = text(["id", "tool_call_id"])?;
        let name = text(["name", "tool"])?;
        let arguments =
            map.shift_remove("arguments").or_else(|| map.shift_remove("input")).unwrap_or(Value::Null);
        Ok(Self { id, name, arguments: tidy_arguments(arguments), extra: map })
    }
}

/// What a tool call gave, as it travels in events and on the wire.
///
/// Read from JSON, a failure that says nothing but its message has that message as its output, as one made here has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "ReadResult")]
#[schemars(!from)]
pub struct ToolResult {
    /// Whether the tool did what was asked.
    #[serde(default = "yes")]
    pub success: bool,
    /// The answer for the model; also set on failure, so that the model can see why. Pictures stand in it as `image`
    /// blocks; see [`ToolResult::to_model_content`].
    #[serde(default)]
    pub output: Value,
    /// Details of a failure, usually with `message` and `type`.
    #[serde(default)]
    pub error: Option<Map<String, Value>>,
}

/// A result as it was written.
#[derive(Deserialize)]
struct ReadResult {
    #[serde(default = "yes")]
    success: bool,
    #[serde(default)]
    output: Value,
    #[serde(default)]
    error: Option<Map<String, Value>>,
}

impl From<ReadResult> for ToolResult {
    fn from(read: ReadResult) -> Self {
        let ReadResult { success, output, error } = read;
        let mut result = Self { success, output, error };
        if !result.success && result.output.is_null() {
            result.output = result.error_message().map_or(Value::Null, |message| message.into());
        }
        result
    }
}

fn yes() -> bool {
    true
}

impl ToolResult {
    /// A success.
    pub fn success(output: Value) -> Self {
        Self { success: true, output, error: None }
    }

    /// A failure whose message is also its output.
    pub fn failure(message: impl Into<String>) -> Self {
        let message = message.into();
        let error = Map::from_iter([("message".to_owned(), Value::String(message.clone()))]);
        Self { success: false, output: Value::String(message), error: Some(error) }
    }

    /// The failure's message, if there is one.
    pub fn error_message(&self) -> Option<&str> {
        self.error.as_ref().and_then(|error| error.get("message")).and_then(Value::as_str)
    }

    /// The one text a model sees: JSON for objects and lists, text as it is, a word when there is nothing.
    pub fn to_model_text(&self) -> String {
        let text = match &self.output {
            Value::String(text) => sanitize(text).into_owned(),
            Value::Null if self.success => return "Success".to_owned(),
            Value::Null => format!("Error: {}", self.error_message().unwrap_or("Failed")),
            other => other.to_string(),
        };
        sanitize(&text).into_owned()
    }
}

/// How a tool's effect behaves when it is repeated, which decides what happens after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// Depends on its input alone.
    Pure,
    /// Looks at the world and changes nothing.
    Read,
    /// Changes the world; doing it twice is doing it once.
    Idempotent,
    /// Changes the world; doing it twice is something else.
    Write,
}

impl EffectClass {
    /// Whether the announcement of such a call must be on disk before the call begins.
    pub fn changes_the_world(self) -> bool {
        matches!(self, Self::Idempotent | Self::Write)
    }
}

/// What a tool touches, for approval policies and for recovery. A tool declares it; nobody guesses from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Effects {
    /// What repetition means.
    pub class: EffectClass,
    /// Reads files or other local state.
    pub reads: bool,
    /// Changes files or other local state.
    pub writes: bool,
    /// Starts programs.
    pub executes: bool,
    /// Talks to other machines.
    pub network: bool,
}

impl Effects {
    /// Touches nothing.
    pub const PURE: Self =
        Self { class: EffectClass::Pure, reads: false, writes: false, executes: false, network: false };
    /// Looks at local state.
    pub const READS: Self = Self { class: EffectClass::Read, reads: true, ..Self::PURE };
    /// Changes local state.
    pub const WRITES: Self = Self { class: EffectClass::Write, reads: true, writes: true, ..Self::PURE };
    /// Could do anything: what an undeclared outside tool is taken for.
    pub const UNKNOWN: Self =
        Self { class: EffectClass::Write, reads: true, writes: true, executes: true, network: true };

    /// How dangerous a call can be, in the words of approvals: `low` looks, `medium` changes files or talks to others,
    /// `high` starts programs.
    pub fn risk_level(&self) -> &'static str {
        match self {
            Self { executes: true, .. } => "high",
            Self { writes: true, .. } | Self { network: true, .. } => "medium",
            Self { class: EffectClass::Idempotent | EffectClass::Write, .. } => "medium",
            _ => "low",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_known_spelling_of_a_call_reads_the_same() {
        let expected = ToolCall::new("c1", "read_file", json!({"file_path": "a"}));
        for spelling in [
            json!({"id": "c1", "name": "read_file", "arguments": {"file_path": "a"}}),
            json!({"id": "c1", "tool": "read_file", "arguments": {"file_path": "a"}}),
            json!({"id": "c1", "name": "read_file", "input": {"file_path": "a"}}),
            json!({"id": "c1", "name": "read_file", "arguments": "{\"file_path\": \"a\"}"}),
            json!({"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{\"file_path\":\"a\"}"}}),
        ] {
            assert_eq!(serde_json::from_value::<ToolCall>(spelling.clone()).unwrap(), expected, "{spelling}");
        }
    }

    #[test]
    fn no_arguments_are_an_empty_object_and_bad_json_is_kept() {
        for none in [json!(null), json!({}), json!("")] {
            let call: ToolCall =
                serde_json::from_value(json!({"id": "c", "name": "t", "arguments": none})).unwrap();
            assert_eq!(call.arguments, json!({}));
        }
        let call: ToolCall =
            serde_json::from_value(json!({"id": "c", "name": "t", "arguments": "{bad"})).unwrap();
        assert_eq!(call.arguments, json!("{bad"));
    }

    #[test]
    fn other_keys_of_a_call_survive() {
        let call: ToolCall = serde_json::from_value(
            json!({"id": "c", "name": "t", "arguments": {}, "thought_signature": "x"}),
        )
        .unwrap();
        assert_eq!(serde_json::to_value(&call).unwrap()["thought_signature"], json!("x"));
    }

    #[test]
    fn the_model_reads_one_form_of_every_result() {
        assert_eq!(ToolResult::success(json!({"v": 1})).to_model_text(), "{\"v\":1}");
        assert_eq!(ToolResult::success(json!("a\u{0}b")).to_model_text(), "ab");
        assert_eq!(ToolResult::success(Value::Null).to_model_text(), "Success");
        assert_eq!(ToolResult::failure("boom").to_model_text(), "boom");
        let silent = ToolResult { success: false, output: Value::Null, error: None };
        assert_eq!(silent.to_model_text(), "Error: Failed");
    }

    #[test]
    fn a_failure_that_is_read_shows_its_message_and_what_was_said_stays() {
        let read = |json: Value| serde_json::from_value::<ToolResult>(json).unwrap().output;
        assert_eq!(read(json!({"success": false, "error": {"message": "boom"}})), json!("boom"));
        assert_eq!(read(json!({"success": false, "output": 1, "error": {"message": "boom"}})), json!(1));
        assert_eq!(read(json!({"success": false, "error": {"type": "X"}})), Value::Null);
        assert_eq!(read(json!({"error": {"message": "boom"}})), Value::Null, "a success");
    }
}
