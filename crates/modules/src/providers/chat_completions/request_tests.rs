//! Any history is mapped and keeps its pairs, its order and its signatures.

use amplifier_protocol::content::ContentBlock;
use amplifier_protocol::message::{Content, Role};
use proptest::prelude::*;
use serde_json::Value;

use super::super::wire::histories::{histories, in_order, mapped, texts};
use super::{Config, Replay, request};

fn spoken(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n\n")
        }
        _ => String::new(),
    }
}

proptest! {
    #[test]
    fn any_history_keeps_pairs_order_and_signatures(messages in histories()) {
        let config = Config { reasoning_replay: Replay::All, ..Config::default() };
        let (body, history) = mapped(&messages, |ask| request::body(ask, &config));
        let wire = body["messages"].as_array().unwrap();
        let mut open: Vec<&str> = Vec::new();
        let mut before = "";
        for message in wire {
            let role = message["role"].as_str().unwrap();
            if role == "tool" {
                prop_assert_eq!(message["tool_call_id"].as_str(), Some(open.remove(0)));
            } else {
                prop_assert!(open.is_empty());
                prop_assert!(role != "user" || before != "user", "two turns of a person in a row");
                let calls = message["tool_calls"].as_array().into_iter().flatten();
                open = calls.map(|call| call["id"].as_str().unwrap()).collect();
            }
            before = role;
        }
        prop_assert!(open.is_empty());
        let all: Vec<_> = wire.iter().map(spoken).collect();
        prop_assert!(in_order(&all.join("\n"), &texts(&history)), "{:?}\n{:?}", all, texts(&history));

        let proofs = history.turns.iter().filter(|message| message.role == Role::Assistant).filter_map(|message| {
            let Content::Blocks(blocks) = &message.content else { return None };
            let speaks = !message.content.visible_text().is_empty() || !message.calls().is_empty();
            blocks.iter().find_map(|block| match block {
                ContentBlock::Thinking(thought) if speaks => thought.content.clone(),
                _ => None,
            })
        });
        let sent = wire.iter().filter_map(|message| message["reasoning_details"].as_array().cloned());
        prop_assert_eq!(sent.collect::<Vec<_>>(), proofs.collect::<Vec<_>>());
    }
}
