//! Tool results so long that they are shown cut from the start. They are stored whole.

use amplifier_protocol::content::ContentBlock;
use amplifier_protocol::message::{Content, Message, Role};
use serde_json::Value;

use super::conversation::count;
use super::cut::shortened;
use crate::contexts::events::ToolResultClipped;

/// The message with its long texts cut to what may be shown of one result, and what is told about it.
pub(super) fn clip(message: &Message, most: u64) -> Option<(Message, ToolResultClipped)> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if message.role != Role::Tool {
        return None;
    }
    let (bytes, kind) = match &message.content {
        Content::Text(text) => (text.len(), "text"),
        Content::Blocks(blocks) => (blocks.iter().map(block_bytes).max().unwrap_or_default(), "blocks"),
    };
    // Two hundred bytes are left for the words around it; characters may be of several bytes.
    let cut = (bytes > most).then(|| shortened(message, most.saturating_sub(200) / 4 * 3))??;
    let told = ToolResultClipped {
        tool_name: message.name.clone(),
        tool_call_id: message.tool_call_id.clone(),
        original_text_utf8_bytes: count(bytes),
        stored_text_utf8_bytes: count(bytes),
        shown_text_utf8_bytes: count(cut.content.visible_text().len()),
        max_tool_result_bytes: count(most),
        content_kind: kind.to_owned(),
    };
    Some((cut, told))
}

fn block_bytes(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text(block) => block.text.len(),
        ContentBlock::ToolResult(block) => match &block.output {
            Value::String(text) => text.len(),
            other => other.to_string().len(),
        },
        _ => 0,
    }
}
