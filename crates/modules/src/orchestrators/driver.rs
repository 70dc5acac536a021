//! The driver: runs a turn, for every loop of this crate.
//!
//! What to do next is decided in `step.rs`, which knows no I/O; this folder does it. [`Policy`] says what one loop does
//! differently from another, [`Config`] what a plan wants. The driver keeps no conversation and counts no spending: the
//! context remembers, the kernel counts.

use std::sync::Arc;

use amplifier_core::contracts::{
    Capability, ContextManager, Mounted, Orchestrator, Prompt, TaskFailure, TurnCx, TurnError,
};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::event::{
    Event, ExecutionEnd, ExecutionStart, OrchestratorComplete, OrchestratorRateLimitDelay,
    OrchestratorSteeringInjected, PromptComplete, PromptSubmit, ToolSelected, ToolSelecting, TurnStatus,
    UserNotification,
};
use amplifier_protocol::hook::Injection;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::message::{Message, Role};
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::time::Instant;

mod about;
mod ask;
mod blocks;
mod choose;
mod config;
mod request;
mod select;
mod steer;
mod step;
mod stream;
mod tools;

pub(super) use about::describe;
use choose::Chosen;
pub use choose::asked_provider;
use config::Config;
use steer::{Helm, STEER, Steering};
use step::{Ending, Happened, Next, Step};

/// What the conversation says where a cancelled turn leaves it, so that the next prompt does not stand beside the last.
pub const CANCELLED_NOTE: &str = "[The turn was cancelled before it was finished.]";

/// What the model is asked when a turn goes on behind its own words.
const GO_ON: &str = "Go on where you were stopped.";

/// How much of an answer `prompt:complete` shows, in characters.
const PREVIEW: usize = 200;

/// What one loop does differently from another.
pub(super) struct Policy {
    /// The module's id.
    pub(super) id: ModuleId,
    pub(super) streaming: Streaming,
    pub(super) selection: Selection,
}

/// When answers are asked for piece by piece.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Streaming {
    /// Always.
    Always,
    /// When a hook listens to the pieces.
    WhenWatched,
}

/// Who says which tool a call becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Selection {
    /// The model alone.
    ByModel,
    /// The model, unless hooks propose another.
    ByProposals,
}

/// Mounts a loop: its config read and checked, its capability offered.
pub(super) fn mount(policy: Policy, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
    let config = cx.read_config::<Config>(config)?.checked(cx);
    let names: Vec<_> = config.provider_names().map(str::to_owned).collect();
    if !names.is_empty() {
        // Providers mount after the loop, so a wrong name shows only when everything stands.
        cx.on_session_ready(async move |coordinator: Coordinator| choose::check(&coordinator, &names));
    }
    let steering = Arc::new(Steering::default());
    cx.coordinator.register_capability(STEER, Capability::Call(Arc::clone(&steering) as _));
    let own_events = || async {
        let names = [
            ExecutionStart::NAME,
            ExecutionEnd::NAME,
            OrchestratorSteeringInjected::NAME,
            OrchestratorRateLimitDelay::NAME,
            ToolSelecting::NAME,
            ToolSelected::NAME,
        ];
        Ok::<_, TaskFailure>(Some(json!(names)))
    };
    cx.coordinator.register_contributor("observability.events", policy.id.as_str(), Arc::new(own_events));
    cx.mount_orchestrator(Arc::new(Driver { policy, config, steering }));
    Ok(Mounted::Ready)
}

struct Driver {
    policy: Policy,
    config: Config,
    steering: Arc<Steering>,
}

#[async_trait]
impl Orchestrator for Driver {
    async fn execute(&self, prompt: Prompt, cx: &TurnCx) -> Result<String, TurnError> {
        let Some(context) = cx.coordinator.context() else {
            return Err(TurnError::Broken { message: "no context is mounted".to_owned() });
        };
        let mut turn = Turn {
            policy: &self.policy,
            config: &self.config,
            coordinator: &cx.coordinator,
            context,
            number: cx.turn,
            ephemeral: Vec::new(),
            provider: None,
            failed: Vec::new(),
            last_call: None,
            partial: String::new(),
            helm: self.steering.open(),
            step: Step::new(self.config.max_iterations),
        };
        let ending = turn.run(prompt).await;
        turn.finish(ending).await
    }
}

/// One turn and what it carries from step to step.
struct Turn<'a> {
    policy: &'a Policy,
    config: &'a Config,
    coordinator: &'a Coordinator,
    context: Arc<dyn ContextManager>,
    number: u64,
    // What hooks want the next request to end with.
    ephemeral: Vec<Injection>,
    provider: Option<Chosen>,
    // Providers that failed in this turn and are not asked in it again.
    failed: Vec<String>,
    // When the last model call ended.
    last_call: Option<Instant>,
    // What a model had said when it was cut off.
    partial: String,
    helm: Helm<'a>,
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
                Next::End(ending) => return *ending,
            };
        }
    }

    async fn begin(&mut self, prompt: Prompt) -> Happened {
        let prompt = match prompt {
            Prompt::Continue => {
                self.coordinator.emit(ExecutionStart { prompt: String::new() }).await;
                return self.go_on().await.map_or_else(Happened::Failed, |()| Happened::Begun);
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

    /// A model answers a person or a tool, not itself: behind words of its own, such as the note about a turn that was
    /// cancelled, it is asked to go on. Some services refuse a request that ends with their own words.
    async fn go_on(&self) -> Result<(), TurnError> {
        let messages = self.context.messages().await?;
        match messages.last() {
            Some(last) if last.role == Role::Assistant => self.store(Message::user(GO_ON)).await,
            _ => Ok(()),
        }
    }

    async fn store(&self, message: Message) -> Result<(), TurnError> {
        Ok(self.context.add_message(Arc::new(message)).await?)
    }

    /// The one way out: closes the conversation where it was cut off and says once, and truly, how it ended.
    async fn finish(mut self, mut ending: Ending) -> Result<String, TurnError> {
        if ending.status == TurnStatus::Cancelled {
            let note = match std::mem::take(&mut self.partial) {
                partial if partial.is_empty() => CANCELLED_NOTE.to_owned(),
                partial => {
                    ending.answer.clone_from(&partial);
                    format!("{partial}\n\n{CANCELLED_NOTE}")
                }
            };
            if let Err(error) = self.store(Message::text(Role::Assistant, note)).await {
                ending = Ending { status: TurnStatus::Error, error: Some(error), ..ending };
            }
        }
        let untaken = self.helm.close();
        if untaken > 0 {
            // They belong to this turn and not to the next one; whoever sent them is told.
            Box::pin(self.warn(format!(
                "the turn ended before {untaken} message(s) sent to it were taken up; send them again"
            )))
            .await;
        }
        if ending.status == TurnStatus::Incomplete {
            Box::pin(self.warn("the model answered nothing".to_owned())).await;
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
        let (orchestrator, turn_count) = (self.policy.id.to_string(), self.step.tool_rounds());
        self.coordinator.emit(OrchestratorComplete { orchestrator, turn_count, status }).await;
        error.map_or(Ok(answer), Err)
    }

    /// Tells the person what the answer does not.
    async fn warn(&self, message: String) {
        let (level, source) = (Some("warning".to_owned()), Some(self.policy.id.to_string()));
        self.coordinator.emit(UserNotification { message, level, source }).await;
    }
}
