//! What hooks may tell the model: checked, counted, and refused when it is too much.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use amplifier_protocol::event::{HookInjected, PolicyViolation};
use amplifier_protocol::hook::Injection;
use amplifier_protocol::ids::EventName;
use amplifier_protocol::message::Message;
use amplifier_protocol::spend::Amounts;
use amplifier_protocol::text::sanitize;
use serde_json::{Map, Value};

use super::Coordinator;
use crate::estimate::estimate_tokens;
use crate::hooks::Sourced;
use crate::ledger::LimitReached;

/// What to do with an injection that lasts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Store it at once.
    Store,
    /// Leave it to the caller.
    Hold,
}

/// The limits on injections and what this turn used of them.
pub(super) struct Budget {
    per_turn: Option<u64>,
    size: Option<u64>,
    used: AtomicU64,
}

impl Budget {
    pub(super) fn new(per_turn: Option<u64>, size: Option<u64>) -> Self {
        Self { per_turn, size, used: AtomicU64::new(0) }
    }

    pub(super) fn reset(&self) {
        self.used.store(0, Ordering::Release);
    }

    fn charge(&self, tokens: u64) -> Result<(), (u64, u64)> {
        let limit = self.per_turn.unwrap_or(u64::MAX);
        let add = |used: u64| used.checked_add(tokens).filter(|sum| *sum <= limit);
        self.used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, add)
            .map(drop)
            .map_err(|used| (used, limit))
    }
}

/// An injection that was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InjectionRefused {
    /// One injection is too large.
    #[error(
        "injection of hook `{hook}` on `{event}` has {bytes} bytes and exceeds {limit} characters allowed by `injection_size_limit`"
    )]
    TooLarge {
        /// The hook.
        hook: String,
        /// The event.
        event: EventName,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The turn's budget is used up.
    #[error(
        "injection of hook `{hook}` on `{event}` needs {tokens} tokens; {used} of {limit} of `injection_budget_per_turn` are used"
    )]
    OverBudget {
        /// The hook.
        hook: String,
        /// The event.
        event: EventName,
        /// What it needs.
        tokens: u64,
        /// What the turn used.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// The session's limit is used up.
    #[error("injection of hook `{hook}` on `{event}` refused")]
    Limit {
        /// The hook.
        hook: String,
        /// The event.
        event: EventName,
        /// Which limit.
        #[source]
        limit: LimitReached,
    },
}

impl InjectionRefused {
    pub(super) fn is_too_large(&self) -> bool {
        matches!(self, Self::TooLarge { .. })
    }

    pub(super) fn violation(&self) -> PolicyViolation {
        let (policy, hook, event) = match self {
            Self::TooLarge { hook, event, .. } => ("injection_size_limit", hook, event),
            Self::OverBudget { hook, event, .. } => ("injection_budget_per_turn", hook, event),
            Self::Limit { hook, event, .. } => ("injected_tokens", hook, event),
        };
        let details = Map::from_iter([("event".to_owned(), Value::String(event.to_string()))]);
        let message = crate::error::chain(self);
        PolicyViolation { policy: policy.to_owned(), source: hook.clone(), message, details }
    }
}

impl Coordinator {
    /// Cleans, measures and books an injection, or refuses it. Nothing is charged for what is refused.
    pub(super) fn admit_injection(
        &self,
        mut injection: Sourced<Injection>,
        event: &EventName,
    ) -> Result<Sourced<Injection>, InjectionRefused> {
        let (hook, event) = (injection.hook.clone(), event.clone());
        injection.item.text = sanitize(&injection.item.text).into_owned();
        let bytes = u64::try_from(injection.item.text.len()).unwrap_or(u64::MAX);
        if let Some(limit) = self.0.injections.size.filter(|limit| bytes > *limit) {
            return Err(InjectionRefused::TooLarge { hook, event, bytes, limit });
        }
        let tokens = estimate_tokens(&injection.item.text);
        let amounts = Amounts { injected_tokens: tokens, ..Amounts::default() };
        let spender = format!("hook:{hook}");
        let reserved = match self.ledger().reserve(&spender, amounts) {
            Ok(reserved) => reserved,
            Err(limit) => return Err(InjectionRefused::Limit { hook, event, limit }),
        };
        match self.0.injections.charge(tokens) {
            Ok(()) => reserved.settle(amounts),
            Err((used, limit)) => {
                reserved.release();
                return Err(InjectionRefused::OverBudget { hook, event, tokens, used, limit });
            }
        }
        self.note(|| HookInjected {
            hook,
            event: event.to_string(),
            role: injection.item.role,
            bytes,
            tokens,
            ephemeral: injection.item.ephemeral,
        });
        Ok(injection)
    }

    /// Stores injections that were held back, in order.
    pub async fn store_injections(&self, held: Vec<Sourced<Injection>>, event: &EventName) {
        for injection in held {
            self.store_injection(injection, event).await;
        }
    }

    pub(super) async fn store_injection(&self, injection: Sourced<Injection>, event: &EventName) {
        let Sourced { hook, item } = injection;
        let mut message = Message::text(item.role.into(), item.text);
        message.metadata = Map::from_iter([
            ("source".to_owned(), Value::String("hook".to_owned())),
            ("hook_name".to_owned(), Value::String(hook.clone())),
            ("event".to_owned(), Value::String(event.to_string())),
            ("timestamp".to_owned(), Value::String(self.0.recorder.now().to_string())),
        ]);
        let refused = match self.context() {
            None => "there is no context to store it in".to_owned(),
            Some(context) => match context.add_message(Arc::new(message)).await {
                Ok(()) => return,
                Err(error) => error.to_string(),
            },
        };
        self.report_refusal(
            "context",
            &hook,
            format!("injection of hook `{hook}` on `{event}` was lost: {refused}"),
        )
        .await;
    }

    /// Tokens that hooks injected in this turn.
    pub fn injected_tokens(&self) -> u64 {
        self.0.injections.used.load(Ordering::Acquire)
    }
}
