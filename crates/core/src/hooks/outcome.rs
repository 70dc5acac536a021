//! What the handlers of one event said together.
//!
//! Precedence is deny, ask, inject, modify, continue. What the losing answers carried is kept: messages are shown,
//! injections stay apart, changes are chained, and every question is put.

use amplifier_protocol::hook::{HookAction, HookResult, Injection, MessageLevel, Question, UserMessage};
use amplifier_protocol::ids::EventName;
use serde_json::{Map, Value};

use super::FailurePolicy;

/// Something a hook gave, and which hook.
#[derive(Debug, Clone, PartialEq)]
pub struct Sourced<T> {
    /// The hook.
    pub hook: String,
    /// What it gave.
    pub item: T,
}

/// Whether what the event announced may happen.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Decision {
    /// It may.
    #[default]
    Proceed,
    /// It may not.
    Deny {
        /// Why, for the model to read.
        reason: String,
        /// Who said so.
        hook: String,
    },
}

/// A handler that gave no answer.
#[derive(Debug, Clone, PartialEq)]
pub struct HandlerFailure {
    /// The handler.
    pub hook: String,
    /// What happened.
    pub error: String,
    /// What it meant for the event.
    pub policy: FailurePolicy,
}

/// The joined answers to one event.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// Whether it may happen, before anybody was asked.
    pub decision: Decision,
    /// What must be asked first, in order.
    pub questions: Vec<Sourced<Question>>,
    /// The data, with every change in effect.
    pub data: Map<String, Value>,
    /// Whether any handler changed the data.
    pub modified: bool,
    /// What shall be told to the model, in order.
    pub injections: Vec<Sourced<Injection>>,
    /// What shall be shown to the person, in order.
    pub messages: Vec<Sourced<UserMessage>>,
    /// Why, as far as those who did not deny said so, in order.
    pub reasons: Vec<Sourced<String>>,
    /// Whether a hook hides its own output.
    pub suppress_output: bool,
    /// Handlers that gave no answer.
    pub failures: Vec<HandlerFailure>,
}

impl Outcome {
    /// Whether a handler denied.
    pub fn is_denied(&self) -> bool {
        matches!(self.decision, Decision::Deny { .. })
    }

    /// The outcome of one answer alone.
    pub(crate) fn of(hook: &str, result: HookResult) -> Self {
        let (mut outcome, mut data) = (Self::default(), Map::new());
        outcome.take(hook, result, &mut data);
        outcome.data = data;
        outcome
    }

    /// The outcome of an event that was caused by itself too many times over.
    pub(crate) fn too_deep(data: Map<String, Value>, event: &EventName, depth: u8) -> Self {
        let reason = format!("`{event}` was emitted {depth} levels deep inside its own handlers");
        let decision = Decision::Deny { reason, hook: "kernel".to_owned() };
        Self { decision, data, ..Self::default() }
    }

    /// Adds one answer; `data` is what the next handler will see.
    pub(super) fn take(&mut self, hook: &str, result: HookResult, data: &mut Map<String, Value>) {
        if matches!(result.action, HookAction::Continue)
            && result.message.is_none()
            && result.reason.is_none()
        {
            self.suppress_output |= result.suppress_output;
            return;
        }
        let hook = || hook.to_owned();
        self.suppress_output |= result.suppress_output;
        self.reasons.extend(result.reason.map(|item| Sourced { hook: hook(), item }));
        // A question is its own message; showing both would say everything twice.
        let shown = result.message.filter(|_| !matches!(result.action, HookAction::AskUser(_)));
        self.messages.extend(shown.map(|item| Sourced { hook: hook(), item }));
        match result.action {
            HookAction::Continue => {}
            HookAction::Deny { reason } => self.decision = Decision::Deny { reason, hook: hook() },
            HookAction::Modify => {
                if let Some(changed) = result.data {
                    *data = changed;
                    self.modified = true;
                }
            }
            HookAction::InjectContext(item) if item.text.is_empty() => {}
            HookAction::InjectContext(item) => self.injections.push(Sourced { hook: hook(), item }),
            HookAction::AskUser(item) => self.questions.push(Sourced { hook: hook(), item }),
        }
    }

    pub(super) fn fail(&mut self, hook: &str, error: String, policy: FailurePolicy) {
        if policy == FailurePolicy::Closed {
            let reason = format!("hook `{hook}` guards this and is broken: {error}");
            self.decision = Decision::Deny { reason, hook: hook.to_owned() };
        }
        self.failures.push(HandlerFailure { hook: hook.to_owned(), error, policy });
    }

    /// The one flat answer of the specification, for loops in other processes.
    pub fn to_result(&self) -> HookResult {
        let action = match (&self.decision, self.questions.first(), self.merged_injection()) {
            (Decision::Deny { reason, .. }, _, _) => HookAction::Deny { reason: reason.clone() },
            (_, Some(question), _) => HookAction::AskUser(question.item.clone()),
            (_, None, Some(injection)) => HookAction::InjectContext(injection),
            (_, None, None) if self.modified => HookAction::Modify,
            _ => HookAction::Continue,
        };
        let data = (!self.is_denied()).then(|| self.data.clone());
        let reasons: Vec<_> = self.reasons.iter().map(|reason| reason.item.as_str()).collect();
        let reason = (!self.is_denied() && !reasons.is_empty()).then(|| reasons.join("; "));
        let (message, suppress_output) = (self.joined_message(), self.suppress_output);
        HookResult { action, data, message, reason, suppress_output, extra: Map::new() }
    }

    /// Injections as one: texts joined by a blank line, the first role, flags if any has them.
    pub(crate) fn merged_injection(&self) -> Option<Injection> {
        let mut items = self.injections.iter().map(|sourced| &sourced.item);
        let mut merged = items.next()?.clone();
        for item in items {
            merged.text.push_str("\n\n");
            merged.text.push_str(&item.text);
            merged.ephemeral |= item.ephemeral;
            merged.append_to_last_tool_result |= item.append_to_last_tool_result;
        }
        Some(merged)
    }

    fn joined_message(&self) -> Option<UserMessage> {
        let texts: Vec<_> = self.messages.iter().map(|message| message.item.text.as_str()).collect();
        let gravity = |level: MessageLevel| match level {
            MessageLevel::Info => 0,
            MessageLevel::Warning => 1,
            MessageLevel::Error => 2,
        };
        let level =
            self.messages.iter().map(|message| message.item.level).max_by_key(|level| gravity(*level))?;
        let source = self.messages.first().and_then(|message| message.item.source.clone());
        Some(UserMessage { text: texts.join("\n"), level, source })
    }
}
