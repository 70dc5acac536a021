//! Modules that never return, flood or panic, at every point where the kernel calls one: they cost that call and no more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::{
    Capability, CapabilityCall, CapabilityError, ContextError, ContextManager, DeltaSink, DisplayMessage,
    DisplaySystem, Mounted, RequestBudget, TaskFailure, Tool, ToolCx, ToolFailure, TurnError,
};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::session::{ExecuteError, Session};
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::event::ToolPre;
use amplifier_protocol::hook::{HookResult, MessageLevel};
use amplifier_protocol::llm_error::LlmErrorKind;
use amplifier_protocol::message::{Message, Messages};
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::status::SessionState;
use amplifier_protocol::stream::StreamEvent;
use amplifier_protocol::tool::{Effects, ToolCall, ToolSpec};
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::kit::*;

/// How a module misbehaves.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Vice {
    Hangs,
    Panics,
}

const VICES: [Vice; 2] = [Vice::Hangs, Vice::Panics];

/// Never returns, or panics after its first wait, as if in the middle of something.
async fn misbehave<T>(vice: Vice) -> T {
    tokio::task::yield_now().await;
    match vice {
        Vice::Hangs => std::future::pending().await,
        Vice::Panics => panic!("gone mad"),
    }
}

/// Short deadlines, so that giving up is part of the test.
fn stage() -> Stage {
    Stage::new().tool(echo("t")).session(json!({"deadlines": {
        "mount": 5, "ready": 5, "hook": 5, "context": 5, "tool": 60, "provider": 60,
        "capability": 60, "contributor": 5, "cleanup": 5, "stall": 20,
    }}))
}

/// The session is as good as new: it answers, and it closes with nothing to complain about.
async fn is_unharmed(session: &Session) {
    assert_eq!(session.execute("t").await.unwrap(), "{}");
    assert_eq!(session.status().status, SessionState::Completed);
    assert_eq!(session.coordinator().in_flight(), []);
    assert_eq!(session.cleanup().await.failed, Vec::<String>::new());
}

async fn call(session: &Session, tool: &str) -> Result<Value, String> {
    let call = ToolCall::new("call", tool, json!({}));
    let result = session.coordinator().call_tool(&call).await;
    result.map(|result| result.output).map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_tool_costs_its_call_and_its_stall_names_its_module() {
    for vice in VICES {
        let alive = Alive::default();
        let counted = alive.clone();
        let stage = stage().tool(tool("bad", Effects::PURE, move |_, _| {
            let guard = counted.guard();
            async move {
                let _guard = guard;
                misbehave(vice).await
            }
        }));
        let session = stage.open().await;
        let began = tokio::time::Instant::now();
        let error = call(&session, "bad").await.unwrap_err();
        let stalls = stage.ear.payloads("call:stalled");
        match vice {
            Vice::Hangs => {
                assert_eq!(error, "`tool-bad` gave no sign of life for 60.0 s");
                assert_eq!(began.elapsed(), Duration::from_secs(60));
                assert_eq!((stalls.len(), &stalls[0]["owner"]), (1, &json!("tool-bad")));
                assert_eq!(stalls[0]["operation"], "bad");
                assert_eq!(
                    (&stalls[0]["waited_ms"], &stalls[0]["deadline_ms"]),
                    (&json!(20_000), &json!(60_000))
                );
            }
            Vice::Panics => {
                assert_eq!(error, "`tool-bad` panicked: gone mad");
                assert_eq!(stalls.len(), 0);
            }
        }
        settle().await;
        assert_eq!(alive.count(), 0, "its future is gone");
        is_unharmed(&session).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_gives_signs_of_life_is_not_cut_off_and_a_cancel_still_reaches_it() {
    let stage = stage().tool(tool("busy", Effects::PURE, |_, cx| async move {
        for _ in 0..30 {
            tokio::time::sleep(Duration::from_secs(10)).await;
            cx.pulse.beat();
        }
        Ok(json!("done"))
    }));
    let session = stage.open().await;
    assert_eq!(call(&session, "busy").await, Ok(json!("done")));
    assert_eq!(stage.ear.payloads("call:stalled").len(), 0);
    let running = tokio::spawn({
        let session = session.clone();
        async move { session.execute("busy").await }
    });
    tokio::time::sleep(Duration::from_secs(15)).await;
    let began = tokio::time::Instant::now();
    session.cancel(CancelLevel::Immediate).await;
    assert_eq!(running.await.unwrap(), Err(ExecuteError::Turn(TurnError::Cancelled)));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

/// A tool that breaks outside its `execute`.
struct BreaksInSpec;

#[async_trait]
impl Tool for BreaksInSpec {
    fn spec(&self) -> ToolSpec {
        panic!("no spec today")
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    async fn execute(&self, _input: Value, _cx: &ToolCx) -> Result<Value, ToolFailure> {
        Ok(Value::Null)
    }
}

/// A tool that does not know what it touches.
struct BreaksInEffects;

#[async_trait]
impl Tool for BreaksInEffects {
    fn spec(&self) -> ToolSpec {
        echo("unsure").spec()
    }

    fn effects(&self) -> Effects {
        panic!("no idea")
    }

    async fn execute(&self, _input: Value, _cx: &ToolCx) -> Result<Value, ToolFailure> {
        Ok(Value::Null)
    }
}

#[tokio::test]
async fn a_tool_that_panics_in_its_spec_or_effects_does_not_mount() {
    let breaking = |id: &str, tool: Arc<dyn Tool>| {
        module(id, ModuleKind::Tool, move |_, cx| {
            cx.mount_tool(Arc::clone(&tool));
            Ok(Mounted::Ready)
        })
    };
    let stage = stage()
        .module(breaking("tool-spec", Arc::new(BreaksInSpec)))
        .module(breaking("tool-effects", Arc::new(BreaksInEffects)));
    let session = stage.open().await;
    let failed: Vec<_> = session.report().failed().map(ToString::to_string).collect();
    assert_eq!(failed.len(), 2);
    assert!(failed[0].contains("panicked: no spec today") && failed[1].contains("panicked: no idea"));
    is_unharmed(&session).await;
}

/// A module that does not know what it is.
struct BreaksInKind;

#[async_trait]
impl amplifier_core::contracts::Module for BreaksInKind {
    fn id(&self) -> amplifier_protocol::ids::ModuleId {
        "tool-kind".parse().unwrap()
    }

    fn kind(&self) -> ModuleKind {
        panic!("who am I")
    }

    async fn mount(
        &self,
        _config: Value,
        _cx: &amplifier_core::loader::MountCx,
    ) -> Result<Mounted, amplifier_core::loader::LoadError> {
        Ok(Mounted::Ready)
    }
}

#[tokio::test]
async fn a_module_that_panics_when_asked_its_kind_is_a_line_in_the_report() {
    let stage =
        stage().on_shelf(Arc::new(BreaksInKind)).entry(ModuleKind::Tool, json!({"module": "tool-kind"}));
    let session = stage.open().await;
    assert!(session.report().failed().next().unwrap().to_string().contains("panicked: who am I"));
    is_unharmed(&session).await;
}

#[tokio::test(start_paused = true)]
async fn a_ready_callback_costs_itself_and_is_told() {
    for vice in VICES {
        let stage = stage().module(module("tool-bad", ModuleKind::Tool, move |_, cx| {
            cx.mount_tool(echo("bad"));
            cx.on_session_ready(move |_: Coordinator| misbehave::<Result<(), TaskFailure>>(vice));
            Ok(Mounted::Ready)
        }));
        let session = stage.open().await;
        let told = stage.ear.payloads("module:on_session_ready_failed");
        assert_eq!((told.len(), &told[0]["module_id"]), (1, &json!("tool-bad")), "{vice:?}");
        is_unharmed(&session).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_costs_itself_and_the_others_run() {
    for vice in VICES {
        let diary = Diary::default();
        let stage = stage().tidy("a", &diary).module(module("tool-bad", ModuleKind::Tool, move |_, cx| {
            cx.mount_tool(echo("bad"));
            cx.register_cleanup(move || misbehave::<Result<(), TaskFailure>>(vice));
            Ok(Mounted::Ready)
        }));
        let session = stage.open().await;
        let began = tokio::time::Instant::now();
        let report = session.cleanup().await;
        assert!(began.elapsed() <= Duration::from_secs(5));
        assert_eq!((report.failed.len(), diary.read()), (1, vec!["cleanup a".to_owned()]));
        assert!(report.failed[0].starts_with("`tool-bad`: "), "{report:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_costs_its_answer_and_is_told_even_one_that_hears_everything() {
    for vice in VICES {
        let stage = stage().hook("bad", on("*"), hook(move |_| misbehave(vice)));
        let session = stage.open().await;
        let emitted = session.coordinator().emit(ToolPre::default()).await;
        assert_eq!(emitted.denied(), None, "{vice:?}");
        let told = stage.ear.payloads("hook:failed");
        assert_eq!((told.len(), &told[0]["hook"]), (1, &json!("bad")), "told once, not told of being told");
        is_unharmed(&session).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_costs_its_call_as_an_error_of_a_model() {
    for vice in VICES {
        let stage = stage().provider(provider("bad", move |_, _| misbehave(vice)));
        let session = stage.open().await;
        let request = ChatRequest::new(Vec::new());
        let error =
            session.coordinator().call_provider("bad", request, DeltaSink::default()).await.unwrap_err();
        let amplifier_core::coordinator::CallError::Model(error) = error else { panic!("{error}") };
        assert_eq!((error.kind, error.provider.as_deref()), (LlmErrorKind::Timeout, Some("bad")));
        assert!(error.to_string().contains("`provider-bad`"), "{error}");
        if vice == Vice::Hangs {
            assert_eq!(stage.ear.payloads("call:stalled")[0]["owner"], "provider-bad");
        }
        is_unharmed(&session).await;
    }
}

/// A provider that sends pieces for ever and counts them.
fn flooding(sent: &Arc<AtomicUsize>) -> Arc<dyn amplifier_core::contracts::Provider> {
    let sent = Arc::clone(sent);
    provider("flood", move |_, cx| {
        let sent = Arc::clone(&sent);
        async move {
            loop {
                cx.send(StreamEvent::TextDelta { index: 0, text: "x".repeat(1_000) }).await;
                sent.fetch_add(1, Ordering::SeqCst);
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_floods_a_reader_who_does_not_read_waits_and_meets_its_deadline() {
    let sent = Arc::new(AtomicUsize::new(0));
    let session = stage().provider(flooding(&sent)).open().await;
    let (sink, reader) = DeltaSink::open();
    let request = ChatRequest::new(Vec::new());
    let error = session.coordinator().call_provider("flood", request, sink).await.unwrap_err();
    assert!(error.to_string().contains("no sign of life"), "{error}");
    assert!(sent.load(Ordering::SeqCst) <= 64, "little is kept in memory: {sent:?}");
    drop(reader);
    is_unharmed(&session).await;
}

// Real time: a paused clock stands still while anything runs, and this never stops running.
#[tokio::test]
async fn a_provider_that_floods_for_ever_ends_soon_after_a_cancel() {
    let sent = Arc::new(AtomicUsize::new(0));
    let session = stage().provider(flooding(&sent)).open().await;
    let (sink, mut reader) = DeltaSink::open();
    let reading = tokio::spawn(async move { while reader.recv().await.is_some() {} });
    let calling = tokio::spawn({
        let hub = session.coordinator().clone();
        async move { hub.call_provider("flood", ChatRequest::new(Vec::new()), sink).await }
    });
    while sent.load(Ordering::SeqCst) < 1_000 {
        tokio::task::yield_now().await;
    }
    let began = std::time::Instant::now();
    session.cancel(CancelLevel::Immediate).await;
    assert!(calling.await.unwrap().is_err());
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    reading.await.unwrap();
    session.reset_cancel();
    is_unharmed(&session).await;
}

#[tokio::test]
async fn giant_answers_pass_and_thousands_of_injections_stop_at_their_budget() {
    let giant = tool("giant", Effects::PURE, |_, _| async { Ok(json!("x".repeat(20_000_000))) });
    let stage =
        stage().tool(giant).hook("flood", on("tool:pre"), answering(HookResult::inject("y".repeat(400))));
    let session = stage.open().await;
    assert_eq!(call(&session, "giant").await.unwrap().as_str().unwrap().len(), 20_000_000);
    for _ in 0..2_000 {
        session.coordinator().emit(ToolPre::default()).await;
    }
    assert_eq!(stage.context.stored().len(), 100, "10,000 tokens are a hundred of these");
    assert_eq!(session.coordinator().injected_tokens(), 10_000);
    is_unharmed(&session).await;
}

#[tokio::test]
async fn outcomes_that_a_remote_loop_never_hands_back_do_not_pile_up() {
    let stage = stage().hook("say", on("my:event"), answering(HookResult::inject("y")));
    let session = stage.open().await;
    let hub = session.coordinator();
    let name = || "my:event".parse().unwrap();
    let first = hub.dispatch_for_remote(name(), map(json!({}))).await;
    for _ in 0..5_000 {
        hub.dispatch_for_remote(name(), map(json!({}))).await;
    }
    hub.process_hook_result(first, &name(), "loop").await.unwrap();
    assert_eq!(stage.context.stored().len(), 0, "the oldest was let go");
    is_unharmed(&session).await;
}

/// A context that misbehaves in every method.
struct BadContext(Vice);

#[async_trait]
impl ContextManager for BadContext {
    async fn add_message(&self, _message: Arc<Message>) -> Result<(), ContextError> {
        misbehave(self.0).await
    }

    async fn messages_for_request(&self, _budget: RequestBudget) -> Result<Messages, ContextError> {
        misbehave(self.0).await
    }

    async fn messages(&self) -> Result<Messages, ContextError> {
        misbehave(self.0).await
    }

    async fn set_messages(&self, _messages: Messages) -> Result<(), ContextError> {
        misbehave(self.0).await
    }

    async fn clear(&self) -> Result<(), ContextError> {
        misbehave(self.0).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_context_costs_its_call_and_the_error_names_its_module() {
    for vice in VICES {
        let stage = stage();
        let session = stage.open().await;
        let hub = session.coordinator();
        hub.mount_context("context-bad".parse().unwrap(), Arc::new(BadContext(vice)));
        let context = hub.context().unwrap();
        let errors = [
            context.add_message(Arc::new(Message::user("x"))).await.unwrap_err(),
            context.messages_for_request(RequestBudget::default()).await.unwrap_err(),
            context.messages().await.unwrap_err(),
            context.set_messages(Vec::new()).await.unwrap_err(),
            context.clear().await.unwrap_err(),
        ];
        for error in errors {
            assert!(error.to_string().contains("`context-bad`"), "{error}");
        }
        is_unharmed(&session).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_context_that_hangs_while_a_conversation_is_put_back_fails_the_opening_in_time() {
    let mut stage = stage().on_shelf(module("context-bad", ModuleKind::Context, |_, cx| {
        cx.mount_context(Arc::new(BadContext(Vice::Hangs)));
        Ok(Mounted::Ready)
    }));
    stage.plan["session"]["context"] = json!("context-bad");
    let began = tokio::time::Instant::now();
    let resumed = stage.builder().resume(Default::default()).open().await;
    assert!(resumed.is_err() && began.elapsed() <= Duration::from_secs(6));
}

/// A capability that misbehaves.
struct BadCapability(Vice);

#[async_trait]
impl CapabilityCall for BadCapability {
    async fn call(&self, _arguments: Value) -> Result<Value, CapabilityError> {
        misbehave(self.0).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_capability_costs_its_call_and_its_stall_names_it() {
    for vice in VICES {
        let stage = stage();
        let session = stage.open().await;
        let hub = session.coordinator();
        hub.register_capability("mail.send", Capability::Call(Arc::new(BadCapability(vice))));
        let began = tokio::time::Instant::now();
        let error = hub.call_capability("mail.send", json!({})).await.unwrap_err();
        assert!(matches!(&error, CapabilityError::Failed { name, .. } if name == "mail.send"), "{error}");
        if vice == Vice::Hangs {
            assert_eq!(began.elapsed(), Duration::from_secs(60));
            assert_eq!(stage.ear.payloads("call:stalled")[0]["owner"], "mail.send");
        }
        is_unharmed(&session).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_approver_that_hangs_or_panics_denies_and_the_next_question_is_put() {
    for vice in VICES {
        let stage = stage().hook("gate", on("tool:pre"), answering(HookResult::ask("May I?")));
        let session = stage.open().await;
        session.coordinator().set_approval_system(Some(approval(move |_| misbehave(vice))));
        let began = tokio::time::Instant::now();
        assert!(session.coordinator().emit(ToolPre::default()).await.denied().is_some());
        assert!(began.elapsed() <= Duration::from_secs(300));
        session.coordinator().set_approval_system(Some(always("Allow once")));
        assert_eq!(session.coordinator().emit(ToolPre::default()).await.denied(), None);
        is_unharmed(&session).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_nobody_answers_ends_with_a_cancel() {
    let stage = stage().hook("gate", on("tool:pre"), answering(HookResult::ask("May I?")));
    let session = stage.open().await;
    session.coordinator().set_approval_system(Some(approval(|_| std::future::pending())));
    let asking = tokio::spawn({
        let hub = session.coordinator().clone();
        async move { hub.emit(ToolPre::default()).await.denied().map(str::to_owned) }
    });
    settle().await;
    let began = tokio::time::Instant::now();
    session.cancel(CancelLevel::Immediate).await;
    assert_eq!(asking.await.unwrap().as_deref(), Some("cancelled before an answer"));
    assert!(began.elapsed() < Duration::from_secs(1));
}

/// A display that misbehaves.
struct BadDisplay(Vice);

#[async_trait]
impl DisplaySystem for BadDisplay {
    async fn show_message(&self, _message: DisplayMessage) {
        misbehave(self.0).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_display_costs_its_message() {
    for vice in VICES {
        let told = HookResult::proceed().showing("hello", MessageLevel::Info);
        let stage = stage().hook("say", on("tool:pre"), answering(told));
        let session = stage.builder().display(Arc::new(BadDisplay(vice))).open().await.unwrap();
        let began = tokio::time::Instant::now();
        assert_eq!(session.coordinator().emit(ToolPre::default()).await.denied(), None);
        assert!(began.elapsed() <= Duration::from_secs(5));
        is_unharmed(&session).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_orchestrator_that_hangs_ends_soon_after_a_cancel_and_the_next_turn_runs() {
    let stage = stage().orchestrator(orchestrator(|_, cx| async move {
        if cx.turn == 1 { misbehave(Vice::Hangs).await } else { Ok("{}".to_owned()) }
    }));
    let session = stage.open().await;
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.execute("x").await }
    });
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert!(!turn.is_finished(), "a turn may be long");
    let began = tokio::time::Instant::now();
    session.cancel(CancelLevel::Immediate).await;
    assert_eq!(turn.await.unwrap(), Err(ExecuteError::Turn(TurnError::Cancelled)));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    session.reset_cancel();
    is_unharmed(&session).await;
}

#[tokio::test]
async fn a_hook_that_emits_its_own_event_is_stopped() {
    let stage = stage();
    let session = stage.open().await;
    let rounds = Arc::new(AtomicUsize::new(0));
    let (hub, counted) = (session.coordinator().clone(), Arc::clone(&rounds));
    session.coordinator().hooks().on(
        on("my:event"),
        hook(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            let hub = hub.clone();
            async move {
                let inner = Box::pin(hub.emit_named("my:event".parse().unwrap(), map(json!({})))).await;
                Ok(inner.denied().map_or_else(HookResult::proceed, HookResult::deny))
            }
        }),
    );
    let emitted = session.coordinator().emit_named("my:event".parse().unwrap(), map(json!({}))).await;
    assert!(emitted.denied().unwrap().contains("levels deep"), "{emitted:?}");
    assert_eq!(rounds.load(Ordering::SeqCst), 16);
    is_unharmed(&session).await;
}

#[tokio::test]
async fn a_hook_that_comes_back_to_its_event_through_a_tool_is_stopped_too() {
    let stage = stage();
    let session = stage.open().await;
    let hub = session.coordinator();
    let rounds = Arc::new(AtomicUsize::new(0));
    let emitting = hub.clone();
    let emitter = tool("emitter", Effects::PURE, move |_, _| {
        let hub = emitting.clone();
        async move {
            let emitted = hub.emit_named("my:event".parse().unwrap(), map(json!({}))).await;
            Ok(json!(emitted.denied()))
        }
    });
    hub.mount_tool("tool-emitter".parse().unwrap(), emitter);
    let (calling, counted) = (hub.clone(), Arc::clone(&rounds));
    hub.hooks().on(
        on("my:event"),
        hook(move |_| {
            let round = counted.fetch_add(1, Ordering::SeqCst);
            let hub = calling.clone();
            async move {
                // Bounded here too, so that a kernel that does not stop it fails the test instead of the machine.
                if round < 200 {
                    drop(hub.call_tool(&ToolCall::new(round.to_string(), "emitter", json!({}))).await);
                }
                Ok(HookResult::proceed())
            }
        }),
    );
    hub.emit_named("my:event".parse().unwrap(), map(json!({}))).await;
    assert_eq!(rounds.load(Ordering::SeqCst), 16);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_blocks_its_thread_does_not_hang_the_session() {
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(std::sync::Mutex::new(blocked));
    let inside = Arc::new(tokio::sync::Notify::new());
    let entered = Arc::clone(&inside);
    let stage = stage().tool(tool("block", Effects::PURE, move |_, _| {
        let (blocked, entered) = (Arc::clone(&blocked), Arc::clone(&entered));
        async move {
            entered.notify_one();
            // Until the end of the test: no await, no cancel, no mercy.
            blocked.lock().unwrap().recv().unwrap_err();
            Ok(Value::Null)
        }
    }));
    let session = stage.open().await;
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.execute("block").await }
    });
    inside.notified().await;
    let began = std::time::Instant::now();
    session.cancel(CancelLevel::Immediate).await;
    assert_eq!(turn.await.unwrap(), Err(ExecuteError::Turn(TurnError::Cancelled)));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    session.reset_cancel();
    is_unharmed(&session).await;
    drop(release);
}

#[tokio::test(start_paused = true)]
async fn a_graceful_cancel_lets_the_running_tool_finish_and_starts_nothing_new() {
    let stage = stage()
        .tool(tool("slow", Effects::PURE, |_, _| async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok(json!("finished"))
        }))
        .orchestrator(orchestrator(|_, cx| async move {
            let slow = cx.coordinator.call_tool(&ToolCall::new("1", "slow", json!({}))).await?;
            let next = cx.coordinator.call_tool(&ToolCall::new("2", "t", json!({}))).await;
            Ok(format!("{}, {}", slow.to_model_text(), next.unwrap_err()))
        }));
    let session = stage.open().await;
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.execute("x").await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    session.cancel(CancelLevel::Graceful).await;
    assert_eq!(turn.await.unwrap().unwrap(), "finished, cancelled");
    assert_eq!(session.status().status, SessionState::Cancelled);
}

#[tokio::test]
async fn a_provider_reply_reaches_the_caller_whole_whether_or_not_its_pieces_are_read() {
    let streaming = provider("s", |_, cx| async move {
        for piece in ["a", "b"] {
            cx.send(StreamEvent::TextDelta { index: 0, text: piece.to_owned() }).await;
        }
        Ok(ChatResponse::text("ab"))
    });
    let session = stage().provider(streaming).open().await;
    let (sink, reader) = DeltaSink::open();
    drop(reader);
    for sink in [DeltaSink::default(), sink] {
        let answer = session.coordinator().call_provider("s", ChatRequest::new(Vec::new()), sink).await;
        assert_eq!(answer.unwrap().visible_text(), "ab");
    }
}

/// Who stalled at what, as the journal tells.
fn stalled(journal: &MemoryJournal) -> Vec<(String, String)> {
    let events = journal.records().into_iter().filter_map(|record| match record.body {
        amplifier_protocol::record::RecordBody::Event { name, data } if name.as_str() == "call:stalled" => {
            Some(data)
        }
        _ => None,
    });
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    events.map(|data| (text(&data["owner"]), text(&data["operation"]))).collect()
}

#[tokio::test(start_paused = true)]
async fn whoever_makes_a_session_wait_is_named_once_although_it_answers_in_the_end() {
    let slow = Duration::from_secs(50);
    let late = hook(move |_| async move {
        tokio::time::sleep(slow).await;
        Ok(HookResult::proceed())
    });
    let thinks = approval(move |_| async move {
        tokio::time::sleep(slow).await;
        Ok("Allow".to_owned())
    });
    let lost = orchestrator(move |_, _| async move {
        tokio::time::sleep(slow).await;
        Ok("found".to_owned())
    });
    let deadlines = json!({"stall": 20, "hook": 60, "mount": 60});
    let tool = slow_module("tool-late", ModuleKind::Tool, slow, |_, cx| {
        cx.mount_tool(echo("late"));
        Ok(Mounted::Ready)
    });
    let stage = Stage::new()
        .session(json!({"deadlines": deadlines}))
        .orchestrator(lost)
        .module(tool)
        .hook("late", on("my:slow"), late)
        .hook("gate", on("tool:pre"), answering(HookResult::ask("Allow?")));
    let journal = MemoryJournal::default();
    let mut plan = stage.builder();
    plan = plan.approval(thinks).journal(Arc::new(journal.clone()));
    let session = plan.open().await.unwrap();
    let hub = session.coordinator();
    hub.emit_named("my:slow".parse().unwrap(), map(json!({}))).await;
    assert_eq!(hub.emit(ToolPre::default()).await.denied(), None);
    assert_eq!(session.execute("x").await.unwrap(), "found");
    let told: Vec<_> = stalled(&journal);
    let expected = [
        ("tool-late", "mount"),
        ("late", "hook on my:slow"),
        ("approval", "approval.request"),
        ("loop-test", "orchestrator.execute"),
    ];
    assert_eq!(told, expected.map(|(owner, operation)| (owner.to_owned(), operation.to_owned())));
    assert_eq!(hub.in_flight(), []);
}

#[tokio::test(start_paused = true)]
async fn a_context_that_makes_a_turn_wait_is_named_and_the_loop_is_not_blamed() {
    struct Slow(MemoryContext);

    #[async_trait::async_trait]
    impl ContextManager for Slow {
        async fn add_message(&self, message: Arc<Message>) -> Result<(), ContextError> {
            tokio::time::sleep(Duration::from_secs(50)).await;
            self.0.add_message(message).await
        }
        async fn messages_for_request(&self, budget: RequestBudget) -> Result<Messages, ContextError> {
            self.0.messages_for_request(budget).await
        }
        async fn messages(&self) -> Result<Messages, ContextError> {
            self.0.messages().await
        }
        async fn set_messages(&self, messages: Messages) -> Result<(), ContextError> {
            self.0.set_messages(messages).await
        }
        async fn clear(&self) -> Result<(), ContextError> {
            self.0.clear().await
        }
    }

    let journal = MemoryJournal::default();
    let stores = orchestrator(|_, cx| async move {
        let context = cx.coordinator.context().unwrap();
        context.add_message(Arc::new(Message::user("hi"))).await.unwrap();
        Ok("stored".to_owned())
    });
    let slow = module("context-slow", ModuleKind::Context, |_, cx| {
        cx.mount_context(Arc::new(Slow(MemoryContext::default())));
        Ok(Mounted::Ready)
    });
    let stage = Stage::new()
        .session(json!({"deadlines": {"stall": 15}, "context": "context-slow"}))
        .on_shelf(slow)
        .orchestrator(stores);
    let session = stage.builder().journal(Arc::new(journal.clone())).open().await.unwrap();
    session.execute("x").await.unwrap();
    assert_eq!(stalled(&journal), [("context-slow".to_owned(), "context.add_message".to_owned())]);
}
