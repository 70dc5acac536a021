//! `hooks-streaming-ui`: feeds a front end with what happens in the session, as small records.
//!
//! It draws nothing. A front end registers the callable capability `ui.sink` and gets one record for each call, in order
//! (`streaming_ui/record.rs` has their shapes); without one the hook does nothing. A slow front end never holds up a turn:
//! records wait in a bounded queue, and what does not fit is counted and told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use amplifier_core::contracts::{
    Capability, HookEvent, HookFailure, HookHandler, Module, Mounted, TaskFailure,
};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::event::{LlmResponse, OrchestratorComplete};
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc::{Receiver, Sender, channel, error::TrySendError};
use tokio::task::JoinHandle;

mod record;

use crate::table::BuiltIn;

const NAME: &str = "hooks-streaming-ui";
/// The capability that takes the records.
const SINK: &str = "ui.sink";
/// How many records may wait.
const QUEUE: usize = 1_024;
/// How long the sink may take for one record.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the end of a session waits for the last records.
const FAREWELL: Duration = Duration::from_secs(2);

/// What a plan may configure.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// What is told to the front end.
    ui: Ui,
}

/// What is told to the front end.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Ui {
    /// Whether the model's thinking is told.
    show_thinking_stream: bool,
    /// How many lines of a tool's input and result are told; 0 for none.
    show_tool_lines: usize,
    /// Whether tokens and cost of each model call are told.
    show_token_usage: bool,
}

impl Default for Ui {
    fn default() -> Self {
        Self { show_thinking_stream: true, show_tool_lines: 5, show_token_usage: true }
    }
}

struct Feed {
    ui: Ui,
    coordinator: Coordinator,
    queue: Sender<Value>,
    dropped: Arc<AtomicU64>,
}

#[async_trait]
impl HookHandler for Feed {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        if self.coordinator.capability(SINK).is_some()
            && let Some(record) = record::of(event, &self.ui, &self.coordinator)
            && let Err(TrySendError::Full(_)) = self.queue.try_send(record)
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(HookResult::proceed())
    }
}

/// Hands records to the sink, one after the other, until nobody sends any more.
async fn forward(mut queue: Receiver<Value>, dropped: Arc<AtomicU64>, coordinator: Coordinator) {
    while let Some(next) = queue.recv().await {
        give(&coordinator, next).await;
        match dropped.swap(0, Ordering::Relaxed) {
            0 => {}
            count => give(&coordinator, record::dropped(coordinator.session_id(), count)).await,
        }
    }
}

async fn give(coordinator: &Coordinator, record: Value) {
    let Some(Capability::Call(sink)) = coordinator.capability(SINK) else { return };
    // Called directly and in a task of its own: a cancelled turn still shows its end, and a sink that panics, fails or
    // hangs costs this record.
    let mut call = tokio::spawn(async move { sink.call(record).await });
    if tokio::time::timeout(PATIENCE, &mut call).await.is_err() {
        call.abort();
    }
}

/// The module, as the table lists it.
pub(crate) struct StreamingUi;

#[async_trait]
impl Module for StreamingUi {
    fn id(&self) -> ModuleId {
        ModuleId::fixed(NAME)
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Hook
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let Config { ui } = cx.read_config(config)?;
        let (queue, waiting) = channel(QUEUE);
        let (coordinator, dropped) = (cx.coordinator.clone(), Arc::new(AtomicU64::new(0)));
        let task = tokio::spawn(forward(waiting, Arc::clone(&dropped), coordinator.clone()));
        // Registered first, so it runs last: the handlers and with them the senders are gone by then.
        cx.register_cleanup(move || farewell(task));
        let feed = Arc::new(Feed { ui, coordinator, queue, dropped });
        let namespace = |name: &str| EventPattern::Namespace(name.to_owned());
        for pattern in [
            namespace("content_block"),
            namespace("thinking"),
            namespace("tool"),
            EventPattern::event::<LlmResponse>(),
            EventPattern::event::<OrchestratorComplete>(),
        ] {
            cx.on(HookSpec::new(pattern, NAME), feed.clone());
        }
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for StreamingUi {
    fn info(&self) -> ModuleInfo {
        self.about("Feeds what happens in a turn to the front end, which renders it.")
            .config::<Config>()
            .uses("ui.sink")
    }
}

async fn farewell(mut task: JoinHandle<()>) -> Result<(), TaskFailure> {
    if tokio::time::timeout(FAREWELL, &mut task).await.is_err() {
        task.abort();
        return Err(TaskFailure::new("the front end did not take the last records in time"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_listened_to_is_a_known_one() {
        let known = |name: &str| amplifier_protocol::event::EVENTS.iter().any(|kind| kind.name == name);
        assert!(record::NAMES.iter().all(|name| known(name)));
    }
}
