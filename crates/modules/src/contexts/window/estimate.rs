//! How many tokens a message is, roughly: a quarter of the bytes that are sent. Notes that are not sent do not count.

use amplifier_protocol::content::ContentBlock;
use amplifier_protocol::message::{Content, Message};
use serde_json::Value;

/// What a message costs beside its text: its role and the marks around it.
const OVERHEAD: usize = 4;
/// A picture costs by its size on screen, not by its bytes; this is a usual one.
const IMAGE: usize = 1_500;

pub(in crate::contexts) fn tokens(message: &Message) -> u64 {
    let content = match &message.content {
        Content::Text(text) => text.len() / 4,
        Content::Blocks(blocks) => blocks.iter().map(|block| block_tokens(block, message)).sum(),
    };
    let calls: usize =
        message.tool_calls.iter().map(|call| (call.name.len() + json_bytes(&call.arguments)) / 4).sum();
    u64::try_from(OVERHEAD + content + calls).unwrap_or(u64::MAX)
}

fn block_tokens(block: &ContentBlock, message: &Message) -> usize {
    match block {
        ContentBlock::Text(block) => block.text.len() / 4,
        ContentBlock::Thinking(block) => {
            (block.thinking.len() + block.signature.as_ref().map_or(0, String::len)) / 4
        }
        ContentBlock::RedactedThinking(block) => block.data.len() / 4,
        // A call that also stands in `tool_calls` is sent once.
        ContentBlock::ToolCall(block) if message.tool_calls.iter().any(|call| call.id == block.id) => 0,
        ContentBlock::ToolCall(block) => (block.name.len() + json_bytes(&block.input)) / 4,
        ContentBlock::ToolResult(block) => json_bytes(&block.output) / 4,
        ContentBlock::Image(_) => IMAGE,
        ContentBlock::Reasoning(block) => {
            block.content.iter().chain(&block.summary).map(json_bytes).sum::<usize>() / 4
        }
        ContentBlock::Unknown(block) => unknown_tokens(block.as_json()),
        _ => 0,
    }
}

/// A block nobody here knows may still be a picture.
fn unknown_tokens(json: &str) -> usize {
    let picture = json.contains("\"base64\"") || json.contains("data:image/");
    if picture { (json.len() / 4).min(IMAGE) } else { json.len() / 4 }
}

/// The length of a value's JSON text, without writing it. A picture inside counts as what it costs.
fn json_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) if text.starts_with("data:image/") => IMAGE * 4,
        Value::Object(map) if map.get("type").and_then(Value::as_str) == Some("base64") => IMAGE * 4,
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 3,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| json_bytes(item) + 1).sum::<usize>(),
        Value::Object(map) => {
            2 + map.iter().map(|(key, value)| key.len() + 4 + json_bytes(value)).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_sent_counts_and_what_is_noted_does_not() {
        let mut message = Message::user("a".repeat(400));
        assert_eq!(tokens(&message), 104);
        message.metadata.insert("note".to_owned(), json!("x".repeat(4_000)));
        assert_eq!(tokens(&message), 104);
    }

    #[test]
    fn a_picture_costs_the_same_however_many_bytes_it_has() {
        let picture = |bytes: usize| -> Message {
            let source = json!({"type": "base64", "media_type": "image/png", "data": "A".repeat(bytes)});
            serde_json::from_value(json!({"role": "tool", "tool_call_id": "c", "content": [
                {"type": "tool_result", "tool_call_id": "c", "output": [{"type": "image", "source": source}]},
                {"type": "image", "source": source},
                {"type": "input_image", "source": source}
            ]}))
            .unwrap()
        };
        assert_eq!(tokens(&picture(40_000)), tokens(&picture(4_000_000)));
    }

    #[test]
    fn a_call_that_stands_in_two_places_counts_once() {
        let both: Message = serde_json::from_value(json!({
            "role": "assistant",
            "content": [{"type": "tool_call", "id": "c", "name": "read_file", "input": {"file_path": "a"}}],
            "tool_calls": [{"id": "c", "name": "read_file", "arguments": {"file_path": "a"}}],
        }))
        .unwrap();
        let mut once = both.clone();
        once.content = Content::default();
        assert_eq!(tokens(&both), tokens(&once));
    }
}
