//! The events of servers, and who tells them when.

use std::sync::{Mutex, MutexGuard, PoisonError};

use amplifier_core::coordinator::Coordinator;
use amplifier_protocol::event::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const EMITTER: &str = "tool";

/// A server is there and what it offers can be used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct ServerReady {
    /// The server.
    pub(super) server: String,
    /// The version of the protocol that is spoken.
    pub(super) protocol: String,
    /// The tools it has in the session.
    pub(super) tools: Vec<String>,
    /// How long it took to start.
    pub(super) took_ms: u64,
}

impl Event for ServerReady {
    const NAME: &'static str = "mcp:server_ready";
    const EMITTER: &'static str = EMITTER;
}

/// A server did not start, or ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct ServerFailed {
    /// The server.
    pub(super) server: String,
    /// Why.
    pub(super) error: String,
    /// When it is tried again; never by itself without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) retry_in_ms: Option<u64>,
}

impl Event for ServerFailed {
    const NAME: &'static str = "mcp:server_failed";
    const EMITTER: &'static str = EMITTER;
}

/// A server offers something else than before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct ToolsChanged {
    /// The server.
    pub(super) server: String,
    /// Tools that came.
    pub(super) added: Vec<String>,
    /// Tools that went.
    pub(super) removed: Vec<String>,
}

impl Event for ToolsChanged {
    const NAME: &'static str = "mcp:tools_changed";
    const EMITTER: &'static str = EMITTER;
}

/// A line that a server wrote to its error output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct ServerOutput {
    /// The server.
    pub(super) server: String,
    /// The line.
    pub(super) line: String,
}

impl Event for ServerOutput {
    const NAME: &'static str = "mcp:server_output";
    const EMITTER: &'static str = EMITTER;
}

/// Something to tell.
pub(super) enum News {
    Ready(ServerReady),
    Failed(ServerFailed),
    Changed(ToolsChanged),
    Output(ServerOutput),
}

/// Tells the news. What happens before every module is mounted waits until those who want to hear it are there.
pub(super) struct Teller {
    coordinator: Coordinator,
    early: Mutex<Option<Vec<News>>>,
}

/// The most news that wait.
const MOST_EARLY: usize = 256;

impl Teller {
    pub(super) fn new(coordinator: Coordinator) -> Self {
        Self { coordinator, early: Mutex::new(Some(Vec::new())) }
    }

    pub(super) async fn tell(&self, news: News) {
        let now = match &mut *self.early() {
            Some(early) if early.len() < MOST_EARLY => {
                early.push(news);
                None
            }
            Some(_) => None,
            None => Some(news),
        };
        if let Some(news) = now {
            self.emit(news).await;
        }
    }

    /// Everybody is there: tells what waited, and from now on at once.
    pub(super) async fn begin(&self) {
        let early = self.early().take();
        for news in early.into_iter().flatten() {
            self.emit(news).await;
        }
    }

    async fn emit(&self, news: News) {
        match news {
            News::Ready(event) => drop(self.coordinator.emit(event).await),
            News::Failed(event) => drop(self.coordinator.emit(event).await),
            News::Changed(event) => drop(self.coordinator.emit(event).await),
            News::Output(event) => drop(self.coordinator.emit(event).await),
        }
    }

    fn early(&self) -> MutexGuard<'_, Option<Vec<News>>> {
        self.early.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
