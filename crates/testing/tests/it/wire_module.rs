//! The module contract over a wire: every kind joins a session, and hears when it begins and ends.

use std::sync::{Arc, Mutex};

use amplifier_core::contracts::{Capability, Mounted, TaskFailure};
use amplifier_core::hooks::HookSpec;
use amplifier_core::report::LoadOutcome;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::tool::ToolCall;
use amplifier_testing::{
    EchoTool, EventRecorder, GuestModule, GuestReady, Kernel, Left, MockContextManager, MockProvider,
    ScriptedProvider, SmallLoop, Step, TestSession, conformance, wire,
};
use async_trait::async_trait;
use serde_json::{Map, Value, json};

type Heard = Arc<Mutex<Vec<String>>>;

/// Leaves one part of each kind it is asked for and tells what became of it.
#[derive(Clone)]
struct Guest {
    kind: ModuleKind,
    recorder: Arc<EventRecorder>,
    heard: Heard,
}

impl Guest {
    fn new(kind: ModuleKind) -> Self {
        Self { kind, recorder: Arc::new(EventRecorder::new()), heard: Heard::default() }
    }
}

#[async_trait]
impl GuestModule for Guest {
    fn id(&self) -> ModuleId {
        format!("{}-guest", self.kind).parse().unwrap()
    }

    fn kind(&self) -> ModuleKind {
        self.kind
    }

    async fn mount(
        &self,
        config: Value,
        kernel: &dyn Kernel,
        left: &mut Left,
    ) -> Result<Mounted, TaskFailure> {
        if let Some(reason) = config["decline"].as_str() {
            return Ok(Mounted::Skipped { reason: reason.to_owned() });
        }
        if let Some(reason) = config["fail"].as_str() {
            return Err(TaskFailure::new(reason));
        }
        let unknown = config.as_object().unwrap().keys().filter(|key| *key != "greeting");
        left.warnings.extend(unknown.map(|key| format!("unknown config key `{key}` is ignored")));
        match self.kind {
            ModuleKind::Orchestrator => left.orchestrator = Some(Arc::new(SmallLoop)),
            ModuleKind::Context => left.context = Some(Arc::new(MockContextManager::new())),
            ModuleKind::Provider => left.providers.push(Arc::new(MockProvider::default())),
            ModuleKind::Tool => left.tools.push(Arc::new(EchoTool)),
            _ => {
                let spec = HookSpec::new("tool:*".parse().unwrap(), "guest").priority(7);
                left.hooks.push((spec, Arc::clone(&self.recorder) as _));
            }
        }
        let greeting = kernel.capability("greeting").await.unwrap();
        self.heard.lock().unwrap().push(format!("mounted {greeting:?}"));
        left.ready = Some(Box::new(Tells(Arc::clone(&self.heard))));
        let heard = Arc::clone(&self.heard);
        left.cleanup = Some(Box::new(move || async move {
            heard.lock().unwrap().push("gone".to_owned());
            Ok(())
        }));
        Ok(Mounted::Ready)
    }
}

/// Writes down which tools there are when all are mounted.
struct Tells(Heard);

#[async_trait]
impl GuestReady for Tells {
    async fn run(self: Box<Self>, kernel: &dyn Kernel) -> Result<(), TaskFailure> {
        let mounted = kernel.mounted().await.unwrap();
        let names: Vec<_> = mounted.tools.iter().map(|tool| tool.name.clone()).collect();
        self.0.lock().unwrap().push(format!("ready with {}", names.join(", ")));
        Ok(())
    }
}

const KINDS: [ModuleKind; 5] =
    [ModuleKind::Orchestrator, ModuleKind::Context, ModuleKind::Provider, ModuleKind::Tool, ModuleKind::Hook];

#[tokio::test]
async fn modules_of_every_kind_keep_the_contract_over_a_wire() {
    for kind in KINDS {
        let config = Map::from_iter([("greeting".to_owned(), json!("hi"))]);
        let make = async || wire::module(Arc::new(Guest::new(kind))).await.unwrap();
        conformance::module(make, config).await.assert();
    }
}

#[tokio::test]
async fn a_session_of_remote_modules_runs_a_turn_and_each_hears_its_beginning_and_end() {
    let guests = KINDS.map(Guest::new);
    let call = ToolCall::new("c1", "echo", json!({"text": "hi"}));
    let provider = Arc::new(ScriptedProvider::new([Step::call([call]), Step::say("done")]));
    let mut builder = TestSession::builder()
        .provider(provider)
        .configure(|builder| builder.capability("greeting", Capability::Value(json!("hello"))));
    for guest in guests.iter().filter(|guest| guest.kind != ModuleKind::Provider) {
        builder = builder.module(wire::module(Arc::new(guest.clone())).await.unwrap());
    }
    let session = builder.open().await.unwrap();
    assert_eq!(session.execute("go").await.unwrap(), "done");
    let hook = guests.iter().find(|guest| guest.kind == ModuleKind::Hook).unwrap();
    assert_eq!(hook.recorder.names(), ["tool:pre", "tool:post"]);
    assert_eq!(session.cleanup().await.failed, Vec::<String>::new());
    for guest in guests.iter().filter(|guest| guest.kind != ModuleKind::Provider) {
        let heard = guest.heard.lock().unwrap().clone();
        assert_eq!(heard, ["mounted Some(String(\"hello\"))", "ready with echo", "gone"], "{}", guest.kind);
    }
}

#[tokio::test]
async fn declining_failing_and_warning_cross_the_wire_in_their_own_words() {
    for (key, told) in [("decline", "no key"), ("fail", "no disk")] {
        let guest = Guest::new(ModuleKind::Tool);
        let config = Map::from_iter([(key.to_owned(), json!(told))]);
        let module = wire::module(Arc::new(guest.clone())).await.unwrap();
        let session = TestSession::builder().module_with(module, config).open().await.unwrap();
        let entry = session.report().modules.iter().find(|entry| entry.module == guest.id()).unwrap();
        match &entry.outcome {
            LoadOutcome::Skipped { reason } => assert_eq!(reason, told),
            LoadOutcome::Failed { error } => {
                assert_eq!(error, &format!("module `tool-guest` failed to mount: {told}"));
            }
            LoadOutcome::Mounted { names } => panic!("mounted {names:?}"),
        }
        assert!(guest.heard.lock().unwrap().is_empty());
    }
}
