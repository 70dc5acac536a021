//! Steering: messages that come while a turn runs and are taken up before its next question to the model.
//!
//! Between turns nothing is taken: what was meant for one turn must not surprise another. The sender is told.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use amplifier_core::contracts::{CapabilityCall, CapabilityError};
use async_trait::async_trait;
use serde_json::{Value, json};

/// The capability that takes messages: `{"message": text}`, or the text alone.
pub(super) const STEER: &str = "session.steer";

/// How many messages may wait.
const MAX_WAITING: usize = 100;
/// How long a message may be, in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// The messages of one session that wait for the running turn.
#[derive(Default)]
pub(super) struct Steering(Mutex<Desk>);

#[derive(Default)]
struct Desk {
    open: bool,
    waiting: VecDeque<String>,
}

impl Steering {
    /// A turn begins: messages are taken until the helm is closed or dropped.
    pub(super) fn open(&self) -> Helm<'_> {
        *self.desk() = Desk { open: true, waiting: VecDeque::new() };
        Helm(self)
    }

    /// Puts a message behind those that wait; returns how many do.
    fn push(&self, message: &str) -> Result<usize, String> {
        if message.trim().is_empty() {
            return Err("the message is empty; say what the turn shall take up".to_owned());
        }
        if message.len() > MAX_BYTES {
            return Err(format!(
                "the message has {} bytes and may have {MAX_BYTES}; shorten it",
                message.len()
            ));
        }
        let mut desk = self.desk();
        if !desk.open {
            return Err("no turn is running that could take the message up; send it as a prompt".to_owned());
        }
        if desk.waiting.len() >= MAX_WAITING {
            return Err(format!("{MAX_WAITING} messages wait already; send it again after the next step"));
        }
        desk.waiting.push_back(message.to_owned());
        Ok(desk.waiting.len())
    }

    // Every assignment leaves the desk valid, so a panic elsewhere changes nothing here.
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl CapabilityCall for Steering {
    async fn call(&self, arguments: Value) -> Result<Value, CapabilityError> {
        let failed = |message: String| CapabilityError::Failed { name: STEER.to_owned(), message };
        let message = match &arguments {
            Value::String(message) => Some(message.as_str()),
            other => other.get("message").and_then(Value::as_str),
        };
        let message = message.ok_or_else(|| failed("pass the text as `{\"message\": …}`".to_owned()))?;
        let queued = self.push(message).map_err(failed)?;
        Ok(json!({"queued": queued}))
    }
}

/// The running turn's end of the desk. However the turn ends, no message is taken after it.
pub(super) struct Helm<'a>(&'a Steering);

impl Helm<'_> {
    /// The next message and how many more wait.
    pub(super) fn next(&self) -> Option<(String, usize)> {
        let mut desk = self.0.desk();
        let message = desk.waiting.pop_front()?;
        Some((message, desk.waiting.len()))
    }

    /// Takes no more messages, unless one waits: then false. In one step, so that no message falls between the last
    /// look and the end of the turn.
    pub(super) fn close_if_empty(&self) -> bool {
        let mut desk = self.0.desk();
        desk.open = !desk.waiting.is_empty();
        !desk.open
    }

    /// Takes no more messages; returns how many were not taken up.
    pub(super) fn close(&self) -> usize {
        std::mem::take(&mut *self.0.desk()).waiting.len()
    }
}

impl Drop for Helm<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_in_order_and_only_while_a_turn_runs() {
        let steering = Steering::default();
        assert!(steering.push("early").unwrap_err().contains("as a prompt"));
        let helm = steering.open();
        assert_eq!((steering.push("a"), steering.push("b")), (Ok(1), Ok(2)));
        assert!(!helm.close_if_empty(), "one waits");
        assert_eq!(helm.next(), Some(("a".to_owned(), 1)));
        assert_eq!(helm.next(), Some(("b".to_owned(), 0)));
        assert!(helm.close_if_empty());
        assert!(steering.push("late").is_err());
    }

    #[test]
    fn a_turn_that_is_dropped_leaves_nothing_to_the_next() {
        let steering = Steering::default();
        let helm = steering.open();
        steering.push("stale").unwrap();
        drop(helm);
        assert!(steering.push("between").is_err());
        assert_eq!(steering.open().next(), None);
    }

    #[test]
    fn what_cannot_be_taken_is_refused_with_a_way_out() {
        let steering = Steering::default();
        let helm = steering.open();
        assert!(steering.push(" \n").unwrap_err().contains("empty"));
        assert!(steering.push(&"x".repeat(MAX_BYTES + 1)).unwrap_err().contains("shorten"));
        for _ in 0..MAX_WAITING {
            steering.push("x").unwrap();
        }
        assert!(steering.push("x").unwrap_err().contains("after the next step"));
        assert_eq!(helm.close(), MAX_WAITING);
    }
}
