//! Keys that stand in plain text in the config of a module: they are used, and nothing that is shown or kept holds them.
//!
//! Such a key becomes a reference, `${PLAIN_OPENAI_API_KEY}`, right after it was read, and its value stays in the memory of
//! this process, where references are filled in from when a module is mounted. So a plan, its hash and everything made from
//! them have one text whatever the key is, as with a variable. A session that is resumed takes the value from where it
//! stands: the settings, or what the session was started from. Addresses with credentials are `credentials.rs`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_bundle::node::{Mapping, Node, NodeValue};
use amplifier_bundle::notice::{Code, Notice};
use amplifier_bundle::origin::{Place, SourceFile};
use amplifier_core::redact::{REDACTED, names_a_secret, redact};
use amplifier_protocol::locate::join;
use serde_json::{Map, Value};

use crate::connect;

/// How the names of such references begin.
pub(crate) const PREFIX: &str = "PLAIN_";

/// The variable that a key in plain text would better be in: the usual one of a provider.
pub(crate) fn variable(reference: &str) -> &str {
    let name = reference.trim_start_matches("${").trim_end_matches('}');
    name.strip_prefix(PREFIX).unwrap_or(name)
}

/// What a person can do about one that stands in a plan or in a bundle.
pub(crate) fn hint(reference: &str) -> String {
    let variable = variable(reference);
    let put =
        format!("put it into a variable, such as `{variable}`, and write `${{{variable}}}` in its place");
    match connect::provider_of(variable) {
        Some(name) => format!(
            "{put}; or take it out, and `amplifier provider add {name} --key-from-env {variable}` connects the provider"
        ),
        None => put,
    }
}

/// Keys in plain text, by the names of the references that stand for them.
#[derive(Clone, Default)]
pub struct Plain {
    values: BTreeMap<String, String>,
}

impl fmt::Debug for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

/// What people write for a server that wants a key and takes any.
const NO_KEYS: [&str; 7] =
    ["none", "none-needed", "not-needed", "no-key", "sk-no-key-required", "empty", "dummy"];

/// Whether a value of a config is a key in plain text.
fn is_plain(key: &str, text: &str) -> bool {
    let is_no_key = || NO_KEYS.iter().any(|word| text.trim().eq_ignore_ascii_case(word));
    names_a_secret(key) && !text.trim().is_empty() && !text.contains("${") && !is_no_key()
}

/// What is to be told about one, without the line it stands in.
fn told(place: &Place, key: &str, reference: &str) -> Notice {
    let file =
        SourceFile { path: place.file.path.clone(), name: place.file.name.clone(), text: String::new() };
    let place = Place { file: Arc::new(file), ..place.clone() };
    Notice::warning(Code::BadValue, &place, message(key, reference)).with_hint(hint(reference))
}

/// The same, without a place.
pub(crate) fn message(key: &str, reference: &str) -> String {
    format!("`{key}` holds a key in plain text; it is used now, and what is kept or shown says `{reference}`")
}

impl Plain {
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds those whose references are not taken yet.
    pub(crate) fn adopt(&mut self, other: &Self) {
        for (name, value) in &other.values {
            self.values.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }

    /// The reference that stands for a key: named after whom it belongs to and where in its config it stands.
    fn reference(&mut self, owner: &str, path: &str, value: &str) -> String {
        let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        let name: String = format!("{}{path}", connect::bare(owner)).chars().map(word).collect();
        let first = format!("{PREFIX}{name}");
        let mut name = first.clone();
        // Two entries of one module may have two keys.
        for number in 2.. {
            match self.values.get(&name) {
                Some(other) if other != value => name = format!("{first}_{number}"),
                _ => break,
            }
        }
        self.values.insert(name.clone(), value.to_owned());
        format!("${{{name}}}")
    }

    /// Hides those of a config whose values know their places.
    pub(crate) fn hide_config(&mut self, owner: &str, config: &mut Mapping, notices: &mut Vec<Notice>) {
        self.hide_mapping(owner, config, "", notices);
    }

    fn hide_mapping(&mut self, owner: &str, mapping: &mut Mapping, at: &str, notices: &mut Vec<Notice>) {
        for (key, entry) in mapping {
            let node = &mut entry.node;
            redact_history(key, node);
            self.hide_node(owner, key, node, &join(at, key), notices);
        }
    }

    fn hide_node(&mut self, owner: &str, key: &str, node: &mut Node, at: &str, notices: &mut Vec<Notice>) {
        match &mut node.value {
            NodeValue::Map(below) => self.hide_mapping(owner, below, at, notices),
            NodeValue::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.hide_node(owner, key, item, &join(at, &index.to_string()), notices);
                }
            }
            NodeValue::Text(text) if is_plain(key, text) => {
                let reference = self.reference(owner, at, text);
                notices.push(told(&node.place, key, &reference));
                *text = reference;
            }
            _ => {}
        }
    }

    /// Hides those of a config in JSON; gives the pointer of each, and what is to be told about it.
    pub(crate) fn hide_json(
        &mut self,
        owner: &str,
        config: &mut Map<String, Value>,
        at: &str,
    ) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (key, value) in config {
            self.hide_value(owner, key, value, (at, &join("", key)), &mut found);
        }
        found
    }

    fn hide_value(
        &mut self,
        owner: &str,
        key: &str,
        value: &mut Value,
        (root, at): (&str, &str),
        found: &mut Vec<(String, String)>,
    ) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    self.hide_value(owner, key, value, (root, &join(at, key)), found);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.hide_value(owner, key, item, (root, &join(at, &index.to_string())), found);
                }
            }
            Value::String(text) if is_plain(key, text) => {
                let reference = self.reference(owner, at, text);
                let told = format!("{}. {}", message(key, &reference), hint(&reference));
                found.push((format!("{root}{at}"), told));
                *text = reference;
            }
            _ => {}
        }
    }
}

/// Nobody needs what was overridden any more but for a look at it.
pub(crate) fn redact_history(key: &str, node: &mut Node) {
    for lost in &mut node.overrode {
        let mut named = Map::new();
        named.insert(key.to_owned(), lost.value.take());
        if let Value::Object(named) = redact(&Value::Object(named)) {
            lost.value = named.into_iter().next().map(|(_, value)| value).unwrap_or_default();
        }
        if let Some(parts) = &mut lost.parts {
            redact_node(key, Arc::make_mut(parts));
        }
    }
}

fn redact_node(key: &str, node: &mut Node) {
    redact_history(key, node);
    match &mut node.value {
        NodeValue::Map(below) => below.iter_mut().for_each(|(key, entry)| redact_node(key, &mut entry.node)),
        NodeValue::List(items) => items.iter_mut().for_each(|item| redact_node(key, item)),
        NodeValue::Text(text) if is_plain(key, text) => *text = REDACTED.to_owned(),
        _ => {}
    }
}

/// The values that this process knows. Every copy knows what is to be hidden; which value a reference stands for is each
/// session's own: two plans may have one reference for two keys, and neither gets the key of the other.
#[derive(Debug, Clone, Default)]
pub struct KnownPlain {
    /// What references stand for, here.
    plain: Arc<Mutex<Plain>>,
    /// Every value that was ever known, in this process.
    secrets: Arc<Mutex<BTreeSet<String>>>,
}

impl KnownPlain {
    pub(crate) fn find(&self, name: &str) -> Option<String> {
        if !name.starts_with(PREFIX) {
            return None;
        }
        lock(&self.plain).values.get(name).cloned()
    }

    pub(crate) fn learn(&self, plain: &Plain) {
        if !plain.is_empty() {
            lock(&self.plain).values.extend(plain.values.clone());
            lock(&self.secrets).extend(plain.values.values().cloned());
        }
    }

    /// The same, as it is now: what is learned elsewhere from now on changes no reference here.
    pub(crate) fn of_session(&self) -> Self {
        Self { plain: Arc::new(Mutex::new(lock(&self.plain).clone())), secrets: Arc::clone(&self.secrets) }
    }

    /// What references stand for now.
    pub(crate) fn plain(&self) -> Plain {
        lock(&self.plain).clone()
    }

    /// Remembers a value that is to be hidden.
    pub(crate) fn note(&self, value: &str) {
        lock(&self.secrets).insert(value.to_owned());
    }

    pub(crate) fn values(&self) -> Vec<String> {
        lock(&self.secrets).iter().cloned().collect()
    }
}

// A panic cannot leave a set half changed: every change is one call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_becomes_a_reference_and_two_keys_two() {
        let mut plain = Plain::default();
        let mut config = json!({"api_key": "one", "x": "two", "env": {"A_TOKEN": "three"}, "token": "${T}"});
        let Value::Object(map) = &mut config else { unreachable!() };
        let found = plain.hide_json("provider-openai", map, "/providers/0/config");
        let expected = json!({
            "api_key": "${PLAIN_OPENAI_API_KEY}", "x": "two", "env": {"A_TOKEN": "${PLAIN_OPENAI_ENV_A_TOKEN}"},
            "token": "${T}",
        });
        assert_eq!(config, expected);
        let pointers: Vec<_> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
        assert_eq!(pointers, ["/providers/0/config/api_key", "/providers/0/config/env/A_TOKEN"]);
        let reference = plain.reference("provider-openai", "/api_key", "other");
        assert_eq!(reference, "${PLAIN_OPENAI_API_KEY_2}");
        assert!(!format!("{plain:?}").contains("three"));
    }
    #[test]
    fn what_one_session_learns_changes_no_reference_of_another_and_all_of_it_is_hidden() {
        let of = |value: &str| {
            let mut plain = Plain::default();
            plain.reference("provider-openai", "/api_key", value);
            plain
        };
        let known = KnownPlain::default();
        known.learn(&of("key-of-one"));
        let session = known.of_session();
        known.learn(&of("key-of-other"));
        assert_eq!(session.find("PLAIN_OPENAI_API_KEY").as_deref(), Some("key-of-one"));
        assert_eq!(known.of_session().find("PLAIN_OPENAI_API_KEY").as_deref(), Some("key-of-other"));
        assert_eq!(session.values(), ["key-of-one", "key-of-other"]);
        let mut both = of("key-of-one");
        both.adopt(&of("key-of-other"));
        assert_eq!(both.values.get("PLAIN_OPENAI_API_KEY").unwrap(), "key-of-one");
    }
}
