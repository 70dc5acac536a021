//! Tools, and what is asked of modules while they mount, become ready and end.

use super::*;

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
