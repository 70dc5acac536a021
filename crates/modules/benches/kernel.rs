//! What the kernel itself costs: opening sessions, passing events, turns without a model's latency, many live sessions.
//!
//! The same work as `xtask/bench/public_kernel.py`; `cargo xtask bench kernel` runs both. Nothing is written to disk and
//! nothing waits, so every microsecond here is ours. Options: `--json` (one object a line), `--quick` (fewer samples).

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amplifier_core::clock::Clock;
use amplifier_core::contracts::{EventStamp, HookEvent, HookHandler};
use amplifier_core::hooks::HookSpec;
use amplifier_core::loader::Loader;
use amplifier_core::session::{Session, SessionBuilder};
use amplifier_modules::BuiltIns;
use amplifier_protocol::event::ToolPre;
use amplifier_protocol::ids::{EventName, SessionId};
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::time::Timestamp;
use serde_json::{Map, Value, json};

mod fixtures;

use fixtures::{Agree, BenchModules, WallClock, event_pattern, plan};

const TOOLS: usize = 5;
const HOOKS: usize = 5;

type Outcome = Result<(), Box<dyn Error>>;

struct Bench {
    loader: Arc<Loader>,
    clock: Arc<dyn Clock>,
    json: bool,
    quick: bool,
}

impl Bench {
    async fn open(&self, plan: impl Into<Arc<MountPlan>>) -> Result<Session, Box<dyn Error>> {
        let session =
            SessionBuilder::new(plan, Arc::clone(&self.loader), Arc::clone(&self.clock)).open().await?;
        // A session without its modules would be fast for the wrong reason.
        if !session.report().is_clean() {
            return Err(format!("the plan did not come up: {:?}", session.report()).into());
        }
        Ok(session)
    }

    fn report(&self, name: &str, value: f64, unit: &str) -> Outcome {
        let mut out = std::io::stdout().lock();
        match self.json {
            true => writeln!(out, "{}", json!({"name": name, "value": value, "unit": unit}))?,
            false => writeln!(out, "{name:>24} {value:>14.3} {unit}")?,
        }
        Ok(())
    }

    fn samples(&self, usual: usize) -> usize {
        if self.quick { usual / 10 } else { usual }
    }

    /// Memory first: the other parts leave free heap behind that would hide growth.
    async fn run(&self) -> Outcome {
        self.live(if self.quick { 1_000 } else { 10_000 }).await?;
        self.open_close().await?;
        self.emit().await?;
        self.turn(0).await?;
        self.turn(10).await
    }

    /// Opens many sessions and keeps them, then gives each a turn, all at once.
    async fn live(&self, sessions: usize) -> Outcome {
        let shared = Arc::new(plan(0, TOOLS, HOOKS)?);
        for _ in 0..20 {
            let session = self.open(Arc::clone(&shared)).await?;
            session.execute("hi").await?;
            session.cleanup().await;
        }
        let before = resident_bytes();
        let mut live = Vec::with_capacity(sessions);
        let began = Instant::now();
        for _ in 0..sessions {
            live.push(self.open(Arc::clone(&shared)).await?);
        }
        let opened = began.elapsed();
        let idle = resident_bytes();
        let began = Instant::now();
        let turns: Vec<_> = live
            .iter()
            .cloned()
            .map(|session| tokio::spawn(async move { session.execute("hi").await }))
            .collect();
        for turn in turns {
            if turn.await?? != "done" {
                return Err("a live session answered something else".into());
            }
        }
        let turned = began.elapsed();
        let after = resident_bytes();
        let count = sessions as f64;
        self.report("live_sessions", count, "count")?;
        self.report("live_open_all", micros(opened), "us")?;
        self.report("live_turn_all", micros(turned), "us")?;
        if let (Some(before), Some(idle), Some(after)) = (before, idle, after) {
            self.report("live_bytes_idle", (idle - before) / count, "bytes")?;
            self.report("live_bytes_after_turn", (after - before) / count, "bytes")?;
        }
        for session in live {
            session.cleanup().await;
        }
        Ok(())
    }

    async fn open_close(&self) -> Outcome {
        let plan = plan(0, TOOLS, HOOKS)?;
        let mut times = Vec::new();
        for _ in 0..self.samples(2_000) {
            let fresh = plan.clone();
            let began = Instant::now();
            self.open(fresh).await?.cleanup().await;
            times.push(began.elapsed());
        }
        self.report("open_close", median(times), "us")
    }

    async fn emit(&self) -> Outcome {
        for handlers in [0, 1, 10, 100] {
            let session = self.open(plan(0, 0, 0)?).await?;
            let hub = session.coordinator();
            for number in 0..handlers {
                hub.hooks().on(
                    HookSpec::new(event_pattern(), format!("handler-{number}")).priority(number),
                    Arc::new(Agree),
                );
            }
            let listeners: Vec<Arc<dyn HookHandler>> = (0..handlers).map(|_| Arc::new(Agree) as _).collect();
            // Many at once: a clock call costs as much as an emit nobody hears. Floor and emit take turns, so that a busy
            // moment of the machine is a busy moment of both.
            let (mut times, mut floors, batch) = (Vec::new(), Vec::new(), 100);
            for _ in 0..self.samples(1_000) {
                let events: Vec<_> = (0..batch).map(|_| tool_pre()).collect();
                let began = Instant::now();
                for event in &events {
                    std::hint::black_box(tell(event, &listeners).await?);
                }
                floors.push(began.elapsed() / batch);
                let began = Instant::now();
                for event in events {
                    std::hint::black_box(hub.emit(event).await);
                }
                times.push(began.elapsed() / batch);
            }
            self.report(&format!("emit_floor_{handlers}"), median(floors), "us")?;
            self.report(&format!("emit_{handlers}"), median(times), "us")?;
            session.cleanup().await;
        }
        Ok(())
    }

    async fn turn(&self, rounds: u64) -> Outcome {
        let session = self.open(plan(rounds, 1, 0)?).await?;
        let context = session.coordinator().context().ok_or("no context")?;
        let mut times = Vec::new();
        for _ in 0..self.samples(3_000) {
            let began = Instant::now();
            session.execute("hi").await?;
            times.push(began.elapsed());
            // An empty history for each sample, else every turn would also pay for the ones before it.
            context.clear().await?;
        }
        session.cleanup().await;
        self.report(&format!("turn_{rounds}"), median(times), "us")
    }
}

fn tool_pre() -> ToolPre {
    ToolPre { tool_name: "t".to_owned(), tool_input: json!({"a": 1}), ..ToolPre::default() }
}

/// The floor of an emit: the event as every handler gets it, and an asynchronous call to each of them. No order, no limit of
/// time, no panic caught, nothing joined.
async fn tell(event: &ToolPre, listeners: &[Arc<dyn HookHandler>]) -> Result<HookEvent, Box<dyn Error>> {
    let mut data = Map::new();
    data.insert("tool_name".to_owned(), Value::String(event.tool_name.clone()));
    data.insert("tool_input".to_owned(), event.tool_input.clone());
    let stamp = EventStamp {
        session_id: SessionId::fixed("bench"),
        parent_id: None,
        turn: 0,
        sequence: 0,
        timestamp: Timestamp::from_micros(0),
    };
    let event = HookEvent { name: EventName::of::<ToolPre>(), data, stamp };
    for listener in listeners {
        std::hint::black_box(listener.handle(&event).await)?;
    }
    Ok(event)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).copied().map_or(f64::NAN, micros)
}

/// Resident memory of this process, where the system tells it this way.
fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok().map(|kib| kib * 1024.0)
}

fn main() -> Outcome {
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    let loader = Loader::new().finder(Arc::new(BuiltIns)).finder(Arc::new(BenchModules::new()?));
    let (loader, clock) = (Arc::new(loader), Arc::new(WallClock));
    let bench = Bench { loader, clock, json: has("--json"), quick: has("--quick") };
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(bench.run())
}
