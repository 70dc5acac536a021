//! Answers as they form, and the distance between questions.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::{Prompt, Provider, ProviderCx, TurnCx};
use amplifier_core::loader::ModuleFinder;
use amplifier_modules::table::BuiltIns;
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::event::{
    ContentBlockDelta, ContentBlockEnd, ContentBlockStart, OrchestratorRateLimitDelay, ThinkingDelta,
    ThinkingFinal, TurnStatus,
};
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::message::Role::Assistant;
use amplifier_protocol::provider::{ModelInfo, ProviderInfo};
use amplifier_protocol::stream::StreamEvent;
use amplifier_protocol::tool::ToolCall;
use amplifier_testing::{MockContextManager, MockTool, ScriptedProvider, Step, TestCoordinator};
use async_trait::async_trait;
use serde_json::{Value, json};

use super::stage::{LOOPS, Open, Stage, calls};

/// A session with the mock provider, which streams thinking, text and arguments.
async fn with_mock(id: &str, responses: Value) -> Open {
    let mock = BuiltIns.find(&"provider-mock".parse().unwrap()).await.unwrap().unwrap();
    let config = super::stage::object(json!({"responses": responses}));
    let stage = Stage::new(id, ["unused"]).config(json!({"default_provider": "mock"}));
    stage.with(|builder| builder.module_with(mock, config)).tool(Arc::new(MockTool::new("t"))).open().await
}

#[tokio::test]
async fn every_block_begins_once_ends_once_whole_and_its_pieces_come_between() {
    let responses = json!([{
        "thinking": "hm", "text": "hello", "chunks": 3, "tool_calls": [{"name": "t", "arguments": {"a": 1}, "id": "c1"}]
    }, "done"]);
    for id in LOOPS {
        let open = with_mock(id, responses.clone()).await;
        assert_eq!(open.session.execute("hi").await.unwrap(), "done", "{id}");
        let recorder = open.recorder();
        let starts: Vec<_> = recorder
            .of::<ContentBlockStart>()
            .into_iter()
            .map(|one| (one.block_index, one.block_type))
            .collect();
        let block = |index, kind: &str| (index, kind.to_owned());
        assert_eq!(starts, [block(0, "thinking"), block(1, "text"), block(2, "tool_call"), block(0, "text")]);
        let ends = recorder.of::<ContentBlockEnd>();
        let ended: Vec<_> =
            ends.iter().map(|end| (end.block_index, end.block["type"].as_str().unwrap())).collect();
        assert_eq!(ended, [(0, "thinking"), (1, "text"), (2, "tool_call"), (0, "text")]);
        assert_eq!((&ends[1].block["text"], &ends[2].block["input"]), (&json!("hello"), &json!({"a": 1})));
        let usages: Vec<_> = ends.iter().map(|end| end.usage.is_some()).collect();
        assert_eq!(usages, [false, false, true, true], "what a call consumed is told once");
        let deltas = recorder.of::<ContentBlockDelta>();
        let joined = |index: u64| -> String {
            let of_first = deltas.iter().take(5).filter(|delta| delta.block_index == index);
            of_first.map(|delta| delta.text.as_str()).collect()
        };
        assert_eq!((joined(0), joined(1), joined(2)), ("hm".into(), "hello".into(), r#"{"a":1}"#.into()));
        assert_eq!(recorder.of::<ThinkingDelta>(), [ThinkingDelta { text: "hm".to_owned() }]);
        assert_eq!(recorder.of::<ThinkingFinal>(), [ThinkingFinal { text: "hm".to_owned() }]);
    }
}

#[tokio::test]
async fn only_loop_streaming_asks_for_pieces_that_nobody_watches() {
    for (id, expected) in [("loop-basic", None), ("loop-streaming", Some(true)), ("loop-events", None)] {
        let hub = TestCoordinator::new();
        let (provider, context) =
            (Arc::new(ScriptedProvider::new(["hello"])), Arc::new(MockContextManager::new()));
        hub.mount_provider(provider.clone());
        hub.mount_context(context);
        let module = BuiltIns.find(&id.parse().unwrap()).await.unwrap().unwrap();
        hub.mount(&*module, json!({})).await.unwrap();
        let cx = TurnCx { coordinator: (*hub).clone(), turn: 1 };
        let answer = hub.orchestrator().unwrap().execute(Prompt::from("hi"), &cx).await;
        assert_eq!(answer.as_deref(), Ok("hello"));
        assert_eq!(provider.requests()[0].stream, expected, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn pieces_are_told_while_the_answer_still_forms() {
    for id in LOOPS {
        let config = json!({"stream_delay": 0.5});
        let step = Step::say("abc").in_chunks(["a", "b", "c"]);
        let open = Stage::new(id, [step]).config(config).open().await;
        let began = tokio::time::Instant::now();
        let watching = async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            open.recorder().of::<ContentBlockDelta>().len()
        };
        let (answer, seen) = tokio::join!(open.session.execute("hi"), watching);
        assert_eq!((answer.unwrap().as_str(), seen), ("abc", 2), "{id}");
        assert_eq!(began.elapsed(), Duration::from_millis(1500), "{id}");
    }
}

/// Says `half` and then nothing more, whether it hears the wish to stop or not.
struct Stuck {
    hears_cancel: bool,
}

#[async_trait]
impl Provider for Stuck {
    fn name(&self) -> &str {
        "stuck"
    }

    fn info(&self) -> ProviderInfo {
        ProviderInfo { id: "stuck".to_owned(), ..ProviderInfo::default() }
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        Ok(Vec::new())
    }

    async fn complete(&self, _request: ChatRequest, cx: &ProviderCx) -> Result<ChatResponse, LlmError> {
        cx.send(StreamEvent::TextDelta { index: 0, text: "half".to_owned() }).await;
        if self.hears_cancel {
            cx.cancel.cancelled(CancelLevel::Immediate).await;
            return Err(LlmError::new(LlmErrorKind::Abort, "cancelled"));
        }
        loop {
            cx.send(StreamEvent::ThinkingDelta { index: 1, text: "and so on".to_owned() }).await;
            tokio::task::yield_now().await;
        }
    }

    fn parse_tool_calls(&self, response: &ChatResponse) -> Vec<ToolCall> {
        response.calls()
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_cut_off_while_the_model_speaks_keeps_what_was_said_and_ends_its_blocks() {
    for (id, hears_cancel) in LOOPS.into_iter().flat_map(|id| [(id, true), (id, false)]) {
        let stage = Stage::new(id, ["unused"]).config(json!({"default_provider": "stuck"}));
        let open = stage.with(|builder| builder.provider(Arc::new(Stuck { hears_cancel }))).open().await;
        let cancelling = async {
            while open.recorder().count("content_block:delta") < 5 && !hears_cancel {
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(Duration::from_millis(if hears_cancel { 500 } else { 0 })).await;
            assert!(open.session.cancel(CancelLevel::Immediate).await);
        };
        let (answer, ()) = tokio::join!(open.session.execute("hi"), cancelling);
        assert_eq!(answer.unwrap(), "half", "{id}");
        open.ended(TurnStatus::Cancelled);
        let starts = open.recorder().count("content_block:start");
        assert_eq!(starts, open.recorder().count("content_block:end"), "{id}");
        assert_eq!(open.recorder().of::<ContentBlockEnd>()[0].block["incomplete"], json!(true));
        assert_eq!(open.recorder().count("provider:error"), 0, "stopping as told is no failure");
        let (role, text) = open.said().pop().unwrap();
        assert!(role == Assistant && text.starts_with("half") && text.contains("cancelled"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_model_calls_of_a_turn_keep_their_distance_and_a_cancel_ends_the_wait() {
    for id in LOOPS {
        let stage = || {
            let stage = Stage::new(id, [calls(1), Step::say("done")]);
            stage.tool(Arc::new(MockTool::new("t").delay(Duration::from_millis(200))))
        };
        let began = tokio::time::Instant::now();
        let (open, _) = stage().config(json!({"min_delay_between_calls_ms": 1000})).play().await;
        assert_eq!(began.elapsed(), Duration::from_millis(1000), "{id}");
        let told =
            OrchestratorRateLimitDelay { delay_ms: 800, configured_ms: 1000, elapsed_ms: 200, iteration: 1 };
        assert_eq!(open.recorder().of::<OrchestratorRateLimitDelay>(), [told]);
        let open = stage().config(json!({"min_delay_between_calls_ms": 500_000})).open().await;
        let cancelling = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(open.session.cancel(CancelLevel::Graceful).await);
        };
        let (answer, ()) = tokio::join!(open.session.execute("hi"), cancelling);
        assert!(answer.is_ok(), "{id}");
        open.ended(TurnStatus::Cancelled);
        assert_eq!(open.provider.request_count(), 1);
    }
}
