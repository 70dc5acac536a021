//! What comes of a hook's answer: injections within their limits, questions, messages, and never twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use amplifier_core::contracts::{ApprovalError, HookFailure};
use amplifier_core::hooks::HookSpec;
use amplifier_core::session::Session;
use amplifier_protocol::event::{Event, ToolPre};
use amplifier_protocol::hook::{
    ApprovalDefault, HookAction, HookResult, Injection, InjectionRole, MessageLevel, Question,
};
use amplifier_protocol::ids::EventName;
use amplifier_protocol::message::Role;
use serde_json::json;

use crate::kit::*;

const PRE: EventName = EventName::of::<ToolPre>();

async fn process(session: &Session, result: HookResult) -> HookResult {
    session.coordinator().process_hook_result(result, &PRE, "lint").await.unwrap()
}

fn injection(text: &str) -> Injection {
    Injection {
        text: text.to_owned(),
        role: InjectionRole::User,
        ephemeral: false,
        append_to_last_tool_result: false,
    }
}

/// An injection that stays in the conversation.
fn lasting(text: &str) -> HookResult {
    HookAction::InjectContext(injection(text)).into()
}

/// An injection for the next request only.
fn passing(text: &str) -> HookResult {
    HookAction::InjectContext(Injection { ephemeral: true, ..injection(text) }).into()
}

#[tokio::test]
async fn an_injection_is_stored_with_its_role_and_where_it_came_from() {
    let stage = Stage::new();
    let session = stage.open().await;
    process(&session, lasting("mind the gap")).await;
    let stored = stage.context.stored();
    assert_eq!((stored.len(), stored[0].role), (1, Role::User));
    assert_eq!(stage.context.texts(), ["mind the gap"]);
    let metadata = &stored[0].metadata;
    assert_eq!((&metadata["source"], &metadata["hook_name"]), (&json!("hook"), &json!("lint")));
    assert_eq!(metadata["event"], "tool:pre");
    assert!(metadata["timestamp"].is_string());
}

#[tokio::test]
async fn an_injection_above_the_size_limit_is_an_error_and_one_at_the_limit_is_stored() {
    let stage = Stage::new().session(json!({"injection_size_limit": 10}));
    let session = stage.open().await;
    let hub = session.coordinator();
    let refused = hub.process_hook_result(lasting(&"x".repeat(11)), &PRE, "lint").await.unwrap_err();
    assert!(refused.to_string().contains("exceeds 10 characters"), "{refused}");
    assert_eq!(
        (stage.context.stored().len(), hub.injected_tokens()),
        (0, 0),
        "nothing stored, nothing charged"
    );
    process(&session, lasting(&"x".repeat(10))).await;
    assert_eq!(stage.context.stored().len(), 1);
    let refused = hub.process_hook_result(lasting(&"ä".repeat(6)), &PRE, "lint").await;
    assert!(refused.is_err(), "the limit counts bytes: six of these are twelve");
}

#[tokio::test]
async fn limits_that_the_plan_does_not_name_are_those_of_the_specification_and_null_is_no_limit() {
    let stage = Stage::new();
    let session = stage.open().await;
    let hub = session.coordinator();
    assert!(hub.process_hook_result(lasting(&"x".repeat(10_241)), &PRE, "h").await.is_err());
    for _ in 0..3 {
        process(&session, passing(&"x".repeat(10_240))).await;
    }
    assert_eq!(hub.injected_tokens(), 3 * 2_560);
    process(&session, passing(&"x".repeat(10_240))).await;
    assert_eq!(hub.injected_tokens(), 3 * 2_560, "a fourth would pass 10,000");

    let stage =
        Stage::new().session(json!({"injection_size_limit": null, "injection_budget_per_turn": null}));
    let session = stage.open().await;
    process(&session, lasting(&"x".repeat(100_000))).await;
    assert_eq!(stage.context.stored().len(), 1);
}

#[tokio::test]
async fn an_injection_over_the_turns_budget_is_refused_with_an_event_that_names_the_hook_unlike_upstream() {
    let stage = Stage::new().session(json!({"injection_budget_per_turn": 10}));
    let session = stage.open().await;
    process(&session, lasting(&"a".repeat(40))).await;
    process(&session, lasting("bbbb")).await;
    assert_eq!(stage.context.stored().len(), 1, "the second is refused");
    let told = stage.ear.payloads("policy:violation");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["policy"], "injection_budget_per_turn");
    assert_eq!(told[0]["source"], "lint");
    assert_eq!(told[0]["details"]["event"], "tool:pre");
    assert_eq!(session.coordinator().injected_tokens(), 10);
}

#[tokio::test]
async fn the_budget_is_per_turn_for_real() {
    let stage = Stage::new().session(json!({"injection_budget_per_turn": 10})).orchestrator(orchestrator(
        |_, cx| async move {
            let before = cx.coordinator.injected_tokens();
            let text = lasting(&"a".repeat(40));
            cx.coordinator.process_hook_result(text, &PRE, "lint").await.unwrap();
            Ok(before.to_string())
        },
    ));
    let session = stage.open().await;
    for _ in 0..3 {
        assert_eq!(session.execute("x").await.unwrap(), "0");
    }
    assert_eq!(stage.context.stored().len(), 3);
}

#[tokio::test]
async fn an_ephemeral_injection_is_charged_and_not_stored() {
    let stage = Stage::new();
    let session = stage.open().await;
    process(&session, passing(&"e".repeat(40))).await;
    assert_eq!((stage.context.stored().len(), session.coordinator().injected_tokens()), (0, 10));
}

#[tokio::test]
async fn an_empty_injection_does_nothing_and_control_characters_never_reach_the_model() {
    let stage = Stage::new();
    let session = stage.open().await;
    process(&session, lasting("")).await;
    process(&session, lasting("a\u{0}b\u{1b}c\td\n")).await;
    assert_eq!(stage.context.texts(), ["abc\td\n"]);
}

/// What becomes of a question when somebody answers so.
async fn decided(approval: Option<Arc<dyn amplifier_core::contracts::ApprovalSystem>>) -> HookResult {
    let session = Stage::new().open().await;
    session.coordinator().set_approval_system(approval);
    process(&session, HookResult::ask("May I?")).await
}

#[tokio::test]
async fn allow_in_its_three_forms_grants_and_everything_else_denies() {
    for answer in ["Allow", "Allow once", "ALLOW ALWAYS", "allow"] {
        assert_eq!(decided(Some(always(answer))).await.action, HookAction::Continue, "{answer}");
    }
    for answer in ["Deny", "yes", "", "Allow it", "allow\n"] {
        let reason = "User denied: May I?".to_owned();
        assert_eq!(decided(Some(always(answer))).await.action, HookAction::Deny { reason }, "{answer:?}");
    }
}

#[tokio::test]
async fn a_question_nobody_can_be_asked_is_denied() {
    let reason = "No approval system available".to_owned();
    assert_eq!(decided(None).await.action, HookAction::Deny { reason });
}

#[tokio::test]
async fn an_approver_that_fails_denies_whatever_the_default() {
    let broken = approval(|_| async { Err(ApprovalError::Unavailable { message: "no tty".to_owned() }) });
    let HookAction::Deny { reason } = decided(Some(broken)).await.action else { panic!("allowed") };
    assert!(reason.contains("no tty"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn silence_means_the_default_whether_the_approver_or_the_kernel_keeps_the_time() {
    let quiet = || approval(|_| std::future::pending());
    let gives_up = || approval(|_| async { Err(ApprovalError::Timeout) });
    for approver in [quiet as fn() -> _, gives_up] {
        for (default, allowed) in [(ApprovalDefault::Allow, true), (ApprovalDefault::Deny, false)] {
            let session = Stage::new().open().await;
            session.coordinator().set_approval_system(Some(approver()));
            let question = Question { default, timeout: 7.0, ..Question::default() };
            let began = tokio::time::Instant::now();
            let result = process(&session, HookAction::AskUser(question).into()).await;
            assert!(began.elapsed() <= Duration::from_secs(7));
            match result.action {
                HookAction::Continue => assert!(allowed),
                HookAction::Deny { reason } => {
                    assert!(!allowed && reason.contains("Approval timeout - denied by default"), "{reason}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn what_an_option_means_is_its_decision_and_never_its_words() {
    let decided = async |options: serde_json::Value, answer: &str| {
        let session = Stage::new().open().await;
        session.coordinator().set_approval_system(Some(always(answer)));
        let wire = json!({"action": "ask_user", "approval_options": options});
        let result: HookResult = serde_json::from_value(wire).unwrap();
        process(&session, result).await.action == HookAction::Continue
    };
    let german = || json!([{"text": "Ja", "decision": "allow_once"}, {"text": "Allow", "decision": "deny"}]);
    assert!(decided(json!(["Yes", "No"]), "Yes").await);
    assert!(!decided(json!(["Yes", "No"]), "No").await);
    assert!(decided(german(), "Ja").await);
    assert!(!decided(german(), "Allow").await, "the word is only shown");
    assert!(!decided(json!(["Ja", "Nein"]), "Ja").await, "what means nothing known is a no");
}

#[tokio::test]
async fn an_allow_always_is_remembered_and_the_same_question_is_not_asked_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let stage = Stage::new();
    let session = stage.open().await;
    session.coordinator().set_approval_system(Some(approval(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok("Allow always".to_owned()) }
    })));
    process(&session, HookResult::ask("May I?")).await;
    process(&session, HookResult::ask("May I?")).await;
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    process(&session, HookResult::ask("And this?")).await;
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn equal_questions_at_one_time_are_asked_once_and_different_ones_one_after_the_other() {
    let (asked, at_once) = (Arc::new(AtomicUsize::new(0)), Alive::default());
    let (counted, open) = (Arc::clone(&asked), at_once.clone());
    let session = Stage::new().open().await;
    session.coordinator().set_approval_system(Some(approval(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        let guard = open.guard();
        let open = open.clone();
        async move {
            assert_eq!(open.count(), 1, "one person, one question at a time");
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(guard);
            Ok("Allow once".to_owned())
        }
    })));
    let ask = |prompt: &'static str| process(&session, HookResult::ask(prompt));
    let (a, b, c, d) = tokio::join!(ask("same"), ask("same"), ask("same"), ask("other"));
    for result in [a, b, c, d] {
        assert_eq!(result.action, HookAction::Continue);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_joined_question_whose_asker_goes_away_is_asked_by_the_other() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let session = Stage::new().open().await;
    session.coordinator().set_approval_system(Some(approval(move |_| {
        let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if first {
                std::future::pending::<()>().await;
            }
            Ok("Allow".to_owned())
        }
    })));
    let asker = tokio::spawn({
        let session = session.clone();
        async move { process(&session, HookResult::ask("May I?")).await }
    });
    while asked.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    let joined = tokio::spawn({
        let session = session.clone();
        async move { process(&session, HookResult::ask("May I?")).await }
    });
    settle().await;
    assert_eq!(asked.load(Ordering::SeqCst), 1, "joined, not asked twice");
    asker.abort();
    assert_eq!(joined.await.unwrap().action, HookAction::Continue);
}

#[tokio::test]
async fn approvals_are_told_as_events_with_the_tool_they_are_about() {
    let stage = Stage::new().hook("gate", on("tool:pre"), answering(HookResult::ask("May I?")));
    let session = stage.open().await;
    session.coordinator().set_approval_system(Some(always("Deny")));
    let event = ToolPre { tool_name: "bash".to_owned(), ..ToolPre::default() };
    let emitted = session.coordinator().emit(event).await;
    assert_eq!(emitted.denied(), Some("User denied: May I?"));
    let told = stage.ear.names();
    assert_eq!(told, ["tool:pre", "approval:required", "approval:denied"]);
    assert_eq!(stage.ear.payloads("approval:required")[0]["tool_name"], "bash");
}

#[tokio::test]
async fn a_message_is_shown_with_its_level_and_source_whatever_the_action_but_not_beside_a_question() {
    let screen = Screen::default();
    let session = Stage::new().open().await;
    let hub = session.coordinator();
    process(&session, HookResult::proceed().showing("no display, no error", MessageLevel::Info)).await;
    hub.set_display_system(Some(Arc::new(screen.clone())));
    process(&session, HookResult::proceed().showing("one", MessageLevel::Info)).await;
    process(&session, HookResult::deny("no").showing("two", MessageLevel::Error)).await;
    let mut named = HookResult::proceed().showing("three", MessageLevel::Warning);
    named.message.as_mut().unwrap().source = Some("ruff".to_owned());
    process(&session, named).await;
    process(&session, HookResult::ask("May I?").showing("hidden", MessageLevel::Info)).await;
    let shown: Vec<_> =
        screen.shown().into_iter().map(|shown| (shown.message, shown.level, shown.source)).collect();
    let expected = [
        ("one", MessageLevel::Info, "hook:lint"),
        ("two", MessageLevel::Error, "hook:lint"),
        ("three", MessageLevel::Warning, "hook:ruff"),
    ];
    let expected: Vec<_> =
        expected.into_iter().map(|(text, level, by)| (text.to_owned(), level, by.to_owned())).collect();
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn an_answer_that_needs_nothing_comes_back_as_it_was() {
    let session = Stage::new().open().await;
    let modify = HookResult::modify(map(json!({"a": 1})));
    for result in [HookResult::proceed(), HookResult::deny("no"), modify] {
        assert_eq!(process(&session, result.clone()).await, result);
    }
}

#[tokio::test]
async fn a_result_handed_in_twice_is_applied_once_even_when_others_came_between() {
    let stage = Stage::new()
        .session(json!({"injection_budget_per_turn": null}))
        .hook("a", on("tool:pre"), answering(lasting("from pre")))
        .hook("b", on("tool:post"), answering(lasting("from post")));
    let session = stage.open().await;
    let hub = session.coordinator();
    let post: EventName = "tool:post".parse().unwrap();
    let first = hub.dispatch_for_remote(PRE, map(json!({}))).await;
    assert_eq!(stage.context.texts(), Vec::<String>::new(), "the bare dispatch applies nothing");
    hub.process_hook_result(first.clone(), &PRE, "loop").await.unwrap();
    let second = hub.dispatch_for_remote(post.clone(), map(json!({}))).await;
    hub.process_hook_result(first, &PRE, "loop").await.unwrap();
    assert_eq!(stage.context.texts(), ["from pre"], "the second is not yet handed in");
    hub.process_hook_result(second, &post, "loop").await.unwrap();
    assert_eq!(stage.context.texts(), ["from pre", "from post"]);
}

#[tokio::test]
async fn a_remote_loop_hands_in_one_flat_result_and_everything_the_hooks_said_is_done() {
    let screen = Screen::default();
    let mixed = lasting("stays").showing("one", MessageLevel::Info);
    let stage = Stage::new()
        .hook("a", on("tool:pre").priority(1), answering(mixed))
        .hook("b", on("tool:pre").priority(2), answering(passing("passes")))
        .hook("c", on("tool:pre").priority(3), answering(HookResult::ask("first?")))
        .hook("d", on("tool:pre").priority(4), answering(HookResult::ask("second?")));
    let session = stage.builder().display(Arc::new(screen.clone())).open().await.unwrap();
    let asked = Diary::default();
    let noted = asked.clone();
    session.coordinator().set_approval_system(Some(approval(move |question| {
        noted.note(question.prompt);
        async { Ok("Allow".to_owned()) }
    })));
    let flat = session.coordinator().dispatch_for_remote(PRE, map(json!({"tool_name": "t"}))).await;
    assert!(matches!(flat.action, HookAction::AskUser(_)));
    let done = process(&session, flat).await;
    let HookAction::InjectContext(left) = done.action else { panic!("{:?}", done.action) };
    assert_eq!((left.text.as_str(), left.ephemeral), ("passes", true), "left for the next request");
    assert_eq!(asked.read(), ["first?", "second?"], "every question, unlike upstream");
    assert_eq!((stage.context.texts(), screen.texts()), (vec!["stays".to_owned()], vec!["one".to_owned()]));
}

#[tokio::test]
async fn an_injection_that_cannot_be_stored_is_told_and_not_lost_in_silence() {
    let stage = Stage::new();
    let session = stage.open().await;
    session.coordinator().unmount(&amplifier_core::coordinator::MountPoint::Context, None).unwrap();
    process(&session, lasting("homeless")).await;
    let told = &stage.ear.payloads("policy:violation")[0];
    assert_eq!((&told["policy"], &told["source"]), (&json!("context"), &json!("lint")));
}

#[tokio::test]
async fn held_injections_are_stored_when_the_caller_says_so() {
    let stage = Stage::new().hook("a", on("tool:pre"), answering(lasting("later")));
    let session = stage.open().await;
    let hub = session.coordinator();
    let emitted = hub.emit_holding(ToolPre::default()).await;
    assert_eq!((emitted.held.len(), stage.context.stored().len()), (1, 0));
    hub.store_injections(emitted.held, &PRE).await;
    assert_eq!(stage.context.texts(), ["later"]);
}

#[tokio::test]
async fn a_change_that_cannot_be_read_denies_instead_of_going_on_with_the_old_data() {
    let broken = HookResult::modify(map(json!({"tool_name": 7})));
    let stage = Stage::new().hook("a", on("tool:pre"), answering(broken));
    let emitted = stage.open().await.coordinator().emit(ToolPre::default()).await;
    assert!(emitted.denied().unwrap().contains("`tool:pre` into something that cannot be read"));
}

#[tokio::test]
async fn a_broken_gate_denies_and_a_broken_watcher_does_not_and_both_are_told() {
    for (closed, denied) in [(true, true), (false, false)] {
        let spec = HookSpec::new(ToolPre::NAME.parse().unwrap(), "gate");
        let spec = if closed { spec.closed() } else { spec };
        let stage =
            Stage::new().hook("gate", spec, hook(|_| async { Err(HookFailure::new("lost the key")) }));
        let session = stage.open().await;
        let emitted = session.coordinator().emit(ToolPre::default()).await;
        assert_eq!(emitted.denied().is_some(), denied);
        let told = &stage.ear.payloads("hook:failed")[0];
        assert_eq!((&told["hook"], &told["error"]), (&json!("gate"), &json!("lost the key")));
        assert_eq!(told["policy"], if closed { "closed" } else { "open" });
    }
}

/// A session with a gate that asks the same about every tool, and the inputs it asked about.
async fn generic_gate(answer: &'static str) -> (Session, Arc<std::sync::Mutex<Vec<serde_json::Value>>>) {
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    let session =
        Stage::new().hook("gate", on("tool:pre"), answering(HookResult::ask("Allow?"))).open().await;
    session.coordinator().set_approval_system(Some(approval(move |question: Question| {
        let input = question.call.unwrap().tool_input;
        let first = input == json!("a");
        heard.lock().unwrap().push(input);
        // The two are asked one after the other; the second is refused.
        async move {
            tokio::task::yield_now().await;
            Ok(if first { answer } else { "Deny" }.to_owned())
        }
    })));
    (session, asked)
}

#[tokio::test]
async fn a_yes_to_one_call_is_no_yes_to_another_whatever_the_words_of_the_question() {
    let (session, asked) = generic_gate("Allow").await;
    let hub = session.coordinator();
    let pre = |input: &str| ToolPre {
        tool_name: "bash".to_owned(),
        tool_input: json!(input),
        ..ToolPre::default()
    };
    let (a, b) = tokio::join!(hub.emit(pre("a")), hub.emit(pre("b")));
    assert_eq!((a.denied(), b.denied().is_some()), (None, true));
    assert_eq!(*asked.lock().unwrap(), [json!("a"), json!("b")]);
    let named = hub.emit_named(PRE, map(json!({"tool_name": "bash", "tool_input": "c"}))).await;
    assert!(named.denied().is_some(), "an event without a type is about its call too");
    assert_eq!(asked.lock().unwrap().last(), Some(&json!("c")));
}

#[tokio::test]
async fn an_always_to_one_call_covers_that_call_and_no_other() {
    let (session, asked) = generic_gate("Allow always").await;
    let hub = session.coordinator();
    for (tool, input, allowed) in
        [("bash", "a", true), ("bash", "a", true), ("bash", "b", false), ("rm", "a", true)]
    {
        let (tool_name, tool_input) = (tool.to_owned(), json!(input));
        let told = hub.emit(ToolPre { tool_name, tool_input, ..ToolPre::default() }).await;
        assert_eq!(told.denied().is_none(), allowed, "{tool} {input}");
    }
    assert_eq!(
        *asked.lock().unwrap(),
        [json!("a"), json!("b"), json!("a")],
        "the second `bash a` was not asked"
    );
}

#[tokio::test]
async fn a_question_says_how_dangerous_the_tool_declares_to_be() {
    use amplifier_protocol::tool::Effects;
    let reads = tool("look", Effects::READS, |_, _| async { Ok(json!(1)) });
    let writes = tool("write", Effects::WRITES, |_, _| async { Ok(json!(1)) });
    let gate = answering(HookResult::ask("Allow?"));
    let stage = Stage::new().tool(reads).tool(writes).hook("gate", on("tool:pre"), gate);
    let session = stage.open().await;
    for name in ["look", "write", "unheard_of"] {
        session.coordinator().emit(ToolPre { tool_name: name.to_owned(), ..ToolPre::default() }).await;
    }
    let told = stage.ear.payloads("approval:required");
    let levels: Vec<_> = told.iter().map(|told| told["risk_level"].clone()).collect();
    assert_eq!(levels, [json!("low"), json!("medium"), json!("high")]);
}

/// The events of a name that a journal holds.
fn kept(journal: &MemoryJournal, wanted: &str) -> Vec<serde_json::Value> {
    let records = journal.records().into_iter();
    let events = records.filter_map(|record| match record.body {
        amplifier_protocol::record::RecordBody::Event { name, data } => Some((name, data)),
        _ => None,
    });
    events.filter(|(name, _)| name.as_str() == wanted).map(|(_, data)| data).collect()
}

#[tokio::test(start_paused = true)]
async fn a_message_nobody_could_be_shown_is_kept_in_the_journal() {
    struct Hung;

    #[async_trait::async_trait]
    impl amplifier_core::contracts::DisplaySystem for Hung {
        async fn show_message(&self, _message: amplifier_core::contracts::DisplayMessage) {
            std::future::pending().await
        }
    }

    let journal = MemoryJournal::default();
    let session = Stage::new().builder().journal(Arc::new(journal.clone())).open().await.unwrap();
    let said = || HookResult::proceed().showing("mind the gap", MessageLevel::Warning);
    process(&session, said()).await;
    let expected = json!({"message": "mind the gap", "level": "warning", "source": "hook:lint"});
    assert_eq!(kept(&journal, "user:notification"), std::slice::from_ref(&expected));
    session.coordinator().set_display_system(Some(Arc::new(Hung)));
    process(&session, said()).await;
    assert_eq!(kept(&journal, "user:notification"), [expected.clone(), expected.clone()]);
    session.coordinator().set_display_system(Some(Arc::new(Screen::default())));
    process(&session, said()).await;
    assert_eq!(kept(&journal, "user:notification").len(), 2, "what was shown needs no trace");
}

#[tokio::test]
async fn every_injection_leaves_a_trace_also_one_that_no_message_keeps() {
    let journal = MemoryJournal::default();
    let session = Stage::new().builder().journal(Arc::new(journal.clone())).open().await.unwrap();
    process(&session, passing("for one request")).await;
    process(&session, lasting("for good")).await;
    let trace = |bytes: u64, tokens: u64, ephemeral: bool| json!({"hook": "lint", "event": "tool:pre", "role": "user", "bytes": bytes, "tokens": tokens, "ephemeral": ephemeral});
    assert_eq!(kept(&journal, "hook:injected"), [trace(15, 3, true), trace(8, 2, false)]);
}

#[tokio::test]
async fn a_reason_is_carried_whatever_the_action() {
    let said = |action: HookResult, reason: &str| HookResult { reason: Some(reason.to_owned()), ..action };
    let stage = Stage::new()
        .hook("a", on("tool:pre"), answering(said(HookResult::proceed(), "looked fine")))
        .hook("b", on("tool:pre"), answering(said(HookResult::ask("Allow?"), "it writes")));
    let session = stage.open().await;
    let joined = session.coordinator().dispatch_for_remote(PRE, map(json!({"tool_name": "t"}))).await;
    assert_eq!(joined.reason.as_deref(), Some("looked fine; it writes"));
}
