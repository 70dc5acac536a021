//! `loop-basic`: asks the model, runs the tools it calls side by side, asks again, until the model answers.
//!
//! What to do next is decided in `step.rs`, which knows no I/O; this file does it. It chooses no limits and keeps no
//! conversation: the kernel counts, the context remembers.

use std::sync::Arc;

use amplifier_core::contracts::{
    ContextManager, Module, Mounted, Orchestrator, Prompt, TaskFailure, TurnCx, TurnError,
};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::event::{
    Event, ExecutionEnd, ExecutionStart, OrchestratorComplete, PromptComplete, PromptSubmit, TurnStatus,
};
use amplifier_protocol::hook::Injection;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::message::{Message, Role};
use amplifier_protocol::module_info::ModuleKind;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

mod ask;
mod request;
mod step;
mod tools;

use ask::Chosen;
use step::{Ending, Happened, Next, Step};

const ID: ModuleId = ModuleId::fixed("loop-basic");

/// What the conversation says where a cancelled turn leaves it, so that the next prompt does not stand beside the last.
const CANCELLED_NOTE: &str = "[The turn was cancelled before it was finished.]";

/// How much of an answer `prompt:complete` shows, in characters.
const PREVIEW: usize = 200;

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// How often the model may be asked in one turn before it must wrap up; -1 for any number.
    max_iterations: i64,
    /// The provider to ask, by the name it is mounted under; without it the first of the plan.
    default_provider: Option<String>,
    /// Asks providers that can for their long form of thinking.
    extended_thinking: bool,
    /// How hard to think, in the provider's words.
    reasoning_effort: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_iterations: -1, default_provider: None, extended_thinking: false, reasoning_effort: None }
    }
}

struct BasicLoop {
    config: Config,
}

#[async_trait]
impl Orchestrator for BasicLoop {
    async fn execute(&self, prompt: Prompt, cx: &TurnCx) -> Result<String, TurnError> {
        let Some(context) = cx.coordinator.context() else {
            return Err(TurnError::Broken { message: "no context is mounted".to_owned() });
        };
        let mut turn = Turn {
            config: &self.config,
            coordinator: &cx.coordinator,
            context,
            number: cx.turn,
            ephemeral: Vec::new(),
            provider: None,
            step: Step::new(self.config.max_iterations),
        };
        let ending = turn.run(prompt).await;
        turn.finish(ending).await
    }
}

/// One turn and what it carries from step to step.
struct Turn<'a> {
    config: &'a Config,
    coordinator: &'a Coordinator,
    context: Arc<dyn ContextManager>,
    number: u64,
    // What hooks want the next request to end with.
    ephemeral: Vec<Injection>,
    provider: Option<Chosen>,
    step: Step,
}

impl Turn<'_> {
    async fn run(&mut self, prompt: Prompt) -> Ending {
        let mut happened = self.begin(prompt).await;
        loop {
            happened = match self.step.next(happened) {
                Next::Ask(round) => self.ask(round).await,
                // Boxed: a turn without tools should not carry their size.
                Next::RunTools(calls) => Box::pin(self.run_tools(calls)).await,
                Next::End(ending) => return ending,
            };
        }
    }

    async fn begin(&mut self, prompt: Prompt) -> Happened {
        let prompt = match prompt {
            Prompt::Continue => {
                self.coordinator.emit(ExecutionStart { prompt: String::new() }).await;
                return Happened::Begun;
            }
            Prompt::Text(prompt) => prompt,
        };
        let submitted = self.coordinator.emit(PromptSubmit { prompt }).await;
        // Whatever hooks decide, the work of the turn begins and ends here: each start has its end.
        self.coordinator.emit(ExecutionStart { prompt: submitted.event.prompt.clone() }).await;
        if let Some(reason) = submitted.denied() {
            return Happened::Denied { reason: reason.to_owned() };
        }
        self.ephemeral.extend(ask::items(submitted.ephemeral));
        self.store(Message::user(submitted.event.prompt))
            .await
            .map_or_else(Happened::Failed, |()| Happened::Begun)
    }

    async fn store(&self, message: Message) -> Result<(), TurnError> {
        Ok(self.context.add_message(Arc::new(message)).await?)
    }

    /// The one way out: closes the conversation where it was cut off and says once, and truly, how it ended.
    async fn finish(&self, mut ending: Ending) -> Result<String, TurnError> {
        if ending.status == TurnStatus::Cancelled
            && let Err(error) = self.store(Message::text(Role::Assistant, CANCELLED_NOTE)).await
        {
            ending = Ending { status: TurnStatus::Error, error: Some(error), ..ending };
        }
        let Ending { status, answer, error } = ending;
        if self.coordinator.listens(ExecutionEnd::NAME) {
            self.coordinator.emit(ExecutionEnd { response: answer.clone(), status: status.into() }).await;
        }
        if self.coordinator.listens(PromptComplete::NAME) {
            let response_preview = answer.chars().take(PREVIEW).collect();
            let length = u64::try_from(answer.chars().count()).unwrap_or(u64::MAX);
            self.coordinator.emit(PromptComplete { response_preview, length, status: Some(status) }).await;
        }
        let (orchestrator, turn_count) = (ID.to_string(), self.step.tool_rounds());
        self.coordinator.emit(OrchestratorComplete { orchestrator, turn_count, status }).await;
        error.map_or(Ok(answer), Err)
    }
}

/// The module, as the table lists it.
pub(crate) struct LoopBasic;

#[async_trait]
impl Module for LoopBasic {
    fn id(&self) -> ModuleId {
        ID
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Orchestrator
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        if config.max_iterations < -1 {
            cx.warn(format!("`max_iterations` is {}, taken as -1 (any number)", config.max_iterations));
        }
        if let Some(wanted) = config.default_provider.clone() {
            // Providers mount after the loop, so a wrong name shows only when everything stands.
            cx.on_session_ready(async move |coordinator: Coordinator| {
                if ask::named(&coordinator, &wanted).is_some() {
                    return Ok(());
                }
                Err(TaskFailure::new(format!(
                    "`default_provider` names `{wanted}`, which is not mounted; the first provider is asked instead"
                )))
            });
        }
        cx.mount_orchestrator(Arc::new(BasicLoop { config }));
        Ok(Mounted::Ready)
    }
}
