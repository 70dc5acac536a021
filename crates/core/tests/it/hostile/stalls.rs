//! Who is named when a session has to wait.

use super::*;

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
