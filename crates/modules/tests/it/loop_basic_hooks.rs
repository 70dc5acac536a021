//! `loop-basic`: what hooks may do to a turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler};
use amplifier_core::hooks::HookSpec;
use amplifier_core::session::Session;
use amplifier_protocol::event::{OrchestratorComplete, ToolPre, TurnStatus};
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::message::Role;
use amplifier_protocol::tool::ToolCall;
use amplifier_testing::{MockTool, ScriptedProvider, Step, TestSession};
use async_trait::async_trait;
use serde_json::json;

use crate::kit::{call, lines, looping, object, on, passing, stored};

/// A turn with one tool call, and a hook on an event that answers like this.
async fn hooked(event: &str, answer: HookResult) -> (TestSession, Arc<ScriptedProvider>, Arc<MockTool>) {
    let model = Arc::new(ScriptedProvider::new([Step::call([call("c", "t")]), "done".into()]));
    let tool = Arc::new(MockTool::new("t").return_value(json!({"v": 1})));
    let (spec, handler) = on(event, answer);
    let session = looping(json!({}))
        .await
        .provider(model.clone())
        .tool(tool.clone())
        .hook(spec, handler)
        .open()
        .await
        .unwrap();
    (session, model, tool)
}

#[tokio::test]
async fn a_denied_prompt_is_answered_with_the_reason_and_leaves_no_trace_in_the_conversation() {
    let (session, model, _) = hooked("prompt:submit", HookResult::deny("not today")).await;
    assert_eq!(session.execute("go").await.unwrap(), "Operation denied: not today");
    assert_eq!((model.request_count(), stored(&session).await.len()), (0, 0));
    for once in
        ["prompt:submit", "execution:start", "execution:end", "prompt:complete", "orchestrator:complete"]
    {
        assert_eq!(session.recorder().count(once), 1, "{once}");
    }
    assert_eq!(session.recorder().of::<OrchestratorComplete>()[0].status, TurnStatus::Denied);
}

#[tokio::test]
async fn a_changed_prompt_is_what_the_model_reads() {
    let (session, model, _) =
        hooked("prompt:submit", HookResult::modify(object(json!({"prompt": "better"})))).await;
    session.execute("go").await.unwrap();
    assert_eq!(lines(&model.requests()[0].messages), ["user: better"]);
}

#[tokio::test]
async fn a_denied_request_ends_the_turn_with_the_reason() {
    let (session, model, _) = hooked("provider:request", HookResult::deny("no money")).await;
    assert_eq!(session.execute("go").await.unwrap(), "Operation denied: no money");
    assert_eq!(model.request_count(), 0);
    assert_eq!(session.recorder().of::<OrchestratorComplete>()[0].status, TurnStatus::Denied);
}

#[tokio::test]
async fn a_denied_tool_is_not_run_and_tells_the_model_why() {
    let (session, _, tool) = hooked("tool:pre", HookResult::deny("no")).await;
    session.execute("go").await.unwrap();
    assert_eq!(lines(&stored(&session).await)[2], "tool: Denied by hook: no");
    assert_eq!((tool.call_count(), session.recorder().count("tool:post")), (0, 0));
}

/// Runs a turn from inside a handler, and answers every announced call by announcing it again.
#[derive(Default)]
struct Again {
    session: OnceLock<Session>,
    heard: AtomicUsize,
}

#[async_trait]
impl HookHandler for Again {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        let session = self.session.get().unwrap();
        match event.read::<ToolPre>() {
            Ok(again) => {
                self.heard.fetch_add(1, Ordering::SeqCst);
                session.coordinator().emit(again).await;
            }
            Err(_) => drop(session.execute("go").await),
        }
        Ok(HookResult::proceed())
    }
}

/// Point 14 of issue 25: calls side by side are as deep as what caused them.
#[tokio::test]
async fn calls_side_by_side_do_not_begin_the_recursion_limit_anew() {
    let heard = async |calls: Vec<ToolCall>| {
        let model = ScriptedProvider::new([Step::call(calls), "done".into()]);
        let again = Arc::new(Again::default());
        let mut builder =
            looping(json!({})).await.provider(Arc::new(model)).tool(Arc::new(MockTool::new("t")));
        for event in ["tool:pre", "x:go"] {
            builder = builder.hook(HookSpec::new(event.parse().unwrap(), event), again.clone());
        }
        let session = builder.open().await.unwrap();
        assert!(again.session.set((*session).clone()).is_ok());
        session.coordinator().emit_named("x:go".parse().unwrap(), object(json!({}))).await;
        again.heard.load(Ordering::SeqCst)
    };
    let one = heard(vec![call("a", "t")]).await;
    assert!(one > 1, "{one}");
    assert_eq!(heard(vec![call("a", "t"), call("b", "t")]).await, 2 * one);
}

#[tokio::test]
async fn arguments_that_a_hook_changed_are_what_the_tool_gets() {
    let changed = json!({"tool_name": "t", "tool_input": {"safe": true}});
    let (session, _, tool) = hooked("tool:pre", HookResult::modify(object(changed))).await;
    session.execute("go").await.unwrap();
    assert_eq!(tool.last_input(), Some(json!({"safe": true})));
}

#[tokio::test]
async fn a_result_that_a_hook_changed_is_what_the_model_reads() {
    for (changed, text) in [
        (json!({"tool_name": "t", "result": {"success": true, "output": "clean"}}), "tool: clean"),
        (json!({"tool_name": "t", "result": "bare"}), "tool: bare"),
        (json!({"tool_name": "t", "result": {"any": "thing"}}), "tool: {\"any\":\"thing\"}"),
    ] {
        let (session, _, _) = hooked("tool:post", HookResult::modify(object(changed))).await;
        session.execute("go").await.unwrap();
        assert_eq!(lines(&stored(&session).await)[2], text);
    }
}

#[tokio::test]
async fn lasting_words_of_the_tool_phase_stand_behind_the_results() {
    for event in ["tool:pre", "tool:post"] {
        let (session, model, _) = hooked(event, HookResult::inject("lint: fine")).await;
        session.execute("go").await.unwrap();
        let roles: Vec<_> = stored(&session).await.iter().map(|message| message.role).collect();
        assert_eq!(
            roles,
            [Role::User, Role::Assistant, Role::Tool, Role::System, Role::Assistant],
            "{event}"
        );
        assert_eq!(lines(&model.requests()[1].messages)[3], "system: lint: fine");
    }
}

#[tokio::test]
async fn passing_words_end_the_next_request_and_are_not_stored() {
    for (event, request, last) in [
        ("prompt:submit", 0, "user: INJ"),
        ("provider:request", 0, "user: INJ"),
        ("tool:pre", 1, "user: INJ"),
        ("tool:post", 1, "user: INJ"),
    ] {
        let (session, model, _) = hooked(event, passing("INJ")).await;
        session.execute("go").await.unwrap();
        let sent = lines(&model.requests()[request].messages);
        assert_eq!(sent.last().map(String::as_str), Some(last), "{event}");
        assert_eq!(sent.iter().filter(|line| line.contains("INJ")).count(), 1);
        assert!(!lines(&stored(&session).await).iter().any(|line| line.contains("INJ")), "{event}");
    }
}
