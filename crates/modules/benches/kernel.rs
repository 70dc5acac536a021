//! What the kernel itself costs: opening sessions, passing events, turns without a model's latency, many live sessions.
//!
//! The same work as `xtask/bench/public_kernel.py`; `cargo xtask bench kernel` runs both. Nothing is written to disk and
//! nothing waits, so every microsecond here is ours. Options: `--json` (one object a line), `--quick` (fewer samples).

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amplifier_core::clock::Clock;
use amplifier_core::contracts::{
    HookEvent, HookFailure, HookHandler, Module, Mounted, Provider, ProviderCx, Tool, ToolCx, ToolFailure,
};
use amplifier_core::hooks::HookSpec;
use amplifier_core::loader::{LoadError, Loader, ModuleFinder, MountCx};
use amplifier_core::session::{Session, SessionBuilder};
use amplifier_modules::BuiltIns;
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::event::ToolPre;
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::llm_error::LlmError;
use amplifier_protocol::message::Role;
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};
use amplifier_protocol::provider::{ModelInfo, ProviderInfo};
use amplifier_protocol::time::Timestamp;
use amplifier_protocol::tool::{Effects, ToolCall, ToolSpec};
use amplifier_protocol::usage::Usage;
use async_trait::async_trait;
use serde_json::{Map, Value, json};

const TOOLS: usize = 5;
const HOOKS: usize = 5;

type Outcome = Result<(), Box<dyn Error>>;

struct WallClock;

impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "this program is the one that hands the clock in")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

/// Asks for one tool call a round, then says `done`. Answers at once.
struct BenchProvider {
    rounds: u64,
}

#[async_trait]
impl Provider for BenchProvider {
    fn name(&self) -> &str {
        "bench"
    }

    fn info(&self) -> ProviderInfo {
        ProviderInfo { id: "bench".to_owned(), display_name: "Bench".to_owned(), ..ProviderInfo::default() }
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        Ok(Vec::new())
    }

    async fn complete(&self, request: ChatRequest, _cx: &ProviderCx) -> Result<ChatResponse, LlmError> {
        let done = request.messages.iter().filter(|message| message.role == Role::Tool).count() as u64;
        let mut response = if done < self.rounds {
            let call = ToolCall::new(format!("call-{done}"), "bench_0", json!({"a": 1}));
            ChatResponse { tool_calls: Some(vec![call]), ..ChatResponse::default() }
        } else {
            ChatResponse::text("done")
        };
        response.usage = Some(Usage::new(10, 5));
        Ok(response)
    }

    fn parse_tool_calls(&self, response: &ChatResponse) -> Vec<ToolCall> {
        response.calls()
    }
}

/// Answers at once.
struct BenchTool {
    name: String,
}

#[async_trait]
impl Tool for BenchTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.clone(),
            description: Some("Answers at once.".to_owned()),
            parameters: json!({"type": "object", "properties": {"a": {"type": "integer"}}}),
            extra: Map::new(),
        }
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    async fn execute(&self, _input: Value, _cx: &ToolCx) -> Result<Value, ToolFailure> {
        Ok(Value::from("ok"))
    }
}

/// Agrees.
struct Agree;

#[async_trait]
impl HookHandler for Agree {
    async fn handle(&self, _event: &HookEvent) -> Result<HookResult, HookFailure> {
        Ok(HookResult::proceed())
    }
}

/// The modules of the bench: `provider-bench`, `tool-bench-N`, `hooks-bench-N`.
struct BenchModule {
    id: ModuleId,
    kind: ModuleKind,
    number: usize,
}

#[async_trait]
impl Module for BenchModule {
    fn id(&self) -> ModuleId {
        self.id.clone()
    }

    fn kind(&self) -> ModuleKind {
        self.kind
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        match self.kind {
            ModuleKind::Provider => {
                let rounds = config.get("rounds").and_then(Value::as_u64).unwrap_or(0);
                cx.mount_provider(Arc::new(BenchProvider { rounds }));
            }
            ModuleKind::Tool => cx.mount_tool(Arc::new(BenchTool { name: format!("bench_{}", self.number) })),
            _ => {
                let priority = i32::try_from(self.number).unwrap_or(i32::MAX);
                let spec = HookSpec::new(event_pattern(), self.id.as_str()).priority(priority);
                cx.on(spec, Arc::new(Agree));
            }
        }
        Ok(Mounted::Ready)
    }
}

fn event_pattern() -> amplifier_core::hooks::EventPattern {
    "tool:pre".parse().unwrap_or(amplifier_core::hooks::EventPattern::All)
}

struct BenchModules(Vec<Arc<dyn Module>>);

impl BenchModules {
    fn new() -> Result<Self, Box<dyn Error>> {
        let mut modules: Vec<Arc<dyn Module>> = Vec::new();
        let mut add = |id: String, kind, number| -> Outcome {
            modules.push(Arc::new(BenchModule { id: id.parse()?, kind, number }));
            Ok(())
        };
        add("provider-bench".to_owned(), ModuleKind::Provider, 0)?;
        (0..TOOLS).try_for_each(|number| add(format!("tool-bench-{number}"), ModuleKind::Tool, number))?;
        (0..HOOKS).try_for_each(|number| add(format!("hooks-bench-{number}"), ModuleKind::Hook, number))?;
        Ok(Self(modules))
    }
}

#[async_trait]
impl ModuleFinder for BenchModules {
    fn name(&self) -> &str {
        "bench"
    }

    fn known(&self) -> Vec<String> {
        self.0.iter().map(|module| module.id().to_string()).collect()
    }

    async fn find(&self, id: &ModuleId) -> Result<Option<Arc<dyn Module>>, LoadError> {
        Ok(self.0.iter().find(|module| module.id() == *id).cloned())
    }
}

/// A plan with one provider that asks for `rounds` tool calls a turn.
fn plan(rounds: u64, tools: usize, hooks: usize) -> Result<MountPlan, Box<dyn Error>> {
    let mut plan = MountPlan::new("loop-basic".parse()?, "context-simple".parse()?);
    let mut provider = ModuleSpec::new("provider-bench".parse()?);
    provider.config.insert("rounds".to_owned(), Value::from(rounds));
    plan.providers.push(provider);
    for number in 0..tools {
        plan.tools.push(ModuleSpec::new(format!("tool-bench-{number}").parse()?));
    }
    for number in 0..hooks {
        plan.hooks.push(ModuleSpec::new(format!("hooks-bench-{number}").parse()?));
    }
    Ok(plan)
}

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
            // Many at once: a clock call costs as much as an emit nobody hears.
            let (mut times, batch) = (Vec::new(), 100);
            for _ in 0..self.samples(1_000) {
                let events: Vec<_> = (0..batch).map(|_| tool_pre()).collect();
                let began = Instant::now();
                for event in events {
                    std::hint::black_box(hub.emit(event).await);
                }
                times.push(began.elapsed() / batch);
            }
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
