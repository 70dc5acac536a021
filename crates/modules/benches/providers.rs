//! What a provider adds to its transport: the time to the first piece, and the work of ten thousand pieces.
//!
//! `cargo xtask bench providers` runs it against a model server on loopback, beside the public Python client on the same
//! server. Options: `--server URL` (needed), `--json` (one object a line).
//!
//! The bare client is the least a client can do: the same request over the same kind of connection, bytes cut into events
//! and each event read as JSON.

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use amplifier_core::clock::Clock;
use amplifier_core::contracts::{DeltaSink, HookEvent, HookFailure, HookHandler, Provider, ProviderCx};
use amplifier_core::hooks::HookSpec;
use amplifier_core::loader::{Loader, ModuleFinder};
use amplifier_core::session::SessionBuilder;
use amplifier_modules::BuiltIns;
use amplifier_protocol::chat::ChatRequest;
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::stream::StreamEvent;
use amplifier_protocol::time::Timestamp;
use amplifier_testing::TestCoordinator;
use async_trait::async_trait;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const PIECES: usize = 10_000;
/// How often the first piece is waited for.
const FIRSTS: usize = 401;
/// How often a whole stream is read.
const STREAMS: usize = 7;

fn main() -> Outcome {
    let arguments: Vec<_> = std::env::args().collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    let server = arguments.iter().skip_while(|argument| *argument != "--server").nth(1);
    let server = server.ok_or("`--server URL` is missing; `cargo xtask bench providers` gives it")?.clone();
    // One thread, so that what is spent is spent on this work.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(&server, &Report { json }))
}

async fn measure(server: &str, report: &Report) -> Outcome {
    let (_hub, provider) = provider(server).await?;
    let bare = reqwest::Client::builder().no_proxy().build()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..FIRSTS {
        // In turns, so that what else happens on the machine happens to both.
        ours.push(ask(&*provider, "chunks-1").await?.first);
        theirs.push(ask_bare(&bare, server, "chunks-1").await?.first);
    }
    let (ours, theirs) = (median(ours), median(theirs));
    report.time("first_piece", ours)?;
    report.time("first_piece_bare", theirs)?;
    report.time("first_piece_added", ours.saturating_sub(theirs))?;

    let model = format!("chunks-{PIECES}");
    let (mut ours, mut theirs, mut sessions) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..STREAMS {
        ours.push(Spent::by(async || ask(&*provider, &model).await.and_then(whole)).await?);
        theirs.push(Spent::by(async || ask_bare(&bare, server, &model).await.and_then(whole)).await?);
        sessions.push(in_session(server, &model).await?);
    }
    report.spent("stream_10k", ours)?;
    report.spent("stream_10k_bare", theirs)?;
    report.spent("stream_10k_session", sessions)?;

    let model = format!("paced-{PIECES}");
    report
        .spent("paced_10k", vec![Spent::by(async || ask(&*provider, &model).await.and_then(whole)).await?])?;
    report.spent("paced_10k_session", vec![in_session(server, &model).await?])
}

/// What came of a request: when its first piece, and how many.
struct Came {
    first: Duration,
    pieces: usize,
}

fn whole(came: Came) -> Outcome {
    // A stream of which half was lost would be fast for the wrong reason.
    if came.pieces == PIECES { Ok(()) } else { Err(format!("{} pieces came", came.pieces).into()) }
}

/// What something took: time, and work of this process.
#[derive(Clone, Copy)]
struct Spent {
    wall: Duration,
    work: Duration,
}

impl Spent {
    async fn by(run: impl AsyncFnOnce() -> Outcome) -> Outcome<Self> {
        let (began, worked) = (Instant::now(), work());
        run().await?;
        Ok(Self { wall: began.elapsed(), work: work().saturating_sub(worked) })
    }
}

fn work() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

async fn provider(server: &str) -> Outcome<(TestCoordinator, Arc<dyn Provider>)> {
    let hub = TestCoordinator::new();
    let module = BuiltIns.find(&"provider-chat-completions".parse()?).await?.ok_or("no such module")?;
    hub.mount(&*module, json!({"base_url": server, "model": "mock", "api_key": "none"})).await?;
    let (_, provider) = hub.providers().into_iter().next().ok_or("nothing was mounted")?;
    Ok((hub, provider))
}

async fn ask(provider: &dyn Provider, model: &str) -> Outcome<Came> {
    let request: ChatRequest =
        serde_json::from_value(json!({"model": model, "messages": [{"role": "user", "content": "hi"}]}))?;
    let (deltas, mut pieces) = DeltaSink::open();
    let cx = ProviderCx { deltas, ..ProviderCx::default() };
    let began = Instant::now();
    let (mut first, mut count) = (None, 0);
    let mut call = std::pin::pin!(provider.complete(request, &cx));
    loop {
        tokio::select! {
            biased;
            Some(piece) = pieces.recv() => {
                if matches!(piece, StreamEvent::TextDelta { .. }) {
                    first.get_or_insert_with(|| began.elapsed());
                    count += 1;
                }
            }
            answer = &mut call => { answer?; break }
        }
    }
    while let Ok(piece) = pieces.try_recv() {
        count += usize::from(matches!(piece, StreamEvent::TextDelta { .. }));
    }
    Ok(Came { first: first.ok_or("nothing was said")?, pieces: count })
}

/// The same request without anything of ours.
async fn ask_bare(client: &reqwest::Client, server: &str, model: &str) -> Outcome<Came> {
    let began = Instant::now();
    let body = json!({"model": model, "messages": [{"role": "user", "content": "hi"}], "stream": true,
        "stream_options": {"include_usage": true}});
    let request =
        client.post(format!("{server}/chat/completions")).header("content-type", "application/json");
    let mut response = request.body(body.to_string()).send().await?;
    let (mut buffer, mut first, mut count) = (Vec::new(), None, 0);
    while let Some(bytes) = response.chunk().await? {
        buffer.extend_from_slice(&bytes);
        let end = buffer.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for line in buffer.get(..end).unwrap_or_default().split(|byte| *byte == b'\n') {
            let Some(data) = line.strip_prefix(b"data: ").filter(|data| data.starts_with(b"{")) else {
                continue;
            };
            let event: Value = serde_json::from_slice(data)?;
            if event.pointer("/choices/0/delta/content").is_some_and(Value::is_string) {
                first.get_or_insert_with(|| began.elapsed());
                count += 1;
            }
        }
        buffer.drain(..end);
    }
    Ok(Came { first: first.ok_or("nothing was said")?, pieces: count })
}

/// Counts what a front end would show.
struct Counter(AtomicUsize);

#[async_trait]
impl HookHandler for Counter {
    async fn handle(&self, _event: &HookEvent) -> Result<HookResult, HookFailure> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(HookResult::proceed())
    }
}

struct WallClock;

impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "this program is the one that hands the clock in")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

/// A whole turn that streams: what reaches whoever listens to the session.
async fn in_session(server: &str, model: &str) -> Outcome<Spent> {
    let plan = MountPlan::read(&json!({
        "session": {"orchestrator": "loop-streaming", "context": "context-simple"},
        "providers": [{"module": "provider-chat-completions",
            "config": {"base_url": server, "model": model, "api_key": "none"}}],
    }))?;
    let loader = Arc::new(Loader::new().finder(Arc::new(BuiltIns)));
    let session = SessionBuilder::new(plan, loader, Arc::new(WallClock)).open().await?;
    let counter = Arc::new(Counter(AtomicUsize::new(0)));
    let spec = HookSpec::new("content_block:delta".parse()?, "counter");
    session.coordinator().hooks().on(spec, Arc::clone(&counter) as Arc<dyn HookHandler>);
    let spent = Spent::by(async || {
        session.execute("hi").await?;
        whole(Came { first: Duration::ZERO, pieces: counter.0.load(Ordering::Relaxed) })
    })
    .await?;
    session.cleanup().await;
    Ok(spent)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

struct Report {
    json: bool,
}

impl Report {
    fn time(&self, name: &str, took: Duration) -> Outcome {
        let mut out = std::io::stdout().lock();
        match self.json {
            true => {
                writeln!(out, "{}", json!({"name": name, "value": took.as_nanos() as u64, "unit": "ns"}))?
            }
            false => writeln!(out, "{name:<28} {took:>12.3?}")?,
        }
        Ok(())
    }

    fn spent(&self, name: &str, spent: Vec<Spent>) -> Outcome {
        self.time(&format!("{name}_wall"), median(spent.iter().map(|spent| spent.wall).collect()))?;
        self.time(&format!("{name}_cpu"), median(spent.iter().map(|spent| spent.work).collect()))
    }
}
