//! Opening a session: mount everything in plan order, or unwind.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};

use amplifier_protocol::event::{ModuleLoadFailed, ModuleReadyFailed, SessionFork};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};
use amplifier_protocol::record::RecordBody;
use amplifier_protocol::spend::{Amounts, Limits};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::{Inner, Owner, Phase, Readiness, Resumed, Session, Strictness, raw_plan};
use crate::cancel::{CancelLevel, CancelToken};
use crate::canonical::{CanonicalError, plan_hash};
use crate::clock::Clock;
use crate::contracts::{ApprovalSystem, Capability, ContextError, DisplaySystem, ModuleSourceResolver};
use crate::coordinator::{Coordinator, Parts};
use crate::history::History;
use crate::journal::Journal;
use crate::ledger::{EARLIER, Ledger, LimitReached};
use crate::loader::{LoadError, Loader};
use crate::report::{LoadEntry, LoadOutcome, LoadReport};
use crate::sync::lock;
use crate::watch::{Deadlines, within};

/// Everything a session is opened with. What is not set is absent.
pub struct SessionBuilder {
    plan: Arc<MountPlan>,
    loader: Arc<Loader>,
    clock: Arc<dyn Clock>,
    session_id: Option<SessionId>,
    parent: Option<Session>,
    history: Option<History>,
    journal: Option<Arc<dyn Journal>>,
    approval: Option<Arc<dyn ApprovalSystem>>,
    display: Option<Arc<dyn DisplaySystem>>,
    resolver: Option<Arc<dyn ModuleSourceResolver>>,
    capabilities: Vec<(String, Capability)>,
    strictness: Strictness,
    readiness: Readiness,
    cancel: CancelToken,
}

/// A session that could not be opened. Whatever was mounted has been cleaned up again.
#[derive(Debug, thiserror::Error)]
#[error("{fault}")]
pub struct OpenError {
    /// Why.
    #[source]
    pub fault: OpenFault,
    /// What came up and what did not, as far as it went.
    pub report: LoadReport,
}

/// Why a session could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenFault {
    /// There is no orchestrator.
    #[error("Cannot initialize without orchestrator")]
    Orchestrator(#[source] LoadError),
    /// The orchestrator declined.
    #[error("Cannot initialize without {kind}: `{module}` declined: {reason}")]
    Declined {
        /// What is missing.
        kind: &'static str,
        /// The module.
        module: String,
        /// Why.
        reason: String,
    },
    /// There is no context.
    #[error("Cannot initialize without context manager")]
    Context(#[source] LoadError),
    /// Two provider entries would have the same name.
    #[error(
        "{count} provider entries of module `{module}` have no `instance_id`; at most one may, give the others a name"
    )]
    Instances {
        /// The module.
        module: String,
        /// How many.
        count: usize,
    },
    /// A section of the plan cannot be read.
    #[error("`{pointer}` of the mount plan cannot be read")]
    Section {
        /// Which.
        pointer: &'static str,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The plan has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// Strict, and something did not come up.
    #[error("strict mode: {}", failed.join("; "))]
    Strict {
        /// What did not.
        failed: Vec<String>,
    },
    /// Somebody gave it up, or the parent was cancelled or cleaned up, while this session was being opened.
    #[error("the session was cancelled while it was being opened")]
    Cancelled,
    /// The tree of sessions may not grow.
    #[error(transparent)]
    Limit(#[from] LimitReached),
    /// The conversation could not be put back.
    #[error("the conversation could not be put back")]
    History(#[from] ContextError),
}

impl SessionBuilder {
    /// A root session of this plan. Sessions of one plan may share it.
    pub fn new(plan: impl Into<Arc<MountPlan>>, loader: Arc<Loader>, clock: Arc<dyn Clock>) -> Self {
        Self {
            plan: plan.into(),
            loader,
            clock,
            session_id: None,
            parent: None,
            history: None,
            journal: None,
            approval: None,
            display: None,
            resolver: None,
            capabilities: Vec::new(),
            strictness: Strictness::Lenient,
            readiness: Readiness::Told,
            cancel: CancelToken::new(),
        }
    }

    pub(super) fn child_of(parent: &Session, plan: MountPlan) -> Self {
        let (loader, clock) = (Arc::clone(&parent.inner.loader), Arc::clone(&parent.inner.clock));
        let mut builder = Self::new(plan, loader, clock);
        builder.session_id = Some(parent.id().child());
        let hub = parent.coordinator();
        (builder.resolver, builder.approval) = (hub.resolver(), hub.approval_system());
        builder.display = hub.display_system();
        builder.parent = Some(parent.clone());
        builder
    }

    /// Opens under this id instead of a new one.
    #[must_use]
    pub fn session_id(mut self, id: SessionId) -> Self {
        self.session_id = Some(id);
        self
    }

    /// Goes on where an earlier process ended.
    #[must_use]
    pub fn resume(mut self, history: History) -> Self {
        self.history = Some(history);
        self
    }

    /// Keeps records here.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Asks here.
    #[must_use]
    pub fn approval(mut self, approval: Arc<dyn ApprovalSystem>) -> Self {
        self.approval = Some(approval);
        self
    }

    /// Shows messages here.
    #[must_use]
    pub fn display(mut self, display: Arc<dyn DisplaySystem>) -> Self {
        self.display = Some(display);
        self
    }

    /// Lets this decide where modules come from.
    #[must_use]
    pub fn resolver(mut self, resolver: Arc<dyn ModuleSourceResolver>) -> Self {
        self.resolver = Some(resolver);
        self
    }

    /// Offers this before any module mounts.
    #[must_use]
    pub fn capability(mut self, name: impl Into<String>, capability: Capability) -> Self {
        self.capabilities.push((name.into(), capability));
        self
    }

    /// What a module that does not come up means.
    #[must_use]
    pub fn strictness(mut self, strictness: Strictness) -> Self {
        self.strictness = strictness;
        self
    }

    /// Whether modules hear that the session stands.
    #[must_use]
    pub fn readiness(mut self, readiness: Readiness) -> Self {
        self.readiness = readiness;
        self
    }

    /// Gives up opening when this token asks to stop at once. What is open then is not stopped by it.
    #[must_use]
    pub fn unless_cancelled(mut self, cancel: CancelToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Mounts everything and opens the session. Runs inside a Tokio runtime, as everything here does.
    #[doc(alias = "initialize")]
    pub async fn open(self) -> Result<Session, OpenError> {
        let (strictness, readiness, given_up) = (self.strictness, self.readiness, self.cancel.clone());
        let (session, opening) =
            self.prepare().map_err(|fault| OpenError { fault, report: LoadReport::default() })?;
        let plan = session.coordinator().plan();
        let count = 2 + plan.providers.len() + plan.tools.len() + plan.hooks.len();
        let mut report = LoadReport { modules: Vec::with_capacity(count) };
        // A parent that ends meanwhile waits for this claim, so that it cleans up everything that was mounted.
        let claim = OpeningClaim::take(&session.inner);
        let cancel = session.coordinator().cancel();
        let mut result = tokio::select! {
            biased;
            () = cancel.cancelled(CancelLevel::Immediate) => Err(OpenFault::Cancelled),
            () = given_up.cancelled(CancelLevel::Immediate) => Err(OpenFault::Cancelled),
            result = opening.mount_all(&session, &mut report) => result,
        };
        let unready = match (&result, readiness) {
            (Ok(_), Readiness::Told) => make_ready(session.coordinator(), &mut report).await,
            _ => Vec::new(),
        };
        if result.is_ok() && strictness == Strictness::Strict {
            let failed: Vec<_> =
                report.failed().map(ToString::to_string).chain(unready.iter().map(told)).collect();
            if !failed.is_empty() {
                result = Err(OpenFault::Strict { failed });
            }
        }
        if let Err(fault) = result {
            drop(claim);
            session.cleanup().await;
            return Err(OpenError { fault, report });
        }
        announce(session.coordinator(), &report, unready).await;
        report.modules.shrink_to_fit();
        session.coordinator().settle();
        // Set last: a report is the mark of a session that was opened.
        session.inner.report.get_or_init(|| report);
        Ok(session)
    }

    /// Everything that can be refused before anything is mounted.
    fn prepare(mut self) -> Result<(Session, Opening), OpenFault> {
        check_instances(&self.plan)?;
        let hash = plan_hash(&self.plan)?;
        let section = |pointer| move |source| OpenFault::Section { pointer, source };
        let limits = Value::Object(self.plan.session.limits.clone());
        let limits: Limits = serde_json::from_value(limits).map_err(section("/session/limits"))?;
        let deadlines =
            Deadlines::read(&self.plan.session.deadlines).map_err(section("/session/deadlines"))?;

        let id = self.session_id.take().unwrap_or_else(|| SessionId::generate(self.clock.now()));
        let ledger = match &self.parent {
            Some(parent) => {
                let ledger = parent.coordinator().ledger().child(id.clone(), limits)?;
                parent.coordinator().note_spawn(&id);
                ledger
            }
            None => Ledger::root(id.clone(), limits, Arc::clone(&self.clock)),
        };
        let history = self.history.take();
        if let Some(history) = &history {
            ledger.carry_over(EARLIER, &history.spent);
        }
        let coordinator = Coordinator::new(Parts {
            session_id: id.clone(),
            parent_id: self.parent.as_ref().map(|parent| parent.id().clone()),
            parent: self.parent.as_ref().map(|parent| parent.coordinator().clone()),
            spent_before: history.as_ref().map_or_else(Amounts::default, |history| history.spent),
            plan: self.plan,
            clock: Arc::clone(&self.clock),
            journal: self.journal,
            ledger,
            deadlines,
            approval: self.approval,
            display: self.display,
            last_sequence: history.as_ref().map_or(0, |history| history.last_sequence),
            last_turn: history.as_ref().map_or(0, |history| history.last_turn),
        });
        let parent_id = coordinator.parent_id().cloned();
        coordinator.record(|| RecordBody::Opened { session_id: id, parent_id, plan_hash: hash.to_string() });
        if let Some(resolver) = self.resolver {
            coordinator.mount_resolver(resolver);
        }
        for (name, capability) in self.capabilities {
            coordinator.register_capability(&name, capability);
        }
        let parent_cancel = self.parent.as_ref().map(|parent| parent.coordinator().cancel().clone());
        let loader = Arc::clone(&self.loader);
        let inner = Arc::new(Inner::new(
            coordinator,
            hash,
            history.as_ref(),
            parent_cancel,
            (self.loader, self.clock),
        ));
        if let Some(parent) = &self.parent {
            parent.coordinator().cancel().register_child(inner.coordinator.cancel());
            let mut children = lock(&parent.inner.children);
            children.retain(|child| child.strong_count() > 0);
            children.push(Arc::downgrade(&inner));
        }
        let session = Session { _owner: Arc::new(Owner(Arc::clone(&inner))), inner };
        Ok((session, Opening { loader, history }))
    }
}

/// Tells whoever closes the session that it is still being opened.
struct OpeningClaim(Arc<Inner>);

impl OpeningClaim {
    fn take(inner: &Arc<Inner>) -> Self {
        inner.turns.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(inner))
    }
}

impl Drop for OpeningClaim {
    fn drop(&mut self) {
        self.0.turns.fetch_sub(1, Ordering::AcqRel);
        self.0.idle.notify_waiters();
    }
}

/// What is still needed once the session's hub stands.
struct Opening {
    loader: Arc<Loader>,
    history: Option<History>,
}

impl Opening {
    async fn mount_all(&self, session: &Session, report: &mut LoadReport) -> Result<(), OpenFault> {
        let coordinator = session.coordinator();
        let plan = coordinator.plan();
        self.mount_required(&plan.session.orchestrator, ModuleKind::Orchestrator, coordinator, report)
            .await?;
        self.mount_required(&plan.session.context, ModuleKind::Context, coordinator, report).await?;
        self.put_back_history(coordinator).await?;
        let sections = [
            (ModuleKind::Provider, &plan.providers),
            (ModuleKind::Tool, &plan.tools),
            (ModuleKind::Hook, &plan.hooks),
        ];
        for (kind, specs) in sections {
            for spec in specs {
                let (entry, _) = self.loader.mount(spec, kind, coordinator).await;
                report.add(entry);
            }
        }
        Ok(())
    }

    async fn mount_required(
        &self,
        spec: &ModuleSpec,
        kind: ModuleKind,
        coordinator: &Coordinator,
        report: &mut LoadReport,
    ) -> Result<(), OpenFault> {
        let (entry, error) = self.loader.mount(spec, kind, coordinator).await;
        let declined = match &entry.outcome {
            LoadOutcome::Skipped { reason } => Some(reason.clone()),
            _ => None,
        };
        report.add(entry);
        match (error, declined) {
            (Some(error), _) if kind == ModuleKind::Orchestrator => Err(OpenFault::Orchestrator(error)),
            (Some(error), _) => Err(OpenFault::Context(error)),
            (None, Some(reason)) => {
                Err(OpenFault::Declined { kind: kind.as_str(), module: spec.module.to_string(), reason })
            }
            (None, None) => Ok(()),
        }
    }

    /// What was said is put back as it is; what was cut off is told as a new message, and so recorded.
    async fn put_back_history(&self, coordinator: &Coordinator) -> Result<(), OpenFault> {
        let Some(history) = &self.history else { return Ok(()) };
        if let Some(context) = coordinator.bare_context() {
            let put_back = context.set_messages(history.messages.clone());
            within(coordinator.deadlines().context, put_back)
                .await
                .map_err(|fault| ContextError::NoAnswer { message: fault.to_string() })??;
        }
        if let Some(context) = coordinator.context() {
            for message in &history.mended {
                context.add_message(Arc::clone(message)).await?;
            }
        }
        Ok(())
    }
}

/// Calls those who waited for the others, in mounting order. A failure is a warning in the report and costs nobody else.
async fn make_ready(coordinator: &Coordinator, report: &mut LoadReport) -> Vec<ModuleReadyFailed> {
    let mut failed = Vec::new();
    for (module_id, ready) in coordinator.take_ready() {
        let (deadline, running) = (coordinator.deadlines().ready, ready.run(coordinator.clone()));
        let error =
            match coordinator.wait_for(module_id.as_str(), "on_session_ready", deadline, running).await {
                Ok(Ok(())) => continue,
                Ok(Err(failure)) => failure.to_string(),
                Err(fault) => fault.to_string(),
            };
        let failure = ModuleReadyFailed { module_id, error };
        report.warn(&failure.module_id, format!("not ready: {}", failure.error));
        failed.push(failure);
    }
    failed
}

fn told(failure: &ModuleReadyFailed) -> String {
    format!("`{}` is not ready: {}", failure.module_id, failure.error)
}

/// Says what did not come up, what is not ready, and whose child this is.
async fn announce(coordinator: &Coordinator, report: &LoadReport, unready: Vec<ModuleReadyFailed>) {
    for LoadEntry { module, kind, outcome, .. } in &report.modules {
        if let LoadOutcome::Failed { error } = outcome {
            let (module_id, module_type, error) = (module.clone(), *kind, error.clone());
            coordinator.emit(ModuleLoadFailed { module_id, module_type, error }).await;
        }
    }
    for failure in unready {
        coordinator.emit(failure).await;
    }
    if let Some(parent) = coordinator.parent_id().cloned() {
        let (session_id, plan) = (coordinator.session_id().clone(), coordinator.plan());
        let (metadata, raw) = (plan.session.metadata.clone(), raw_plan(plan));
        coordinator.emit(SessionFork { parent, session_id, metadata, raw }).await;
    }
}

fn check_instances(plan: &MountPlan) -> Result<(), OpenFault> {
    for spec in &plan.providers {
        let unnamed = |other: &&ModuleSpec| other.module == spec.module && other.instance_id.is_none();
        let count = plan.providers.iter().filter(unnamed).count();
        if count > 1 {
            return Err(OpenFault::Instances { module: spec.module.to_string(), count });
        }
    }
    Ok(())
}

impl Inner {
    fn new(
        coordinator: Coordinator,
        plan_hash: crate::canonical::PlanHash,
        history: Option<&History>,
        parent_cancel: Option<CancelToken>,
        (loader, clock): (Arc<Loader>, Arc<dyn Clock>),
    ) -> Self {
        let resumed = history.map(|history| Resumed {
            plan_hash: history.plan_hash.clone(),
            interrupted: history.interrupted.clone(),
        });
        Self {
            coordinator,
            plan_hash,
            resumed,
            loader,
            clock,
            runtime: Handle::current(),
            report: OnceLock::new(),
            phase: Mutex::new(Phase::Idle),
            turns: std::sync::atomic::AtomicU32::new(0),
            idle: Notify::new(),
            greeted: std::sync::atomic::AtomicBool::new(false),
            children: Mutex::default(),
            parent_cancel,
        }
    }
}
