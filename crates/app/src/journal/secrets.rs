//! Keys that the program knows, kept out of what is written down: their exact values, wherever somebody said or printed one.
//!
//! Whoever looks for what only looks like a key is `hooks-redaction`. A key that arrives in pieces is `pieces.rs`'s matter.

use std::borrow::Cow;

use amplifier_core::contracts::{CapabilityCall, CapabilityError};
use amplifier_core::redact::{REDACTED, names_a_secret};
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::record::RecordBody;
use async_trait::async_trait;
use serde_json::Value;

use crate::env::Environment;

/// What is shorter may be a word of any text.
const SHORTEST: usize = 8;

/// Values that no record may hold.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Each as it is, and as it stands in JSON.
    values: Vec<(String, String)>,
}

impl Secrets {
    /// The keys that are known to a session of this plan: those that modules may ask for, those that stand in plain text, and
    /// those that the providers of the plan name.
    pub(crate) fn of(plan: &MountPlan, environment: &Environment) -> Self {
        let named = plan.providers.iter().flat_map(|entry| &entry.config);
        let named = named.filter(|(key, _)| names_a_secret(key)).filter_map(|(_, value)| value.as_str());
        let variables = named.filter_map(|text| text.trim().strip_prefix("${")?.strip_suffix('}'));
        let values = variables.filter_map(|name| environment.get(name.split(':').next().unwrap_or(name)));
        Self::new(values.chain(environment.known_secrets()))
    }

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

    /// A text without them.
    pub fn hidden<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.values().fold(Cow::Borrowed(text), |text, secret| match text.contains(secret) {
            true => Cow::Owned(text.replace(secret, REDACTED)),
            false => text,
        })
    }

    /// Each of them, one that holds another first.
    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(value, _)| value.as_str())
    }

    fn hide_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(hidden) = self.hidden(text) {
                    *text = hidden;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in(item)),
            Value::Object(map) => {
                map.values_mut().for_each(|value| self.hide_in(value));
                if map.keys().any(|key| matches!(self.hidden(key), Cow::Owned(_))) {
                    let entries = std::mem::take(map).into_iter();
                    map.extend(entries.map(|(key, value)| (self.hidden(&key).into_owned(), value)));
                }
            }
            _ => {}
        }
    }
}

/// `secrets.hide`: gives any value back without them.
pub(crate) struct HideSecrets(pub(crate) Secrets);

#[async_trait]
impl CapabilityCall for HideSecrets {
    async fn call(&self, mut arguments: Value) -> Result<Value, CapabilityError> {
        self.0.hide_in(&mut arguments);
        Ok(arguments)
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
        let was = json!({"a": ["is quo\"te-key.", 12345678, "12345678"], "b": "short", "12345678": 1});
        let is = json!({"a": ["is [REDACTED].", 12345678, "[REDACTED]"], "b": "short", "[REDACTED]": 1});
        assert_eq!(hidden(was), serde_json::to_string(&body(is)).unwrap());
    }
}
