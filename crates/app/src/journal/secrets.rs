//! Keys that the program knows, kept out of what is written down: their exact values, wherever somebody said or printed one.
//!
//! Whoever looks for what only looks like a key is `hooks-redaction`. A key that arrives in pieces passes here.

use amplifier_core::redact::REDACTED;
use amplifier_protocol::record::RecordBody;
use serde_json::Value;

/// What is shorter may be a word of any text.
const SHORTEST: usize = 8;

/// Values that no record may hold.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Each as it is, and as it stands in JSON.
    values: Vec<(String, String)>,
}

impl Secrets {
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<_> =
            values.into_iter().filter(|value| value.chars().count() >= SHORTEST).collect();
        // One that holds another goes first.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        let escaped = |value: String| {
            let text = Value::from(value.as_str()).to_string();
            let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).map(str::to_owned);
            inside.map(|inside| (value, inside))
        };
        Self { values: values.into_iter().filter_map(escaped).collect() }
    }

    /// The text of a body without them. Looking is all it costs where none is there.
    pub(super) fn hide(&self, body: &RecordBody, text: String) -> Result<String, serde_json::Error> {
        if !self.values.iter().any(|(_, escaped)| text.contains(escaped.as_str())) {
            return Ok(text);
        }
        let mut value = serde_json::to_value(body)?;
        self.hide_in(&mut value);
        Ok(value.to_string())
    }

    fn hide_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                for (secret, _) in self.values.iter().filter(|(secret, _)| !secret.is_empty()) {
                    if text.contains(secret.as_str()) {
                        *text = text.replace(secret.as_str(), REDACTED);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in(item)),
            Value::Object(map) => map.values_mut().for_each(|value| self.hide_in(value)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn exact_values_are_hidden_in_texts_and_nothing_else_changes() {
        let secrets = Secrets::new(["12345678", "quo\"te-key", "short"].map(str::to_owned));
        let body = |data: Value| RecordBody::Event { name: "x:y".parse().unwrap(), data };
        let hidden = |data: Value| {
            let body = body(data);
            secrets.hide(&body, serde_json::to_string(&body).unwrap()).unwrap()
        };
        let was = json!({"a": ["is quo\"te-key.", 12345678, "12345678"], "b": "short"});
        let is = json!({"a": ["is [REDACTED].", 12345678, "[REDACTED]"], "b": "short"});
        assert_eq!(hidden(was), serde_json::to_string(&body(is)).unwrap());
    }
}
