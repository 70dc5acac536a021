//! `tool-task`: hands a task to an agent in a session of its own. It mounts `task`.
//!
//! How a sub-session is made is the application's: it offers `session.spawn` and `session.resume`, called with JSON
//! (`task/call.rs`). Depth, number and cost are the ledger's to limit; its refusal is the tool's answer. What the parent
//! said is handed over only when asked for (`task/handover.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::contracts::{Capability, Module, Mounted, Tool, ToolCx, ToolFailure, Typed, TypedTool};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use amplifier_protocol::tool::{EffectClass, Effects, ToolSpec};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

mod call;
mod events;
mod handover;

use crate::table::BuiltIn;
use handover::Handover;

/// The longest description of an agent in the tool's own, in characters.
const ABOUT: usize = 400;

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// Tool modules an agent does not get from this session.
    exclude_tools: Vec<String>,
    /// The only tool modules an agent gets from this session.
    inherit_tools: Option<Vec<String>>,
    /// Hook modules an agent does not get from this session.
    exclude_hooks: Vec<String>,
    /// The only hook modules an agent gets from this session.
    inherit_hooks: Option<Vec<String>>,
    /// How deep agents may hand on to agents below the first session.
    max_recursion_depth: u64,
    /// How many tasks this session may hand out.
    max_tasks: u64,
    /// Seconds an agent may take; without it the session's own deadline for capabilities holds.
    timeout: Option<f64>,
    /// The most turns of the conversation that `recent` hands over.
    max_context_turns: usize,
    /// The most characters of the conversation that are handed over.
    max_context_chars: usize,
    /// The longest answer of an agent that is given back, in characters; the middle of a longer one is left out.
    max_response_chars: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            exclude_tools: Vec::new(),
            inherit_tools: None,
            exclude_hooks: Vec::new(),
            inherit_hooks: None,
            max_recursion_depth: 3,
            max_tasks: 100,
            timeout: None,
            max_context_turns: 20,
            max_context_chars: 60_000,
            max_response_chars: 40_000,
        }
    }
}

/// Hands a task to an agent that works on it in a session of its own and gives back what it found.
///
/// The agent sees only `instruction` (and, with `inherit_context`, what was said here): say everything it needs to know
/// and what to give back. To go on with an agent that worked before, send its `session_id` and no `agent`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The agent, for a new task.
    #[serde(default)]
    agent: Option<String>,
    /// What to do, and what to answer.
    instruction: String,
    /// The session of an earlier task, to go on with it.
    #[serde(default)]
    session_id: Option<String>,
    /// How much of this conversation the agent sees.
    #[serde(default)]
    inherit_context: Handover,
    /// How many turns `recent` means.
    #[serde(default = "usual_turns")]
    inherit_context_turns: usize,
    /// Providers and models to try, the first first.
    #[serde(default)]
    provider_preferences: Vec<Preference>,
}

fn usual_turns() -> usize {
    5
}

/// A provider and its model.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct Preference {
    /// The provider.
    provider: String,
    /// The model.
    model: String,
}

/// What an agent gave back.
#[derive(Debug, Serialize)]
struct Output {
    response: String,
    session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// How many characters were left out of the middle of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out_chars: Option<usize>,
    /// What else the application told: `status`, `turn_count`, `cost_usd`.
    #[serde(flatten)]
    more: Map<String, Value>,
}

struct Task {
    config: Config,
    coordinator: Coordinator,
    /// By name.
    agents: BTreeMap<String, Map<String, Value>>,
}

impl TypedTool for Task {
    const NAME: &'static str = "task";
    // Itself it touches nothing; what an agent's tools touch, they declare, and the hooks of the agent's session judge.
    // Doing it twice is another session, so it is a write to crash recovery.
    const EFFECTS: Effects = Effects { class: EffectClass::Write, ..Effects::PURE };
    type Input = Input;
    type Output = Output;

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolFailure> {
        if input.instruction.trim().is_empty() {
            return Err(invalid("`instruction` is empty; say what the agent shall do"));
        }
        let work = async {
            match (&input.session_id, &input.agent) {
                (Some(session), _) => self.resume(session, &input).await,
                (None, Some(agent)) => self.spawn(agent, &input, cx).await,
                (None, None) => Err(invalid(
                    "`agent` is required for a new task, `session_id` to go on with an earlier one",
                )),
            }
        };
        alive(work, cx).await
    }
}

/// Waits for an agent. It is watched over in its own session, so here waiting is a sign of life.
async fn alive<T>(work: impl Future<Output = T>, cx: &ToolCx) -> T {
    let mut work = std::pin::pin!(work);
    let mut beats = tokio::time::interval(Duration::from_secs(5));
    loop {
        tokio::select! {
            biased;
            done = work.as_mut() => return done,
            _ = beats.tick() => cx.pulse.beat(),
        }
    }
}

fn invalid(message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(message).of_kind("InvalidInput")
}

/// Where the application tells the agents, each as an entry with its description, however the plan writes them.
const AGENTS: &str = "agents.list";

/// The agents with what is said about them. Entries that are no objects are settings, not agents.
fn agents(coordinator: &Coordinator) -> BTreeMap<String, Map<String, Value>> {
    let told = match coordinator.capability(AGENTS) {
        Some(Capability::Value(Value::Object(told))) => told,
        _ => coordinator.plan().agents.clone(),
    };
    let object = |about| match about {
        Value::Object(about) => Some(about),
        _ => None,
    };
    told.into_iter().filter_map(|(name, about)| Some((name, object(about)?))).collect()
}

/// The tool, with the plan's agents in its description. They are fixed with the plan, so the description is stable.
struct Described(Typed<Task>);

#[async_trait]
impl Tool for Described {
    fn spec(&self) -> ToolSpec {
        let mut spec = self.0.spec();
        let agents = &self.0.0.agents;
        let mut text = spec.description.take().unwrap_or_default();
        text.push_str(if agents.is_empty() { "\n\nNo agents are configured." } else { "\n\nAgents:" });
        for (name, about) in agents {
            let meta = about.get("meta").and_then(Value::as_object);
            let said =
                [Some(about), meta].into_iter().flatten().find_map(|from| from.get("description")?.as_str());
            let said = crate::reminder::one_line(said.unwrap_or("(no description)"), ABOUT);
            text.push_str(&format!("\n- {name}: {said}"));
        }
        spec.description = Some(text);
        spec
    }

    fn effects(&self) -> Effects {
        self.0.effects()
    }

    async fn execute(&self, input: Value, cx: &ToolCx) -> Result<Value, ToolFailure> {
        self.0.execute(input, cx).await
    }
}

/// The module, as the table lists it.
pub(crate) struct TaskModule;

#[async_trait]
impl Module for TaskModule {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("tool-task")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Tool
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        if config.timeout.is_some_and(|seconds| seconds <= 0.0) {
            let message = "`timeout` must be a positive number of seconds".to_owned();
            return Err(LoadError::Mount { id: self.id(), message });
        }
        let (coordinator, agents) = (cx.coordinator.clone(), agents(&cx.coordinator));
        cx.mount_tool(Arc::new(Described(Typed(Task { config, coordinator, agents }))));
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for TaskModule {
    fn info(&self) -> ModuleInfo {
        self.about("Hands a task to an agent that works on it in a session of its own.")
            .config::<Config>()
            .emits::<events::AgentSpawned>()
            .emits::<events::AgentResumed>()
            .emits::<events::AgentCompleted>()
            .uses("session.spawn")
            .uses("session.resume")
            .uses("self_delegation_depth")
            .uses(AGENTS)
    }
}
