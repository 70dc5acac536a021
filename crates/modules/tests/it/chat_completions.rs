//! `provider-chat-completions` in a session: what goes over the wire, what comes back, and what is told.

use std::sync::Arc;

use amplifier_core::cancel::CancelToken;
use amplifier_core::contracts::{DeltaSink, Mounted, Provider, ProviderCx};
use amplifier_protocol::chat::ChatRequest;
use amplifier_protocol::event::{LlmRequest, LlmResponse};
use amplifier_protocol::llm_error::LlmErrorKind;
use amplifier_protocol::stream::StreamEvent;
use amplifier_testing::{TestCoordinator, conformance, wire};
use serde_json::{Value, json};

use crate::asking::{self, answered, hi, request};
use crate::fault::{Act, FaultServer, delta, done, event, opened, refuses, says};
use crate::fault_rows::session;
use crate::kit::{built_in, object, stored};
use crate::stage::offer;

async fn provider(server: &FaultServer, more: Value) -> (Arc<dyn Provider>, TestCoordinator, Vec<String>) {
    let mut config = json!({"model": "m"});
    config.as_object_mut().unwrap().extend(object(more));
    asking::provider("provider-chat-completions", server, config).await
}

/// A request with everything in it.
fn everything() -> ChatRequest {
    request(json!({
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": "A file."},
            {"role": "user", "content": [{"type": "text", "text": "What is it?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "reasoning_field": "reasoning_content"},
                {"type": "thinking", "thinking": "of another service", "signature": "s"},
                {"type": "tool_call", "id": "a", "name": "look", "input": {"at": 1}, "extra_content": {"sig": "x"}}],
             "tool_calls": [{"id": "a", "tool": "look", "arguments": {"at": 1}, "extra_content": {"sig": "x"}},
                            {"id": "b", "tool": "look", "arguments": {}}]},
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "seen"},
                {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/x.png"}}]},
            {"role": "user", "content": "It is noon.", "metadata": {"source": "hook", "ephemeral": true}},
        ],
        "tools": [{"name": "look", "description": "Looks.", "parameters": {"type": "object"}}],
        "tool_choice": {"type": "tool", "name": "look"},
        "response_format": {"type": "json_schema", "schema": {"type": "object"}, "strict": true},
        "stop": ["END"], "reasoning_effort": "low", "model": "other",
    }))
}

#[tokio::test]
async fn a_conversation_with_everything_goes_out_as_the_protocol_wants_it() {
    let server = FaultServer::start(vec![says("ok")]).await;
    let more = json!({"api_key": "k", "seed": 7, "temperature": 0, "max_tokens": 99, "headers": {"x-title": "t"},
        "extra_body": {"top_k": 3}, "parallel_tool_calls": "false", "cache_markers": true});
    let (provider, _hub, warnings) = provider(&server, more).await;
    assert!(warnings.is_empty(), "{warnings:?}");
    answered(&*provider, everything()).await;
    let asked = server.asked().remove(0);
    assert_eq!(asked.path, "/v1/chat/completions");
    for header in ["authorization: bearer k\r\n", "x-title: t\r\n", "content-type: application/json\r\n"] {
        assert!(asked.head.contains(header), "{}", asked.head);
    }
    let mark = json!({"type": "ephemeral"});
    assert_eq!(
        asked.body,
        json!({
            "model": "other",
            "messages": [
                {"role": "system", "content": [{"type": "text", "text": "Be brief.", "cache_control": mark}]},
                {"role": "user", "content": [
                    {"type": "text", "text": "<context_file>\nA file.\n</context_file>"},
                    {"type": "text", "text": "What is it?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]},
                {"role": "assistant", "content": null, "reasoning_content": "Hm.", "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}, "extra_content": {"sig": "x"}},
                    {"id": "b", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
                {"role": "tool", "content": "seen", "tool_call_id": "a"},
                {"role": "tool", "content": [{"type": "text", "text": "The result of this call is missing from the conversation; it is not known what the tool did.", "cache_control": mark}], "tool_call_id": "b"},
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}},
                    {"type": "text", "text": "It is noon."}]},
            ],
            "stream": true,
            "stream_options": {"include_usage": true},
            "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}, "description": "Looks."}}],
            "tool_choice": {"type": "function", "function": {"name": "look"}},
            "parallel_tool_calls": false,
            "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": true}},
            "temperature": 0.0,
            "max_tokens": 99,
            "stop": ["END"],
            "seed": 7,
            "reasoning_effort": "low",
            "top_k": 3,
        })
    );
}

fn call(index: u64, id: &str, name: &str, arguments: &str) -> Value {
    json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

#[tokio::test]
async fn thoughts_text_and_parallel_calls_are_joined_and_told_as_they_come() {
    let acts = [
        vec![
            opened(),
            delta(json!({"role": "assistant", "reasoning_content": "Two "})),
            delta(json!({"reasoning_content": "tools."})),
            delta(json!({"content": "Both."})),
            delta(json!({"tool_calls": [call(0, "a", "one", "{\"x\""), call(1, "b", "two", "")]})),
            delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]})),
        ],
        done("tool_calls"),
    ];
    let server = FaultServer::start(vec![acts.concat()]).await;
    let (provider, _hub, _) = provider(&server, json!({})).await;
    let (answer, pieces) = answered(&*provider, hi()).await;
    assert_eq!(
        answer["content"],
        json!([
            {"type": "thinking", "thinking": "Two tools.", "reasoning_field": "reasoning_content"},
            {"type": "text", "text": "Both."},
            {"type": "tool_call", "id": "a", "name": "one", "input": {"x": 1}},
            {"type": "tool_call", "id": "b", "name": "two", "input": {}},
        ])
    );
    assert_eq!(answer["finish_reason"], json!("tool_calls"));
    assert_eq!(answer["usage"], json!({"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}));
    let told: Vec<_> = pieces.iter().map(|piece| serde_json::to_value(piece).unwrap()).collect();
    assert_eq!(
        told,
        [
            json!({"type": "message.start"}),
            json!({"type": "thinking.delta", "index": 0, "text": "Two "}),
            json!({"type": "thinking.delta", "index": 0, "text": "tools."}),
            json!({"type": "text.delta", "index": 1, "text": "Both."}),
            json!({"type": "tool_call.start", "index": 2, "id": "a", "name": "one"}),
            json!({"type": "tool_call.delta", "index": 2, "arguments_fragment": "{\"x\""}),
            json!({"type": "tool_call.start", "index": 3, "id": "b", "name": "two"}),
            json!({"type": "tool_call.delta", "index": 2, "arguments_fragment": ": 1}"}),
            json!({"type": "tool_call.end", "index": 2, "arguments": {"x": 1}}),
            json!({"type": "tool_call.end", "index": 3, "arguments": {}}),
            json!({"type": "message.end", "usage": {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}}),
        ]
    );
}

#[tokio::test]
async fn an_answer_in_one_piece_is_the_same_answer_with_its_cost() {
    let body = json!({"id": "c", "model": "m", "choices": [{"finish_reason": "stop", "message": {"role": "assistant",
        "content": "yes", "reasoning": "Hm.", "reasoning_details": [{"type": "reasoning.encrypted", "data": "A+/=", "index": 0}]}}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010,
            "prompt_tokens_details": {"cached_tokens": 400}, "completion_tokens_details": {"reasoning_tokens": 4}}});
    let server = FaultServer::start(vec![refuses(200, &[], body)]).await;
    let prices = json!({"m": {"input": 1, "output": "2.5", "cache_read": "0.1"}});
    let (provider, hub, _) = provider(&server, json!({"use_streaming": "false", "prices": prices})).await;
    let (answer, pieces) = answered(&*provider, hi()).await;
    assert_eq!(server.asked()[0].body.get("stream"), None);
    assert_eq!(
        answer["content"],
        json!([
            {"type": "thinking", "thinking": "Hm.", "content": [{"type": "reasoning.encrypted", "data": "A+/=", "index": 0}], "reasoning_field": "reasoning"},
            {"type": "text", "text": "yes"},
        ])
    );
    assert_eq!(
        answer["usage"],
        json!({"input_tokens": 1000, "output_tokens": 10, "total_tokens": 1010, "reasoning_tokens": 4, "cache_read_tokens": 400, "cost_usd": "0.000665"})
    );
    assert!(matches!(pieces.last(), Some(StreamEvent::MessageEnd { .. })));
    let (costs, failed) = hub.collect_contributions("session.cost").await;
    assert_eq!((costs, failed.len()), (vec![json!({"cost_usd": "0.000665"})], 0));
}

#[tokio::test]
async fn what_the_server_calls_nothing_gets_an_id_and_bad_arguments_stay_readable() {
    let acts = [
        vec![
            opened(),
            delta(json!({"tool_calls": [{"function": {"name": "one", "arguments": "{}"}}]})),
            delta(json!({"tool_calls": [call(0, "x", "two", "not json")]})),
        ],
        done("tool_calls"),
    ];
    let server = FaultServer::start(vec![acts.concat()]).await;
    let (provider, _hub, _) = provider(&server, json!({})).await;
    let (answer, _) = answered(&*provider, hi()).await;
    assert_eq!(
        answer["tool_calls"],
        json!([{"id": "call-r1-0", "name": "one", "arguments": {}}, {"id": "x", "name": "two", "arguments": "not json"}])
    );
}

#[tokio::test]
async fn a_turn_tells_its_requests_and_keeps_what_the_server_said() {
    let server = FaultServer::start(vec![says("hello there")]).await;
    let session = session(&server, json!({"debug": "raw"})).await;
    assert_eq!(session.execute("hi").await.unwrap(), "hello there");
    let (asked, answered) = (session.recorder().of::<LlmRequest>(), session.recorder().of::<LlmResponse>());
    assert_eq!((asked.len(), asked[0].model.as_str(), asked[0].stream), (1, "m", Some(true)));
    assert_eq!(asked[0].raw.as_ref().unwrap()["messages"], json!([{"role": "user", "content": "hi"}]));
    assert_eq!((answered[0].status.as_str(), answered[0].usage.as_ref().unwrap().input_tokens), ("ok", 7));
    let everything = serde_json::to_string(&session.recorder().events("*")).unwrap();
    assert!(!everything.contains("very-secret"));
    let kept = stored(&session).await;
    assert_eq!(kept[1].metadata["chat_completions:id"], json!("c1"));
}

#[tokio::test]
async fn every_block_of_a_stream_is_told_from_its_start_to_its_end() {
    let acts = [
        vec![
            opened(),
            delta(json!({"reasoning": "Hm."})),
            delta(json!({"content": "one "})),
            delta(json!({"content": "two"})),
            delta(json!({"tool_calls": [call(0, "a", "look", "{}")]})),
        ],
        done("tool_calls"),
    ];
    let server = FaultServer::start(vec![acts.concat()]).await;
    let (provider, hub, _) = provider(&server, json!({})).await;
    let recorder = hub.recorder();
    answered(&*provider, hi()).await;
    let told: Vec<_> = recorder
        .events("llm:*")
        .into_iter()
        .filter(|(name, _)| name.starts_with("llm:stream_block"))
        .map(|(name, data)| {
            let what = data.get("text").or_else(|| data.get("name")).and_then(Value::as_str).unwrap_or("");
            let at = data.get("sequence").and_then(Value::as_u64).map_or(String::new(), |at| at.to_string());
            let (index, kind) = (&data["block_index"], data["block_type"].as_str().unwrap());
            format!("{} {index} {kind} {at}{what}", name.trim_start_matches("llm:stream_block_"))
        })
        .collect();
    assert_eq!(
        told,
        [
            "start 0 thinking ",
            "delta 0 thinking 0Hm.",
            "end 0 thinking ",
            "start 1 text ",
            "delta 1 text 0one ",
            "delta 1 text 1two",
            "end 1 text ",
            "start 2 tool_use look",
            "end 2 tool_use ",
        ]
    );
}

#[tokio::test]
async fn a_cancel_closes_the_connection() {
    let server = FaultServer::start(vec![vec![opened(), delta(json!({"content": "a"})), Act::Hang]]).await;
    let (provider, _hub, _) = provider(&server, json!({})).await;
    let (deltas, mut pieces) = DeltaSink::open();
    let cancel = CancelToken::new();
    let cx = ProviderCx { deltas, cancel: cancel.clone(), ..ProviderCx::default() };
    let asking = tokio::spawn(async move { provider.complete(hi(), &cx).await });
    pieces.recv().await.unwrap();
    cancel.request_immediate();
    let error = asking.await.unwrap().unwrap_err();
    assert_eq!((error.kind, error.retryable), (LlmErrorKind::Abort, false));
    server.closed_early().await;
}

#[tokio::test]
async fn no_more_requests_run_at_once_than_the_key_allows() {
    let server = FaultServer::start(vec![vec![Act::Hang]]).await;
    let (one, hub, _) = provider(&server, json!({"max_concurrent_requests": 2})).await;
    let (other, _other_hub, _) = provider(&server, json!({"max_concurrent_requests": 2})).await;
    let recorder = hub.recorder();
    let mut calls = tokio::task::JoinSet::new();
    for provider in [one.clone(), other.clone()] {
        let request = hi();
        calls.spawn(async move { provider.complete(request, &ProviderCx::default()).await });
    }
    while server.asked().len() < 2 {
        tokio::task::yield_now().await;
    }
    let cancel = CancelToken::new();
    let cx = ProviderCx { cancel: cancel.clone(), ..ProviderCx::default() };
    let third = tokio::spawn(async move { one.complete(hi(), &cx).await });
    while recorder.count("provider:concurrency") == 0 {
        tokio::task::yield_now().await;
    }
    let (_, told) = recorder.events("provider:concurrency").remove(0);
    assert_eq!(
        (&told["active_requests"], &told["waiting_requests"], &told["max_concurrent"]),
        (&json!(2), &json!(1), &json!(2))
    );
    assert_eq!(server.asked().len(), 2);
    cancel.request_immediate();
    assert_eq!(third.await.unwrap().unwrap_err().kind, LlmErrorKind::Abort);
    calls.abort_all();
}

#[tokio::test]
async fn a_wait_that_does_not_fit_into_the_time_of_the_request_is_not_begun() {
    let server = FaultServer::start(vec![refuses(429, &[("retry-after", "20")], json!({}))]).await;
    let (provider, hub, _) = provider(&server, json!({"max_retries": 5})).await;
    let recorder = hub.recorder();
    let asked = request(json!({"messages": [{"role": "user", "content": "hi"}], "timeout": 10}));
    let error = provider.complete(asked, &ProviderCx::default()).await.unwrap_err();
    assert_eq!((error.kind, error.retry_after), (LlmErrorKind::RateLimit, Some(20.0)));
    assert_eq!((server.asked().len(), recorder.count("provider:retry")), (1, 0));
}

#[tokio::test]
async fn a_proxy_of_the_plan_is_used_and_one_of_the_environment_never_for_this_machine() {
    let proxy = FaultServer::start(vec![says("by proxy")]).await;
    let address = proxy.url().trim_end_matches("/v1").to_owned();
    let (through, _hub, _) =
        provider(&proxy, json!({"base_url": "http://service.invalid/v1", "proxy": address})).await;
    let answer = through.complete(hi(), &ProviderCx::default()).await.unwrap();
    assert_eq!(answer.visible_text(), "by proxy");
    assert_eq!(proxy.asked()[0].path, "http://service.invalid/v1/chat/completions");

    let server = FaultServer::start(vec![says("direct")]).await;
    let hub = TestCoordinator::new();
    let offered = offer(move |asked: Value| {
        let told = if asked["name"] == "HTTP_PROXY" { json!(address) } else { Value::Null };
        async move { Ok(told) }
    });
    hub.register_capability("environment.variable", offered);
    let module = built_in("provider-chat-completions").await;
    hub.mount(&*module, json!({"base_url": server.url()})).await.unwrap();
    let direct = hub.providers().remove(0).1.complete(hi(), &ProviderCx::default()).await.unwrap();
    assert_eq!((direct.visible_text().as_str(), proxy.asked().len()), ("direct", 1));

    hub.mount(&*module, json!({"base_url": "http://other.invalid/v1"})).await.unwrap();
    let other = hub.providers().remove(0).1.complete(hi(), &ProviderCx::default()).await.unwrap();
    assert_eq!((other.visible_text().as_str(), proxy.asked().len()), ("by proxy", 2));
}

#[tokio::test]
async fn models_are_listed_with_what_the_server_and_the_catalogue_know() {
    let list = json!({"data": [{"id": "a", "max_model_len": 4096}, {"id": "openai/gpt-5.5"}, {"name": "c", "meta": {"n_ctx_train": 8192}}, {}]});
    let server = FaultServer::start(vec![refuses(200, &[], list)]).await;
    let (provider, _hub, _) = provider(&server, json!({})).await;
    let models = provider.list_models().await.unwrap();
    let told: Vec<_> =
        models.iter().map(|m| (m.id.as_str(), m.context_window, m.max_output_tokens)).collect();
    assert_eq!(told, [("a", 4096, 4096), ("openai/gpt-5.5", 1_000_000, 128_000), ("c", 8192, 8192)]);
    assert_eq!(server.asked()[0].path, "/v1/models");
}

#[tokio::test]
async fn without_a_server_it_is_not_mounted_and_says_what_to_set() {
    let module = built_in("provider-chat-completions").await;
    let hub = TestCoordinator::new();
    let (mounted, _) = hub.mount(&*module, json!({})).await.unwrap();
    let Mounted::Skipped { reason } = mounted else { panic!("{mounted:?}") };
    assert!(reason.contains("`CHAT_COMPLETIONS_BASE_URL`"), "{reason}");
    let (_, warnings) =
        hub.mount(&*module, json!({"base_url": "http://127.0.0.1:9", "api_keyy": "x"})).await.unwrap();
    assert_eq!(warnings, ["unknown config key `api_keyy` is ignored; did you mean `api_key`?"]);
    for bad in [
        json!({"base_url": "ftp://x"}),
        json!({"base_url": "nonsense"}),
        json!({"base_url": "http://127.0.0.1:9", "timeout": -1}),
    ] {
        assert!(hub.mount(&*module, bad.clone()).await.is_err(), "{bad}");
    }
}

#[tokio::test]
async fn it_keeps_the_provider_contract_here_and_over_a_wire() {
    let server = FaultServer::start(vec![says("hello")]).await;
    let make = async || provider(&server, json!({})).await.0;
    conformance::provider(make).await.assert();
    conformance::provider(async || wire::provider(make().await).await.unwrap()).await.assert();
}

#[tokio::test]
async fn a_stream_in_ten_thousand_pieces_arrives_whole() {
    let chunk = |at: usize| event(&json!({"choices": [{"delta": {"content": format!("{at} ")}}]}));
    let acts = [vec![opened()], (0..10_000).map(chunk).collect(), done("length")].concat();
    let server = FaultServer::start(vec![acts]).await;
    let (provider, _hub, _) = provider(&server, json!({})).await;
    let (answer, pieces) = answered(&*provider, hi()).await;
    let expected: String = (0..10_000).map(|at| format!("{at} ")).collect();
    assert_eq!((answer["content"][0]["text"].as_str(), pieces.len()), (Some(expected.as_str()), 10_002));
    assert_eq!(answer["finish_reason"], json!("length"));
}
