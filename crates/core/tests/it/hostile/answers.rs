//! Providers and contexts: what answers a turn.

use super::*;

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
