//! `provider-gemini`: what goes over the wire, and that what came goes back as it came.

use amplifier_protocol::chat::ChatRequest;
use serde_json::{Value, json};

use crate::asking::{ask, hi, provider, request, stream};
use crate::fault::{FaultServer, refuses};
use crate::vendors::says;

/// A conversation of every kind of message, with every parameter.
fn everything() -> ChatRequest {
    request(json!({
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": "A file."},
            {"role": "user", "content": [{"type": "text", "text": "What?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "T+/=", "origin": "gemini"},
                {"type": "thinking", "thinking": "of another", "signature": "S", "origin": "anthropic"},
                {"type": "text", "text": "I look.", "thought_signature": "X+/="},
                {"type": "tool_call", "id": "a", "name": "look", "input": {"at": 1}, "thought_signature": "C+/="},
                {"type": "tool_call", "id": "b", "name": "look", "input": {}}]},
            {"role": "tool", "tool_call_id": "a", "content": "seen"},
            {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "too"},
                {"type": "image", "source": {"type": "url", "url": "https://example.invalid/x.png", "media_type": "image/webp"}}]},
            {"role": "assistant", "content": [{"type": "tool_call", "id": "c", "name": "look", "input": {}}]},
            {"role": "tool", "tool_call_id": "c", "content": "again"},
            {"role": "user", "content": "Go on."},
        ],
        "tools": [{"name": "look", "description": "Looks.", "parameters": {"type": "object"}}],
        "tool_choice": {"type": "tool", "name": "look"},
        "response_format": {"type": "json_schema", "schema": {"type": "object"}},
        "stop": ["END"], "reasoning_effort": "low", "model": "gemini-3-pro-preview", "max_output_tokens": 99,
    }))
}

#[tokio::test]
async fn a_conversation_with_everything_goes_out_as_gemini_wants_it() {
    let server = FaultServer::start(vec![says("provider-gemini", "ok")]).await;
    let more = json!({"temperature": 0, "seed": 7, "extra_body": {"labels": {"a": "b"}},
        "safety_settings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]});
    let (provider, _hub, warnings) = provider("provider-gemini", &server, more).await;
    assert!(warnings.is_empty(), "{warnings:?}");
    ask(&*provider, everything()).await.0.unwrap();
    let asked = server.asked().remove(0);
    assert_eq!(asked.path, "/v1/models/gemini-3-pro-preview:streamgeneratecontent?alt=sse");
    assert!(asked.head.contains("x-goog-api-key: k-very-secret\r\n"), "{}", asked.head);
    let response = |id: &str, text: &str| json!({"functionResponse": {"id": id, "name": "look", "response": {"output": text}}});
    assert_eq!(
        asked.body,
        json!({
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "<context_file>\nA file.\n</context_file>"}, {"text": "What?"},
                    {"inlineData": {"mimeType": "image/png", "data": "aGk="}}]},
                {"role": "model", "parts": [{"text": "Hm.", "thought": true, "thoughtSignature": "T+/="},
                    {"text": "I look.", "thoughtSignature": "X+/="},
                    {"functionCall": {"id": "a", "name": "look", "args": {"at": 1}}, "thoughtSignature": "C+/="},
                    {"functionCall": {"id": "b", "name": "look", "args": {}}}]},
                {"role": "user", "parts": [response("a", "seen"), response("b", "too"),
                    {"fileData": {"mimeType": "image/webp", "fileUri": "https://example.invalid/x.png"}}]},
                {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "look", "args": {}},
                    "thoughtSignature": "skip_thought_signature_validator"}]},
                {"role": "user", "parts": [response("c", "again")]},
                {"role": "user", "parts": [{"text": "Go on."}]},
            ],
            "tools": [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": {"type": "object"}, "description": "Looks."}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}},
            "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
            "generationConfig": {"temperature": 0.0, "maxOutputTokens": 99, "stopSequences": ["END"], "seed": 7,
                "responseMimeType": "application/json", "responseJsonSchema": {"type": "object"},
                "thinkingConfig": {"includeThoughts": true, "thinkingLevel": "LOW"}},
            "labels": {"a": "b"},
        })
    );
}

/// The chunks of an answer with thoughts, text in parts, parallel calls and a proof without words.
fn gemini_chunks() -> Vec<Value> {
    let chunk = |parts: Value| json!({"candidates": [{"content": {"role": "model", "parts": parts}}], "responseId": "r"});
    let mut chunks = vec![
        chunk(json!([{"text": "Two ", "thought": true}])),
        chunk(json!([{"text": "tools.", "thought": true, "thoughtSignature": "T+/="}])),
        chunk(json!([{"text": "Bo"}])),
        chunk(json!([{"text": "th.", "thoughtSignature": "X+/="}])),
        chunk(json!([{"functionCall": {"name": "one", "args": {"x": 1}}, "thoughtSignature": "C+/="},
            {"functionCall": {"id": "given", "name": "two"}}])),
        chunk(json!([{"text": "", "thoughtSignature": "E+/="}])),
    ];
    chunks[5]["candidates"][0]["finishReason"] = json!("STOP");
    chunks[5]["usageMetadata"] = json!({"promptTokenCount": 1000, "candidatesTokenCount": 10, "thoughtsTokenCount": 5,
        "cachedContentTokenCount": 400, "totalTokenCount": 1015});
    chunks
}

#[tokio::test]
async fn geminis_answer_is_the_same_in_pieces_and_whole_and_goes_back_as_it_came() {
    let whole = json!({"candidates": [{"content": {"parts": [
            {"text": "Two tools.", "thought": true, "thoughtSignature": "T+/="}, {"text": "Both.", "thoughtSignature": "X+/="},
            {"functionCall": {"name": "one", "args": {"x": 1}}, "thoughtSignature": "C+/="},
            {"functionCall": {"id": "given", "name": "two"}}, {"text": "", "thoughtSignature": "E+/="}]}, "finishReason": "STOP"}],
        "usageMetadata": gemini_chunks()[5]["usageMetadata"], "responseId": "r"});
    let server = FaultServer::start(vec![stream(&gemini_chunks()), refuses(200, &[], whole)]).await;
    let mut given = Vec::new();
    for streaming in [true, false] {
        let (provider, _hub, _) =
            provider("provider-gemini", &server, json!({"use_streaming": streaming})).await;
        given.push(ask(&*provider, hi()).await.0.unwrap());
    }
    assert_eq!(given[0], given[1]);
    assert_eq!(
        given[0]["content"],
        json!([
            {"type": "thinking", "thinking": "Two tools.", "signature": "T+/=", "origin": "gemini"},
            {"type": "text", "text": "Both.", "thought_signature": "X+/="},
            {"type": "tool_call", "id": "call-r1-2", "name": "one", "input": {"x": 1}, "thought_signature": "C+/="},
            {"type": "tool_call", "id": "given", "name": "two", "input": {}},
            {"type": "gemini_part", "item": {"text": "", "thoughtSignature": "E+/="}},
        ])
    );
    let cost = &given[0]["usage"]["cost_usd"];
    assert_eq!(
        given[0]["usage"],
        json!({"input_tokens": 1000, "output_tokens": 15, "total_tokens": 1015, "reasoning_tokens": 5, "cache_read_tokens": 400, "cost_usd": cost})
    );
    let (provider, _hub, _) = provider("provider-gemini", &server, json!({})).await;
    let history = json!({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": given[0]["content"]},
        {"role": "tool", "tool_call_id": "call-r1-2", "content": "1"}, {"role": "tool", "tool_call_id": "given", "content": "2"}]});
    ask(&*provider, request(history)).await.0.unwrap();
    assert_eq!(
        server.asked()[2].body["contents"][1]["parts"],
        json!([
            {"text": "Two tools.", "thought": true, "thoughtSignature": "T+/="},
            {"text": "Both.", "thoughtSignature": "X+/="},
            {"functionCall": {"id": "call-r1-2", "name": "one", "args": {"x": 1}}, "thoughtSignature": "C+/="},
            {"functionCall": {"id": "given", "name": "two", "args": {}}},
            {"text": "", "thoughtSignature": "E+/="},
        ])
    );
}

#[tokio::test]
async fn geminis_models_are_listed_without_those_that_do_not_answer() {
    let list = json!({"models": [
        {"name": "models/gemini-2.5-pro", "displayName": "Pro", "inputTokenLimit": 1048576, "outputTokenLimit": 65536, "supportedGenerationMethods": ["generateContent"]},
        {"name": "models/embedding-001", "supportedGenerationMethods": ["embedContent"]}]});
    let server = FaultServer::start(vec![refuses(200, &[], list)]).await;
    let (provider, _hub, _) = provider("provider-gemini", &server, json!({})).await;
    let models = provider.list_models().await.unwrap();
    let rows: Vec<_> = models
        .iter()
        .map(|m| (m.id.as_str(), m.display_name.as_str(), m.context_window, m.max_output_tokens))
        .collect();
    assert_eq!(rows, [("gemini-2.5-pro", "Pro", 1_048_576, 65_536)]);
}
