//! Any history is mapped and keeps its pairs and its order; thoughts of other services stay here.

use proptest::prelude::*;
use serde_json::Value;

use super::super::wire::histories::{histories, in_order, mapped, texts};
use super::{Config, request};

proptest! {
    #[test]
    fn any_history_keeps_pairs_and_order(messages in histories()) {
        let (body, history) = mapped(&messages, |ask| request::body(ask, &Config::default()));
        let wire = body["messages"].as_array().unwrap();
        let mut open: Vec<&Value> = Vec::new();
        for message in wire {
            if message["role"] == "tool" {
                prop_assert_eq!(&message["tool_call_id"], open.remove(0));
            } else {
                prop_assert!(open.is_empty());
                open = message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["id"]).collect();
            }
            prop_assert_eq!(message.get("thinking"), None);
        }
        prop_assert!(open.is_empty());
        let all: Vec<_> = wire.iter().map(|message| message["content"].as_str().unwrap()).collect();
        prop_assert!(in_order(&all.join("\n"), &texts(&history)));
    }
}
