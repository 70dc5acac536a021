//! The known cases of the loops. Where the older implementation did worse, the test's name says what is done here.

use std::sync::Arc;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::TurnError;
use amplifier_core::session::ExecuteError;
use amplifier_protocol::chat::ChatResponse;
use amplifier_protocol::event::{
    OrchestratorComplete, PromptComplete, ProviderError, ProviderRequest, ProviderResponse, TurnStatus,
    UserNotification,
};
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::message::Role::{Assistant, Tool as ToolRole, User};
use amplifier_protocol::tool::ToolCall;
use amplifier_testing::{MockTool, Step};
use serde_json::{Value, json};

use super::stage::{FnTool, LOOPS, Stage, calls, object};

fn t() -> Arc<MockTool> {
    Arc::new(MockTool::new("t").return_value(json!({"v": 1})))
}

/// Golden case 11.6: plain text.
#[tokio::test]
async fn plain_text_is_told_in_the_same_order_by_every_loop() {
    for id in LOOPS {
        let (open, answer) = Stage::new(id, ["hello"]).play().await;
        assert_eq!(answer, "hello");
        let expected = [
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
        ];
        assert_eq!(open.turn_events(), expected, "{id}");
        assert_eq!(open.recorder().of::<ProviderRequest>()[0].iteration, 0);
        let end =
            OrchestratorComplete { orchestrator: id.to_owned(), turn_count: 0, status: TurnStatus::Success };
        assert_eq!(open.recorder().of::<OrchestratorComplete>(), [end]);
        assert_eq!(open.said(), [(User, "hi".to_owned()), (Assistant, "hello".to_owned())]);
    }
}

/// An answer that looks whole and is not, or that is none, is told with the answer.
#[tokio::test]
async fn an_answer_that_is_not_whole_or_none_is_told() {
    let cut = |reason: &str| ChatResponse {
        finish_reason: Some(reason.to_owned()),
        ..ChatResponse::text("half of it")
    };
    let table = [
        (Step::from(cut("length")), "half of it", "is not whole: the most tokens"),
        (Step::from(cut("content_filter")), "half of it", "is not whole: the service"),
        (Step::from(ChatResponse::default()), "", "the model answered nothing"),
    ];
    for id in LOOPS {
        for (step, answer, told) in table.clone() {
            let (open, said) = Stage::new(id, [step]).play().await;
            assert_eq!(said, answer, "{id}");
            let heard = open.recorder().of::<UserNotification>();
            assert!(heard.len() == 1 && heard[0].message.contains(told), "{id}: {heard:?}");
        }
        let (open, _) = Stage::new(id, [Step::say("whole")]).play().await;
        assert!(open.recorder().of::<UserNotification>().is_empty());
        let reasons = open.recorder().of::<ProviderResponse>();
        assert_eq!(reasons[0].finish_reason.as_deref(), Some("stop"));
    }
}

/// Golden case 11.6: tool then text; 11.7: any tool:post injection. Better: always the same clean text.
#[tokio::test]
async fn a_tools_result_is_clean_json_with_its_name_whether_or_not_a_hook_spoke() {
    for (id, hook) in LOOPS.into_iter().flat_map(|id| [(id, None), (id, Some(HookResult::inject("a note")))])
    {
        let mut stage = Stage::new(id, [calls(1), Step::say("done")]).tool(t());
        if let Some(result) = hook {
            stage = stage.hook("tool:post", result);
        }
        let (open, answer) = stage.play().await;
        assert_eq!(answer, "done");
        let messages = open.context.messages();
        let result = messages.iter().find(|message| message.role == ToolRole).unwrap();
        assert_eq!(result.content.visible_text(), r#"{"v":1}"#, "{id}");
        assert_eq!(result.name.as_deref(), Some("t"));
        assert_eq!(open.asked(1)[..3], open.said()[..3], "{id}: what is stored is what the model reads");
        assert_eq!(open.provider.requests()[0].tools.as_ref().unwrap()[0].name, "t");
        open.ended(TurnStatus::Success);
        assert_eq!(open.recorder().of::<OrchestratorComplete>()[0].turn_count, 1);
    }
}

/// Golden case 11.6: a call with `{}`. Better: run by every loop.
#[tokio::test]
async fn a_call_without_arguments_is_run() {
    for id in LOOPS {
        for arguments in [json!({}), Value::Null, json!("{}")] {
            let call = Step::call([ToolCall::new("c1", "t", arguments)]);
            let tool = t();
            let (_, answer) = Stage::new(id, [call, Step::say("done")]).tool(tool.clone()).play().await;
            assert_eq!((answer.as_str(), tool.inputs()), ("done", vec![json!({})]), "{id}");
        }
    }
}

/// What a model reads of its call, and the tool events on the way.
async fn read_by_model(stage: Stage) -> (String, Vec<String>) {
    let (open, answer) = stage.play().await;
    assert_eq!(answer, "done");
    let (role, text) = open.asked(1).pop().unwrap();
    assert_eq!(role, ToolRole);
    (text, open.recorder().events("tool:*").into_iter().map(|(name, _)| name).collect())
}

fn one_call(id: &str) -> Stage {
    Stage::new(id, [calls(1), Step::say("done")])
}

/// Golden case 11.6: a missing tool.
#[tokio::test]
async fn a_missing_tool_is_told_to_the_model_and_as_an_error() {
    for id in ["loop-basic", "loop-streaming"] {
        let (text, events) = read_by_model(one_call(id)).await;
        assert_eq!(text, "Error: Tool 't' not found", "{id}");
        assert_eq!(events, ["tool:pre", "tool:error"]);
    }
    let (text, events) = read_by_model(one_call("loop-events")).await;
    assert_eq!(text, "Error: Tool 't' not found");
    assert_eq!(events, ["tool:selecting", "tool:selected", "tool:pre", "tool:error"]);
}

/// Golden case 11.6: a tool returns failure "boom".
#[tokio::test]
async fn a_tools_own_failure_is_an_answer_and_no_error() {
    for id in LOOPS {
        let (text, events) =
            read_by_model(one_call(id).tool(Arc::new(MockTool::new("t").failing("boom")))).await;
        assert_eq!(text, "boom", "{id}");
        assert!(!events.contains(&"tool:error".to_owned()), "{id}: {events:?}");
        assert_eq!(events[events.len() - 2..], ["tool:pre", "tool:post"]);
    }
}

/// Golden case 11.6: a tool raises. Better: the same in every loop.
#[tokio::test]
async fn a_tool_that_breaks_is_an_error_for_the_model_and_the_turn_goes_on() {
    for id in LOOPS {
        let tool = FnTool("t", |_, _| async { panic!("division by zero") });
        let (text, events) = read_by_model(one_call(id).tool(Arc::new(tool))).await;
        assert!(
            text.starts_with("Error executing tool: ") && text.contains("division by zero"),
            "{id}: {text}"
        );
        assert_eq!(events[events.len() - 2..], ["tool:pre", "tool:error"], "{id}");
    }
}

/// Golden case 11.6: tool:pre deny.
#[tokio::test]
async fn a_denied_tool_is_told_with_the_reason_and_has_no_post() {
    for id in LOOPS {
        let tool = t();
        let stage = one_call(id).tool(tool.clone()).hook("tool:pre", HookResult::deny("no"));
        let (text, events) = read_by_model(stage).await;
        assert_eq!((text.as_str(), tool.call_count()), ("Denied by hook: no", 0), "{id}");
        assert!(!events.contains(&"tool:post".to_owned()));
    }
}

/// Golden case 11.6: tool:pre modify. Better: it takes effect.
#[tokio::test]
async fn arguments_that_a_hook_rewrote_are_what_the_tool_gets() {
    for id in LOOPS {
        let tool = t();
        let data = object(json!({"tool_name": "t", "tool_input": {"n": "rewritten"}}));
        let stage = one_call(id).tool(tool.clone()).hook("tool:pre", HookResult::modify(data));
        read_by_model(stage).await;
        assert_eq!(tool.inputs(), [json!({"n": "rewritten"})], "{id}");
    }
}

/// Golden case 11.6: max_iterations 1 with a tool call. Better: a text, and a status of its own.
#[tokio::test]
async fn at_the_limit_the_model_is_asked_once_more_without_tools_and_its_text_is_the_answer() {
    for id in LOOPS {
        let stage = Stage::new(id, [calls(1), Step::say("so far")]).tool(t());
        let (open, answer) = stage.config(json!({"max_iterations": 1})).play().await;
        assert_eq!(answer, "so far");
        open.ended(TurnStatus::MaxIterations);
        let requests = open.provider.requests();
        assert!(requests[0].tools.is_some() && requests[1].tools.is_none(), "{id}");
        let (role, reminder) = open.asked(1).pop().unwrap();
        assert!(role == User && reminder.contains("orchestrator-loop-limit"), "{reminder}");
        let said: Vec<_> = open.said().into_iter().map(|(role, text)| format!("{role:?} {text}")).collect();
        let kept = ["User hi", "Assistant ", "Tool {\"v\":1}", "Assistant so far"];
        assert_eq!(said, kept, "{id}: the reminder is not kept");
        assert_eq!(open.recorder().of::<OrchestratorComplete>()[0].turn_count, 1);
        let asked = open.recorder().of::<ProviderRequest>();
        assert_eq!(asked.iter().map(|one| one.max_reached).collect::<Vec<_>>(), [None, Some(true)]);
        assert_eq!(open.recorder().of::<PromptComplete>()[0].length, 6);
    }
}

/// Golden case 11.6: text exactly at the limit.
#[tokio::test]
async fn text_exactly_at_the_limit_is_a_success_after_one_call() {
    for id in LOOPS {
        let (open, _) = Stage::new(id, ["done"]).config(json!({"max_iterations": 1})).play().await;
        open.ended(TurnStatus::Success);
        assert_eq!((open.provider.request_count(), open.recorder().count("provider:error")), (1, 0), "{id}");
    }
}

/// Golden case 11.6: an empty response. Better: not stored and not repeated.
#[tokio::test]
async fn an_empty_answer_ends_the_turn_at_once_and_is_not_stored() {
    for id in LOOPS {
        let stage = Stage::new(id, [ChatResponse::default()]).config(json!({"max_iterations": 2}));
        let (open, answer) = stage.play().await;
        assert_eq!((answer.as_str(), open.provider.request_count()), ("", 1), "{id}");
        open.ended(TurnStatus::Incomplete);
        assert_eq!(open.recorder().of::<OrchestratorComplete>()[0].turn_count, 0);
        assert_eq!(open.said(), [(User, "hi".to_owned())]);
    }
}

/// Golden case 11.6: provider error 429. Better: every loop ends its turn.
#[tokio::test]
async fn a_failed_model_call_travels_unchanged_and_the_turn_says_so_once() {
    for id in LOOPS {
        let error =
            LlmError { status_code: Some(429), ..LlmError::new(LlmErrorKind::RateLimit, "slow down") };
        let open = Stage::new(id, [error.clone()]).open().await;
        let failed = open.session.execute("hi").await.unwrap_err();
        assert!(matches!(failed, ExecuteError::Turn(TurnError::Model(found)) if found == error), "{id}");
        open.ended(TurnStatus::Error);
        let told = open.recorder().of::<ProviderError>();
        assert_eq!(told.len(), 1);
        assert_eq!((told[0].retryable, told[0].status_code), (Some(true), Some(429)));
        assert_eq!(told[0].error.kind, "RateLimitError");
    }
}

/// Golden case 11.6: prompt denied. Better: the status says so.
#[tokio::test]
async fn a_denied_prompt_ends_as_denied_and_reaches_nobody() {
    for id in LOOPS {
        let stage = Stage::new(id, ["never"]).hook("prompt:submit", HookResult::deny("not today"));
        let (open, answer) = stage.play().await;
        assert_eq!(answer, "Operation denied: not today", "{id}");
        open.ended(TurnStatus::Denied);
        assert!(open.said().is_empty() && open.provider.request_count() == 0);
    }
}

/// Golden case 11.6: graceful and immediate cancel during a tool.
#[tokio::test]
async fn a_cancelled_turn_keeps_the_result_closes_the_conversation_and_says_so_once() {
    for (id, level) in
        LOOPS.into_iter().flat_map(|id| [(id, CancelLevel::Graceful), (id, CancelLevel::Immediate)])
    {
        let tool = FnTool("t", move |_, cx: amplifier_core::contracts::ToolCx| async move {
            cx.cancel.request(level);
            Ok(json!("finished"))
        });
        let open = Stage::new(id, [calls(1), Step::say("never")]).tool(Arc::new(tool)).open().await;
        assert_eq!(open.session.execute("hi").await.unwrap(), "", "{id} {level}");
        open.ended(TurnStatus::Cancelled);
        assert_eq!(open.provider.request_count(), 1);
        let said = open.said();
        assert_eq!(said[2], (ToolRole, "finished".to_owned()));
        assert!(said[3].0 == Assistant && said[3].1.contains("cancelled") && said.len() == 4, "{said:?}");
    }
}

#[tokio::test]
async fn a_wrong_provider_name_and_a_value_out_of_bounds_are_told_when_the_session_opens() {
    let config = json!({
        "default_provider": "nowhere", "fallback_providers": ["scripted", "gone"], "max_parallel_tools": 0,
        "stream_delay": -1, "min_delay_between_calls_ms": 900_000, "max_iteration": 3, "goal_stall_threshold": 3
    });
    let open = Stage::new("loop-streaming", ["hello"]).config(config).open().await;
    let report = format!("{:?}", open.session.report());
    for told in ["`nowhere`, `gone`", "`max_parallel_tools` is 0", "`stream_delay` is -1", "taken as 600000"]
    {
        assert!(
            report.contains(told) || open.recorder().names().iter().any(|name| name == told),
            "{told}: {report}"
        );
    }
    assert!(report.contains("unknown config key `max_iteration`") && report.contains("`max_iterations`"));
    assert!(report.contains("unknown config key `goal_stall_threshold`"));
    assert_eq!(open.session.execute("hi").await.unwrap(), "hello", "the first provider is asked instead");
}
