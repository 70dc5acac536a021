//! What the records of a journal add up to: the metadata of a session and what happened to its conversation. Pure.

use std::sync::Arc;

use amplifier_core::history::spent_by;
use amplifier_protocol::event::{
    Event, LlmResponse, OrchestratorComplete, PromptSubmit, SessionDescribed, SessionEnd, SessionRewound,
    TurnStatus,
};
use amplifier_protocol::ids::EventName;
use amplifier_protocol::message::{Message, Messages, Role};
use amplifier_protocol::record::{Record, RecordBody};
use amplifier_protocol::status::SessionState;
use amplifier_protocol::time::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::metadata::{Metadata, Progress, TITLE_CHARS};
use crate::clock::can_be_right;
use crate::words;

/// What a record did to the conversation.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Change {
    None,
    Added(Arc<Message>),
    /// The context was replaced as a whole; so is the transcript.
    Replaced(Messages),
}

/// When it was last used, as the clock said then: one that was ahead once does not date what was done after it was set right. A
/// clock that lost the time dates nothing.
fn used(before: Timestamp, now: Timestamp) -> Timestamp {
    if can_be_right(now) { now } else { before.max(now) }
}

/// Takes one record in. The first record of a journal, `opened`, makes the metadata; records before it change nothing.
pub(super) fn apply(metadata: &mut Option<Metadata>, record: Record) -> Change {
    if let RecordBody::Opened { session_id, parent_id, plan_hash } = &record.body {
        let known = metadata.get_or_insert_with(|| Metadata {
            session_id: session_id.clone(),
            parent_id: parent_id.clone(),
            created: record.ts,
            updated: record.ts,
            turns: 0,
            title: None,
            name: None,
            working_dir: None,
            bundle: None,
            model: None,
            forked_from: None,
            plan_hash: String::new(),
            status: SessionState::Running,
            views: Progress { straight: true, ..Progress::default() },
        });
        known.plan_hash.clone_from(plan_hash);
    }
    let Some(metadata) = metadata else { return Change::None };
    metadata.updated = used(metadata.updated, record.ts);
    metadata.views.seq = record.seq;
    metadata.views.spent = metadata.views.spent.plus(&spent_by(&record));
    if record.turn > metadata.turns {
        metadata.turns = record.turn;
        metadata.status = SessionState::Running;
    }
    match record.body {
        RecordBody::Event { name, data } => {
            apply_event(metadata, &name, &data);
            Change::None
        }
        RecordBody::Message(message) => {
            if message.role == Role::User {
                set_title(metadata, &message.content.visible_text());
            }
            if message.role == Role::Assistant {
                metadata.views.last_word = record.seq;
            }
            Change::Added(message)
        }
        RecordBody::Messages(messages) => {
            metadata.views.straight &= !messages.is_empty();
            Change::Replaced(messages)
        }
        _ => Change::None,
    }
}

fn apply_event(metadata: &mut Metadata, name: &EventName, data: &Value) {
    match name.as_str() {
        PromptSubmit::NAME => {
            if let Some(prompt) = data.get("prompt").and_then(Value::as_str) {
                set_title(metadata, prompt);
            }
        }
        // A payload of another shape tells nothing about the status; the record itself is kept all the same.
        OrchestratorComplete::NAME => {
            if let Some(Ok(status)) = data.get("status").map(TurnStatus::deserialize) {
                metadata.status = state_after(status);
            }
        }
        SessionDescribed::NAME => {
            if let Ok(told) = SessionDescribed::deserialize(data) {
                describe(metadata, told);
            }
        }
        LlmResponse::NAME => {
            if let Some(model) = data.get("model").and_then(Value::as_str).filter(|model| !model.is_empty()) {
                metadata.model = Some(model.to_owned());
            }
        }
        SessionRewound::NAME => metadata.views.straight = false,
        SessionEnd::NAME => {
            // One that was opened and asked nothing ends as it was.
            match data.get("status").map(SessionState::deserialize) {
                Some(Ok(SessionState::Running)) | Some(Err(_)) | None => {}
                Some(Ok(status)) => metadata.status = status,
            }
        }
        _ => {}
    }
}

/// Takes what is told and leaves the rest. Where a session began does not change: that is the project it belongs to.
fn describe(metadata: &mut Metadata, told: SessionDescribed) {
    metadata.working_dir = metadata.working_dir.take().or(told.working_dir.map(Into::into));
    metadata.bundle = told.bundle.or(metadata.bundle.take());
    // A fork is not what it came from, so it does not have its name.
    let kept = metadata.name.take().filter(|_| told.forked_from.is_none());
    metadata.name = told.name.or(kept);
    metadata.forked_from = told.forked_from.or(metadata.forked_from.take());
}

fn state_after(turn: TurnStatus) -> SessionState {
    match turn {
        TurnStatus::Cancelled => SessionState::Cancelled,
        TurnStatus::Error => SessionState::Failed,
        _ => SessionState::Completed,
    }
}

/// The first prompt that says something, on one line.
fn set_title(metadata: &mut Metadata, prompt: &str) {
    if metadata.title.is_none() {
        let line = words::one_line(words::own(prompt), TITLE_CHARS);
        metadata.title = Some(line).filter(|line| !line.is_empty());
    }
}
