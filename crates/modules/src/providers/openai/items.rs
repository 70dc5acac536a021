//! From a mended conversation to the input items of the Responses API. Pure.

use amplifier_protocol::content::{ContentBlock, ImageBlock, ThinkingBlock, UnknownBlock};
use amplifier_protocol::message::{Content, Message, Role};
use serde_json::{Map, Value, json};

use super::super::blocks::{
    Bytes, Document, Ids, UNSEEN, as_text, digest, kept_item, last_prompt, origin, picture, spoken,
};
use super::super::wire::History;
use super::reader::{ITEM_ID, KEPT, PHASE, SUMMARY};
use super::{Config, NAME, Scope};

/// The items, in the order of the conversation.
pub(super) fn all(history: &History, config: &Config) -> Vec<Value> {
    let since = match config.reasoning_replay_scope {
        Scope::All => 0,
        Scope::None => history.turns.len(),
        Scope::Turn => last_prompt(history),
    };
    let (mut items, mut ids) = (Vec::new(), Ids::default());
    for (at, message) in history.turns.iter().enumerate() {
        match message.role {
            Role::Assistant => {
                let thoughts = if at >= since { Thoughts::Sent } else { Thoughts::Left };
                assistant(message, at, thoughts, &mut ids, &mut items);
            }
            Role::Tool | Role::Function => items.push(tool_result(message, &ids)),
            Role::Developer => {
                let text = format!("<context_file>\n{}\n</context_file>", message.content.visible_text());
                items.push(user_item(vec![input_text(&text)]));
            }
            // System text stands in front; what is left of it here is a person's turn.
            Role::User | Role::System => items.push(user(&message.content)),
        }
    }
    items
}

/// Whether reasoning goes back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Thoughts {
    Sent,
    Left,
}

fn input_text(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}

fn user_item(content: Vec<Value>) -> Value {
    json!({"type": "message", "role": "user", "content": content})
}

fn user(content: &Content) -> Value {
    user_item(match content {
        Content::Text(text) => vec![input_text(text)],
        Content::Blocks(blocks) => match blocks.iter().filter_map(seen).collect::<Vec<_>>() {
            none if none.is_empty() => vec![input_text(UNSEEN)],
            some => some,
        },
    })
}

/// What can be shown to the model: texts, pictures, documents.
fn seen(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text(text) => Some(input_text(&text.text)),
        ContentBlock::Image(image) => input_image(image),
        ContentBlock::Unknown(unknown) => input_file(unknown),
        _ => None,
    }
}

fn input_image(image: &ImageBlock) -> Option<Value> {
    let detail = image.extra.get("detail").and_then(Value::as_str).unwrap_or("auto");
    let (key, place) = match picture(image)? {
        Bytes::Here { media_type, data } => ("image_url", format!("data:{media_type};base64,{data}")),
        Bytes::At(url) => ("image_url", url.to_owned()),
        Bytes::Kept(id) => ("file_id", id.to_owned()),
    };
    Some(json!({"type": "input_image", "detail": detail, key: place}))
}

fn input_file(block: &UnknownBlock) -> Option<Value> {
    let document = Document::read(block)?;
    Some(match document.bytes()? {
        Bytes::Here { media_type, data } => {
            let name = document.title().unwrap_or("document.pdf");
            json!({"type": "input_file", "filename": name, "file_data": format!("data:{media_type};base64,{data}")})
        }
        Bytes::At(url) => json!({"type": "input_file", "file_url": url}),
        Bytes::Kept(id) => json!({"type": "input_file", "file_id": id}),
    })
}

fn tool_result(message: &Message, ids: &Ids) -> Value {
    let id = ids.result(message.tool_call_id.as_deref().unwrap_or_default());
    let output = match &message.content {
        Content::Blocks(blocks) if blocks.iter().any(|block| matches!(block, ContentBlock::Image(_))) => {
            Value::Array(blocks.iter().filter_map(seen).collect())
        }
        content => json!(content.visible_text()),
    };
    json!({"type": "function_call_output", "call_id": id, "output": output})
}

/// The items of an assistant's message, each in its place. Reasoning behind which nothing stands is refused and left out.
fn assistant(message: &Message, at: usize, thoughts: Thoughts, ids: &mut Ids, items: &mut Vec<Value>) {
    let begin = items.len();
    for (number, block) in spoken(message).iter().enumerate() {
        match block.as_ref() {
            ContentBlock::Text(text) if text.text.trim().is_empty() => {}
            ContentBlock::Text(text) => {
                let id = text.extra.get(ITEM_ID).and_then(Value::as_str).map(str::to_owned);
                let id = id.unwrap_or_else(|| format!("msg_{}", digest(&format!("{at} {number}"))));
                items.push(output_message(&id, &text.text, text.extra.get(PHASE)));
            }
            ContentBlock::Thinking(thought) if thoughts == Thoughts::Sent => items.extend(reasoning(thought)),
            ContentBlock::ToolCall(call) => items.push(json!({
                "type": "function_call",
                "call_id": ids.call(&call.id),
                "name": call.name,
                "arguments": as_text(&call.input),
            })),
            ContentBlock::Unknown(unknown) => items.extend(kept_item(unknown, KEPT)),
            _ => {}
        }
    }
    let is_reasoning = |item: &Value| item.get("type").and_then(Value::as_str) == Some("reasoning");
    while items.len() > begin && items.last().is_some_and(is_reasoning) {
        items.pop();
    }
}

/// The one form that all servers of this API take.
fn output_message(id: &str, text: &str, phase: Option<&Value>) -> Value {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    let mut wire =
        json!({"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content});
    if let (Value::Object(wire), Some(phase)) = (&mut wire, phase) {
        wire.insert("phase".to_owned(), phase.clone());
    }
    wire
}

/// Sealed reasoning goes back as it came. Without the seal the service would look for what it did not keep.
fn reasoning(thought: &ThinkingBlock) -> Option<Value> {
    let [Value::String(sealed), Value::String(id)] = thought.content.as_deref()? else { return None };
    if origin(&thought.extra).is_some_and(|origin| origin != NAME) {
        return None;
    }
    let summary = match thought.extra.get(SUMMARY) {
        Some(parts) => parts.clone(),
        None if thought.thinking.is_empty() => json!([]),
        None => json!([{"type": "summary_text", "text": thought.thinking}]),
    };
    let wire = [
        ("type", json!("reasoning")),
        ("id", json!(id)),
        ("summary", summary),
        ("encrypted_content", json!(sealed)),
    ];
    Some(Value::Object(wire.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>()))
}
