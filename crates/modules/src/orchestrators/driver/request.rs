//! What a request holds. Pure: messages in, messages out; what is stored is never changed here.

use std::collections::HashSet;
use std::sync::Arc;

use amplifier_protocol::content::ContentBlock;
use amplifier_protocol::hook::Injection;
use amplifier_protocol::message::{Content, Message, Messages, Role};
use amplifier_protocol::tool::ToolCall;
use serde_json::{Map, Value};

/// Puts what hooks want the model to see now at the end, each in its own role: behind the last tool result where the
/// hook asks for that and a tool result is last, else as a message of its own.
pub(super) fn append(messages: &mut Messages, injections: Vec<Injection>) {
    for injection in injections {
        match messages.last_mut() {
            Some(last) if injection.append_to_last_tool_result && last.role == Role::Tool => {
                extend_text(Arc::make_mut(last), &injection.text);
            }
            _ => messages.push(Arc::new(passing(injection.role.into(), injection.text))),
        }
    }
}

/// A message of this request alone. The mark lets readers tell it from what a person said.
pub(super) fn passing(role: Role, text: String) -> Message {
    let mut message = Message::text(role, text);
    message.metadata = Map::from_iter([
        ("source".to_owned(), Value::String("hook".to_owned())),
        ("ephemeral".to_owned(), Value::Bool(true)),
    ]);
    message
}

/// The mark tells a prompt cache that the result will not look like this again.
fn extend_text(message: &mut Message, text: &str) {
    message.metadata.insert("ephemeral".to_owned(), Value::Bool(true));
    match &mut message.content {
        Content::Text(content) => {
            content.push_str("\n\n");
            content.push_str(text);
        }
        Content::Blocks(blocks) => blocks.push(ContentBlock::text(text)),
    }
}

/// The history as model services want it: right behind a message that calls tools stand the results, one for each call.
/// A result that is missing is told as missing; one that answers nothing, or a second one, is left out. Returns the
/// calls whose results were missing.
pub(super) fn mend(messages: Messages) -> (Messages, Vec<ToolCall>) {
    if is_whole(&messages) {
        return (messages, Vec::new());
    }
    let (mut whole, mut missing) = (Messages::with_capacity(messages.len()), Vec::new());
    let mut taken = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        if message.role == Role::Tool {
            continue;
        }
        whole.push(Arc::clone(message));
        if message.role != Role::Assistant {
            continue;
        }
        for call in message.calls() {
            let rest = messages.iter().enumerate().skip(at + 1);
            let mut until_next = rest.take_while(|(_, later)| later.role != Role::Assistant);
            let found = until_next.find(|(at, later)| answers(later, &call.id) && !taken.contains(at));
            match found {
                Some((result_at, result)) => {
                    taken.insert(result_at);
                    whole.push(Arc::clone(result));
                }
                None => {
                    whole.push(Arc::new(Message::tool_result(&call, "The result of this call is missing.")));
                    missing.push(call);
                }
            }
        }
    }
    (whole, missing)
}

fn answers(message: &Message, call_id: &str) -> bool {
    message.role == Role::Tool && message.tool_call_id.as_deref() == Some(call_id)
}

/// The usual case, looked at without an allocation for each message.
fn is_whole(messages: &[Arc<Message>]) -> bool {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        match (message.role, &message.tool_call_id) {
            (Role::Tool, Some(id)) => match open.iter().position(|call| call == id) {
                Some(at) => drop(open.swap_remove(at)),
                None => return false,
            },
            (Role::Tool, None) => return false,
            _ if !open.is_empty() => return false,
            (Role::Assistant, _) => open.extend(call_ids(message)),
            _ => {}
        }
    }
    open.is_empty()
}

fn call_ids(message: &Message) -> impl Iterator<Item = &str> {
    let listed = message.tool_calls.iter().map(|call| call.id.as_str());
    let blocks = match &message.content {
        Content::Blocks(blocks) => blocks.as_slice(),
        Content::Text(_) => &[],
    };
    let only_in_blocks = blocks.iter().filter_map(|block| match block {
        ContentBlock::ToolCall(block) if message.tool_calls.iter().all(|call| call.id != block.id) => {
            Some(block.id.as_str())
        }
        _ => None,
    });
    listed.chain(only_in_blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use amplifier_protocol::hook::InjectionRole;
    use serde_json::json;

    fn apart() -> Injection {
        let (text, role) = ("INJ".to_owned(), InjectionRole::User);
        Injection { text, role, ephemeral: true, append_to_last_tool_result: false }
    }

    fn behind() -> Injection {
        Injection { append_to_last_tool_result: true, ..apart() }
    }

    fn calling(ids: &[&str]) -> Arc<Message> {
        let mut message = Message::text(Role::Assistant, "");
        message.tool_calls = ids.iter().map(|id| ToolCall::new(*id, "t", json!({}))).collect();
        Arc::new(message)
    }

    fn result(id: &str) -> Arc<Message> {
        Arc::new(Message::tool_result(&ToolCall::new(id, "t", json!({})), format!("result {id}")))
    }

    fn user(text: &str) -> Arc<Message> {
        Arc::new(Message::user(text))
    }

    #[test]
    fn an_injection_goes_behind_the_last_tool_result_only_when_one_is_last() {
        let mut messages = vec![user("hi")];
        append(&mut messages, vec![behind()]);
        assert_eq!((messages.len(), &messages[1].role), (2, &Role::User));
        let stored = vec![user("hi"), calling(&["a"]), result("a")];
        let mut messages = stored.clone();
        append(&mut messages, vec![behind(), apart()]);
        assert_eq!(messages[2].content.visible_text(), "result a\n\nINJ");
        assert_eq!(messages[3].content.visible_text(), "INJ");
        assert_eq!(stored[2].content.visible_text(), "result a");
    }

    #[test]
    fn a_whole_history_is_not_touched() {
        let messages = vec![user("hi"), calling(&["a", "b"]), result("b"), result("a"), user("more")];
        let (mended, missing) = mend(messages.clone());
        assert!(mended.iter().zip(&messages).all(|(one, other)| Arc::ptr_eq(one, other)));
        assert!(missing.is_empty());
    }

    #[test]
    fn what_stands_between_a_call_and_its_result_goes_behind_it() {
        let (mended, missing) = mend(vec![calling(&["a"]), user("a note"), result("a")]);
        let roles: Vec<_> = mended.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::Assistant, Role::Tool, Role::User]);
        assert!(missing.is_empty());
    }

    #[test]
    fn a_missing_result_is_told_and_a_stray_one_left_out() {
        let messages =
            vec![result("stray"), calling(&["a", "b"]), result("a"), user("go on"), calling(&["b"])];
        let (mended, missing) = mend(messages);
        let ids: Vec<_> = mended.iter().filter_map(|message| message.tool_call_id.as_deref()).collect();
        assert_eq!(ids, ["a", "b", "b"]);
        assert_eq!(missing.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["b", "b"]);
        assert!(is_whole(&mended));
    }
}
