//! An answer that forms and those who hear of it, and what a try that broke off leaves to the next. It asks nobody.

use std::sync::Arc;

use amplifier_core::contracts::ProviderCx;
use amplifier_protocol::content::ContentBlock;
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::message::{Content, Message, Role};
use amplifier_protocol::stream::StreamEvent;
use serde_json::Value;

use super::Piece;
use super::answer::Answer;
use super::events::BlockTeller;
use super::repair::History;

/// The key of a message that is the beginning of the answer that is asked for.
const INCOMPLETE: &str = "incomplete";

/// What tries leave to those after them.
pub(super) struct Progress {
    pub(super) history: History,
    pub(super) kept: Vec<ContentBlock>,
    pub(super) base: u32,
    pub(super) began: bool,
    // Why the answer broke off behind which the next try goes on.
    broke_off: Option<LlmError>,
}

impl Progress {
    pub(super) fn new(history: History) -> Self {
        Self { history, kept: Vec::new(), base: 0, began: false, broke_off: None }
    }

    /// Lets the next try begin behind these blocks.
    pub(super) fn go_on_behind(&mut self, kept: Vec<ContentBlock>, base: u32, error: LlmError) {
        let mut so_far = Message::new(Role::Assistant, Content::Blocks(kept.clone()));
        so_far.metadata.insert(INCOMPLETE.to_owned(), Value::Bool(true));
        self.history.turns.retain(|message| !message.metadata.contains_key(INCOMPLETE));
        self.history.turns.push(Arc::new(so_far));
        (self.kept, self.base, self.broke_off) = (kept, base, Some(error));
    }

    /// There is no next try, because part of the answer was shown already.
    pub(super) fn over(&mut self, error: LlmError, characters: Option<usize>) -> LlmError {
        self.broke_off = None;
        told_in_part(error, characters)
    }

    /// The error that ends the call. Behind whole blocks that were shown it says so; and a service that refuses to go on
    /// there only refuses what it was asked because the answer had broken off, so that is what went wrong.
    pub(super) fn told(&mut self, error: LlmError) -> LlmError {
        match self.broke_off.take() {
            None => error,
            Some(first) if error.kind == LlmErrorKind::InvalidRequest => {
                let message =
                    format!("{}; going on from there was refused: {}", first.message, error.message);
                told_in_part(LlmError { message, ..first }, None).caused_by(error)
            }
            Some(_) => told_in_part(error, None),
        }
    }
}

/// Whether a block says something to a person.
pub(super) fn is_said(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text(text) if !text.text.trim().is_empty())
}

/// An error that cannot be tried again, because part of the answer was shown already.
fn told_in_part(error: LlmError, characters: Option<usize>) -> LlmError {
    let came = match characters {
        Some(count) => format!("after {count} characters"),
        None => "behind a complete part".to_owned(),
    };
    let message = format!("the answer broke off {came}: {}", error.message);
    LlmError { retryable: false, message, ..error }
}

/// An answer that forms, and those who hear of it.
pub(super) struct Listening<'a> {
    pub(super) answer: Answer,
    pub(super) blocks: BlockTeller<'a>,
    pub(super) began: &'a mut bool,
    pub(super) cx: &'a ProviderCx,
}

impl Listening<'_> {
    pub(super) async fn take(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            let events = self.answer.take(piece);
            self.tell(events).await;
        }
    }

    /// Passes events on to whoever listens, and notes what was shown.
    pub(super) async fn tell(&mut self, events: Vec<StreamEvent>) {
        if events.is_empty() || !self.cx.deltas.is_open() {
            return;
        }
        if !*self.began {
            *self.began = true;
            self.cx.send(StreamEvent::MessageStart).await;
        }
        for event in events {
            if let StreamEvent::TextDelta { text, .. } | StreamEvent::ThinkingDelta { text, .. } = &event {
                self.answer.showed(text.chars().count());
            }
            self.blocks.tell(&event).await;
            self.cx.send(event).await;
        }
    }
}
