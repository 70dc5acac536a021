//! From an entry of the script to the answer of a model: whole, and piece by piece.

use amplifier_core::contracts::ProviderCx;
use amplifier_core::estimate::estimate_tokens;
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::content::{ContentBlock, ThinkingBlock, ToolCallBlock};
use amplifier_protocol::stream::StreamEvent;
use amplifier_protocol::tool::ToolCall;
use amplifier_protocol::usage::Usage;
use serde_json::{Map, Value};

use super::script::{Chunks, Reply};

/// The whole answer. Ids of calls are made from the request's, so that no two calls of a session share one.
pub(super) fn response(reply: &Reply, request: &ChatRequest, request_id: &str, model: &str) -> ChatResponse {
    let mut content = Vec::new();
    if let Some(thinking) = &reply.thinking {
        let thinking = thinking.clone();
        content.push(ContentBlock::Thinking(ThinkingBlock { thinking, ..ThinkingBlock::default() }));
    }
    let text = reply.whole_text().filter(|text| !text.is_empty());
    content.extend(text.as_deref().map(ContentBlock::text));
    let mut calls = Vec::new();
    for (at, call) in reply.tool_calls.iter().enumerate() {
        let id = call.id.clone().unwrap_or_else(|| format!("call-{request_id}-{at}"));
        let (name, input) = (call.name.clone(), Value::Object(call.arguments.clone()));
        calls.push(ToolCall::new(id.clone(), name.clone(), input.clone()));
        content.push(ContentBlock::ToolCall(ToolCallBlock { id, name, input, ..ToolCallBlock::default() }));
    }
    let finish_reason = if calls.is_empty() { "stop" } else { "tool_calls" };
    ChatResponse {
        content,
        tool_calls: Some(calls).filter(|calls| !calls.is_empty()),
        usage: Some(usage(reply, request, text.as_deref().unwrap_or_default())),
        finish_reason: Some(finish_reason.to_owned()),
        metadata: Some(Map::from_iter([("model".to_owned(), Value::from(model))])),
        ..ChatResponse::default()
    }
}

fn usage(reply: &Reply, request: &ChatRequest, text: &str) -> Usage {
    let Some(usage) = &reply.usage else {
        let sent = request.messages.iter().map(|message| estimate_tokens(&message.content.visible_text()));
        return Usage::new(sent.sum(), estimate_tokens(text));
    };
    let mut usage = usage.clone();
    if usage.total_tokens == 0 {
        usage.total_tokens = usage.input_tokens.saturating_add(usage.output_tokens);
    }
    usage
}

/// Sends the answer as a service would: block by block, the text in the pieces of the script.
pub(super) async fn stream(reply: &Reply, response: &ChatResponse, cx: &ProviderCx) {
    cx.send(StreamEvent::MessageStart).await;
    for (index, block) in (0_u32..).zip(&response.content) {
        match block {
            ContentBlock::Thinking(block) if !block.thinking.is_empty() => {
                cx.send(StreamEvent::ThinkingDelta { index, text: block.thinking.clone() }).await;
            }
            ContentBlock::Text(block) => {
                for piece in Chunks::split(reply.chunks.as_ref(), &block.text) {
                    cx.send(StreamEvent::TextDelta { index, text: piece.to_owned() }).await;
                }
            }
            ContentBlock::ToolCall(block) => {
                let (id, name) = (block.id.clone(), block.name.clone());
                cx.send(StreamEvent::ToolCallStart { index, id, name }).await;
                let arguments_fragment = block.input.to_string();
                cx.send(StreamEvent::ToolCallDelta { index, arguments_fragment }).await;
                cx.send(StreamEvent::ToolCallEnd { index, arguments: block.input.clone() }).await;
            }
            _ => {}
        }
    }
    cx.send(StreamEvent::MessageEnd { usage: response.usage.clone() }).await;
}
