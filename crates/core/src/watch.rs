//! Bounded calls: nothing the kernel waits for can wait forever or take the session down with a panic.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::panic_text;

/// How long the kernel waits, by what it waits for. Seconds in a plan's `session.deadlines`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Deadlines {
    /// For a module to mount.
    #[serde(with = "seconds")]
    pub mount: Duration,
    /// For a ready callback.
    #[serde(with = "seconds")]
    pub ready: Duration,
    /// For a hook handler that names no time of its own.
    #[serde(with = "seconds")]
    pub hook: Duration,
    /// For the context.
    #[serde(with = "seconds")]
    pub context: Duration,
    /// For a tool, since its last sign of life.
    #[serde(with = "seconds")]
    pub tool: Duration,
    /// For a model, since its last sign of life.
    #[serde(with = "seconds")]
    pub provider: Duration,
    /// For a capability that is called. Long, for `session.spawn` runs a whole session in one call.
    #[serde(with = "seconds")]
    pub capability: Duration,
    /// For a contributor.
    #[serde(with = "seconds")]
    pub contributor: Duration,
    /// For the journal to make its records durable.
    #[serde(with = "seconds")]
    pub journal: Duration,
    /// For one cleanup.
    #[serde(with = "seconds")]
    pub cleanup: Duration,
    /// After this long a call is reported as stalled.
    #[serde(with = "seconds")]
    pub stall: Duration,
    /// How long after an immediate cancel a call may still end by itself.
    #[serde(with = "seconds")]
    pub cancel_grace: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            mount: Duration::from_secs(60),
            ready: Duration::from_secs(30),
            hook: Duration::from_secs(30),
            context: Duration::from_secs(60),
            tool: Duration::from_secs(600),
            provider: Duration::from_secs(600),
            capability: Duration::from_secs(3_600),
            contributor: Duration::from_secs(10),
            journal: Duration::from_secs(60),
            cleanup: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            cancel_grace: Duration::from_millis(100),
        }
    }
}

impl Deadlines {
    /// The deadlines of a plan; what it does not name keeps its default.
    pub fn read(section: &Map<String, Value>) -> Result<Self, serde_json::Error> {
        serde_json::from_value(Value::Object(section.clone()))
    }
}

mod seconds {
    use super::{D, Duration, S};

    pub(super) fn serialize<Ser: S>(duration: &Duration, serializer: Ser) -> Result<Ser::Ok, Ser::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    pub(super) fn deserialize<'de, De: D<'de>>(deserializer: De) -> Result<Duration, De::Error> {
        super::read_seconds(deserializer)
    }
}

use serde::{Deserializer as D, Serializer as S};

fn read_seconds<'de, De: D<'de>>(deserializer: De) -> Result<Duration, De::Error> {
    let seconds = f64::deserialize(deserializer)?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(De::Error::custom(format!("{seconds} is not a positive number of seconds"))),
    }
}

/// Why a bounded call gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("no answer within {:.1} s", deadline.as_secs_f64())]
    Late { deadline: Duration },
    #[error("panicked: {message}")]
    Panicked { message: String },
}

/// Waits for `future`, at most `deadline` long, and turns a panic into a value.
///
/// The future is polled once before a timer is made: most calls are ready at once and should not pay for one.
pub(crate) async fn within<T>(deadline: Duration, future: impl Future<Output = T>) -> Result<T, Fault> {
    let mut future = pin!(future);
    let mut answer = None;
    poll_fn(|cx| poll_once(future.as_mut(), cx, &mut answer)).await;
    match answer {
        Some(answer) => answer,
        None => waiting(deadline, future).await,
    }
}

/// Waits for a future that did not answer at once.
pub(crate) async fn waiting<T, F>(deadline: Duration, mut future: Pin<&mut F>) -> Result<T, Fault>
where
    F: Future<Output = T> + ?Sized,
{
    let answered = poll_fn(|cx| {
        let mut answer = None;
        poll_into(future.as_mut(), cx, &mut answer);
        answer.map_or(Poll::Pending, Poll::Ready)
    });
    tokio::select! {
        biased;
        answer = answered => answer,
        () = tokio::time::sleep(deadline) => Err(Fault::Late { deadline }),
    }
}

/// Turns a panic inside `future` into a value.
pub(crate) async fn catching<T>(future: impl Future<Output = T>) -> Result<T, Fault> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let mut answer = None;
        poll_into(future.as_mut(), cx, &mut answer);
        answer.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Polls once, for `poll_fn`: always ready, with an answer in its place or without.
///
/// Answers of hooks are large and hooks are many, so the answer is put where it is wanted instead of being handed up.
pub(crate) fn poll_once<T, F>(
    future: Pin<&mut F>,
    cx: &mut Context<'_>,
    answer: &mut Option<Result<T, Fault>>,
) -> Poll<()>
where
    F: Future<Output = T> + ?Sized,
{
    poll_into(future, cx, answer);
    Poll::Ready(())
}

fn poll_into<T, F>(future: Pin<&mut F>, cx: &mut Context<'_>, answer: &mut Option<Result<T, Fault>>)
where
    F: Future<Output = T> + ?Sized,
{
    // Whatever the future left half done is dropped with it and never looked at again.
    let caught = catch_unwind(AssertUnwindSafe(|| {
        if let Poll::Ready(value) = future.poll(cx) {
            *answer = Some(Ok(value));
        }
    }));
    if let Err(panic) = caught {
        *answer = Some(Err(Fault::Panicked { message: panic_text(&*panic) }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_never_returns_is_given_up_and_what_panics_is_a_value() {
        let late = within(Duration::from_secs(3), std::future::pending::<()>()).await;
        assert_eq!(late, Err(Fault::Late { deadline: Duration::from_secs(3) }));
        let broken = within(Duration::from_secs(3), async {
            tokio::task::yield_now().await;
            panic!("boom")
        });
        assert_eq!(broken.await, Err::<(), _>(Fault::Panicked { message: "boom".to_owned() }));
        assert_eq!(within(Duration::from_secs(3), async { 7 }).await, Ok(7));
    }

    #[test]
    fn deadlines_are_positive_seconds_and_misspelt_ones_are_errors() {
        let read = |json: &str| Deadlines::read(&serde_json::from_str(json).unwrap());
        assert_eq!(read(r#"{"tool": 1.5}"#).unwrap().tool, Duration::from_millis(1500));
        assert_eq!(read("{}").unwrap(), Deadlines::default());
        for bad in [r#"{"tools": 1}"#, r#"{"tool": 0}"#, r#"{"tool": -1}"#, r#"{"tool": "1"}"#] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
