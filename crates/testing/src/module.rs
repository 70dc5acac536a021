//! Modules made on the spot, and the place a loader finds them in.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use amplifier_core::contracts::{ContextManager, HookHandler, Module, Mounted, Orchestrator, Provider, Tool};
use amplifier_core::hooks::HookSpec;
use amplifier_core::loader::{LoadError, ModuleFinder, MountCx};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::ModuleKind;
use async_trait::async_trait;
use serde_json::Value;

use crate::sync::parsed;

type Mount = dyn Fn(Value, &MountCx) -> Result<Mounted, LoadError> + Send + Sync;

/// A module whose mount is a closure.
pub struct FakeModule {
    id: ModuleId,
    kind: ModuleKind,
    mount: Option<Box<Mount>>,
    mounts: AtomicUsize,
}

impl FakeModule {
    /// A module that mounts like this.
    pub fn new(
        id: &str,
        kind: ModuleKind,
        mount: impl Fn(Value, &MountCx) -> Result<Mounted, LoadError> + Send + Sync + 'static,
    ) -> Self {
        Self { id: parsed(id), kind, mount: Some(Box::new(mount)), mounts: AtomicUsize::new(0) }
    }

    /// A module that mounts this tool.
    pub fn tool(id: &str, tool: Arc<dyn Tool>) -> Self {
        Self::ready(id, ModuleKind::Tool, move |cx| cx.mount_tool(Arc::clone(&tool)))
    }

    /// A module that mounts this provider.
    pub fn provider(id: &str, provider: Arc<dyn Provider>) -> Self {
        Self::ready(id, ModuleKind::Provider, move |cx| cx.mount_provider(Arc::clone(&provider)))
    }

    /// A module that mounts this context.
    pub fn context(id: &str, context: Arc<dyn ContextManager>) -> Self {
        Self::ready(id, ModuleKind::Context, move |cx| cx.mount_context(Arc::clone(&context)))
    }

    /// A module that mounts this orchestrator.
    pub fn orchestrator(id: &str, orchestrator: Arc<dyn Orchestrator>) -> Self {
        Self::ready(id, ModuleKind::Orchestrator, move |cx| cx.mount_orchestrator(Arc::clone(&orchestrator)))
    }

    /// A module that registers this handler.
    pub fn hook(id: &str, spec: HookSpec, handler: Arc<dyn HookHandler>) -> Self {
        Self::ready(id, ModuleKind::Hook, move |cx| {
            cx.on(spec.clone(), Arc::clone(&handler));
        })
    }

    /// A module that fails to mount.
    pub fn broken(id: &str, kind: ModuleKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::new(id, kind, move |_, cx| {
            Err(LoadError::Mount { id: cx.module().clone(), message: message.clone() })
        })
    }

    /// A module that declines.
    pub fn declining(id: &str, kind: ModuleKind, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::new(id, kind, move |_, _| Ok(Mounted::Skipped { reason: reason.clone() }))
    }

    /// A module whose mount never returns.
    pub fn hanging(id: &str, kind: ModuleKind) -> Self {
        Self { id: parsed(id), kind, mount: None, mounts: AtomicUsize::new(0) }
    }

    /// How often a mount began.
    pub fn mount_count(&self) -> usize {
        self.mounts.load(Ordering::Acquire)
    }

    fn ready(id: &str, kind: ModuleKind, mount: impl Fn(&MountCx) + Send + Sync + 'static) -> Self {
        Self::new(id, kind, move |_, cx| {
            mount(cx);
            Ok(Mounted::Ready)
        })
    }
}

#[async_trait]
impl Module for FakeModule {
    fn id(&self) -> ModuleId {
        self.id.clone()
    }

    fn kind(&self) -> ModuleKind {
        self.kind
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        self.mounts.fetch_add(1, Ordering::AcqRel);
        match &self.mount {
            Some(mount) => mount(config, cx),
            None => std::future::pending().await,
        }
    }
}

/// Finds modules in a list; called `fake` in "tried …".
#[derive(Default, Clone)]
pub struct FakeFinder(Vec<Arc<dyn Module>>);

impl FakeFinder {
    /// A finder of these.
    pub fn new(modules: impl IntoIterator<Item = Arc<dyn Module>>) -> Self {
        Self(modules.into_iter().collect())
    }
}

#[async_trait]
impl ModuleFinder for FakeFinder {
    fn name(&self) -> &str {
        "fake"
    }

    fn known(&self) -> Vec<String> {
        self.0.iter().map(|module| module.id().to_string()).collect()
    }

    async fn find(&self, id: &ModuleId) -> Result<Option<Arc<dyn Module>>, LoadError> {
        Ok(self.0.iter().find(|module| module.id() == *id).cloned())
    }
}
