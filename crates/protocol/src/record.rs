//! The journal's records: the one truth about a session, from which every other view is rebuilt.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{EventName, SessionId};
use crate::message::{Message, Messages};
use crate::time::Timestamp;
use crate::tool::EffectClass;

/// The version of the record format. A reader refuses a newer one by name.
pub const RECORD_VERSION: u32 = 1;

/// One record. Records of a session have consecutive sequence numbers, beginning with 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The place in the order.
    pub seq: u64,
    /// When it was made.
    pub ts: Timestamp,
    /// The turn it belongs to; 0 before the first.
    pub turn: u64,
    /// What happened.
    pub body: RecordBody,
}

/// What happened. Written as `{"message": {…}}`: an outer tag is read without a buffer, which keeps unknown blocks exact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RecordBody {
    /// A process opened the session, for the first time or again.
    Opened {
        /// The session.
        session_id: SessionId,
        /// Its parent.
        parent_id: Option<SessionId>,
        /// The hash of the plan it was opened with.
        plan_hash: String,
    },
    /// An event was emitted.
    Event {
        /// Its name.
        name: EventName,
        /// Its data.
        data: Value,
    },
    /// A message was added to the context.
    Message(Arc<Message>),
    /// The context was replaced as a whole and holds these now.
    Messages(Messages),
    /// A call into the world is about to begin.
    CallStarted {
        /// Joins start and finish.
        call_id: String,
        /// The module that is called.
        owner: String,
        /// What is called: `provider.complete` or a tool's name.
        operation: String,
        /// What repetition would mean.
        effect: EffectClass,
        /// The input of a tool.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        input: Value,
    },
    /// A call ended.
    CallFinished {
        /// Joins start and finish.
        call_id: String,
        /// How it ended.
        outcome: CallOutcome,
    },
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum CallOutcome {
    /// It answered.
    Answered {
        /// The answer, as JSON.
        result: Value,
    },
    /// It failed, was cancelled or ran out of time.
    Failed {
        /// What happened.
        error: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_record_reads_like_a_sentence_and_comes_back() {
        let record = Record {
            seq: 7,
            ts: Timestamp::from_micros(0),
            turn: 1,
            body: RecordBody::Message(Arc::new(Message::user("hi"))),
        };
        let json = serde_json::to_value(&record).unwrap();
        assert_eq!(
            json,
            json!({"seq": 7, "ts": "1970-01-01T00:00:00.000000+00:00", "turn": 1, "body": {"message": {"role": "user", "content": "hi"}}})
        );
        assert_eq!(serde_json::from_value::<Record>(json).unwrap(), record);
    }

    #[test]
    fn an_unknown_block_inside_a_record_keeps_its_bytes() {
        let line = r#"{"seq":1,"ts":"1970-01-01T00:00:00.000000+00:00","turn":0,"body":{"message":{"role":"assistant","content":[{"type":"x","n":1.50}]}}}"#;
        let record: Record = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
    }
}
