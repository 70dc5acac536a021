//! The input of a tool from words of a command line, and whether it fits the tool's schema at its top: keys that must be
//! there, keys nobody knows, types and fixed values. What lies deeper is the tool's own to judge.

use std::collections::BTreeSet;

use amplifier_protocol::tool::ToolSpec;
use serde_json::{Map, Value};

/// How many references and choices a schema may lead through.
const DEEPEST: usize = 8;

/// Why an input does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    #[error("`{word}` is not `NAME=VALUE`")]
    NoPair { word: String },
    #[error("`{name}` is given twice")]
    Twice { name: String },
    #[error("the input is not JSON: {message}")]
    Json { message: String },
    #[error("the input of a tool is an object, this is {found}")]
    NoObject { found: &'static str },
    #[error("the input does not fit `{tool}`:\n  {}", problems.join("\n  "))]
    Unfit { tool: String, problems: Vec<String> },
}

/// Reads `NAME=VALUE` words on top of a JSON object. A value is JSON where it can be, else text; where the tool wants text
/// it is text, so that `path=2024` names a file.
pub(super) fn read_input(tool: &ToolSpec, json: Option<&str>, words: &[String]) -> Result<Value, InputError> {
    let mut input = match json {
        None => Map::new(),
        Some(text) => match serde_json::from_str(text) {
            Ok(Value::Object(input)) => input,
            Ok(other) => return Err(InputError::NoObject { found: kind(&other) }),
            Err(error) => return Err(InputError::Json { message: error.to_string() }),
        },
    };
    let mut seen = BTreeSet::new();
    for word in words {
        let (name, text) = word.split_once('=').ok_or_else(|| InputError::NoPair { word: word.clone() })?;
        if !seen.insert(name) {
            return Err(InputError::Twice { name: name.to_owned() });
        }
        let wanted =
            property(tool, name).map(|schema| Allowed::by(&tool.parameters, schema)).unwrap_or_default();
        input.insert(name.to_owned(), wanted.read(text));
    }
    Ok(Value::Object(input))
}

/// Everything that does not fit.
pub(super) fn check(tool: &ToolSpec, input: &Value) -> Result<(), InputError> {
    let Value::Object(given) = input else { return Err(InputError::NoObject { found: kind(input) }) };
    let schema = &tool.parameters;
    let mut problems = Vec::new();
    for name in
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        if !given.contains_key(name) {
            problems.push(format!("`{name}` is missing"));
        }
    }
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    for (name, value) in given {
        match property(tool, name) {
            Some(wanted) => problems.extend(Allowed::by(schema, wanted).misfit(name, value)),
            None if closed => {
                let known = schema.get("properties").and_then(Value::as_object);
                let known: Vec<_> =
                    known.into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect();
                problems.push(format!("`{name}` is not known; known are {}", known.join(", ")));
            }
            None => {}
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(InputError::Unfit { tool: tool.name.clone(), problems }) }
}

fn property<'s>(tool: &'s ToolSpec, name: &str) -> Option<&'s Value> {
    tool.parameters.get("properties")?.get(name)
}

/// What a value may be, as far as it is told; nothing told means anything.
#[derive(Debug, Default)]
struct Allowed {
    types: BTreeSet<String>,
    values: Vec<Value>,
    /// Whether some part says nothing that is understood here.
    open: bool,
}

impl Allowed {
    fn by(whole: &Value, schema: &Value) -> Self {
        let mut allowed = Self::default();
        allowed.add(whole, schema, 0);
        allowed
    }

    fn add(&mut self, whole: &Value, schema: &Value, depth: usize) {
        let list = |key: &str| schema.get(key).and_then(Value::as_array);
        let named = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|name| whole.pointer(name.strip_prefix('#')?));
        if depth > DEEPEST {
            self.open = true;
        } else if let Some(named) = named {
            self.add(whole, named, depth + 1);
        } else if let Some(parts) = list("anyOf").or_else(|| list("oneOf")) {
            parts.iter().for_each(|part| self.add(whole, part, depth + 1));
        } else if let Some(values) = list("enum") {
            self.values.extend(values.iter().cloned());
        } else if let Some(value) = schema.get("const") {
            self.values.push(value.clone());
        } else {
            match schema.get("type") {
                Some(Value::String(name)) => drop(self.types.insert(name.clone())),
                Some(Value::Array(names)) => {
                    self.types.extend(names.iter().filter_map(Value::as_str).map(str::to_owned));
                }
                _ => self.open = true,
            }
        }
    }

    /// A word of a command line as the value that is wanted.
    fn read(&self, text: &str) -> Value {
        let parsed = serde_json::from_str::<Value>(text).ok();
        let fits = |value: &Value| self.misfit("", value).is_none();
        let plain = Value::String(text.to_owned());
        match parsed {
            // Where nothing is told, JSON is meant as JSON.
            Some(value) if fits(&value) => value,
            Some(value) if !fits(&plain) => value,
            _ => plain,
        }
    }

    fn misfit(&self, name: &str, value: &Value) -> Option<String> {
        let nothing_told = self.types.is_empty() && self.values.is_empty();
        let has_type = |wanted: &String| match wanted.as_str() {
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0),
            wanted => kind(value) == wanted,
        };
        if self.open || nothing_told || self.values.contains(value) || self.types.iter().any(has_type) {
            return None;
        }
        let wanted = self.types.iter().cloned().chain(self.values.iter().map(ToString::to_string));
        let wanted: Vec<_> = wanted.filter(|wanted| wanted != "null").collect();
        Some(format!("`{name}` must be {}, not {}", wanted.join(" or "), shown(value)))
    }
}

/// The type of a value in the words of a schema.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.chars().count() > 40 {
        true => format!("a {}", kind(value)),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool() -> ToolSpec {
        let parameters = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "limit": {"anyOf": [{"$ref": "#/$defs/Count"}, {"type": "null"}]},
                "mode": {"enum": ["fast", "slow"]},
                "tags": {"type": ["array", "null"]},
                "any": {"description": "whatever"},
            },
            "required": ["path"],
            "additionalProperties": false,
            "$defs": {"Count": {"type": "integer"}},
        });
        serde_json::from_value(json!({"name": "t", "parameters": parameters})).unwrap()
    }

    #[test]
    fn words_become_the_values_that_the_tool_wants() {
        let words = ["path=2024", "limit=3", "mode=fast", "tags=[\"a\"]", "any=true", "more=x=y"];
        let words: Vec<_> = words.map(str::to_owned).to_vec();
        let read = read_input(&tool(), Some(r#"{"limit": 1, "z": null}"#), &words).unwrap();
        let expected = json!({
            "limit": 3, "z": null, "path": "2024", "mode": "fast", "tags": ["a"], "any": true, "more": "x=y"
        });
        assert_eq!(read, expected);
        // Quotes say that text is meant; what fits nothing is told as it was written.
        let quoted =
            read_input(&tool(), None, &["path=\"a b\"".to_owned(), "limit=many".to_owned()]).unwrap();
        assert_eq!(quoted, json!({"path": "a b", "limit": "many"}));
    }

    #[test]
    fn wrong_words_are_refused() {
        let read = |json: Option<&str>, words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            read_input(&tool(), json, &words).unwrap_err().to_string()
        };
        assert_eq!(read(None, &["path"]), "`path` is not `NAME=VALUE`");
        assert_eq!(read(None, &["a=1", "a=2"]), "`a` is given twice");
        assert_eq!(read(Some("[1]"), &[]), "the input of a tool is an object, this is array");
        assert!(read(Some("{"), &[]).starts_with("the input is not JSON: "));
    }

    #[test]
    fn everything_that_does_not_fit_is_told_at_once() {
        let error =
            check(&tool(), &json!({"limit": "many", "mode": "wild", "x": 1, "any": [1]})).unwrap_err();
        let expected = "the input does not fit `t`:\n  `path` is missing\n  `limit` must be integer, not \"many\"\n  \
                        `mode` must be \"fast\" or \"slow\", not \"wild\"\n  \
                        `x` is not known; known are `path`, `limit`, `mode`, `tags`, `any`";
        assert_eq!(error.to_string(), expected);
        check(&tool(), &json!({"path": "a", "limit": null, "tags": null})).unwrap();
    }
}
