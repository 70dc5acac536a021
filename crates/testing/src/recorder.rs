//! A hook that writes down every event it hears.

use std::sync::{Arc, Mutex};

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_protocol::event::Event;
use amplifier_protocol::hook::HookResult;
use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::sync::{lock, parsed};

/// Hears everything, changes nothing.
#[derive(Default)]
pub struct EventRecorder(Mutex<Vec<(String, Map<String, Value>)>>);

impl EventRecorder {
    /// A recorder that heard nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A recorder that hears every event of this hub, before any other handler: also those that are denied later.
    pub fn attached(coordinator: &Coordinator) -> Arc<Self> {
        let recorder = Arc::new(Self::new());
        coordinator.hooks().on(Self::spec(), recorder.clone());
        recorder
    }

    /// How a recorder is registered: on `*`, before everybody else.
    pub fn spec() -> HookSpec {
        HookSpec::new(EventPattern::All, "event-recorder").priority(i32::MIN)
    }

    /// Writes an event down, as if it had been heard.
    pub fn record(&self, name: impl Into<String>, data: Map<String, Value>) {
        lock(&self.0).push((name.into(), data));
    }

    /// The events that match a pattern (`tool:pre`, `tool:*`, `*`), in order, with their data.
    #[doc(alias = "get_events")]
    pub fn events(&self, pattern: &str) -> Vec<(String, Map<String, Value>)> {
        let pattern: EventPattern = parsed(pattern);
        lock(&self.0).iter().filter(|(name, _)| pattern.matches(name)).cloned().collect()
    }

    /// The events of one type, in order; those that cannot be read as it are left out.
    pub fn of<E: Event>(&self) -> Vec<E> {
        let events = self.events(E::NAME).into_iter();
        events.filter_map(|(_, data)| serde_json::from_value(Value::Object(data)).ok()).collect()
    }

    /// The names of all events, in order.
    pub fn names(&self) -> Vec<String> {
        lock(&self.0).iter().map(|(name, _)| name.clone()).collect()
    }

    /// How many events match a pattern.
    pub fn count(&self, pattern: &str) -> usize {
        self.events(pattern).len()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        lock(&self.0).clear();
    }
}

#[async_trait]
impl HookHandler for EventRecorder {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        self.record(event.name.as_str(), event.data.clone());
        Ok(HookResult::proceed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_by_name_namespace_or_all() {
        let recorder = EventRecorder::new();
        for name in ["tool:pre", "tool:post", "prompt:submit"] {
            recorder.record(name, Map::new());
        }
        assert_eq!((recorder.count("tool:*"), recorder.count("tool:pre"), recorder.count("*")), (2, 1, 3));
        recorder.clear();
        assert_eq!(recorder.names(), Vec::<String>::new());
    }
}
