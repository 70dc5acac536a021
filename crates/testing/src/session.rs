//! A real session made of fakes: opened by the real loader from a real plan.

use std::ops::Deref;
use std::sync::Arc;

use amplifier_core::contracts::{ContextManager, HookHandler, Module, Orchestrator, Provider, Tool};
use amplifier_core::hooks::HookSpec;
use amplifier_core::loader::Loader;
use amplifier_core::session::{OpenError, Session, SessionBuilder};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};
use serde_json::{Map, Value};

use crate::sync::parsed;
use crate::{
    EventRecorder, FakeFinder, FakeModule, ManualClock, MockContextManager, MockProvider,
    ScriptedOrchestrator,
};

/// An open session and what a test looks at. It is a [`Session`] by dereference.
pub struct TestSession {
    session: Session,
    clock: Arc<ManualClock>,
    recorder: Arc<EventRecorder>,
}

impl TestSession {
    /// What a session is made of; see [`TestSessionBuilder`].
    pub fn builder() -> TestSessionBuilder {
        TestSessionBuilder::new()
    }

    /// The session itself, to clone.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Its clock.
    pub fn clock(&self) -> &Arc<ManualClock> {
        &self.clock
    }

    /// Every event since it was opened.
    pub fn recorder(&self) -> &Arc<EventRecorder> {
        &self.recorder
    }
}

impl Deref for TestSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

type Configure = Box<dyn FnOnce(SessionBuilder) -> SessionBuilder>;

/// Assembles a session. Without more it has a [`ScriptedOrchestrator`], a [`MockContextManager`] and a [`MockProvider`];
/// the id is `test-session`.
pub struct TestSessionBuilder {
    modules: Vec<Arc<dyn Module>>,
    plan: MountPlan,
    mock_provider: bool,
    clock: Arc<ManualClock>,
    recorder: Arc<EventRecorder>,
    configure: Vec<Configure>,
}

impl TestSessionBuilder {
    fn new() -> Self {
        let (orchestrator, context) = ("test-orchestrator", "test-context");
        let builder = Self {
            modules: Vec::new(),
            plan: MountPlan::new(parsed(orchestrator), parsed(context)),
            mock_provider: true,
            clock: Arc::new(ManualClock::new()),
            recorder: Arc::new(EventRecorder::new()),
            configure: Vec::new(),
        };
        let recorder = builder.recorder.clone();
        builder.hook(EventRecorder::spec(), recorder)
    }

    /// Runs turns with this.
    #[must_use]
    pub fn orchestrator(self, orchestrator: Arc<dyn Orchestrator>) -> Self {
        let id = self.plan.session.orchestrator.module.clone();
        self.replacing(FakeModule::orchestrator(id.as_str(), orchestrator))
    }

    /// Keeps the conversation here.
    #[must_use]
    pub fn context(self, context: Arc<dyn ContextManager>) -> Self {
        let id = self.plan.session.context.module.clone();
        self.replacing(FakeModule::context(id.as_str(), context))
    }

    /// Adds a provider under its own name, after those added before.
    #[must_use]
    pub fn provider(self, provider: Arc<dyn Provider>) -> Self {
        let id = self.free_id(&format!("provider-{}", provider.name()));
        self.module(Arc::new(FakeModule::provider(&id, provider)))
    }

    /// Opens without any provider, unless one is added.
    #[must_use]
    pub fn without_provider(mut self) -> Self {
        self.mock_provider = false;
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(self, tool: Arc<dyn Tool>) -> Self {
        let id = self.free_id(&format!("tool-{}", tool.spec().name));
        self.module(Arc::new(FakeModule::tool(&id, tool)))
    }

    /// Adds a hook.
    #[must_use]
    pub fn hook(self, spec: HookSpec, handler: Arc<dyn HookHandler>) -> Self {
        let id = self.free_id("hooks-test");
        self.module(Arc::new(FakeModule::hook(&id, spec, handler)))
    }

    /// Adds a module and, unless it runs turns or keeps the conversation, an entry of the plan for it.
    #[must_use]
    pub fn module(self, module: Arc<dyn Module>) -> Self {
        self.module_with(module, Map::new())
    }

    /// Adds a module with a config.
    #[must_use]
    pub fn module_with(mut self, module: Arc<dyn Module>, config: Map<String, Value>) -> Self {
        let spec = ModuleSpec { config, ..ModuleSpec::new(module.id()) };
        match module.kind() {
            ModuleKind::Orchestrator => self.plan.session.orchestrator = spec,
            ModuleKind::Context => self.plan.session.context = spec,
            ModuleKind::Provider => {
                self.mock_provider = false;
                self.plan.providers.push(spec);
            }
            ModuleKind::Tool => self.plan.tools.push(spec),
            ModuleKind::Hook => self.plan.hooks.push(spec),
            ModuleKind::Resolver => {}
        }
        self.modules.push(module);
        self
    }

    /// Changes the plan: limits, deadlines, budgets, entries without a module behind them.
    #[must_use]
    pub fn plan(mut self, change: impl FnOnce(&mut MountPlan)) -> Self {
        change(&mut self.plan);
        self
    }

    /// Sets the session's limits, as a plan writes them.
    #[must_use]
    pub fn limits(self, limits: Value) -> Self {
        self.plan(|plan| plan.session.limits = object(limits))
    }

    /// Sets the session's deadlines, as a plan writes them.
    #[must_use]
    pub fn deadlines(self, deadlines: Value) -> Self {
        self.plan(|plan| plan.session.deadlines = object(deadlines))
    }

    /// Changes how the session is opened: journal, approval, display, history, capabilities, strictness.
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(SessionBuilder) -> SessionBuilder + 'static) -> Self {
        self.configure.push(Box::new(change));
        self
    }

    /// The loader that knows every module given so far, for children and for sessions opened by hand.
    pub fn loader(&self) -> Arc<Loader> {
        Arc::new(Loader::new().finder(Arc::new(FakeFinder::new(self.modules.clone()))))
    }

    /// Opens the session through the loader.
    pub async fn open(self) -> Result<TestSession, OpenError> {
        let this = self.complete();
        let loader = this.loader();
        let builder = SessionBuilder::new(this.plan, loader, this.clock.clone());
        let builder = builder.session_id(parsed("test-session"));
        let builder = this.configure.into_iter().fold(builder, |builder, change| change(builder));
        let session = builder.open().await?;
        Ok(TestSession { session, clock: this.clock, recorder: this.recorder })
    }

    /// Fills in what was not given. Plan entries that nobody stands behind are left: they are meant to fail.
    fn complete(self) -> Self {
        let (orchestrator, context) = ("test-orchestrator", "test-context");
        let plan = &self.plan.session;
        let asks = |spec: &ModuleSpec, id: &str| spec.module.as_str() == id && !self.knows(&spec.module);
        let (no_loop, no_context) = (asks(&plan.orchestrator, orchestrator), asks(&plan.context, context));
        let mut this = self;
        if no_loop {
            this = this.orchestrator(Arc::new(ScriptedOrchestrator::default()));
        }
        if no_context {
            this = this.context(Arc::new(MockContextManager::new()));
        }
        if this.mock_provider && this.plan.providers.is_empty() {
            this = this.provider(Arc::new(MockProvider::default()));
        }
        this
    }

    fn knows(&self, id: &ModuleId) -> bool {
        self.modules.iter().any(|module| module.id() == *id)
    }

    /// Adds a module in the place of one of the same id; its entry of the plan stays.
    fn replacing(mut self, module: FakeModule) -> Self {
        self.modules.retain(|known| known.id() != module.id());
        self.modules.push(Arc::new(module));
        self
    }

    fn free_id(&self, wanted: &str) -> String {
        let ids = (1..).map(|n| if n == 1 { wanted.to_owned() } else { format!("{wanted}-{n}") });
        let free = ids.into_iter().find(|id| !self.knows(&parsed(id)));
        free.unwrap_or_else(|| wanted.to_owned())
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => Map::from_iter([("not an object".to_owned(), other)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EchoTool;

    #[tokio::test]
    async fn a_session_of_defaults_answers_from_its_script() {
        let context = Arc::new(MockContextManager::new());
        let session = TestSession::builder()
            .orchestrator(Arc::new(ScriptedOrchestrator::new(["one"])))
            .context(context.clone())
            .tool(Arc::new(EchoTool))
            .tool(Arc::new(EchoTool))
            .open()
            .await
            .unwrap();
        assert_eq!(session.execute("a").await.unwrap(), "one");
        assert_eq!(session.execute("b").await.unwrap(), "DONE");
        assert_eq!(context.texts(), ["a", "one", "b", "DONE"]);
        assert_eq!(session.recorder().count("session:start"), 1);
        assert_eq!(session.cleanup().await.failed, Vec::<String>::new());
        assert_eq!(session.recorder().count("session:end"), 1);
    }

    #[tokio::test]
    async fn what_the_plan_asks_for_and_nobody_gives_is_in_the_report() {
        let session = TestSession::builder()
            .plan(|plan| plan.tools.push(ModuleSpec::new(parsed("tool-nowhere"))))
            .open()
            .await
            .unwrap();
        assert_eq!(session.report().failed().count(), 1);
        assert_eq!(session.recorder().count("module:load_failed"), 1);
    }
}
