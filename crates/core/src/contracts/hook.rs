//! The hook contract.

use amplifier_protocol::event::Event;
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::ids::{EventName, SessionId};
use amplifier_protocol::time::Timestamp;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Watches events and may stop, change or extend what they announce.
///
/// Handlers of one event run one after the other, lower priority first, each seeing what the ones before changed. A
/// handler that fails, panics or takes too long is passed over (`open`) or denies the event (`closed`), as registered.
#[async_trait]
pub trait HookHandler: Send + Sync {
    /// Answers one event.
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure>;
}

/// An event on its way through the hooks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookEvent {
    /// Its name.
    pub name: EventName,
    /// Its data, as changed so far.
    pub data: Map<String, Value>,
    /// Where and when it happened.
    pub stamp: EventStamp,
}

/// Where and when an event happened. The session and the sequence number together name it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventStamp {
    /// The session.
    pub session_id: SessionId,
    /// Its parent, for a child.
    pub parent_id: Option<SessionId>,
    /// The turn; 0 before the first.
    pub turn: u64,
    /// The place in the session's order.
    pub sequence: u64,
    /// When.
    pub timestamp: Timestamp,
}

impl HookEvent {
    /// The flat object of the specification: the stamp, overlaid by the data; the time is always the kernel's.
    pub fn payload(&self) -> Map<String, Value> {
        let stamp = &self.stamp;
        let parent = stamp.parent_id.as_ref().map_or(Value::Null, |id| Value::String(id.to_string()));
        let mut payload = Map::from_iter([
            ("session_id".to_owned(), Value::String(stamp.session_id.to_string())),
            ("parent_id".to_owned(), parent),
            ("turn".to_owned(), Value::from(stamp.turn)),
            ("sequence".to_owned(), Value::from(stamp.sequence)),
        ]);
        payload.extend(self.data.iter().map(|(key, value)| (key.clone(), value.clone())));
        payload.insert("timestamp".to_owned(), Value::String(stamp.timestamp.to_string()));
        payload
    }

    /// The data as the event's own type. Check the name first, or handle the error.
    pub fn read<E: Event>(&self) -> Result<E, serde_json::Error> {
        serde_json::from_value(Value::Object(self.data.clone()))
    }
}

/// Why a handler gave no answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct HookFailure {
    /// What happened.
    pub message: String,
}

impl HookFailure {
    /// A failure that is told by its message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}
