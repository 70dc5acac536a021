//! The tool contract.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use amplifier_protocol::tool::{Effects, ToolResult, ToolSpec};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cancel::CancelToken;

/// A capability the model may call.
///
/// The kernel reads `spec` and `effects` once, when the tool is mounted. It calls `execute` once per call id, possibly in parallel
/// with other tools and with itself. Implementers check `cx.cancel` between effects and leave nothing half written;
/// after an immediate cancel the call's future is dropped a moment later. Most authors want [`super::TypedTool`].
#[async_trait]
pub trait Tool: Send + Sync {
    /// Name, description and JSON Schema, as shown to the model.
    fn spec(&self) -> ToolSpec;

    /// What a call touches. Approval policies and crash recovery believe it.
    fn effects(&self) -> Effects;

    /// Runs one call. An `Err` is an answer for the model, not a crash of the loop.
    async fn execute(&self, input: Value, cx: &ToolCx) -> Result<Value, ToolFailure>;
}

/// What a call may use.
#[derive(Clone, Default)]
pub struct ToolCx {
    /// The id of the call.
    pub call_id: String,
    /// Asks the call to stop.
    pub cancel: CancelToken,
    /// Tells the watch that the call is alive.
    pub pulse: Pulse,
}

/// A sign of life. A call's deadline counts from its last beat, so long work that moves is not cut off.
#[derive(Clone, Default)]
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// Says that something was achieved.
    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many beats there were. Whoever runs the call for somebody else passes them on.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why a tool did not do what was asked; the model reads it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ToolFailure {
    /// What happened and, where there is one, the way out.
    pub message: String,
    /// The kind of failure, where callers tell kinds apart.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What the model shall see instead of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// More about it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

impl ToolFailure {
    /// A failure that is fully told by its message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// The same failure, with a kind.
    #[must_use]
    pub fn of_kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }
}

impl From<ToolFailure> for ToolResult {
    fn from(failure: ToolFailure) -> Self {
        let mut result = Self::failure(failure.message);
        if let Some(error) = &mut result.error {
            if let Some(kind) = failure.kind {
                error.insert("type".to_owned(), Value::String(kind));
            }
            error.extend(failure.details);
        }
        if let Some(output) = failure.output {
            result.output = output;
        }
        result
    }
}
