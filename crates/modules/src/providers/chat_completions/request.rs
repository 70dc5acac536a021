//! From a request to the words of the Chat Completions protocol. Pure.

use std::sync::Arc;

use amplifier_protocol::chat::ResponseFormat;
use amplifier_protocol::content::{ContentBlock, ImageBlock, ThinkingBlock};
use amplifier_protocol::message::{Content, Message, Role};
use amplifier_protocol::tool::{ToolCall, ToolSpec};
use serde_json::{Map, Value, json};

use super::super::blocks::{Bytes, THOUGHT_SIGNATURE, UNSEEN, picture};
use super::super::wire::{Ask, Delivery, History};
use super::{Config, Replay};

/// The key of a thought that says in which field of an answer it came, and so in which it may go back.
pub(super) const FIELD: &str = "reasoning_field";

/// The body of a request.
pub(super) fn body(ask: &Ask<'_>, config: &Config) -> Map<String, Value> {
    let request = ask.request;
    let mut body = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(key.to_owned(), value);
        }
    };
    set("model", Some(json!(ask.model)));
    set("messages", Some(Value::Array(messages(ask.history, config))));
    if ask.delivery == Delivery::Streamed {
        set("stream", Some(json!(true)));
        set("stream_options", Some(json!({"include_usage": true})));
    }
    let tools = request.tools.as_deref().filter(|tools| !tools.is_empty());
    set("tools", tools.map(|tools| tools.iter().map(|spec| tool(spec)).collect()));
    if tools.is_some() {
        set("tool_choice", request.tool_choice.as_ref().map(tool_choice));
        set("parallel_tool_calls", config.parallel_tool_calls.map(Value::Bool));
    }
    set("response_format", ask.response_format().and_then(response_format));
    set("temperature", ask.temperature().map(Value::from));
    set("top_p", ask.top_p().map(Value::from));
    set(&config.max_tokens_key, ask.max_tokens().map(Value::from));
    set("stop", ask.stop().map(|stop| json!(stop)));
    set("seed", config.seed.map(Value::from));
    let effort = request.reasoning_effort.as_ref().or(config.reasoning_effort.as_ref());
    set("reasoning_effort", effort.map(|effort| json!(effort)));
    body.extend(ask.settings.extra_request_params.clone());
    body
}

fn messages(history: &History, config: &Config) -> Vec<Value> {
    let mut wire: Vec<Map<String, Value>> = Vec::new();
    if !history.system.is_empty() {
        wire.push(speech("system", json!(history.system)));
    }
    let since = match config.reasoning_replay {
        Replay::All => 0,
        Replay::None => history.turns.len(),
        Replay::Turn => last_prompt(history),
    };
    let mark_last = |wire: &mut Vec<Map<String, Value>>| {
        if let (Some(last), true) = (wire.last_mut(), config.cache_markers) {
            mark(last);
        }
    };
    mark_last(&mut wire);
    let (system_end, mut images) = (wire.len(), Vec::new());
    for (at, message) in history.turns.iter().enumerate() {
        if message.role != Role::Tool {
            flush(&mut wire, &mut images);
        }
        match message.role {
            Role::Assistant => {
                let thoughts = if at >= since { Thoughts::Sent } else { Thoughts::Left };
                wire.extend(assistant(message, thoughts));
            }
            Role::Tool | Role::Function => wire.push(tool_result(message, &mut images)),
            Role::Developer => {
                let text = message.content.visible_text();
                add_user(&mut wire, json!(format!("<context_file>\n{text}\n</context_file>")), system_end);
            }
            // System text stands in front; what is left of it here is a person's turn.
            Role::User | Role::System => add_user(&mut wire, user_content(&message.content), system_end),
        }
        // Now, before what is said in passing is joined to the same message and the mark would stand behind it.
        if at + 1 == history.stable {
            mark_last(&mut wire);
        }
    }
    flush(&mut wire, &mut images);
    wire.into_iter().map(Value::Object).collect()
}

/// Where the last prompt of a person stands; what hooks say in a person's name is none.
fn last_prompt(history: &History) -> usize {
    let is_prompt =
        |message: &Arc<Message>| message.role == Role::User && !message.metadata.contains_key("source");
    history.turns.iter().rposition(is_prompt).unwrap_or_default()
}

fn speech(role: &str, content: Value) -> Map<String, Value> {
    Map::from_iter([("role".to_owned(), json!(role)), ("content".to_owned(), content)])
}

/// Adds a person's words. Many chat templates refuse two turns of a person in a row, so they become one.
fn add_user(wire: &mut Vec<Map<String, Value>>, content: Value, from: usize) {
    let behind_system = wire.len() > from;
    let last = wire.last_mut().filter(|last| behind_system && last.get("role") == Some(&json!("user")));
    let Some(last) = last else {
        wire.push(speech("user", content));
        return;
    };
    let before = last.insert("content".to_owned(), Value::Null).unwrap_or_default();
    let joined = match (before, content) {
        (Value::String(before), Value::String(content)) => Value::String(format!("{before}\n\n{content}")),
        (before, content) => Value::Array([parts(before), parts(content)].concat()),
    };
    last.insert("content".to_owned(), joined);
}

fn parts(content: Value) -> Vec<Value> {
    match content {
        Value::Array(parts) => parts,
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    }
}

/// Plain text where it is nothing else: not every server takes parts.
fn user_content(content: &Content) -> Value {
    let blocks = match content {
        Content::Text(text) => return json!(text),
        Content::Blocks(blocks) => blocks,
    };
    if !blocks.iter().any(|block| matches!(block, ContentBlock::Image(_))) {
        let text = content.visible_text();
        return if text.is_empty() { json!(UNSEEN) } else { json!(text) };
    }
    let part = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => Some(json!({"type": "text", "text": text.text})),
        ContentBlock::Image(image) => Some(image_part(image)),
        _ => None,
    };
    Value::Array(blocks.iter().filter_map(part).collect())
}

/// A picture, or that there is one which cannot be shown.
fn image_part(image: &ImageBlock) -> Value {
    let url = match picture(image) {
        Some(Bytes::Here { media_type, data }) => format!("data:{media_type};base64,{data}"),
        Some(Bytes::At(url)) => url.to_owned(),
        Some(Bytes::Kept(_)) | None => return json!({"type": "text", "text": UNSEEN}),
    };
    json!({"type": "image_url", "image_url": {"url": url}})
}

/// Whether thoughts go back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Thoughts {
    Sent,
    Left,
}

/// None when nothing is left to send, such as a thought that stays here.
fn assistant(message: &Message, thoughts: Thoughts) -> Option<Map<String, Value>> {
    let text = message.content.visible_text();
    let calls: Vec<_> = message.calls().iter().map(tool_call).collect();
    let mut wire = speech("assistant", if text.is_empty() { Value::Null } else { json!(text) });
    if let (Content::Blocks(blocks), Thoughts::Sent) = (&message.content, thoughts) {
        for block in blocks {
            if let ContentBlock::Thinking(thought) = block {
                replay(thought, &mut wire);
            }
        }
    }
    if calls.is_empty() && text.is_empty() {
        return None;
    }
    if !calls.is_empty() {
        wire.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    Some(wire)
}

/// A thought goes back only to a server that sent it in the first place, in the field it came in and as it came.
fn replay(thought: &ThinkingBlock, wire: &mut Map<String, Value>) {
    let Some(field) = thought.extra.get(FIELD).and_then(Value::as_str) else { return };
    match &thought.content {
        Some(state) => {
            wire.insert("reasoning_details".to_owned(), Value::Array(state.clone()));
        }
        None if thought.thinking.is_empty() => {}
        None => {
            let before = wire.get(field).and_then(Value::as_str).unwrap_or_default();
            let whole = format!("{before}{}", thought.thinking);
            wire.insert(field.to_owned(), Value::String(whole));
        }
    }
}

fn tool_call(call: &ToolCall) -> Value {
    let arguments = match &call.arguments {
        // What was no JSON when the model wrote it goes back as it was.
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut wire =
        json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}});
    if let Value::Object(wire) = &mut wire {
        // The proof of another service is not for this one.
        for (key, value) in call.extra.iter().filter(|(key, _)| *key != THOUGHT_SIGNATURE) {
            wire.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    wire
}

/// A result is text; pictures in it follow behind the results, in a person's turn.
fn tool_result(message: &Message, images: &mut Vec<Value>) -> Map<String, Value> {
    if let Content::Blocks(blocks) = &message.content {
        for block in blocks {
            if let ContentBlock::Image(image) = block {
                images.push(image_part(image));
            }
        }
    }
    let mut wire = speech("tool", json!(message.content.visible_text()));
    wire.insert("tool_call_id".to_owned(), json!(message.tool_call_id));
    wire
}

fn flush(wire: &mut Vec<Map<String, Value>>, images: &mut Vec<Value>) {
    if !images.is_empty() {
        wire.push(speech("user", Value::Array(std::mem::take(images))));
    }
}

fn tool(spec: &ToolSpec) -> Value {
    // A tool of the server's own is sent as it was given.
    if spec.extra.get("type").and_then(Value::as_str).is_some_and(|kind| kind != "function") {
        return json!(spec);
    }
    let empty = json!({"type": "object", "properties": {}});
    let parameters = if spec.parameters.is_object() { &spec.parameters } else { &empty };
    let mut function = json!({"name": spec.name, "parameters": parameters});
    if let (Value::Object(function), Some(description)) = (&mut function, &spec.description) {
        function.insert("description".to_owned(), json!(description));
    }
    if let (Value::Object(function), Some(strict)) = (&mut function, spec.extra.get("strict")) {
        function.insert("strict".to_owned(), strict.clone());
    }
    json!({"type": "function", "function": function})
}

/// Words and objects of other protocols in the words of this one.
fn tool_choice(choice: &Value) -> Value {
    match choice {
        Value::String(word) if word == "any" => json!("required"),
        Value::Object(object) => match (object.get("type").and_then(Value::as_str), object.get("name")) {
            (Some("tool" | "function"), Some(name)) => {
                json!({"type": "function", "function": {"name": name}})
            }
            (Some("any"), _) => json!("required"),
            (Some(word @ ("auto" | "none" | "required")), _) => json!(word),
            _ => choice.clone(),
        },
        _ => choice.clone(),
    }
}

fn response_format(format: &ResponseFormat) -> Option<Value> {
    match format {
        ResponseFormat::Text => None,
        ResponseFormat::Json => Some(json!({"type": "json_object"})),
        ResponseFormat::JsonSchema { json_schema, strict } => {
            // Some callers give the schema with its wrapper.
            let wrapped = json_schema.get("schema").filter(|_| json_schema.get("name").is_some());
            let mut inner = match wrapped {
                Some(_) => json_schema.clone(),
                None => json!({"name": "answer", "schema": json_schema}),
            };
            if let (Value::Object(inner), Some(strict)) = (&mut inner, strict) {
                inner.insert("strict".to_owned(), Value::Bool(*strict));
            }
            Some(json!({"type": "json_schema", "json_schema": inner}))
        }
    }
}

/// Marks the end of a message for a prompt cache.
fn mark(message: &mut Map<String, Value>) {
    let Some(content) = message.get_mut("content") else { return };
    let mut marked = parts(content.take());
    if let Some(Value::Object(last)) = marked.last_mut() {
        last.insert("cache_control".to_owned(), json!({"type": "ephemeral"}));
    }
    *content = if marked.is_empty() { Value::Null } else { Value::Array(marked) };
}
