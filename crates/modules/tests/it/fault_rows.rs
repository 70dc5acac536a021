//! Everything a service can do wrong, through a real session: the kind of the error, how often it was tried, and that the
//! turn recovers or ends with a clear message.

use std::time::{Duration, Instant};

use amplifier_core::contracts::TurnError;
use amplifier_core::session::ExecuteError;
use amplifier_protocol::event::{LlmStreamAborted, ProviderRetry};
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind as Kind};
use amplifier_testing::TestSession;
use serde_json::{Value, json};

use crate::fault::{Act, FaultServer, delta, done, event, opened, refuses, says};
use crate::kit::{built_in, object};

/// A session that asks this server, with waits too short to notice and two retries.
pub(crate) async fn session(server: &FaultServer, more: Value) -> TestSession {
    let mut config = json!({
        "base_url": server.url(), "api_key": "sk-very-secret-key", "model": "m",
        "min_retry_delay": 0.001, "max_retry_delay": 0.001, "max_retries": 2,
    });
    config.as_object_mut().unwrap().extend(object(more));
    TestSession::builder()
        .module(built_in("loop-streaming").await)
        .module(built_in("context-simple").await)
        .module_with(built_in("provider-chat-completions").await, object(config))
        .open()
        .await
        .unwrap()
}

pub(crate) fn model_error(result: Result<String, ExecuteError>) -> LlmError {
    match result.unwrap_err() {
        ExecuteError::Turn(TurnError::Model(error)) => error,
        other => panic!("{other}"),
    }
}

pub(crate) async fn fails(server: &FaultServer, more: Value) -> (LlmError, TestSession) {
    let session = session(server, more).await;
    let error = model_error(session.execute("hi").await);
    (error, session)
}

#[tokio::test]
async fn every_status_has_its_kind_and_its_number_of_tries() {
    let rows = [
        (400, Kind::InvalidRequest, 1),
        (401, Kind::Authentication, 1),
        (403, Kind::AccessDenied, 1),
        (404, Kind::NotFound, 1),
        (408, Kind::Timeout, 3),
        (409, Kind::InvalidRequest, 3),
        (413, Kind::ContextLength, 1),
        (429, Kind::RateLimit, 3),
        (500, Kind::ProviderUnavailable, 3),
        (502, Kind::ProviderUnavailable, 3),
        (503, Kind::ProviderUnavailable, 3),
        (529, Kind::ProviderUnavailable, 3),
    ];
    for (status, kind, tries) in rows {
        let body = json!({"error": {"message": "it says: sk-very-secret-key is wrong"}});
        let server = FaultServer::start(vec![refuses(status, &[], body)]).await;
        let (error, session) = fails(&server, json!({})).await;
        assert_eq!((error.kind, error.status_code), (kind, Some(status)), "{error}");
        assert_eq!(server.asked().len(), tries, "{status}");
        assert_eq!(session.recorder().of::<ProviderRetry>().len(), tries - 1, "{status}");
        assert_eq!(error.provider.as_deref(), Some("chat-completions"));
        assert!(!error.to_string().contains("very-secret"), "{error}");
    }
}

#[tokio::test]
async fn a_service_that_recovers_is_answered_and_its_wait_is_a_floor() {
    let limited = refuses(429, &[("retry-after-ms", "150")], json!({"error": {"message": "slow down"}}));
    let server = FaultServer::start(vec![limited, says("all is well")]).await;
    let session = session(&server, json!({})).await;
    let began = Instant::now();
    assert_eq!(session.execute("hi").await.unwrap(), "all is well");
    assert!(began.elapsed() >= Duration::from_millis(150));
    let retries = session.recorder().of::<ProviderRetry>();
    assert_eq!((retries.len(), retries[0].attempt, retries[0].max_retries), (1, 1, 2));
    assert!(retries[0].delay >= 0.15, "{}", retries[0].delay);
    assert_eq!(retries[0].error_type, "RateLimitError");
}

#[tokio::test]
async fn a_wait_longer_than_allowed_ends_the_call_at_once() {
    let server = FaultServer::start(vec![refuses(429, &[("retry-after", "3600")], json!({}))]).await;
    let (error, _) = fails(&server, json!({})).await;
    assert_eq!((error.kind, error.retry_after, server.asked().len()), (Kind::RateLimit, Some(3600.0), 1));
}

#[tokio::test]
async fn silence_before_and_inside_an_answer_ends_in_time() {
    let slow = vec![Act::Hang];
    let server = FaultServer::start(vec![slow.clone(), slow, says("late but here")]).await;
    let session = session(&server, json!({"first_byte_timeout": 0.2})).await;
    assert_eq!(session.execute("hi").await.unwrap(), "late but here");
    assert_eq!(server.asked().len(), 3);

    let server =
        FaultServer::start(vec![vec![opened(), delta(json!({"content": "half "})), Act::Hang]]).await;
    let (error, session) = fails(&server, json!({"idle_timeout": 0.2})).await;
    assert_eq!((error.kind, error.retryable), (Kind::Timeout, false), "{error}");
    assert!(error.message.contains("after 5 characters"), "{error}");
    assert_eq!(server.asked().len(), 1, "what was shown is not shown twice");
    assert_eq!(session.recorder().of::<LlmStreamAborted>().len(), 1);
    server.closed_early().await;

    let endless: Vec<_> =
        std::iter::once(opened()).chain((0..3).map(|_| delta(json!({"content": ""})))).collect();
    let server = FaultServer::start(vec![[endless, vec![Act::Hang]].concat()]).await;
    let (error, _) = fails(&server, json!({"timeout": 0.2, "max_retries": 1})).await;
    assert_eq!((error.kind, server.asked().len()), (Kind::Timeout, 2), "{error}");
    assert!(error.message.contains("longer than 0.2 s"), "{error}");
}

#[tokio::test]
async fn a_cut_before_anything_was_shown_is_tried_again_and_one_after_is_told() {
    let nothing =
        vec![opened(), delta(json!({"role": "assistant"})), Act::Send(b"40\r\ndata: {\"cho".to_vec())];
    let server = FaultServer::start(vec![nothing, says("whole")]).await;
    let session = session(&server, json!({})).await;
    assert_eq!(session.execute("hi").await.unwrap(), "whole");

    let half =
        vec![opened(), delta(json!({"content": "The answer"})), Act::Send(b"40\r\ndata: {\"cho".to_vec())];
    let server = FaultServer::start(vec![half]).await;
    let (error, session) = fails(&server, json!({})).await;
    assert_eq!((error.kind, server.asked().len()), (Kind::Stream, 1), "{error}");
    let pieces = session.recorder().events("content_block:delta");
    let shown: String = pieces.iter().map(|(_, data)| data["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(shown, "The answer");
    let ends = session.recorder().events("content_block:end");
    assert_eq!(ends[0].1["block"], json!({"type": "text", "text": "The answer", "incomplete": true}));
}

fn call_piece(id: Value, arguments: &str) -> Act {
    let call = json!({"index": 0, "id": id, "type": "function", "function": {"name": "echo", "arguments": arguments}});
    delta(json!({"tool_calls": [call]}))
}

#[tokio::test]
async fn a_cut_inside_the_arguments_of_a_call_goes_on_behind_the_text_that_was_shown() {
    let cut = vec![
        opened(),
        delta(json!({"content": "Let me look."})),
        call_piece(json!("call_1"), "{\"text\": \"a"),
        Act::Send(b"ff\r\ndata:".to_vec()),
    ];
    let again =
        [vec![opened(), call_piece(json!("call_2"), "{\"text\": \"abc\"}")], done("tool_calls")].concat();
    let server = FaultServer::start(vec![cut, again, says("Done.")]).await;
    let config = json!({"base_url": server.url(), "model": "m", "min_retry_delay": 0.001});
    let session = TestSession::builder()
        .module(built_in("loop-streaming").await)
        .module(built_in("context-simple").await)
        .module(built_in("tool-echo").await)
        .module_with(built_in("provider-chat-completions").await, object(config))
        .open()
        .await
        .unwrap();
    assert_eq!(session.execute("hi").await.unwrap(), "Done.");
    let asked = server.asked();
    assert_eq!(asked.len(), 3);
    let last = asked[1].body["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last, json!({"role": "assistant", "content": "Let me look."}));
    let third = asked[2].body["messages"].as_array().unwrap();
    assert_eq!(
        third.iter().map(|m| m["role"].as_str().unwrap()).collect::<Vec<_>>(),
        ["user", "assistant", "tool"]
    );
    assert_eq!(third[1]["content"], json!("Let me look."));
    assert_eq!(third[1]["tool_calls"][0]["id"], json!("call_2"));
    let texts: Vec<_> = session
        .recorder()
        .events("content_block:delta")
        .into_iter()
        .filter(|(_, data)| data["block_type"] == json!("text"))
        .map(|(_, data)| data["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts, ["Let me look.", "Done."]);
}

#[tokio::test]
async fn behind_thoughts_alone_nothing_is_gone_on_with() {
    let cut = vec![
        opened(),
        delta(json!({"reasoning_content": "I should look."})),
        call_piece(json!("call_1"), "{\"text\": \"a"),
        Act::Send(b"ff\r\ndata:".to_vec()),
    ];
    let server = FaultServer::start(vec![cut, says("never asked for")]).await;
    let (error, session) = fails(&server, json!({})).await;
    assert_eq!((error.kind, error.retryable, server.asked().len()), (Kind::Stream, false, 1), "{error}");
    assert!(error.message.contains("broke off behind a complete part"), "{error}");
    assert_eq!(session.recorder().events("thinking:delta").len(), 1, "a thought is shown once");
}

#[tokio::test]
async fn a_service_that_refuses_to_go_on_leaves_the_first_error_to_tell() {
    let cut = || {
        let call = call_piece(json!("call_1"), "{\"text\": \"a");
        vec![opened(), delta(json!({"content": "Let me look."})), call, Act::Send(b"ff\r\ndata:".to_vec())]
    };
    let refusal = refuses(400, &[], json!({"error": {"message": "the last message must be the user's"}}));
    let server = FaultServer::start(vec![cut(), refusal]).await;
    let (error, _) = fails(&server, json!({})).await;
    assert_eq!((error.kind, error.retryable, error.status_code), (Kind::Stream, false, None), "{error}");
    for told in ["broke off behind a complete part", "going on from there was refused", "must be the user's"]
    {
        assert!(error.message.contains(told), "{error}");
    }
    assert_eq!(server.asked().len(), 2);

    let server = FaultServer::start(vec![cut(), refuses(503, &[], json!({}))]).await;
    let (error, _) = fails(&server, json!({})).await;
    assert_eq!((error.kind, error.retryable), (Kind::ProviderUnavailable, false), "{error}");
    assert!(error.message.contains("broke off behind a complete part"), "{error}");
    assert_eq!(server.asked().len(), 3);
}

#[tokio::test]
async fn garbage_and_pages_are_told_for_what_they_are() {
    let garbage = vec![opened(), Act::Chunk("data: {\"choices\": [{]\n\n".to_owned()), Act::Last];
    let server = FaultServer::start(vec![garbage]).await;
    let (error, _) = fails(&server, json!({})).await;
    assert_eq!((error.kind, server.asked().len()), (Kind::Stream, 3), "{error}");
    assert!(error.message.contains("no JSON"), "{error}");

    let page = vec![Act::Chunked(200, "text/html"), Act::Chunk("<html>Welcome</html>".to_owned()), Act::Last];
    let server = FaultServer::start(vec![page]).await;
    let (error, _) = fails(&server, json!({})).await;
    assert_eq!((error.kind, server.asked().len()), (Kind::ProviderUnavailable, 3), "{error}");
    assert!(error.message.contains("`text/html`") && error.message.contains("Welcome"), "{error}");

    let inside = vec![opened(), event(&json!({"error": {"code": 503, "message": "overloaded"}})), Act::Last];
    let server = FaultServer::start(vec![inside, says("better")]).await;
    assert_eq!(session(&server, json!({})).await.execute("hi").await.unwrap(), "better");
}

#[tokio::test]
async fn answers_without_end_are_cut_at_the_limit() {
    let megabyte = vec![b'x'; 1 << 20];
    let large =
        vec![Act::Head(200, vec![("content-type", "application/json".to_owned())]), Act::Forever(megabyte)];
    let server = FaultServer::start(vec![large]).await;
    let before = resident();
    let (error, _) = fails(&server, json!({"max_response_bytes": 4 << 20})).await;
    assert_eq!((error.kind, error.retryable, server.asked().len()), (Kind::Stream, false, 1), "{error}");
    assert!(error.message.contains("larger than 4194304 bytes"), "{error}");
    server.closed_early().await;

    let frame = "data: {\"choices\":[{\"delta\":{\"x\":\"y\"}}]}\n\n";
    let word = format!("{:x}\r\n{frame}\r\n", frame.len()).into_bytes();
    let server = FaultServer::start(vec![vec![opened(), Act::Forever(word)]]).await;
    let (error, _) = fails(&server, json!({"max_response_bytes": 1 << 20})).await;
    assert_eq!((error.kind, error.retryable, server.asked().len()), (Kind::Stream, false, 1), "{error}");
    let grown = resident().saturating_sub(before);
    assert!(grown < 100 << 20, "memory grew by {grown} bytes");
}

/// How much memory this process holds.
pub(crate) fn resident() -> u64 {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return 0 };
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() * 1024
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_the_key_stays_here() {
    let other = FaultServer::start(vec![says("stolen")]).await;
    for status in [301, 302, 307, 308] {
        let to = format!("{}/chat/completions?token=abc", other.url());
        let server = FaultServer::start(vec![refuses(status, &[("location", &to)], json!({}))]).await;
        let (error, _) = fails(&server, json!({})).await;
        assert_eq!((error.kind, server.asked().len()), (Kind::Configuration, 1), "{error}");
        assert!(
            error.message.contains("redirects to `http://127.0.0.1:") && !error.message.contains("abc"),
            "{error}"
        );
    }
    assert!(other.asked().is_empty());
}

#[tokio::test]
async fn nobody_there_is_a_network_error_that_is_tried_again_unless_nobody_is_on_this_machine() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let server = FaultServer::start(vec![]).await;
    let here = json!({"base_url": format!("{nobody}/v1")});
    // Whoever is behind a way that is closed now may be there in a moment.
    let elsewhere = json!({"base_url": "http://service.invalid/v1", "proxy": nobody});
    for (config, tries) in [(here, 0), (elsewhere, 2)] {
        let (error, session) = fails(&server, config).await;
        assert_eq!(error.kind, Kind::Network, "{error}");
        assert_eq!(session.recorder().of::<ProviderRetry>().len(), tries, "{error}");
    }
}
