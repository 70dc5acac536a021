//! A hub without a session, for tests of what is mounted in one.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use amplifier_core::contracts::{
    ContextManager, Module, ModuleSourceResolver, Mounted, Orchestrator, Provider, Tool,
};
use amplifier_core::coordinator::{Coordinator, MountError, MountPoint, Parts};
use amplifier_core::ledger::Ledger;
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_core::watch::Deadlines;
use amplifier_protocol::ids::{ModuleId, SessionId};
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};
use amplifier_protocol::spend::{Amounts, Limits};
use serde_json::Value;

use crate::sync::{lock, parsed};
use crate::{EchoTool, EventRecorder, FailTool, ManualClock, MockContextManager};

/// A coordinator of session `test-session` with a clock that stands still, no journal and no limits.
///
/// It is a [`Coordinator`] by dereference. What is mounted through its own methods is kept in
/// [`TestCoordinator::mount_history`].
pub struct TestCoordinator {
    coordinator: Coordinator,
    clock: Arc<ManualClock>,
    mounted: Mutex<Vec<(MountPoint, String)>>,
    unmounted: Mutex<Vec<(MountPoint, String)>>,
}

impl TestCoordinator {
    /// A hub with nothing mounted.
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// A hub with nothing mounted whose parts are changed first: limits, journal, approval, display, deadlines.
    pub fn with(change: impl FnOnce(&mut Parts)) -> Self {
        let clock = Arc::new(ManualClock::new());
        let session_id: SessionId = parsed("test-session");
        let mut parts = Parts {
            ledger: Ledger::root(session_id.clone(), Limits::default(), clock.clone()),
            session_id,
            parent_id: None,
            parent: None,
            spent_before: Amounts::default(),
            plan: Arc::new(MountPlan::new(parsed("test-orchestrator"), parsed("test-context"))),
            clock: clock.clone(),
            journal: None,
            deadlines: Deadlines::default(),
            approval: None,
            display: None,
            last_sequence: 0,
            last_turn: 0,
        };
        change(&mut parts);
        let (mounted, unmounted) = (Mutex::default(), Mutex::default());
        Self { coordinator: Coordinator::new(parts), clock, mounted, unmounted }
    }

    /// A hub whose session may spend this much.
    pub fn with_limits(limits: Limits) -> Self {
        Self::with(|parts| {
            parts.ledger = Ledger::root(parts.session_id.clone(), limits, Arc::clone(&parts.clock));
        })
    }

    /// Its clock.
    pub fn clock(&self) -> &Arc<ManualClock> {
        &self.clock
    }

    /// A recorder that hears every event from now on.
    pub fn recorder(&self) -> Arc<EventRecorder> {
        EventRecorder::attached(&self.coordinator)
    }

    /// Mounts a tool as module `test`.
    pub fn mount_tool(&self, tool: Arc<dyn Tool>) {
        self.note(MountPoint::Tools, tool.spec().name);
        self.coordinator.mount_tool(test_module(), tool);
    }

    /// Mounts a provider as module `test`, under its own name.
    pub fn mount_provider(&self, provider: Arc<dyn Provider>) {
        let name = provider.name().to_owned();
        self.note(MountPoint::Providers, name.clone());
        self.coordinator.mount_provider(test_module(), &name, provider);
    }

    /// Mounts the context as module `test`.
    pub fn mount_context(&self, context: Arc<dyn ContextManager>) {
        self.note(MountPoint::Context, "context".to_owned());
        self.coordinator.mount_context(test_module(), context);
    }

    /// Mounts the orchestrator as module `test`.
    pub fn mount_orchestrator(&self, orchestrator: Arc<dyn Orchestrator>) {
        self.note(MountPoint::Orchestrator, "orchestrator".to_owned());
        self.coordinator.mount_orchestrator(test_module(), orchestrator);
    }

    /// Mounts the resolver.
    pub fn mount_resolver(&self, resolver: Arc<dyn ModuleSourceResolver>) {
        self.note(MountPoint::Resolver, "module-source-resolver".to_owned());
        self.coordinator.mount_resolver(resolver);
    }

    /// Lets a module mount itself, as a loader would; returns what it said and what it warned of.
    ///
    /// What it mounted is noted. Cleanups it registered are the session's business and do not run here: test those with
    /// [`crate::TestSession`].
    pub async fn mount(
        &self,
        module: &dyn Module,
        config: Value,
    ) -> Result<(Mounted, Vec<String>), LoadError> {
        let before = self.all_mounted();
        let cx = MountCx::new(self.coordinator.clone(), &ModuleSpec::new(module.id()));
        let mounted = module.mount(config, &cx).await;
        for (point, name) in self.all_mounted() {
            if !before.contains(&(point.clone(), name.clone())) {
                self.note(point, name);
            }
        }
        mounted.map(|mounted| (mounted, cx.warnings()))
    }

    /// Unmounts what is at a place.
    pub fn unmount(&self, point: &MountPoint, name: Option<&str>) -> Result<(), MountError> {
        self.coordinator.unmount(point, name)?;
        lock(&self.unmounted).push((point.clone(), name.unwrap_or_default().to_owned()));
        Ok(())
    }

    /// What was mounted through this type, in order.
    pub fn mount_history(&self) -> Vec<(MountPoint, String)> {
        lock(&self.mounted).clone()
    }

    /// What was unmounted through this type, in order.
    pub fn unmount_history(&self) -> Vec<(MountPoint, String)> {
        lock(&self.unmounted).clone()
    }

    fn note(&self, point: MountPoint, name: String) {
        lock(&self.mounted).push((point, name));
    }

    fn all_mounted(&self) -> Vec<(MountPoint, String)> {
        let points = [
            MountPoint::Orchestrator,
            MountPoint::Context,
            MountPoint::Resolver,
            MountPoint::Providers,
            MountPoint::Tools,
        ];
        let at = |point: MountPoint| {
            let names = self.coordinator.mounted(&point);
            names.into_iter().map(move |name| (point.clone(), name))
        };
        points.into_iter().flat_map(at).collect()
    }
}

fn test_module() -> ModuleId {
    parsed("test")
}

impl Default for TestCoordinator {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for TestCoordinator {
    type Target = Coordinator;

    fn deref(&self) -> &Coordinator {
        &self.coordinator
    }
}

/// A hub with tools `echo` and `fail` and a [`MockContextManager`] mounted.
pub fn create_test_coordinator() -> TestCoordinator {
    let coordinator = TestCoordinator::new();
    coordinator.mount_tool(Arc::new(EchoTool));
    coordinator.mount_tool(Arc::new(FailTool));
    coordinator.mount_context(Arc::new(MockContextManager::new()));
    coordinator
}

#[cfg(test)]
mod tests {
    use super::*;
    use amplifier_protocol::tool::ToolCall;
    use serde_json::json;

    #[tokio::test]
    async fn echo_answers_and_fail_really_fails() {
        let coordinator = create_test_coordinator();
        assert_eq!(coordinator.session_id().as_str(), "test-session");
        let echo = coordinator.call_tool(&ToolCall::new("1", "echo", json!({"a": 1}))).await.unwrap();
        assert_eq!((echo.success, echo.output), (true, json!({"a": 1})));
        let fail = coordinator.call_tool(&ToolCall::new("2", "fail", json!({}))).await.unwrap();
        assert!(!fail.success);
    }

    #[tokio::test]
    async fn what_a_module_mounts_and_what_is_unmounted_is_in_the_history() {
        let coordinator = TestCoordinator::new();
        let module = crate::FakeModule::tool("tool-echo", Arc::new(EchoTool));
        let (mounted, warnings) = coordinator.mount(&module, json!({})).await.unwrap();
        assert_eq!((mounted, warnings), (Mounted::Ready, vec![]));
        assert_eq!(coordinator.mount_history(), [(MountPoint::Tools, "echo".to_owned())]);
        coordinator.unmount(&MountPoint::Tools, Some("echo")).unwrap();
        assert_eq!(coordinator.unmount_history(), [(MountPoint::Tools, "echo".to_owned())]);
        assert!(coordinator.tool("echo").is_none());
    }
}
