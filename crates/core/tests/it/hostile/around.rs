//! What stands around a turn: hooks, capabilities, people and the loop itself.

use super::*;

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
