//! The list itself: its shape, where the session keeps it, and how it is found again in a conversation.

use amplifier_core::coordinator::Coordinator;
use amplifier_protocol::message::{Message, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// The tool's name.
pub(crate) const TOOL: &str = "todo";
/// Where the list is in the session's state, for every module to read: a list of `{content, activeForm, status}`.
pub(crate) const STATE: &str = "todo_state";
/// The longest text of an entry, in characters.
const LONGEST: usize = 2_000;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Todo {
    /// What is to be done, such as "Run the tests".
    pub(crate) content: String,
    /// The same while it is being done, such as "Running the tests".
    #[serde(rename = "activeForm")]
    pub(crate) active_form: String,
    /// How it stands.
    pub(crate) status: Status,
}

// Without words on the variants: the schema is then a plain list of them, which every provider takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Status {
    Pending,
    InProgress,
    Completed,
}

/// The session's list; empty when there is none.
pub(crate) fn read(coordinator: &Coordinator) -> Vec<Todo> {
    let state = coordinator.with_state(|state| state.get(STATE).cloned());
    // Only `keep` writes it well; what another module put there and cannot be read is no list.
    state.and_then(|todos| serde_json::from_value(todos).ok()).unwrap_or_default()
}

/// Replaces the session's list.
pub(crate) fn keep(coordinator: &Coordinator, todos: &[Todo]) {
    coordinator.with_state(|state| state.insert(STATE.to_owned(), json!(todos)));
}

/// Reads a list as a model wrote it; some write it as JSON text. The error says what is wrong with which entry.
pub(crate) fn parse(todos: Value) -> Result<Vec<Todo>, String> {
    let todos = match todos {
        Value::String(text) => serde_json::from_str(&text)
            .map_err(|error| format!("`todos` is text that is not JSON ({error}); send a list"))?,
        other => other,
    };
    let Value::Array(items) = todos else {
        return Err("`todos` must be a list of {content, activeForm, status}".to_owned());
    };
    items.into_iter().enumerate().map(|(at, item)| entry(at, &item)).collect()
}

fn entry(at: usize, item: &Value) -> Result<Todo, String> {
    let text = |key: &str| item.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let (Some(content), Some(status), Some(active_form)) =
        (text("content"), text("status"), text("activeForm"))
    else {
        return Err(format!("Todo {at} missing required fields (content, status, activeForm)"));
    };
    let status = match status {
        "pending" => Status::Pending,
        "in_progress" => Status::InProgress,
        "completed" => Status::Completed,
        other => {
            return Err(format!("Todo {at} has status `{other}`; use pending, in_progress or completed"));
        }
    };
    if content.chars().count().max(active_form.chars().count()) > LONGEST {
        return Err(format!("Todo {at} is longer than {LONGEST} characters; say it shorter"));
    }
    Ok(Todo { content: content.to_owned(), active_form: active_form.to_owned(), status })
}

/// The list as the last call that set it left it, as far as the conversation tells.
pub(crate) fn last_in(messages: &[Arc<Message>]) -> Option<Vec<Todo>> {
    let took_effect = |call_id: &str| {
        messages.iter().any(|message| {
            message.role == Role::Tool
                && message.tool_call_id.as_deref() == Some(call_id)
                && is_receipt(&message.content.visible_text())
        })
    };
    let calls = messages.iter().rev().filter(|message| message.role == Role::Assistant);
    let mut calls = calls.flat_map(|message| message.calls().into_iter().rev());
    calls.find_map(|call| {
        let sets = call.name == TOOL && call.arguments.get("action").is_some_and(|action| action != "list");
        let todos = sets.then(|| call.arguments.get("todos").cloned()).flatten()?;
        parse(todos).ok().filter(|_| took_effect(&call.id))
    })
}

/// Whether a tool result says that the list was set.
fn is_receipt(text: &str) -> bool {
    let status = serde_json::from_str::<Value>(text).ok();
    let status = status.as_ref().and_then(|result| result.get("status")).and_then(Value::as_str);
    matches!(status, Some("created" | "updated"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use amplifier_protocol::tool::ToolCall;

    fn call(id: &str, arguments: Value) -> (Arc<Message>, ToolCall) {
        let call = ToolCall::new(id, TOOL, arguments);
        let mut message = Message::text(Role::Assistant, "");
        message.tool_calls = vec![call.clone()];
        (Arc::new(message), call)
    }

    fn one(content: &str) -> Value {
        json!([{"content": content, "activeForm": "doing", "status": "pending"}])
    }

    #[test]
    fn a_wrong_entry_is_named_by_its_place() {
        assert_eq!(
            parse(json!([{"content": "a"}])),
            Err("Todo 0 missing required fields (content, status, activeForm)".to_owned())
        );
        let odd = json!([{"content": "a", "activeForm": "b", "status": "done"}]);
        assert!(parse(odd).unwrap_err().contains("pending, in_progress or completed"));
        assert!(parse(json!({"a": 1})).is_err() && parse(json!("[")).is_err());
        let long = "x".repeat(LONGEST + 1);
        assert!(parse(one(&long)).is_err());
    }

    #[test]
    fn a_list_sent_as_json_text_is_read() {
        assert_eq!(parse(Value::String(one("a").to_string())), parse(one("a")));
    }

    #[test]
    fn only_a_call_that_took_effect_tells_the_list() {
        let (first, first_call) = call("1", json!({"action": "create", "todos": one("kept")}));
        let (second, second_call) = call("2", json!({"action": "update", "todos": one("refused")}));
        let (third, third_call) = call("3", json!({"action": "list"}));
        let messages = [
            first,
            Arc::new(Message::tool_result(&first_call, r#"{"status":"created","count":1}"#)),
            second,
            Arc::new(Message::tool_result(&second_call, "Denied by hook: no")),
            third,
            Arc::new(Message::tool_result(&third_call, r#"{"status":"listed","count":1}"#)),
        ];
        assert_eq!(last_in(&messages).unwrap()[0].content, "kept");
        assert_eq!(last_in(&[]), None);
    }
}
