//! What came of a suite, and how its clauses are run.

use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::time::Duration;

/// What came of a suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Which contract.
    pub contract: &'static str,
    /// Its clauses, in the order they were checked.
    pub clauses: Vec<Clause>,
}

/// One clause of a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// The clause, as a sentence.
    pub name: &'static str,
    /// Whether it was kept; if not, what was seen instead.
    pub outcome: Result<(), String>,
}

impl Report {
    /// The clauses that were not kept.
    pub fn failed(&self) -> impl Iterator<Item = &Clause> {
        self.clauses.iter().filter(|clause| clause.outcome.is_err())
    }

    /// Panics with every clause that was not kept.
    #[expect(clippy::panic, reason = "an assertion for tests")]
    pub fn assert(&self) {
        if self.failed().next().is_some() {
            panic!("{self}");
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (failed, all) = (self.failed().count(), self.clauses.len());
        write!(f, "{} contract: {failed} of {all} clauses not kept", self.contract)?;
        for clause in &self.clauses {
            if let Err(seen) = &clause.outcome {
                write!(f, "\n  - {}: {seen}", clause.name)?;
            }
        }
        Ok(())
    }
}

/// How long a clause may take: long enough for a slow machine, short enough for a hung module.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long "soon" is.
const SOON: Duration = Duration::from_secs(2);

/// A suite while it runs.
pub(super) struct Suite(Report);

/// What a clause says about what it saw.
pub(super) type Seen = Result<(), String>;

impl Suite {
    pub(super) fn new(contract: &'static str) -> Self {
        Self(Report { contract, clauses: Vec::new() })
    }

    /// Checks one clause.
    pub(super) async fn clause(&mut self, name: &'static str, check: impl Future<Output = Seen>) {
        let outcome = match tokio::time::timeout(PATIENCE, catching(check)).await {
            Ok(Ok(seen)) => seen,
            Ok(Err(panic)) => Err(format!("panicked: {panic}")),
            Err(_) => Err(format!("nothing happened for {} s", PATIENCE.as_secs())),
        };
        self.0.clauses.push(Clause { name, outcome });
    }

    pub(super) fn finish(self) -> Report {
        self.0
    }
}

async fn catching<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let mut future = pin!(future);
    // What the future left half done is dropped with it; the report only says that it broke.
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => std::task::Poll::Ready(Err(panic_text(&*panic))),
    })
    .await
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without text".to_owned())
}

/// Says what was seen, unless it is as it should be.
#[expect(clippy::fn_params_excessive_bools, reason = "an assertion takes its condition, as `assert!` does")]
pub(super) fn ensure(kept: bool, seen: impl FnOnce() -> String) -> Seen {
    if kept { Ok(()) } else { Err(seen()) }
}

/// The answer, if it comes soon.
pub(super) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> Result<T, String> {
    let answer = tokio::time::timeout(SOON, future).await;
    answer.map_err(|_| format!("{what} took longer than {} s", SOON.as_secs()))
}

/// Whether a value is the same after it was written and read.
pub(super) fn round_trip<T>(value: &T) -> Seen
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + fmt::Debug,
{
    let text = serde_json::to_string(value).map_err(|error| format!("cannot be written: {error}"))?;
    let back: T = serde_json::from_str(&text).map_err(|error| format!("cannot be read back: {error}"))?;
    ensure(back == *value, || format!("{value:?} came back as {back:?}"))
}
