//! Mends a history before it is sent: services refuse what contexts may hold. Pure and without memory: the same history
//! is mended the same way each time.
//!
//! What is sent keeps the order of what was said. Nothing here knows a service; mappers can rely on: system text apart,
//! a tool's results right behind the message that called it and in the order of the calls, no empty message, a person's
//! message first.

use std::collections::HashSet;
use std::sync::Arc;

use amplifier_protocol::content::ContentBlock;
use amplifier_protocol::message::{Content, Message, Messages, Role};
use amplifier_protocol::tool::{ToolCall, ToolResult};
use serde_json::Value;

/// What the model reads where a result is missing.
const MISSING: &str =
    "The result of this call is missing from the conversation; it is not known what the tool did.";
/// What stands first where a conversation begins with an answer.
const BEGINNING: &str = "(The beginning of this conversation is not shown.)";

/// A conversation that every service can take.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct History {
    /// The system text in front of the conversation, joined; empty when there is none.
    pub(crate) system: String,
    /// The rest: developer, user, assistant and tool messages.
    pub(crate) turns: Messages,
    /// How many of the turns stay as they are in the next request. Behind them is what hooks added for this one, so a
    /// prompt cache should end here.
    pub(crate) stable: usize,
}

/// The mended history, and the calls whose results had to be made up.
pub(crate) fn repair(messages: &[Arc<Message>]) -> (History, Vec<ToolCall>) {
    let (system, turns) = take_system(messages);
    let turns = spread_results(turns);
    let (turns, missing) = pair(&turns);
    let mut turns: Messages = turns.into_iter().filter_map(without_empty).collect();
    if turns.first().is_some_and(|first| first.role == Role::Assistant) {
        turns.insert(0, Arc::new(Message::user(BEGINNING)));
    }
    let stable = turns.iter().rposition(|message| !is_passing(message)).map_or(0, |last| last + 1);
    (History { system, turns, stable }, missing)
}

fn is_passing(message: &Message) -> bool {
    message.metadata.get("ephemeral") == Some(&Value::Bool(true))
}

/// System text in front is taken out. Later it keeps its place, as a reminder in the person's turn: moving it to the front
/// would change what a prompt cache has seen, and most services allow it nowhere else.
fn take_system(messages: &[Arc<Message>]) -> (String, Messages) {
    let (mut system, mut turns, mut in_front) = (Vec::new(), Messages::with_capacity(messages.len()), true);
    for message in messages {
        in_front = in_front && matches!(message.role, Role::System | Role::Developer);
        let text = message.content.visible_text();
        match (message.role, in_front) {
            (Role::System, true) => system.extend((!text.is_empty()).then_some(text)),
            (Role::System, false) if text.is_empty() => {}
            (Role::System, false) => {
                let mut reminder = Message::user(format!("<system-reminder>\n{text}\n</system-reminder>"));
                reminder.metadata.clone_from(&message.metadata);
                turns.push(Arc::new(reminder));
            }
            _ => turns.push(Arc::clone(message)),
        }
    }
    (system.join("\n\n"), turns)
}

/// Results that stand as blocks in another's message become messages of their own, and the old name of the role the new.
fn spread_results(messages: Messages) -> Messages {
    let mut spread = Messages::with_capacity(messages.len());
    for message in messages {
        let holds_result = |block: &ContentBlock| matches!(block, ContentBlock::ToolResult(_));
        match (&message.content, message.role) {
            (Content::Blocks(blocks), role) if role != Role::Tool && blocks.iter().any(holds_result) => {
                let mut rest = Message::clone(&message);
                let (results, others) = blocks.iter().cloned().partition(holds_result);
                rest.content = Content::Blocks(others);
                spread.extend(Vec::into_iter(results).filter_map(result_message).map(Arc::new));
                spread.push(Arc::new(rest));
            }
            (_, Role::Function) => {
                let message = Message { role: Role::Tool, ..Message::clone(&message) };
                spread.push(Arc::new(message));
            }
            _ => spread.push(message),
        }
    }
    spread
}

fn result_message(block: ContentBlock) -> Option<Message> {
    let ContentBlock::ToolResult(block) = block else { return None };
    let mut message = Message::text(Role::Tool, ToolResult::success(block.output).to_model_text());
    message.tool_call_id = Some(block.tool_call_id);
    Some(message)
}

/// Right behind a message that calls tools stand their results, one for each call, in the order of the calls.
fn pair(messages: &[Arc<Message>]) -> (Messages, Vec<ToolCall>) {
    let (mut paired, mut missing) = (Messages::with_capacity(messages.len()), Vec::new());
    let mut taken = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        match message.role {
            Role::Tool => continue,
            Role::Assistant => paired.push(calling_once(message)),
            _ => {
                paired.push(Arc::clone(message));
                continue;
            }
        }
        let mut answered = HashSet::new();
        for call in message.calls() {
            if !answered.insert(call.id.clone()) {
                continue;
            }
            let later = messages.iter().enumerate().skip(at + 1);
            let mut until_next = later.take_while(|(_, later)| later.role != Role::Assistant);
            let answers = |message: &Message| {
                message.role == Role::Tool && message.tool_call_id.as_deref() == Some(call.id.as_str())
            };
            match until_next.find(|(at, later)| answers(later) && !taken.contains(at)) {
                Some((result_at, result)) => {
                    taken.insert(result_at);
                    paired.push(named(result, &call));
                }
                None => {
                    paired.push(Arc::new(Message::tool_result(&call, MISSING)));
                    missing.push(call);
                }
            }
        }
    }
    (paired, missing)
}

/// The message with each of its calls once: a second one of the same id has no result of its own.
fn calling_once(message: &Arc<Message>) -> Arc<Message> {
    let among_blocks = match &message.content {
        Content::Blocks(blocks) => repeats(blocks.iter().filter_map(called)),
        Content::Text(_) => false,
    };
    if !among_blocks && !repeats(message.tool_calls.iter().map(|call| call.id.as_str())) {
        return Arc::clone(message);
    }
    let (mut once, mut seen) = (Message::clone(message), HashSet::new());
    once.tool_calls.retain(|call| seen.insert(call.id.clone()));
    if let Content::Blocks(blocks) = &mut once.content {
        let mut seen = HashSet::new();
        blocks.retain(|block| called(block).is_none_or(|id| seen.insert(id.to_owned())));
    }
    Arc::new(once)
}

fn repeats<'a>(mut ids: impl Iterator<Item = &'a str>) -> bool {
    let mut seen = HashSet::new();
    ids.any(|id| !seen.insert(id))
}

fn called(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::ToolCall(call) => Some(call.id.as_str()),
        _ => None,
    }
}

/// Some services want the tool's name beside its result.
fn named(result: &Arc<Message>, call: &ToolCall) -> Arc<Message> {
    if result.name.is_some() {
        return Arc::clone(result);
    }
    Arc::new(Message { name: Some(call.name.clone()), ..Message::clone(result) })
}

/// The message without empty texts; none where nothing is left that says something. A result always stands.
fn without_empty(message: Arc<Message>) -> Option<Arc<Message>> {
    let is_empty = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => text.text.trim().is_empty(),
        _ => false,
    };
    let speaks = |content: &Content| match content {
        Content::Text(text) => !text.trim().is_empty(),
        Content::Blocks(blocks) => blocks.iter().any(|block| !is_empty(block)),
    };
    if message.role == Role::Tool {
        return Some(message);
    }
    if !speaks(&message.content) && message.tool_calls.is_empty() {
        return None;
    }
    match &message.content {
        Content::Blocks(blocks) if blocks.iter().any(is_empty) => {
            let mut tidy = Message::clone(&message);
            if let Content::Blocks(blocks) = &mut tidy.content {
                blocks.retain(|block| !is_empty(block));
            }
            Some(Arc::new(tidy))
        }
        _ => Some(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn history(messages: Value) -> (History, Vec<ToolCall>) {
        let messages: Messages = serde_json::from_value(messages).unwrap();
        repair(&messages)
    }

    fn roles(history: &History) -> Vec<Role> {
        history.turns.iter().map(|message| message.role).collect()
    }

    #[test]
    fn a_missing_result_is_told_each_time_and_an_orphan_is_left_out() {
        let messages = json!([
            {"role": "user", "content": "hi"},
            {"role": "tool", "tool_call_id": "stray", "content": "?"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "a", "name": "t", "arguments": {}}, {"id": "b", "name": "t", "arguments": {}}]},
            {"role": "user", "content": "and?"},
            {"role": "tool", "tool_call_id": "b", "content": "B"},
            {"role": "tool", "tool_call_id": "b", "content": "B again"},
        ]);
        for _ in 0..2 {
            let (mended, missing) = history(messages.clone());
            assert_eq!(roles(&mended), [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::User]);
            assert_eq!(mended.turns[2].content.visible_text(), MISSING);
            assert_eq!(
                (mended.turns[3].content.visible_text().as_ref(), mended.turns[3].name.as_deref()),
                ("B", Some("t"))
            );
            assert_eq!(missing.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["a"]);
        }
    }

    #[test]
    fn system_text_in_front_is_taken_out_and_later_keeps_its_place() {
        let (mended, _) = history(json!([
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": "A file."},
            {"role": "system", "content": [{"type": "text", "text": "Be kind."}]},
            {"role": "user", "content": "hi"},
            {"role": "system", "content": "It is noon.", "metadata": {"ephemeral": true}},
        ]));
        assert_eq!(mended.system, "Be brief.\n\nBe kind.");
        assert_eq!(roles(&mended), [Role::Developer, Role::User, Role::User]);
        assert_eq!(
            mended.turns[2].content.visible_text(),
            "<system-reminder>\nIt is noon.\n</system-reminder>"
        );
        assert_eq!(mended.stable, 2);
    }

    #[test]
    fn empty_messages_go_and_a_person_speaks_first() {
        let (mended, _) = history(json!([
            {"role": "user", "content": "  "},
            {"role": "assistant", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "hello"}]},
            {"role": "assistant", "content": []},
        ]));
        assert_eq!(roles(&mended), [Role::User, Role::Assistant]);
        assert_eq!(mended.turns[0].content.visible_text(), BEGINNING);
        assert_eq!(mended.turns[1].content, Content::Blocks(vec![ContentBlock::text("hello")]));
    }

    #[test]
    fn results_among_blocks_and_under_the_old_name_become_messages() {
        let (mended, missing) = history(json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "tool_call", "id": "a", "name": "t", "input": {}},
                {"type": "tool_call", "id": "b", "name": "t", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_call_id": "a", "output": {"x": 1}}, {"type": "text", "text": "go"}]},
            {"role": "function", "tool_call_id": "b", "content": "done"},
        ]));
        assert!(missing.is_empty());
        assert_eq!(roles(&mended), [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::User]);
        assert_eq!(mended.turns[2].content.visible_text(), "{\"x\":1}");
    }
}
