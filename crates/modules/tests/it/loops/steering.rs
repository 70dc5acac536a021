//! Messages sent to a turn while it runs.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::contracts::ToolCx;
use amplifier_core::session::Session;
use amplifier_protocol::event::{OrchestratorSteeringInjected, TurnStatus, UserNotification};
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::message::Role::{Assistant, Tool, User};
use amplifier_testing::Step;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::stage::{FnTool, LOOPS, Open, Stage, calls, steer};

type Cell = Arc<OnceCell<Session>>;

/// A tool that sends messages to the turn it runs in.
fn steering_tool(messages: &'static [&'static str]) -> (Arc<dyn amplifier_core::contracts::Tool>, Cell) {
    let cell = Cell::default();
    let session = cell.clone();
    let tool = FnTool("t", move |_: Value, _: ToolCx| {
        let session = session.clone();
        async move {
            for message in messages {
                steer(session.get().unwrap(), message).await.unwrap();
            }
            Ok(json!("ran"))
        }
    });
    (Arc::new(tool), cell)
}

async fn open(stage: Stage, cell: &Cell) -> Open {
    let open = stage.open().await;
    cell.set(open.session.session().clone()).ok().unwrap();
    open
}

fn said(role: amplifier_protocol::message::Role, text: &str) -> (amplifier_protocol::message::Role, String) {
    (role, text.to_owned())
}

#[tokio::test]
async fn a_message_sent_during_a_tool_is_read_by_the_next_question_after_the_result() {
    for id in LOOPS {
        let (tool, cell) = steering_tool(&["use metres", "and be brief"]);
        let open = open(Stage::new(id, [calls(1), Step::say("done")]).tool(tool), &cell).await;
        assert_eq!(open.session.execute("hi").await.unwrap(), "done", "{id}");
        let asked = open.asked(1);
        assert_eq!(asked[2..], [said(Tool, "ran"), said(User, "use metres"), said(User, "and be brief")]);
        let kept = open.context.messages();
        assert_eq!(kept[3].metadata.get("source"), Some(&json!("steer")));
        let event = |content: &str, queued_remaining| OrchestratorSteeringInjected {
            orchestrator: id.to_owned(),
            content: content.to_owned(),
            iteration: 1,
            queued_remaining,
            metadata: None,
        };
        let told = open.recorder().of::<OrchestratorSteeringInjected>();
        assert_eq!(told, [event("use metres", 1), event("and be brief", 0)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_sent_while_the_last_answer_forms_is_answered_in_the_same_turn() {
    for id in LOOPS {
        let script = [Step::say("first").after(Duration::from_secs(2)), Step::say("second")];
        let open = Stage::new(id, script).open().await;
        let sending = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            steer(&open.session, "wait, more").await.unwrap();
        };
        let (answer, ()) = tokio::join!(open.session.execute("hi"), sending);
        assert_eq!(answer.unwrap(), "second", "{id}");
        open.ended(TurnStatus::Success);
        let expected =
            [said(User, "hi"), said(Assistant, "first"), said(User, "wait, more"), said(Assistant, "second")];
        assert_eq!(open.said(), expected);
    }
}

#[tokio::test]
async fn between_turns_a_message_is_refused_and_nothing_leaks_into_the_next() {
    for id in LOOPS {
        let open = Stage::new(id, ["one", "two"]).open().await;
        assert!(steer(&open.session, "too early").await.unwrap_err().contains("send it as a prompt"), "{id}");
        open.session.execute("hi").await.unwrap();
        assert!(steer(&open.session, "too late").await.is_err());
        open.session.execute("again").await.unwrap();
        assert_eq!(open.said().len(), 4);
        let wrong = open.session.coordinator().call_capability("session.steer", json!({"text": "x"})).await;
        assert!(wrong.unwrap_err().to_string().contains("message"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_failing_turn_did_not_take_up_is_told_and_not_kept() {
    for id in LOOPS {
        let error =
            Step::from(LlmError::new(LlmErrorKind::Authentication, "no")).after(Duration::from_secs(2));
        let open = Stage::new(id, [error, Step::say("next")]).open().await;
        let sending = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            steer(&open.session, "never read").await.unwrap();
        };
        let (failed, ()) = tokio::join!(open.session.execute("hi"), sending);
        assert!(failed.is_err(), "{id}");
        open.ended(TurnStatus::Error);
        let told = open.recorder().of::<UserNotification>();
        assert!(told.len() == 1 && told[0].message.contains("1 message(s)"), "{told:?}");
        assert_eq!(open.session.execute("again").await.unwrap(), "next");
        assert!(!open.said().contains(&said(User, "never read")));
    }
}
