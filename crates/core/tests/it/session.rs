//! A session's life: what it is called, how it answers, what it says about itself, how it ends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::{Mounted, Prompt, TurnError};
use amplifier_core::coordinator::MountPoint;
use amplifier_core::history::History;
use amplifier_core::session::ExecuteError;
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::status::SessionState;
use amplifier_protocol::tool::{Effects, ToolCall};
use serde_json::json;

use crate::kit::*;

#[tokio::test]
async fn an_id_that_is_given_is_the_id_everywhere_and_a_made_one_is_a_uuid() {
    let stage = Stage::new();
    let named = stage.builder().session_id("monday".parse().unwrap()).open().await.unwrap();
    assert_eq!((named.id().as_str(), named.coordinator().session_id().as_str()), ("monday", "monday"));
    let (one, two) = (stage.open().await, stage.open().await);
    assert_eq!(one.id().as_str().len(), 36);
    assert_ne!(one.id(), two.id());
}

#[tokio::test]
async fn a_prompt_is_answered_by_the_orchestrator_and_the_session_is_completed() {
    let prompts = Diary::default();
    let heard = prompts.clone();
    let stage = Stage::new().orchestrator(orchestrator(move |prompt, cx| {
        heard.note(format!("{prompt:?} in turn {}", cx.turn));
        async { Ok("an answer".to_owned()) }
    }));
    let session = stage.open().await;
    assert_eq!(session.status().status, SessionState::Running);
    assert_eq!(session.execute("a question").await.unwrap(), "an answer");
    session.execute(Prompt::Continue).await.unwrap();
    assert_eq!(prompts.read(), ["Text(\"a question\") in turn 1", "Continue in turn 2"]);
    assert_eq!((session.status().status, session.status().turns), (SessionState::Completed, 2));
}

#[tokio::test]
async fn execute_names_what_is_missing_first_the_orchestrator_then_the_context_then_providers() {
    let session = Stage::new().open().await;
    let hub = session.coordinator();
    let refusal = async || session.execute("x").await.unwrap_err().to_string();
    hub.unmount(&MountPoint::Providers, Some("test")).unwrap();
    assert!(refusal().await.starts_with("No providers mounted"));
    hub.unmount(&MountPoint::Context, None).unwrap();
    assert_eq!(refusal().await, "No context manager mounted");
    hub.unmount(&MountPoint::Orchestrator, None).unwrap();
    assert_eq!(refusal().await, "No orchestrator mounted");
}

#[tokio::test]
async fn without_a_provider_execute_says_why_each_one_is_not_there() {
    let mut stage = Stage::new().entry(ModuleKind::Provider, json!({"module": "provider-gone"})).module(
        module("provider-shy", ModuleKind::Provider, |_, _| {
            Ok(Mounted::Skipped { reason: "`SHY_KEY` is not set".to_owned() })
        }),
    );
    stage.plan["providers"].as_array_mut().unwrap().remove(0);
    let error = stage.open().await.execute("x").await.unwrap_err();
    let ExecuteError::NoProviders { reasons } = &error else { panic!("{error}") };
    assert_eq!(reasons.len(), 2);
    assert!(reasons[0].contains("`provider-gone`") && reasons[0].contains("not found"), "{reasons:?}");
    assert!(reasons[1].contains("`SHY_KEY` is not set"), "{reasons:?}");
    stage.plan["providers"] = json!([]);
    let error = stage.open().await.execute("x").await.unwrap_err();
    assert!(error.to_string().contains("add one under `providers`"), "{error}");
}

#[tokio::test]
async fn three_executes_say_session_start_once_and_a_resumed_session_says_resume_instead() {
    let stage = Stage::new().tool(echo("t"));
    let session = stage.open().await;
    for _ in 0..3 {
        session.execute("t").await.unwrap();
    }
    let begun: Vec<_> = stage.ear.names().into_iter().filter(|name| name.starts_with("session:")).collect();
    assert_eq!(begun, ["session:start"]);

    let stage = Stage::new().tool(echo("t"));
    let session = stage.builder().resume(History::default()).open().await.unwrap();
    for _ in 0..3 {
        session.execute("t").await.unwrap();
    }
    let begun: Vec<_> = stage.ear.names().into_iter().filter(|name| name.starts_with("session:")).collect();
    assert_eq!(begun, ["session:resume"]);
}

#[tokio::test]
async fn session_start_is_said_before_the_checks_so_even_a_refused_first_turn_has_it() {
    let stage = Stage::new();
    let session = stage.open().await;
    session.coordinator().unmount(&MountPoint::Orchestrator, None).unwrap();
    session.execute("x").await.unwrap_err();
    session.execute("x").await.unwrap_err();
    assert_eq!(stage.ear.names(), ["session:start"]);
}

#[tokio::test]
async fn a_turn_whose_session_was_cancelled_returns_its_text_and_the_status_is_cancelled() {
    let stage = Stage::new().orchestrator(orchestrator(|_, cx| async move {
        cx.coordinator.cancel().request_graceful();
        Ok("so far".to_owned())
    }));
    let session = stage.open().await;
    assert_eq!(session.execute("x").await.unwrap(), "so far");
    assert_eq!(session.status().status, SessionState::Cancelled);
    let told = stage.ear.payloads("cancel:completed");
    assert_eq!((told.len(), &told[0]["was_immediate"]), (1, &json!(false)));
    assert!(told[0].get("error").is_none());
}

#[tokio::test]
async fn an_error_in_a_cancelled_turn_is_told_with_the_cancel_and_kept() {
    let stage = Stage::new().orchestrator(orchestrator(|_, cx| async move {
        cx.coordinator.cancel().request_immediate();
        Err(TurnError::Broken { message: "torn".to_owned() })
    }));
    let session = stage.open().await;
    let error = session.execute("x").await.unwrap_err();
    assert_eq!(error, ExecuteError::Turn(TurnError::Broken { message: "torn".to_owned() }));
    assert_eq!(session.status().status, SessionState::Cancelled);
    let told = stage.ear.payloads("cancel:completed");
    assert_eq!(told[0]["was_immediate"], true);
    assert_eq!(told[0]["error"], "orchestrator broke: torn");
}

#[tokio::test]
async fn the_original_error_travels_unchanged_and_a_later_success_takes_its_place() {
    let original = LlmError::new(LlmErrorKind::RateLimit, "slow down");
    let failing = original.clone();
    let stage = Stage::new().orchestrator(orchestrator(move |_, cx| {
        let failing = failing.clone();
        async move { if cx.turn == 1 { Err(TurnError::Model(failing)) } else { Ok("well".to_owned()) } }
    }));
    let session = stage.open().await;
    assert_eq!(session.execute("x").await, Err(ExecuteError::Turn(TurnError::Model(original.clone()))));
    let status = session.status();
    assert_eq!((status.status, status.last_error), (SessionState::Failed, Some(original.to_string())));
    session.execute("x").await.unwrap();
    let status = session.status();
    assert_eq!((status.status, status.last_error), (SessionState::Completed, None));
}

#[tokio::test]
async fn two_executes_at_once_are_refused_clearly_and_the_first_goes_on() {
    let (hold, held) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (wait, begun) = (Arc::clone(&hold), Arc::clone(&held));
    let stage = Stage::new().orchestrator(orchestrator(move |_, _| {
        let (wait, begun) = (Arc::clone(&wait), Arc::clone(&begun));
        async move {
            begun.notify_one();
            wait.notified().await;
            Ok("first".to_owned())
        }
    }));
    let session = stage.open().await;
    let first = tokio::spawn({
        let session = session.clone();
        async move { session.execute("x").await }
    });
    held.notified().await;
    let refused = session.execute("y").await.unwrap_err();
    assert_eq!(refused, ExecuteError::Busy { session: session.id().clone() });
    assert_eq!(session.status().status, SessionState::Running);
    hold.notify_one();
    assert_eq!(first.await.unwrap().unwrap(), "first");
}

#[tokio::test]
async fn session_end_is_said_once_before_the_cleanups_and_hooks_still_hear_it() {
    let diary = Diary::default();
    let noted = diary.clone();
    let stage = Stage::new().tidy("a", &diary).hook(
        "end",
        on("session:end"),
        hook(move |event| {
            noted.note(format!("{} {}", event.name, event.data["status"]));
            async { Ok(Default::default()) }
        }),
    );
    let session = stage.open().await;
    session.execute("a").await.unwrap();
    session.cleanup().await;
    session.cleanup().await;
    assert_eq!(diary.read(), ["session:end \"completed\"", "cleanup a"]);
    assert!(session.status().ended_at.is_some());
    assert_eq!(session.execute("a").await, Err(ExecuteError::Closed { session: session.id().clone() }));
}

#[tokio::test]
async fn cleanups_run_in_reverse_and_go_on_past_one_that_fails_and_one_that_panics() {
    let diary = Diary::default();
    let broken = |id: &str, panics: bool| {
        module(id, ModuleKind::Tool, move |_, cx| {
            cx.mount_tool(echo(cx.module().as_str()));
            cx.register_cleanup(move || async move {
                assert!(!panics, "spilt");
                Err(amplifier_core::contracts::TaskFailure::new("stuck"))
            });
            Ok(Mounted::Ready)
        })
    };
    let stage = Stage::new()
        .tidy("a", &diary)
        .module(broken("tool-fails", false))
        .tidy("b", &diary)
        .module(broken("tool-panics", true))
        .tidy("c", &diary);
    let session = stage.open().await;
    let report = session.cleanup().await;
    assert_eq!(diary.read(), ["cleanup c", "cleanup b", "cleanup a"]);
    assert_eq!(report.failed, ["`tool-panics`: panicked: spilt", "`tool-fails`: stuck"]);
    assert!(Arc::ptr_eq(&report, &session.cleanup().await), "one cleanup, one report");
}

#[tokio::test]
async fn everybody_who_asks_for_cleanup_waits_for_the_same_one() {
    let diary = Diary::default();
    let session = Stage::new().tidy("a", &diary).open().await;
    let (one, two) = tokio::join!(session.cleanup(), session.cleanup());
    assert!(Arc::ptr_eq(&one, &two));
    assert_eq!(diary.count("cleanup a"), 1);
}

#[tokio::test]
async fn cleanup_runs_to_its_end_although_its_caller_goes_away() {
    let diary = Diary::default();
    let session = Stage::new().tidy("a", &diary).open().await;
    let asked = tokio::time::timeout(Duration::ZERO, session.cleanup()).await;
    drop(asked);
    settle().await;
    assert_eq!(diary.count("cleanup a"), 1);
}

#[tokio::test]
async fn a_session_that_is_dropped_without_cleanup_cleans_itself_up() {
    let diary = Diary::default();
    let session = Stage::new().tidy("a", &diary).open().await;
    let twin = session.clone();
    drop(session);
    settle().await;
    assert_eq!(diary.count("cleanup a"), 0, "a clone still holds it");
    drop(twin);
    settle().await;
    assert_eq!(diary.count("cleanup a"), 1);
}

#[tokio::test]
async fn a_session_that_never_opened_never_says_session_end() {
    let diary = Diary::default();
    let mut stage = Stage::new().tidy("a", &diary);
    stage.plan["session"]["context"] = json!("context-gone");
    stage.open_error().await;
    assert!(!stage.ear.names().contains(&"session:end".to_owned()));
}

#[tokio::test]
async fn metadata_of_the_plan_travels_with_start_resume_and_fork_and_is_absent_when_unset() {
    let stage = Stage::new().session(json!({"metadata": {"ticket": 7}})).tool(echo("t"));
    let session = stage.open().await;
    session.execute("t").await.unwrap();
    let resumed = stage.builder().resume(History::default()).open().await.unwrap();
    resumed.execute("t").await.unwrap();
    let child = session.child(stage.mount_plan()).open().await.unwrap();
    for event in ["session:start", "session:resume", "session:fork"] {
        assert_eq!(stage.ear.payloads(event)[0]["metadata"], json!({"ticket": 7}), "{event}");
    }
    let fork = &stage.ear.payloads("session:fork")[0];
    assert_eq!(fork["parent"], session.id().as_str());
    assert_eq!(fork["session_id"], child.id().as_str());

    let stage = Stage::new().tool(echo("t"));
    let session = stage.open().await;
    session.execute("t").await.unwrap();
    session.child(stage.mount_plan()).open().await.unwrap();
    for event in ["session:start", "session:fork"] {
        assert!(stage.ear.payloads(event)[0].get("metadata").is_none(), "{event}");
        assert!(stage.ear.payloads(event)[0].get("raw").is_none(), "{event}");
    }
}

#[tokio::test]
async fn raw_mode_tells_the_plan_once_with_its_secrets_redacted() {
    let secret = "sk-ant-REDACTED";
    let mut stage = Stage::new().session(json!({"raw": true})).tool(echo("t"));
    stage.plan["providers"][0]["config"] = json!({"api_key": secret, "model": "small"});
    let session = stage.open().await;
    session.execute("t").await.unwrap();
    session.execute("t").await.unwrap();
    let told = stage.ear.payloads("session:start");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["raw"]["providers"][0]["config"]["model"], "small");
    assert!(!told[0].to_string().contains(secret), "{}", told[0]);
    assert_eq!(stage.ear.names(), ["session:start"], "and in no other event");
}

#[tokio::test]
async fn a_turn_that_panics_costs_the_turn_and_the_next_one_runs() {
    let stage = Stage::new().orchestrator(orchestrator(|_, cx| async move {
        assert!(cx.turn != 1, "dropped the ball");
        Ok("caught".to_owned())
    }));
    let session = stage.open().await;
    let error = session.execute("x").await.unwrap_err();
    assert_eq!(error.to_string(), "orchestrator broke: panicked: dropped the ball");
    assert_eq!(session.status().status, SessionState::Failed);
    assert_eq!(session.execute("x").await.unwrap(), "caught");
}

#[tokio::test]
async fn a_caller_that_goes_away_ends_the_turn_and_the_status_tells_the_truth() {
    let alive = Alive::default();
    let counted = alive.clone();
    let stage = Stage::new().tool(echo("t")).tool(tool("hang", Effects::PURE, move |_, _| {
        let guard = counted.guard();
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    }));
    let session = stage.open().await;
    let call = tokio::spawn({
        let session = session.clone();
        async move { session.execute("hang").await }
    });
    while alive.count() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(session.coordinator().cancel().running_tools().len(), 1);
    call.abort();
    call.await.unwrap_err();
    settle().await;
    assert_eq!(alive.count(), 0, "the tool's future is dropped");
    assert_eq!(session.status().status, SessionState::Cancelled);
    assert_eq!(session.coordinator().cancel().running_tools(), [], "nothing runs any more");
    assert_eq!(session.coordinator().in_flight(), []);
    assert_eq!(session.execute("t").await.unwrap(), "{}");
    assert_eq!(session.status().status, SessionState::Completed);
}

#[tokio::test]
async fn the_status_counts_what_happened() {
    let stage = Stage::new()
        .tool(echo("good"))
        .tool(tool("bad", Effects::PURE, |_, _| async {
            Err(amplifier_core::contracts::ToolFailure::new("no"))
        }))
        .orchestrator(orchestrator(|_, cx| async move {
            for name in ["good", "bad", "good"] {
                cx.coordinator.call_tool(&ToolCall::new(name, name, json!({}))).await?;
            }
            Ok(String::new())
        }));
    let session = stage.open().await;
    session.execute("x").await.unwrap();
    let status = session.status();
    assert_eq!((status.tool_invocations, status.tool_successes, status.tool_failures), (3, 2, 1));
    assert!(status.last_activity.is_some() && status.ended_at.is_none());
}

#[tokio::test]
async fn a_child_knows_its_parent_and_so_does_every_event_of_it() {
    let stage = Stage::new().tool(echo("t"));
    let parent = stage.open().await;
    let child = parent.child(stage.mount_plan()).open().await.unwrap();
    let grandchild = child.child(stage.mount_plan()).open().await.unwrap();
    assert_eq!(parent.coordinator().parent_id(), None);
    assert_eq!(child.coordinator().parent_id(), Some(parent.id()));
    assert_eq!(grandchild.coordinator().parent_id(), Some(child.id()));
    assert!(child.id().as_str().starts_with(parent.id().as_str()));
    child.execute("t").await.unwrap();
    let start = &stage.ear.payloads("session:start")[0];
    assert_eq!(start["parent_id"], parent.id().as_str());
    assert_eq!(start["session_id"], child.id().as_str());
}

#[tokio::test]
async fn cleaning_up_a_parent_cleans_up_its_children_first() {
    let diary = Diary::default();
    let stage = Stage::new().tidy("parent", &diary);
    let parent = stage.open().await;
    let child = parent.child(stage.mount_plan()).open().await.unwrap();
    parent.cleanup().await;
    assert_eq!(diary.count("cleanup parent"), 2);
    assert!(matches!(child.execute("x").await, Err(ExecuteError::Closed { .. })));
    let ended: Vec<_> =
        stage.ear.payloads("session:end").into_iter().map(|end| end["session_id"].clone()).collect();
    assert_eq!(ended, [json!(child.id()), json!(parent.id())]);
}

#[tokio::test]
async fn a_parent_that_is_dropped_takes_its_open_children_with_it() {
    let diary = Diary::default();
    let stage = Stage::new().tidy("a", &diary);
    let parent = stage.open().await;
    let child = parent.child(stage.mount_plan()).open().await.unwrap();
    drop(parent);
    settle().await;
    assert_eq!(diary.count("cleanup a"), 2);
    assert!(matches!(child.execute("x").await, Err(ExecuteError::Closed { .. })));
}

#[tokio::test(start_paused = true)]
async fn cleanup_stops_a_running_turn_and_its_tool() {
    let (alive, diary) = (Alive::default(), Diary::default());
    let counted = alive.clone();
    let stage = Stage::new().tidy("a", &diary).tool(tool("hang", Effects::PURE, move |_, _| {
        let guard = counted.guard();
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    }));
    let session = stage.open().await;
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.execute("hang").await }
    });
    while alive.count() == 0 {
        tokio::task::yield_now().await;
    }
    let began = tokio::time::Instant::now();
    session.cleanup().await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(turn.await.unwrap(), Err(ExecuteError::Turn(TurnError::Cancelled)));
    assert_eq!((alive.count(), diary.count("cleanup a")), (0, 1));
    assert_eq!(session.status().status, SessionState::Cancelled);
}

#[tokio::test]
async fn a_wish_to_stop_holds_until_it_is_reset() {
    let session = Stage::new().tool(echo("t")).open().await;
    assert!(session.cancel(CancelLevel::Graceful).await);
    assert_eq!(session.execute("t").await, Err(ExecuteError::Turn(TurnError::Cancelled)));
    session.reset_cancel();
    session.execute("t").await.unwrap();
    assert_eq!(session.status().status, SessionState::Completed);
}

#[tokio::test]
async fn free_state_belongs_to_the_session_and_lasts_over_turns() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let seeing = Arc::clone(&seen);
    let stage = Stage::new().orchestrator(orchestrator(move |_, cx| {
        let count = cx.coordinator.with_state(|state| {
            let count = state.get("count").and_then(serde_json::Value::as_u64).unwrap_or(0) + 1;
            state.insert("count".to_owned(), json!(count));
            count
        });
        seeing.lock().unwrap().push(count);
        async { Ok(String::new()) }
    }));
    let session = stage.open().await;
    session.execute("x").await.unwrap();
    session.execute("x").await.unwrap();
    stage.open().await.execute("x").await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [1, 2, 1]);
}

/// A session whose turn waits until it is told to stop.
fn obedient() -> Stage {
    Stage::new().orchestrator(orchestrator(|_, cx| async move {
        cx.coordinator.cancel().cancelled(CancelLevel::Graceful).await;
        Ok("stopped".to_owned())
    }))
}

async fn until_it_runs(session: &amplifier_core::session::Session) {
    while session.status().turns == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_cancel_is_told_once_whoever_raised_the_token() {
    let stage = obedient();
    let session = stage.open().await;
    for round in 1..=2 {
        let turn = tokio::spawn({
            let session = session.clone();
            async move { session.execute("x").await }
        });
        while session.status().turns < round {
            tokio::task::yield_now().await;
        }
        session.coordinator().cancel().request_graceful();
        turn.await.unwrap().unwrap();
        let names = stage.ear.names();
        let told: Vec<_> = names.iter().filter(|name| name.starts_with("cancel:")).collect();
        assert_eq!(told, ["cancel:requested", "cancel:completed"].repeat(usize::try_from(round).unwrap()));
        assert_eq!(stage.ear.payloads("cancel:requested").last().unwrap()["state"], "graceful");
        session.reset_cancel();
    }
}

#[tokio::test]
async fn a_cancel_that_comes_from_a_parent_stands_in_the_childs_own_log() {
    let stage = obedient();
    let parent = stage.open().await;
    let journal = MemoryJournal::default();
    let child = parent.child(stage.mount_plan()).journal(Arc::new(journal.clone())).open().await.unwrap();
    let turn = tokio::spawn({
        let child = child.clone();
        async move { child.execute("x").await }
    });
    until_it_runs(&child).await;
    parent.cancel(CancelLevel::Graceful).await;
    turn.await.unwrap().unwrap();
    let told: Vec<_> = journal
        .records()
        .into_iter()
        .filter_map(|record| match record.body {
            amplifier_protocol::record::RecordBody::Event { name, .. } => Some(name.to_string()),
            _ => None,
        })
        .filter(|name| name.starts_with("cancel:"))
        .collect();
    assert_eq!(told, ["cancel:requested", "cancel:completed"]);
}
