//! From a request to the words of Ollama's chat protocol. Pure.

use amplifier_protocol::chat::ResponseFormat;
use amplifier_protocol::content::ContentBlock;
use amplifier_protocol::message::{Content, Message, Role};
use amplifier_protocol::tool::ToolCall;
use serde_json::{Map, Value, json};

use super::super::blocks::{Bytes, UNSEEN, picture};
use super::super::wire::{Ask, Delivery, History};
use super::Config;

/// The body of a request.
pub(super) fn body(ask: &Ask<'_>, config: &Config) -> Map<String, Value> {
    let request = ask.request;
    let mut body = Map::from_iter([
        ("model".to_owned(), json!(ask.model)),
        ("messages".to_owned(), Value::Array(messages(ask.history))),
        // Without it the server streams.
        ("stream".to_owned(), json!(ask.delivery == Delivery::Streamed)),
    ]);
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(key.to_owned(), value);
        }
    };
    let tools = request.tools.as_deref().filter(|tools| !tools.is_empty());
    let tool = |spec: &std::sync::Arc<amplifier_protocol::tool::ToolSpec>| {
        let parameters = if spec.parameters.is_object() {
            spec.parameters.clone()
        } else {
            json!({"type": "object", "properties": {}})
        };
        json!({"type": "function", "function": {"name": spec.name, "description": spec.description, "parameters": parameters}})
    };
    set("tools", tools.map(|tools| tools.iter().map(tool).collect()));
    set("format", ask.response_format().and_then(format));
    set("think", think(ask, config));
    set("keep_alive", config.keep_alive.clone());
    set("options", Some(Value::Object(options(ask, config))).filter(|options| options != &json!({})));
    body.extend(ask.settings.extra_request_params.clone());
    body
}

fn options(ask: &Ask<'_>, config: &Config) -> Map<String, Value> {
    let room = match config.num_ctx {
        0 => ask.learnt.context_window,
        fixed => Some(fixed),
    };
    let options = [
        ("num_ctx", room.map(Value::from)),
        ("num_predict", ask.max_tokens().map(Value::from)),
        ("temperature", ask.temperature().map(Value::from)),
        ("top_p", ask.top_p().map(Value::from)),
        ("stop", ask.stop().map(|stop| json!(stop))),
        ("seed", config.seed.map(Value::from)),
    ];
    options.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// A model that cannot think refuses to be asked, so only those that are known to can are.
fn think(ask: &Ask<'_>, config: &Config) -> Option<Value> {
    if !ask.learnt.abilities.iter().any(|ability| ability == "thinking") {
        return None;
    }
    Some(match ask.request.reasoning_effort.as_deref() {
        _ if !config.enable_thinking => json!(false),
        Some("none") => json!(false),
        // Only some models know degrees; the others take them as yes.
        Some(effort @ ("low" | "medium" | "high")) => json!(effort),
        _ => json!(true),
    })
}

fn format(format: &ResponseFormat) -> Option<Value> {
    match format {
        ResponseFormat::Text => None,
        ResponseFormat::Json => Some(json!("json")),
        ResponseFormat::JsonSchema { json_schema, .. } => {
            let inner = json_schema.get("schema").filter(|_| json_schema.get("name").is_some());
            Some(inner.unwrap_or(json_schema).clone())
        }
    }
}

fn messages(history: &History) -> Vec<Value> {
    let mut wire = Vec::with_capacity(history.turns.len() + 1);
    if !history.system.is_empty() {
        wire.push(json!({"role": "system", "content": history.system}));
    }
    for message in &history.turns {
        let text = message.content.visible_text();
        wire.push(match message.role {
            Role::Assistant => assistant(message),
            Role::Tool | Role::Function => {
                let result = json!({"role": "tool", "content": text, "tool_name": message.name, "tool_call_id": message.tool_call_id});
                with_images(result, &message.content)
            }
            Role::Developer => {
                json!({"role": "user", "content": format!("<context_file>\n{text}\n</context_file>")})
            }
            Role::User | Role::System => with_images(json!({"role": "user", "content": text}), &message.content),
        });
    }
    wire
}

fn assistant(message: &Message) -> Value {
    let mut wire = json!({"role": "assistant", "content": message.content.visible_text()});
    let Value::Object(fields) = &mut wire else { return wire };
    if let Content::Blocks(blocks) = &message.content {
        let thoughts: String = blocks.iter().filter_map(own_thought).collect();
        if !thoughts.is_empty() {
            fields.insert("thinking".to_owned(), Value::String(thoughts));
        }
    }
    let calls: Vec<_> = message.calls().iter().map(tool_call).collect();
    if !calls.is_empty() {
        fields.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    wire
}

/// Thoughts of other services carry their proofs and mean nothing here.
fn own_thought(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Thinking(thought) if thought.signature.is_none() && thought.content.is_none() => {
            Some(&thought.thinking)
        }
        _ => None,
    }
}

fn tool_call(call: &ToolCall) -> Value {
    // The server wants an object; what a model wrote that is none goes back as one that holds it.
    let arguments =
        if call.arguments.is_object() { call.arguments.clone() } else { json!({"input": call.arguments}) };
    json!({"id": call.id, "function": {"name": call.name, "arguments": arguments}})
}

/// The same with its pictures, and told of those that cannot be shown.
fn with_images(mut wire: Value, content: &Content) -> Value {
    let (Content::Blocks(blocks), Value::Object(fields)) = (content, &mut wire) else { return wire };
    let (mut images, mut unseen) = (Vec::new(), false);
    for block in blocks {
        let ContentBlock::Image(image) = block else { continue };
        match picture(image) {
            Some(Bytes::Here { data, .. }) => images.push(json!(data)),
            // The server fetches nothing.
            Some(Bytes::At(_) | Bytes::Kept(_)) | None => unseen = true,
        }
    }
    if !images.is_empty() {
        fields.insert("images".to_owned(), Value::Array(images));
    }
    let text = fields.get("content").and_then(Value::as_str).unwrap_or_default();
    let is_more = |block: &ContentBlock| !matches!(block, ContentBlock::Text(_));
    let nothing_left = text.is_empty() && !fields.contains_key("images") && blocks.iter().any(is_more);
    if unseen || nothing_left {
        let told = if text.is_empty() { UNSEEN.to_owned() } else { format!("{text}\n\n{UNSEEN}") };
        fields.insert("content".to_owned(), Value::String(told));
    }
    wire
}
