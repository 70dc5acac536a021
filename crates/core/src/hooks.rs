//! The hook registry: who listens to what, in which order, and what they said together.
//!
//! It dispatches and reports; it applies nothing. [`crate::coordinator::Coordinator::emit`] does both.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use amplifier_protocol::event::CallStalled;
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::ids::EventName;
use amplifier_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::clock::Clock;
use crate::contracts::{HookEvent, HookFailure, HookHandler};
use crate::coordinator::millis;
use crate::sync::{read, write};
use crate::watch::{Fault, poll_once, waiting, within};

mod outcome;
mod pattern;

pub use outcome::{Decision, HandlerFailure, Outcome, Sourced};
pub use pattern::{EventPattern, PatternError};

/// What happens to an event when a handler fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailurePolicy {
    /// The event goes on without it.
    #[default]
    Open,
    /// The event is denied: a broken gate is a closed gate.
    Closed,
}

impl FailurePolicy {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

/// How a handler is registered.
#[derive(Debug, Clone, PartialEq)]
pub struct HookSpec {
    /// Which events it hears.
    pub pattern: EventPattern,
    /// Its name in messages and timings; need not be unique.
    pub name: String,
    /// Lower runs first; equal ones in the order of registration.
    pub priority: i32,
    /// How long it may take; `None` takes the session's default.
    pub timeout: Option<Duration>,
    /// What its failure means.
    pub on_failure: FailurePolicy,
}

impl HookSpec {
    /// A handler at priority 0 whose failure lets events go on.
    pub fn new(pattern: EventPattern, name: impl Into<String>) -> Self {
        Self { pattern, name: name.into(), priority: 0, timeout: None, on_failure: FailurePolicy::Open }
    }

    /// The same, at another priority.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// The same, as a gate: its failure denies the event.
    #[must_use]
    pub fn closed(mut self) -> Self {
        self.on_failure = FailurePolicy::Closed;
        self
    }
}

/// Names one registration, and only that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HandlerId(u64);

/// What a handler has cost so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandlerTiming {
    /// The handler.
    pub name: String,
    /// What it listens to.
    pub pattern: String,
    /// How often it ran.
    pub calls: u64,
    /// How often it failed.
    pub failures: u64,
    /// How many of its runs were timed: every one that did not answer at once, and some of the others.
    pub timed: u64,
    /// All the time of the timed runs.
    pub total_micros: u64,
    /// The longest of them.
    pub max_micros: u64,
}

/// Of the runs that answer at once, one in this many is timed, the first among them.
const TIMED_EVERY: u64 = 8;

type Answer = Result<Result<HookResult, HookFailure>, Fault>;

struct Registration {
    id: HandlerId,
    spec: HookSpec,
    handler: Arc<dyn HookHandler>,
    calls: AtomicU64,
    failures: AtomicU64,
    timed: AtomicU64,
    total_micros: AtomicU64,
    max_micros: AtomicU64,
}

/// Who is told of handlers that make an event wait, and after how long.
pub(crate) struct Watch<'a> {
    pub(crate) stall: Duration,
    pub(crate) told: &'a (dyn Fn(CallStalled) + Send + Sync),
}

/// The handlers of one session.
pub struct Hooks {
    // Sorted by priority, then registration. An emit works on the list as it was when the emit began.
    registrations: RwLock<Arc<[Arc<Registration>]>>,
    next_id: AtomicU64,
    default_timeout: Duration,
    clock: Arc<dyn Clock>,
}

impl Hooks {
    /// No handlers yet. Handlers without a time of their own get `default_timeout`.
    pub fn new(default_timeout: Duration, clock: Arc<dyn Clock>) -> Self {
        let registrations = RwLock::new(Arc::from(Vec::new()));
        Self { registrations, next_id: AtomicU64::new(0), default_timeout, clock }
    }

    /// Registers a handler.
    #[doc(alias = "register")]
    pub fn on(&self, spec: HookSpec, handler: Arc<dyn HookHandler>) -> HandlerId {
        let id = HandlerId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let entry = Arc::new(Registration {
            id,
            spec,
            handler,
            calls: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            timed: AtomicU64::new(0),
            total_micros: AtomicU64::new(0),
            max_micros: AtomicU64::new(0),
        });
        let mut registrations = write(&self.registrations);
        let at = registrations.partition_point(|known| known.spec.priority <= entry.spec.priority);
        let mut list = registrations.to_vec();
        list.insert(at, entry);
        *registrations = Arc::from(list);
        id
    }

    /// Removes exactly that registration. False when it was removed before.
    pub fn unregister(&self, id: HandlerId) -> bool {
        let mut registrations = write(&self.registrations);
        let list: Vec<_> = registrations.iter().filter(|known| known.id != id).cloned().collect();
        let removed = list.len() < registrations.len();
        let old = std::mem::replace(&mut *registrations, Arc::from(list));
        drop(registrations);
        // Outside the lock: a handler that is dropped here may come back to the registry.
        drop(old);
        removed
    }

    /// Removes everything.
    pub(crate) fn clear(&self) {
        let old = std::mem::replace(&mut *write(&self.registrations), Arc::from(Vec::new()));
        drop(old);
    }

    /// The names of the handlers that hear this event, in the order they run.
    pub fn list(&self, event: &EventName) -> Vec<String> {
        self.hearing(event).map(|known| known.spec.name.clone()).collect()
    }

    /// Whether anybody hears this event.
    pub fn has(&self, event: &str) -> bool {
        read(&self.registrations).iter().any(|known| known.spec.pattern.matches(event))
    }

    /// What every handler has cost so far, in running order.
    pub fn timings(&self) -> Vec<HandlerTiming> {
        let registrations = Arc::clone(&read(&self.registrations));
        let timing = |known: &Arc<Registration>| HandlerTiming {
            name: known.spec.name.clone(),
            pattern: known.spec.pattern.to_string(),
            calls: known.calls.load(Ordering::Relaxed),
            failures: known.failures.load(Ordering::Relaxed),
            timed: known.timed.load(Ordering::Relaxed),
            total_micros: known.total_micros.load(Ordering::Relaxed),
            max_micros: known.max_micros.load(Ordering::Relaxed),
        };
        registrations.iter().map(timing).collect()
    }

    /// Passes an event through its handlers and joins their answers. Applies nothing.
    pub async fn dispatch(&self, event: HookEvent) -> Outcome {
        self.dispatch_watched(event, &Watch { stall: Duration::MAX, told: &|_| {} }).await
    }

    /// The same, and tells of a handler that makes the event wait for long.
    pub(crate) async fn dispatch_watched(&self, mut event: HookEvent, watch: &Watch<'_>) -> Outcome {
        let registrations = Arc::clone(&read(&self.registrations));
        let mut outcome = Outcome::default();
        for entry in registrations.iter().filter(|entry| entry.spec.pattern.matches(event.name.as_str())) {
            let mut answer = None;
            let since = entry.begin(&self.clock);
            let mut running = entry.handler.handle(&event);
            poll_fn(|cx| poll_once(running.as_mut(), cx, &mut answer)).await;
            let answer = match answer {
                Some(answer) => answer,
                // Boxed: seldom needed, and every event would carry its size.
                None => Box::pin(self.wait_for(entry, since, running.as_mut(), (&event.name, watch))).await,
            };
            drop(running);
            entry.end(since, &self.clock, &answer);
            match answer {
                Ok(Ok(result)) => outcome.take(&entry.spec.name, result, &mut event.data),
                Ok(Err(failure)) => outcome.fail(&entry.spec.name, failure.message, entry.spec.on_failure),
                Err(fault) => outcome.fail(&entry.spec.name, fault.to_string(), entry.spec.on_failure),
            }
            if outcome.is_denied() {
                break;
            }
        }
        outcome.data = event.data;
        outcome
    }

    /// Waits for a handler that did not answer at once; whoever makes an event wait is always timed.
    async fn wait_for<F>(
        &self,
        entry: &Registration,
        since: Option<Timestamp>,
        mut running: Pin<&mut F>,
        (event, watch): (&EventName, &Watch<'_>),
    ) -> Answer
    where
        F: Future<Output = Result<HookResult, HookFailure>> + ?Sized,
    {
        let began = self.clock.now();
        let deadline = entry.spec.timeout.unwrap_or(self.default_timeout);
        let mut answer = waiting(watch.stall.min(deadline), running.as_mut()).await;
        if watch.stall < deadline && matches!(answer, Err(Fault::Late { .. })) {
            let (owner, operation) = (entry.spec.name.clone(), format!("hook on {event}"));
            let (waited_ms, deadline_ms) = (millis(watch.stall), millis(deadline));
            (watch.told)(CallStalled { owner, operation, waited_ms, deadline_ms });
            answer = match waiting(deadline - watch.stall, running).await {
                Err(Fault::Late { .. }) => Err(Fault::Late { deadline }),
                other => other,
            };
        }
        if since.is_none() {
            entry.took(self.clock.now().since(began));
        }
        answer
    }

    /// Asks every handler of an event for data, for decisions that gather proposals. No action has any effect here;
    /// a handler that fails or takes longer than `timeout` gives nothing.
    pub async fn collect(&self, event: HookEvent, timeout: Duration) -> Vec<Map<String, Value>> {
        let mut gathered = Vec::new();
        for entry in self.hearing(&event.name) {
            let since = entry.begin(&self.clock);
            let answer = within(timeout, entry.handler.handle(&event)).await;
            entry.end(since, &self.clock, &answer);
            if let Ok(Ok(result)) = answer {
                gathered.extend(result.data);
            }
        }
        gathered
    }

    fn hearing(&self, event: &EventName) -> impl Iterator<Item = Arc<Registration>> {
        let registrations = Arc::clone(&read(&self.registrations));
        let hearing: Vec<_> = registrations
            .iter()
            .filter(|known| known.spec.pattern.matches(event.as_str()))
            .cloned()
            .collect();
        hearing.into_iter()
    }
}

impl Registration {
    /// Counts a run and says when it began, if it is to be timed: looking at the clock costs as much as a handler that
    /// has nothing to say.
    fn begin(&self, clock: &Arc<dyn Clock>) -> Option<Timestamp> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        number.is_multiple_of(TIMED_EVERY).then(|| clock.now())
    }

    fn end(&self, since: Option<Timestamp>, clock: &Arc<dyn Clock>, answer: &Answer) {
        if let Some(since) = since {
            self.took(clock.now().since(since));
        }
        if !matches!(answer, Ok(Ok(_))) {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn took(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.timed.fetch_add(1, Ordering::Relaxed);
        self.total_micros.fetch_add(micros, Ordering::Relaxed);
        self.max_micros.fetch_max(micros, Ordering::Relaxed);
    }
}
