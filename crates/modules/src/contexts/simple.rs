//! `context-simple`: keeps the conversation in memory and shows the model as much of it as fits.
//!
//! Nothing that was said is ever lost here: when the conversation outgrows the budget, the oldest exchanges are left out
//! of what the model sees, whole, and stay stored. It writes no file; the journal does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_core::contracts::{ContextError, ContextManager, Module, Mounted, RequestBudget};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::event::{ContextCompaction, ContextPostCompact, ContextPreCompact};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::message::{Message, Messages};
use amplifier_protocol::module_info::ModuleKind;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

mod estimate;
mod view;

use view::{Aim, Conversation, Numbers};

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// The most tokens a request may have. Caps what the provider's window allows; without either it is 200,000.
    max_tokens: Option<u64>,
    /// The part of the budget at which the oldest exchanges are left out.
    compact_threshold: f64,
    /// The part of the budget that is filled after they were left out.
    target_usage: f64,
    /// Whether anything is ever left out. Without it a conversation that is too long is the provider's to refuse.
    auto_compact: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_tokens: None, compact_threshold: 0.92, target_usage: 0.5, auto_compact: true }
    }
}

/// The budget when nobody names one.
const FALLBACK_BUDGET: u64 = 200_000;

impl Config {
    /// What is wrong with it, if something is.
    fn fault(&self) -> Option<String> {
        let part = |value: f64| value > 0.0 && value <= 1.0;
        if !part(self.compact_threshold) {
            return Some(format!(
                "`compact_threshold` is {}, must be above 0 and at most 1",
                self.compact_threshold
            ));
        }
        if !part(self.target_usage) || self.target_usage > self.compact_threshold {
            return Some(format!(
                "`target_usage` is {}, must be above 0 and at most `compact_threshold` ({})",
                self.target_usage, self.compact_threshold
            ));
        }
        (self.max_tokens == Some(0)).then(|| "`max_tokens` is 0, must be 1 or more".to_owned())
    }

    fn budget(&self, request: &RequestBudget) -> u64 {
        let budget = request.tokens(self.max_tokens.unwrap_or(FALLBACK_BUDGET));
        match (request.token_budget, self.max_tokens) {
            (None, Some(most)) => budget.min(most),
            _ => budget,
        }
    }
}

/// A part of an amount of tokens. Precision is of no matter: the amounts are estimates.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "estimates"
)]
fn part_of(amount: u64, part: f64) -> u64 {
    (amount as f64 * part) as u64
}

struct SimpleContext {
    config: Config,
    coordinator: Coordinator,
    conversation: Mutex<Conversation>,
}

impl SimpleContext {
    // A panic cannot leave a conversation half changed in a way that matters: every change is one push or one swap.
    fn lock(&self) -> MutexGuard<'_, Conversation> {
        self.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves the oldest exchanges out of the view. A hook may refuse; then the view stays as it is.
    async fn shorten(&self, aim: Aim) -> Result<(), ContextError> {
        if self.lock().shorter(&aim)?.is_none() {
            return Ok(());
        }
        let (message_count, token_count) = self.lock().view_size();
        let asked = self.coordinator.emit(ContextPreCompact { message_count, token_count }).await;
        if asked.denied().is_some() {
            return Ok(());
        }
        // Looked at again: while hooks were asked somebody may have added a message.
        let Some(shorter) = self.show_shorter(&aim)? else { return Ok(()) };
        let shortened = ContextPostCompact { message_count: shorter.messages, token_count: shorter.tokens };
        self.coordinator.emit(shortened).await;
        let numbers = ContextCompaction {
            before_tokens: token_count,
            after_tokens: shorter.tokens,
            before_messages: message_count,
            after_messages: shorter.messages,
            messages_removed: shorter.removed,
            system_messages_preserved: shorter.kept_system,
            strategy_level: 1,
            budget: aim.budget,
            target_tokens: aim.target,
            ..ContextCompaction::default()
        };
        self.coordinator.emit(numbers).await;
        Ok(())
    }

    fn show_shorter(&self, aim: &Aim) -> Result<Option<Numbers>, ContextError> {
        let mut conversation = self.lock();
        let Some(shortened) = conversation.shorter(aim)? else { return Ok(None) };
        let numbers = shortened.numbers;
        conversation.show(shortened);
        Ok(Some(numbers))
    }
}

#[async_trait]
impl ContextManager for SimpleContext {
    async fn add_message(&self, message: Arc<Message>) -> Result<(), ContextError> {
        self.lock().push(message);
        Ok(())
    }

    async fn messages_for_request(&self, budget: RequestBudget) -> Result<Messages, ContextError> {
        if self.config.auto_compact {
            let budget = self.config.budget(&budget);
            let trigger = part_of(budget, self.config.compact_threshold);
            let (_, tokens) = self.lock().view_size();
            if tokens >= trigger {
                self.shorten(Aim { budget, trigger, target: part_of(budget, self.config.target_usage) })
                    .await?;
            }
        }
        Ok(self.lock().view())
    }

    async fn messages(&self) -> Result<Messages, ContextError> {
        Ok(self.lock().all())
    }

    async fn set_messages(&self, messages: Messages) -> Result<(), ContextError> {
        *self.lock() = Conversation::of(messages);
        Ok(())
    }

    async fn clear(&self) -> Result<(), ContextError> {
        *self.lock() = Conversation::default();
        Ok(())
    }
}

/// The module, as the table lists it.
pub(crate) struct Simple;

#[async_trait]
impl Module for Simple {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("context-simple")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Context
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        if let Some(message) = config.fault() {
            return Err(LoadError::Mount { id: self.id(), message });
        }
        let (coordinator, conversation) = (cx.coordinator.clone(), Mutex::default());
        cx.mount_context(Arc::new(SimpleContext { config, coordinator, conversation }));
        Ok(Mounted::Ready)
    }
}
