//! The conversation and the view of it that a model sees. Pure: no lock, no event, no wait.
//!
//! The view grows with the conversation and is otherwise changed only by [`Conversation::show`], so its beginning stays
//! the same from request to request and prompt caches keep working. What is stored is never changed.

use std::sync::Arc;

use amplifier_protocol::message::{Message, Messages, Role};
use amplifier_protocol::tool::ToolCall;
use serde_json::json;

use super::clip::clip;
use super::estimate::tokens;
use super::pairs::{calls, result_ids};
use super::plan::Plan;
use crate::contexts::events::ToolResultClipped;

/// What stands where the result of a call is missing.
const MISSING: &str = "The result of this call is missing: it was interrupted or lost. It may or may not have taken \
    effect; check before calling it again.";

/// One message of the view.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    /// What the model sees.
    pub(super) message: Arc<Message>,
    /// What it was made from: cuts are made from the whole, so that they say truly what is missing.
    pub(super) stored: Arc<Message>,
    pub(super) tokens: u64,
    pub(super) form: Form,
    /// Joins a message that calls tools and the results: they stay together or go together.
    pub(super) group: Option<u32>,
}

/// How a message of the view differs from what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    Cut,
    /// Stored nowhere: a result that is missing.
    Missing,
    /// Stored nowhere: a summary of what was left out.
    Summary,
}

impl Shown {
    pub(super) fn new(message: Arc<Message>, form: Form) -> Self {
        Self { tokens: tokens(&message), stored: Arc::clone(&message), message, form, group: None }
    }
}

/// A call without a result so far.
#[derive(Debug, Clone)]
struct OpenCall {
    id: String,
    name: String,
}

/// What was done to the view since the conversation began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Totals {
    pub(super) level: u64,
    pub(super) removed: u64,
    pub(super) cut: u64,
    pub(super) stubbed: u64,
}

#[derive(Default)]
pub(super) struct Conversation {
    all: Messages,
    view: Vec<Shown>,
    tokens: u64,
    // The calls of the last message that made any which nobody answered, and where in the view an answer would stand.
    open: Vec<OpenCall>,
    open_at: usize,
    groups: u32,
    totals: Totals,
    notice: Option<Arc<Message>>,
    // Changes with everything but growth: a plan made before cannot be shown after.
    generation: u64,
}

impl Conversation {
    pub(super) fn of(messages: Messages, most_bytes: Option<u64>, generation: u64) -> Self {
        let mut conversation = Self { generation, ..Self::default() };
        for message in messages {
            conversation.push(message, most_bytes);
        }
        conversation
    }

    /// Stores a message and shows it. A result longer than `most_bytes` is shown cut; one that answers nothing is not
    /// shown, because no service takes it.
    pub(super) fn push(
        &mut self,
        message: Arc<Message>,
        most_bytes: Option<u64>,
    ) -> Option<ToolResultClipped> {
        self.all.push(Arc::clone(&message));
        if message.role == Role::Assistant {
            self.give_up_open_calls();
        }
        let group = match self.answered(&message) {
            Answer::Stray => return None,
            Answer::Group => Some(self.groups),
            Answer::None => self.open_calls_of(&message),
        };
        let mut clipped = None;
        let mut shown = Shown::new(message, Form::Whole);
        if let Some((cut, told)) = most_bytes.and_then(|most| clip(&shown.message, most)) {
            shown = Shown { stored: shown.stored, ..Shown::new(Arc::new(cut), Form::Cut) };
            clipped = Some(told);
        }
        self.tokens = self.tokens.saturating_add(shown.tokens);
        self.view.push(Shown { group, ..shown });
        if group.is_some() {
            self.open_at = self.view.len();
        }
        clipped
    }

    fn answered(&mut self, message: &Message) -> Answer {
        let mut answers = 0;
        for id in result_ids(message) {
            if let Some(at) = self.open.iter().position(|call| call.id == id) {
                self.open.swap_remove(at);
                answers += 1;
            }
        }
        match (answers, message.role) {
            (0, Role::Tool) => Answer::Stray,
            (0, _) => Answer::None,
            _ => Answer::Group,
        }
    }

    fn open_calls_of(&mut self, message: &Message) -> Option<u32> {
        if message.role != Role::Assistant {
            return None;
        }
        self.open =
            calls(message).map(|(id, name)| OpenCall { id: id.to_owned(), name: name.to_owned() }).collect();
        (!self.open.is_empty()).then(|| {
            self.groups += 1;
            self.groups
        })
    }

    /// The model speaks again: what it was not told by now it will not be told any more.
    fn give_up_open_calls(&mut self) {
        if self.open.is_empty() {
            return;
        }
        if self.open_at < self.view.len() {
            self.generation += 1;
        }
        let missing = self.missing();
        self.tokens = self.tokens.saturating_add(missing.iter().map(|shown| shown.tokens).sum());
        self.view.splice(self.open_at..self.open_at, missing);
        self.open.clear();
    }

    fn missing(&self) -> Vec<Shown> {
        let result = |call: &OpenCall| {
            let call = ToolCall::new(call.id.clone(), call.name.clone(), json!({}));
            let shown = Shown::new(Arc::new(Message::tool_result(&call, MISSING)), Form::Missing);
            Shown { group: Some(self.groups), ..shown }
        };
        self.open.iter().map(result).collect()
    }

    pub(super) fn all(&self) -> Messages {
        self.all.clone()
    }

    pub(super) fn shown(&self) -> &[Shown] {
        &self.view
    }

    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// The group whose calls wait for results.
    pub(super) fn open_group(&self) -> Option<u32> {
        (!self.open.is_empty()).then_some(self.groups)
    }

    /// Messages and estimated tokens of the view. What calls without a result will cost is part of it.
    pub(super) fn size(&self) -> (u64, u64) {
        let open = count(self.open.len());
        (count(self.view.len()) + open, self.tokens.saturating_add(self.open_tokens()))
    }

    /// What the results that are missing now will cost.
    pub(super) fn open_tokens(&self) -> u64 {
        if self.open.is_empty() { 0 } else { self.missing().iter().map(|shown| shown.tokens).sum() }
    }

    /// What a model shall see, with the notice at its end when that fits too.
    pub(super) fn view(&self, budget: u64) -> Messages {
        let mut messages = Messages::with_capacity(self.view.len() + self.open.len() + 1);
        messages.extend(self.view.iter().map(|shown| Arc::clone(&shown.message)));
        if !self.open.is_empty() {
            let missing = self.missing().into_iter().map(|shown| shown.message);
            messages.splice(self.open_at..self.open_at, missing);
        }
        if let Some(notice) = &self.notice
            && self.open.is_empty()
            && self.tokens.saturating_add(tokens(notice)) <= budget
        {
            messages.push(Arc::clone(notice));
        }
        messages
    }

    /// Shows a shorter view that was planned before, and what came since behind it. `None` when something else than
    /// growth happened meanwhile.
    pub(super) fn show(&mut self, plan: Plan) -> Option<()> {
        if plan.generation != self.generation {
            return None;
        }
        let since = self.view.split_off(plan.planned.min(self.view.len()));
        self.view = plan.view;
        self.view.extend(since);
        // The last group never goes while the conversation ends with it.
        let last = self.view.iter().rposition(|shown| shown.group == Some(self.groups));
        self.open_at = last.map_or(self.view.len(), |at| at + 1);
        self.tokens = self.view.iter().map(|shown| shown.tokens).fold(0, u64::saturating_add);
        self.totals.level = self.totals.level.max(plan.numbers.level);
        self.totals.removed += plan.numbers.removed;
        self.totals.cut += plan.numbers.cut;
        self.totals.stubbed += plan.numbers.stubbed;
        self.generation += 1;
        Some(())
    }

    pub(super) fn set_notice(&mut self, notice: Option<Message>) {
        self.notice = notice.map(Arc::new);
    }
}

enum Answer {
    /// It answers calls that are open.
    Group,
    /// It is a result and answers nothing.
    Stray,
    None,
}

pub(super) fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
