//! What a line says. The format is described in `docs/reference/log.md`; its version is here.

use amplifier_core::contracts::{CapabilityCall, EventStamp, HookEvent};
use amplifier_core::redact::redacted;
use amplifier_protocol::ids::EventName;
use amplifier_protocol::tool::picture_bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::hooks::redaction::Redactor;

/// The version of the format. Readers refuse another first number.
const VERSION: &str = "1.1.0";

/// Keys of the data that stand in the line itself.
const LIFTED: [&str; 9] = [
    "redaction",
    "status",
    "duration_ms",
    "module",
    "component",
    "error",
    "request_id",
    "span_id",
    "parent_span_id",
];

/// How much an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// Pieces of streams.
    #[serde(alias = "DEBUG")]
    Debug,
    /// What happens.
    #[serde(alias = "INFO")]
    Info,
    /// What should be looked at.
    #[serde(alias = "warn", alias = "WARN", alias = "WARNING")]
    Warning,
    /// What went wrong.
    #[serde(alias = "ERROR")]
    Error,
}

/// Events that should be looked at although nothing in them says "error".
const REMARKABLE: [&str; 8] = [
    "policy:violation",
    "hook:failed",
    "call:stalled",
    "provider:retry",
    "provider:throttle",
    "provider:tool_sequence_repaired",
    "approval:denied",
    "llm:stream_aborted",
];

impl Level {
    /// The level of an event: what it says itself, raised when something went wrong.
    pub(super) fn of(event: &HookEvent) -> Self {
        let (name, data) = (event.name.as_str(), &event.data);
        let said = data.get("lvl").and_then(|level| serde_json::from_value(level.clone()).ok());
        let is_set = |key: &str| data.get(key).is_some_and(|value| !value.is_null());
        if said == Some(Self::Debug) {
            return Self::Debug;
        }
        let failed = data.get("status").and_then(Value::as_str) == Some("error");
        if failed || is_set("error") || name.contains("error") || name.ends_with("_failed") {
            return Self::Error;
        }
        said.unwrap_or_else(|| match name {
            _ if REMARKABLE.contains(&name) => Self::Warning,
            _ if name.ends_with("delta") => Self::Debug,
            _ => Self::Info,
        })
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        }
    }
}

/// An event that shall be written.
pub(super) struct Entry {
    pub(super) name: EventName,
    pub(super) stamp: EventStamp,
    pub(super) level: Level,
    pub(super) data: Map<String, Value>,
}

/// Something that shall be written.
pub(super) enum Line {
    Event(Box<Entry>),
    /// So many lines were left out before this place.
    Dropped(u64),
}

impl Line {
    pub(super) fn is_error(&self) -> bool {
        matches!(self, Self::Event(entry) if entry.level == Level::Error)
    }

    /// About how many bytes it takes while it waits.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Event(entry) => {
                256 + entry.data.iter().map(|(key, value)| key.len() + weight(value)).sum::<usize>()
            }
            Self::Dropped(_) => 0,
        }
    }

    /// Takes out the keys that are known. Where that cannot be done nothing of the data is written.
    pub(super) async fn hide_keys(&mut self, hide: &dyn CapabilityCall, writer: &str) {
        let Self::Event(entry) = self else { return };
        let data = Value::Object(std::mem::take(&mut entry.data));
        let told = [("writer", writer.into()), ("event", entry.name.as_str().into()), ("data", data)];
        let hidden = hide.call(told.into_iter().collect()).await;
        entry.data = match hidden {
            Ok(Value::Object(data)) => data,
            Ok(_) => Map::new(),
            Err(error) => Map::from_iter([("withheld".to_owned(), Value::from(error.to_string()))]),
        };
    }

    /// The bytes of the line, with its end. Secrets are taken out here, away from the turn.
    pub(super) fn into_bytes(self, redactor: Option<&Redactor>, max_bytes: usize) -> Vec<u8> {
        let entry = match self {
            Self::Event(entry) => entry,
            Self::Dropped(count) => {
                let head = json!({
                    "lvl": Level::Warning.as_str(), "schema": schema(), "event": "log:dropped", "data": {"lines": count}
                });
                return ended(head.to_string());
            }
        };
        let data = cleaned(&entry.data, redactor);
        let line = ended(Value::Object(head(&entry, Some(data))).to_string());
        if line.len() <= max_bytes {
            return line;
        }
        let mut head = head(&entry, None);
        head.insert("omitted_bytes".to_owned(), Value::from(line.len()));
        ended(Value::Object(head).to_string())
    }
}

fn cleaned(data: &Map<String, Value>, redactor: Option<&Redactor>) -> Map<String, Value> {
    let mut data = Value::Object(data.clone());
    name_pictures(&mut data, 0);
    let Value::Object(data) = redacted(data) else { return Map::new() };
    match redactor.and_then(|redactor| redactor.clean(&data)) {
        Some((data, _)) => data,
        None => data,
    }
}

/// Puts the length of a picture in the place of its bytes: a log is read by people, and the journal has them.
fn name_pictures(value: &mut Value, depth: usize) {
    match value {
        // No result is so deep that a picture would be found there.
        _ if depth > 16 => {}
        Value::Object(map) => {
            if let Some(bytes) = picture_bytes(map) {
                map.insert("data".to_owned(), Value::from(format!("[{bytes} bytes]")));
            }
            map.values_mut().for_each(|value| name_pictures(value, depth + 1));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| name_pictures(item, depth + 1)),
        _ => {}
    }
}

fn head(entry: &Entry, data: Option<Map<String, Value>>) -> Map<String, Value> {
    let stamp = &entry.stamp;
    let mut line = Map::from_iter([
        ("ts".to_owned(), Value::String(stamp.timestamp.to_string())),
        ("lvl".to_owned(), Value::from(entry.level.as_str())),
        ("schema".to_owned(), schema()),
        ("event".to_owned(), Value::from(entry.name.as_str())),
        ("session_id".to_owned(), Value::from(stamp.session_id.as_str())),
        ("turn".to_owned(), Value::from(stamp.turn)),
        ("seq".to_owned(), Value::from(stamp.sequence)),
    ]);
    if let Some(parent) = &stamp.parent_id {
        line.insert("parent_id".to_owned(), Value::from(parent.as_str()));
    }
    let Some(mut data) = data else { return line };
    for key in LIFTED {
        if let Some(value) = data.shift_remove(key) {
            line.insert(key.to_owned(), value);
        }
    }
    for known in ["lvl", "session_id", "parent_id", "timestamp"] {
        data.shift_remove(known);
    }
    line.insert("data".to_owned(), Value::Object(data));
    line
}

fn schema() -> Value {
    json!({"name": "amplifier.log", "ver": VERSION})
}

fn ended(mut line: String) -> Vec<u8> {
    line.push('\n');
    line.into_bytes()
}

fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 32,
        Value::String(text) => 32 + text.len(),
        Value::Array(items) => 32 + items.iter().map(weight).sum::<usize>(),
        Value::Object(map) => 32 + map.iter().map(|(key, value)| key.len() + weight(value)).sum::<usize>(),
    }
}
