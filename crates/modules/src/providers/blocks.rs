//! What the vendors' mappers share: an assistant's parts in their order, ids that a service takes, pictures and documents,
//! schemas. Pure; it knows no service.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use amplifier_protocol::content::{ContentBlock, ImageBlock, ToolCallBlock, UnknownBlock};
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::message::{Content, Message, Role};
use amplifier_protocol::tool::ToolCall;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::wire::{Frame, History};

/// The key of a block that says whose it is. A thought goes back only to the service that had it.
pub(super) const ORIGIN: &str = "origin";

/// The key under which a call or a text keeps the proof of a service that puts one beside other things than thoughts.
pub(super) const THOUGHT_SIGNATURE: &str = "thought_signature";

/// What the model reads where a person showed only what this service cannot be shown.
pub(super) const UNSEEN: &str = "(Something that cannot be shown here.)";

/// The tool by whose input a model answers where the schema of an answer is not taken.
pub(super) const ANSWER: &str = "give_structured_answer";

/// What the model is told of that tool.
pub(super) const ABOUT_ANSWER: &str = "Gives the answer in the wanted shape.";

/// The key under which a block of ours keeps a service's own item, whole.
const ITEM: &str = "item";

/// What an assistant's message says, in the order in which it was said: its blocks, and behind them the calls that stand
/// only in the list of calls. Each call stands once.
pub(super) fn spoken(message: &Message) -> Vec<Cow<'_, ContentBlock>> {
    let listed = |id: &str| message.tool_calls.iter().find(|call| call.id == id);
    let mut seen = HashSet::new();
    let mut parts = Vec::new();
    match &message.content {
        Content::Text(text) if text.trim().is_empty() => {}
        Content::Text(text) => parts.push(Cow::Owned(ContentBlock::text(text.clone()))),
        Content::Blocks(blocks) => {
            for block in blocks {
                match block {
                    ContentBlock::ToolCall(call) if !seen.insert(call.id.clone()) => {}
                    // Loops may keep a service's keys in one of the two places only.
                    ContentBlock::ToolCall(call) if call.extra.is_empty() => match listed(&call.id) {
                        Some(listed) if !listed.extra.is_empty() => {
                            let extra = listed.extra.clone();
                            let call = ToolCallBlock { extra, ..call.clone() };
                            parts.push(Cow::Owned(ContentBlock::ToolCall(call)));
                        }
                        _ => parts.push(Cow::Borrowed(block)),
                    },
                    _ => parts.push(Cow::Borrowed(block)),
                }
            }
        }
    }
    for call in &message.tool_calls {
        if seen.insert(call.id.clone()) {
            parts.push(Cow::Owned(ContentBlock::ToolCall(as_block(call))));
        }
    }
    parts
}

fn as_block(call: &ToolCall) -> ToolCallBlock {
    ToolCallBlock {
        id: call.id.clone(),
        name: call.name.clone(),
        input: call.arguments.clone(),
        visibility: None,
        extra: call.extra.clone(),
    }
}

/// Whether a block is a thought, which services want in front of something.
pub(super) fn is_thought(block: &ContentBlock) -> bool {
    matches!(
        block,
        ContentBlock::Thinking(_) | ContentBlock::RedactedThinking(_) | ContentBlock::Reasoning(_)
    )
}

/// Whose a block is, where it says.
pub(super) fn origin(extra: &Map<String, Value>) -> Option<&str> {
    extra.get(ORIGIN).and_then(Value::as_str)
}

/// Where the last prompt of a person stands; what hooks say in a person's name is none.
pub(super) fn last_prompt(history: &History) -> usize {
    let is_prompt =
        |message: &Arc<Message>| message.role == Role::User && !message.metadata.contains_key("source");
    history.turns.iter().rposition(is_prompt).unwrap_or_default()
}

/// Ids of calls as a service takes them: of few kinds of characters, not long, and each only once in a conversation.
/// The same history gives the same ids.
#[derive(Default)]
pub(super) struct Ids {
    times: HashMap<String, u32>,
    // Results stand right behind their calls, so what an id stands for now is what was said last.
    now: HashMap<String, String>,
}

impl Ids {
    /// The id of a call.
    pub(super) fn call(&mut self, id: &str) -> String {
        let plain = plain(id);
        let times = self.times.entry(plain.clone()).and_modify(|times| *times += 1).or_insert(1);
        let told = if *times == 1 { plain } else { self::plain(&format!("{plain}_{times}")) };
        self.now.insert(id.to_owned(), told.clone());
        told
    }

    /// The id of the call that a result answers.
    pub(super) fn result(&self, id: &str) -> String {
        self.now.get(id).cloned().unwrap_or_else(|| plain(id))
    }
}

fn plain(id: &str) -> String {
    let fits = (1..=64).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if fits { id.to_owned() } else { format!("call_{}", digest(id)) }
}

/// A short name for a text, always the same.
pub(super) fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}

/// Arguments as an object. What the model wrote that is none goes back under a name.
pub(super) fn as_object(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        Value::Null => json!({}),
        other => json!({"unreadable_arguments": other}),
    }
}

/// Arguments as JSON text; what was no JSON goes back as it was.
pub(super) fn as_text(arguments: &Value) -> String {
    match arguments {
        Value::String(text) => text.clone(),
        Value::Null => "{}".to_owned(),
        other => other.to_string(),
    }
}

/// Where bytes are.
pub(super) enum Bytes<'a> {
    /// Here.
    Here { media_type: &'a str, data: &'a str },
    /// At an address.
    At(&'a str),
    /// With the service, under this id.
    Kept(&'a str),
}

/// Where a picture's bytes are; none when its source is of no known form.
pub(super) fn picture(image: &ImageBlock) -> Option<Bytes<'_>> {
    bytes(&image.source, "image/png")
}

fn bytes<'a>(source: &'a Map<String, Value>, usual: &'static str) -> Option<Bytes<'a>> {
    let text = |key: &str| source.get(key).and_then(Value::as_str);
    match (text("data"), text("url"), text("file_id")) {
        (Some(data), _, _) => Some(Bytes::Here { media_type: text("media_type").unwrap_or(usual), data }),
        (None, Some(url), _) => {
            Some(match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
                Some((media_type, data)) => Bytes::Here { media_type, data },
                None => Bytes::At(url),
            })
        }
        (None, None, Some(id)) => Some(Bytes::Kept(id)),
        (None, None, None) => None,
    }
}

/// A document among the blocks that the protocol does not name.
pub(super) struct Document {
    block: Map<String, Value>,
}

impl Document {
    /// The document, if this block is one.
    pub(super) fn read(block: &UnknownBlock) -> Option<Self> {
        match serde_json::from_str(block.as_json()) {
            Ok(Value::Object(block)) if block.get("type").and_then(Value::as_str) == Some("document") => {
                Some(Self { block })
            }
            _ => None,
        }
    }

    /// Its name, where it has one.
    pub(super) fn title(&self) -> Option<&str> {
        self.block.get("title").and_then(Value::as_str)
    }

    /// Where its bytes are.
    pub(super) fn bytes(&self) -> Option<Bytes<'_>> {
        bytes(self.block.get("source")?.as_object()?, "application/pdf")
    }

    /// The source as it was given.
    pub(super) fn source(&self) -> Option<&Value> {
        self.block.get("source")
    }
}

/// A service's own item as a block of ours, so that it stays in the conversation and goes back as it came.
pub(super) fn keep_item(kind: &str, item: &Value) -> Result<ContentBlock, LlmError> {
    let block = json!({"type": kind, ITEM: item}).to_string();
    serde_json::from_str(&block)
        .map_err(|error| LlmError::new(LlmErrorKind::Stream, format!("an item cannot be kept: {error}")))
}

/// The item of such a block, if it is of this kind.
pub(super) fn kept_item(block: &UnknownBlock, kind: &str) -> Option<Value> {
    let mut read: Map<String, Value> = serde_json::from_str(block.as_json()).ok()?;
    (read.get("type").and_then(Value::as_str) == Some(kind)).then(|| read.shift_remove(ITEM)).flatten()
}

/// The name and the schema of a wanted answer; some callers give the schema in a wrapper with its name.
pub(super) fn named_schema(given: &Value) -> (&str, &Value) {
    match (given.get("name").and_then(Value::as_str), given.get("schema")) {
        (Some(name), Some(schema)) => (name, schema),
        _ => ("answer", given),
    }
}

/// The parameters of a tool, an object even where nothing was given.
pub(super) fn parameters(given: &Value) -> Value {
    if given.is_object() { given.clone() } else { json!({"type": "object", "properties": {}}) }
}

/// The document of a frame; none for one without data.
pub(super) fn read_frame(frame: &Frame) -> Result<Option<Value>, LlmError> {
    let data = frame.data.trim();
    if data.is_empty() {
        return Ok(None);
    }
    let unreadable =
        |error| LlmError::new(LlmErrorKind::Stream, format!("a part of the answer is no JSON: {error}"));
    serde_json::from_str(data).map(Some).map_err(unreadable)
}

/// An error that came when the service had begun: what it says now can pass, unless it says otherwise.
pub(super) fn in_stream(error: LlmError) -> LlmError {
    let retryable = error.retryable || error.kind == LlmErrorKind::Unclassified;
    LlmError { retryable, ..error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_fit_every_service_and_stand_once() {
        let mut ids = Ids::default();
        assert_eq!((ids.call("a-1"), ids.result("a-1")), ("a-1".to_owned(), "a-1".to_owned()));
        assert_eq!((ids.call("a-1"), ids.result("a-1")), ("a-1_2".to_owned(), "a-1_2".to_owned()));
        let odd = ids.call("functions.look:0");
        assert!(odd.starts_with("call_") && odd.len() < 64, "{odd}");
        assert_eq!(ids.result("functions.look:0"), odd);
        assert_ne!(ids.call("functions.look:1"), odd);
    }

    #[test]
    fn calls_stand_once_and_keep_the_keys_of_their_service() {
        let message: Message = serde_json::from_value(json!({
            "role": "assistant",
            "content": [{"type": "tool_call", "id": "a", "name": "t", "input": {}}, {"type": "text", "text": "x"}],
            "tool_calls": [{"id": "a", "name": "t", "arguments": {}, "k": 1}, {"id": "b", "name": "t", "arguments": {}}],
        }))
        .unwrap();
        assert_eq!(
            json!(spoken(&message)),
            json!([
                {"type": "tool_call", "id": "a", "name": "t", "input": {}, "k": 1},
                {"type": "text", "text": "x"},
                {"type": "tool_call", "id": "b", "name": "t", "input": {}},
            ])
        );
    }

    #[test]
    fn an_item_comes_back_as_it_was_kept_and_only_to_its_service() {
        let item = json!({"type": "web_search_call", "z": 1, "a": {"b": [1.5, null]}});
        let ContentBlock::Unknown(block) = keep_item("openai_item", &item).unwrap() else { panic!() };
        assert_eq!(kept_item(&block, "openai_item").unwrap().to_string(), item.to_string());
        assert_eq!(kept_item(&block, "anthropic_block"), None);
    }
}
