//! Dispatch: who hears what in which order, how answers are joined, what a failure means.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_core::contracts::{EventStamp, HookEvent, HookFailure};
use amplifier_core::hooks::{Decision, HookSpec, Hooks, Outcome};
use amplifier_protocol::event::ToolPre;
use amplifier_protocol::hook::{HookAction, HookResult, Injection, InjectionRole, MessageLevel};
use amplifier_protocol::time::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::kit::*;

fn hooks() -> Hooks {
    Hooks::new(Duration::from_secs(30), RuntimeClock::new())
}

fn event(name: &str, data: Value) -> HookEvent {
    let stamp = EventStamp {
        session_id: "s".parse().unwrap(),
        parent_id: None,
        turn: 1,
        sequence: 7,
        timestamp: Timestamp::from_micros(0),
    };
    HookEvent { name: name.parse().unwrap(), data: map(data), stamp }
}

/// Registers a handler that notes its name and answers so.
fn noting(hooks: &Hooks, diary: &Diary, name: &str, priority: i32, result: HookResult) {
    let (diary, noted) = (diary.clone(), name.to_owned());
    let handler = hook(move |_| {
        diary.note(noted.clone());
        let result = result.clone();
        async move { Ok(result) }
    });
    hooks.on(HookSpec::new("e:x".parse().unwrap(), name).priority(priority), handler);
}

#[tokio::test]
async fn lower_priorities_run_first_and_equal_ones_in_registration_order() {
    let (hooks, diary) = (hooks(), Diary::default());
    for (name, priority) in [("ten", 10), ("zero", 0), ("five", 5), ("zero too", 0), ("below", -10)] {
        noting(&hooks, &diary, name, priority, HookResult::proceed());
    }
    hooks.dispatch(event("e:x", json!({}))).await;
    assert_eq!(diary.read(), ["below", "zero", "zero too", "five", "ten"]);
    assert_eq!(hooks.list(&"e:x".parse().unwrap()), diary.read(), "and the list says so");
    assert_eq!(hooks.list(&"e:y".parse().unwrap()), Vec::<String>::new());
}

#[tokio::test]
async fn a_change_is_seen_by_the_next_handler_replaces_the_data_and_the_joined_answer_is_modify_unlike_upstream()
 {
    let hooks = hooks();
    let step = |add: &'static str| {
        hook(move |event: HookEvent| async move {
            let seen = event.data.get("seen").and_then(Value::as_str).unwrap_or_default();
            Ok(HookResult::modify(map(json!({"seen": format!("{seen}{add}")}))))
        })
    };
    hooks.on(on("e:x"), step("a"));
    hooks.on(on("e:x"), step("b"));
    let outcome = hooks.dispatch(event("e:x", json!({"seen": "", "dropped": 1}))).await;
    assert_eq!(Value::Object(outcome.data.clone()), json!({"seen": "ab"}), "wholesale, not merged");
    let flat = outcome.to_result();
    assert_eq!((flat.action, flat.data), (HookAction::Modify, Some(map(json!({"seen": "ab"})))));
}

#[tokio::test]
async fn a_modify_without_data_changes_nothing() {
    let hooks = hooks();
    hooks.on(on("e:x"), answering(HookAction::Modify.into()));
    let outcome = hooks.dispatch(event("e:x", json!({"a": 1}))).await;
    assert_eq!((outcome.modified, outcome.to_result().action), (false, HookAction::Continue));
    assert_eq!(Value::Object(outcome.data), json!({"a": 1}));
}

#[tokio::test]
async fn a_denial_ends_the_round_and_carries_its_reason_and_no_data() {
    let (hooks, diary) = (hooks(), Diary::default());
    noting(&hooks, &diary, "one", 1, HookResult::modify(map(json!({"b": 2}))));
    noting(&hooks, &diary, "two", 2, HookResult::deny("over my dead body"));
    noting(&hooks, &diary, "three", 3, HookResult::proceed());
    let outcome = hooks.dispatch(event("e:x", json!({}))).await;
    assert_eq!(diary.read(), ["one", "two"]);
    assert_eq!(
        outcome.decision,
        Decision::Deny { reason: "over my dead body".to_owned(), hook: "two".to_owned() }
    );
    let flat = outcome.to_result();
    assert_eq!(flat.action, HookAction::Deny { reason: "over my dead body".to_owned() });
    assert_eq!(flat.data, None);
}

#[tokio::test]
async fn a_question_beats_an_injection_in_either_order_and_a_later_denial_beats_the_question() {
    for order in [[1, 2], [2, 1]] {
        let (hooks, diary) = (hooks(), Diary::default());
        noting(&hooks, &diary, "ask", order[0], HookResult::ask("May I?"));
        noting(&hooks, &diary, "inject", order[1], HookResult::inject("note"));
        let outcome = hooks.dispatch(event("e:x", json!({}))).await;
        assert!(matches!(outcome.to_result().action, HookAction::AskUser(_)));
        assert_eq!((outcome.questions.len(), outcome.injections.len()), (1, 1), "and nothing is lost");
        noting(&hooks, &diary, "deny", 3, HookResult::deny("no"));
        let outcome = hooks.dispatch(event("e:x", json!({}))).await;
        assert!(matches!(outcome.to_result().action, HookAction::Deny { .. }));
    }
}

#[tokio::test]
async fn injections_are_joined_by_a_blank_line_for_the_wire_and_kept_apart_inside() {
    let hooks = hooks();
    let injected = |text: &str, role, ephemeral, append| -> HookResult {
        HookAction::InjectContext(Injection {
            text: text.to_owned(),
            role,
            ephemeral,
            append_to_last_tool_result: append,
        })
        .into()
    };
    hooks.on(on("e:x"), answering(injected("one", InjectionRole::User, false, false)));
    hooks.on(on("e:x"), answering(injected("two", InjectionRole::System, true, true)));
    let outcome = hooks.dispatch(event("e:x", json!({}))).await;
    let HookAction::InjectContext(joined) = outcome.to_result().action else { panic!("{outcome:?}") };
    assert_eq!((joined.text.as_str(), joined.role), ("one\n\ntwo", InjectionRole::User));
    assert!(joined.ephemeral && joined.append_to_last_tool_result);
    let apart: Vec<_> = outcome.injections.iter().map(|one| one.item.ephemeral).collect();
    assert_eq!(apart, [false, true]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_panics_or_hangs_is_passed_over_and_the_next_one_runs() {
    let (hooks, diary) = (hooks(), Diary::default());
    hooks.on(HookSpec::new("e:x".parse().unwrap(), "fails"), hook(|_| async { Err(HookFailure::new("no")) }));
    hooks.on(HookSpec::new("e:x".parse().unwrap(), "panics"), hook(|_| async { panic!("spilt") }));
    let patient = HookSpec { timeout: Some(Duration::from_secs(3)), ..on("e:x") };
    hooks.on(HookSpec { name: "hangs".to_owned(), ..patient }, hook(|_| std::future::pending()));
    noting(&hooks, &diary, "next", 1, HookResult::proceed());
    let began = tokio::time::Instant::now();
    let outcome = hooks.dispatch(event("e:x", json!({"a": 1}))).await;
    assert_eq!(began.elapsed(), Duration::from_secs(3), "its own time-out, not the default");
    assert_eq!((diary.read(), outcome.to_result().action), (vec!["next".to_owned()], HookAction::Continue));
    let failures: Vec<_> =
        outcome.failures.iter().map(|failure| format!("{}: {}", failure.hook, failure.error)).collect();
    assert_eq!(failures, ["fails: no", "panics: panicked: spilt", "hangs: no answer within 3.0 s"]);
    let timings = hooks.timings();
    assert_eq!(
        (timings[2].name.as_str(), timings[2].failures, timings[2].max_micros),
        ("hangs", 1, 3_000_000)
    );
    assert_eq!((timings[3].calls, timings[3].failures), (1, 0));
}

#[tokio::test]
async fn without_handlers_an_event_goes_on_as_it_was_without_a_stamp() {
    let outcome = hooks().dispatch(event("e:x", json!({"a": 1}))).await;
    assert_eq!(outcome, Outcome { data: map(json!({"a": 1})), ..Outcome::default() });
    let session = Stage::new().open().await;
    let emitted = session.coordinator().emit_named("e:x".parse().unwrap(), map(json!({"a": 1}))).await;
    assert_eq!(Value::Object(emitted.event), json!({"a": 1}));
}

#[tokio::test]
async fn the_payload_has_the_session_and_the_kernels_time_and_explicit_keys_win_but_for_the_time() {
    let stage = Stage::new();
    let session = stage.open().await;
    let hub = session.coordinator();
    let name = || "my:event".parse().unwrap();
    hub.emit_named(name(), map(json!({"timestamp": "yesterday", "extra": [1, {"deep": true}]}))).await;
    hub.emit_named(name(), map(json!({"session_id": "forged"}))).await;
    let told = stage.ear.payloads("my:event");
    assert_eq!(told[0]["session_id"], session.id().as_str());
    assert_eq!(told[0]["parent_id"], Value::Null);
    assert_eq!(told[0]["extra"], json!([1, {"deep": true}]));
    let time = told[0]["timestamp"].as_str().unwrap();
    assert!(time.starts_with("20") && (time.ends_with("+00:00") || time.ends_with('Z')), "{time}");
    assert_eq!(told[1]["session_id"], "forged");
    let numbers: Vec<_> = told.iter().map(|one| one["sequence"].as_u64().unwrap()).collect();
    assert!(numbers[0] < numbers[1], "{numbers:?}");
}

#[tokio::test]
async fn a_handler_that_was_unregistered_is_not_called_and_its_namesake_still_is() {
    let (hooks, diary) = (hooks(), Diary::default());
    let noting_on = |pattern: &str, what: &'static str| {
        let diary = diary.clone();
        hooks.on(
            on(pattern),
            hook(move |_| {
                diary.note(what);
                async { Ok(HookResult::proceed()) }
            }),
        )
    };
    let first = noting_on("e:x", "first");
    noting_on("e:x", "second");
    noting_on("e:y", "other event");
    assert!(hooks.unregister(first));
    assert!(!hooks.unregister(first), "a second time is no matter");
    hooks.dispatch(event("e:x", json!({}))).await;
    assert_eq!(diary.read(), ["second"]);
}

#[tokio::test]
async fn patterns_hear_a_namespace_or_everything_in_one_order_with_the_others() {
    let (hooks, diary) = (hooks(), Diary::default());
    for (pattern, priority) in [("*", 3), ("tool:*", 2), ("tool:pre", 1), ("toolbox:*", 0)] {
        let (diary, noted) = (diary.clone(), pattern.to_owned());
        let handler = hook(move |_| {
            diary.note(noted.clone());
            async { Ok(HookResult::proceed()) }
        });
        hooks.on(on(pattern).priority(priority), handler);
    }
    hooks.dispatch(event("tool:pre", json!({}))).await;
    hooks.dispatch(event("session:end", json!({}))).await;
    assert_eq!(diary.read(), ["tool:pre", "tool:*", "*", "*"]);
}

#[tokio::test]
async fn handlers_that_come_or_go_during_an_emit_do_not_change_that_emit() {
    let (hooks, diary) = (Arc::new(hooks()), Diary::default());
    let ids = Arc::new(Mutex::new(Vec::new()));
    let (registry, noted, known) = (Arc::clone(&hooks), diary.clone(), Arc::clone(&ids));
    hooks.on(
        on("e:x").priority(-1),
        hook(move |_| {
            for id in known.lock().unwrap().drain(..) {
                registry.unregister(id);
            }
            let diary = noted.clone();
            registry.on(
                on("e:x"),
                hook(move |_| {
                    diary.note("new");
                    async { Ok(HookResult::proceed()) }
                }),
            );
            async { Ok(HookResult::proceed()) }
        }),
    );
    let noted = diary.clone();
    let old = hooks.on(
        on("e:x"),
        hook(move |_| {
            noted.note("old");
            async { Ok(HookResult::proceed()) }
        }),
    );
    ids.lock().unwrap().push(old);
    hooks.dispatch(event("e:x", json!({}))).await;
    assert_eq!(diary.read(), ["old"]);
    hooks.dispatch(event("e:x", json!({}))).await;
    assert_eq!(diary.read(), ["old", "new"]);
}

#[tokio::test(start_paused = true)]
async fn collecting_gathers_data_in_order_stops_for_no_denial_and_skips_what_fails_or_is_slow() {
    let session = Stage::new().open().await;
    let hooks = session.coordinator().hooks();
    let giving = |value: u64| HookResult { data: Some(map(json!({"v": value}))), ..HookResult::default() };
    hooks.on(on("e:x").priority(1), answering(giving(1)));
    hooks.on(on("e:x").priority(2), answering(HookResult { data: giving(2).data, ..HookResult::deny("no") }));
    hooks.on(on("e:x").priority(3), hook(|_| async { Err(HookFailure::new("no")) }));
    hooks.on(on("e:x").priority(4), hook(|_| std::future::pending()));
    hooks.on(on("e:x").priority(5), answering(HookResult::proceed()));
    hooks.on(on("e:x").priority(6), answering(giving(3)));
    let patience = Duration::from_secs(1);
    let began = tokio::time::Instant::now();
    let collect = session.coordinator().emit_and_collect("e:x".parse().unwrap(), Map::new(), patience);
    let gathered: Vec<_> = collect.await.into_iter().map(Value::Object).collect();
    assert_eq!(gathered, [json!({"v": 1}), json!({"v": 2}), json!({"v": 3})]);
    assert_eq!(began.elapsed(), patience);
}

#[tokio::test]
async fn what_losing_answers_carried_is_done_by_emit() {
    let screen = Screen::default();
    let stage = Stage::new()
        .hook("a", on("tool:pre"), answering(HookResult::proceed().showing("from a", MessageLevel::Info)))
        .hook("b", on("tool:pre"), answering(HookResult::inject("from b")))
        .hook("c", on("tool:pre"), answering(HookResult::modify(map(json!({"tool_name": "changed"})))))
        .hook("d", on("tool:pre"), answering(HookResult::ask("May I?")));
    let builder = stage.builder().display(Arc::new(screen.clone())).approval(always("Allow"));
    let session = builder.open().await.unwrap();
    let emitted = session.coordinator().emit(ToolPre::default()).await;
    assert_eq!(emitted.decision, Decision::Proceed);
    assert_eq!(emitted.event.tool_name, "changed");
    assert_eq!(stage.context.texts(), ["from b"]);
    assert_eq!(screen.texts(), ["from a"]);
}

#[derive(Debug, Clone)]
enum Answer {
    Continue,
    Modify,
    Inject { ephemeral: bool },
    Ask,
    Deny,
    Fail { closed: bool },
}

fn answers() -> impl Strategy<Value = Vec<Listed>> {
    let answer = prop_oneof![
        3 => Just(Answer::Continue),
        3 => Just(Answer::Modify),
        3 => any::<bool>().prop_map(|ephemeral| Answer::Inject { ephemeral }),
        2 => Just(Answer::Ask),
        1 => Just(Answer::Deny),
        1 => any::<bool>().prop_map(|closed| Answer::Fail { closed }),
    ];
    prop::collection::vec((-2..3i32, answer, any::<bool>()), 0..12)
}

/// One handler of a random list: its priority, its answer, and whether it has something to show.
type Listed = (i32, Answer, bool);

fn result_of(at: usize, (_, answer, says): &Listed) -> Result<HookResult, HookFailure> {
    let result = match answer {
        Answer::Continue => HookResult::proceed(),
        Answer::Modify => HookResult::modify(map(json!({"by": at}))),
        Answer::Inject { ephemeral } => HookAction::InjectContext(Injection {
            text: format!("i{at}"),
            role: InjectionRole::System,
            ephemeral: *ephemeral,
            append_to_last_tool_result: false,
        })
        .into(),
        Answer::Ask => HookResult::ask(format!("q{at}")),
        Answer::Deny => HookResult::deny(format!("d{at}")),
        Answer::Fail { .. } => return Err(HookFailure::new("broken")),
    };
    Ok(if *says { result.showing(format!("m{at}"), MessageLevel::Info) } else { result })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// The strongest answer wins wherever it stands, the order is priority then registration, and nothing that a
    /// handler which ran had to say is lost.
    #[test]
    fn answers_join_by_strength_in_order_and_nothing_is_lost(list in answers()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let hooks = hooks();
        let ran = Diary::default();
        for (at, listed) in list.iter().cloned().enumerate() {
            let spec = HookSpec::new("e:x".parse().unwrap(), format!("h{at}")).priority(listed.0);
            let closed = matches!(listed.1, Answer::Fail { closed: true });
            let ran = ran.clone();
            let handler = hook(move |_| {
                ran.note(format!("h{at}"));
                let result = result_of(at, &listed);
                async move { result }
            });
            hooks.on(if closed { spec.closed() } else { spec }, handler);
        }
        let outcome = runtime.block_on(hooks.dispatch(event("e:x", json!({"by": "nobody"}))));

        let mut order: Vec<_> = list.iter().enumerate().collect();
        order.sort_by_key(|(_, (priority, _, _))| *priority);
        let ends = |answer: &Answer| matches!(answer, Answer::Deny | Answer::Fail { closed: true });
        let last = order.iter().position(|(_, (_, answer, _))| ends(answer));
        let running = &order[..last.map_or(order.len(), |last| last + 1)];
        let names: Vec<_> = running.iter().map(|(at, _)| format!("h{at}")).collect();
        prop_assert_eq!(ran.read(), names);

        let of = |keep: fn(&Answer) -> bool| -> Vec<usize> {
            running.iter().filter(|(_, (_, answer, _))| keep(answer)).map(|(at, _)| *at).collect()
        };
        let injected = of(|answer| matches!(answer, Answer::Inject { .. }));
        let asked = of(|answer| matches!(answer, Answer::Ask));
        let modified = of(|answer| matches!(answer, Answer::Modify));
        let failed = of(|answer| matches!(answer, Answer::Fail { .. }));
        let texts: Vec<_> = outcome.injections.iter().map(|one| one.item.text.clone()).collect();
        prop_assert_eq!(texts, injected.iter().map(|at| format!("i{at}")).collect::<Vec<_>>());
        let prompts: Vec<_> = outcome.questions.iter().map(|one| one.item.prompt.clone()).collect();
        prop_assert_eq!(prompts, asked.iter().map(|at| format!("q{at}")).collect::<Vec<_>>());
        prop_assert_eq!(outcome.failures.len(), failed.len());
        let by = modified.last().map_or(json!("nobody"), |at| json!(at));
        prop_assert_eq!(&outcome.data["by"], &by);
        let messages: Vec<_> = outcome.messages.iter().map(|one| one.item.text.clone()).collect();
        let said: Vec<_> = running
            .iter()
            .filter(|(_, (_, answer, says))| *says && !matches!(answer, Answer::Ask | Answer::Fail { .. }))
            .map(|(at, _)| format!("m{at}"))
            .collect();
        prop_assert_eq!(messages, said);

        let flat = outcome.to_result();
        let strongest = match flat.action {
            HookAction::Deny { .. } => 4,
            HookAction::AskUser(_) => 3,
            HookAction::InjectContext(_) => 2,
            HookAction::Modify => 1,
            HookAction::Continue => 0,
        };
        let expected = running.iter().map(|(_, (_, answer, _))| match answer {
            Answer::Deny | Answer::Fail { closed: true } => 4,
            Answer::Ask => 3,
            Answer::Inject { .. } => 2,
            Answer::Modify => 1,
            Answer::Continue | Answer::Fail { closed: false } => 0,
        });
        prop_assert_eq!(strongest, expected.max().unwrap_or(0));
    }
}
