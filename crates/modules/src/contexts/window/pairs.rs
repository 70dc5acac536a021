//! Which calls a message makes and which it answers, wherever in it they stand.

use amplifier_protocol::content::ContentBlock;
use amplifier_protocol::message::{Content, Message, Role};

/// The calls of a message, each once: id and tool.
pub(super) fn calls(message: &Message) -> impl Iterator<Item = (&str, &str)> {
    let listed = message.tool_calls.iter().map(|call| (call.id.as_str(), call.name.as_str()));
    let only_in_blocks = blocks(message).iter().filter_map(|block| match block {
        ContentBlock::ToolCall(block) if message.tool_calls.iter().all(|call| call.id != block.id) => {
            Some((block.id.as_str(), block.name.as_str()))
        }
        _ => None,
    });
    listed.chain(only_in_blocks)
}

/// The calls a message answers.
pub(super) fn result_ids(message: &Message) -> impl Iterator<Item = &str> {
    let own = message.tool_call_id.as_deref().filter(|_| message.role == Role::Tool);
    let blocks = blocks(message).iter().filter_map(|block| match block {
        ContentBlock::ToolResult(block) => Some(block.tool_call_id.as_str()),
        _ => None,
    });
    own.into_iter().chain(blocks)
}

fn blocks(message: &Message) -> &[ContentBlock] {
    match &message.content {
        Content::Blocks(blocks) => blocks,
        Content::Text(_) => &[],
    }
}
