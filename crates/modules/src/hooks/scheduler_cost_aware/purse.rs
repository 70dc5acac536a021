//! What was spent, what is left, and what cannot be known. Decides nothing but when a limit is reached.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler};
use amplifier_core::coordinator::Coordinator;
use amplifier_protocol::event::ProviderResponse;
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::usage::{Usage, Usd};
use async_trait::async_trait;

use super::super::choice::{TOOL_SELECTED, TOOL_SELECTING, refuse_tool, selected_tool};
use super::Config;

/// Billionths of a dollar in a dollar.
const DOLLAR: f64 = 1e9;

/// Dollars as a counter counts them. Precision is that of the config: a float.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked not to be negative; saturates"
)]
fn nanos(dollars: f64) -> u64 {
    (dollars * DOLLAR).round() as u64
}

#[expect(clippy::cast_precision_loss, reason = "for comparing with what a person wrote")]
fn dollars(nanos: u64) -> f64 {
    nanos as f64 / DOLLAR
}

/// The session's money.
pub(super) struct Purse {
    coordinator: Coordinator,
    limit: Option<u64>,
    alert: Option<u64>,
    assumed_per_million: Option<f64>,
    // Calls whose cost nobody told, and what they are taken to have cost.
    unknown_calls: AtomicU64,
    assumed: AtomicU64,
    told_alert: AtomicBool,
    told_unknown: AtomicBool,
}

impl Purse {
    pub(super) fn new(config: &Config, coordinator: Coordinator) -> Self {
        Self {
            coordinator,
            limit: config.budget_limit.map(nanos),
            alert: config.alert_threshold.map(nanos),
            assumed_per_million: config.assumed_cost_per_million_tokens,
            unknown_calls: AtomicU64::new(0),
            assumed: AtomicU64::new(0),
            told_alert: AtomicBool::new(false),
            told_unknown: AtomicBool::new(false),
        }
    }

    fn spent(&self) -> u64 {
        // The ledger knows the whole tree and earlier processes; the status is what providers told here.
        let ledger = self.coordinator.ledger().statement().total.cost_nanos;
        let told = self.coordinator.status().cost_usd.map_or(0, Usd::as_nanos);
        ledger.max(told).saturating_add(self.assumed.load(Ordering::Relaxed))
    }

    /// Dollars left of the limit, where there is one.
    pub(super) fn left(&self) -> Option<f64> {
        self.limit.map(|limit| dollars(limit.saturating_sub(self.spent())))
    }

    /// Notes a call whose cost nobody told.
    pub(super) fn count(&self, event: &HookEvent) {
        let Some(usage) = unpriced(event) else { return };
        self.unknown_calls.fetch_add(1, Ordering::Relaxed);
        if let (Some(price), Some(usage)) = (self.assumed_per_million, usage) {
            #[expect(clippy::cast_precision_loss, reason = "an assumption")]
            let cost = nanos(price * usage.billed_tokens() as f64 / 1e6);
            self.assumed.fetch_add(cost, Ordering::Relaxed);
        }
    }

    /// Why the next call may not be made, when it may not.
    pub(super) fn refusal(&self) -> Option<String> {
        let (limit, spent) = (self.limit?, self.spent());
        if spent < limit {
            return None;
        }
        let unknown = match (self.unknown_calls.load(Ordering::Relaxed), self.assumed.load(Ordering::Relaxed))
        {
            (0, _) => String::new(),
            (calls, 0) => format!(", and {calls} calls of unknown cost on top"),
            (calls, assumed) => {
                format!(", of which {} is assumed for {calls} calls of unknown cost", money(assumed))
            }
        };
        Some(format!(
            "the budget of {} is used up: {} spent by this session and its children{unknown}; raise `budget_limit` to \
             go on",
            money(limit),
            money(spent)
        ))
    }

    /// What the person shall be told when much is spent; once.
    pub(super) fn alert(&self) -> Option<String> {
        let (alert, spent) = (self.alert?, self.spent());
        if spent < alert || self.told_alert.swap(true, Ordering::Relaxed) {
            return None;
        }
        let of = self.limit.map_or(String::new(), |limit| format!(" of {}", money(limit)));
        Some(format!("{}{of} spent, above the alert threshold of {}", money(spent), money(alert)))
    }

    /// What the person shall be told when a cost is unknown; once, and only where money matters.
    pub(super) fn unknown_cost(&self, event: &HookEvent) -> Option<String> {
        let matters = self.limit.is_some() || self.alert.is_some();
        if !matters || unpriced(event).is_none() || self.told_unknown.swap(true, Ordering::Relaxed) {
            return None;
        }
        let provider = event.data.get("provider").and_then(|name| name.as_str()).unwrap_or("the provider");
        Some(match self.assumed_per_million {
            Some(price) => format!(
                "`{provider}` does not tell what its calls cost; ${price} for a million tokens is assumed for them"
            ),
            None => format!(
                "`{provider}` does not tell what its calls cost: they are not free, and the budget cannot count them; \
                 set `assumed_cost_per_million_tokens`, or limit tokens under `session.limits`"
            ),
        })
    }
}

/// The usage of a call whose cost is unknown; outer `None` when it is known.
fn unpriced(event: &HookEvent) -> Option<Option<Usage>> {
    let response: ProviderResponse = event.read().ok()?;
    match response.usage {
        Some(usage) if usage.cost_usd.is_some() => None,
        usage => Some(usage),
    }
}

fn money(nanos: u64) -> String {
    format!("${}", Usd::from_nanos(nanos))
}

/// What tools cost, in units of the plan's own.
pub(super) struct ToolUnits {
    most: f64,
    costs: BTreeMap<String, f64>,
    spent: Mutex<f64>,
}

impl ToolUnits {
    pub(super) fn new(most: f64, costs: BTreeMap<String, f64>) -> Self {
        Self { most, costs, spent: Mutex::new(0.0) }
    }

    fn cost(&self, tool: &str) -> f64 {
        self.costs.get(tool).copied().unwrap_or(1.0)
    }
}

#[async_trait]
impl HookHandler for ToolUnits {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        let Some(tool) = selected_tool(event) else { return Ok(HookResult::proceed()) };
        let cost = self.cost(tool);
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        match event.name.as_str() {
            TOOL_SELECTED => *spent += cost,
            TOOL_SELECTING if *spent + cost > self.most => {
                let (used, most) = (*spent, self.most);
                let reason = format!(
                    "tool `{tool}` costs {cost} and {used} of {most} (`max_cost`) are spent; do without it"
                );
                return Ok(refuse_tool(tool, reason));
            }
            _ => {}
        }
        Ok(HookResult::proceed())
    }
}
