//! `loop-basic`: turns that do not run to their end.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::TurnError;
use amplifier_core::session::ExecuteError;
use amplifier_protocol::event::{OrchestratorComplete, TurnStatus};
use amplifier_protocol::message::Role;
use amplifier_testing::{MockTool, ScriptedProvider, Step, TestSession};
use serde_json::{Value, json};

use crate::kit::{call, lines, looping, stored};

const NOTE: &str = "assistant: [The turn was cancelled before it was finished.]";

/// A session whose model calls `quick` and `slow` at once; `slow` takes ten seconds.
async fn two_tools() -> (TestSession, Arc<ScriptedProvider>) {
    let model =
        Arc::new(ScriptedProvider::new([Step::call([call("a", "quick"), call("b", "slow")]), "done".into()]));
    let session = looping(json!({}))
        .await
        .provider(model.clone())
        .tool(Arc::new(MockTool::new("quick").return_value("soon")))
        .tool(Arc::new(MockTool::new("slow").delay(Duration::from_secs(10)).return_value("late")))
        .open()
        .await
        .unwrap();
    (session, model)
}

/// Runs a turn and cancels it after a second.
async fn cancelled(session: &TestSession, level: CancelLevel) -> String {
    let turn = tokio::spawn({
        let session = session.session().clone();
        async move { session.execute("go").await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(session.cancel(level).await);
    turn.await.unwrap().unwrap()
}

fn status(session: &TestSession) -> TurnStatus {
    for once in ["execution:end", "prompt:complete", "orchestrator:complete"] {
        assert_eq!(session.recorder().count(once), 1, "{once}");
    }
    session.recorder().of::<OrchestratorComplete>()[0].status
}

#[tokio::test(start_paused = true)]
async fn a_graceful_cancel_lets_running_tools_finish_and_asks_no_more() {
    let (session, model) = two_tools().await;
    assert_eq!(cancelled(&session, CancelLevel::Graceful).await, "");
    assert_eq!(lines(&stored(&session).await)[2..], ["tool: soon", "tool: late", NOTE]);
    assert_eq!((status(&session), model.request_count()), (TurnStatus::Cancelled, 1));
}

#[tokio::test(start_paused = true)]
async fn an_immediate_cancel_keeps_finished_results_and_answers_the_others() {
    let (session, _) = two_tools().await;
    let began = tokio::time::Instant::now();
    cancelled(&session, CancelLevel::Immediate).await;
    assert!(began.elapsed() < Duration::from_secs(2));
    let kept = stored(&session).await;
    assert_eq!(lines(&kept)[2], "tool: soon");
    // The tool heard the wish to stop and told so in its own words.
    assert_eq!(lines(&kept)[3], "tool: stopped before it was done");
    assert_eq!(lines(&kept)[4], NOTE);
    assert_eq!(status(&session), TurnStatus::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_tool_that_does_not_listen_gets_a_structured_result() {
    let model = Arc::new(ScriptedProvider::new([Step::call([call("b", "sl\"ow")])]));
    let tool = MockTool::new("sl\"ow").hanging();
    let session = looping(json!({})).await.provider(model).tool(Arc::new(tool)).open().await.unwrap();
    cancelled(&session, CancelLevel::Immediate).await;
    let told: Value = serde_json::from_str(&stored(&session).await[2].content.visible_text()).unwrap();
    assert_eq!(
        told,
        json!({"error": "Tool execution was cancelled by user", "cancelled": true, "tool": "sl\"ow"})
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancel_during_the_model_call_leaves_a_closed_conversation() {
    let model = Arc::new(ScriptedProvider::new([Step::say("late").after(Duration::from_secs(9))]));
    let session = looping(json!({})).await.provider(model).open().await.unwrap();
    assert_eq!(cancelled(&session, CancelLevel::Immediate).await, "");
    assert_eq!(lines(&stored(&session).await), ["user: go", NOTE]);
    assert_eq!(status(&session), TurnStatus::Cancelled);
}

#[tokio::test]
async fn a_limit_on_steps_ends_the_turn_cleanly_with_the_results_stored() {
    let model = Arc::new(ScriptedProvider::new([Step::call([call("c", "t")]), "never".into()]));
    let session = looping(json!({}))
        .await
        .provider(model.clone())
        .tool(Arc::new(MockTool::new("t")))
        .limits(json!({"steps": 1}))
        .open()
        .await
        .unwrap();
    let error = session.execute("go").await.unwrap_err();
    assert!(matches!(error, ExecuteError::Turn(TurnError::Limit(_))), "{error}");
    assert_eq!(lines(&stored(&session).await), ["user: go", "assistant: ", "tool: Success"]);
    assert_eq!((status(&session), model.request_count()), (TurnStatus::LimitReached, 1));
    assert_eq!(session.recorder().count("policy:violation"), 1);
}

#[tokio::test]
async fn a_limit_on_tool_calls_still_answers_every_call() {
    let calls = Step::call([call("a", "t"), call("b", "t")]);
    let model = Arc::new(ScriptedProvider::new([calls, "never".into()]));
    let session = looping(json!({}))
        .await
        .provider(model.clone())
        .tool(Arc::new(MockTool::new("t")))
        .limits(json!({"tool_calls": 1}))
        .open()
        .await
        .unwrap();
    let error = session.execute("go").await.unwrap_err();
    assert!(matches!(error, ExecuteError::Turn(TurnError::Limit(_))), "{error}");
    let kept = stored(&session).await;
    assert_eq!(kept.iter().filter(|message| message.role == Role::Tool).count(), 2);
    assert_eq!((status(&session), model.request_count()), (TurnStatus::LimitReached, 1));
}
