//! From a mended conversation to the messages of the Messages API, with its marks for the prompt cache. Pure.

use std::borrow::Cow;

use amplifier_protocol::content::{ContentBlock, ImageBlock, TextBlock, ThinkingBlock};
use amplifier_protocol::message::{Content, Message, Role};
use serde_json::{Map, Value, json};

use super::super::blocks::{
    Bytes, Document, Ids, UNSEEN, as_object, is_thought, kept_item, origin, picture, spoken,
};
use super::super::wire::History;
use super::reader::KEPT;
use super::{Config, NAME};

/// A message that forms: consecutive turns of one side become one, as the API counts them.
struct Turn {
    role: &'static str,
    content: Vec<Value>,
}

/// The messages. The ends of what stays are marked, never what was added for this request alone.
pub(super) fn all(history: &History, config: &Config) -> Value {
    let (mut turns, mut ids) = (Vec::<Turn>::new(), Ids::default());
    let mut stable = None;
    for (at, message) in history.turns.iter().enumerate() {
        let (role, blocks) = match message.role {
            Role::Assistant => ("assistant", assistant(message, &mut ids)),
            Role::Tool | Role::Function => ("user", vec![tool_result(message, &ids)]),
            Role::Developer => {
                let text = format!("<context_file>\n{}\n</context_file>", message.content.visible_text());
                ("user", vec![json!({"type": "text", "text": text})])
            }
            // System text stands in front; what is left of it here is a person's turn.
            Role::User | Role::System => ("user", user(&message.content)),
        };
        add(&mut turns, role, blocks);
        if at < history.stable {
            stable = turns.last().map(|last| (turns.len(), last.content.len()));
        }
    }
    if let (Some((turn, block)), true) = (stable, config.enable_prompt_caching) {
        mark_ends(&mut turns, turn, block);
    }
    turns.into_iter().map(|turn| json!({"role": turn.role, "content": turn.content})).collect()
}

fn add(turns: &mut Vec<Turn>, role: &'static str, mut blocks: Vec<Value>) {
    match turns.last_mut() {
        _ if blocks.is_empty() => {}
        Some(last) if last.role == role => last.content.append(&mut blocks),
        _ => turns.push(Turn { role, content: blocks }),
    }
}

/// Marks the end of what stays, and the end of the person's turn before it: that is where the last request's mark was, and
/// the service looks back only so many blocks.
fn mark_ends(turns: &mut [Turn], turn: usize, block: usize) {
    let Some(last) = turns.get_mut(turn.saturating_sub(1)) else { return };
    mark(last.content.get_mut(..block).unwrap_or_default());
    let earlier = turns.get_mut(..turn.saturating_sub(1)).unwrap_or_default();
    if let Some(before) = earlier.iter_mut().rfind(|turn| turn.role == "user") {
        mark(&mut before.content);
    }
}

/// Thoughts take no mark.
fn mark(blocks: &mut [Value]) {
    if let Some(Value::Object(block)) = blocks.iter_mut().rfind(|block| !is_thinking(block)) {
        block.insert("cache_control".to_owned(), json!({"type": "ephemeral"}));
    }
}

fn user(content: &Content) -> Vec<Value> {
    match content {
        Content::Text(text) => vec![json!({"type": "text", "text": text})],
        Content::Blocks(blocks) => match blocks.iter().filter_map(seen).collect::<Vec<_>>() {
            none if none.is_empty() => vec![json!({"type": "text", "text": UNSEEN})],
            some => some,
        },
    }
}

/// What can be shown to the model: texts, pictures, documents.
fn seen(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text(text) => Some(json!({"type": "text", "text": text.text})),
        ContentBlock::Image(image) => image_block(image),
        ContentBlock::Unknown(unknown) => {
            let document = Document::read(unknown)?;
            let mut wire = Map::from_iter([
                ("type".to_owned(), json!("document")),
                ("source".to_owned(), document.source()?.clone()),
            ]);
            if let Some(title) = document.title() {
                wire.insert("title".to_owned(), json!(title));
            }
            Some(Value::Object(wire))
        }
        _ => None,
    }
}

fn image_block(image: &ImageBlock) -> Option<Value> {
    let source = match picture(image)? {
        Bytes::Here { media_type, data } => json!({"type": "base64", "media_type": media_type, "data": data}),
        Bytes::At(url) => json!({"type": "url", "url": url}),
        Bytes::Kept(id) => json!({"type": "file", "file_id": id}),
    };
    Some(json!({"type": "image", "source": source}))
}

fn tool_result(message: &Message, ids: &Ids) -> Value {
    let id = ids.result(message.tool_call_id.as_deref().unwrap_or_default());
    let content = match &message.content {
        Content::Blocks(blocks) if blocks.iter().any(|block| matches!(block, ContentBlock::Image(_))) => {
            let is_said = |block: &&ContentBlock| match block {
                ContentBlock::Text(text) => !text.text.trim().is_empty(),
                _ => true,
            };
            Value::Array(blocks.iter().filter(is_said).filter_map(seen).collect())
        }
        content => json!(content.visible_text()),
    };
    json!({"type": "tool_result", "tool_use_id": id, "content": content})
}

/// What the assistant said, in its order. A thought behind which nothing stands is refused and left out.
fn assistant(message: &Message, ids: &mut Ids) -> Vec<Value> {
    let parts = spoken(message);
    let legacy = legacy_thought(message, &parts);
    let said = parts.iter().filter_map(|block| assistant_block(block, ids));
    let mut said: Vec<_> = legacy.into_iter().chain(said).collect();
    while said.last().is_some_and(is_thinking) {
        said.pop();
    }
    said
}

fn is_thinking(block: &Value) -> bool {
    matches!(block.get("type").and_then(Value::as_str), Some("thinking" | "redacted_thinking"))
}

fn assistant_block(block: &ContentBlock, ids: &mut Ids) -> Option<Value> {
    match block {
        ContentBlock::Text(text) => text_block(text),
        ContentBlock::Thinking(thought) => own_thought(thought),
        ContentBlock::RedactedThinking(sealed) => {
            Some(json!({"type": "redacted_thinking", "data": sealed.data}))
        }
        ContentBlock::ToolCall(call) => {
            let (id, input) = (ids.call(&call.id), as_object(&call.input));
            Some(json!({"type": "tool_use", "id": id, "name": call.name, "input": input}))
        }
        ContentBlock::Unknown(unknown) => kept_item(unknown, KEPT),
        _ => None,
    }
}

/// White space alone is refused, and so is text that ends with it at the end of a conversation.
fn text_block(text: &TextBlock) -> Option<Value> {
    if text.text.trim().is_empty() {
        return None;
    }
    let mut wire = json!({"type": "text", "text": text.text});
    if let (Value::Object(wire), Some(citations)) = (&mut wire, text.extra.get("citations")) {
        wire.insert("citations".to_owned(), citations.clone());
    }
    Some(wire)
}

/// A thought goes back as it came, with its proof; the proof of another service is worth nothing here.
fn own_thought(thought: &ThinkingBlock) -> Option<Value> {
    let signature = thought.signature.as_ref().filter(|signature| !signature.is_empty())?;
    let is_own = match origin(&thought.extra) {
        Some(origin) => origin == NAME,
        // Conversations that were kept before blocks said whose they are.
        None => thought.content.is_none(),
    };
    is_own.then(|| json!({"type": "thinking", "thinking": thought.thinking, "signature": signature}))
}

/// Older loops kept one thought beside the message.
fn legacy_thought(message: &Message, parts: &[Cow<'_, ContentBlock>]) -> Option<Value> {
    if parts.iter().any(|block| is_thought(block)) {
        return None;
    }
    let kept = message.extra.get("thinking_block")?;
    own_thought(&serde_json::from_value(kept.clone()).ok()?)
}
