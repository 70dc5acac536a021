//! `provider-mock` in a session: scripts, failures, pieces, and answers without a script.

use std::time::Duration;

use amplifier_core::contracts::TurnError;
use amplifier_core::session::ExecuteError;
use amplifier_protocol::event::{LlmResponse, ProviderResponse};
use amplifier_protocol::llm_error::LlmErrorKind;
use amplifier_testing::{EchoTool, TestSession};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::kit::{built_in, lines, looping, object, stored};

async fn with_mock(config: Value) -> TestSession {
    let mock = built_in("provider-mock").await;
    let echo = built_in("tool-echo").await;
    looping(json!({})).await.module_with(mock, object(config)).module(echo).open().await.unwrap()
}

async fn ask(session: &TestSession, times: usize) -> Vec<String> {
    let mut answers = Vec::new();
    for _ in 0..times {
        answers.push(session.execute("hi").await.unwrap_or_else(|error| format!("failed: {error}")));
    }
    answers
}

#[tokio::test]
async fn a_script_is_played_in_order_and_then_as_the_plan_says() {
    for (rule, expected) in [
        (json!("repeat"), ["a", "b", "a", "b"]),
        (json!("last"), ["a", "b", "b", "b"]),
        (Value::Null, ["a", "b", "b", "b"]),
    ] {
        let mut config = json!({"responses": ["a", {"text": "b"}]});
        if !rule.is_null() {
            config["on_exhausted"] = rule;
        }
        assert_eq!(ask(&with_mock(config).await, 4).await, expected);
    }
    let answers = ask(&with_mock(json!({"responses": ["a"], "on_exhausted": "error"})).await, 2).await;
    assert!(answers[1].contains("all 1 scripted responses are used up"), "{answers:?}");
}

#[tokio::test]
async fn a_script_that_ends_with_a_call_does_not_go_round_for_ever() {
    let config = json!({"responses": [{"tool_calls": [{"name": "echo", "arguments": {"text": "hello"}}]}]});
    let session = with_mock(config).await;
    assert_eq!(ask(&session, 1).await, ["`echo` said:\nhello"]);
}

#[tokio::test]
async fn no_two_calls_of_a_session_share_an_id() {
    let call = json!({"tool_calls": [{"name": "echo", "arguments": {"text": "x"}}, {"name": "echo", "arguments": {}}]});
    let session = with_mock(json!({"responses": [call, call, "done"], "on_exhausted": "repeat"})).await;
    ask(&session, 3).await;
    let kept = stored(&session).await;
    let ids: Vec<_> = kept.iter().filter_map(|message| message.tool_call_id.clone()).collect();
    let unique: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!((ids.len(), unique.len()), (12, 12));
}

#[tokio::test(start_paused = true)]
async fn failures_delays_and_usage_are_as_scripted() {
    let session = with_mock(json!({"responses": [
        {"error": {"kind": "rate_limit", "message": "slow down", "retryable": false, "retry_after": 3.5}},
        {"text": "late", "delay_ms": 4000, "usage": {"input_tokens": 7, "output_tokens": 2}},
    ]}))
    .await;
    let error = session.execute("hi").await.unwrap_err();
    let ExecuteError::Turn(TurnError::Model(error)) = error else { panic!("{error}") };
    assert_eq!((error.kind, error.retryable, error.retry_after), (LlmErrorKind::RateLimit, false, Some(3.5)));
    assert_eq!(error.provider.as_deref(), Some("mock"));
    let began = tokio::time::Instant::now();
    assert_eq!(session.execute("hi").await.unwrap(), "late");
    assert_eq!(began.elapsed(), Duration::from_secs(4));
    assert_eq!(session.status().total_input_tokens, 7);
    let told = session.recorder().of::<LlmResponse>();
    assert_eq!(told.iter().map(|told| told.status.as_str()).collect::<Vec<_>>(), ["error", "ok"]);
    let sent = &session.recorder().events("llm:response")[1].1["usage"];
    assert_eq!(*sent, json!({"input_tokens": 7, "output_tokens": 2}), "a total is not told on the wire");
    let told = session.recorder().of::<ProviderResponse>();
    assert_eq!(told[0].usage.as_ref().unwrap().total_tokens, 9);
}

#[tokio::test]
async fn thoughts_and_pieces_are_streamed_and_the_whole_answer_is_kept() {
    let session = with_mock(json!({"responses": [{"thinking": "hm", "chunks": ["one ", "two"]}]})).await;
    assert_eq!(ask(&session, 1).await, ["one two"]);
    let pieces: Vec<_> = session
        .recorder()
        .events("content_block:delta")
        .into_iter()
        .map(|(_, data)| data["text"].clone())
        .collect();
    assert_eq!(pieces, ["hm", "one ", "two"]);
    assert_eq!(session.recorder().count("thinking:delta"), 1);
}

#[tokio::test]
async fn without_a_script_it_answers_from_the_conversation_and_calls_real_tools() {
    let session = with_mock(json!({})).await;
    assert_eq!(session.execute("hello").await.unwrap(), "You said: hello");
    assert_eq!(session.execute("echo good morning").await.unwrap(), "`echo` said:\ngood morning");
    assert_eq!(session.execute("hello again").await.unwrap(), "You said: hello again");
    assert_eq!(lines(&stored(&session).await)[4], "tool: good morning");
}

#[tokio::test]
async fn a_script_with_a_misspelt_key_does_not_mount() {
    let mock = built_in("provider-mock").await;
    let config = object(json!({"responses": [{"txt": "a"}]}));
    let session =
        looping(json!({})).await.module_with(mock, config).tool(Arc::new(EchoTool)).open().await.unwrap();
    let error = session.execute("hi").await.unwrap_err().to_string();
    assert!(error.contains("No providers mounted") && error.contains("txt"), "{error}");
}
