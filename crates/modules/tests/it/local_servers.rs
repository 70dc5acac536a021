//! `provider-ollama` and `provider-vllm` against servers that answer as theirs do.

use amplifier_core::contracts::{Provider, ProviderCx};
use amplifier_protocol::chat::ChatRequest;
use amplifier_protocol::llm_error::LlmErrorKind;
use amplifier_testing::{TestCoordinator, TestSession, conformance, wire};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::fault::{Act, FaultServer, refuses, says};
use crate::kit::{built_in, object};

fn show() -> Vec<Act> {
    let told = json!({"model_info": {"llama.context_length": 16_384}, "capabilities": ["completion", "tools", "thinking"]});
    refuses(200, &[], told)
}

/// A stream of lines.
fn lines(lines: &[Value]) -> Vec<Act> {
    let mut acts = vec![Act::Chunked(200, "application/x-ndjson")];
    acts.extend(lines.iter().map(|line| Act::Chunk(format!("{line}\n"))));
    acts.push(Act::Last);
    acts
}

fn said(message: Value) -> Value {
    json!({"model": "m", "message": message, "done": false})
}

fn done() -> Value {
    json!({"model": "m", "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop", "prompt_eval_count": 12, "eval_count": 4})
}

async fn mounted(id: &str, config: Value) -> (Arc<dyn Provider>, TestCoordinator) {
    let hub = TestCoordinator::new();
    hub.mount(&*built_in(id).await, config).await.unwrap();
    (hub.providers().remove(0).1, hub)
}

fn host(server: &FaultServer) -> String {
    server.url().trim_start_matches("http://").trim_end_matches("/v1").to_owned()
}

#[tokio::test]
async fn ollama_is_told_the_window_and_to_think_and_its_calls_get_ids() {
    let call = |name: &str| json!({"function": {"name": name, "arguments": {"text": name}}});
    let answer = lines(&[
        said(json!({"role": "assistant", "content": "", "thinking": "Hm."})),
        said(json!({"role": "assistant", "content": "Let me "})),
        said(json!({"role": "assistant", "content": "see."})),
        said(json!({"role": "assistant", "content": "", "tool_calls": [call("echo"), call("echo")]})),
        done(),
    ]);
    let last = lines(&[said(json!({"role": "assistant", "content": "Done."})), done()]);
    let server = FaultServer::start(vec![show(), answer, last]).await;
    let config =
        json!({"host": host(&server), "model": "m", "max_tokens": 50, "temperature": 0, "keep_alive": "1m"});
    let session = TestSession::builder()
        .module(built_in("loop-streaming").await)
        .module(built_in("context-simple").await)
        .module(built_in("tool-echo").await)
        .module_with(built_in("provider-ollama").await, object(config))
        .open()
        .await
        .unwrap();
    let info = session.coordinator().provider("ollama").unwrap().info();
    assert_eq!(info.default_number("context_window"), Some(16_384));
    assert_eq!(session.execute("hi").await.unwrap(), "Done.");
    let asked = server.asked();
    assert_eq!(
        asked.iter().map(|asked| asked.path.as_str()).collect::<Vec<_>>(),
        ["/api/show", "/api/chat", "/api/chat"]
    );
    let first = &asked[1].body;
    assert_eq!(first["options"], json!({"num_ctx": 16_384, "num_predict": 50, "temperature": 0.0}));
    assert_eq!(
        (&first["think"], &first["stream"], &first["keep_alive"]),
        (&json!(true), &json!(true), &json!("1m"))
    );
    assert_eq!(first["tools"][0]["function"]["name"], json!("echo"));
    let second = asked[2].body["messages"].as_array().unwrap();
    assert_eq!((&second[1]["content"], &second[1]["thinking"]), (&json!("Let me see."), &json!("Hm.")));
    let ids: Vec<_> =
        second[1]["tool_calls"].as_array().unwrap().iter().map(|call| call["id"].clone()).collect();
    assert_ne!(ids[0], ids[1]);
    assert_eq!((&second[2]["tool_call_id"], &second[3]["tool_call_id"]), (&ids[0], &ids[1]));
    assert_eq!((&second[2]["tool_name"], &second[2]["content"]), (&json!("echo"), &json!("echo")));
    let status = session.status();
    assert_eq!((status.total_input_tokens, status.total_output_tokens), (24, 8));
}

#[tokio::test]
async fn ollama_answers_in_one_piece_lists_models_and_tells_its_errors() {
    let whole = json!({"model": "m", "message": {"role": "assistant", "content": "{\"a\":1}"}, "done": true, "prompt_eval_count": 1, "eval_count": 2});
    let tags = json!({"models": [{"name": "llama3.2:3b", "model": "llama3.2:3b"}]});
    let script = vec![
        refuses(404, &[], json!({"error": "model not found"})),
        refuses(200, &[], whole),
        refuses(200, &[], tags),
        refuses(404, &[], json!({"error": "model 'm' not found"})),
        refuses(404, &[], json!({"error": "model 'm' not found"})),
    ];
    let server = FaultServer::start(script).await;
    let (provider, _hub) =
        mounted("provider-ollama", json!({"base_url": host(&server), "use_streaming": false, "model": "m"}))
            .await;
    let request = || -> ChatRequest {
        serde_json::from_value(json!({"messages": [{"role": "user", "content": "hi"}], "response_format": {"type": "json_schema", "schema": {"type": "object"}}})).unwrap()
    };
    let answer = provider.complete(request(), &ProviderCx::default()).await.unwrap();
    assert_eq!(answer.visible_text(), "{\"a\":1}");
    let body = &server.asked()[1].body;
    assert_eq!(
        (&body["format"], &body["stream"], body.get("think")),
        (&json!({"type": "object"}), &json!(false), None)
    );
    assert_eq!(provider.list_models().await.unwrap()[0].id, "llama3.2:3b");
    let error = provider.complete(request(), &ProviderCx::default()).await.unwrap_err();
    assert_eq!((error.kind, error.provider.as_deref()), (LlmErrorKind::NotFound, Some("ollama")));
}

#[tokio::test]
async fn vllm_tells_its_window_and_the_plan_cannot_ask_for_more() {
    let cards = refuses(200, &[], json!({"data": [{"id": "m", "max_model_len": 8192}]}));
    let server = FaultServer::start(vec![cards, says("hello")]).await;
    let config = json!({"base_url": server.url(), "model": "m", "context_window": 100_000});
    let session = TestSession::builder()
        .module(built_in("loop-basic").await)
        .module(built_in("context-simple").await)
        .module_with(built_in("provider-vllm").await, object(config))
        .open()
        .await
        .unwrap();
    let info = session.coordinator().provider("vllm").unwrap().info();
    assert_eq!(info.default_number("context_window"), Some(8192));
    assert_eq!(session.execute("hi").await.unwrap(), "hello");
    let paths: Vec<_> = server.asked().into_iter().map(|asked| asked.path).collect();
    assert_eq!(paths, ["/v1/models", "/v1/chat/completions"]);
}

#[tokio::test]
async fn both_keep_the_provider_contract_here_and_over_a_wire() {
    let server =
        FaultServer::start(vec![lines(&[said(json!({"role": "assistant", "content": "hello"})), done()])])
            .await;
    let make = async || mounted("provider-ollama", json!({"host": host(&server), "max_retries": 0})).await.0;
    conformance::provider(make).await.assert();
    let server = FaultServer::start(vec![says("hello")]).await;
    let make = async || mounted("provider-vllm", json!({"base_url": server.url(), "max_retries": 0})).await.0;
    conformance::provider(make).await.assert();
    conformance::provider(async || wire::provider(make().await).await.unwrap()).await.assert();
}
