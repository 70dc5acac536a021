//! From records back to a conversation: what a session that goes on begins with.
//!
//! Pure: it reads records and returns messages. Whatever was cut off is said, to the model and to the person; nothing
//! is repeated and nothing is made up.

use std::collections::HashMap;
use std::sync::Arc;

use amplifier_protocol::event::{Event, HookInjected, SessionChildSpent};
use amplifier_protocol::message::{Content, Message, Messages, Role};
use amplifier_protocol::record::{CallOutcome, Record, RecordBody};
use amplifier_protocol::spend::Amounts;
use amplifier_protocol::tool::{EffectClass, ToolCall, ToolResult};
use amplifier_protocol::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a session that goes on begins with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    /// The conversation, as it was stored.
    pub messages: Messages,
    /// Results that belong at its end and were not stored before the end came.
    pub mended: Messages,
    /// The calls behind [`History::mended`].
    pub interrupted: Vec<Interrupted>,
    /// The number of the last record.
    pub last_sequence: u64,
    /// The number of the last turn.
    pub last_turn: u64,
    /// What was spent, by the session and its children.
    pub spent: Amounts,
    /// The hash of the plan it was last opened with.
    pub plan_hash: Option<String>,
}

/// A tool call whose result was not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupted {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// What is known about it.
    pub state: InterruptedState,
}

/// What is known about a call whose result was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptedState {
    /// It ended, and its result was found in the journal.
    Recovered,
    /// It never began.
    NotStarted,
    /// It began; it changes nothing, or nothing that a second time would change.
    Repeatable,
    /// It began and may or may not have changed the world.
    UnknownOutcome,
}

/// Reads records in order and keeps what a session needs to go on.
#[derive(Default)]
pub struct Replay {
    history: History,
    // Calls since the last message of the model: what began, and how it ended.
    started: HashMap<String, EffectClass>,
    finished: HashMap<String, CallOutcome>,
}

impl Replay {
    /// Goes on where an earlier reader ended. What it knew of calls is told again with [`Replay::recall`].
    pub fn after(history: History) -> Self {
        Self { history, ..Self::default() }
    }

    /// Takes note of a call in a record that the history holds already, without counting it again.
    pub fn recall(&mut self, record: &Record) {
        match &record.body {
            RecordBody::CallStarted { call_id, effect, .. } => {
                self.started.insert(call_id.clone(), *effect);
            }
            RecordBody::CallFinished { call_id, outcome } => {
                self.finished.insert(call_id.clone(), outcome.clone());
            }
            _ => {}
        }
    }

    /// Takes the next record.
    pub fn push(&mut self, record: &Record) {
        self.history.last_sequence = record.seq;
        self.history.last_turn = record.turn;
        self.history.spent = self.history.spent.plus(&spent_by(record));
        match &record.body {
            RecordBody::Opened { plan_hash, .. } => self.history.plan_hash = Some(plan_hash.clone()),
            RecordBody::Message(message) => {
                if message.role == Role::Assistant {
                    self.started.clear();
                    self.finished.clear();
                }
                self.history.messages.push(Arc::clone(message));
            }
            RecordBody::Messages(messages) => self.history.messages.clone_from(messages),
            _ => self.recall(record),
        }
    }

    /// The history, with what was cut off told at its end.
    pub fn finish(mut self) -> History {
        for call in open_calls(&self.history.messages) {
            let (state, content) = self.judge(&call);
            self.history.mended.push(Arc::new(Message::tool_result(&call, content)));
            self.history.interrupted.push(Interrupted { call_id: call.id, tool: call.name, state });
        }
        self.history
    }

    fn judge(&self, call: &ToolCall) -> (InterruptedState, Content) {
        match (self.finished.get(&call.id), self.started.get(&call.id)) {
            (Some(CallOutcome::Answered { result }), _) => {
                let read = serde_json::from_value::<ToolResult>(result.clone());
                let content = read.map(|result| result.to_model_content());
                (InterruptedState::Recovered, content.unwrap_or_else(|_| result.to_string().into()))
            }
            (Some(CallOutcome::Failed { error }), _) => {
                (InterruptedState::Recovered, format!("Error executing tool: {error}").into())
            }
            (None, None) => (
                InterruptedState::NotStarted,
                "The session was interrupted before this tool was run. Call it again if it is still needed.".into(),
            ),
            (None, Some(EffectClass::Write)) => (
                InterruptedState::UnknownOutcome,
                "The session was interrupted while this tool ran. Its outcome is unknown: it may or may not have taken \
                 effect. Check before calling it again."
                    .into(),
            ),
            (None, Some(_)) => (
                InterruptedState::Repeatable,
                "The session was interrupted while this tool ran. Calling it again is safe.".into(),
            ),
        }
    }
}

/// What the thing that a record tells has spent.
pub fn spent_by(record: &Record) -> Amounts {
    match &record.body {
        RecordBody::CallStarted { operation, .. } if operation == "provider.complete" => {
            Amounts { steps: 1, ..Amounts::default() }
        }
        RecordBody::CallStarted { .. } => Amounts { tool_calls: 1, ..Amounts::default() },
        RecordBody::CallFinished { outcome, .. } => spent_tokens(outcome),
        RecordBody::Event { name, data } if name.as_str() == SessionChildSpent::NAME => {
            SessionChildSpent::deserialize(data).map_or_else(|_| Amounts::default(), |told| told.spent)
        }
        RecordBody::Event { name, data } if name.as_str() == HookInjected::NAME => {
            let injected_tokens = data.get("tokens").and_then(Value::as_u64).unwrap_or(0);
            Amounts { injected_tokens, ..Amounts::default() }
        }
        _ => Amounts::default(),
    }
}

fn spent_tokens(outcome: &CallOutcome) -> Amounts {
    let CallOutcome::Answered { result } = outcome else { return Amounts::default() };
    // Only model calls have a usage; a tool's answer has no such key beside `success`.
    let usage =
        result.get("usage").filter(|_| result.get("success").is_none()).cloned().unwrap_or(Value::Null);
    let usage: Option<Usage> = serde_json::from_value(usage).unwrap_or(None);
    Amounts { steps: 0, ..Amounts::of_model_call(usage.as_ref()) }
}

/// The calls of the last message that made any, less those that were answered since. None when the conversation went on.
fn open_calls(messages: &Messages) -> Vec<ToolCall> {
    let Some(at) = messages.iter().rposition(|message| message.role == Role::Assistant) else {
        return Vec::new();
    };
    let since = messages.get(at + 1..).unwrap_or_default();
    let answered =
        |call: &ToolCall| since.iter().any(|m| m.tool_call_id.as_deref() == Some(call.id.as_str()));
    let went_on =
        since.iter().any(|message| message.role == Role::User && !message.metadata.contains_key("source"));
    let calls = messages.get(at).map(|message| message.calls()).unwrap_or_default();
    if went_on { Vec::new() } else { calls.into_iter().filter(|call| !answered(call)).collect() }
}
