//! A thousand random orders of execute, cancel, reset, fork, drop and cleanup from several tasks, on sessions whose
//! tools and hooks are quick, slow, hang or panic: nothing hangs, no task leaks, no cleanup is lost or run twice.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::{Mounted, Prompt};
use amplifier_core::session::{ExecuteError, Session};
use amplifier_protocol::event::ToolPre;
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::status::SessionState;
use amplifier_protocol::tool::{Effects, ToolCall};
use serde_json::{Value, json};

use crate::kit::*;

/// Chance from a seed, so that a failing order can be run again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[usize::try_from(self.roll(of.len() as u64)).unwrap()]
    }
}

/// What a round watches over.
#[derive(Clone, Default)]
struct Watch {
    /// Calls of tools and hooks that are alive.
    calls: Alive,
    /// How often each registered cleanup ran.
    cleanups: Arc<Mutex<Vec<Arc<AtomicUsize>>>>,
    /// Every session that was opened.
    opened: Arc<Mutex<Vec<amplifier_core::coordinator::Coordinator>>>,
}

const TOOLS: [&str; 4] = ["quick", "slow", "hang", "panic"];

/// Behaves as its name says. Unwinds without the panic hook, whose thousand backtraces nobody wants to read.
async fn behave(name: &str, guard: AliveGuard) {
    let _guard = guard;
    match name {
        "slow" => tokio::time::sleep(Duration::from_millis(7)).await,
        "hang" => std::future::pending().await,
        "panic" => {
            tokio::task::yield_now().await;
            std::panic::resume_unwind(Box::new("random panic"));
        }
        _ => {}
    }
}

fn stage(watch: &Watch, hook_vice: &'static str) -> Stage {
    let mut stage = Stage::new().session(json!({"deadlines": {
        "tool": 0.06, "hook": 0.02, "mount": 0.05, "stall": 0.03, "cancel_grace": 0.005, "cleanup": 0.05,
    }}));
    for name in TOOLS {
        let calls = watch.calls.clone();
        stage = stage.tool(tool(name, Effects::PURE, move |_, _| {
            let guard = calls.guard();
            async move {
                behave(name, guard).await;
                Ok(Value::Null)
            }
        }));
    }
    let calls = watch.calls.clone();
    stage = stage.hook(
        "vice",
        on("tool:pre"),
        hook(move |_| {
            let guard = calls.guard();
            async move {
                behave(hook_vice, guard).await;
                Ok(HookResult::proceed())
            }
        }),
    );
    for n in 0..3 {
        let cleanups = Arc::clone(&watch.cleanups);
        // Long enough for others to come between two mounts.
        let takes = Duration::from_millis(3);
        stage =
            stage.module(slow_module(&format!("hooks-tidy-{n}"), ModuleKind::Hook, takes, move |_, cx| {
                let ran = Arc::new(AtomicUsize::new(0));
                cleanups.lock().unwrap().push(Arc::clone(&ran));
                cx.register_cleanup(move || async move {
                    ran.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    Ok(())
                });
                Ok(Mounted::Ready)
            }));
    }
    stage.orchestrator(orchestrator(|prompt, cx| async move {
        let Prompt::Text(name) = prompt else { return Ok(String::new()) };
        let entered = cx.coordinator.with_state(|state| state.insert("in_turn".to_owned(), json!(true)));
        assert!(entered != Some(json!(true)), "two turns of one session at once");
        let _leave = Leave(cx.coordinator.clone());
        cx.coordinator.emit(ToolPre::default()).await;
        cx.coordinator.call_tool(&ToolCall::new("c", name, json!({}))).await?;
        Ok("done".to_owned())
    }))
}

/// Marks the end of a turn however it ends.
struct Leave(amplifier_core::coordinator::Coordinator);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.with_state(|state| state.insert("in_turn".to_owned(), json!(false)));
    }
}

async fn execute(session: &Session, tool: &str) -> Result<String, ExecuteError> {
    let result = session.execute(tool).await;
    if let Err(ExecuteError::Turn(error)) = &result {
        let text = error.to_string();
        assert!(!text.contains("two turns"), "{text}");
    }
    result
}

/// One task's random life.
async fn live(mut session: Option<Session>, plan: MountPlan, watch: Watch, seed: u64) {
    let mut dice = Dice(seed);
    let mut cleaned = false;
    for _ in 0..2 + dice.roll(5) {
        let Some(open) = &session else { return };
        match dice.roll(12) {
            0..=3 => {
                let result = execute(open, dice.pick(&TOOLS)).await;
                let closed = matches!(result, Err(ExecuteError::Closed { .. }));
                assert!(closed || !cleaned, "after cleanup: {result:?}");
            }
            4 => drop(open.cancel(CancelLevel::Graceful).await),
            5 => drop(open.cancel(CancelLevel::Immediate).await),
            6 => open.reset_cancel(),
            7 => {
                // A caller that goes away in the middle.
                let patience = Duration::from_millis(dice.roll(10));
                drop(tokio::time::timeout(patience, execute(open, dice.pick(&TOOLS))).await);
            }
            8 => {
                if let Ok(child) = open.child(plan.clone()).open().await {
                    watch.opened.lock().unwrap().push(child.coordinator().clone());
                    drop(execute(&child, dice.pick(&TOOLS)).await);
                    if dice.roll(2) == 0 {
                        child.cleanup().await;
                    }
                }
            }
            9 if dice.roll(3) == 0 => {
                open.cleanup().await;
                cleaned = true;
            }
            10 if dice.roll(3) == 0 => session = None,
            _ => tokio::time::sleep(Duration::from_millis(dice.roll(12))).await,
        }
    }
}

async fn round(seed: u64) {
    let handle = tokio::runtime::Handle::current();
    let before = handle.metrics().num_alive_tasks();
    let mut dice = Dice(seed);
    let watch = Watch::default();
    let stage = stage(&watch, dice.pick(&TOOLS));
    let session = stage.open().await;
    let hub = session.coordinator().clone();
    watch.opened.lock().unwrap().push(hub.clone());
    let lives: Vec<_> = (0..2 + dice.roll(3))
        .map(|n| {
            let life = live(Some(session.clone()), stage.mount_plan(), watch.clone(), seed * 1_000 + n);
            tokio::spawn(life)
        })
        .collect();
    // Half of the rounds end by cleanup, half by the last clone going away.
    if dice.roll(2) == 0 {
        drop(session);
        for life in lives {
            life.await.unwrap();
        }
    } else {
        for life in lives {
            life.await.unwrap();
        }
        session.cleanup().await;
        let refused = session.execute("quick").await;
        assert!(matches!(refused, Err(ExecuteError::Closed { .. })), "{refused:?}");
    }
    // What goes on in the background ends by itself.
    for _ in 0..400 {
        let closed = watch.opened.lock().unwrap().iter().all(|hub| hub.status().ended_at.is_some());
        if closed && handle.metrics().num_alive_tasks() <= before && watch.calls.count() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(watch.calls.count(), 0, "calls of tools or hooks are left");
    assert_eq!(handle.metrics().num_alive_tasks(), before, "tasks are left");
    for (n, ran) in watch.cleanups.lock().unwrap().iter().enumerate() {
        assert_eq!(ran.load(Ordering::SeqCst), 1, "runs of cleanup {n}");
    }
    for hub in watch.opened.lock().unwrap().iter() {
        let status = hub.status();
        assert!(status.ended_at.is_some(), "not closed: {status:?}");
        assert!(status.turns == 0 || status.status != SessionState::Running, "untrue: {status:?}");
        assert_eq!((hub.in_flight(), hub.cancel().running_tools()), (vec![], vec![]));
        let statement = hub.ledger().statement();
        assert_eq!(statement.reserved, Default::default(), "held for ever");
        assert_eq!(statement.total.tool_calls, status_calls(hub), "counted otherwise than booked");
    }
}

/// The calls of a session and of those below it, as their statuses count them.
fn status_calls(hub: &amplifier_core::coordinator::Coordinator) -> u64 {
    // Children book here too, so only a session without any can be compared with its own count.
    let statement = hub.ledger().statement();
    if statement.total.spawns == 0 { hub.status().tool_invocations } else { statement.total.tool_calls }
}

#[test]
fn a_thousand_random_interleavings_never_hang_leak_a_task_or_lose_a_cleanup() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        for seed in 0..1_000 {
            // Virtual time: a round in which nothing can go on is over at once.
            let ended = tokio::time::timeout(Duration::from_secs(600), round(seed)).await;
            assert!(ended.is_ok(), "round {seed} hangs");
        }
    });
}

#[test]
fn a_hundred_random_interleavings_on_several_threads_do_not_either() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    runtime.block_on(async {
        for seed in 10_000..10_100 {
            let ended = tokio::time::timeout(Duration::from_secs(30), round(seed)).await;
            assert!(ended.is_ok(), "round {seed} hangs");
        }
    });
}
