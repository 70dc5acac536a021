//! The coordinator: the hub of one session, through which modules find each other.
//!
//! It holds what is mounted, passes events through hooks and applies what they say, and carries every call into the
//! world: with a limit, a deadline, an owner, a record and a way to cancel. It decides nothing about the conversation.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use amplifier_protocol::ids::{ModuleId, SessionId};
use amplifier_protocol::mount_plan::{
    DEFAULT_INJECTION_BUDGET_PER_TURN, DEFAULT_INJECTION_SIZE_LIMIT, MountPlan,
};
use amplifier_protocol::record::RecordBody;
use amplifier_protocol::spend::Amounts;
use amplifier_protocol::status::SessionStatus;
use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::cancel::CancelToken;
use crate::clock::Clock;
use crate::contracts::{ApprovalSystem, Cleanup, DisplaySystem, Ready};
use crate::hooks::{Hooks, Outcome};
use crate::journal::{Journal, JournalError, Recorder};
use crate::ledger::Ledger;
use crate::sync::{lock, read, write};
use crate::watch::{Deadlines, within};

mod approvals;
mod calls;
mod capabilities;
mod context;
mod emit;
mod injections;
mod mounts;
mod spending;
mod waits;

pub(crate) use calls::millis;
pub use calls::{CallError, InFlight};
pub use emit::Emitted;
pub use injections::InjectionRefused;
pub use mounts::{MountError, MountPoint};
pub(crate) use mounts::{Mounts, Replaced};

/// The hub of one session. Clones are the same hub.
#[derive(Clone)]
pub struct Coordinator(Arc<Inner>);

/// What a coordinator is made of. Everything the kernel does not own is handed in here.
pub struct Parts {
    /// The session.
    pub session_id: SessionId,
    /// Its parent, for a child.
    pub parent_id: Option<SessionId>,
    /// The hub of its parent, which is told what is spent here.
    pub parent: Option<Coordinator>,
    /// What the session spent before it was opened, when it goes on; its parent knows of that.
    pub spent_before: Amounts,
    /// What it was opened from.
    pub plan: Arc<MountPlan>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Keeps the records.
    pub journal: Option<Arc<dyn Journal>>,
    /// Counts and refuses.
    pub ledger: Ledger,
    /// How long to wait for what.
    pub deadlines: Deadlines,
    /// Who is asked.
    pub approval: Option<Arc<dyn ApprovalSystem>>,
    /// Where messages for the person go.
    pub display: Option<Arc<dyn DisplaySystem>>,
    /// The number of the last record, when the session goes on.
    pub last_sequence: u64,
    /// The number of the last turn, when the session goes on.
    pub last_turn: u64,
}

struct Inner {
    session_id: SessionId,
    parent_id: Option<SessionId>,
    above: Option<Box<spending::Above>>,
    plan: Arc<MountPlan>,
    recorder: Recorder,
    hooks: Hooks,
    ledger: Ledger,
    deadlines: Deadlines,
    cancel: CancelToken,
    mounts: RwLock<Mounts>,
    capabilities: RwLock<capabilities::Capabilities>,
    state: Mutex<Map<String, Value>>,
    approval: RwLock<Option<Arc<dyn ApprovalSystem>>>,
    display: RwLock<Option<Arc<dyn DisplaySystem>>>,
    desk: approvals::Desk,
    injections: injections::Budget,
    turn: AtomicU64,
    // Names requests and dispatches; never used twice.
    numbers: AtomicU64,
    // Outcomes that a hosted loop was shown and has not yet asked to apply, by the number it was given.
    pending: Mutex<IndexMap<u64, Outcome>>,
    in_flight: Mutex<Vec<InFlight>>,
    status: Mutex<SessionStatus>,
    cleanups: Mutex<Vec<(ModuleId, Box<dyn Cleanup>)>>,
    ready: Mutex<Vec<(ModuleId, Box<dyn Ready>)>>,
}

impl Coordinator {
    /// A hub with nothing mounted.
    pub fn new(parts: Parts) -> Self {
        let session = &parts.plan.session;
        let injections = injections::Budget::new(
            session.injection_budget_per_turn.resolve(DEFAULT_INJECTION_BUDGET_PER_TURN),
            session.injection_size_limit.resolve(DEFAULT_INJECTION_SIZE_LIMIT),
        );
        let status = SessionStatus::new(parts.session_id.clone(), parts.clock.now());
        Self(Arc::new(Inner {
            recorder: Recorder::new(parts.journal, Arc::clone(&parts.clock), parts.last_sequence),
            hooks: Hooks::new(parts.deadlines.hook, parts.clock),
            session_id: parts.session_id,
            parent_id: parts.parent_id,
            above: parts.parent.map(|hub| Box::new(spending::Above::new(hub, parts.spent_before))),
            plan: parts.plan,
            ledger: parts.ledger,
            deadlines: parts.deadlines,
            cancel: CancelToken::new(),
            mounts: RwLock::default(),
            capabilities: RwLock::default(),
            state: Mutex::default(),
            approval: RwLock::new(parts.approval),
            display: RwLock::new(parts.display),
            desk: approvals::Desk::new(),
            injections,
            turn: AtomicU64::new(parts.last_turn),
            // Numbers name requests, and a session that goes on must not use a name again: no process uses more numbers
            // than it makes records.
            numbers: AtomicU64::new(parts.last_sequence),
            pending: Mutex::default(),
            in_flight: Mutex::default(),
            status: Mutex::new(status),
            cleanups: Mutex::default(),
            ready: Mutex::default(),
        }))
    }

    /// The session.
    pub fn session_id(&self) -> &SessionId {
        &self.0.session_id
    }

    /// Its parent, for a child.
    pub fn parent_id(&self) -> Option<&SessionId> {
        self.0.parent_id.as_ref()
    }

    /// What the session was opened from. References such as `${VAR}` stand as they were written.
    #[doc(alias = "config")]
    pub fn plan(&self) -> &MountPlan {
        &self.0.plan
    }

    /// The registry of hooks: to register handlers, list them and read their timings.
    pub fn hooks(&self) -> &Hooks {
        &self.0.hooks
    }

    /// What the session and its children spent.
    pub fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// The wish to stop.
    pub fn cancel(&self) -> &CancelToken {
        &self.0.cancel
    }

    /// How long the kernel waits for what.
    pub fn deadlines(&self) -> &Deadlines {
        &self.0.deadlines
    }

    /// The running turn, or the last one; 0 before the first.
    pub fn turn(&self) -> u64 {
        self.0.turn.load(Ordering::Acquire)
    }

    /// How the session stands and what it did.
    pub fn status(&self) -> SessionStatus {
        lock(&self.0.status).clone()
    }

    /// Reads or changes the free state that applications keep with a session.
    #[doc(alias = "session_state")]
    pub fn with_state<T>(&self, visit: impl FnOnce(&mut Map<String, Value>) -> T) -> T {
        visit(&mut lock(&self.0.state))
    }

    /// Sets or removes who is asked.
    pub fn set_approval_system(&self, approval: Option<Arc<dyn ApprovalSystem>>) {
        let old = std::mem::replace(&mut *write(&self.0.approval), approval);
        drop(old);
    }

    /// Sets or removes where messages for the person go.
    pub fn set_display_system(&self, display: Option<Arc<dyn DisplaySystem>>) {
        let old = std::mem::replace(&mut *write(&self.0.display), display);
        drop(old);
    }

    /// Makes everything recorded so far durable. Returns at once without a journal.
    pub async fn sync_journal(&self) -> Result<(), JournalError> {
        match within(self.deadlines().journal, self.0.recorder.sync()).await {
            Ok(synced) => synced,
            Err(fault) => Err(JournalError { message: fault.to_string() }),
        }
    }

    pub(crate) fn record(&self, body: impl FnOnce() -> RecordBody) {
        self.0.recorder.record(self.turn(), body);
    }

    pub(crate) fn update_status(&self, change: impl FnOnce(&mut SessionStatus)) {
        let now = self.0.recorder.now();
        let mut status = lock(&self.0.status);
        status.last_activity = Some(now);
        change(&mut status);
    }

    /// Begins a turn: the next number, a fresh injection budget, nothing left to apply.
    pub(crate) fn begin_turn(&self) -> u64 {
        self.0.injections.reset();
        lock(&self.0.pending).clear();
        self.0.turn.fetch_add(1, Ordering::AcqRel) + 1
    }

    pub(crate) fn push_cleanup(&self, owner: ModuleId, cleanup: Box<dyn Cleanup>) {
        lock(&self.0.cleanups).push((owner, cleanup));
    }

    pub(crate) fn push_ready(&self, owner: ModuleId, ready: Box<dyn Ready>) {
        lock(&self.0.ready).push((owner, ready));
    }

    /// How many cleanups are registered; [`Coordinator::take_cleanups`] takes those above such a mark.
    pub(crate) fn cleanup_mark(&self) -> usize {
        lock(&self.0.cleanups).len()
    }

    /// The cleanups registered since a mark, last first.
    pub(crate) fn take_cleanups(&self, mark: usize) -> Vec<(ModuleId, Box<dyn Cleanup>)> {
        let mut cleanups = lock(&self.0.cleanups);
        let at = mark.min(cleanups.len());
        let mut taken = cleanups.split_off(at);
        taken.reverse();
        taken
    }

    pub(crate) fn ready_mark(&self) -> usize {
        lock(&self.0.ready).len()
    }

    /// Drops the ready callbacks registered since a mark: their module did not come up.
    pub(crate) fn forget_ready(&self, mark: usize) {
        lock(&self.0.ready).truncate(mark);
    }

    pub(crate) fn now(&self) -> amplifier_protocol::time::Timestamp {
        self.0.recorder.now()
    }

    pub(crate) fn take_ready(&self) -> Vec<(ModuleId, Box<dyn Ready>)> {
        std::mem::take(&mut *lock(&self.0.ready))
    }

    /// Lets go of everything mounted. Modules hold the coordinator and the coordinator holds them; this parts them.
    pub(crate) fn dismantle(&self) {
        let mounts = std::mem::take(&mut *write(&self.0.mounts));
        let capabilities = std::mem::take(&mut *write(&self.0.capabilities));
        let ready = self.take_ready();
        self.0.hooks.clear();
        self.set_approval_system(None);
        self.set_display_system(None);
        drop((mounts, capabilities, ready));
    }

    /// Gives back the room that was kept for more: a session stands for long, and what is mounted later is rare.
    pub(crate) fn settle(&self) {
        write(&self.0.mounts).shrink();
        write(&self.0.capabilities).shrink();
        lock(&self.0.cleanups).shrink_to_fit();
    }

    fn next_number(&self) -> u64 {
        self.0.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn approval_system(&self) -> Option<Arc<dyn ApprovalSystem>> {
        read(&self.0.approval).clone()
    }

    pub(crate) fn display_system(&self) -> Option<Arc<dyn DisplaySystem>> {
        read(&self.0.display).clone()
    }
}
