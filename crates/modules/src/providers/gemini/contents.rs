//! From a mended conversation to the contents of the `generateContent` API. Pure.

use amplifier_protocol::content::{ContentBlock, ImageBlock, ThinkingBlock};
use amplifier_protocol::message::{Content, Message, Role};
use serde_json::{Value, json};

use super::super::blocks::{
    Bytes, Document, Ids, THOUGHT_SIGNATURE, UNSEEN, as_object, kept_item, origin, picture, spoken,
};
use super::super::wire::History;
use super::NAME;
use super::reader::KEPT;

/// What the service takes for a proof where a call is not its own: calls of another model have none.
const NO_PROOF: &str = "skip_thought_signature_validator";
/// From this generation on calls need a proof.
const PROVEN: u32 = 3;

/// The contents, in the order of the conversation.
pub(super) fn all(history: &History, generation: u32) -> Vec<Value> {
    let (mut contents, mut ids) = (Vec::<(Side, Vec<Value>)>::new(), Ids::default());
    for message in &history.turns {
        let (side, parts) = match message.role {
            Role::Assistant => (Side::Model, assistant(message, generation, &mut ids)),
            Role::Tool | Role::Function => (Side::Results, tool_result(message, &ids)),
            Role::Developer => {
                let text = format!("<context_file>\n{}\n</context_file>", message.content.visible_text());
                (Side::Person, vec![json!({"text": text})])
            }
            // System text stands in front; what is left of it here is a person's turn.
            Role::User | Role::System => (Side::Person, user(&message.content)),
        };
        match contents.last_mut() {
            _ if parts.is_empty() => {}
            // The results of calls made together stand together, and a model does not answer itself.
            Some((last, before)) if *last == side => before.extend(parts),
            _ => contents.push((side, parts)),
        }
    }
    let content = |(side, parts): (Side, Vec<Value>)| json!({"role": if side == Side::Model { "model" } else { "user" }, "parts": parts});
    contents.into_iter().map(content).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Person,
    Results,
    Model,
}

fn user(content: &Content) -> Vec<Value> {
    match content {
        Content::Text(text) => vec![json!({"text": text})],
        Content::Blocks(blocks) => match blocks.iter().filter_map(seen).collect::<Vec<_>>() {
            none if none.is_empty() => vec![json!({"text": UNSEEN})],
            some => some,
        },
    }
}

/// What can be shown to the model: texts, pictures, documents.
fn seen(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text(text) => Some(json!({"text": text.text})),
        ContentBlock::Image(image) => image_part(image),
        ContentBlock::Unknown(unknown) => data_part(Document::read(unknown)?.bytes()?, "application/pdf"),
        _ => None,
    }
}

fn image_part(image: &ImageBlock) -> Option<Value> {
    let kind = image.source.get("media_type").and_then(Value::as_str).unwrap_or("image/png");
    data_part(picture(image)?, kind)
}

fn data_part(bytes: Bytes<'_>, kind: &str) -> Option<Value> {
    Some(match bytes {
        Bytes::Here { media_type, data } => json!({"inlineData": {"mimeType": media_type, "data": data}}),
        Bytes::At(place) | Bytes::Kept(place) => json!({"fileData": {"mimeType": kind, "fileUri": place}}),
    })
}

/// A result, and behind it the pictures it holds.
fn tool_result(message: &Message, ids: &Ids) -> Vec<Value> {
    let id = ids.result(message.tool_call_id.as_deref().unwrap_or_default());
    let response = json!({"output": message.content.visible_text()});
    let name = message.name.as_deref().unwrap_or("tool");
    let mut parts = vec![json!({"functionResponse": {"id": id, "name": name, "response": response}})];
    if let Content::Blocks(blocks) = &message.content {
        let images = blocks.iter().filter(|block| matches!(block, ContentBlock::Image(_)));
        parts.extend(images.filter_map(seen));
    }
    parts
}

fn assistant(message: &Message, generation: u32, ids: &mut Ids) -> Vec<Value> {
    let blocks = spoken(message);
    let parts = blocks.iter().filter_map(|block| part(block, ids));
    let mut parts: Vec<_> = parts.collect();
    // Thoughts alone are no answer.
    if parts.iter().all(|part| part.get("thought") == Some(&Value::Bool(true))) {
        return Vec::new();
    }
    let is_call = |part: &&mut Value| part.get("functionCall").is_some();
    // The proof stands with the first of the calls made together.
    if let (Some(Value::Object(first)), true) = (parts.iter_mut().find(is_call), generation >= PROVEN) {
        first.entry("thoughtSignature").or_insert_with(|| json!(NO_PROOF));
    }
    parts
}

fn part(block: &ContentBlock, ids: &mut Ids) -> Option<Value> {
    match block {
        ContentBlock::Text(text) if text.text.trim().is_empty() => None,
        ContentBlock::Text(text) => {
            Some(signed(json!({"text": text.text}), text.extra.get(THOUGHT_SIGNATURE)))
        }
        ContentBlock::Thinking(thought) => own_thought(thought),
        ContentBlock::ToolCall(call) => {
            let (id, args) = (ids.call(&call.id), as_object(&call.input));
            let part = json!({"functionCall": {"id": id, "name": call.name, "args": args}});
            Some(signed(part, call.extra.get(THOUGHT_SIGNATURE)))
        }
        ContentBlock::Unknown(unknown) => kept_item(unknown, KEPT),
        _ => None,
    }
}

fn own_thought(thought: &ThinkingBlock) -> Option<Value> {
    if origin(&thought.extra) != Some(NAME) {
        return None;
    }
    let signature = thought.signature.as_ref().map(|signature| json!(signature));
    if thought.thinking.is_empty() && signature.is_none() {
        return None;
    }
    Some(signed(json!({"text": thought.thinking, "thought": true}), signature.as_ref()))
}

fn signed(part: Value, signature: Option<&Value>) -> Value {
    match (part, signature) {
        (Value::Object(mut part), Some(signature)) => {
            part.insert("thoughtSignature".to_owned(), signature.clone());
            Value::Object(part)
        }
        (part, _) => part,
    }
}
