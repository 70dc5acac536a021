//! Settings as rows for people: the path, the value without secrets, where it was set, and what it overrode.

use amplifier_bundle::explain::Step;
use amplifier_bundle::origin::Place;
use serde_json::{Value, json};

use super::{Layer, Settings, is_secret};
use crate::credentials;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The way to it, with dots.
    pub path: String,
    /// The value; what looks like a secret is hidden.
    pub value: Value,
    pub from: Origin,
    /// What it overrode, the nearest first.
    pub overrode: Vec<(Value, Origin)>,
}

/// Where a value was set.
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    pub place: Place,
    pub layer: Layer,
}

impl Origin {
    fn to_json(&self) -> Value {
        let Place { file, line, column } = &self.place;
        let mut told = json!({"layer": self.layer.name(), "at": self.place.to_string()});
        if *line > 0
            && let Value::Object(told) = &mut told
        {
            told.insert("file".to_owned(), json!(file.name));
            told.insert("line".to_owned(), json!(line));
            told.insert("column".to_owned(), json!(column));
        }
        told
    }
}

impl Row {
    pub fn to_json(&self) -> Value {
        let overrode =
            self.overrode.iter().map(|(value, from)| json!({"value": value, "origin": from.to_json()}));
        json!({
            "path": self.path,
            "value": self.value,
            "origin": self.from.to_json(),
            "overrode": overrode.collect::<Vec<_>>(),
        })
    }
}

impl Settings {
    /// Every value.
    pub fn rows(&self) -> Vec<Row> {
        let row = |setting: amplifier_bundle::explain::Setting| {
            let words: Vec<_> = setting
                .path
                .iter()
                .map(|step| match step {
                    Step::Key(key) => key.clone(),
                    Step::Index(index) => index.to_string(),
                })
                .collect();
            let key = words.last().cloned().unwrap_or_default();
            let from = |place: &Place| Origin { place: place.clone(), layer: self.layer_of(place) };
            let overrode = setting.overrode.iter().rev();
            Row {
                path: words.join("."),
                value: hidden(&key, &setting.value),
                from: from(&setting.place),
                overrode: overrode.map(|lost| (hidden(&key, &lost.value), from(&lost.place))).collect(),
            }
        };
        self.list().into_iter().filter(|setting| !setting.value.is_null()).map(row).collect()
    }
}

fn hidden(key: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if is_secret(key, text) => Value::from(amplifier_core::redact::REDACTED),
        // A name alone may be a token too, which only whoever reads addresses can tell.
        Value::String(text) => amplifier_core::redact::redact(&Value::from(credentials::shown(text))),
        other => amplifier_core::redact::redact(other),
    }
}
