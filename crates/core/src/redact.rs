//! Takes secrets out of values and texts that leave the process: logs, events, the API, error messages.
//!
//! Two nets: keys whose last words say "secret" lose their value, and texts lose what looks like a well-known kind of
//! key. References such as `${API_KEY}` stay, since they are what a reader needs and hold nothing. This is a net, not
//! a guarantee; a secret under an innocent key in a shape nobody knows passes. Both run in linear time.
//!
//! `key.rs` judges keys, `text.rs` finds secrets in texts.

use std::borrow::Cow;

use serde_json::{Map, Value};

mod key;
mod text;

pub use key::names_a_secret;
pub use text::redact_text;

/// What stands where a secret was.
pub const REDACTED: &str = "[REDACTED]";

/// How many characters [`truncate`] keeps.
pub const TRUNCATE_AT: usize = 180;

/// A copy of the value without its secrets.
pub fn redact(value: &Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(text) => Value::String(redact_text(text).into_owned()),
        Value::Array(items) => items.iter().map(redact).collect(),
        Value::Object(map) => Value::Object(redact_map(map)),
    }
}

fn redact_map(map: &Map<String, Value>) -> Map<String, Value> {
    let redact_entry = |(key, value): (&String, &Value)| {
        let value = if key::names_a_secret(key) { hide(value) } else { redact(value) };
        (redact_text(key).into_owned(), value)
    };
    map.iter().map(redact_entry).collect()
}

/// Hides a value whose key says it is a secret; what cannot hold one stays readable.
fn hide(value: &Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) => value.clone(),
        Value::String(secret) if secret.is_empty() => value.clone(),
        Value::String(secret) => {
            Value::String(text::hide_all_but_references(secret).unwrap_or_else(|| REDACTED.to_owned()))
        }
        Value::Number(_) | Value::Array(_) | Value::Object(_) => Value::from(REDACTED),
    }
}

/// The text, or its first 180 characters and how many are missing.
pub fn truncate(text: &str) -> Cow<'_, str> {
    let Some((end, _)) = text.char_indices().nth(TRUNCATE_AT) else { return Cow::Borrowed(text) };
    let (kept, rest) = text.split_at(end);
    Cow::Owned(format!("{kept}... (truncated {} chars)", rest.chars().count()))
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
