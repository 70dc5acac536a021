//! Any history that a context can hold is taken by every mapper, and keeps its pairs, its order and its signatures.

use std::collections::HashSet;
use std::sync::Arc;

use amplifier_protocol::chat::ChatRequest;
use amplifier_protocol::content::ContentBlock;
use amplifier_protocol::message::{Content, Message, Messages, Role};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::anthropic;
use super::blocks::{last_prompt, spoken};
use super::chat_completions;
use super::gemini;
use super::ollama;
use super::openai;
use super::wire::repair::{History, repair};
use super::wire::{Ask, Delivery, Learnt, Service, Settings};

/// Texts that can be found again: each carries a number of its own.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![1 => Just(String::new()), 1 => Just(" \n".to_owned()), 6 => "[a-z ]{0,9}", 1 => "[\\PC]{0,6}"]
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-c]",
        1 => Just("functions.look:0".to_owned()),
        1 => Just("é".to_owned()),
        1 => Just("x".repeat(100)),
        1 => Just(String::new()),
    ]
}

fn proof() -> impl Strategy<Value = String> {
    "[A-Za-z0-9+/é]{4,20}=="
}

fn input() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"at": 1})),
        Just(json!({})),
        Just(Value::Null),
        Just(json!("not json")),
        Just(json!([1]))
    ]
}

/// A block of an assistant, of every kind and of every service.
fn said() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => text().prop_map(|text| json!({"type": "text", "text": text})),
        1 => (text(), proof()).prop_map(|(text, proof)| json!({"type": "text", "text": text, "thought_signature": proof})),
        2 => (text(), proof()).prop_map(|(text, proof)| json!({"type": "thinking", "thinking": text, "signature": proof, "origin": "anthropic"})),
        2 => (text(), proof()).prop_map(|(text, proof)| json!({"type": "thinking", "thinking": text, "signature": proof, "origin": "gemini"})),
        2 => (text(), proof()).prop_map(|(text, proof)| json!({"type": "thinking", "thinking": text, "content": [proof, "rs_1"], "origin": "openai"})),
        1 => text().prop_map(|text| json!({"type": "thinking", "thinking": text})),
        1 => text().prop_map(|text| json!({"type": "thinking", "thinking": text, "reasoning_field": "reasoning"})),
        1 => proof().prop_map(|proof| json!({"type": "redacted_thinking", "data": proof})),
        4 => (id(), input()).prop_map(|(id, input)| json!({"type": "tool_call", "id": id, "name": "look", "input": input})),
        1 => (id(), proof()).prop_map(|(id, proof)| json!({"type": "tool_call", "id": id, "name": "look", "input": {}, "thought_signature": proof})),
        1 => Just(json!({"type": "reasoning", "content": [{"x": 1}], "summary": []})),
        1 => Just(json!({"type": "from_the_future", "x": [1]})),
        1 => Just(json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}})),
        1 => id().prop_map(|id| json!({"type": "tool_result", "tool_call_id": id, "output": {"x": 1}})),
    ]
}

/// A block of a person or of a tool's result.
fn shown() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => text().prop_map(|text| json!({"type": "text", "text": text})),
        1 => Just(json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}})),
        1 => Just(json!({"type": "image", "source": {"type": "url", "url": "https://example.invalid/x"}})),
        1 => Just(json!({"type": "image", "source": {}})),
        1 => Just(json!({"type": "document", "title": "a.pdf", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}})),
        1 => Just(json!({"type": "from_the_future", "x": [1]})),
        1 => id().prop_map(|id| json!({"type": "tool_result", "tool_call_id": id, "output": "done"})),
    ]
}

fn blocks(block: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::vec(block, 0..6).prop_map(Value::Array)
}

fn message() -> impl Strategy<Value = Value> {
    let calls = prop::collection::vec((id(), input()), 0..3);
    let calls = calls.prop_map(|calls| {
        calls
            .into_iter()
            .map(|(id, input)| json!({"id": id, "tool": "look", "arguments": input}))
            .collect::<Vec<_>>()
    });
    let content = || prop_oneof![text().prop_map(Value::String), blocks(shown())];
    prop_oneof![
        4 => content().prop_map(|content| json!({"role": "user", "content": content})),
        1 => text().prop_map(|text| json!({"role": "user", "content": text, "metadata": {"source": "hook", "ephemeral": true}})),
        1 => text().prop_map(|text| json!({"role": "system", "content": text})),
        1 => text().prop_map(|text| json!({"role": "developer", "content": text})),
        5 => blocks(said()).prop_map(|blocks| json!({"role": "assistant", "content": blocks})),
        2 => (text(), calls).prop_map(|(text, calls)| json!({"role": "assistant", "content": text, "tool_calls": calls})),
        5 => (id(), content()).prop_map(|(id, content)| json!({"role": "tool", "tool_call_id": id, "content": content})),
        1 => content().prop_map(|content| json!({"role": "tool", "content": content})),
        1 => (id(), text()).prop_map(|(id, text)| json!({"role": "function", "tool_call_id": id, "content": text})),
    ]
}

pub(super) fn histories() -> impl Strategy<Value = Messages> {
    prop::collection::vec(message(), 0..14).prop_map(|messages| {
        let message = |(at, mut message): (usize, Value)| {
            number(&mut message["content"], at);
            Arc::new(serde_json::from_value::<Message>(message).unwrap())
        };
        messages.into_iter().enumerate().map(message).collect()
    })
}

/// Makes each text that says something one that stands nowhere else.
fn number(content: &mut Value, at: usize) {
    let mark = |text: &mut Value, place: String| match text.as_str() {
        Some(said) if !said.trim().is_empty() => *text = json!(format!("{said}<{place}>")),
        _ => {}
    };
    match content {
        Value::Array(blocks) => {
            for (place, block) in blocks.iter_mut().enumerate() {
                for key in ["text", "thinking"] {
                    if let Some(text) = block.get_mut(key) {
                        mark(text, format!("{at}.{place}"));
                    }
                }
            }
        }
        text => mark(text, at.to_string()),
    }
}

/// What a mapper made of a history, told in one way for all: each thing the model is shown, in order.
#[derive(Debug, Clone, PartialEq)]
enum Shown {
    Text(String),
    Call(String),
    Result(String),
    Proof(String),
}

fn body(service: &impl Service, messages: &Messages, history: &History, model: &str) -> Value {
    let (request, settings) = (ChatRequest::new(messages.clone()), Settings::default());
    let learnt = Learnt::default();
    let delivery = Delivery::Streamed;
    let ask = Ask { request: &request, history, settings: &settings, model, delivery, learnt: &learnt };
    service.call(&ask).unwrap().body.unwrap()
}

fn string(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn of_anthropic(body: &Value) -> Vec<Shown> {
    let mut shown = Vec::new();
    let mut before = "";
    for message in body["messages"].as_array().unwrap() {
        let role = message["role"].as_str().unwrap();
        assert_ne!(role, before, "turns alternate");
        assert!(!before.is_empty() || role == "user", "a person speaks first");
        before = role;
        let blocks = message["content"].as_array().unwrap();
        assert!(!blocks.is_empty());
        for block in blocks {
            match block["type"].as_str().unwrap() {
                "text" => {
                    assert!(!string(&block["text"]).trim().is_empty(), "an empty text is refused");
                    shown.push(Shown::Text(string(&block["text"])));
                }
                "thinking" => {
                    assert_eq!(role, "assistant");
                    shown.push(Shown::Proof(string(&block["signature"])));
                }
                "redacted_thinking" => shown.push(Shown::Proof(string(&block["data"]))),
                "tool_use" => {
                    assert!(block["input"].is_object());
                    shown.push(Shown::Call(string(&block["id"])));
                }
                "tool_result" => shown.push(Shown::Result(string(&block["tool_use_id"]))),
                "image" | "document" => assert_eq!(role, "user"),
                other => panic!("{other}"),
            }
            let takes_marks = !matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
            assert!(takes_marks || block.get("cache_control").is_none());
        }
        let last = blocks.last().unwrap()["type"].as_str();
        assert!(
            !matches!(last, Some("thinking" | "redacted_thinking")),
            "a thought stands in front of something"
        );
    }
    shown
}

fn of_openai(body: &Value) -> Vec<Shown> {
    let (mut shown, mut thinks) = (Vec::new(), false);
    for item in body["input"].as_array().unwrap() {
        let kind = item["type"].as_str().unwrap();
        assert!(
            !thinks || matches!(kind, "reasoning" | "function_call") || item["role"] == "assistant",
            "{body}"
        );
        thinks = kind == "reasoning";
        match kind {
            "message" => {
                for part in item["content"].as_array().unwrap() {
                    shown.extend(part["text"].as_str().map(|text| Shown::Text(text.to_owned())));
                }
            }
            "reasoning" => {
                assert!(item["summary"].is_array());
                shown.push(Shown::Proof(string(&item["encrypted_content"])));
            }
            "function_call" => {
                assert!(item["arguments"].is_string());
                shown.push(Shown::Call(string(&item["call_id"])));
            }
            "function_call_output" => shown.push(Shown::Result(string(&item["call_id"]))),
            other => panic!("{other}"),
        }
    }
    assert!(!thinks, "reasoning stands in front of something");
    shown
}

fn of_gemini(body: &Value) -> Vec<Shown> {
    let (mut shown, mut calls) = (Vec::new(), 0);
    for content in body["contents"].as_array().unwrap() {
        let parts = content["parts"].as_array().unwrap();
        assert!(!parts.is_empty());
        let results = parts.iter().filter(|part| part.get("functionResponse").is_some()).count();
        assert_eq!(results, calls, "as many results as calls, in the turn behind them");
        calls = parts.iter().filter(|part| part.get("functionCall").is_some()).count();
        for part in parts {
            if let Some(text) = part.get("text").filter(|_| part.get("thought").is_none()) {
                shown.push(Shown::Text(string(text)));
            }
            if let Some(call) = part.get("functionCall") {
                assert!(call["args"].is_object());
                shown.push(Shown::Call(string(&call["id"])));
            }
            if let Some(response) = part.get("functionResponse") {
                shown.push(Shown::Result(string(&response["id"])));
            }
            shown.extend(part.get("thoughtSignature").map(|proof| Shown::Proof(string(proof))));
        }
    }
    assert_eq!(calls, 0);
    shown
}

fn of_chat(body: &Value) -> Vec<Shown> {
    let mut shown = Vec::new();
    for message in body["messages"].as_array().unwrap().iter().filter(|message| message["role"] != "system") {
        if message["role"] == "tool" {
            shown.push(Shown::Result(string(&message["tool_call_id"])));
            continue;
        }
        match &message["content"] {
            Value::String(text) => shown.push(Shown::Text(text.clone())),
            Value::Array(parts) => {
                let texts = parts.iter().filter_map(|part| part["text"].as_str());
                shown.extend(texts.map(|text| Shown::Text(text.to_owned())));
            }
            _ => {}
        }
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        for call in calls {
            assert!(call["function"]["arguments"].is_string());
            assert_eq!(call.get("thought_signature"), None, "what belongs to another service stays here");
            shown.push(Shown::Call(string(&call["id"])));
        }
    }
    shown
}

fn of_ollama(body: &Value) -> Vec<Shown> {
    let mut shown = Vec::new();
    for message in body["messages"].as_array().unwrap().iter().filter(|message| message["role"] != "system") {
        let role = message["role"].as_str().unwrap();
        let text = string(&message["content"]);
        if role == "tool" {
            assert_eq!(message.get("tool_calls"), None);
            shown.push(Shown::Result(string(&message["tool_call_id"])));
            continue;
        }
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        assert!(role == "assistant" || calls.is_empty(), "only the model calls");
        assert!(role == "assistant" || !text.is_empty() || message.get("images").is_some(), "{message}");
        let thought = message.get("thinking").map(string).unwrap_or_default();
        assert!(role == "assistant" || thought.is_empty());
        shown.push(Shown::Text(text));
        for call in calls {
            assert!(call["function"]["arguments"].is_object(), "the server takes nothing else");
            shown.push(Shown::Call(string(&call["id"])));
        }
    }
    shown
}

/// Up to where a service takes proofs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    OfSpeech,
    OfMessage,
}

/// The proofs that belong to a service, where something stands behind them that it can be shown.
fn proofs(history: &History, of: impl Fn(&ContentBlock) -> Option<String>, end: End) -> Vec<String> {
    let assistants = history.turns.iter().filter(|message| message.role == Role::Assistant);
    let of_message = |message: &Arc<Message>| -> Vec<String> {
        let blocks = spoken(message);
        let says = |block: &ContentBlock| match block {
            ContentBlock::Text(text) => !text.text.trim().is_empty(),
            ContentBlock::ToolCall(_) => true,
            _ => false,
        };
        let last = blocks.iter().rposition(|block| says(block));
        let Some(last) = last else { return Vec::new() };
        let end = if end == End::OfMessage { blocks.len() } else { last };
        blocks.iter().take(end + 1).filter_map(|block| of(block)).collect()
    };
    assistants.flat_map(of_message).collect()
}

fn extra_proof(block: &ContentBlock) -> Option<String> {
    let extra = match block {
        ContentBlock::Text(text) if !text.text.trim().is_empty() => &text.extra,
        ContentBlock::ToolCall(call) => &call.extra,
        _ => return None,
    };
    Some(extra.get("thought_signature")?.as_str()?.to_owned())
}

fn signed_by(block: &ContentBlock, origin: &str) -> Option<String> {
    match block {
        ContentBlock::Thinking(thought) if thought.extra.get("origin") == Some(&json!(origin)) => {
            thought.signature.clone()
        }
        _ => None,
    }
}

/// Pairs, order and proofs, and ids that the service takes.
fn check(shown: &[Shown], history: &History, expected_proofs: &[String]) {
    let mut ids = HashSet::new();
    for thing in shown {
        let Shown::Call(id) = thing else { continue };
        assert!(ids.insert(id), "an id stands for one call");
        let takes = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        assert!((1..=64).contains(&id.len()) && id.chars().all(takes), "{id}");
    }
    check_with_any_ids(shown, history, expected_proofs);
}

fn check_with_any_ids(shown: &[Shown], history: &History, expected_proofs: &[String]) {
    let mut open: Vec<&String> = Vec::new();
    for thing in shown {
        match thing {
            Shown::Call(id) => open.push(id),
            Shown::Result(id) => assert_eq!(open.remove(0), id, "results follow in the order of the calls"),
            Shown::Text(text) if !open.is_empty() => {
                // What a model says between its calls stands before their results.
                assert!(history.turns.iter().any(|m| m.role == Role::Assistant && holds(m, text)), "{text}");
            }
            Shown::Text(_) | Shown::Proof(_) => {}
        }
    }
    assert!(open.is_empty(), "every call has its result");
    let all = shown.iter().filter_map(|thing| match thing {
        Shown::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let mut rest = all.collect::<Vec<_>>().join("\u{0}");
    for message in history.turns.iter().filter(|message| message.role != Role::Tool) {
        for text in texts(message) {
            let at = rest.find(text.as_str()).unwrap_or_else(|| panic!("`{text}` is lost or out of order"));
            rest = rest.split_off(at + text.len());
        }
    }
    let sent = shown.iter().filter_map(|thing| match thing {
        Shown::Proof(proof) if proof != "skip_thought_signature_validator" => Some(proof.clone()),
        _ => None,
    });
    assert_eq!(sent.collect::<Vec<_>>(), expected_proofs);
}

fn holds(message: &Message, text: &str) -> bool {
    texts(message).iter().any(|said| said == text)
}

fn texts(message: &Message) -> Vec<String> {
    let texts: Vec<_> = match &message.content {
        Content::Text(text) => vec![text.clone()],
        Content::Blocks(blocks) => blocks
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text.text.clone()),
                _ => None,
            })
            .collect(),
    };
    texts.into_iter().filter(|text| !text.trim().is_empty()).collect()
}

/// The seal of a thought of OpenAI's.
fn sealed(block: &ContentBlock) -> Option<String> {
    match block {
        ContentBlock::Thinking(thought) if thought.extra.get("origin") == Some(&json!("openai")) => {
            thought.content.as_ref()?.first()?.as_str().map(str::to_owned)
        }
        _ => None,
    }
}

pub(super) fn anthropic_takes(messages: &Messages) {
    let (history, _) = repair(messages);
    let shown = of_anthropic(&body(&anthropic::Messages::plain(), messages, &history, "claude-sonnet-4-5"));
    let own = |block: &ContentBlock| match block {
        ContentBlock::RedactedThinking(sealed) => Some(sealed.data.clone()),
        other => signed_by(other, "anthropic"),
    };
    check(&shown, &history, &proofs(&history, own, End::OfSpeech));
}

pub(super) fn openai_takes(messages: &Messages) {
    let (history, _) = repair(messages);
    let shown = of_openai(&body(&openai::Responses::plain(), messages, &history, "gpt-5.5"));
    check(&shown, &history, &proofs(&history, sealed, End::OfSpeech));
}

pub(super) fn openai_takes_what_is_since_the_last_prompt(messages: &Messages) {
    let (history, _) = repair(messages);
    let service = openai::Responses::within_the_turn();
    let shown = of_openai(&body(&service, messages, &history, "gpt-5.5"));
    let turns = history.turns.iter().skip(last_prompt(&history)).cloned().collect();
    let since = History { turns, ..history.clone() };
    check(&shown, &history, &proofs(&since, sealed, End::OfSpeech));
}

pub(super) fn ollama_takes(messages: &Messages) {
    let (history, _) = repair(messages);
    let shown = of_ollama(&body(&ollama::Native::plain(), messages, &history, "m"));
    check_with_any_ids(&shown, &history, &[]);
}

pub(super) fn gemini_takes(messages: &Messages, model: &str) {
    let (history, _) = repair(messages);
    let shown = of_gemini(&body(&gemini::GenerateContent::plain(), messages, &history, model));
    let own = |block: &ContentBlock| signed_by(block, "gemini").or_else(|| extra_proof(block));
    check(&shown, &history, &proofs(&history, own, End::OfMessage));
}

pub(super) fn chat_completions_takes(messages: &Messages) {
    let (history, _) = repair(messages);
    let shown = of_chat(&body(&chat_completions::Protocol::plain(), messages, &history, "m"));
    check_with_any_ids(&shown, &history, &[]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_history_is_taken_by_anthropic(messages in histories()) {
        anthropic_takes(&messages);
    }

    #[test]
    fn any_history_is_taken_by_openai(messages in histories()) {
        openai_takes(&messages);
    }

    #[test]
    fn openai_is_sent_the_reasoning_since_the_last_prompt_and_no_other(messages in histories()) {
        openai_takes_what_is_since_the_last_prompt(&messages);
    }

    #[test]
    fn any_history_is_taken_by_ollama(messages in histories()) {
        ollama_takes(&messages);
    }

    #[test]
    fn any_history_is_taken_by_gemini(messages in histories(), newer in any::<bool>()) {
        gemini_takes(&messages, if newer { "gemini-3-pro-preview" } else { "gemini-2.5-flash" });
    }

    #[test]
    fn any_history_is_taken_by_chat_completions(messages in histories()) {
        chat_completions_takes(&messages);
    }
}
