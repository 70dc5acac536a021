//! The tools of one answer: run side by side up to a cap, every call gets a result, results are stored in the order of the
//! calls.

use std::sync::Arc;

use amplifier_core::contracts::TurnError;
use amplifier_core::coordinator::{CallError, Coordinator};
use amplifier_core::hooks::Sourced;
use amplifier_protocol::event::{ErrorInfo, Event, ToolError, ToolPost, ToolPre};
use amplifier_protocol::hook::Injection;
use amplifier_protocol::ids::EventName;
use amplifier_protocol::message::{Content, Message};
use amplifier_protocol::tool::{ToolCall, ToolResult};
use serde_json::json;
use tokio::task::JoinSet;

use super::ask::items;
use super::select::select;
use super::step::Happened;
use super::{Selection, Turn};

/// What became of one call.
pub(super) struct Ran {
    pub(super) content: Content,
    ephemeral: Vec<Sourced<Injection>>,
    // Lasting words of hooks: between a call and its result nothing may stand, so they wait.
    held: Vec<(EventName, Vec<Sourced<Injection>>)>,
    /// Why the turn cannot go on, when it cannot.
    stop: Option<TurnError>,
}

impl Ran {
    fn new(content: impl Into<Content>) -> Self {
        Self { content: content.into(), ephemeral: Vec::new(), held: Vec::new(), stop: None }
    }

    fn cancelled(call: &ToolCall) -> Self {
        let told =
            json!({"error": "Tool execution was cancelled by user", "cancelled": true, "tool": call.name});
        Self::new(told.to_string())
    }
}

impl Turn<'_> {
    pub(super) async fn run_tools(&mut self, calls: Vec<ToolCall>) -> Happened {
        let round = self.step.tool_rounds();
        let group: Arc<str> = format!("{}-{}-{round}", self.coordinator.session_id(), self.number).into();
        let ran = self.run_all(&calls, &group).await;
        let mut stop = None;
        let mut held = Vec::new();
        for (call, ran) in calls.iter().zip(ran) {
            if let Err(error) = self.store(Message::tool_result(call, ran.content)).await {
                stop = Some(error);
            }
            self.ephemeral.extend(items(ran.ephemeral));
            held.extend(ran.held);
            stop = stop.or(ran.stop);
        }
        for (event, injections) in held {
            self.coordinator.store_injections(injections, &event).await;
        }
        match stop {
            Some(error) => Happened::Failed(error),
            None if self.coordinator.cancel().is_cancelled() => Happened::Cancelled,
            None => Happened::ToolsRan,
        }
    }

    /// Runs all calls and returns what became of them, in their order. They begin in that order, no more at a time than
    /// the config allows, and none after a cancel.
    async fn run_all(&self, calls: &[ToolCall], group: &Arc<str>) -> Vec<Ran> {
        if let [call] = calls {
            return vec![match self.select(call).await {
                Ok((call, ran)) => run_one(self.coordinator, call, group, ran).await,
                Err(refused) => refused,
            }];
        }
        let mut ran: Vec<Option<Ran>> = calls.iter().map(|_| None).collect();
        let mut keep = |at: usize, result: Ran| {
            if let Some(place) = ran.get_mut(at) {
                *place = Some(result);
            }
        };
        let mut running = JoinSet::new();
        for (at, call) in calls.iter().enumerate() {
            while running.len() >= self.config.max_parallel_tools {
                if let Some(Ok((at, result))) = running.join_next().await {
                    keep(at, result);
                }
            }
            let (call, begun) = match self.select(call).await {
                Ok(selected) => selected,
                Err(refused) => {
                    keep(at, refused);
                    continue;
                }
            };
            let (coordinator, group) = (self.coordinator.clone(), Arc::clone(group));
            let work = async move { (at, run_one(&coordinator, call, &group, begun).await) };
            // A call that a hook's own work caused is as deep as that work, also in a task of its own.
            running.spawn(Coordinator::at_this_depth(work));
        }
        while let Some(joined) = running.join_next().await {
            if let Ok((at, result)) = joined {
                keep(at, result);
            }
        }
        // A call without a result panicked on its way through us; its call must be answered all the same.
        let broken = || Ran::new("Error executing tool: the call broke off");
        ran.into_iter().map(|ran| ran.unwrap_or_else(broken)).collect()
    }

    /// The call that shall run, or what became of one that shall not.
    async fn select(&self, call: &ToolCall) -> Result<(ToolCall, Ran), Ran> {
        if self.coordinator.cancel().is_cancelled() {
            return Err(Ran::cancelled(call));
        }
        let mut ran = Ran::new(String::new());
        match self.policy.selection {
            Selection::ByModel => Ok((call.clone(), ran)),
            Selection::ByProposals => match Box::pin(select(self.coordinator, call, &mut ran)).await {
                Some(chosen) => Ok((chosen, ran)),
                None => Err(ran),
            },
        }
    }
}

async fn run_one(coordinator: &Coordinator, mut call: ToolCall, group: &Arc<str>, mut ran: Ran) -> Ran {
    if coordinator.listens(ToolPre::NAME) {
        let pre = ToolPre {
            tool_name: call.name.clone(),
            tool_input: call.arguments.clone(),
            tool_call_id: Some(call.id.clone()),
            parallel_group_id: Some(group.to_string()),
        };
        let asked = coordinator.emit_holding(pre).await;
        let denied = asked.denied().map(|reason| format!("Denied by hook: {reason}"));
        call.arguments = asked.event.tool_input;
        ran.hear::<ToolPre>(asked.ephemeral, asked.held);
        if let Some(text) = denied {
            ran.content = text.into();
            return ran;
        }
    }
    match coordinator.call_tool(&call).await {
        Ok(result) => ran.content = ran.report(coordinator, &call, result, group).await,
        Err(error) => ran.fail(coordinator, &call, error, group).await,
    }
    ran
}

impl Ran {
    /// Keeps what hooks said at an event of this call.
    pub(super) fn hear<E: Event>(
        &mut self,
        ephemeral: Vec<Sourced<Injection>>,
        held: Vec<Sourced<Injection>>,
    ) {
        self.ephemeral.extend(ephemeral);
        if !held.is_empty() {
            self.held.push((EventName::of::<E>(), held));
        }
    }

    /// Tells what the tool gave and returns what the model reads: what hooks made of it.
    async fn report(
        &mut self,
        coordinator: &Coordinator,
        call: &ToolCall,
        result: ToolResult,
        group: &Arc<str>,
    ) -> Content {
        if !coordinator.listens(ToolPost::NAME) {
            return result.to_model_content();
        }
        let told = json!(result);
        let post = ToolPost::of(call, &told, Some(group));
        let heard = coordinator.emit_holding(post).await;
        let withheld = heard.denied().map(|reason| format!("Denied by hook: {reason}"));
        let (modified, event) = (heard.modified, heard.event);
        self.hear::<ToolPost>(heard.ephemeral, heard.held);
        match withheld {
            Some(text) => text.into(),
            None if !modified => result.to_model_content(),
            None => event.changed_result(&told).to_model_content(),
        }
    }

    async fn fail(&mut self, coordinator: &Coordinator, call: &ToolCall, error: CallError, group: &Arc<str>) {
        let (kind, msg) = match &error {
            CallError::Cancelled => return self.content = Self::cancelled(call).content,
            CallError::UnknownTool { .. } => ("ToolNotFound", format!("Error: {error}")),
            CallError::Limit(_) => ("LimitReached", format!("Error executing tool: {error}")),
            CallError::Journal(_) => ("JournalError", format!("Error executing tool: {error}")),
            _ => ("RuntimeError", format!("Error executing tool: {error}")),
        };
        let told = ToolError {
            tool_name: call.name.clone(),
            error: ErrorInfo { kind: kind.to_owned(), msg: error.to_string() },
            tool_call_id: Some(call.id.clone()),
            parallel_group_id: Some(group.to_string()),
        };
        let heard = coordinator.emit_holding(told).await;
        self.hear::<ToolError>(heard.ephemeral, heard.held);
        self.content = msg.into();
        if matches!(error, CallError::Limit(_) | CallError::Journal(_)) {
            self.stop = Some(error.into());
        }
    }
}
