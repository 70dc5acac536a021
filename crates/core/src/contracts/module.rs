//! The module contract: how a module joins a session, and what it can leave with it.

use std::future::Future;
use std::sync::Arc;

use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::ModuleKind;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::coordinator::Coordinator;
use crate::loader::{LoadError, MountCx};

/// Something that can be mounted into sessions.
///
/// One `Module` serves many sessions; what belongs to one session is made in `mount` and left with `cx`. The kernel
/// undoes everything that `cx` recorded when the mount fails or the session ends, in reverse order.
#[async_trait]
pub trait Module: Send + Sync {
    /// The id that mount plans use.
    fn id(&self) -> ModuleId;

    /// What it is.
    fn kind(&self) -> ModuleKind;

    /// Joins a session. The config is this mount's own copy, with `${VAR}` filled in; turn it into a type first.
    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError>;
}

/// How a mount ended well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mounted {
    /// The module is in the session.
    Ready,
    /// The module declined, such as a provider without a key. Not an error; the reason is in the load report.
    Skipped {
        /// Why, naming what is missing.
        reason: String,
    },
}

/// Why a task a module left with the session did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct TaskFailure {
    /// What happened.
    pub message: String,
}

impl TaskFailure {
    /// A failure that is told by its message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// Undoes something when the session ends. Async closures are cleanups.
#[async_trait]
pub trait Cleanup: Send {
    /// Undoes it. The others run whatever happens here.
    async fn run(self: Box<Self>) -> Result<(), TaskFailure>;
}

#[async_trait]
impl<F, Fut> Cleanup for F
where
    F: FnOnce() -> Fut + Send,
    Fut: Future<Output = Result<(), TaskFailure>> + Send,
{
    async fn run(self: Box<Self>) -> Result<(), TaskFailure> {
        (*self)().await
    }
}

/// Called once when every module of the session is mounted. Async closures over a coordinator are such callbacks.
#[async_trait]
pub trait Ready: Send {
    /// Does what needed the others.
    async fn run(self: Box<Self>, coordinator: Coordinator) -> Result<(), TaskFailure>;
}

#[async_trait]
impl<F, Fut> Ready for F
where
    F: FnOnce(Coordinator) -> Fut + Send,
    Fut: Future<Output = Result<(), TaskFailure>> + Send,
{
    async fn run(self: Box<Self>, coordinator: Coordinator) -> Result<(), TaskFailure> {
        (*self)(coordinator).await
    }
}

/// Gives something to a contribution channel each time it is collected. Async closures are contributors.
#[async_trait]
pub trait Contributor: Send + Sync {
    /// What it has to give now; `None` when nothing.
    async fn contribute(&self) -> Result<Option<Value>, TaskFailure>;
}

#[async_trait]
impl<F, Fut> Contributor for F
where
    F: Fn() -> Fut + Send + Sync,
    Fut: Future<Output = Result<Option<Value>, TaskFailure>> + Send,
{
    async fn contribute(&self) -> Result<Option<Value>, TaskFailure> {
        self().await
    }
}

/// What one module offers to others under a name.
#[derive(Clone)]
pub enum Capability {
    /// Data.
    Value(Value),
    /// Something that can be called.
    Call(Arc<dyn CapabilityCall>),
}

/// A callable capability, such as `session.spawn`. Arguments and answer are JSON, so that any process can call it.
#[async_trait]
pub trait CapabilityCall: Send + Sync {
    /// Does what the capability's name promises.
    async fn call(&self, arguments: Value) -> Result<Value, CapabilityError>;
}

/// Why a capability did not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CapabilityError {
    /// Nobody registered it.
    #[error("capability `{name}` is not registered in this session")]
    Absent {
        /// The capability.
        name: String,
    },
    /// It is data and cannot be called.
    #[error("capability `{name}` is a value and cannot be called")]
    NotCallable {
        /// The capability.
        name: String,
    },
    /// It failed.
    #[error("capability `{name}` failed: {message}")]
    Failed {
        /// The capability.
        name: String,
        /// What happened.
        message: String,
    },
}
