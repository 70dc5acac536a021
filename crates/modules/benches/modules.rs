//! What the modules cost. Options: `--json` (one object a line), as `benches/kernel.rs` prints them.
//!
//! A file per kind below `modules/`; each prints its own measurements. Nothing here talks to a network.

use std::error::Error;
use std::io::Write as _;
use std::time::{Duration, Instant};

use amplifier_core::clock::Clock;
use amplifier_protocol::time::Timestamp;

#[path = "modules/contexts.rs"]
mod contexts;
#[path = "modules/hooks.rs"]
mod hooks;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let json = std::env::args().any(|argument| argument == "--json");
    let mut report = Report { json };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(contexts::measure(&mut report))?;
    runtime.block_on(hooks::measure(&mut report))
}

/// The clock of the system.
struct WallClock;

impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "this program is the one that hands the clock in")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

/// Prints measurements as they come.
struct Report {
    json: bool,
}

impl Report {
    fn time(&mut self, name: &str, took: Duration) -> Outcome {
        let nanos = took.as_nanos();
        let mut out = std::io::stdout().lock();
        match self.json {
            true => writeln!(out, "{{\"name\":\"{name}\",\"value\":{nanos},\"unit\":\"ns\"}}")?,
            false => writeln!(out, "{name:<28} {took:>12.3?}")?,
        }
        Ok(())
    }
}

/// The middle of what several runs took.
async fn median<E>(runs: usize, mut run: impl AsyncFnMut() -> Result<Duration, E>) -> Result<Duration, E> {
    let mut took = Vec::with_capacity(runs);
    for _ in 0..runs {
        took.push(run().await?);
    }
    took.sort();
    Ok(took.get(runs / 2).copied().unwrap_or_default())
}

/// What one run of something took.
async fn timed<T>(run: impl Future<Output = T>) -> (T, Duration) {
    let began = Instant::now();
    let value = run.await;
    (value, began.elapsed())
}
