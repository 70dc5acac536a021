//! Several calls of one answer: side by side, no more than the cap, results in the order of the calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use amplifier_core::contracts::{Tool, ToolCx};
use amplifier_protocol::event::TurnStatus;
use amplifier_protocol::message::Role;
use amplifier_testing::Step;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::stage::{FnTool, LOOPS, Open, Stage, calls};

/// Answers with its number after its delay, and notes how many run at a time.
fn slow_tool(delays: Vec<u64>, most: Arc<AtomicUsize>) -> Arc<dyn Tool> {
    let running = Arc::new(AtomicUsize::new(0));
    Arc::new(FnTool("t", move |input: Value, _: ToolCx| {
        let n = usize::try_from(input["n"].as_u64().unwrap()).unwrap();
        let (delay, running, most) = (delays[n - 1], running.clone(), most.clone());
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(delay)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(json!(n))
        }
    }))
}

async fn play(id: &str, delays: Vec<u64>, cap: usize) -> (Open, usize, Duration) {
    let most = Arc::new(AtomicUsize::new(0));
    let stage = Stage::new(id, [calls(delays.len()), Step::say("done")]);
    let stage = stage.tool(slow_tool(delays, most.clone())).config(json!({"max_parallel_tools": cap}));
    let began = tokio::time::Instant::now();
    let (open, answer) = stage.play().await;
    assert_eq!(answer, "done");
    (open, most.load(Ordering::SeqCst), began.elapsed())
}

fn results(open: &Open) -> Vec<String> {
    let said = open.said().into_iter().filter(|(role, _)| *role == Role::Tool);
    said.map(|(_, text)| text).collect()
}

#[tokio::test(start_paused = true)]
async fn eight_run_side_by_side_by_default_and_a_cap_of_one_is_one_after_the_other() {
    for id in LOOPS {
        let most = Arc::new(AtomicUsize::new(0));
        let tool = slow_tool(vec![100; 10], most.clone());
        let (_, answer) = Stage::new(id, [calls(10), Step::say("done")]).tool(tool).play().await;
        assert_eq!((answer.as_str(), most.load(Ordering::SeqCst)), ("done", 8), "{id}");
        let (_, most, took) = play(id, vec![100; 3], 1).await;
        assert_eq!((most, took), (1, Duration::from_millis(300)), "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_graceful_cancel_running_calls_finish_and_waiting_ones_do_not_begin() {
    for id in LOOPS {
        let tool = FnTool("t", |input: Value, cx: ToolCx| async move {
            cx.cancel.request_graceful();
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok(input["n"].clone())
        });
        let stage = Stage::new(id, [calls(4), Step::say("never")]).tool(Arc::new(tool));
        let open = stage.config(json!({"max_parallel_tools": 2})).open().await;
        open.session.execute("hi").await.unwrap();
        open.ended(TurnStatus::Cancelled);
        let told = results(&open);
        assert_eq!(told[..2], ["1", "2"], "{id}");
        assert!(
            told.len() == 4 && told[2..].iter().all(|text| text.contains("cancelled by user")),
            "{told:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn results_keep_the_order_of_the_calls_whatever_their_delays(
        delays in prop::collection::vec(0_u64..500, 1..20),
        cap in 1_usize..10,
        which in 0_usize..3,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let count = delays.len();
        let (open, most, _) = runtime.block_on(play(LOOPS[which], delays, cap));
        let expected: Vec<_> = (1..=count).map(|n| n.to_string()).collect();
        prop_assert_eq!(results(&open), expected);
        prop_assert!(most <= cap);
        runtime.block_on(open.session.cleanup());
    }
}
