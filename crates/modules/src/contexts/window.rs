//! The part of a conversation that a model sees, kept within its budget. What `context-simple` and `context-persistent`
//! share.
//!
//! This file joins the parts and tells what they do: `conversation.rs` keeps, `plan.rs` and `draft.rs` shorten, `meter.rs` learns what
//! a token is, `summary.rs` asks a model. It stores nothing on a disk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_core::contracts::{ContextError, HookEvent, HookFailure, HookHandler, RequestBudget};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_protocol::event::{
    ContextCompaction, ContextPostCompact, ContextPreCompact, Event, LlmResponse, ProviderResponse,
};
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::ids::EventName;
use amplifier_protocol::message::{Message, Messages};
use amplifier_protocol::usage::Usage;
use async_trait::async_trait;

use super::events::{ContextBudget, SummaryFailed, ToolResultClipped};

mod clip;
mod config;
mod conversation;
mod cut;
mod draft;
pub(super) mod estimate;
mod meter;
mod notice;
mod pairs;
mod plan;
mod summary;

pub(super) use config::WindowConfig;
use config::{TokenMeter, part_of};
use conversation::Conversation;
use meter::Meter;
use plan::{Aim, Numbers, Plan, plan};

/// A conversation and the view of it.
pub(super) struct Window {
    config: WindowConfig,
    coordinator: Coordinator,
    conversation: Mutex<Conversation>,
    meter: Mutex<Meter>,
    // The last budget that was told, and the size at which shortening is tried again after it gave nothing.
    last: Mutex<Last>,
    listening: AtomicBool,
}

#[derive(Default)]
struct Last {
    budget: Option<ContextBudget>,
    stuck: Option<Stuck>,
}

#[derive(Clone, Copy)]
struct Stuck {
    budget: u64,
    retry_at: u64,
}

// A panic cannot leave what these locks hold half changed in a way that matters.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Window {
    pub(super) fn new(config: WindowConfig, coordinator: Coordinator) -> Arc<Self> {
        let (conversation, meter, last) = (Mutex::default(), Mutex::default(), Mutex::default());
        Arc::new(Self { config, coordinator, conversation, meter, last, listening: AtomicBool::new(false) })
    }

    /// Listens to what providers report, when that shall correct the estimates. Begins with the first request: a session
    /// that nobody asks anything holds no handlers for it. They end with the session's registry.
    fn listen(self: &Arc<Self>) {
        if self.config.token_meter != TokenMeter::Actual || self.listening.swap(true, Ordering::AcqRel) {
            return;
        }
        let name = format!("{}-meter", self.coordinator.plan().session.context.module);
        for event in [EventName::of::<LlmResponse>(), EventName::of::<ProviderResponse>()] {
            let spec = HookSpec::new(EventPattern::Exact(event), name.clone()).priority(50);
            self.coordinator.hooks().on(spec, Arc::new(Listener(Arc::clone(self))));
        }
    }

    /// Stores a message. Something is returned when it is shown cut from the start; tell it with [`Window::tell`].
    pub(super) fn add(&self, message: Arc<Message>) -> Option<ToolResultClipped> {
        lock(&self.conversation).push(message, self.config.max_tool_result_bytes)
    }

    pub(super) async fn tell(&self, clipped: Option<ToolResultClipped>) {
        if let Some(clipped) = clipped {
            self.coordinator.emit(clipped).await;
        }
    }

    pub(super) fn all(&self) -> Messages {
        lock(&self.conversation).all()
    }

    pub(super) fn replace(&self, messages: Messages) {
        let mut conversation = lock(&self.conversation);
        let generation = conversation.generation() + 1;
        let old = std::mem::replace(
            &mut *conversation,
            Conversation::of(messages, self.config.max_tool_result_bytes, generation),
        );
        drop(conversation);
        drop(old);
        lock(&self.last).stuck = None;
    }

    /// What a model shall see now.
    pub(super) async fn for_request(
        self: &Arc<Self>,
        request: RequestBudget,
    ) -> Result<Messages, ContextError> {
        self.listen();
        lock(&self.meter).preparing();
        let budget = self.config.budget(&request);
        let real = budget.effective_budget;
        self.tell_budget(budget).await;
        if !self.config.auto_compact {
            return Ok(self.sent(u64::MAX));
        }
        let budget = lock(&self.meter).estimated(real);
        if self.is_too_long(budget) {
            self.shorten(budget).await.map_err(|error| self.in_real_tokens(error, real))?;
        }
        Ok(self.sent(budget))
    }

    fn sent(&self, budget: u64) -> Messages {
        let conversation = lock(&self.conversation);
        let (_, tokens) = conversation.size();
        let view = conversation.view(budget);
        drop(conversation);
        lock(&self.meter).sent(tokens);
        view
    }

    fn in_real_tokens(&self, error: ContextError, budget: u64) -> ContextError {
        match error {
            ContextError::DoesNotFit { needed, .. } => {
                ContextError::DoesNotFit { needed: lock(&self.meter).real(needed), budget }
            }
            other => other,
        }
    }

    /// What a view shall be shortened to, in estimated tokens.
    fn aim(&self, budget: u64) -> Aim {
        let reserve = match self.config.compaction_notice_enabled {
            true => self.config.compaction_notice_token_reserve.min(budget / 4),
            false => 0,
        };
        // What stands at the end of the view and is not part of it yet.
        let open = lock(&self.conversation).open_tokens();
        let share = |part: f64| part_of(budget - reserve, part).saturating_sub(open);
        let target = share(self.config.target());
        let trigger = share(self.config.compact_threshold);
        Aim { budget: budget.saturating_sub(open), trigger, target }
    }

    fn is_too_long(&self, budget: u64) -> bool {
        let aim = self.aim(budget);
        let (_, tokens) = lock(&self.conversation).size();
        if tokens < aim.trigger {
            return false;
        }
        let stuck = lock(&self.last).stuck;
        // Nothing could go a moment ago: looking again for every message would cost much and give nothing.
        let in_vain = stuck.is_some_and(|stuck| stuck.budget == budget && tokens < stuck.retry_at);
        tokens > budget || !in_vain
    }

    /// Makes the view shorter. A hook may refuse; then it stays as it is, and the provider decides.
    async fn shorten(&self, budget: u64) -> Result<(), ContextError> {
        let aim = self.aim(budget);
        let (message_count, token_count) = lock(&self.conversation).size();
        let Some(planned) = self.plan(aim)? else {
            let retry_at = token_count.saturating_add(budget / 20);
            lock(&self.last).stuck = Some(Stuck { budget, retry_at });
            return Ok(());
        };
        let asked = self.coordinator.emit(ContextPreCompact { message_count, token_count }).await;
        if asked.denied().is_some() {
            return Ok(());
        }
        let planned = self.with_summary(planned, aim).await?;
        let Some(numbers) = self.show(planned, aim)? else { return Ok(()) };
        let (messages, tokens) = lock(&self.conversation).size();
        self.coordinator.emit(ContextPostCompact { message_count: messages, token_count: tokens }).await;
        let told = ContextCompaction {
            before_tokens: token_count,
            after_tokens: tokens,
            before_messages: message_count,
            after_messages: messages,
            messages_removed: numbers.removed,
            messages_truncated: numbers.cut,
            user_messages_stubbed: numbers.stubbed,
            system_messages_preserved: numbers.kept_system,
            strategy_level: lock(&self.conversation).totals().level,
            budget: aim.budget,
            target_tokens: aim.target,
            protected_recent: self.config.protected_recent,
            protected_tool_results: u64::try_from(self.config.protected_tool_results).unwrap_or(u64::MAX),
        };
        self.coordinator.emit(told).await;
        Ok(())
    }

    fn plan(&self, aim: Aim) -> Result<Option<Plan>, ContextError> {
        plan(&lock(&self.conversation), aim, &self.config)
    }

    /// The plan with a summary of what it leaves out, when that is wanted, affordable and comes about.
    async fn with_summary(&self, planned: Plan, aim: Aim) -> Result<Plan, ContextError> {
        let cost = self.config.summary_max_tokens;
        if !self.config.summarize || planned.left_out.is_empty() || aim.target < cost.saturating_mul(2) {
            return Ok(planned);
        }
        let smaller =
            Aim { budget: aim.budget - cost, target: aim.target - cost, trigger: aim.trigger - cost };
        let Ok(Some(mut summed_up)) = self.plan(smaller) else { return Ok(planned) };
        match summary::fill_in(&mut summed_up, &self.coordinator, &self.config).await {
            Ok(()) if summed_up.numbers.tokens <= aim.budget => Ok(summed_up),
            Ok(()) => Ok(planned),
            Err(error) => {
                self.coordinator.emit(SummaryFailed { error }).await;
                Ok(planned)
            }
        }
    }

    /// Shows a planned view, or one planned anew when the conversation was changed meanwhile.
    fn show(&self, planned: Plan, aim: Aim) -> Result<Option<Numbers>, ContextError> {
        let mut conversation = lock(&self.conversation);
        let mut numbers = planned.numbers;
        if conversation.show(planned).is_none() {
            let Some(again) = plan(&conversation, aim, &self.config)? else { return Ok(None) };
            numbers = again.numbers;
            conversation.show(again);
        }
        let notice = notice::notice(conversation.shown(), conversation.totals(), &self.config);
        conversation.set_notice(notice);
        Ok(Some(numbers))
    }

    /// The first budget is no change, so it is no news.
    async fn tell_budget(&self, budget: ContextBudget) {
        let before = lock(&self.last).budget.replace(budget.clone());
        if before.is_some_and(|before| before != budget) {
            self.coordinator.emit(budget).await;
        }
    }

    fn measured(&self, usage: &Usage) {
        let tokens = usage.input_tokens.saturating_add(usage.cache_write_tokens.unwrap_or_default());
        lock(&self.meter).measured(tokens);
    }
}

/// Hears what model calls consumed.
struct Listener(Arc<Window>);

#[async_trait]
impl HookHandler for Listener {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        let usage = match event.name.as_str() {
            LlmResponse::NAME => event.read::<LlmResponse>().map(|told| told.usage),
            _ => event.read::<ProviderResponse>().map(|told| told.usage),
        };
        let usage = usage.map_err(|error| HookFailure::new(error.to_string()))?;
        if let Some(usage) = usage {
            self.0.measured(&usage);
        }
        Ok(HookResult::proceed())
    }
}

#[cfg(test)]
mod window_tests;
