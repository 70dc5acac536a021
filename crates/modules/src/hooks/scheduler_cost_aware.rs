//! `hooks-scheduler-cost-aware`: keeps a session within its money.
//!
//! At `budget_limit` the next model call is refused before it is made; at `alert_threshold` the person is told once; on
//! the way there cheaper models can be chosen. What was spent is the ledger's: children count, and it outlives a restart.
//! A call whose cost nobody tells is never taken for free: it is said once, and counted when a price is assumed.

use std::collections::BTreeMap;
use std::sync::Arc;

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler, Module, Mounted};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::event::{Event, ProviderRequest, ProviderResponse, ToolSelected, ToolSelecting};
use amplifier_protocol::hook::{HookResult, MessageLevel};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::choice::{Choice, check};

mod purse;

use crate::table::BuiltIn;
use purse::{Purse, ToolUnits};

const NAME: &str = "hooks-scheduler-cost-aware";
/// Before the hooks that add to a request: what is refused needs no additions.
const GATE: i32 = -5;
/// After the others that choose: money has the last word.
const CHOOSING: i32 = 60;

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// Dollars this session and its children may spend on models; the call after that is refused.
    budget_limit: Option<f64>,
    /// Dollars at which the person is told, once.
    alert_threshold: Option<f64>,
    /// Which models to ask when little is left of `budget_limit`.
    models: Vec<WhenLow>,
    /// Whether `models` has an effect.
    prefer_cheaper: bool,
    /// Dollars that a million tokens are taken to cost where the provider does not tell what a call cost.
    assumed_cost_per_million_tokens: Option<f64>,
    /// The most that tools may cost in this session, in the units of `tool_costs`; needs a loop that asks (`loop-events`).
    max_cost: Option<f64>,
    /// What each tool costs, in units of your own; a tool that is not named costs 1.
    tool_costs: BTreeMap<String, f64>,
}

impl Default for Config {
    fn default() -> Self {
        let costs = [
            ("web_search", 5.0),
            ("code_analysis", 10.0),
            ("write_file", 1.0),
            ("read_file", 0.5),
            ("bash", 2.0),
        ];
        Self {
            budget_limit: None,
            alert_threshold: None,
            models: Vec::new(),
            prefer_cheaper: true,
            assumed_cost_per_million_tokens: None,
            max_cost: None,
            tool_costs: costs.into_iter().map(|(tool, cost)| (tool.to_owned(), cost)).collect(),
        }
    }
}

/// Who is asked when little is left.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WhenLow {
    /// With less than so many dollars left.
    remaining_below: f64,
    /// The provider, by the name it is mounted under; without it the one that would be asked anyway.
    #[serde(default)]
    provider: Option<String>,
    /// The model; without it the provider's own choice.
    #[serde(default)]
    model: Option<String>,
}

impl WhenLow {
    fn choice(&self) -> Choice {
        Choice { provider: self.provider.clone(), model: self.model.clone() }
    }
}

impl Config {
    /// What is wrong with it, if something is.
    fn fault(&self) -> Option<String> {
        let amounts = [
            ("budget_limit", self.budget_limit),
            ("alert_threshold", self.alert_threshold),
            ("assumed_cost_per_million_tokens", self.assumed_cost_per_million_tokens),
            ("max_cost", self.max_cost),
        ];
        let costs = self.tool_costs.values().map(|cost| ("tool_costs", Some(*cost)));
        let mut all = amounts.into_iter().chain(costs);
        let (key, amount) = all.find(|(_, amount)| amount.is_some_and(|amount| amount < 0.0))?;
        Some(format!("`{key}` is {}, must not be negative", amount.unwrap_or_default()))
    }

    /// What will not do what its writer may expect.
    fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if let (Some(alert), Some(limit)) = (self.alert_threshold, self.budget_limit)
            && alert >= limit
        {
            doubts.push(format!(
                "`alert_threshold` ({alert}) is not below `budget_limit` ({limit}): nobody is told before the stop"
            ));
        }
        if !self.models.is_empty() && self.budget_limit.is_none() {
            doubts.push("`models` has no effect without `budget_limit`".to_owned());
        }
        doubts
    }
}

/// Refuses calls there is no money for, and says when money runs low or cannot be counted.
struct Gate {
    purse: Arc<Purse>,
}

#[async_trait]
impl HookHandler for Gate {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        if event.name.as_str() == ProviderResponse::NAME {
            self.purse.count(event);
            let told = [self.purse.unknown_cost(event), self.purse.alert()];
            let told: Vec<_> = told.into_iter().flatten().collect();
            return Ok(match told.is_empty() {
                true => HookResult::proceed(),
                false => HookResult::proceed().showing(told.join("\n"), MessageLevel::Warning),
            });
        }
        if event.name.as_str() != ProviderRequest::NAME {
            return Ok(HookResult::proceed());
        }
        if let Some(reason) = self.purse.refusal() {
            return Ok(HookResult::deny(reason));
        }
        Ok(match self.purse.alert() {
            Some(text) => HookResult::proceed().showing(text, MessageLevel::Warning),
            None => HookResult::proceed(),
        })
    }
}

/// Chooses cheaper models when little is left.
struct Chooser {
    purse: Arc<Purse>,
    // The least money first.
    models: Vec<WhenLow>,
}

#[async_trait]
impl HookHandler for Chooser {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        if event.name.as_str() != ProviderRequest::NAME {
            return Ok(HookResult::proceed());
        }
        let left = self.purse.left();
        let fits = |when: &&WhenLow| left.is_some_and(|left| left < when.remaining_below);
        let choice = self.models.iter().find(fits).map(WhenLow::choice);
        Ok(choice.map_or_else(HookResult::proceed, |choice| choice.answer(event)))
    }
}

/// The module, as the table lists it.
pub(crate) struct SchedulerCostAware;

#[async_trait]
impl Module for SchedulerCostAware {
    fn id(&self) -> ModuleId {
        ModuleId::fixed(NAME)
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Hook
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        if let Some(message) = config.fault() {
            return Err(LoadError::Mount { id: self.id(), message });
        }
        config.doubts().into_iter().for_each(|doubt| cx.warn(doubt));
        let purse = Arc::new(Purse::new(&config, cx.coordinator.clone()));
        let gate = Arc::new(Gate { purse: Arc::clone(&purse) });
        let request = || EventPattern::event::<ProviderRequest>();
        cx.on(HookSpec::new(request(), NAME).priority(GATE).closed(), gate.clone());
        cx.on(HookSpec::new(EventPattern::event::<ProviderResponse>(), NAME).priority(GATE), gate);
        if config.prefer_cheaper && !config.models.is_empty() {
            let mut models = config.models.clone();
            models.sort_by(|one, other| one.remaining_below.total_cmp(&other.remaining_below));
            let choices: Vec<_> = models.iter().map(WhenLow::choice).collect();
            cx.on_session_ready(async move |coordinator: Coordinator| check(&choices, &coordinator));
            cx.on(HookSpec::new(request(), NAME).priority(CHOOSING), Arc::new(Chooser { purse, models }));
        }
        if let Some(most) = config.max_cost {
            let units = Arc::new(ToolUnits::new(most, config.tool_costs));
            let (selecting, selected) =
                (EventPattern::event::<ToolSelecting>(), EventPattern::event::<ToolSelected>());
            cx.on(HookSpec::new(selecting, NAME).priority(CHOOSING), units.clone());
            cx.on(HookSpec::new(selected, NAME).priority(10), units);
        }
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for SchedulerCostAware {
    fn info(&self) -> ModuleInfo {
        self.about("Stops before the budget is overspent and asks cheaper models when little is left.")
            .config::<Config>()
    }
}
