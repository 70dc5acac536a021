//! The view under random conversations and budgets, and on the shapes that broke other implementations.

use std::collections::{HashMap, HashSet};

use amplifier_protocol::message::Role;
use amplifier_protocol::tool::ToolCall;
use amplifier_testing::TestCoordinator;
use proptest::prelude::*;
use serde_json::json;

use super::conversation::{Form, Shown};
use super::cut::shortened;
use super::estimate::tokens;
use super::pairs::calls;
use super::*;

/// Something that happens to a conversation.
#[derive(Debug, Clone)]
enum Op {
    Human(usize),
    Note(usize),
    System(usize),
    Answer(usize),
    /// A message with so many calls, of which the first so many are answered, with so long results.
    Round(usize, usize, usize),
    /// The same, with a note between the calls and the results.
    Interrupted(usize, usize),
    /// A result that answers nothing.
    Stray,
    Request(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0..600_usize).prop_map(Op::Human),
        1 => (0..600_usize).prop_map(Op::Note),
        1 => (0..60_usize).prop_map(Op::System),
        3 => (0..900_usize).prop_map(Op::Answer),
        6 => (1..4_usize, 0..4_usize, 0..5_000_usize).prop_map(|(calls, answered, len)| Op::Round(calls, answered, len)),
        1 => (1..3_usize, 0..2_000_usize).prop_map(|(calls, len)| Op::Interrupted(calls, len)),
        1 => Just(Op::Stray),
        5 => (50..6_000_u64).prop_map(Op::Request),
    ]
}

fn result(id: &str, text: String) -> Message {
    Message::tool_result(&ToolCall::new(id, "t", json!({})), text)
}

fn note(text: String) -> Message {
    let mut message = Message::user(text);
    message.metadata.insert("source".to_owned(), json!("hook"));
    message
}

fn calling(ids: &[String]) -> Message {
    let mut message = Message::text(Role::Assistant, "");
    message.tool_calls = ids.iter().map(|id| ToolCall::new(id.clone(), "t", json!({"a": 1}))).collect();
    message
}

/// What an operation adds. Call ids come back after a while, as some services make them.
fn said(op: &Op, number: usize) -> Vec<Message> {
    let ids =
        |calls: usize| -> Vec<String> { (0..calls).map(|n| format!("c{}", (number + n) % 50)).collect() };
    match op {
        Op::Human(len) => vec![Message::user(format!("{number} {}", "h".repeat(*len)))],
        Op::Note(len) => vec![note("n".repeat(*len))],
        Op::System(len) => vec![Message::text(Role::System, "s".repeat(*len))],
        Op::Answer(len) => vec![Message::text(Role::Assistant, "a".repeat(len + 1))],
        Op::Round(calls, answered, len) => {
            let ids = ids(*calls);
            let results = ids.iter().take(*answered).map(|id| result(id, "ä€x".repeat(len / 6)));
            std::iter::once(calling(&ids)).chain(results).collect()
        }
        Op::Interrupted(calls, len) => {
            let ids = ids(*calls);
            let results = ids.iter().map(|id| result(id, "r".repeat(*len)));
            [calling(&ids), note("between".to_owned())].into_iter().chain(results).collect()
        }
        Op::Stray => vec![result("nobody", "?".to_owned())],
        Op::Request(_) => Vec::new(),
    }
}

fn window(config: serde_json::Value) -> Arc<Window> {
    let hub = TestCoordinator::new();
    Window::new(serde_json::from_value(config).unwrap(), Coordinator::clone(&hub))
}

fn explicit(tokens: u64) -> RequestBudget {
    RequestBudget { token_budget: Some(tokens), provider: None }
}

fn is_added(message: &Message) -> bool {
    message.metadata.get("source") == Some(&json!(notice::SOURCE))
}

/// Every call has exactly one result before the model speaks again, and no result stands without its call.
fn check_pairs(view: &[Arc<Message>]) {
    let mut open: Vec<&str> = Vec::new();
    for message in view {
        if message.role == Role::Assistant {
            assert!(open.is_empty(), "{open:?} have no result");
            open = calls(message).map(|(id, _)| id).collect();
        } else if message.role == Role::Tool {
            let id = message.tool_call_id.as_deref().unwrap();
            let at =
                open.iter().position(|call| *call == id).unwrap_or_else(|| panic!("`{id}` answers nothing"));
            open.remove(at);
        }
    }
    assert!(open.is_empty(), "{open:?} have no result");
}

fn is_frame(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}

/// The least a view can be: what must stay, as short as it can be cut.
fn floor(window: &Window) -> u64 {
    let conversation = lock(&window.conversation);
    let shown = conversation.shown();
    let prompts: Vec<_> = (0..shown.len()).filter(|at| draft::is_prompt(&shown[*at])).collect();
    let spoke = shown.iter().rposition(|shown| shown.message.role == Role::Assistant);
    let last_round = spoke.max(prompts.last().copied()).unwrap_or(shown.len());
    let open =
        conversation.open_group().and_then(|open| shown.iter().position(|shown| shown.group == Some(open)));
    let last_round = last_round.min(open.unwrap_or(last_round));
    let running: HashSet<_> = shown[last_round..].iter().filter_map(|shown| shown.group).collect();
    let least = |shown: &Shown| {
        let cut = shortened(&shown.stored, window.config.truncate_chars);
        cut.map_or(shown.tokens, |cut| tokens(&cut).min(shown.tokens))
    };
    let needed = shown.iter().enumerate().map(|(at, shown)| {
        let running = at >= last_round || shown.group.is_some_and(|group| running.contains(&group));
        match () {
            () if Some(&at) == prompts.last() || is_frame(&shown.message) => shown.tokens,
            () if Some(&at) == prompts.first() => least(shown),
            () if running && shown.message.role == Role::Tool => least(shown),
            () if running => shown.tokens,
            () => 0,
        }
    });
    needed.sum::<u64>() + conversation.open_tokens()
}

/// What a view looked like before: the bytes, and what it was made from.
struct Before {
    generation: u64,
    view: Messages,
    sizes: HashMap<*const Message, u64>,
}

fn check_view(window: &Window, view: &Messages, stored: &Messages, budget: u64) {
    let size: u64 = view.iter().map(|message| tokens(message)).sum();
    assert!(size <= budget, "{size} tokens in a budget of {budget}");
    check_pairs(view);
    let conversation = lock(&window.conversation);
    let mut rest = stored.iter();
    for shown in conversation.shown().iter().filter(|shown| shown.form != Form::Missing) {
        assert!(rest.any(|message| Arc::ptr_eq(message, &shown.stored)), "order is not kept");
    }
    let frames = |messages: &[Arc<Message>]| messages.iter().filter(|message| is_frame(message)).count();
    assert_eq!(frames(view), frames(stored));
    let is_human = |message: &&Arc<Message>| message.role == Role::User && message.metadata.is_empty();
    if let Some(last) = stored.iter().rfind(is_human) {
        assert!(view.contains(last), "the last prompt is gone");
    }
    assert_eq!(
        stored.iter().any(|message| is_human(&message)),
        view.iter().any(|message| is_human(&message))
    );
}

fn check_sticky(window: &Window, view: &Messages, before: Option<Before>) -> Before {
    let conversation = lock(&window.conversation);
    let view: Messages = view.iter().filter(|message| !is_added(message)).cloned().collect();
    let own = conversation.shown().iter().filter(|shown| shown.form != Form::Missing);
    let sizes: HashMap<_, _> = own.map(|shown| (Arc::as_ptr(&shown.stored), shown.tokens)).collect();
    let generation = conversation.generation();
    if let Some(before) = before {
        if before.generation == generation {
            assert!(view.starts_with(&before.view), "the beginning changed without need");
        } else {
            for (message, size) in &before.sizes {
                assert!(sizes.get(message).is_none_or(|now| now <= size), "something grew back");
            }
        }
    }
    Before { generation, view, sizes }
}

/// What is open at the end of a view may still be answered, so only what stands before it must not change.
fn without_missing(view: &Messages) -> Messages {
    let end =
        view.iter().rposition(|message| message.role == Role::Assistant && calls(message).next().is_some());
    view.iter().take(end.unwrap_or(view.len())).cloned().collect()
}

async fn play(ops: &[Op], config: serde_json::Value) {
    let window = window(config);
    let (mut stored, mut before): (Messages, Option<Before>) = (Vec::new(), None);
    for (number, op) in ops.iter().enumerate() {
        for message in said(op, number) {
            let message = Arc::new(message);
            window.add(Arc::clone(&message));
            stored.push(message);
        }
        if let Op::Request(budget) = op {
            match window.for_request(explicit(*budget)).await {
                Ok(view) => {
                    check_view(&window, &view, &stored, *budget);
                    let mut now = check_sticky(&window, &view, before);
                    now.view = without_missing(&now.view);
                    before = Some(now);
                }
                Err(ContextError::DoesNotFit { needed, budget: told }) => {
                    assert_eq!(told, *budget);
                    assert!(needed > told, "{needed} fits into {told}");
                    let floor = floor(&window);
                    assert!(floor > *budget, "{floor} would fit into {budget}");
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert_eq!(window.all(), stored);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_view_keeps_pairs_order_and_budget_and_its_beginning_while_messages_stay_complete(
        ops in prop::collection::vec(op(), 1..60),
        truncate_chars in 0..400_usize,
        protected_tool_results in 0..8_usize,
        protected_recent in 0.0..1.0_f64,
        target_usage in 0.05..0.9_f64,
    ) {
        let config = json!({
            "truncate_chars": truncate_chars, "protected_tool_results": protected_tool_results,
            "protected_recent": protected_recent, "target_usage": target_usage,
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(play(&ops, config));
    }
}

/// A prompt of 100 characters, a call, a result of 4,000 characters, an answer.
fn rounds(number: usize) -> Messages {
    let round = |n: usize| {
        let id = format!("r{n}");
        [
            Message::user(format!("prompt {n} {}", "p".repeat(100))),
            calling(std::slice::from_ref(&id)),
            result(&id, format!("begin {n} {} exit {n}", "x".repeat(4_000))),
            Message::text(Role::Assistant, format!("answer {n}")),
        ]
    };
    let system = Message::text(Role::System, "be kind");
    std::iter::once(system).chain((0..number).flat_map(round)).map(Arc::new).collect()
}

async fn shortened_rounds(number: usize, budget: u64) -> (Arc<Window>, Messages) {
    let window = window(json!({}));
    window.replace(rounds(number));
    let view = window.for_request(explicit(budget)).await.unwrap();
    (window, view)
}

fn texts(view: &Messages) -> Vec<String> {
    view.iter().map(|message| message.content.visible_text().into_owned()).collect()
}

// The public implementation keeps 4 of the last 5 results here and tells the model that it keeps 5.
#[tokio::test]
async fn the_last_five_results_stay_whole_where_the_target_allows_it() {
    let (window, view) = shortened_rounds(20, 12_000).await;
    let whole = view
        .iter()
        .filter(|message| message.role == Role::Tool && message.content.visible_text().len() > 4_000);
    assert_eq!(whole.count(), 5);
    let (_, tokens) = lock(&window.conversation).size();
    assert!(tokens <= (12_000 - 800) / 2, "{tokens}");
    assert_eq!(
        (&view[0].role, view[1].content.visible_text().starts_with("prompt 0")),
        (&Role::System, true)
    );
}

// The public implementation misses its target of 1,100 by stubs that cost more than it counts, or overshoots to 297.
#[tokio::test]
async fn a_tight_budget_is_kept_and_the_view_begins_with_a_person() {
    for budget in [6_000, 3_000, 1_500] {
        let (window, view) = shortened_rounds(20, budget).await;
        let (_, tokens) = lock(&window.conversation).size();
        assert!(tokens <= budget, "{tokens} of {budget}");
        assert_eq!(view[1].role, Role::User);
        assert!(texts(&view).iter().any(|text| text.starts_with("prompt 19")));
        assert_eq!(window.all().len(), 81);
    }
}

#[tokio::test]
async fn what_fits_is_shown_as_it_is_without_a_notice() {
    let (window, view) = shortened_rounds(3, 12_000).await;
    assert_eq!(view, window.all());
}

#[tokio::test]
async fn old_results_are_cut_before_anything_is_left_out_and_keep_their_end() {
    let window = window(json!({"target_usage": 0.6}));
    window.replace(rounds(12));
    let texts = texts(&window.for_request(explicit(13_500)).await.unwrap());
    let numbers = lock(&window.conversation).totals();
    assert!(texts[3].contains("begin 0") && texts[3].ends_with("exit 0"), "{}", texts[3]);
    assert_eq!((numbers.level, numbers.removed), (2, 0));
    assert!(texts.last().unwrap().contains(&format!("{} of those shown are cut", numbers.cut)));
}

#[tokio::test]
async fn a_late_system_message_of_a_hook_stays_where_it_was_said() {
    let window = window(json!({}));
    let mut messages = rounds(20);
    let mut late = Message::text(Role::System, "mode is now strict");
    late.metadata.insert("source".to_owned(), json!("hook"));
    messages.insert(70, Arc::new(late));
    window.replace(messages);
    let view = texts(&window.for_request(explicit(6_000)).await.unwrap());
    let at = view.iter().position(|text| text == "mode is now strict").unwrap();
    assert!(at > 1 && view[at + 1..].iter().any(|text| text.starts_with("prompt 19")), "{view:?}");
}

#[tokio::test]
async fn a_result_too_long_for_the_budget_is_cut_to_what_fits_and_not_to_nothing() {
    let window = window(json!({}));
    let long = result("a", format!("first {} last", "y".repeat(400_000)));
    window.replace([Message::user("go"), calling(&["a".to_owned()]), long].map(Arc::new).to_vec());
    let view = texts(&window.for_request(explicit(10_000)).await.unwrap());
    assert!(view[2].contains("first y") && view[2].ends_with("y last"));
    assert!(view[2].len() > 10_000, "{}", view[2].len());
}

#[tokio::test]
async fn what_cannot_be_made_to_fit_is_refused_with_numbers_and_changes_nothing() {
    let window = window(json!({}));
    window.add(Arc::new(Message::user("x".repeat(4_000))));
    let refused = window.for_request(explicit(100)).await;
    assert_eq!(refused, Err(ContextError::DoesNotFit { needed: 1_004, budget: 100 }));
    assert_eq!(window.for_request(explicit(2_000)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn without_auto_compact_nothing_is_ever_left_out() {
    let window = window(json!({"auto_compact": false}));
    window.replace(rounds(20));
    assert_eq!(window.for_request(explicit(100)).await.unwrap(), window.all());
}

#[tokio::test]
async fn a_message_its_service_wants_back_is_never_left_out() {
    let window = window(json!({}));
    let mut messages = rounds(20);
    let mut pinned = Message::text(Role::Assistant, "found tools");
    pinned.metadata.insert("openai:tool_search_items".to_owned(), json!([1]));
    messages.insert(9, Arc::new(pinned));
    window.replace(messages);
    let view = texts(&window.for_request(explicit(3_000)).await.unwrap());
    assert!(view.contains(&"found tools".to_owned()), "{view:?}");
}

#[tokio::test]
async fn a_view_that_cannot_get_shorter_is_not_planned_anew_for_every_message() {
    let window = window(json!({"compaction_notice_enabled": false}));
    window.add(Arc::new(Message::user("x".repeat(3_800))));
    window.for_request(explicit(1_000)).await.unwrap();
    let retry_at = lock(&window.last).stuck.map(|stuck| stuck.retry_at);
    assert_eq!(retry_at, Some(954 + 50));
    assert!(!window.is_too_long(1_000));
    window.add(Arc::new(Message::text(Role::Assistant, "y".repeat(400))));
    assert!(window.is_too_long(1_000));
}
