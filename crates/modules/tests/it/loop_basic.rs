//! `loop-basic`: turns that run to their end. What all loops share is in `loops/`.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::contracts::Prompt;
use amplifier_protocol::chat::ChatResponse;
use amplifier_protocol::event::ToolError;
use amplifier_testing::{Exhausted, MockProvider, MockTool, ScriptedProvider, Step, TestSession};
use serde_json::json;

use crate::kit::{call, lines, looping, stored};

async fn playing(steps: Vec<Step>, tool: MockTool) -> (TestSession, Arc<ScriptedProvider>) {
    let model = Arc::new(ScriptedProvider::new(steps));
    let session = looping(json!({})).await.provider(model.clone()).tool(Arc::new(tool)).open().await.unwrap();
    (session, model)
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
