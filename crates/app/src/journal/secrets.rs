//! Keys that the program knows, kept out of what is written down: their exact values, wherever somebody said or printed one.
//!
//! Whoever looks for what only looks like a key is `hooks-redaction`. A key that arrives in pieces is `pieces.rs`'s matter.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::contracts::{CapabilityCall, CapabilityError};
use amplifier_core::redact::{REDACTED, names_a_secret};
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::record::RecordBody;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::pieces::Pieces;
use crate::env::Environment;
use crate::expand::references;

/// Under this name modules take known keys out of a value.
pub(crate) const HIDE: &str = "secrets.hide";
/// Under this name they take them out of one event after the other.
pub(crate) const HIDE_EVENT: &str = "secrets.hide_event";

/// What is shorter may be a word of any text.
const SHORTEST: usize = 8;

/// How the values of headers begin that hold a key.
const SCHEMES: [&str; 4] = ["bearer", "basic", "token", "apikey"];

/// The variables of a config whose values are keys: those whose own names say so, and those under keys that do, however deep.
fn named_in<'a>(config: &'a Map<String, Value>, names: &mut BTreeSet<&'a str>) {
    config.iter().for_each(|(key, value)| named_below(key, value, names));
}

/// The same of a value under a key, or under one that is below it and says less.
fn named_below<'a>(key: &'a str, value: &'a Value, names: &mut BTreeSet<&'a str>) {
    let is_secret = names_a_secret(key);
    match value {
        Value::String(text) => {
            names.extend(references(text).filter(|name| is_secret || names_a_secret(name)));
        }
        Value::Array(items) => items.iter().for_each(|item| named_below(key, item, names)),
        Value::Object(map) => {
            map.iter().for_each(|(below, value)| {
                named_below(if is_secret { key } else { below }, value, names);
            });
        }
        _ => {}
    }
}

/// Values that no record may hold.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Each as it is, and as it stands in JSON.
    values: Vec<(String, String)>,
}

impl Secrets {
    /// The keys that are known to a session of this plan: those that modules may ask for, those that stand in plain text, and
    /// those that the plan names anywhere in the config of a module or of an agent. The environment knows those from then on.
    pub(crate) fn of(plan: &MountPlan, environment: &Environment) -> Self {
        let session = [&plan.session.orchestrator, &plan.session.context];
        let modules = session.into_iter().chain(&plan.providers).chain(&plan.tools).chain(&plan.hooks);
        let mut names = BTreeSet::new();
        modules.for_each(|module| named_in(&module.config, &mut names));
        named_in(&plan.agents, &mut names);
        for value in names.into_iter().filter_map(|name| environment.get(name)) {
            environment.note_secret(&value);
        }
        Self::new(environment.known_secrets())
    }

    /// The keys that are known by now, for whoever has no session at hand.
    pub(crate) fn known_to(environment: &Environment) -> Self {
        Self::new(environment.known_secrets())
    }

    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        // Of the value of a header the key behind the scheme is one by itself.
        let with_bare = |value: String| {
            let bare =
                value.split_once(' ').filter(|(scheme, _)| SCHEMES.contains(&scheme.to_lowercase().as_str()));
            let bare = bare.map(|(_, key)| key.trim().to_owned());
            bare.into_iter().chain([value])
        };
        let values = values.into_iter().flat_map(with_bare);
        let mut values: Vec<_> = values.filter(|value| value.chars().count() >= SHORTEST).collect();
        // One that holds another goes first.
        values.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        values.dedup();
        let escaped = |value: String| {
            let text = Value::from(value.as_str()).to_string();
            let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).map(str::to_owned);
            inside.map(|inside| (value, inside))
        };
        Self { values: values.into_iter().filter_map(escaped).collect() }
    }

    /// A body without them, and its text; nothing where none is there. Looking is all it costs then.
    pub(super) fn hide(
        &self,
        body: &RecordBody,
        text: &str,
    ) -> Result<Option<(String, RecordBody)>, serde_json::Error> {
        if !self.values.iter().any(|(_, escaped)| text.contains(escaped.as_str())) {
            return Ok(None);
        }
        let mut value = serde_json::to_value(body)?;
        self.hide_in(&mut value);
        Ok(Some((value.to_string(), serde_json::from_value(value)?)))
    }

    /// A text without them. It may be JSON, or hold some.
    pub fn hidden<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.spellings().fold(Cow::Borrowed(text), |text, secret| match text.contains(secret) {
            true => Cow::Owned(text.replace(secret, REDACTED)),
            false => text,
        })
    }

    /// Each of them, one that holds another first; and as it stands in JSON, where that is something else.
    pub(super) fn spellings(&self) -> impl Iterator<Item = &str> {
        self.values.iter().flat_map(|(value, escaped)| {
            [Some(value.as_str()), Some(escaped.as_str()).filter(|escaped| escaped != value)]
                .into_iter()
                .flatten()
        })
    }

    /// An event's data without them, also where one comes in pieces.
    fn hide_event(&self, event: &str, mut data: Value, pieces: &Pieces) -> Value {
        if let (Some(text), Some(map)) = (pieces.hide(event, &data, self), data.as_object_mut()) {
            map.insert("text".to_owned(), Value::from(text));
        }
        self.hide_in(&mut data);
        data
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

/// How many may write events down side by side.
const WRITERS: usize = 16;

/// `secrets.hide_event`: gives the data of an event back without them, to somebody who writes down one after the other.
pub(crate) struct HideInEvents {
    secrets: Secrets,
    /// What is held for each who writes: all hear the same pieces.
    writers: Mutex<BTreeMap<String, Arc<Pieces>>>,
}

#[derive(Deserialize)]
struct Written {
    writer: String,
    event: String,
    data: Value,
}

impl HideInEvents {
    pub(crate) fn new(secrets: Secrets) -> Self {
        Self { secrets, writers: Mutex::default() }
    }

    fn pieces(&self, writer: String) -> Arc<Pieces> {
        // Nothing is half done where a panic could leave it.
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        if writers.len() >= WRITERS && !writers.contains_key(&writer) {
            writers.pop_first();
        }
        Arc::clone(writers.entry(writer).or_default())
    }
}

#[async_trait]
impl CapabilityCall for HideInEvents {
    async fn call(&self, arguments: Value) -> Result<Value, CapabilityError> {
        let Written { writer, event, data } = Written::deserialize(arguments).map_err(|error| {
            CapabilityError::Failed { name: HIDE_EVENT.to_owned(), message: error.to_string() }
        })?;
        Ok(self.secrets.hide_event(&event, data, &self.pieces(writer)))
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
            secrets.hide(&body, &serde_json::to_string(&body).unwrap()).unwrap().unwrap().0
        };
        let was = json!({"a": ["is quo\"te-key.", 12345678, "12345678"], "b": "short", "12345678": 1});
        let is = json!({"a": ["is [REDACTED].", 12345678, "[REDACTED]"], "b": "short", "[REDACTED]": 1});
        assert_eq!(hidden(was), serde_json::to_string(&body(is)).unwrap());
    }
    #[test]
    fn every_key_that_a_plan_names_is_known() {
        let plan = json!({
            "session": {"orchestrator": "loop-basic", "context": "context-simple"},
            "providers": [{"module": "provider-x", "config": {"nested": {"deep": [{"api_key": "${A}"}]}}}],
            "tools": [{"module": "tool-mcp", "config": {"servers": {"s": {
                "env": {"B_TOKEN": "${B}"}, "headers": {"Authorization": "Bearer ${C}"}, "args": ["--key=${D_API_KEY:-x}"]
            }}}}],
            "hooks": [{"module": "hooks-x", "config": {"secret": "${E}", "path": "${PATH}"}}],
            "agents": {"a": {"tools": [{"module": "tool-x", "config": {"password": "${F}"}}]}}
        });
        let names = ["A", "B", "C", "D_API_KEY", "E", "F", "PATH"];
        let variables = names.map(|name| (name.to_owned(), format!("value-of-{name}")));
        let environment = Environment::Fixed(variables.into()).with_plain();
        let secrets = Secrets::of(&MountPlan::read(&plan).unwrap(), &environment);
        let shown = names.map(|name| secrets.hidden(&format!("value-of-{name}")).into_owned());
        let mut expected = [REDACTED; 7].map(str::to_owned);
        expected[6] = "value-of-PATH".to_owned();
        assert_eq!(shown, expected);
        let header = Secrets::new(["Bearer abcdefgh-1".to_owned()]);
        assert_eq!(header.hidden("is abcdefgh-1"), "is [REDACTED]");
    }
}
