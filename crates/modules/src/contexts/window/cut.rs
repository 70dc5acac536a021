//! Messages with long texts cut to their beginning and end. What is stored is never touched: cuts are copies for a view.

use amplifier_protocol::content::{ContentBlock, TextBlock, ToolResultBlock};
use amplifier_protocol::message::{Content, Message, Role};
use serde_json::Value;

/// A cut that saves less than this many bytes is not worth losing text for.
const LEAST_SAVING: usize = 80;

/// Who said what is cut: a tool can be asked again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaker {
    Tool,
    Other,
}

/// The message with every long text cut to `keep` characters, or `None` when that would save nothing worth it.
pub(super) fn shortened(message: &Message, keep: usize) -> Option<Message> {
    let speaker = match message.role {
        Role::Tool | Role::Function => Speaker::Tool,
        _ => Speaker::Other,
    };
    let content = match &message.content {
        Content::Text(text) => Content::Text(cut_text(text, keep, speaker)?),
        Content::Blocks(blocks) => {
            let mut changed = false;
            let cut = blocks.iter().map(|block| {
                let shorter = cut_block(block, keep, speaker);
                changed |= shorter.is_some();
                shorter.unwrap_or_else(|| block.clone())
            });
            let cut = cut.collect();
            changed.then_some(Content::Blocks(cut))?
        }
    };
    // Field by field: a clone of the whole would copy the long text only to throw it away.
    Some(Message {
        role: message.role,
        content,
        name: message.name.clone(),
        tool_call_id: message.tool_call_id.clone(),
        tool_calls: message.tool_calls.clone(),
        metadata: message.metadata.clone(),
        extra: message.extra.clone(),
    })
}

// Thinking, calls and blocks of unknown types are a service's own: it wants them back as they were.
fn cut_block(block: &ContentBlock, keep: usize, speaker: Speaker) -> Option<ContentBlock> {
    match block {
        ContentBlock::Text(block) => {
            let text = cut_text(&block.text, keep, speaker)?;
            Some(ContentBlock::Text(TextBlock { text, ..block.clone() }))
        }
        ContentBlock::ToolResult(block) => {
            let text = match &block.output {
                Value::String(text) => cut_text(text, keep, Speaker::Tool)?,
                other => cut_text(&other.to_string(), keep, Speaker::Tool)?,
            };
            Some(ContentBlock::ToolResult(ToolResultBlock { output: Value::String(text), ..block.clone() }))
        }
        ContentBlock::Image(_) if speaker == Speaker::Tool => {
            Some(ContentBlock::text("[a picture stood here]"))
        }
        _ => None,
    }
}

fn cut_text(text: &str, keep: usize, speaker: Speaker) -> Option<String> {
    let way_out = match speaker {
        Speaker::Tool => "; call the tool again if all of it is needed",
        Speaker::Other => "",
    };
    let (head, tail) = ends(text, keep)?;
    let cut = format!("[shortened from about {} tokens{way_out}]\n{head}\n[...]\n{tail}", text.len() / 4);
    (cut.len() + LEAST_SAVING <= text.len()).then_some(cut)
}

/// The first two thirds and the last third of `keep` characters: beginnings say what it is, ends how it came out.
pub(super) fn ends(text: &str, keep: usize) -> Option<(&str, &str)> {
    // Characters have at least a byte, so a text that is not longer in bytes is not longer in characters.
    if text.len() <= keep {
        return None;
    }
    let last = keep / 3;
    let head = text.char_indices().nth(keep - last).map(|(at, _)| at)?;
    let tail = match last {
        0 => text.len(),
        last => text.char_indices().rev().nth(last - 1).map(|(at, _)| at)?,
    };
    (head < tail || tail == text.len()).then_some(())?;
    Some((text.get(..head)?, text.get(tail..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use amplifier_protocol::tool::ToolCall;
    use serde_json::json;

    fn result(text: &str) -> Message {
        Message::tool_result(&ToolCall::new("c", "t", json!({})), text)
    }

    #[test]
    fn beginning_and_end_stay_and_the_way_out_is_told() {
        let text = format!("first line {} exit code 1", "x".repeat(4_000));
        let cut = shortened(&result(&text), 60).unwrap();
        let said = cut.content.visible_text();
        assert!(said.starts_with("[shortened from about 1005 tokens; call the tool again"), "{said}");
        assert!(said.contains("first line") && said.ends_with("exit code 1"), "{said}");
        assert_eq!(cut.tool_call_id.as_deref(), Some("c"));
    }

    #[test]
    fn a_cut_that_saves_nothing_is_not_made() {
        assert_eq!(shortened(&result(&"x".repeat(300)), 250), None);
    }

    #[test]
    fn nothing_may_stay_and_letters_are_never_split() {
        for keep in [0, 1, 2, 3, 7] {
            let cut = shortened(&result(&"€".repeat(900)), keep).unwrap();
            assert_eq!(cut.content.visible_text().matches('€').count(), keep);
        }
    }

    #[test]
    fn blocks_are_cut_one_by_one_and_those_of_a_service_stay() {
        let message: Message = serde_json::from_value(json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "t".repeat(4_000), "signature": "s"},
            {"type": "text", "text": "a".repeat(4_000)},
            {"type": "tool_call", "id": "c", "name": "t", "input": {}}
        ]}))
        .unwrap();
        let cut = shortened(&message, 30).unwrap();
        let (Content::Blocks(before), Content::Blocks(after)) = (&message.content, &cut.content) else {
            panic!()
        };
        assert_eq!((&after[0], &after[2]), (&before[0], &before[2]));
        assert!(cut.content.visible_text().len() < 120);
    }
}
