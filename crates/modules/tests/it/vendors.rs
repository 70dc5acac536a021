//! The providers of the vendors, as far as their own clients' types do not say it (`sdk.rs` does the rest): errors
//! that come inside a stream, what is missing, and what cannot be used. `gemini.rs` and `azure.rs` are about one each.

use amplifier_core::contracts::Mounted;
use amplifier_protocol::event::ProviderRetry;
use amplifier_protocol::llm_error::LlmErrorKind as Kind;
use amplifier_protocol::stream::StreamEvent;
use amplifier_testing::{TestCoordinator, conformance, wire};
use serde_json::json;

use crate::asking::{ask, hi, provider, request, stream};
use crate::fault::{Act, FaultServer, event, refuses};
use crate::kit::built_in;

const VENDORS: [&str; 4] =
    ["provider-anthropic", "provider-azure-openai", "provider-gemini", "provider-openai"];

/// A short answer of each vendor.
pub(crate) fn says(id: &str, text: &str) -> Vec<Act> {
    match id {
        "provider-anthropic" => stream(&[
            json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
            json!({"type": "message_stop"}),
        ]),
        "provider-gemini" => stream(&[
            json!({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2}}),
        ]),
        _ => stream(&[
            json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text}),
            json!({"type": "response.completed", "response": {"id": "r", "status": "completed",
                "usage": {"input_tokens": 1, "output_tokens": 2}}}),
        ]),
    }
}

#[tokio::test]
async fn they_keep_the_provider_contract_here_and_over_a_wire() {
    for id in VENDORS {
        let server = FaultServer::start(vec![says(id, "hello")]).await;
        let make = async || provider(id, &server, json!({})).await.0;
        conformance::provider(make).await.assert();
        conformance::provider(async || wire::provider(make().await).await.unwrap()).await.assert();
    }
}

#[tokio::test]
async fn without_a_key_they_are_not_mounted_and_say_what_to_set() {
    let cases = [
        ("provider-anthropic", json!({}), "`ANTHROPIC_API_KEY`"),
        ("provider-openai", json!({"api_key": " "}), "`OPENAI_API_KEY`"),
        ("provider-gemini", json!({}), "`GEMINI_API_KEY` or `GOOGLE_API_KEY`"),
        ("provider-azure-openai", json!({}), "`AZURE_OPENAI_ENDPOINT`"),
        ("provider-azure-openai", json!({"azure_endpoint": "http://127.0.0.1:9"}), "`AZURE_OPENAI_API_KEY`"),
        (
            "provider-azure-openai",
            json!({"azure_endpoint": "http://127.0.0.1:9", "use_managed_identity": false}),
            "`use_managed_identity`",
        ),
    ];
    for (id, config, variable) in cases {
        let (mounted, _) = TestCoordinator::new().mount(&*built_in(id).await, config).await.unwrap();
        let Mounted::Skipped { reason } = mounted else { panic!("{id}: {mounted:?}") };
        assert!(reason.contains(variable), "{id}: {reason}");
    }
}

#[tokio::test]
async fn keys_of_older_configs_are_known_and_those_without_effect_are_told() {
    let server = FaultServer::start(vec![Vec::new()]).await;
    let older = [
        (
            "provider-anthropic",
            json!({"default_model": "claude-sonnet-4-5", "max_tokens": 100, "temperature": 0.7, "priority": 100, "timeout": 600.0,
                "raw": false, "min_retry_delay": 1.0, "max_retry_delay": 60.0, "retry_jitter": true, "use_streaming": true,
                "filtered": true, "overloaded_delay_multiplier": 10.0, "enable_1m_context": true, "beta_headers": ["a"],
                "max_concurrent_requests": 5, "enable_prompt_caching": "true", "enable_web_search": false,
                "web_search_max_uses": 1, "web_search_user_location": {"type": "approximate"}, "effort": "high",
                "thinking_budget_tokens": 2000, "thinking_budget_buffer": 8192, "thinking_type": "adaptive",
                "thinking_display": "summarized", "task_budget_tokens": 20000, "speed": "fast", "extended_thinking": true,
                "reasoning_effort": "low", "rate_limit_state_path": ""}),
            1,
        ),
        (
            "provider-openai",
            json!({"reasoning": "high", "reasoning_summary": "detailed", "reasoning_effort": "high", "truncation": "auto",
                "enable_long_context": true, "enable_state": false, "prompt_cache_key": "x", "prompt_cache_retention": "24h",
                "safety_identifier": "x", "enable_response_chaining": "auto", "text_verbosity": "low",
                "reasoning_replay_scope": "turn", "reasoning_context": "auto", "prompt_cache_options": {}}),
            2,
        ),
        ("provider-gemini", json!({"thinking_budget": -1, "max_tokens": 8192, "temperature": 0.7}), 0),
        (
            "provider-azure-openai",
            json!({"azure_endpoint": server.url(), "api_version": "2024-10-01-preview", "default_deployment": "d",
                "deployment_type": "PTU", "use_managed_identity": false, "use_default_credential": "false",
                "managed_identity_client_id": "x", "reasoning": {"effort": "low"}}),
            0,
        ),
        (
            "provider-ollama",
            json!({"host": "127.0.0.1:9", "default_model": "llama3.2:3b", "max_tokens": 4096, "temperature": 0.7, "timeout": 300,
                "auto_pull": false, "debug": true, "raw_debug": false, "num_ctx": "0", "enable_thinking": "true"}),
            1,
        ),
        (
            "provider-vllm",
            json!({"default_model": "openai/gpt-oss-20b", "max_tokens": 4096, "temperature": null, "reasoning": "high",
                "reasoning_summary": "detailed", "truncation": "disabled", "enable_state": false, "raw": false, "timeout": 600,
                "stream_idle_timeout": 300, "context_window": 128_000, "max_output_tokens": "32768", "use_streaming": true,
                "priority": 100}),
            3,
        ),
        (
            "provider-chat-completions",
            json!({"name": "mine", "model": "default", "timeout": 300, "temperature": 0.7, "max_tokens": 4096, "max_retries": 3,
                "min_retry_delay": 1, "max_retry_delay": 30, "use_streaming": "true", "top_p": 0.9, "stop": ["x"], "seed": "7",
                "parallel_tool_calls": true, "priority": "100", "filtered": true, "raw": false}),
            0,
        ),
    ];
    for (id, config, without_effect) in older {
        let (_, _, warnings) = provider(id, &server, config).await;
        assert_eq!(warnings.len(), without_effect, "{id}: {warnings:?}");
        assert!(warnings.iter().all(|warning| warning.contains("has no effect")), "{warnings:?}");
    }
}

#[tokio::test]
async fn an_overloaded_service_is_given_more_time() {
    let busy = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let script = vec![refuses(529, &[], busy.clone()), stream(&[busy]), says("provider-anthropic", "now")];
    let server = FaultServer::start(script).await;
    let more = json!({"max_retries": 2, "retry_jitter": false, "overloaded_delay_multiplier": 40.0});
    let (provider, hub, _) = provider("provider-anthropic", &server, more).await;
    let recorder = hub.recorder();
    let (answer, _) = ask(&*provider, hi()).await;
    assert_eq!(answer.unwrap()["content"], json!([{"type": "text", "text": "now"}]));
    let told = recorder.of::<ProviderRetry>();
    let told: Vec<_> = told.iter().map(|retry| (retry.error_type.as_str(), retry.delay)).collect();
    assert_eq!(told, [("ProviderUnavailableError", 0.04), ("ProviderUnavailableError", 0.04)]);
}

#[tokio::test]
async fn what_a_vendor_says_inside_a_stream_has_its_kind() {
    let failed = |code: &str| json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": code, "message": "no"}}});
    let rows = [
        (
            "provider-anthropic",
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}),
            Kind::ProviderUnavailable,
            2,
        ),
        (
            "provider-anthropic",
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long"}}),
            Kind::ContextLength,
            1,
        ),
        ("provider-openai", failed("server_error"), Kind::ProviderUnavailable, 2),
        ("provider-openai", failed("rate_limit_exceeded"), Kind::RateLimit, 2),
        ("provider-openai", failed("bio_policy"), Kind::ContentFilter, 1),
        ("provider-openai", failed("invalid_prompt"), Kind::InvalidRequest, 1),
        (
            "provider-openai",
            json!({"type": "error", "code": "context_length_exceeded", "message": "x"}),
            Kind::ContextLength,
            1,
        ),
        (
            "provider-gemini",
            json!({"error": {"code": 503, "status": "UNAVAILABLE", "message": "busy"}}),
            Kind::ProviderUnavailable,
            2,
        ),
        ("provider-gemini", json!({"promptFeedback": {"blockReason": "SAFETY"}}), Kind::ContentFilter, 1),
        (
            "provider-gemini",
            json!({"candidates": [{"finishReason": "PROHIBITED_CONTENT"}]}),
            Kind::ContentFilter,
            1,
        ),
        (
            "provider-gemini",
            json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}),
            Kind::InvalidToolCall,
            2,
        ),
    ];
    for (id, told, kind, tries) in rows {
        let server = FaultServer::start(vec![stream(std::slice::from_ref(&told))]).await;
        let (provider, _hub, _) = provider(id, &server, json!({})).await;
        let error = ask(&*provider, hi()).await.0.unwrap_err();
        assert_eq!((error.kind, server.asked().len()), (kind, tries), "{told}: {error}");
        assert!(!error.to_string().contains("very-secret"));
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_short_says_why() {
    let incomplete = |reason: &str| {
        stream(&[
            json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "so f"}),
            json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": reason}}}),
        ])
    };
    let gemini = |reason: &str| {
        stream(&[json!({"candidates": [{"content": {"parts": [{"text": "so f"}]}, "finishReason": reason}]})])
    };
    let rows = [
        ("provider-openai", incomplete("max_output_tokens"), "length"),
        ("provider-openai", incomplete("content_filter"), "content_filter"),
        ("provider-gemini", gemini("MAX_TOKENS"), "length"),
        ("provider-gemini", gemini("SAFETY"), "content_filter"),
    ];
    for (id, acts, reason) in rows {
        let server = FaultServer::start(vec![acts]).await;
        let (provider, _hub, _) = provider(id, &server, json!({})).await;
        let answer = ask(&*provider, hi()).await.0.unwrap();
        assert_eq!(answer["finish_reason"], json!(reason), "{id}");
        assert_eq!(answer["content"][0]["text"], json!("so f"));
    }
}

#[tokio::test]
async fn items_without_numbers_are_told_apart_by_their_ids() {
    let call = |id: &str| json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "look", "arguments": ""});
    let piece = |id: &str, text: &str| json!({"type": "response.function_call_arguments.delta", "item_id": format!("fc_{id}"), "delta": text});
    let events = [
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "delta": "Both."}),
        json!({"type": "response.output_item.added", "item": call("a")}),
        json!({"type": "response.output_item.added", "item": call("b")}),
        piece("a", "{\"x\""),
        piece("b", "{}"),
        piece("a", ": 1}"),
        json!({"type": "response.completed", "response": {"status": "completed"}}),
    ];
    let server = FaultServer::start(vec![stream(&events)]).await;
    let (provider, _hub, _) = provider("provider-openai", &server, json!({})).await;
    let answer = ask(&*provider, hi()).await.0.unwrap();
    assert_eq!(
        answer["content"],
        json!([{"type": "text", "text": "Both."}, {"type": "tool_call", "id": "a", "name": "look", "input": {"x": 1}},
            {"type": "tool_call", "id": "b", "name": "look", "input": {}}])
    );
    assert_eq!(answer["finish_reason"], json!("tool_calls"));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_reported_and_not_shown_twice() {
    for id in VENDORS {
        let mut acts = says(id, "half of");
        acts.truncate(if id == "provider-anthropic" { 4 } else { 2 });
        if id == "provider-gemini" {
            acts[1] = event(&json!({"candidates": [{"content": {"parts": [{"text": "half of"}]}}]}));
        }
        let server = FaultServer::start(vec![acts]).await;
        let (provider, _hub, _) = provider(id, &server, json!({})).await;
        let (answer, pieces) = ask(&*provider, hi()).await;
        let error = answer.unwrap_err();
        assert_eq!(
            (error.kind, error.retryable, server.asked().len()),
            (Kind::Stream, false, 1),
            "{id}: {error}"
        );
        let shown = pieces.iter().filter(|piece| matches!(piece, StreamEvent::TextDelta { .. })).count();
        assert_eq!(shown, 1);
    }
}

#[tokio::test]
async fn blocks_of_anthropics_own_tools_are_kept_and_go_back_as_they_came() {
    let used =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result",
        "url": "https://example.invalid", "title": "t", "encrypted_content": "E+/=", "page_age": null}]});
    let cited = json!({"type": "web_search_result_location", "url": "https://example.invalid", "cited_text": "c", "encrypted_index": "I=="});
    let mut begun = used.clone();
    begun["input"] = json!({});
    let events = [
        json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": begun}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"query\""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ": \"x\"}"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": found}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": "", "citations": []}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "citations_delta", "citation": cited}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "found"}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ];
    let server = FaultServer::start(vec![stream(&events)]).await;
    let (provider, _hub, _) =
        provider("provider-anthropic", &server, json!({"enable_prompt_caching": false})).await;
    let answer = ask(&*provider, hi()).await.0.unwrap();
    let history = json!({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": answer["content"]},
        {"role": "user", "content": "and?"}]});
    ask(&*provider, request(history)).await.0.unwrap();
    let said = json!({"type": "text", "text": "found", "citations": [cited]});
    assert_eq!(server.asked()[1].body["messages"][1]["content"], json!([used, found, said]));
}
