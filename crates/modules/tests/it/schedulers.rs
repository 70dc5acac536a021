//! `hooks-scheduler-heuristic` and `hooks-scheduler-cost-aware` in a session.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::session::Session;
use amplifier_protocol::chat::ChatResponse;
use amplifier_protocol::hook::HookAction;
use amplifier_protocol::ids::EventName;
use amplifier_protocol::tool::ToolCall;
use amplifier_protocol::usage::Usage;
use amplifier_testing::{Exhausted, RecordingDisplay, ScriptedProvider, Step, TestCoordinator};
use serde_json::{Map, Value, json};

use crate::stage::{built_in, object, script, session, texts};

const COST_AWARE: &str = "hooks-scheduler-cost-aware";
const HEURISTIC: &str = "hooks-scheduler-heuristic";

fn costing(dollars: &str) -> Step {
    let usage = Usage { cost_usd: Some(dollars.parse().unwrap()), ..Usage::new(10, 5) };
    Step::from(ChatResponse { usage: Some(usage), ..ChatResponse::text("ok") })
}

fn forever(step: Step) -> Arc<ScriptedProvider> {
    Arc::new(ScriptedProvider::new([step]).when_exhausted(Exhausted::Last))
}

async fn shown(display: &RecordingDisplay) -> Vec<String> {
    display.messages().into_iter().map(|message| message.message).collect()
}

#[tokio::test]
async fn the_budget_stops_the_turn_before_the_next_call_and_the_alert_comes_once() {
    let (provider, display) = (forever(costing("4.5")), Arc::new(RecordingDisplay::new()));
    let config = json!({"budget_limit": 10.0, "alert_threshold": 8.0});
    let screen = display.clone();
    let session = session(&provider, &[(COST_AWARE, config)]).await;
    let session = session.configure(|builder| builder.display(screen)).open().await.unwrap();
    for _ in 0..3 {
        assert_eq!(session.execute("go").await.unwrap(), "ok");
    }
    // $13.50 are spent: the fourth call is not made.
    let refused = session.execute("go").await.unwrap();
    assert!(refused.contains("budget of $10 is used up") && refused.contains("$13.5 spent"), "{refused}");
    assert_eq!(provider.request_count(), 3);
    assert_eq!(shown(&display).await, ["$9 of $10 spent, above the alert threshold of $8"]);
    assert_eq!(session.recorder().of::<amplifier_protocol::event::OrchestratorComplete>().len(), 4);
}

#[tokio::test]
async fn what_children_spend_counts_too() {
    let provider = forever(costing("6"));
    let session = session(&provider, &[(COST_AWARE, json!({"budget_limit": 10.0}))]).await;
    let session = session.open().await.unwrap();
    assert_eq!(session.execute("go").await.unwrap(), "ok");
    let child = child(session.session()).await;
    child.execute("go").await.unwrap();
    let refused = session.execute("go").await.unwrap();
    assert!(refused.contains("$12 spent by this session and its children"), "{refused}");
}

/// A child without hooks: only the ledger joins it to its parent.
async fn child(parent: &Session) -> Session {
    let mut plan = parent.coordinator().plan().clone();
    plan.hooks.clear();
    parent.child(plan).open().await.unwrap()
}

#[tokio::test]
async fn an_unknown_cost_is_said_once_and_counted_when_a_price_is_assumed() {
    for (config, said, refused) in [
        (json!({"budget_limit": 1.0}), "does not tell what its calls cost: they are not free", false),
        (
            json!({"budget_limit": 1.0, "assumed_cost_per_million_tokens": 50_000}),
            "$50000 for a million tokens is assumed",
            true,
        ),
    ] {
        let (provider, display) = (forever(Step::say("ok")), Arc::new(RecordingDisplay::new()));
        let screen = display.clone();
        let session = session(&provider, &[(COST_AWARE, config)]).await;
        let session = session.configure(|builder| builder.display(screen)).open().await.unwrap();
        let mut answers = Vec::new();
        for _ in 0..3 {
            answers.push(session.execute("go").await.unwrap());
        }
        // Fifteen tokens at $50000 the million are $0.75.
        assert_eq!(
            answers[2].contains("$1.5 spent") && answers[2].contains("is assumed"),
            refused,
            "{answers:?}"
        );
        let shown = shown(&display).await;
        assert!(shown.len() == 1 && shown[0].contains(said), "{shown:?}");
    }
}

#[tokio::test]
async fn little_money_means_a_cheaper_model() {
    let provider = forever(costing("4"));
    let config = json!({"budget_limit": 10.0, "models": [
        {"remaining_below": 7.0, "model": "cheap"}, {"remaining_below": 3.0, "model": "cheapest"}
    ]});
    let session = session(&provider, &[(COST_AWARE, config)]).await.open().await.unwrap();
    for _ in 0..3 {
        session.execute("go").await.unwrap();
    }
    let models: Vec<_> = provider.requests().into_iter().map(|request| request.model).collect();
    assert_eq!(models, [None, Some("cheap".to_owned()), Some("cheapest".to_owned())]);
}

#[tokio::test]
async fn a_config_that_cannot_work_is_refused_or_warned_of() {
    let hub = TestCoordinator::new();
    let module = built_in(COST_AWARE).await;
    let refused = hub.mount(&*module, json!({"budget_limit": -1.0})).await.unwrap_err();
    assert!(refused.to_string().contains("`budget_limit` is -1, must not be negative"), "{refused}");
    let odd = json!({"budget_limit": 1.0, "alert_threshold": 2.0, "cost_weight": 1.0});
    let (_, warnings) = hub.mount(&*module, odd).await.unwrap();
    assert!(
        warnings.iter().any(|warning| warning.contains("nobody is told before the stop")),
        "{warnings:?}"
    );
    assert!(warnings.iter().any(|warning| warning.contains("cost_weight")), "{warnings:?}");
}

#[tokio::test]
async fn the_task_chooses_provider_and_model_for_the_whole_turn() {
    let (weak, strong) = (
        forever(Step::say("weak")),
        Arc::new(
            ScriptedProvider::new([Step::say("strong")]).named("strong").when_exhausted(Exhausted::Last),
        ),
    );
    let config = json!({"models": {
        "simple": {"model": "small"}, "complex": {"provider": "strong", "model": "large"}
    }});
    let session = session(&weak, &[(HEURISTIC, config)]).await;
    let session = session.provider(strong.clone()).open().await.unwrap();
    assert_eq!(session.execute("what time is it?").await.unwrap(), "weak");
    assert_eq!(session.execute("refactor the parser").await.unwrap(), "strong");
    assert_eq!(session.execute(&*"a sentence of some length ".repeat(20)).await.unwrap(), "weak");
    let models = |provider: &ScriptedProvider| -> Vec<_> {
        provider.requests().into_iter().map(|request| request.model).collect()
    };
    assert_eq!(models(&weak), [Some("small".to_owned()), None]);
    assert_eq!(models(&strong), [Some("large".to_owned())]);
}

#[tokio::test]
async fn a_provider_that_is_not_mounted_is_told_when_everything_stands() {
    let provider = script([Step::say("ok")]);
    let config = json!({"models": {"simple": {"provider": "nobody"}}});
    let session = session(&provider, &[(HEURISTIC, config)]).await.open().await.unwrap();
    let failed = session.recorder().events("module:on_session_ready_failed");
    assert!(failed[0].1["error"].as_str().unwrap().contains("`nobody`"), "{failed:?}");
    assert_eq!(session.execute("hi").await.unwrap(), "ok");
}

fn selecting(tool: &str) -> Map<String, Value> {
    object(json!({"tool_name": tool, "tool_input": {}, "available_tools": ["a", "b", "c"]}))
}

async fn select(hub: &TestCoordinator, tool: &str) -> (HookAction, Map<String, Value>) {
    let name = EventName::fixed("tool:selecting");
    let outcome = hub.dispatch_for_remote(name, selecting(tool)).await;
    (outcome.action, outcome.data.unwrap_or_default())
}

#[tokio::test]
async fn tools_are_proposed_only_when_asked_for_and_unknown_ones_refused() {
    let hub = TestCoordinator::new();
    hub.mount(&*built_in(HEURISTIC).await, json!({})).await.unwrap();
    assert_eq!(select(&hub, "b").await.0, HookAction::Continue);
    assert!(matches!(select(&hub, "x").await.0, HookAction::Deny { reason } if reason.contains("a, b, c")));

    // Better than the reference: the proposal is under the key the loop reads.
    let hub = TestCoordinator::new();
    let config = json!({"override_enabled": true, "strategy": "round-robin"});
    hub.mount(&*built_in(HEURISTIC).await, config).await.unwrap();
    let mut proposed = Vec::new();
    for _ in 0..4 {
        proposed.push(select(&hub, "x").await.1["tool_name"].clone());
    }
    assert_eq!(proposed, ["a", "b", "c", "a"]);
    let gathered = hub
        .emit_and_collect(EventName::fixed("tool:selecting"), selecting("x"), Duration::from_secs(1))
        .await;
    assert_eq!(gathered[0]["tool_name"], json!("b"));

    let random = async |seed: u64| {
        let hub = TestCoordinator::new();
        let config = json!({"override_enabled": true, "strategy": "random", "seed": seed});
        hub.mount(&*built_in(HEURISTIC).await, config).await.unwrap();
        let mut proposed = Vec::new();
        for _ in 0..16 {
            proposed.push(select(&hub, "x").await.1["tool_name"].clone());
        }
        proposed
    };
    assert_eq!(random(7).await, random(7).await);
    assert_ne!(random(7).await, random(8).await);
}

#[tokio::test]
async fn tool_units_last_for_the_session_and_a_refusal_can_be_gathered() {
    let hub = TestCoordinator::new();
    let config = json!({"max_cost": 3.0, "tool_costs": {"a": 2.0}});
    hub.mount(&*built_in(COST_AWARE).await, config).await.unwrap();
    assert_eq!(select(&hub, "a").await.0, HookAction::Continue);
    hub.emit_named(EventName::fixed("tool:selected"), selecting("a")).await;
    assert_eq!(select(&hub, "b").await.0, HookAction::Continue);
    assert!(matches!(select(&hub, "a").await.0, HookAction::Deny { reason } if reason.contains("2 of 3")));
    // Better than the reference: the end of a turn does not fill the purse again.
    hub.emit_named(EventName::fixed("session:end"), Map::new()).await;
    let gathered = hub
        .emit_and_collect(EventName::fixed("tool:selecting"), selecting("a"), Duration::from_secs(1))
        .await;
    assert_eq!(gathered[0]["decision"], json!("deny"));
    assert!(gathered[0]["reason"].as_str().unwrap().contains("2 of 3"), "{gathered:?}");
    let selected = hub.emit_named(EventName::fixed("tool:selected"), selecting("a")).await;
    assert!(selected.denied().unwrap().contains("max_cost"));
}

#[tokio::test]
async fn loop_events_heeds_what_the_schedulers_say() {
    let both = Step::call([
        ToolCall::new("1", "echo", json!({"text": "one"})),
        ToolCall::new("2", "echo", json!({"text": "two"})),
    ]);
    let provider = script([both, Step::say("done")]);
    let modules = [
        ("loop-events", json!({})),
        ("tool-echo", json!({})),
        (HEURISTIC, json!({})),
        (COST_AWARE, json!({"max_cost": 1.0})),
    ];
    let session = session(&provider, &modules).await.open().await.unwrap();
    assert_eq!(session.execute("go").await.unwrap(), "done");
    let results: Vec<_> = texts(&provider.requests()[1]).into_iter().rev().take(2).collect();
    let refused = results.iter().filter(|text| text.contains("(`max_cost`)")).count();
    let ran = results.iter().filter(|text| ["one", "two"].contains(&text.as_str())).count();
    assert_eq!((ran, refused), (1, 1), "{results:?}");
}
