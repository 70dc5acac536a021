//! A session with one of the loops, a scripted model and whatever else a test wants.

use std::sync::Arc;

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler, Tool, ToolCx, ToolFailure};
use amplifier_core::hooks::HookSpec;
use amplifier_core::loader::ModuleFinder;
use amplifier_core::session::Session;
use amplifier_modules::table::BuiltIns;
use amplifier_protocol::event::{OrchestratorComplete, TurnStatus};
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::message::{Message, Role};
use amplifier_protocol::tool::{Effects, ToolCall, ToolSpec};
use amplifier_testing::{
    EventRecorder, MockContextManager, ScriptedProvider, Step, TestSession, TestSessionBuilder,
};
use async_trait::async_trait;
use serde_json::{Map, Value, json};

pub const LOOPS: [&str; 3] = ["loop-basic", "loop-streaming", "loop-events"];

/// A session that is being set up.
pub struct Stage {
    builder: TestSessionBuilder,
    id: String,
    config: Value,
    provider: Arc<ScriptedProvider>,
    context: Arc<MockContextManager>,
}

/// A session that is open.
pub struct Open {
    pub session: TestSession,
    pub provider: Arc<ScriptedProvider>,
    pub context: Arc<MockContextManager>,
}

impl Stage {
    pub fn new(id: &str, script: impl IntoIterator<Item = impl Into<Step>>) -> Self {
        let (provider, context) =
            (Arc::new(ScriptedProvider::new(script)), Arc::new(MockContextManager::new()));
        let builder = TestSession::builder().context(context.clone()).provider(provider.clone());
        Self { builder, id: id.to_owned(), config: json!({}), provider, context }
    }

    pub fn config(mut self, config: Value) -> Self {
        self.config = config;
        self
    }

    pub fn with(mut self, change: impl FnOnce(TestSessionBuilder) -> TestSessionBuilder) -> Self {
        self.builder = change(self.builder);
        self
    }

    pub fn tool(self, tool: Arc<dyn Tool>) -> Self {
        self.with(|builder| builder.tool(tool))
    }

    /// A handler that answers one event always alike.
    pub fn hook(self, event: &str, result: HookResult) -> Self {
        let spec = HookSpec::new(event.parse().unwrap(), "test-hook");
        self.with(|builder| builder.hook(spec, Arc::new(Always(result))))
    }

    pub async fn open(self) -> Open {
        let module = BuiltIns.find(&self.id.parse().unwrap()).await.unwrap().unwrap();
        let builder = self.builder.module_with(module, object(self.config));
        let session = builder.open().await.unwrap();
        Open { session, provider: self.provider, context: self.context }
    }

    /// Opens and plays one turn that ends well.
    pub async fn play(self) -> (Open, String) {
        let open = self.open().await;
        let answer = open.session.execute("hi").await.unwrap();
        (open, answer)
    }
}

impl Open {
    pub fn recorder(&self) -> &EventRecorder {
        self.session.recorder()
    }

    /// The turn ended once, like this.
    pub fn ended(&self, expected: TurnStatus) {
        let ends = self.recorder().of::<OrchestratorComplete>();
        assert_eq!(ends.iter().map(|end| end.status).collect::<Vec<_>>(), [expected]);
        let once = ["prompt:submit", "prompt:complete", "execution:start", "execution:end"];
        assert_eq!(once.map(|event| self.recorder().count(event)), [1; 4]);
    }

    /// Role and text of everything stored.
    pub fn said(&self) -> Vec<(Role, String)> {
        said(&self.context.messages())
    }

    /// Role and text of everything a request held.
    pub fn asked(&self, number: usize) -> Vec<(Role, String)> {
        said(&self.provider.requests()[number].messages)
    }

    /// The names of a turn's events, without those of the session around it.
    pub fn turn_events(&self) -> Vec<String> {
        let around = |name: &String| name.starts_with("session:") || name.starts_with("module:");
        self.recorder().names().into_iter().filter(|name| !around(name)).collect()
    }
}

fn said(messages: &[Arc<Message>]) -> Vec<(Role, String)> {
    messages.iter().map(|message| (message.role, message.content.visible_text().into_owned())).collect()
}

pub fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

/// An answer of the model that calls `t` as `c1`, `c2` and so on.
pub fn calls(count: usize) -> Step {
    Step::call((1..=count).map(|n| ToolCall::new(format!("c{n}"), "t", json!({"n": n}))))
}

/// A tool whose answer is a function of its input and of the session it runs in.
pub struct FnTool<F>(pub &'static str, pub F);

#[async_trait]
impl<F, Fut> Tool for FnTool<F>
where
    F: Fn(Value, ToolCx) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Value, ToolFailure>> + Send,
{
    fn spec(&self) -> ToolSpec {
        let parameters = json!({"type": "object"});
        ToolSpec { name: self.0.to_owned(), description: None, parameters, extra: Map::new() }
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    async fn execute(&self, input: Value, cx: &ToolCx) -> Result<Value, ToolFailure> {
        (self.1)(input, cx.clone()).await
    }
}

struct Always(HookResult);

#[async_trait]
impl HookHandler for Always {
    async fn handle(&self, _event: &HookEvent) -> Result<HookResult, HookFailure> {
        Ok(self.0.clone())
    }
}

/// Sends a message to the running turn.
pub async fn steer(session: &Session, message: &str) -> Result<Value, String> {
    let sent = session.coordinator().call_capability("session.steer", json!({"message": message})).await;
    sent.map_err(|error| error.to_string())
}
