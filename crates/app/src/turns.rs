//! What a front end wants to know of a turn beside its answer: what it came to, how the loop says it ended and what was not
//! allowed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_core::contracts::TurnError;
use amplifier_core::session::{ExecuteError, Session};
use amplifier_protocol::event::{Event, HookDenied, OrchestratorComplete, ProviderResponse, TurnStatus};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::message::{Message, Role};
use amplifier_protocol::record::{Record, RecordBody};
use amplifier_protocol::run::{DeniedCall, RunStatus};
use amplifier_protocol::status::SessionState;
use serde_json::Value;

use crate::denial::Denial;
use crate::ended::Cause;
use crate::journal::RecordReader;
use crate::open::RecordTap;
use crate::paths::SessionFolder;
use crate::store::{StoreError, read_history};

/// Keeps what records tell about the turn that runs.
#[derive(Default)]
pub struct TurnWatch(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    turn: u64,
    status: Option<TurnStatus>,
    finish_reason: Option<String>,
    denied: Vec<DeniedCall>,
}

impl TurnWatch {
    /// How the loop says that the last turn ended; nothing while it runs.
    pub fn status(&self) -> Option<TurnStatus> {
        self.lock().status
    }

    /// Why the model stopped after its last words.
    pub fn finish_reason(&self) -> Option<String> {
        self.lock().finish_reason.clone()
    }

    /// What was not allowed in the last turn.
    pub fn denied(&self) -> Vec<DeniedCall> {
        self.lock().denied.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        lock(&self.0)
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RecordTap for TurnWatch {
    fn record(&self, record: &Record) {
        let mut seen = self.lock();
        if record.turn != seen.turn {
            *seen = Seen { turn: record.turn, ..Seen::default() };
        }
        let RecordBody::Event { name, data } = &record.body else { return };
        // What cannot be read was not emitted by our own types, and then it is not ours to judge.
        match name.as_str() {
            OrchestratorComplete::NAME => {
                seen.status =
                    serde_json::from_value(data.clone()).ok().map(|done: OrchestratorComplete| done.status);
            }
            ProviderResponse::NAME => {
                let reason = data.get("finish_reason").and_then(|reason| reason.as_str());
                seen.finish_reason = reason.map(str::to_owned);
            }
            HookDenied::NAME => seen.denied.extend(denied(data)),
            _ => {}
        }
    }

    fn child(&self, id: &SessionId) -> Option<Arc<dyn RecordTap>> {
        Some(Arc::new(AgentWatch { session: id.clone(), seen: Arc::clone(&self.0) }))
    }
}

/// Keeps what an agent, or one that it started, was not allowed during the turn. How its own turns end is no matter of this
/// one.
struct AgentWatch {
    session: SessionId,
    seen: Arc<Mutex<Seen>>,
}

impl RecordTap for AgentWatch {
    fn record(&self, record: &Record) {
        let RecordBody::Event { name, data } = &record.body else { return };
        if name.as_str() == HookDenied::NAME {
            let (agent, agent_session_id) =
                (self.session.agent().map(str::to_owned), Some(self.session.clone()));
            let of_agent = denied(data).map(|denied| DeniedCall { agent, agent_session_id, ..denied });
            lock(&self.seen).denied.extend(of_agent);
        }
    }

    fn child(&self, id: &SessionId) -> Option<Arc<dyn RecordTap>> {
        Some(Arc::new(Self { session: id.clone(), seen: Arc::clone(&self.seen) }))
    }
}

fn denied(data: &Value) -> Option<DeniedCall> {
    let Denial(denied) = Denial::read(data)?;
    Some(DeniedCall {
        tool_name: denied.tool_name,
        arguments: denied.tool_input,
        hook: denied.hook,
        reason: denied.reason,
        agent: None,
        agent_session_id: None,
    })
}

/// What a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// To an answer.
    Answered,
    /// A hook did not allow it; what it gave says so and is no answer.
    Denied,
    /// What it might use was used up.
    LimitReached,
    /// It was stopped before its end.
    Stopped,
    /// Nobody could be asked: what the session was to run with is wrong, and trying again does not help.
    Unanswerable,
    Failed,
}

impl Outcome {
    /// What the last turn of a session came to; nothing as its result means that it had to be left.
    pub fn of(result: Option<&Result<String, ExecuteError>>, session: &Session, watch: &TurnWatch) -> Self {
        match result {
            None => Self::Stopped,
            Some(_) if session.status().status == SessionState::Cancelled => Self::Stopped,
            Some(Err(ExecuteError::Turn(TurnError::Limit(_)))) => Self::LimitReached,
            Some(Err(ExecuteError::NoProviders { .. })) => Self::Unanswerable,
            Some(Err(_)) => Self::Failed,
            Some(Ok(_)) if watch.status() == Some(TurnStatus::Denied) => Self::Denied,
            Some(Ok(_)) => Self::Answered,
        }
    }

    /// The same in the word for programs; what stopped it tells why.
    pub fn status(self, stopped: Option<Cause>) -> RunStatus {
        match self {
            Self::Answered => RunStatus::Completed,
            Self::Denied => RunStatus::Denied,
            Self::LimitReached => RunStatus::LimitReached,
            Self::Stopped if stopped == Some(Cause::TimeUp) => RunStatus::TimedOut,
            Self::Stopped => RunStatus::Cancelled,
            Self::Unanswerable => RunStatus::Error,
            Self::Failed => RunStatus::Failed,
        }
    }
}

/// The text that a turn came to, where that is an answer: a denial is none.
pub fn answer<E>(result: &Result<String, E>, watch: &TurnWatch) -> Option<String> {
    let answer = result.as_ref().ok()?;
    (watch.status() != Some(TurnStatus::Denied)).then(|| answer.clone())
}

/// Whether the last turn of a session came to its end, so that there is nothing to go on with. One that was stopped, failed,
/// or ran into a limit did not.
pub fn is_finished(folder: &SessionFolder) -> Result<bool, StoreError> {
    let watch = TurnWatch::default();
    for record in RecordReader::open(folder)? {
        watch.record(&record?);
    }
    if let Some(status) = watch.status() {
        return Ok(matches!(status, TurnStatus::Success | TurnStatus::Denied));
    }
    // Not every loop says how it ended; then the conversation does: whatever stands behind an answer waits for one.
    let history = read_history(folder)?.history;
    let spoken = |message: &&Arc<Message>| !matches!(message.role, Role::System | Role::Developer);
    let last = history.messages.iter().chain(&history.mended).rfind(spoken);
    Ok(last.is_none_or(|message| message.role == Role::Assistant))
}

/// Several that look on.
pub struct Taps(pub Vec<Arc<dyn RecordTap>>);

impl RecordTap for Taps {
    fn record(&self, record: &Record) {
        self.0.iter().for_each(|tap| tap.record(record));
    }

    fn child(&self, id: &SessionId) -> Option<Arc<dyn RecordTap>> {
        let below: Vec<_> = self.0.iter().filter_map(|tap| tap.child(id)).collect();
        (!below.is_empty()).then(|| Arc::new(Self(below)) as Arc<dyn RecordTap>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use amplifier_protocol::ids::EventName;
    use amplifier_protocol::time::Timestamp;
    use serde_json::json;

    fn event(turn: u64, name: &str, data: Value) -> Record {
        let name: EventName = name.parse().unwrap();
        Record { seq: 1, ts: Timestamp::from_micros(0), turn, body: RecordBody::Event { name, data } }
    }

    #[test]
    fn a_new_turn_begins_with_nothing() {
        let watch = TurnWatch::default();
        let denied =
            json!({"hook": "h", "event": "tool:pre", "reason": "no", "asked": true, "tool_name": "bash"});
        watch.record(&event(1, "hook:denied", denied));
        let done = json!({"orchestrator": "loop-basic", "turn_count": 1, "status": "denied"});
        watch.record(&event(1, "orchestrator:complete", done));
        assert_eq!((watch.status(), watch.denied().len()), (Some(TurnStatus::Denied), 1));
        watch.record(&event(2, "prompt:submit", json!({"prompt": "x"})));
        assert_eq!((watch.status(), watch.denied().len()), (None, 0));
    }
}
