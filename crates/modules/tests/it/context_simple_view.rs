//! The view of `context-simple`: what it tells, what hooks and providers do to it, and what its config changes.

use std::sync::Arc;

use amplifier_core::contracts::{ContextError, RequestBudget};
use amplifier_protocol::event::{
    ContextCompaction, ContextPostCompact, ContextPreCompact, Event, LlmResponse, ProviderResponse,
};
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::message::{Message, Messages, Role};
use amplifier_protocol::tool::ToolCall;
use amplifier_protocol::usage::Usage;
use amplifier_testing::{EventRecorder, ScriptedProvider, Step, TestCoordinator, TestSession};
use serde_json::{Value, json};

use crate::kit::{built_in, object, on};

/// A hub with the context, and what it tells.
async fn mounted(config: Value) -> (TestCoordinator, Arc<EventRecorder>) {
    let hub = TestCoordinator::new();
    hub.mount(&*built_in("context-simple").await, config).await.unwrap();
    let recorder = hub.recorder();
    (hub, recorder)
}

/// A prompt, a call, a result of about 1,000 tokens and an answer, again and again.
async fn talk(hub: &TestCoordinator, rounds: std::ops::Range<usize>) {
    let context = hub.context().unwrap();
    for n in rounds {
        let call = ToolCall::new(format!("c{n}"), "read", json!({}));
        let mut calling = Message::text(Role::Assistant, "");
        calling.tool_calls.push(call.clone());
        let said = [
            Message::user(format!("prompt {n}")),
            calling,
            Message::tool_result(&call, format!("begin {n} {} end {n}", "x".repeat(4_000))),
            Message::text(Role::Assistant, format!("answer {n}")),
        ];
        for message in said {
            context.add_message(Arc::new(message)).await.unwrap();
        }
    }
}

async fn view(hub: &TestCoordinator, budget: u64) -> Result<Messages, ContextError> {
    let budget = RequestBudget { token_budget: Some(budget), provider: None };
    hub.context().unwrap().messages_for_request(budget).await
}

fn texts(view: &Messages) -> Vec<String> {
    view.iter().map(|message| message.content.visible_text().into_owned()).collect()
}

fn json_of(view: &[Arc<Message>]) -> String {
    serde_json::to_string(view).unwrap()
}

#[tokio::test]
async fn a_shortening_is_announced_and_told_with_all_its_numbers() {
    let (hub, recorder) = mounted(json!({})).await;
    talk(&hub, 0..20).await;
    let shown = view(&hub, 12_000).await.unwrap();
    let names: Vec<_> = recorder.names();
    assert_eq!(names, [ContextPreCompact::NAME, ContextPostCompact::NAME, ContextCompaction::NAME]);
    let pre = recorder.of::<ContextPreCompact>().remove(0);
    let post = recorder.of::<ContextPostCompact>().remove(0);
    let told = recorder.of::<ContextCompaction>().remove(0);
    assert_eq!((pre.message_count, told.before_messages, told.before_tokens), (80, 80, pre.token_count));
    // The notice is no message of the view.
    assert_eq!(told.after_messages, u64::try_from(shown.len()).unwrap() - 1);
    assert_eq!((post.message_count, post.token_count), (told.after_messages, told.after_tokens));
    assert_eq!(told.before_messages - told.after_messages, told.messages_removed);
    assert_eq!((told.budget, told.target_tokens, told.protected_tool_results), (12_000, 5_600, 5));
    assert!(told.after_tokens <= told.target_tokens && told.messages_truncated > 0, "{told:?}");
    assert!(told.strategy_level >= 3 && (told.protected_recent - 0.3).abs() < 1e-9, "{told:?}");
    recorder.clear();
    view(&hub, 12_000).await.unwrap();
    assert_eq!(recorder.names(), Vec::<String>::new(), "what was decided stays decided");
    view(&hub, 13_000).await.unwrap();
    let told = recorder.events("context:budget").remove(0).1;
    assert_eq!((&told["source"], &told["effective_budget"]), (&json!("explicit"), &json!(13_000)));
}

#[tokio::test]
async fn the_bytes_of_the_beginning_stay_the_same_from_request_to_request() {
    let (hub, recorder) = mounted(json!({"compaction_notice_enabled": false})).await;
    talk(&hub, 0..20).await;
    let mut before = view(&hub, 12_000).await.unwrap();
    let (mut kept, mut told) = (0, recorder.count(ContextCompaction::NAME));
    for round in 20..60 {
        talk(&hub, round..round + 1).await;
        let now = view(&hub, 12_000).await.unwrap();
        let shortenings = recorder.count(ContextCompaction::NAME);
        if shortenings == told {
            assert_eq!(json_of(&now[..before.len()]), json_of(&before));
            kept += 1;
        }
        (before, told) = (now, shortenings);
    }
    // Five rounds fit between the target and the threshold.
    assert!(kept >= 28, "the beginning was kept {kept} times of 40");
}

#[tokio::test]
async fn the_notice_is_the_last_message_and_claims_only_what_is_so() {
    let (hub, _) = mounted(json!({"compaction_notice_verbosity": "verbose"})).await;
    talk(&hub, 0..20).await;
    let shown = view(&hub, 12_000).await.unwrap();
    let notice = shown.last().unwrap();
    assert_eq!((notice.role, &notice.metadata["source"]), (Role::User, &json!("context-compaction")));
    let said = notice.content.visible_text();
    let cut = texts(&shown).iter().filter(|text| text.starts_with("[shortened from")).count();
    let whole = shown.iter().rev().filter(|message| message.role == Role::Tool);
    let whole = whole.take_while(|result| !result.content.visible_text().starts_with("[shortened")).count();
    assert!(said.contains(&format!("The last {whole} tool results are shown in full")), "{said}");
    assert!(said.contains(&format!("{} messages are left out.", 80 - (shown.len() - 1))), "{said}");
    assert!(cut == 0 || said.contains(&format!("{cut} of those shown are cut")), "{said}");
    for (config, wanted) in [
        (json!({"compaction_notice_enabled": false}), None),
        (json!({"compaction_notice_min_level": 9}), None),
        (json!({"compaction_notice_verbosity": "minimal"}), Some(false)),
        (json!({}), Some(true)),
    ] {
        let (hub, _) = mounted(config).await;
        talk(&hub, 0..20).await;
        let said = texts(&view(&hub, 12_000).await.unwrap()).pop().unwrap();
        let found = said.contains("context-compaction").then(|| said.contains("left out"));
        assert_eq!(found, wanted, "{said}");
    }
}

#[tokio::test]
async fn a_hook_that_refuses_keeps_the_view_as_it_is() {
    let (hub, recorder) = mounted(json!({})).await;
    let (spec, handler) = on(ContextPreCompact::NAME, HookResult::deny("keep it"));
    let refusing = hub.hooks().on(spec, handler);
    talk(&hub, 0..20).await;
    assert_eq!(view(&hub, 12_000).await.unwrap().len(), 80);
    assert_eq!(recorder.count(ContextCompaction::NAME), 0);
    hub.hooks().unregister(refusing);
    assert!(view(&hub, 12_000).await.unwrap().len() < 80);
}

#[tokio::test]
async fn what_providers_report_moves_the_threshold() {
    let (hub, recorder) = mounted(json!({})).await;
    talk(&hub, 0..5).await;
    let sent = |usage| LlmResponse { usage: Some(usage), ..LlmResponse::default() };
    view(&hub, 12_000).await.unwrap();
    // The service counts twice what is estimated.
    hub.emit(sent(Usage::new(10_300, 1))).await;
    // The loop reports the same call again, and another call that is none of ours.
    hub.emit(ProviderResponse { usage: Some(Usage::new(10_300, 1)), ..ProviderResponse::default() }).await;
    hub.emit(sent(Usage::new(500_000, 1))).await;
    talk(&hub, 5..6).await;
    view(&hub, 12_000).await.unwrap();
    assert_eq!(recorder.count(ContextCompaction::NAME), 1, "6,200 estimated tokens are past the threshold");

    let (hub, recorder) = mounted(json!({"token_meter": "estimate"})).await;
    talk(&hub, 0..5).await;
    view(&hub, 12_000).await.unwrap();
    hub.emit(sent(Usage::new(10_300, 1))).await;
    talk(&hub, 5..6).await;
    view(&hub, 12_000).await.unwrap();
    assert_eq!(recorder.count(ContextCompaction::NAME), 0);
}

#[tokio::test]
async fn a_result_over_the_limit_is_shown_cut_told_and_stored_whole() {
    let (hub, recorder) = mounted(json!({"max_tool_result_bytes": 1_000})).await;
    talk(&hub, 0..1).await;
    let told = recorder.events("context:tool_result_ingress_truncated").remove(0).1;
    assert_eq!((&told["tool_call_id"], &told["max_tool_result_bytes"]), (&json!("c0"), &json!(1_000)));
    let shown = texts(&view(&hub, 100_000).await.unwrap());
    assert!(shown[2].len() <= 1_000 && shown[2].ends_with("end 0"), "{}", shown[2]);
    assert_eq!(hub.context().unwrap().messages().await.unwrap()[2].content.visible_text().len(), 4_014);
}

fn summing_up(steps: impl IntoIterator<Item = Step>) -> (Arc<ScriptedProvider>, Value) {
    let config =
        json!({"summarize": true, "summary_max_tokens": 200, "compaction_notice_verbosity": "normal"});
    (Arc::new(ScriptedProvider::new(steps)), config)
}

#[tokio::test]
async fn a_model_written_summary_stands_behind_the_first_prompt_and_is_renewed() {
    let (provider, config) = summing_up([Step::say("FIRST SUMMARY"), Step::say("SECOND SUMMARY")]);
    let (hub, recorder) = mounted(config).await;
    hub.mount_provider(provider.clone());
    talk(&hub, 0..20).await;
    let shown = texts(&view(&hub, 12_000).await.unwrap());
    assert!(shown[0] == "prompt 0" && shown[1].contains("FIRST SUMMARY"), "{:?}", &shown[..2]);
    assert!(shown.last().unwrap().contains("a summary stands in their place"));
    assert!(recorder.of::<ContextCompaction>()[0].after_tokens <= 5_600);
    talk(&hub, 20..30).await;
    let shown = texts(&view(&hub, 12_000).await.unwrap());
    assert!(shown[1].contains("SECOND SUMMARY"));
    assert_eq!(shown.iter().filter(|text| text.contains(" SUMMARY")).count(), 1);
    let requests = provider.requests();
    assert_eq!(requests[0].max_output_tokens, Some(200));
    let asked = requests[1].messages[1].content.visible_text().into_owned();
    assert!(asked.contains("earlier summary") && asked.contains("FIRST SUMMARY"), "{asked}");
    assert!(!asked.contains(&"x".repeat(2_500)), "long results are not read whole");
}

#[tokio::test]
async fn a_summary_that_fails_costs_the_summary_and_nothing_is_claimed() {
    let failing = Step::from(LlmError::new(LlmErrorKind::ProviderUnavailable, "down"));
    for steps in [vec![failing], vec![Step::say("  ")], vec![]] {
        let (provider, config) = summing_up(steps);
        let (hub, recorder) = mounted(config).await;
        hub.mount_provider(provider);
        talk(&hub, 0..20).await;
        let shown = texts(&view(&hub, 12_000).await.unwrap());
        assert!(!shown.last().unwrap().contains("summary"), "{:?}", shown.last());
        assert_eq!(recorder.count("context:summary_failed"), 1);
        assert_eq!(recorder.count(ContextCompaction::NAME), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_takes_too_long_is_done_without() {
    let (provider, mut config) = summing_up([Step::say("late").after(std::time::Duration::from_secs(3_600))]);
    config["summary_timeout_seconds"] = json!(2);
    let (hub, recorder) = mounted(config).await;
    hub.mount_provider(provider);
    talk(&hub, 0..20).await;
    let began = tokio::time::Instant::now();
    view(&hub, 12_000).await.unwrap();
    assert!(began.elapsed() < std::time::Duration::from_secs(5));
    assert_eq!(recorder.count("context:summary_failed"), 1);
}

#[tokio::test]
async fn calls_without_a_result_are_answered_in_the_view_until_the_result_comes() {
    let (hub, _) = mounted(json!({})).await;
    let context = hub.context().unwrap();
    let (one, two) = (ToolCall::new("1", "a", json!({})), ToolCall::new("2", "b", json!({})));
    let mut calling = Message::text(Role::Assistant, "");
    calling.tool_calls = vec![one.clone(), two.clone()];
    for message in [Message::user("go"), calling, Message::tool_result(&one, "done")] {
        context.add_message(Arc::new(message)).await.unwrap();
    }
    let ids = |view: &Messages| -> Vec<_> { view.iter().filter_map(|m| m.tool_call_id.clone()).collect() };
    let shown = view(&hub, 10_000).await.unwrap();
    assert_eq!((ids(&shown), texts(&shown)[3].contains("missing")), (vec!["1".into(), "2".into()], true));
    context.add_message(Arc::new(Message::tool_result(&two, "late"))).await.unwrap();
    assert_eq!(texts(&view(&hub, 10_000).await.unwrap())[2..], ["done", "late"]);
    // A second result for the same call answers nothing.
    context.add_message(Arc::new(Message::tool_result(&two, "again"))).await.unwrap();
    assert_eq!(view(&hub, 10_000).await.unwrap().len(), 4);
    assert_eq!(context.messages().await.unwrap().len(), 5);
}

#[tokio::test]
async fn keys_of_the_specification_are_known_and_others_are_named() {
    let hub = TestCoordinator::new();
    let module = built_in("context-simple").await;
    let config = json!({"compaction_threshold": 0.8, "auto_compact": true, "max_token": 5});
    let (_, warnings) = hub.mount(&*module, config).await.unwrap();
    assert_eq!(warnings, ["unknown config key `max_token` is ignored; did you mean `max_tokens`?"]);
    let refused = hub.mount(&*module, json!({"compact_threshold": 2.0})).await.unwrap_err();
    assert!(refused.to_string().contains("`compact_threshold` is 2"), "{refused}");
}

#[tokio::test]
async fn a_long_session_goes_on_within_a_small_window() {
    let steps = (0..30).map(|n| Step::say(format!("answer {n} {}", "y".repeat(2_000))));
    let provider = Arc::new(ScriptedProvider::new(steps));
    let session = TestSession::builder()
        .module(built_in("loop-basic").await)
        .module_with(built_in("context-simple").await, object(json!({"max_tokens": 4_000})))
        .provider(provider.clone())
        .open()
        .await
        .unwrap();
    for n in 0..30 {
        session.execute(format!("prompt {n}")).await.unwrap();
    }
    let last = provider.requests().pop().unwrap().messages;
    let size: usize = last.iter().map(|message| message.content.visible_text().len() / 4).sum();
    assert!(size <= 4_000, "{size}");
    assert_eq!(last[0].content.visible_text(), "prompt 0");
    assert!(texts(&last).contains(&"prompt 29".to_owned()));
    assert_eq!(session.coordinator().context().unwrap().messages().await.unwrap().len(), 60);
    assert!(session.recorder().count(ContextCompaction::NAME) < 15);
}
