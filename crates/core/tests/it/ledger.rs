//! The ledger over a tree of sessions: no interleaving passes a limit, and the parts always sum to the total.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::contracts::{DeltaSink, TurnError};
use amplifier_core::ledger::{Admission, CallBound, Ledger, Reservation};
use amplifier_core::session::{ExecuteError, OpenFault};
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::spend::{Amounts, Limits, Unit};
use amplifier_protocol::status::SessionState;
use amplifier_protocol::tool::ToolCall;
use amplifier_protocol::usage::{Usage, Usd};
use proptest::prelude::*;
use serde_json::json;

use crate::kit::*;

fn limits(tokens: Option<u64>, steps: Option<u64>) -> Limits {
    Limits { tokens, steps, ..Limits::default() }
}

fn amounts(tokens: u64, steps: u64) -> Amounts {
    Amounts { tokens, steps, ..Amounts::default() }
}

fn root(limits: Limits) -> Ledger {
    Ledger::root("root".parse().unwrap(), limits, RuntimeClock::new())
}

/// Parts sum to the total.
fn is_balanced(ledger: &Ledger) -> bool {
    let statement = ledger.statement();
    let sum = statement.by_spender.values().fold(Amounts::default(), |sum, part| sum.plus(part));
    sum == statement.total
}

#[test]
fn what_is_reserved_counts_here_and_above_and_what_is_settled_is_booked_with_its_spender() {
    let root = root(limits(Some(100), None));
    let child = root.child("child".parse().unwrap(), Limits::default()).unwrap();
    let held = child.reserve("provider-a", amounts(60, 1)).unwrap();
    assert_eq!(root.statement().reserved.tokens, 60);
    let refused = root.reserve("provider-b", amounts(41, 1)).map(drop).unwrap_err();
    assert_eq!((refused.unit, refused.limit, refused.used, refused.asked), (Unit::Tokens, 100, 60, 41));
    held.settle(amounts(30, 1));
    assert_eq!((root.statement().reserved.tokens, root.statement().total.tokens), (0, 30));
    assert_eq!(root.statement().by_spender["provider-a"].tokens, 30);
    let refused = child.reserve("provider-b", amounts(71, 1)).map(drop).unwrap_err();
    let text = refused.to_string();
    for part in [
        "limit of 100 tokens",
        "session `root`",
        "30 used (spent by provider-a 30)",
        "`provider-b` asked for 71",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_reservation_that_is_dropped_is_booked_in_full_and_a_released_one_not_at_all() {
    let root = root(limits(Some(100), None));
    drop(root.reserve("a", amounts(40, 1)).unwrap());
    assert_eq!(root.statement().total, amounts(40, 1));
    root.reserve("a", amounts(40, 1)).unwrap().release();
    assert_eq!((root.statement().total, root.statement().reserved), (amounts(40, 1), Amounts::default()));
}

#[test]
fn a_call_that_ends_after_its_session_closed_is_still_booked_above() {
    let root = root(limits(Some(100), None));
    let child = root.child("child".parse().unwrap(), Limits::default()).unwrap();
    let held = child.reserve("a", amounts(60, 1)).unwrap();
    child.close();
    assert_eq!(root.statement().reserved.tokens, 60);
    held.settle(amounts(50, 1));
    let statement = root.statement();
    assert_eq!((statement.reserved.tokens, statement.total.tokens), (0, 50), "nothing stays held for ever");
    assert!(is_balanced(&root) && is_balanced(&child));
}

#[test]
fn a_closed_account_and_a_new_one_are_never_mixed_up() {
    let root = root(Limits { spawn_width: Some(1), ..Limits::default() });
    let first = root.child("first".parse().unwrap(), Limits::default()).unwrap();
    assert!(root.child("second".parse().unwrap(), Limits::default()).is_err());
    first.close();
    let second = root.child("second".parse().unwrap(), limits(Some(10), None)).unwrap();
    first.close();
    assert!(root.child("third".parse().unwrap(), Limits::default()).is_err(), "the second is still open");
    first.reserve("late", amounts(50, 0)).unwrap().settle(amounts(50, 0));
    assert_eq!(second.statement().total.tokens, 0);
    assert_eq!(root.statement().total.tokens, 50);
}

#[test]
fn a_grandchild_counts_against_the_root_although_the_session_between_is_closed() {
    let root = root(limits(None, Some(1)));
    let child = root.child("child".parse().unwrap(), Limits::default()).unwrap();
    let grandchild = child.child("grandchild".parse().unwrap(), Limits::default()).unwrap();
    child.close();
    drop(child);
    grandchild.reserve("a", amounts(0, 1)).unwrap().settle(amounts(0, 1));
    assert_eq!(root.statement().total.steps, 1);
    assert!(grandchild.reserve("a", amounts(0, 1)).is_err());
}

#[test]
fn depth_width_and_number_of_children_are_limited_for_the_whole_tree() {
    let refused = |limits: Limits, unit| {
        let root = root(limits);
        let a = root.child("a".parse().unwrap(), Limits::default()).unwrap();
        let under = a.child("b".parse().unwrap(), Limits::default()).map(drop).err();
        let beside = root.child("c".parse().unwrap(), Limits::default()).map(drop).err();
        let units: Vec<_> = [under, beside].into_iter().flatten().map(|refusal| refusal.unit).collect();
        assert!(!units.is_empty() && units.iter().all(|known| *known == unit), "{units:?}");
        units.len()
    };
    assert_eq!(refused(Limits { spawn_depth: Some(1), ..Limits::default() }, Unit::SpawnDepth), 1);
    assert_eq!(refused(Limits { spawn_width: Some(1), ..Limits::default() }, Unit::SpawnWidth), 1);
    assert_eq!(refused(Limits { spawns: Some(1), ..Limits::default() }, Unit::Spawns), 2);
}

#[derive(Debug, Clone)]
enum Step {
    Child {
        of: usize,
        tokens: Option<u64>,
        steps: Option<u64>,
    },
    Reserve {
        on: usize,
        tokens: u64,
    },
    /// `part` of 4 quarters of what was reserved was really spent.
    Settle {
        which: usize,
        part: u64,
    },
    Drop {
        which: usize,
    },
    Close {
        which: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let limit = || prop::option::of(0..120u64);
    let step = prop_oneof![
        2 => (any::<usize>(), limit(), limit()).prop_map(|(of, tokens, steps)| Step::Child { of, tokens, steps }),
        6 => (any::<usize>(), 0..40u64).prop_map(|(on, tokens)| Step::Reserve { on, tokens }),
        4 => (any::<usize>(), 0..5u64).prop_map(|(which, part)| Step::Settle { which, part }),
        2 => any::<usize>().prop_map(|which| Step::Drop { which }),
        1 => any::<usize>().prop_map(|which| Step::Close { which }),
    ];
    prop::collection::vec(step, 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    /// When calls spend no more than they reserved, spent and reserved together never pass any limit of any node.
    #[test]
    fn no_order_of_parents_and_children_passes_a_limit_and_parts_sum_to_totals(
        tokens in prop::option::of(0..200u64), list in steps()
    ) {
        let first = limits(tokens, Some(30));
        let mut nodes = vec![(root(first.clone()), first)];
        let mut open: Vec<(Reservation, u64)> = Vec::new();
        for step in list {
            match step {
                Step::Child { of, tokens, steps } => {
                    let limits = limits(tokens, steps);
                    let at = of % nodes.len();
                    let id = format!("n{}", nodes.len()).parse().unwrap();
                    if let Ok(child) = nodes[at].0.child(id, limits.clone()) {
                        nodes.push((child, limits));
                    }
                }
                Step::Reserve { on, tokens } => {
                    let at = on % nodes.len();
                    if let Ok(held) = nodes[at].0.reserve(&format!("s{}", on % 3), amounts(tokens, 1)) {
                        open.push((held, tokens));
                    }
                }
                Step::Settle { which, part } if !open.is_empty() => {
                    let at = which % open.len();
                    let (held, tokens) = open.swap_remove(at);
                    held.settle(amounts(tokens * part / 4, 1));
                }
                Step::Drop { which } if !open.is_empty() => {
                    let at = which % open.len();
                    drop(open.swap_remove(at));
                }
                Step::Close { which } => {
                    let at = which % nodes.len();
                    nodes[at].0.close();
                }
                Step::Settle { .. } | Step::Drop { .. } => {}
            }
            for (ledger, limits) in &nodes {
                let statement = ledger.statement();
                let used = statement.total.plus(&statement.reserved);
                for unit in [Unit::Tokens, Unit::Steps] {
                    let within = limits.of(unit).is_none_or(|limit| used.of(unit) <= limit);
                    prop_assert!(within, "{unit}: {used:?} of {limits:?}");
                }
                prop_assert!(is_balanced(ledger));
            }
        }
        drop(open);
        for (ledger, _) in &nodes {
            prop_assert_eq!(ledger.statement().reserved, Amounts::default(), "nothing is held for ever");
        }
    }

    /// A model call may cost more than was estimated. Then a limit is passed by that call's excess only: whatever runs
    /// one after the other, nothing more is admitted once a limit is used up.
    #[test]
    fn a_call_that_costs_more_than_it_reserved_is_the_last_one(
        limit in 1..500u64, calls in prop::collection::vec((0..50u64, 0..200u64, any::<bool>()), 1..60)
    ) {
        let parent = root(limits(Some(limit), None));
        let child = parent.child("child".parse().unwrap(), Limits::default()).unwrap();
        let mut largest = 0;
        for (reserved, spent, in_child) in calls {
            let before = parent.statement().total.tokens;
            let ledger = if in_child { &child } else { &parent };
            match ledger.reserve("p", amounts(reserved, 1)) {
                Err(_) => prop_assert!(before + reserved.max(1) > limit),
                Ok(held) => {
                    prop_assert!(before < limit, "admitted although used up");
                    held.settle(amounts(spent, 1));
                    largest = largest.max(spent);
                }
            }
            prop_assert!(parent.statement().total.tokens < limit + largest.max(1));
        }
    }
}

#[test]
fn threads_of_parents_and_children_never_pass_a_limit_together() {
    for seed in 0..20u64 {
        let limit = 200 + seed * 7;
        let root = root(limits(Some(limit), None));
        let children: Vec<_> = (0..4)
            .map(|n| root.child(format!("c{n}").parse().unwrap(), limits(Some(limit / 2), None)).unwrap())
            .collect();
        std::thread::scope(|scope| {
            for (n, ledger) in children.iter().chain([&root]).enumerate() {
                let (ledger, root) = (ledger.clone(), root.clone());
                scope.spawn(move || {
                    let mut chance = seed * 31 + u64::try_from(n).unwrap() + 1;
                    for _ in 0..300 {
                        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let want = (chance >> 33) % 20;
                        let Ok(held) = ledger.reserve("t", amounts(want, 1)) else { continue };
                        let statement = root.statement();
                        assert!(statement.total.plus(&statement.reserved).tokens <= limit);
                        match chance >> 62 {
                            0 => drop(held),
                            1 => held.release(),
                            _ => held.settle(amounts(want / 2, 1)),
                        }
                    }
                });
            }
        });
        let statement = root.statement();
        assert!(statement.total.tokens <= limit && statement.reserved == Amounts::default());
        let below: u64 = children.iter().map(|child| child.statement().total.tokens).sum();
        assert!(below <= statement.total.tokens && children.iter().all(is_balanced) && is_balanced(&root));
    }
}

#[tokio::test]
async fn a_limit_stops_the_turn_before_the_next_call_and_says_which_and_who() {
    let stage = Stage::new().session(json!({"limits": {"tool_calls": 2}})).tool(echo("t")).orchestrator(
        orchestrator(|_, cx| async move {
            for n in 0..5 {
                cx.coordinator.call_tool(&ToolCall::new(n.to_string(), "t", json!({}))).await?;
            }
            Ok("too far".to_owned())
        }),
    );
    let session = stage.open().await;
    let Err(ExecuteError::Turn(TurnError::Limit(limit))) = session.execute("x").await else {
        panic!("passed")
    };
    assert_eq!((limit.unit, limit.used, limit.asked_by.as_str()), (Unit::ToolCalls, 2, "tool-t"));
    assert_eq!(limit.spent_by, [("tool-t".to_owned(), 2)]);
    assert_eq!((session.status().status, session.status().tool_invocations), (SessionState::Failed, 2));
    let told = stage.ear.payloads("policy:violation");
    assert_eq!((told.len(), &told[0]["source"]), (1, &json!("tool-t")));
}

#[tokio::test]
async fn what_models_say_they_used_is_booked_to_their_module_and_limits_the_next_call() {
    let spending = provider("m", |_, _| async {
        let usage: Usage = serde_json::from_value(
            json!({"input_tokens": 70, "output_tokens": 40, "total_tokens": 110, "cost_usd": "0.25"}),
        )
        .unwrap();
        Ok(ChatResponse { usage: Some(usage), ..ChatResponse::text("rich") })
    });
    let stage = Stage::new().session(json!({"limits": {"tokens": 100}})).provider(spending);
    let session = stage.open().await;
    let call =
        || session.coordinator().call_provider("m", ChatRequest::new(Vec::new()), DeltaSink::default());
    call().await.unwrap();
    let statement = session.coordinator().ledger().statement();
    let spent = &statement.by_spender["provider-m"];
    assert_eq!((spent.tokens, spent.cost_nanos, spent.steps), (110, 250_000_000, 1));
    let status = session.status();
    assert_eq!((status.total_input_tokens, status.total_output_tokens), (70, 40));
    assert!(call().await.unwrap_err().to_string().contains("limit of 100 tokens"));
}

#[tokio::test]
async fn children_spend_from_their_parents_limit_and_width_comes_back_with_cleanup() {
    let stage = Stage::new().session(json!({"limits": {"tool_calls": 3, "spawn_width": 2}})).tool(echo("t"));
    let parent = stage.open().await;
    let mut plan = stage.mount_plan();
    plan.session.limits = serde_json::Map::new();
    let (a, b) =
        (parent.child(plan.clone()).open().await.unwrap(), parent.child(plan.clone()).open().await.unwrap());
    let Err(error) = parent.child(plan.clone()).open().await else { panic!("three") };
    assert!(matches!(&error.fault, OpenFault::Limit(limit) if limit.unit == Unit::SpawnWidth), "{error}");
    a.execute("t").await.unwrap();
    b.execute("t").await.unwrap();
    parent.execute("t").await.unwrap();
    for session in [&a, &b, &parent] {
        assert!(matches!(session.execute("t").await, Err(ExecuteError::Turn(TurnError::Limit(_)))));
    }
    a.cleanup().await;
    let c = parent.child(plan).open().await.unwrap();
    assert!(c.execute("t").await.is_err(), "a new child has no fresh purse");
    let expected = BTreeMap::from([("session.spawn", 3), ("tool-t", 3)]);
    let statement = parent.coordinator().ledger().statement();
    let found: BTreeMap<_, _> = statement
        .by_spender
        .iter()
        .map(|(who, much)| (who.as_str(), much.tool_calls + much.spawns))
        .collect();
    assert_eq!(found, expected);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_out_of_time_ends_its_turn_and_starts_no_call() {
    let hang = tool("hang", amplifier_protocol::tool::Effects::PURE, |_, cx| async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cx.pulse.beat();
        }
    });
    let stage = Stage::new().session(json!({"limits": {"wall_seconds": 20}})).tool(hang).tool(echo("t"));
    let session = stage.open().await;
    let began = tokio::time::Instant::now();
    let Err(ExecuteError::Turn(TurnError::Limit(limit))) = session.execute("hang").await else {
        panic!("ran")
    };
    assert_eq!(limit.unit, Unit::WallMillis);
    assert!(began.elapsed() < Duration::from_secs(22), "{:?}", began.elapsed());
    assert!(matches!(session.execute("t").await, Err(ExecuteError::Turn(TurnError::Limit(_)))));
}

#[tokio::test]
async fn parallel_calls_of_one_turn_together_stay_within_the_limit() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let wait = Arc::clone(&gate);
    let slow = tool("slow", amplifier_protocol::tool::Effects::PURE, move |_, _| {
        let wait = Arc::clone(&wait);
        async move {
            wait.acquire().await.unwrap().forget();
            Ok(json!(null))
        }
    });
    let session = Stage::new().session(json!({"limits": {"tool_calls": 3}})).tool(slow).open().await;
    let hub = session.coordinator();
    let calls: Vec<_> = (0..8)
        .map(|n| {
            let hub = hub.clone();
            tokio::spawn(async move { hub.call_tool(&ToolCall::new(n.to_string(), "slow", json!({}))).await })
        })
        .collect();
    settle().await;
    gate.add_permits(8);
    let mut done = 0;
    for call in calls {
        done += usize::from(call.await.unwrap().is_ok());
    }
    assert_eq!((done, hub.ledger().statement().total.tool_calls), (3, 3));
}

/// A model call that runs: in which session, and what it will have cost.
type Running = (Reservation, u64);

/// Begins a call that cannot tell what it will cost; true unless it must wait or is refused.
fn begin(
    ledger: &Ledger,
    cost: u64,
    running: &mut Vec<Running>,
) -> Result<bool, amplifier_core::ledger::LimitReached> {
    begin_bounded(ledger, cost, CallBound::default(), running)
}

/// The same for a call whose provider knows the most that it may cost.
fn begin_bounded(
    ledger: &Ledger,
    cost: u64,
    bound: CallBound,
    running: &mut Vec<Running>,
) -> Result<bool, amplifier_core::ledger::LimitReached> {
    match ledger.admit("p", Amounts { steps: 1, ..Amounts::default() }, bound)? {
        Admission::Now(held) => {
            running.push((held, cost));
            Ok(true)
        }
        Admission::Later(_) => Ok(false),
    }
}

fn dollars(nanos: u64) -> Limits {
    Limits { cost_usd: Some(Usd::from_nanos(nanos)), ..Limits::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    /// Calls reserve nothing of what they will cost, run side by side in a parent and its children, and settle in any
    /// order. Each costs something else, however little the one before it did; of some the most is known.
    #[test]
    fn calls_that_cost_more_than_they_reserved_pass_a_limit_by_one_call_at_most_although_they_run_side_by_side(
        limit in 1..400u64,
        sizes in prop::collection::vec(1..=8u64, 1..5),
        steps in prop::collection::vec((any::<usize>(), 0..=90u64, any::<bool>(), any::<bool>()), 1..120),
    ) {
        let parent = root(dollars(limit));
        let mut sessions = vec![parent.clone()];
        for n in 1..sizes.len() {
            sessions.push(parent.child(format!("c{n}").parse().unwrap(), Limits::default()).unwrap());
        }
        let (mut running, mut largest) = (Vec::<(usize, Running)>::new(), 0);
        let mut last = vec![0; sizes.len()];
        for (which, grown, ends, is_bounded) in steps {
            if ends && !running.is_empty() {
                let at = which % running.len();
                let (session, (held, cost)) = running.swap_remove(at);
                held.settle(Amounts { steps: 1, cost_nanos: cost, tokens: 1, ..Amounts::default() });
                (largest, last[session]) = (largest.max(cost), cost);
            } else {
                let at = which % sizes.len();
                let idle = running.is_empty();
                let spent = parent.statement().total.cost_nanos;
                let fits = spent + last[at].max(1) <= limit;
                let mut begun = Vec::new();
                let cost = sizes[at] * (1 + grown);
                let most = is_bounded.then(|| Usd::from_nanos(cost + grown / 3));
                let bound = CallBound { cost: most, tokens: None };
                match begin_bounded(&sessions[at], cost, bound, &mut begun) {
                    Ok(now) => prop_assert!(fits && (now || !idle), "who is alone need not wait"),
                    Err(_) => prop_assert!(!fits, "refused although there is room for another like the last"),
                }
                running.extend(begun.into_iter().map(|call| (at, call)));
            }
            let spent = parent.statement().total.cost_nanos;
            prop_assert!(spent < limit + largest.max(1), "{spent} of {limit}, the largest call was {largest}");
        }
    }
}

#[tokio::test]
async fn a_call_that_must_wait_begins_when_another_has_ended_and_a_used_up_limit_refuses_it() {
    let ledger = root(dollars(100));
    let mut running = Vec::new();
    assert!(begin(&ledger, 40, &mut running).unwrap(), "nothing is known yet: alone");
    assert!(!begin(&ledger, 40, &mut running).unwrap(), "nothing is known yet: not two");
    let asked = Amounts { steps: 1, ..Amounts::default() };
    let waits = ledger.admit_later("p", asked, CallBound::default(), Duration::from_secs(9));
    let ends = async {
        settle().await;
        let (held, cost) = running.pop().unwrap();
        held.settle(Amounts { steps: 1, cost_nanos: cost, ..Amounts::default() });
    };
    let (admitted, ()) = tokio::join!(waits, ends);
    admitted.unwrap().settle(Amounts { steps: 1, cost_nanos: 80, ..Amounts::default() });
    let refused = ledger
        .admit_later("p", asked, CallBound::default(), Duration::from_secs(9))
        .await
        .map(drop)
        .unwrap_err();
    assert_eq!((refused.unit, refused.used), (Unit::CostNanos, 120), "one call over, not more");
}

#[test]
fn a_call_is_refused_when_another_like_the_last_would_pass_the_limit() {
    let ledger = root(dollars(100));
    let one = Amounts { steps: 1, ..Amounts::default() };
    // The first may fill a cache and cost more than all others: it is the last that counts.
    for cost in [40, 10, 16, 20] {
        let Admission::Now(held) = ledger.admit("p", one, CallBound::default()).unwrap() else {
            panic!("it is alone")
        };
        held.settle(Amounts { cost_nanos: cost, ..one });
    }
    let refused = ledger.admit("p", one, CallBound::default()).map(drop).unwrap_err();
    assert_eq!((refused.unit, refused.used, refused.asked), (Unit::CostNanos, 86, 20));
}

/// Children whose first calls are cheap and whose second ones are not: what was cheap is no bound for the next.
#[test]
fn cheap_calls_before_are_no_reason_to_run_dear_ones_side_by_side() {
    let parent = root(dollars(100));
    let children: Vec<_> =
        (0..6).map(|n| parent.child(format!("c{n}").parse().unwrap(), Limits::default()).unwrap()).collect();
    let mut running = Vec::new();
    for child in &children {
        assert!(begin(child, 1, &mut running).unwrap());
        let (held, cost) = running.pop().unwrap();
        held.settle(Amounts { steps: 1, cost_nanos: cost, tokens: 1, ..Amounts::default() });
    }
    for child in &children {
        begin(child, 80, &mut running).unwrap();
    }
    assert_eq!(running.len(), 1, "the others wait until it has ended");
    drop(running);
    let bound = |most: u64| CallBound { cost: Some(Usd::from_nanos(most)), tokens: None };
    let mut running = Vec::new();
    for child in &children {
        begin_bounded(child, 20, bound(30), &mut running).unwrap();
    }
    assert_eq!(running.len(), 3, "as many as fit into what is left, 94, run side by side");
}

/// Five children, each of which makes two calls of ten cents at once with the others, under a limit of 35 cents.
#[tokio::test(start_paused = true)]
async fn children_that_call_side_by_side_pass_their_parents_limit_on_money_by_one_call() {
    let spending = provider("m", |_, _| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let usage = Usage { cost_usd: Some("0.1".parse().unwrap()), ..Usage::new(10, 10) };
        Ok(ChatResponse { usage: Some(usage), ..ChatResponse::text("rich") })
    });
    let stage = Stage::new().session(json!({"limits": {"cost_usd": "0.35"}})).provider(spending);
    let parent = stage.open().await;
    let mut plan = stage.mount_plan();
    plan.session.limits = serde_json::Map::new();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let child = parent.child(plan.clone()).open().await.unwrap();
        tasks.spawn(async move {
            for _ in 0..2 {
                let request = ChatRequest::new(Vec::new());
                child.coordinator().call_provider("m", request, DeltaSink::default()).await?;
            }
            Ok::<_, amplifier_core::coordinator::CallError>(())
        });
    }
    let ends = tasks.join_all().await;
    assert!(ends.iter().any(|end| end.is_err()), "the limit was met");
    let spent = parent.coordinator().ledger().statement().total.cost_nanos;
    assert_eq!(spent, 400_000_000, "one call over 35 cents and not five");
}

#[tokio::test]
async fn absurd_numbers_of_a_provider_are_counted_as_very_many_and_break_nothing() {
    let absurd = provider("m", |_, _| async {
        let usage = Usage { cache_write_tokens: Some(u64::MAX), ..Usage::new(u64::MAX, u64::MAX) };
        Ok(ChatResponse { usage: Some(usage), ..ChatResponse::text("rich") })
    });
    let session = Stage::new().provider(absurd).open().await;
    for _ in 0..2 {
        let request = ChatRequest::new(Vec::new());
        session.coordinator().call_provider("m", request, DeltaSink::default()).await.unwrap();
    }
    let status = session.status();
    assert_eq!((status.total_input_tokens, status.total_output_tokens), (u64::MAX, u64::MAX));
    assert_eq!(session.coordinator().ledger().statement().total.tokens, u64::MAX);
}

#[test]
fn what_a_running_call_may_cost_makes_other_calls_wait_and_refuses_nothing_else() {
    let parent = root(dollars(100));
    let call = Amounts { steps: 1, ..Amounts::default() };
    let mut running = Vec::new();
    assert!(begin(&parent, 30, &mut running).unwrap());
    let (held, cost) = running.pop().unwrap();
    held.settle(Amounts { steps: 1, cost_nanos: cost, ..Amounts::default() });
    let child = parent.child("child".parse().unwrap(), Limits::default()).unwrap();
    assert!(begin(&child, 30, &mut running).unwrap(), "its first, alone, and taken for more than is left");
    assert!(!begin(&parent, 30, &mut running).unwrap());
    // What `tool-task` does to see whether there is room for an agent.
    parent.reserve("tool-task", Amounts { spawns: 1, ..call }).unwrap().release();
    assert_eq!(parent.statement().reserved, call);
    drop(running);
    assert_eq!(parent.statement().total.cost_nanos, 30, "a guess is never booked");
}
