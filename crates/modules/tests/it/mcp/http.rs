//! Servers over HTTP that refuse, forget and lead elsewhere: no call is carried out twice, and no key goes elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use amplifier_testing::http::{End, Reply, Request, Server};

use super::*;

/// A server whose one tool counts how often it was carried out. What a call is answered with is the test's to say; nothing
/// means that it went well.
async fn counting(
    answer: impl Fn(&Value, usize) -> Option<Reply> + Send + Sync + 'static,
) -> (Server, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let server = Server::start(move |request| {
        if request.method != "POST" {
            return Reply::new(405, "");
        }
        let message: Value = serde_json::from_slice(&request.body).unwrap();
        let id = &message["id"];
        let result = |result: Value| Some(json!({"jsonrpc": "2.0", "id": id, "result": result}));
        let said = match message["method"].as_str().unwrap_or_default() {
            "initialize" => result(json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "counting", "version": "1"},
            })),
            "tools/list" => result(json!({"tools": [{"name": "act", "inputSchema": {"type": "object"}}]})),
            "tools/call" => match answer(id, count.fetch_add(1, Ordering::SeqCst)) {
                Some(reply) => return reply,
                None => result(json!({"content": [{"type": "text", "text": "done"}]})),
            },
            _ => None,
        };
        match said {
            Some(said) => as_json(200, &said).with("mcp-session-id", "one"),
            None => Reply::new(202, ""),
        }
    })
    .await;
    (server, calls)
}

fn as_json(status: u16, body: &Value) -> Reply {
    Reply::new(status, body.to_string()).with("content-type", "application/json")
}

fn refusing(id: Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

async fn open(server: &Server, headers: Value) -> Stage {
    let url = server.url("/mcp?key=word-of-the-address");
    let entry = json!({"url": url, "headers": headers, "protocol": "initialize"});
    Stage::open(json!({"servers": {"far": entry}, "wait": 30, "max_restarts": 0}), &[]).await
}

/// Makes a call and says what the model was told.
async fn act(stage: &Stage) -> String {
    let result = stage.call("mcp__far__act", json!({})).await;
    result.error_message().map_or_else(|| result.output.to_string(), str::to_owned)
}

#[tokio::test]
async fn a_call_that_fails_with_words_about_sessions_is_not_repeated() {
    let (server, calls) = counting(|id, _| {
        Some(as_json(200, &refusing(id.clone(), -32602, "unknown session id; the order was placed")))
    })
    .await;
    let stage = open(&server, json!({})).await;
    let told = act(&stage).await;
    assert!(told.contains("refused: unknown session id; the order was placed (code -32602)"), "{told}");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    stage.close().await;
}

#[tokio::test]
async fn a_call_whose_outcome_is_unknown_is_not_repeated_and_the_next_one_reconnects() {
    let answers: [fn() -> Reply; 4] = [
        || as_json(400, &refusing(Value::Null, -32000, "Bad Request: No valid session ID provided")),
        || Reply::new(400, "session not found").with("content-type", "text/plain"),
        || Reply::new(502, "unknown session").with("content-type", "text/plain"),
        || as_json(200, &json!({"jsonrpc": "2.0"})).ending(End::Torn),
    ];
    for (number, reply) in answers.into_iter().enumerate() {
        let (server, calls) = counting(move |_, before| (before == 0).then(reply)).await;
        let stage = open(&server, json!({})).await;
        let told = act(&stage).await;
        assert!(
            told.contains("The outcome of the call is unknown, so it is not repeated"),
            "{number}: {told}"
        );
        assert_eq!(calls.load(Ordering::SeqCst), 1, "{number}");
        assert_eq!(act(&stage).await, "\"done\"", "{number}");
        assert_eq!(calls.load(Ordering::SeqCst), 2, "{number}");
        stage.close().await;
    }
}

#[tokio::test]
async fn a_session_that_a_server_does_not_know_is_begun_anew_for_the_same_call() {
    // By the protocol, 404 comes before anything is done.
    let (server, calls) = counting(|_, before| (before == 0).then(|| Reply::new(404, ""))).await;
    let stage = open(&server, json!({})).await;
    assert_eq!(act(&stage).await, "\"done\"");
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    stage.close().await;
}

#[tokio::test]
async fn a_redirect_to_another_server_gets_no_header_and_names_both_addresses() {
    let other = Server::start(|_| Reply::new(200, "{}")).await;
    for status in [301, 302, 303, 307, 308] {
        let to = other.url("/mcp?token=word-of-the-target");
        let first =
            Server::start(move |_: &Request| Reply::new(status, "").with("location", to.as_str())).await;
        let headers = json!({"Authorization": "Bearer secret-word", "X-Custom": "secret-word"});
        let stage = open(&first, headers).await;
        let warned = stage.warnings().join("\n");
        let named = format!("`{}` redirects to `{}`, which is not followed", first.url(""), other.url(""));
        assert!(warned.contains(&named), "{status}: {warned}");
        assert!(!warned.contains("word"), "{status}: {warned}");
        stage.close().await;
    }
    assert_eq!(other.log(), Vec::<String>::new());
}

#[tokio::test]
async fn a_redirect_in_the_middle_of_a_session_is_not_followed_either() {
    let other = Server::start(|_| Reply::new(200, "{}")).await;
    let to = other.url("/elsewhere");
    let (server, _) = counting(move |_, _| Some(Reply::new(307, "").with("location", to.as_str()))).await;
    let stage = open(&server, json!({"X-Custom": "secret-word"})).await;
    let told = act(&stage).await;
    assert!(told.contains(&format!("redirects to `{}`", other.url(""))), "{told}");
    assert_eq!(other.log(), Vec::<String>::new());
    stage.close().await;
}
