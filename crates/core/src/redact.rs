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
    redacted(value.clone())
}

/// The value without its secrets; what holds none is not touched.
pub fn redacted(mut value: Value) -> Value {
    clean(&mut value);
    value
}

fn clean(value: &mut Value) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => {
            if let Some(changed) = changed(text) {
                *text = changed;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(map) => clean_map(map),
    }
}

fn clean_map(map: &mut Map<String, Value>) {
    for (key, value) in map.iter_mut() {
        if key::names_a_secret(key) { hide(value) } else { clean(value) }
    }
    // A key that holds a secret is rare; only then the map is made anew.
    if map.keys().any(|key| changed(key).is_some()) {
        let entries = std::mem::take(map).into_iter();
        *map = entries.map(|(key, value)| (redact_text(&key).into_owned(), value)).collect();
    }
}

/// The text without its secrets, if it has any.
fn changed(text: &str) -> Option<String> {
    match redact_text(text) {
        Cow::Owned(clean) => Some(clean),
        Cow::Borrowed(_) => None,
    }
}

/// Hides a value whose key says it is a secret; what cannot hold one stays readable.
fn hide(value: &mut Value) {
    *value = match value {
        Value::Null | Value::Bool(_) => return,
        Value::String(secret) if secret.is_empty() => return,
        Value::String(secret) => {
            Value::String(text::hide_all_but_references(secret).unwrap_or_else(|| REDACTED.to_owned()))
        }
        Value::Number(_) | Value::Array(_) | Value::Object(_) => Value::from(REDACTED),
    };
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
