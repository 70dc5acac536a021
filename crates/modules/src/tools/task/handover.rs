//! What of a conversation an agent is handed, as text before its instruction; and an agent's answer cut to size. Pure.

use std::sync::Arc;

use amplifier_protocol::message::{Message, Role};
use schemars::JsonSchema;
use serde::Deserialize;

/// The most characters of one message that are handed over.
const MESSAGE: usize = 2_000;

// Without words on the variants: the schema is then a plain list of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(super) enum Handover {
    #[default]
    None,
    Recent,
    All,
}

/// The instruction, with what was said before it.
pub(super) fn with_context(
    messages: &[Arc<Message>],
    handover: Handover,
    turns: usize,
    most: usize,
    instruction: &str,
) -> String {
    let said: Vec<_> = messages.iter().filter_map(|message| said(message)).collect();
    let from = match handover {
        Handover::None => said.len(),
        Handover::All => 0,
        Handover::Recent => {
            let prompts = said.iter().enumerate().rev().filter(|(_, (role, _))| *role == Role::User);
            prompts.take(turns).last().map_or(said.len(), |(at, _)| at)
        }
    };
    let mut lines: Vec<String> = said.iter().skip(from).map(|(role, text)| line(*role, text)).collect();
    let mut size: usize = lines.iter().map(|line| line.chars().count()).sum();
    let mut left_out = 0_usize;
    // The newest matter most, so the oldest go first.
    while size > most && !lines.is_empty() {
        size -= lines.remove(0).chars().count();
        left_out += 1;
    }
    if lines.is_empty() {
        return instruction.to_owned();
    }
    if left_out > 0 {
        lines.insert(0, format!("[{left_out} earlier messages are left out]"));
    }
    format!(
        "[PARENT CONVERSATION CONTEXT]\n{}\n[END PARENT CONTEXT]\n\n[YOUR TASK]\n{instruction}",
        lines.join("\n\n")
    )
}

/// What a person or the model said; not what tools gave, hooks added or the model thought.
fn said(message: &Message) -> Option<(Role, String)> {
    let by_a_hook = message.metadata.get("source").is_some_and(|source| source == "hook");
    if by_a_hook || !matches!(message.role, Role::User | Role::Assistant) {
        return None;
    }
    let text = message.content.visible_text();
    (!text.trim().is_empty()).then(|| (message.role, text.into_owned()))
}

fn line(role: Role, text: &str) -> String {
    let who = if role == Role::User { "USER" } else { "ASSISTANT" };
    match text.char_indices().nth(MESSAGE) {
        Some((at, _)) => format!("{who}: {}… [cut]", text.get(..at).unwrap_or(text)),
        None => format!("{who}: {text}"),
    }
}

/// A text of at most about so many characters: beginning and end, and how much is left out between them.
pub(super) fn shortened(text: String, most: usize) -> (String, Option<usize>) {
    let length = text.chars().count();
    if length <= most {
        return (text, None);
    }
    let (head, tail) = (most - most / 4, most / 4);
    let left_out = length - head - tail;
    let head: String = text.chars().take(head).collect();
    let tail: String = text.chars().skip(length - tail).collect();
    let note = format!(
        "\n\n[{left_out} characters are left out here; ask the agent for them by its session_id]\n\n"
    );
    (format!("{head}{note}{tail}"), Some(left_out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use amplifier_protocol::tool::ToolCall;
    use serde_json::json;

    fn conversation() -> Vec<Arc<Message>> {
        let call = ToolCall::new("c", "t", json!({}));
        let mut hook = Message::user("from a hook");
        hook.metadata.insert("source".to_owned(), json!("hook"));
        [
            Message::text(Role::System, "rules"),
            Message::user("one"),
            Message::text(Role::Assistant, "answer one"),
            Message::tool_result(&call, "tool text"),
            hook,
            Message::user("two"),
            Message::text(Role::Assistant, "answer two"),
        ]
        .into_iter()
        .map(Arc::new)
        .collect()
    }

    fn handed(handover: Handover, turns: usize, most: usize) -> String {
        with_context(&conversation(), handover, turns, most, "do it")
    }

    #[test]
    fn the_modes_hand_over_what_they_say() {
        assert_eq!(handed(Handover::None, 5, 9_999), "do it");
        assert_eq!(
            handed(Handover::Recent, 1, 9_999),
            "[PARENT CONVERSATION CONTEXT]\nUSER: two\n\nASSISTANT: answer two\n[END PARENT CONTEXT]\n\n[YOUR TASK]\ndo it"
        );
        let all = handed(Handover::All, 1, 9_999);
        assert!(all.contains("USER: one") && all.contains("ASSISTANT: answer two"), "{all}");
        for never in ["rules", "tool text", "from a hook"] {
            assert!(!all.contains(never), "{never}");
        }
        assert_eq!(handed(Handover::Recent, 0, 9_999), "do it");
    }

    #[test]
    fn the_oldest_go_first_when_it_is_too_much() {
        let text = handed(Handover::All, 1, 29);
        assert!(text.contains("[3 earlier messages are left out]\n\nASSISTANT: answer two"), "{text}");
        assert_eq!(handed(Handover::All, 1, 0), "do it");
    }

    #[test]
    fn a_long_answer_keeps_its_beginning_and_end() {
        let (text, left_out) = shortened(format!("{}END", "ä".repeat(100)), 40);
        assert_eq!(left_out, Some(63));
        assert!(text.starts_with("ää") && text.ends_with("END"), "{text}");
        assert_eq!(shortened("short".to_owned(), 40), ("short".to_owned(), None));
    }
}
