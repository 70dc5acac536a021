//! `loop-basic`: turns that run to their end.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::contracts::Prompt;
use amplifier_protocol::chat::ChatResponse;
use amplifier_protocol::event::{OrchestratorComplete, ProviderError, ToolError, TurnStatus};
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_testing::{Exhausted, MockProvider, MockTool, ScriptedProvider, Step, TestSession};
use serde_json::json;

use crate::kit::{call, lines, looping, stored};

async fn playing(steps: Vec<Step>, tool: MockTool) -> (TestSession, Arc<ScriptedProvider>) {
    let model = Arc::new(ScriptedProvider::new(steps));
    let session = looping(json!({})).await.provider(model.clone()).tool(Arc::new(tool)).open().await.unwrap();
    (session, model)
}

fn status(session: &TestSession) -> (TurnStatus, u64) {
    let ends = session.recorder().of::<OrchestratorComplete>();
    assert_eq!(ends.len(), 1);
    (ends[0].status, ends[0].turn_count)
}

#[tokio::test]
async fn a_plain_answer_tells_its_events_in_order() {
    let (session, _) = playing(vec!["hello".into()], MockTool::new("t")).await;
    assert_eq!(session.execute("hi").await.unwrap(), "hello");
    let names = session.recorder().names();
    assert_eq!(
        names,
        [
            "session:start",
            "prompt:submit",
            "execution:start",
            "provider:request",
            "content_block:start",
            "content_block:delta",
            "provider:response",
            "content_block:end",
            "execution:end",
            "prompt:complete",
            "orchestrator:complete",
        ]
    );
    assert_eq!(status(&session), (TurnStatus::Success, 0));
    assert_eq!(lines(&stored(&session).await), ["user: hi", "assistant: hello"]);
}

#[tokio::test]
async fn a_tool_result_reaches_the_model_as_clean_json() {
    let tool = MockTool::new("t").return_value(json!({"v": 1}));
    let (session, model) = playing(vec![Step::call([call("c", "t")]), "done".into()], tool).await;
    assert_eq!(session.execute("go").await.unwrap(), "done");
    assert_eq!(status(&session), (TurnStatus::Success, 1));
    let second = &model.requests()[1].messages;
    assert_eq!(lines(second), ["user: go", "assistant: ", "tool: {\"v\":1}"]);
    assert_eq!(second[2].name.as_deref(), Some("t"));
    assert_eq!(model.requests()[0].tools.as_ref().unwrap()[0].name, "t");
}

#[tokio::test(start_paused = true)]
async fn parallel_results_are_stored_in_the_order_of_the_calls() {
    let model = Arc::new(ScriptedProvider::new([
        Step::call([call("a", "slow"), call("b", "quick"), call("c", "nope")]),
        "done".into(),
    ]));
    let session = looping(json!({}))
        .await
        .provider(model.clone())
        .tool(Arc::new(MockTool::new("slow").delay(Duration::from_secs(5)).return_value("late")))
        .tool(Arc::new(MockTool::new("quick").return_value("soon")))
        .open()
        .await
        .unwrap();
    let began = tokio::time::Instant::now();
    session.execute("go").await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(6));
    let texts = lines(&stored(&session).await);
    assert_eq!(texts[2..5], ["tool: late", "tool: soon", "tool: Error: Tool 'nope' not found"]);
    let groups: Vec<_> = session
        .recorder()
        .events("tool:*")
        .into_iter()
        .map(|(_, data)| data["parallel_group_id"].clone())
        .collect();
    assert!(groups.len() == 6 && groups.iter().all(|group| *group == groups[0]), "{groups:?}");
    let errors = session.recorder().of::<ToolError>();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].tool_call_id.as_deref(), Some("c"));
}

#[tokio::test]
async fn a_tool_that_reports_a_failure_tells_it_to_the_model_without_a_tool_error() {
    let (session, _) =
        playing(vec![Step::call([call("c", "t")]), "done".into()], MockTool::new("t").failing("boom")).await;
    session.execute("go").await.unwrap();
    assert_eq!(lines(&stored(&session).await)[2], "tool: boom");
    assert_eq!((session.recorder().count("tool:error"), session.recorder().count("tool:post")), (0, 1));
}

#[tokio::test]
async fn after_the_last_iteration_the_model_wraps_up_without_tools() {
    let model = Arc::new(ScriptedProvider::new([Step::call([call("c", "t")]), Step::say("so far")]));
    let session = looping(json!({"max_iterations": 1}))
        .await
        .provider(model.clone())
        .tool(Arc::new(MockTool::new("t")))
        .open()
        .await
        .unwrap();
    assert_eq!(session.execute("go").await.unwrap(), "so far");
    assert_eq!(status(&session), (TurnStatus::MaxIterations, 1));
    let last = model.requests()[1].clone();
    assert_eq!(last.tools, None);
    assert!(last.messages.last().unwrap().content.visible_text().contains("orchestrator-loop-limit"));
    assert_eq!(
        lines(&stored(&session).await),
        ["user: go", "assistant: ", "tool: Success", "assistant: so far"]
    );
}

#[tokio::test]
async fn an_empty_answer_ends_the_turn_as_incomplete_and_is_not_stored() {
    let (session, model) = playing(vec![ChatResponse::default().into()], MockTool::new("t")).await;
    assert_eq!(session.execute("hi").await.unwrap(), "");
    assert_eq!(status(&session), (TurnStatus::Incomplete, 0));
    assert_eq!(lines(&stored(&session).await), ["user: hi"]);
    model.assert_played();
}

#[tokio::test]
async fn a_model_error_is_told_and_travels_unchanged() {
    let mut error = LlmError::new(LlmErrorKind::RateLimit, "slow down");
    error.status_code = Some(429);
    let (session, _) = playing(vec![error.clone().into()], MockTool::new("t")).await;
    let failed = session.execute("hi").await.unwrap_err();
    assert_eq!(failed.to_string(), error.to_string());
    let told = session.recorder().of::<ProviderError>();
    assert_eq!((told[0].retryable, told[0].status_code), (Some(true), Some(429)));
    assert_eq!(status(&session), (TurnStatus::Error, 0));
    for once in ["execution:end", "prompt:complete", "orchestrator:complete"] {
        assert_eq!(session.recorder().count(once), 1, "{once}");
    }
}

#[tokio::test]
async fn thinking_is_kept_between_rounds_and_is_no_part_of_the_answer() {
    let response: ChatResponse = serde_json::from_value(json!({
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "server_tool_use", "n": 1.50},
            {"type": "text", "text": "one"},
            {"type": "text", "text": "two"},
        ],
        "metadata": {"openai:response_id": "r1"},
    }))
    .unwrap();
    let (session, _) = playing(vec![response.clone().into()], MockTool::new("t")).await;
    assert_eq!(session.execute("hi").await.unwrap(), "one\n\ntwo");
    let kept = &stored(&session).await[1];
    assert_eq!(
        serde_json::to_value(&kept.content).unwrap(),
        serde_json::to_value(&response.content).unwrap()
    );
    assert_eq!(kept.metadata["openai:response_id"], "r1");
    assert_eq!(session.recorder().count("thinking:final"), 1);
}

#[tokio::test]
async fn the_default_provider_is_asked_else_the_first_of_the_plan() {
    for (config, expected) in [
        (json!({}), "one"),
        (json!({"default_provider": "two"}), "two"),
        (json!({"default_provider": "provider-two"}), "two"),
        (json!({"default_provider": "three"}), "one"),
    ] {
        let session = looping(config.clone())
            .await
            .provider(Arc::new(MockProvider::saying("one").named("one")))
            .provider(Arc::new(MockProvider::saying("two").named("two")))
            .open()
            .await
            .unwrap();
        assert_eq!(session.execute("hi").await.unwrap(), expected);
        let warned = session.recorder().count("module:on_session_ready_failed");
        assert_eq!(warned, usize::from(config["default_provider"] == "three"));
    }
}

#[tokio::test]
async fn a_turn_that_goes_on_adds_no_prompt() {
    let (session, model) =
        playing(vec![ChatResponse::default().into(), "yes".into()], MockTool::new("t")).await;
    session.execute("hi").await.unwrap();
    assert_eq!(session.execute(Prompt::Continue).await.unwrap(), "yes");
    assert_eq!(lines(&model.requests()[1].messages), ["user: hi"]);
    assert_eq!(session.recorder().count("prompt:submit"), 1);
}

#[tokio::test]
async fn pieces_are_told_as_they_come_when_somebody_listens() {
    let steps = [Step::say("hello").in_chunks(["hel", "lo"])];
    let model = Arc::new(ScriptedProvider::new(steps).when_exhausted(Exhausted::Last));
    let session = looping(json!({})).await.provider(model).open().await.unwrap();
    session.execute("hi").await.unwrap();
    let pieces: Vec<_> = session
        .recorder()
        .events("content_block:delta")
        .into_iter()
        .map(|(_, data)| data["text"].clone())
        .collect();
    assert_eq!(pieces, ["hel", "lo"]);
}

#[tokio::test]
async fn what_the_config_says_about_thinking_is_in_the_request() {
    let model = Arc::new(ScriptedProvider::new(["hi"]));
    let config = json!({"extended_thinking": true, "reasoning_effort": "high", "max_iteration": 3});
    let session = looping(config).await.provider(model.clone()).open().await.unwrap();
    session.execute("hi").await.unwrap();
    let request = &model.requests()[0];
    assert_eq!(request.reasoning_effort.as_deref(), Some("high"));
    assert_eq!(request.extra["extended_thinking"], true);
    let warning = &session.report().modules[0].warnings[0];
    assert!(warning.contains("max_iteration") && warning.contains("`max_iterations`"), "{warning}");
}
