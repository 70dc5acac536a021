//! A module as another process sees it: it gets a config and the kernel's callbacks, and leaves parts.
//!
//! [`crate::wire::module`] makes one a module of this process. It is no second contract: whatever it can leave, a native
//! module leaves with [`MountCx`](amplifier_core::loader::MountCx).

use std::sync::Arc;

use amplifier_core::contracts::{Cleanup, ContextManager, HookHandler, Mounted, Provider, TaskFailure, Tool};
use amplifier_core::hooks::HookSpec;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::ModuleKind;
use async_trait::async_trait;
use serde_json::Value;

use crate::kernel::{Kernel, KernelLoop};

/// A module that needs nothing of the process it is mounted in but the callbacks.
#[async_trait]
pub trait GuestModule: Send + Sync {
    /// The id that mount plans use.
    fn id(&self) -> ModuleId;

    /// What it is.
    fn kind(&self) -> ModuleKind;

    /// Joins a session. What it wants to leave there it puts into `left`, which counts only when this ends well.
    async fn mount(
        &self,
        config: Value,
        kernel: &dyn Kernel,
        left: &mut Left,
    ) -> Result<Mounted, TaskFailure>;
}

/// What a mount leaves with the session.
#[derive(Default)]
pub struct Left {
    /// The loop.
    pub orchestrator: Option<Arc<dyn KernelLoop>>,
    /// The context.
    pub context: Option<Arc<dyn ContextManager>>,
    /// Providers.
    pub providers: Vec<Arc<dyn Provider>>,
    /// Tools.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Handlers and how they are registered.
    pub hooks: Vec<(HookSpec, Arc<dyn HookHandler>)>,
    /// What should be looked at although the module came up.
    pub warnings: Vec<String>,
    /// Called when every module of the session is mounted.
    pub ready: Option<Box<dyn GuestReady>>,
    /// Undoes what it did at its own end; the parts go without it.
    pub cleanup: Option<Box<dyn Cleanup>>,
}

/// Called once when every module of the session is mounted, with nothing but the callbacks.
#[async_trait]
pub trait GuestReady: Send {
    /// Does what needed the others.
    async fn run(self: Box<Self>, kernel: &dyn Kernel) -> Result<(), TaskFailure>;
}
