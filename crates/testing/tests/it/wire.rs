//! Every contract over a wire: the same suites, and what only a wire can get wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::{
    Capability, CapabilityCall, CapabilityError, DeltaSink, HookEvent, HookFailure, HookHandler, Prompt,
    ProviderCx, Tool, ToolCx, ToolFailure, TurnError,
};
use amplifier_protocol::chat::ChatRequest;
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::stream::StreamEvent;
use amplifier_protocol::tool::{Effects, ToolCall, ToolSpec};
use amplifier_testing::{
    EchoTool, EventRecorder, Exhausted, FailTool, Kernel, KernelLoop, MockContextManager, MockProvider,
    MockTool, RecordingDisplay, ScriptedApproval, ScriptedProvider, SmallLoop, Step, TestSession,
    conformance, wire,
};
use async_trait::async_trait;
use serde_json::{Map, Value, json};

use crate::fakes::OneFolder;

#[tokio::test]
async fn tools_keep_the_contract_over_a_wire() {
    conformance::tool(async || wire::tool(Arc::new(EchoTool)).await.unwrap()).await.assert();
    conformance::tool(async || wire::tool(Arc::new(FailTool)).await.unwrap()).await.assert();
    conformance::tool(async || wire::tool(Arc::new(MockTool::default())).await.unwrap()).await.assert();
}

#[tokio::test]
async fn providers_keep_the_contract_over_a_wire() {
    conformance::provider(async || wire::provider(Arc::new(MockProvider::default())).await.unwrap())
        .await
        .assert();
    conformance::provider(async || {
        let refusal = LlmError::new(LlmErrorKind::Authentication, "no key");
        let script = [Step::say("one two").in_chunks(["one ", "two"]), Step::from(refusal)];
        let provider = ScriptedProvider::new(script).when_exhausted(Exhausted::Repeat);
        wire::provider(Arc::new(provider)).await.unwrap()
    })
    .await
    .assert();
}

#[tokio::test]
async fn contexts_and_hooks_keep_their_contracts_over_a_wire() {
    conformance::context(async || wire::context(Arc::new(MockContextManager::new()))).await.assert();
    conformance::hook(async || wire::hook(Arc::new(EventRecorder::new()))).await.assert();
}

#[tokio::test]
async fn a_loop_keeps_the_orchestrator_contract_over_a_wire() {
    conformance::orchestrator(async || wire::orchestrator(Arc::new(SmallLoop))).await.assert();
}

#[tokio::test]
async fn approval_display_and_resolver_keep_their_contracts_over_a_wire() {
    conformance::approval(async || wire::approval(Arc::new(ScriptedApproval::denying()))).await.assert();
    let screen = Arc::new(RecordingDisplay::new());
    conformance::display(async || wire::display(screen.clone())).await.assert();
    assert_eq!(screen.messages().len(), 31);
    let (known, hint) = ("tool-known".parse().unwrap(), json!("here"));
    conformance::resolver(async || wire::resolver(Arc::new(OneFolder)), &known, Some(&hint)).await.assert();
}

#[tokio::test]
async fn a_session_made_of_remote_parts_does_what_a_native_one_does() {
    let script = || {
        let call = ToolCall::new("c1", "echo", json!({"text": "hi"}));
        Arc::new(ScriptedProvider::new([Step::call([call]), Step::say("done")]))
    };
    let native = TestSession::builder()
        .orchestrator(Arc::new(SmallLoop))
        .provider(script())
        .tool(Arc::new(EchoTool))
        .open()
        .await
        .unwrap();
    let context = Arc::new(MockContextManager::new());
    let remote = TestSession::builder()
        .orchestrator(wire::orchestrator(Arc::new(SmallLoop)))
        .context(wire::context(context.clone()))
        .provider(wire::provider(script()).await.unwrap())
        .tool(wire::tool(Arc::new(EchoTool)).await.unwrap())
        .open()
        .await
        .unwrap();
    for session in [&native, &remote] {
        assert_eq!(session.execute("go").await.unwrap(), "done");
    }
    assert_eq!(remote.recorder().events("*"), native.recorder().events("*"));
    assert_eq!(context.texts(), ["go", "", r#"{"text":"hi"}"#, "done"]);
    assert_eq!(remote.cleanup().await.failed, Vec::<String>::new());
}

#[tokio::test]
async fn the_pieces_of_an_answer_arrive_in_order_and_before_it() {
    let script = [Step::say("abc").in_chunks(["a", "b", "c"])];
    let provider = wire::provider(Arc::new(ScriptedProvider::new(script))).await.unwrap();
    let (deltas, mut pieces) = DeltaSink::open();
    let cx = ProviderCx { deltas, ..ProviderCx::default() };
    provider.complete(ChatRequest::default(), &cx).await.unwrap();
    let mut texts = Vec::new();
    while let Ok(piece) = pieces.try_recv() {
        if let StreamEvent::TextDelta { text, .. } = piece {
            texts.push(text);
        }
    }
    assert_eq!(texts, ["a", "b", "c"]);
    assert!(cx.pulse.count() >= 3, "every piece is a sign of life");
}

/// Tells the level it was asked to stop with.
struct LevelTool;

#[async_trait]
impl Tool for LevelTool {
    fn spec(&self) -> ToolSpec {
        MockTool::new("level").spec()
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    async fn execute(&self, input: Value, cx: &ToolCx) -> Result<Value, ToolFailure> {
        let level: CancelLevel = serde_json::from_value(input["until"].clone()).unwrap();
        cx.cancel.cancelled(level).await;
        Ok(json!(cx.cancel.level()))
    }
}

#[tokio::test]
async fn each_step_of_a_cancel_reaches_the_other_end() {
    let tool = wire::tool(Arc::new(LevelTool)).await.unwrap();
    for level in [CancelLevel::Graceful, CancelLevel::Immediate] {
        let cx = ToolCx::default();
        let call = tool.execute(json!({"until": level}), &cx);
        let cancel = async {
            tokio::task::yield_now().await;
            cx.cancel.request_graceful();
            tokio::task::yield_now().await;
            if level == CancelLevel::Immediate {
                cx.cancel.request_immediate();
            }
        };
        let (answer, ()) = tokio::join!(call, cancel);
        assert_eq!(answer, Ok(json!(level)));
    }
}

/// Works for a long time and says so now and then.
struct BusyTool;

#[async_trait]
impl Tool for BusyTool {
    fn spec(&self) -> ToolSpec {
        MockTool::new("busy").spec()
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    async fn execute(&self, _input: Value, cx: &ToolCx) -> Result<Value, ToolFailure> {
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cx.pulse.beat();
        }
        Ok(json!("done"))
    }
}

#[tokio::test(start_paused = true)]
async fn signs_of_life_keep_a_remote_call_from_being_cut_off() {
    let session = TestSession::builder()
        .deadlines(json!({"tool": 5, "stall": 4}))
        .tool(wire::tool(Arc::new(BusyTool)).await.unwrap())
        .tool(wire::tool(Arc::new(MockTool::new("dead").hanging())).await.unwrap())
        .open()
        .await
        .unwrap();
    let coordinator = session.coordinator();
    let busy = coordinator.call_tool(&ToolCall::new("1", "busy", json!({}))).await.unwrap();
    assert_eq!(busy.output, json!("done"));
    let dead = coordinator.call_tool(&ToolCall::new("2", "dead", json!({}))).await.unwrap_err();
    assert!(dead.to_string().contains("gave no sign of life"), "{dead}");
}

/// Counts how many of its calls are alive.
struct LivingTool(Arc<AtomicUsize>);

struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Tool for LivingTool {
    fn spec(&self) -> ToolSpec {
        MockTool::new("living").spec()
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    async fn execute(&self, _input: Value, _cx: &ToolCx) -> Result<Value, ToolFailure> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let _alive = Alive(Arc::clone(&self.0));
        std::future::pending().await
    }
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), wait).await.unwrap_or_else(|_| panic!("never {what}"));
}

#[tokio::test]
async fn a_call_nobody_waits_for_ends_at_the_other_end() {
    let alive = Arc::new(AtomicUsize::new(0));
    let tool = wire::tool(Arc::new(LivingTool(alive.clone()))).await.unwrap();
    let call = tokio::spawn(async move { tool.execute(json!({}), &ToolCx::default()).await });
    until("begun", || alive.load(Ordering::SeqCst) == 1).await;
    call.abort();
    until("ended", || alive.load(Ordering::SeqCst) == 0).await;
}

struct Breaks;

#[async_trait]
impl HookHandler for Breaks {
    async fn handle(&self, _event: &HookEvent) -> Result<HookResult, HookFailure> {
        panic!("broken")
    }
}

#[tokio::test]
async fn a_panic_at_the_other_end_is_a_failure_here() {
    let report = conformance::hook(async || wire::hook(Arc::new(Breaks))).await;
    report.assert();
}

/// Uses the callbacks that the small loop does not.
struct CuriousLoop;

#[async_trait]
impl KernelLoop for CuriousLoop {
    async fn run(&self, _prompt: Prompt, kernel: &dyn Kernel) -> Result<String, TurnError> {
        let told = kernel.capability("session.name").await.unwrap();
        let called = kernel.call_capability("double", json!(21)).await.unwrap();
        let absent = kernel.call_capability("absent", json!(null)).await.unwrap_err();
        assert_eq!(absent, CapabilityError::Absent { name: "absent".to_owned() });
        let event = "vote:cast".parse().unwrap();
        let votes = kernel.emit_and_collect(event, Map::new(), Duration::from_secs(1)).await?;
        let missing = kernel.complete("nobody", ChatRequest::default(), DeltaSink::default()).await;
        assert!(matches!(missing, Err(TurnError::Broken { .. })), "{missing:?}");
        Ok(json!([told, called, votes]).to_string())
    }
}

struct Double;

#[async_trait]
impl CapabilityCall for Double {
    async fn call(&self, arguments: Value) -> Result<Value, CapabilityError> {
        Ok(json!(arguments.as_u64().unwrap() * 2))
    }
}

struct Voter;

#[async_trait]
impl HookHandler for Voter {
    async fn handle(&self, _event: &HookEvent) -> Result<HookResult, HookFailure> {
        let data = Map::from_iter([("vote".to_owned(), json!("yes"))]);
        Ok(HookResult { data: Some(data), ..HookResult::proceed() })
    }
}

#[tokio::test]
async fn a_remote_loop_reaches_capabilities_and_collects_votes() {
    let spec = amplifier_core::hooks::HookSpec::new("vote:cast".parse().unwrap(), "voter");
    let session = TestSession::builder()
        .orchestrator(wire::orchestrator(Arc::new(CuriousLoop)))
        .hook(spec, Arc::new(Voter))
        .configure(|builder| {
            builder
                .capability("session.name", Capability::Value(json!("test")))
                .capability("double", Capability::Call(Arc::new(Double)))
        })
        .open()
        .await
        .unwrap();
    assert_eq!(session.execute("go").await.unwrap(), r#"["test",42,[{"vote":"yes"}]]"#);
}
