//! A session: open from the moment it exists until it is cleaned up. One turn at a time.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use amplifier_protocol::event::{CancelCompleted, CancelRequested, SessionEnd, SessionResume, SessionStart};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::mount_plan::{MountPlan, PlanForm};
use amplifier_protocol::status::{SessionState, SessionStatus};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};

use crate::cancel::{CancelLevel, CancelToken};
use crate::canonical::PlanHash;
use crate::clock::Clock;
use crate::contracts::{Prompt, TurnCx, TurnError};
use crate::coordinator::{Coordinator, MountPoint};
use crate::history::Interrupted;
use crate::loader::{Loader, run_cleanups};
use crate::redact::redact;
use crate::report::{LoadOutcome, LoadReport};
use crate::sync::lock;
use crate::watch::catching;

mod manner;
mod open;

pub use manner::{Readiness, Strictness};
pub use open::{OpenError, OpenFault, SessionBuilder};

/// A running assembly of modules that answers prompts. Clones are the same session.
///
/// Clean it up with [`Session::cleanup`]. When the last clone is dropped without, cleanup runs by itself in the
/// background, as long as the runtime lives.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
    _owner: Arc<Owner>,
}

struct Owner(Arc<Inner>);

struct Inner {
    coordinator: Coordinator,
    plan_hash: PlanHash,
    resumed: Option<Resumed>,
    loader: Arc<Loader>,
    clock: Arc<dyn Clock>,
    // Where cleanup runs, whichever thread lets go of the session.
    runtime: Handle,
    // What is fixed once the session is open; opening fills it.
    report: OnceLock<LoadReport>,
    phase: Mutex<Phase>,
    // Turns that have not fully ended, at most one; opening counts as one. A closing session waits for it.
    turns: AtomicU32,
    idle: Notify,
    greeted: AtomicBool,
    children: Mutex<Vec<Weak<Inner>>>,
    parent_cancel: Option<CancelToken>,
}

/// Where a resumed session came from.
struct Resumed {
    plan_hash: Option<String>,
    interrupted: Vec<Interrupted>,
}

enum Phase {
    Idle,
    Running,
    /// Cleanup is under way or done; everybody who asks waits for the same one.
    Closing(watch::Receiver<Option<Arc<CleanupReport>>>),
}

/// What went wrong while a session was cleaned up. Everything was tried whatever failed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CleanupReport {
    /// One line for each cleanup that failed, naming its module.
    pub failed: Vec<String>,
}

/// Why a prompt was not answered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExecuteError {
    /// Another turn of this session is running.
    #[error("session `{session}` is busy with another turn; wait for it or cancel it")]
    Busy {
        /// The session.
        session: SessionId,
    },
    /// The session was cleaned up.
    #[error("session `{session}` is closed")]
    Closed {
        /// The session.
        session: SessionId,
    },
    /// There is no orchestrator.
    #[error("No orchestrator mounted")]
    NoOrchestrator,
    /// There is no context.
    #[error("No context manager mounted")]
    NoContext,
    /// There is no provider.
    #[error("No providers mounted{}", because(reasons))]
    NoProviders {
        /// Why each provider of the plan is not there.
        reasons: Vec<String>,
    },
    /// The turn itself failed; this is the original error.
    #[error(transparent)]
    Turn(#[from] TurnError),
}

fn because(reasons: &[String]) -> String {
    if reasons.is_empty() {
        "; the plan lists none, add one under `providers`".to_owned()
    } else {
        format!(": {}", reasons.join("; "))
    }
}

/// A plan that is not the one a session was last opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanChange {
    /// The hash then.
    pub was: String,
    /// The hash now.
    pub is: PlanHash,
}

impl Session {
    /// The session's id.
    pub fn id(&self) -> &SessionId {
        self.inner.coordinator.session_id()
    }

    /// The hub, for applications that watch or extend the session.
    pub fn coordinator(&self) -> &Coordinator {
        &self.inner.coordinator
    }

    /// What came up and what did not.
    pub fn report(&self) -> &LoadReport {
        self.inner.report.get_or_init(LoadReport::default)
    }

    /// How the session stands and what it did.
    pub fn status(&self) -> SessionStatus {
        self.inner.coordinator.status()
    }

    /// The hash of the plan it was opened with.
    pub fn plan_hash(&self) -> &PlanHash {
        &self.inner.plan_hash
    }

    /// What changed in the plan since the session was last opened, if it was and did.
    pub fn plan_change(&self) -> Option<PlanChange> {
        let was = self.inner.resumed.as_ref()?.plan_hash.clone()?;
        let is = self.inner.plan_hash.clone();
        (was != is.to_string()).then_some(PlanChange { was, is })
    }

    /// The tool calls that were cut off when the session last ended, as the model is told about them.
    pub fn interrupted(&self) -> &[Interrupted] {
        self.inner.resumed.as_ref().map_or(&[], |resumed| &resumed.interrupted)
    }

    /// Answers a prompt. Refused while another turn runs.
    pub async fn execute(&self, prompt: impl Into<Prompt>) -> Result<String, ExecuteError> {
        let turn = TurnClaim::take(&self.inner)?;
        let coordinator = &self.inner.coordinator;
        self.greet().await;
        let orchestrator = coordinator.orchestrator().ok_or(ExecuteError::NoOrchestrator)?;
        if coordinator.bare_context().is_none() {
            return Err(ExecuteError::NoContext);
        }
        if coordinator.mounted(&MountPoint::Providers).is_empty() {
            return Err(ExecuteError::NoProviders { reasons: self.missing_providers() });
        }
        let number = coordinator.begin_turn();
        coordinator.update_status(|status| {
            status.status = SessionState::Running;
            status.turns = number;
        });
        let cx = TurnCx { coordinator: coordinator.clone(), turn: number };
        let answer = self.bounded(orchestrator.execute(prompt.into(), &cx)).await;
        // Durable before it is shown: what was said is never lost.
        let answer = match coordinator.sync_journal().await {
            Ok(()) => answer,
            Err(error) => answer.and(Err(TurnError::Journal { message: error.message })),
        };
        self.conclude(&answer).await;
        drop(turn);
        answer.map_err(ExecuteError::Turn)
    }

    /// Asks the running turn and all children to stop. True when that is news.
    pub async fn cancel(&self, level: CancelLevel) -> bool {
        self.inner.cancel(level).await
    }

    /// Forgets an earlier wish to stop, so that the next turn runs.
    pub fn reset_cancel(&self) {
        // Held over the reset, so that a cleanup that begins now asks after it: what a closing session told to stop
        // must not be told to go on.
        let phase = lock(&self.inner.phase);
        if !matches!(*phase, Phase::Closing(_)) {
            self.inner.coordinator.cancel().reset();
        }
    }

    /// A child session: its spending counts here too, and a cancel reaches it.
    pub fn child(&self, plan: MountPlan) -> SessionBuilder {
        SessionBuilder::child_of(self, plan)
    }

    /// Ends the session: stops a running turn and all children, says `session:end`, runs every cleanup in reverse order.
    ///
    /// Runs to its end even when the caller goes away; a second call waits for the first.
    pub async fn cleanup(&self) -> Arc<CleanupReport> {
        self.inner.close().await
    }

    /// Says once in the session's life that it begins, or goes on.
    async fn greet(&self) {
        if self.inner.greeted.swap(true, Ordering::AcqRel) {
            return;
        }
        let coordinator = &self.inner.coordinator;
        let (session_id, parent_id) = (coordinator.session_id().clone(), coordinator.parent_id().cloned());
        let (metadata, raw) = (coordinator.plan().session.metadata.clone(), raw_plan(coordinator.plan()));
        if self.inner.resumed.is_some() {
            coordinator.emit(SessionResume { session_id, parent_id, metadata, raw }).await;
        } else {
            coordinator.emit(SessionStart { session_id, parent_id, metadata, raw }).await;
        }
    }

    fn missing_providers(&self) -> Vec<String> {
        let providers = self.report().modules.iter().filter(|entry| entry.kind.as_str() == "provider");
        providers
            .filter(|entry| !matches!(entry.outcome, LoadOutcome::Mounted { .. }))
            .map(ToString::to_string)
            .collect()
    }

    /// Runs the turn; ends it when it does not end itself soon after an immediate cancel or when its time is up.
    async fn bounded(
        &self,
        turn: impl Future<Output = Result<String, TurnError>>,
    ) -> Result<String, TurnError> {
        let coordinator = &self.inner.coordinator;
        // Calls get one grace to end; the loop around them gets more, to write down what they gave.
        let grace = coordinator.deadlines().cancel_grace.saturating_mul(5);
        let cut_off = async {
            coordinator.cancel().cancelled(CancelLevel::Immediate).await;
            tokio::time::sleep(grace).await;
        };
        // Whoever raised the level: this session, a parent, or an application that holds the token.
        let telling = async {
            for level in [CancelLevel::Graceful, CancelLevel::Immediate] {
                coordinator.cancel().cancelled(level).await;
                self.inner.tell_cancel(coordinator.cancel().level()).await;
            }
            std::future::pending().await
        };
        let out_of_time = async {
            match coordinator.ledger().wall_time_left() {
                Some(left) => tokio::time::sleep(left.saturating_add(grace)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            answer = catching(turn) => answer.unwrap_or_else(|fault| Err(TurnError::Broken { message: fault.to_string() })),
            () = cut_off => Err(TurnError::Cancelled),
            () = telling => Err(TurnError::Cancelled),
            () = coordinator.watch_loop() => Err(TurnError::Cancelled),
            () = out_of_time => {
                coordinator.ledger().out_of_time("turn")?;
                Err(TurnError::Cancelled)
            }
        }
    }

    async fn conclude(&self, answer: &Result<String, TurnError>) {
        let coordinator = &self.inner.coordinator;
        let level = coordinator.cancel().level();
        let error = answer.as_ref().err().map(ToString::to_string);
        let state = match (&error, level) {
            (_, CancelLevel::Graceful | CancelLevel::Immediate) => SessionState::Cancelled,
            (Some(_), CancelLevel::None) => SessionState::Failed,
            (None, CancelLevel::None) => SessionState::Completed,
        };
        coordinator.update_status(|status| {
            status.status = state;
            status.last_error.clone_from(&error);
        });
        if state == SessionState::Cancelled {
            self.inner.tell_cancel(level).await;
            let was_immediate = level == CancelLevel::Immediate;
            coordinator.emit(CancelCompleted { was_immediate, error }).await;
        }
        if let Err(TurnError::Limit(limit)) = answer {
            let policy = limit.unit.to_string();
            coordinator.report_refusal(&policy, &limit.asked_by, limit.to_string()).await;
        }
    }
}

/// The plan without secrets, when it asks to be told.
pub(crate) fn raw_plan(plan: &MountPlan) -> Option<Value> {
    plan.session.raw.then(|| redact(&plan.write(PlanForm::Nested)))
}

/// The right to run a turn; given back however the turn ends.
struct TurnClaim {
    inner: Arc<Inner>,
}

impl TurnClaim {
    fn take(inner: &Arc<Inner>) -> Result<Self, ExecuteError> {
        let session = || inner.coordinator.session_id().clone();
        let mut phase = lock(&inner.phase);
        match &*phase {
            Phase::Running => Err(ExecuteError::Busy { session: session() }),
            Phase::Closing(_) => Err(ExecuteError::Closed { session: session() }),
            Phase::Idle => {
                *phase = Phase::Running;
                inner.turns.fetch_add(1, Ordering::AcqRel);
                Ok(Self { inner: Arc::clone(inner) })
            }
        }
    }
}

impl Drop for TurnClaim {
    fn drop(&mut self) {
        let mut phase = lock(&self.inner.phase);
        if matches!(*phase, Phase::Running) {
            *phase = Phase::Idle;
        }
        drop(phase);
        self.inner.coordinator.update_status(|status| {
            // Still running here means that the caller went away in the middle of the turn.
            if status.status == SessionState::Running && status.turns > 0 {
                status.status = SessionState::Cancelled;
            }
        });
        self.inner.turns.fetch_sub(1, Ordering::AcqRel);
        self.inner.idle.notify_waiters();
    }
}

impl Inner {
    async fn cancel(&self, level: CancelLevel) -> bool {
        let news = self.coordinator.cancel().request(level);
        if news {
            self.tell_cancel(level).await;
        }
        news
    }

    /// Tells each level once, whoever raised it and whoever sees it first.
    async fn tell_cancel(&self, level: CancelLevel) {
        if self.coordinator.cancel().tell(level) {
            self.coordinator.report(CancelRequested { state: level.to_string(), reason: None }).await;
        }
    }

    async fn close(self: &Arc<Self>) -> Arc<CleanupReport> {
        let mut done = self.begin_close();
        match done.wait_for(Option::is_some).await {
            Ok(report) => report.clone().unwrap_or_default(),
            // The closing task was torn down with its runtime.
            Err(_) => Arc::new(CleanupReport { failed: vec!["the runtime ended during cleanup".to_owned()] }),
        }
    }

    /// Starts the one closing task, or finds it.
    fn begin_close(self: &Arc<Self>) -> watch::Receiver<Option<Arc<CleanupReport>>> {
        let mut phase = lock(&self.phase);
        if let Phase::Closing(done) = &*phase {
            return done.clone();
        }
        let (sender, done) = watch::channel(None);
        *phase = Phase::Closing(done.clone());
        drop(phase);
        let inner = Arc::clone(self);
        self.runtime.spawn(async move {
            let report = inner.wind_up().await;
            sender.send_replace(Some(Arc::new(report)));
        });
        done
    }

    async fn wind_up(&self) -> CleanupReport {
        let coordinator = &self.coordinator;
        if self.turns.load(Ordering::Acquire) > 0 {
            self.cancel(CancelLevel::Immediate).await;
            self.wait_idle().await;
        }
        self.close_children().await;
        let stats = coordinator.status();
        if self.report.get().is_some() {
            let (session_id, status) = (coordinator.session_id().clone(), stats.status);
            coordinator.emit(SessionEnd { session_id, status, stats: Some(stats) }).await;
        }
        // From here on no child can come up: it would take this level at birth. Those that came meanwhile go now.
        coordinator.cancel().request_immediate();
        self.close_children().await;
        let mut failed = run_cleanups(coordinator, 0).await;
        if let Err(error) = coordinator.sync_journal().await {
            failed.push(error.to_string());
        }
        let now = coordinator.now();
        coordinator.update_status(|status| status.ended_at = Some(now));
        coordinator.tell_spending();
        coordinator.dismantle();
        coordinator.ledger().close();
        if let Some(parent) = &self.parent_cancel {
            parent.unregister_child(coordinator.cancel());
        }
        CleanupReport { failed }
    }

    async fn close_children(&self) {
        let children: Vec<_> = lock(&self.children).drain(..).filter_map(|child| child.upgrade()).collect();
        for child in children {
            child.cancel(CancelLevel::Immediate).await;
            Box::pin(child.close()).await;
        }
    }

    /// Waits for the running turn, which was told to stop. It ends within its grace; twice that is a broken clock.
    async fn wait_idle(&self) {
        let patience =
            self.coordinator.deadlines().cancel_grace.saturating_mul(10).max(Duration::from_secs(2));
        let idle = async {
            loop {
                let notified = self.idle.notified();
                tokio::pin!(notified);
                notified.as_mut().enable();
                if self.turns.load(Ordering::Acquire) == 0 {
                    return;
                }
                notified.await;
            }
        };
        drop(tokio::time::timeout(patience, idle).await);
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        drop(self.0.begin_close());
    }
}
