//! What a context shows of a conversation that grew too long is taken by every mapper, as any other history is.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

use amplifier_core::contracts::RequestBudget;
use amplifier_protocol::content::ContentBlock;
use amplifier_protocol::event::ContextCompaction;
use amplifier_protocol::message::{Content, Message, Messages, Role};
use amplifier_testing::TestCoordinator;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::mappers_tests as takes;
use super::wire::repair::repair;
use crate::contexts::simple::Simple;

const CASES: u32 = 150;

/// Something that happens to a conversation.
#[derive(Debug, Clone)]
enum Op {
    Prompt(usize),
    System(usize),
    /// What a hook says, in passing or for good.
    Hook {
        length: usize,
        ephemeral: bool,
    },
    Answer(usize),
    /// A thought with its proof, words, so many calls, of which the first so many are answered at this length.
    Round {
        calls: usize,
        answered: usize,
        length: usize,
        noted: bool,
    },
    /// A message of any shape, of a history of any shape.
    Odd(Arc<Message>, usize),
    /// A request with so many tokens at most.
    Request(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let odd = (takes::histories(), 0..1_500_usize).prop_filter_map("a message", |(history, length)| {
        history.first().cloned().map(|message| Op::Odd(message, length))
    });
    let round = (1..4_usize, 0..4_usize, 0..4_000_usize, any::<bool>());
    prop_oneof![
        3 => (1..600_usize).prop_map(Op::Prompt),
        1 => (1..60_usize).prop_map(Op::System),
        1 => (1..300_usize, any::<bool>()).prop_map(|(length, ephemeral)| Op::Hook { length, ephemeral }),
        2 => (0..900_usize).prop_map(Op::Answer),
        8 => round.prop_map(|(calls, answered, length, noted)| Op::Round { calls, answered, length, noted }),
        1 => odd,
        4 => (200..5_000_u64).prop_map(Op::Request),
    ]
}

fn configs() -> impl Strategy<Value = Value> {
    let clipped = prop_oneof![Just(Value::Null), Just(json!(600)), Just(json!(100_000))];
    (any::<bool>(), clipped, 0..6_usize).prop_map(|(notice, clipped, protected)| {
        json!({"compaction_notice_enabled": notice, "max_tool_result_bytes": clipped,
            "protected_tool_results": protected, "truncate_chars": 80})
    })
}

/// Everything that is said bears a number, so that it is known again.
fn words(number: usize, length: usize) -> String {
    format!("<{number}>{}", " word".repeat(length / 5))
}

fn message(value: Value) -> Arc<Message> {
    Arc::new(serde_json::from_value(value).unwrap())
}

/// What was said by this, as it is stored.
fn said(op: &Op, number: usize) -> Vec<Arc<Message>> {
    match op {
        Op::Prompt(length) => vec![message(json!({"role": "user", "content": words(number, *length)}))],
        Op::System(length) => vec![message(json!({"role": "system", "content": words(number, *length)}))],
        Op::Hook { length, ephemeral } => {
            vec![message(json!({"role": "user", "content": words(number, *length),
            "metadata": {"source": "hook", "ephemeral": ephemeral}}))]
        }
        Op::Answer(length) => vec![message(
            json!({"role": "assistant", "content": [{"type": "text", "text": words(number, *length)}]}),
        )],
        Op::Round { calls, answered, length, noted } => {
            let id = |n: usize| format!("call_{number}_{n}");
            let origins = ["anthropic", "openai", "gemini"];
            let (proof, origin) = (format!("proof{number}=="), origins[number % origins.len()]);
            let mut thought = json!({"type": "thinking", "thinking": words(number, 40), "origin": origin});
            match origin {
                "openai" => thought["content"] = json!([proof, "rs_1"]),
                _ => thought["signature"] = json!(proof),
            }
            let mut blocks = vec![thought, json!({"type": "text", "text": format!("look {number}")})];
            blocks.extend(
                (0..*calls)
                    .map(|n| json!({"type": "tool_call", "id": id(n), "name": "look", "input": {"n": n}})),
            );
            let mut said = vec![message(json!({"role": "assistant", "content": blocks}))];
            if *noted {
                said.push(message(json!({"role": "user", "content": format!("note {number}"),
                    "metadata": {"source": "hook"}})));
            }
            said.extend((0..*calls.min(answered)).map(|n| {
                let content = format!("begin {number}.{n}{} end", " word".repeat(length / 5));
                message(json!({"role": "tool", "tool_call_id": id(n), "content": content}))
            }));
            said
        }
        Op::Odd(odd, length) => {
            let mut odd = Message::clone(odd);
            lengthen(&mut odd.content, &words(number, *length));
            vec![Arc::new(odd)]
        }
        Op::Request(_) => Vec::new(),
    }
}

/// Long enough to be cut, where it says something at all.
fn lengthen(content: &mut Content, by: &str) {
    match content {
        Content::Text(text) if !text.trim().is_empty() => text.push_str(by),
        Content::Text(_) => {}
        Content::Blocks(blocks) => {
            for block in blocks {
                if let ContentBlock::Text(text) = block
                    && !text.text.trim().is_empty()
                {
                    text.text.push_str(by);
                }
            }
        }
    }
}

fn results(messages: &Messages) -> HashSet<String> {
    let results = messages.iter().filter(|message| message.role == Role::Tool);
    results.filter_map(|message| message.tool_call_id.clone()).collect()
}

fn calls(messages: &Messages) -> HashSet<String> {
    messages.iter().flat_map(|message| message.calls()).map(|call| call.id).collect()
}

fn thoughts(messages: &Messages) -> Vec<&ContentBlock> {
    let blocks = messages.iter().filter_map(|message| match &message.content {
        Content::Blocks(blocks) => Some(blocks),
        Content::Text(_) => None,
    });
    blocks.flatten().filter(|block| matches!(block, ContentBlock::Thinking(_))).collect()
}

/// A call of ours that has a result is shown with it, or neither is; what a model thought is shown as it was, or not.
fn keeps_pairs_and_proofs(view: &Messages, stored: &Messages) {
    let ours =
        |ids: HashSet<String>| ids.into_iter().filter(|id| id.starts_with("call_")).collect::<HashSet<_>>();
    let (called, answered) = (ours(calls(view)), ours(results(view)));
    let were_answered = ours(results(stored));
    assert!(answered.is_subset(&called), "a result without its call");
    for id in called.intersection(&were_answered) {
        assert!(answered.contains(id), "`{id}` lost its result");
    }
    let (_, missing) = repair(view);
    for call in missing.iter().filter(|call| call.id.starts_with("call_")) {
        assert!(!were_answered.contains(&call.id), "`{}` had a result", call.id);
    }
    let had = thoughts(stored);
    for thought in thoughts(view) {
        assert!(had.contains(&thought), "{thought:?} was not thought");
    }
}

fn taken_by_all(view: &Messages) {
    takes::anthropic_takes(view);
    takes::openai_takes(view);
    takes::openai_takes_what_is_since_the_last_prompt(view);
    takes::ollama_takes(view);
    takes::gemini_takes(view, "gemini-3-pro-preview");
    takes::gemini_takes(view, "gemini-2.5-flash");
    takes::chat_completions_takes(view);
}

/// Lets it all happen to `context-simple`; how many views were shortened, and how many were shown.
async fn happens(ops: &[Op], config: Value) -> (usize, usize) {
    let hub = TestCoordinator::new();
    hub.mount(&Simple, config).await.unwrap();
    let (context, recorder) = (hub.context().unwrap(), hub.recorder());
    let mut shown = 0;
    for (number, op) in ops.iter().enumerate() {
        for message in said(op, number) {
            context.add_message(message).await.unwrap();
        }
        let Op::Request(tokens) = op else { continue };
        let budget = RequestBudget { token_budget: Some(*tokens), provider: None };
        // What must be shown may be more than the budget; that is told, and nothing is asked.
        let Ok(view) = context.messages_for_request(budget).await else { continue };
        shown += 1;
        keeps_pairs_and_proofs(&view, &context.messages().await.unwrap());
        taken_by_all(&view);
    }
    (recorder.of::<ContextCompaction>().len(), shown)
}

#[test]
fn what_a_context_shows_of_a_long_conversation_is_taken_by_every_mapper() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (shortened, shown) = (Cell::new(0), Cell::new(0));
    let histories = (prop::collection::vec(op(), 5..60), configs());
    let outcome = TestRunner::new(ProptestConfig::with_cases(CASES)).run(&histories, |(ops, config)| {
        let (fewer, all) = runtime.block_on(happens(&ops, config));
        shortened.set(shortened.get() + fewer);
        shown.set(shown.get() + all);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    // Otherwise nothing was tried.
    let (shortened, least) = (shortened.get(), usize::try_from(CASES).unwrap());
    assert!(shortened > least, "{shortened} of {} views were shortened", shown.get());
}
