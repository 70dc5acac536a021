//! `hooks-scheduler-heuristic`: chooses a model by how hard a task looks, and watches over the choice of tools.
//!
//! How hard a task is, is guessed from the prompt alone, once a turn: a conversation that changes its model from step to
//! step loses its prompt cache. Tools are proposed only when `override_enabled` is set.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler, Module, Mounted};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::event::{Event, PromptSubmit, ProviderRequest, ToolSelecting};
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::choice::{Choice, check, refuse_tool, selected_tool};
use crate::table::BuiltIn;

const NAME: &str = "hooks-scheduler-heuristic";

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// How another tool is found when `override_enabled` is set.
    strategy: Strategy,
    /// Where the `random` strategy begins; the same seed gives the same tools.
    seed: Option<u64>,
    /// Whether another tool than the model's may be proposed.
    override_enabled: bool,
    /// Which model is asked for which kind of task; a kind without one is asked as `standard`, and without that as usual.
    models: Models,
    /// From how many characters on a prompt is taken for a complex task.
    complex_chars: usize,
    /// Up to how many characters a prompt is taken for a simple task.
    simple_chars: usize,
    /// Words that make a prompt a complex task, in any case.
    complex_words: Vec<String>,
    /// Where the choice of tools stands among the other hooks; lower runs first.
    priority: i32,
}

impl Default for Config {
    fn default() -> Self {
        let words = [
            "analyze",
            "architecture",
            "concurrency",
            "debug",
            "design",
            "investigate",
            "migrate",
            "optimize",
            "plan",
            "prove",
            "refactor",
            "review",
            "security",
        ];
        Self {
            strategy: Strategy::First,
            seed: None,
            override_enabled: false,
            models: Models::default(),
            complex_chars: 1_500,
            simple_chars: 160,
            complex_words: words.map(str::to_owned).to_vec(),
            priority: 50,
        }
    }
}

/// Which model is asked for which kind of task.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Models {
    /// For short prompts.
    simple: Option<Choice>,
    /// For what is neither.
    standard: Option<Choice>,
    /// For long prompts and those with one of `complex_words`.
    complex: Option<Choice>,
}

impl Models {
    fn of(&self, task: Task) -> Option<&Choice> {
        let own = match task {
            Task::Simple => &self.simple,
            Task::Standard => &self.standard,
            Task::Complex => &self.complex,
        };
        own.as_ref().or(self.standard.as_ref()).filter(|choice| !choice.is_empty())
    }

    fn all(&self) -> impl Iterator<Item = &Choice> {
        [&self.simple, &self.standard, &self.complex].into_iter().flatten()
    }
}

/// How another tool is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Strategy {
    /// The first that is there.
    #[default]
    First,
    /// One after the other.
    RoundRobin,
    /// Any.
    Random,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    Simple,
    Standard,
    Complex,
}

/// How hard a prompt looks.
fn judge(prompt: &str, config: &Config) -> Task {
    let length = prompt.chars().count();
    let has_word = |wanted: &String| {
        let mut words = prompt.split(|c: char| !c.is_alphanumeric());
        words.any(|word| word.to_lowercase() == wanted.to_lowercase())
    };
    if length >= config.complex_chars || config.complex_words.iter().any(has_word) {
        Task::Complex
    } else if length <= config.simple_chars {
        Task::Simple
    } else {
        Task::Standard
    }
}

struct Scheduler {
    config: Config,
    task: Mutex<Option<Task>>,
    turns: AtomicU64,
}

#[async_trait]
impl HookHandler for Scheduler {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        Ok(match event.name.as_str() {
            PromptSubmit::NAME => self.notice(event),
            ProviderRequest::NAME => self.choose_model(event),
            ToolSelecting::NAME => self.choose_tool(event),
            _ => HookResult::proceed(),
        })
    }
}

impl Scheduler {
    fn notice(&self, event: &HookEvent) -> HookResult {
        let task = event.data.get("prompt").and_then(Value::as_str).map(|prompt| judge(prompt, &self.config));
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = task;
        HookResult::proceed()
    }

    fn choose_model(&self, event: &HookEvent) -> HookResult {
        let task = *self.task.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever named a model before us meant it.
        let is_free = event.data.get("model").is_none_or(Value::is_null);
        match task.and_then(|task| self.config.models.of(task)) {
            Some(choice) if is_free => choice.answer(event),
            _ => HookResult::proceed(),
        }
    }

    fn choose_tool(&self, event: &HookEvent) -> HookResult {
        let (Some(tool), Some(available)) = (selected_tool(event), available(event)) else {
            return HookResult::proceed();
        };
        let is_there = available.contains(&tool);
        if !self.config.override_enabled {
            return if is_there {
                HookResult::proceed()
            } else {
                refuse_tool(
                    tool,
                    format!("tool `{tool}` is not available; use one of {}", available.join(", ")),
                )
            };
        }
        match self.propose(event, &available) {
            Some(proposed) if proposed != tool => {
                let mut data = event.data.clone();
                data.insert("tool_name".to_owned(), Value::String(proposed.to_owned()));
                HookResult::modify(data)
            }
            Some(_) => HookResult::proceed(),
            None => refuse_tool(tool, "there is no tool to choose from".to_owned()),
        }
    }

    fn propose<'a>(&self, event: &HookEvent, available: &[&'a str]) -> Option<&'a str> {
        let number = match self.config.strategy {
            Strategy::First => 0,
            Strategy::RoundRobin => self.turns.fetch_add(1, Ordering::Relaxed),
            Strategy::Random => {
                let seed = self.config.seed.unwrap_or(event.stamp.timestamp.as_micros().unsigned_abs());
                mixed(seed.wrapping_add(self.turns.fetch_add(1, Ordering::Relaxed)))
            }
        };
        let count = u64::try_from(available.len()).ok()?;
        let at = usize::try_from(number.checked_rem(count)?).ok()?;
        available.get(at).copied()
    }
}

/// The tools of a selection: names, or objects with a name.
fn available(event: &HookEvent) -> Option<Vec<&str>> {
    let tools = event.data.get("available_tools")?.as_array()?;
    Some(tools.iter().filter_map(|tool| tool.as_str().or_else(|| tool.get("name")?.as_str())).collect())
}

/// Spreads a number over all numbers (the finaliser of SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The module, as the table lists it.
pub(crate) struct SchedulerHeuristic;

#[async_trait]
impl Module for SchedulerHeuristic {
    fn id(&self) -> ModuleId {
        ModuleId::fixed(NAME)
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Hook
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        let (priority, models) = (config.priority, config.models.clone());
        let scheduler = Arc::new(Scheduler { config, task: Mutex::default(), turns: AtomicU64::new(0) });
        let selecting = EventPattern::event::<ToolSelecting>();
        cx.on(HookSpec::new(selecting, NAME).priority(priority), scheduler.clone());
        if models.all().next().is_some() {
            for pattern in [EventPattern::event::<PromptSubmit>(), EventPattern::event::<ProviderRequest>()] {
                cx.on(HookSpec::new(pattern, NAME).priority(priority), scheduler.clone());
            }
            cx.on_session_ready(async move |coordinator: Coordinator| check(models.all(), &coordinator));
        }
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for SchedulerHeuristic {
    fn info(&self) -> ModuleInfo {
        self.about("Chooses the model by how hard the prompt looks, and proposes tools where it may.")
            .config::<Config>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_length_tell_how_hard_a_task_looks() {
        let config = Config::default();
        assert_eq!(judge("what time is it?", &config), Task::Simple);
        assert_eq!(judge("Please REFACTOR this", &config), Task::Complex);
        assert_eq!(judge("the plane is late", &config), Task::Simple);
        assert_eq!(judge(&"word ".repeat(100), &config), Task::Standard);
        assert_eq!(judge(&"x".repeat(2_000), &config), Task::Complex);
    }
}
