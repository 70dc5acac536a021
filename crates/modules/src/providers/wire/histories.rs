//! Histories for property tests: everything a context can hold and worse, so that no mapper is surprised later.

use std::sync::Arc;

use amplifier_protocol::chat::ChatRequest;
use amplifier_protocol::message::{Message, Messages, Role};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::repair::repair;
use super::{Ask, Delivery, History, Learnt, Settings};

/// One thing that happens in a conversation.
#[derive(Debug, Clone)]
enum Happening {
    Says(&'static str, String),
    Passing(String),
    Shows(String),
    Answers { text: String, thought: Option<String>, calls: u8, listed: bool },
    Results(u8),
    Stray,
}

fn happening() -> impl Strategy<Value = Happening> {
    let text = || prop_oneof![Just(String::new()), "[a-z ]{1,12}", "[\\PC]{0,6}"];
    prop_oneof![
        4 => text().prop_map(|text| Happening::Says("user", text)),
        1 => text().prop_map(|text| Happening::Says("system", text)),
        1 => text().prop_map(|text| Happening::Says("developer", text)),
        1 => text().prop_map(Happening::Passing),
        1 => text().prop_map(Happening::Shows),
        5 => (text(), prop::option::of("[A-Za-z0-9+/=]{1,20}"), 0_u8..4, any::<bool>())
            .prop_map(|(text, thought, calls, listed)| Happening::Answers { text, thought, calls, listed }),
        5 => (0_u8..5).prop_map(Happening::Results),
        1 => Just(Happening::Stray),
    ]
}

/// Any conversation.
pub(crate) fn histories() -> impl Strategy<Value = Messages> {
    prop::collection::vec(happening(), 0..24).prop_map(|happenings| {
        let (mut messages, mut open, mut number) = (Vec::new(), Vec::new(), 0_u32);
        for happening in happenings {
            happen(happening, &mut messages, &mut open, &mut number);
        }
        messages.into_iter().map(|message| Arc::new(serde_json::from_value(message).unwrap())).collect()
    })
}

fn happen(happening: Happening, messages: &mut Vec<Value>, open: &mut Vec<String>, number: &mut u32) {
    match happening {
        Happening::Says(role, text) => messages.push(json!({"role": role, "content": text})),
        Happening::Passing(text) => {
            messages.push(
                json!({"role": "user", "content": text, "metadata": {"source": "hook", "ephemeral": true}}),
            );
        }
        Happening::Shows(text) => messages.push(json!({"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            {"type": "text", "text": text}, {"type": "from_the_future", "n": 1.0}]})),
        Happening::Answers { text, thought, calls, listed } => {
            let mut blocks = Vec::new();
            if let Some(proof) = thought {
                blocks.push(json!({"type": "thinking", "thinking": format!("thought {proof}"), "signature": proof,
                    "content": [{"type": "reasoning.encrypted", "data": proof}], "reasoning_field": "reasoning"}));
            }
            blocks.push(json!({"type": "text", "text": text}));
            let mut listed_calls = Vec::new();
            for _ in 0..calls {
                *number += 1;
                let id = format!("call_{number}");
                blocks.push(json!({"type": "tool_call", "id": id, "name": "look", "input": {"n": number}}));
                listed_calls.push(json!({"id": id, "name": "look", "arguments": {"n": number}}));
                open.push(id);
            }
            let mut message = json!({"role": "assistant", "content": blocks});
            if listed {
                message["tool_calls"] = Value::Array(listed_calls);
            }
            messages.push(message);
        }
        Happening::Results(most) => {
            for _ in 0..most {
                // The last first, so that results also come in the wrong order and some never come.
                let Some(id) = open.pop() else { break };
                messages
                    .push(json!({"role": "tool", "tool_call_id": id, "content": format!("result of {id}")}));
            }
        }
        Happening::Stray => {
            messages.push(json!({"role": "tool", "tool_call_id": "nobody", "content": "stray"}))
        }
    }
}

/// Maps a conversation as a request with nothing else in it.
pub(crate) fn mapped<T>(messages: &Messages, map: impl FnOnce(&Ask<'_>) -> T) -> (T, History) {
    let (history, _) = repair(messages);
    let (request, settings) = (ChatRequest::new(messages.clone()), Settings::default());
    let (delivery, learnt) = (Delivery::Streamed, Learnt::default());
    let ask = Ask {
        request: &request,
        history: &history,
        settings: &settings,
        model: "m",
        delivery,
        learnt: &learnt,
    };
    (map(&ask), history)
}

/// The texts that a mapper must keep, in their order: what was said, behind the system text.
pub(crate) fn texts(history: &History) -> Vec<String> {
    let said = |message: &Arc<Message>| message.content.visible_text().into_owned();
    history.turns.iter().map(said).filter(|text| !text.is_empty()).collect()
}

/// Whether `all` holds these texts in this order.
pub(crate) fn in_order(all: &str, texts: &[String]) -> bool {
    let mut rest = all;
    texts.iter().all(|text| match rest.find(text.as_str()) {
        Some(at) => {
            rest = rest.get(at + text.len()..).unwrap_or_default();
            true
        }
        None => false,
    })
}

proptest! {
    #[test]
    fn a_mended_history_has_its_pairs_its_order_and_nothing_left_to_mend(messages in histories()) {
        let (history, missing) = repair(&messages);
        let mut open: Vec<String> = Vec::new();
        for (at, message) in history.turns.iter().enumerate() {
            match message.role {
                Role::Tool => {
                    prop_assert_eq!(message.tool_call_id.clone(), Some(open.remove(0)));
                }
                _ => {
                    prop_assert!(open.is_empty(), "something stands between a call and its result");
                    prop_assert!(at > 0 || message.role != Role::Assistant);
                    open = message.calls().into_iter().map(|call| call.id).collect();
                }
            }
        }
        prop_assert!(open.is_empty());
        prop_assert!(history.stable <= history.turns.len());
        let (again, more) = repair(&history.turns);
        prop_assert_eq!(&again.turns, &history.turns);
        prop_assert!(more.is_empty());
        for call in missing {
            let answered = messages.iter().filter(|message| message.tool_call_id.as_ref() == Some(&call.id));
            prop_assert!(answered.count() <= 1);
        }
    }
}
