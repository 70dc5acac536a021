//! What every session of a chat stands on, one after the other: where it works, who looks on, who answers its questions.

use std::sync::Arc;

use amplifier_app::approval::Approvals;
use amplifier_app::chain;
use amplifier_app::library::Access;
use amplifier_app::open::{AppError, OpenRequest, OpenSession, RecordTap, Which, open};
use amplifier_app::prompt::PromptParts;
use amplifier_app::turns::{Taps, TurnWatch};
use amplifier_app::{ApprovalSystem, BundleLock, CancelToken, ModuleSourceResolver, Strictness};
use amplifier_protocol::event::SessionOrigin;
use tokio::sync::mpsc::UnboundedSender;

use super::Notices;
use crate::args::StartArgs;
use crate::chat::tap::{Seen, Tap};
use crate::commands::start::Ports;
use crate::exit::Exit;
use crate::stop::{Stop, Stops};

pub(super) struct Ground {
    pub(super) access: Access,
    pub(super) args: StartArgs,
    pub(super) seen: UnboundedSender<Seen>,
    /// Who answers questions, with what was allowed for longer.
    pub(super) approvals: Arc<Approvals>,
}

/// What a session is opened with beside its plan.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) prompt: Option<PromptParts>,
    pub(super) resolver: Option<Arc<dyn ModuleSourceResolver>>,
    pub(super) lock: Option<Arc<BundleLock>>,
    pub(super) origin: Option<SessionOrigin>,
}

/// Why a session is not open.
pub(super) enum Unopened {
    Failed(AppError),
    /// It was, and is not what was asked for.
    Unwanted(String),
    Stopped(Stop),
}

impl Unopened {
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Failed(error) => chain(error),
            Self::Unwanted(reason) => reason.clone(),
            Self::Stopped(stop) => stop.reason().to_owned(),
        }
    }

    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Failed(_) | Self::Unwanted(_) => Exit::Failure,
            Self::Stopped(stop) => stop.exit(),
        }
    }
}

impl Ground {
    /// The same for something that can be stopped by itself: a token that has stopped something stays stopped.
    pub(super) fn access_until(&self, cancel: CancelToken) -> Access {
        Access { cancel, ..self.access.clone() }
    }

    pub(super) fn ports(&self, turns: &Arc<TurnWatch>) -> Ports {
        let taps: Vec<Arc<dyn RecordTap>> =
            vec![Arc::clone(turns) as Arc<dyn RecordTap>, Arc::new(Tap(self.seen.clone()))];
        Ports {
            approval: Some(Arc::clone(&self.approvals) as Arc<dyn ApprovalSystem>),
            display: Some(Arc::new(Notices(self.seen.clone()))),
            tap: Some(Arc::new(Taps(taps))),
        }
    }

    /// Opens a session, unless something asks to stop first.
    pub(super) async fn open(
        &self,
        which: Which,
        parts: Parts,
        turns: &Arc<TurnWatch>,
        stops: &mut Stops,
    ) -> Result<OpenSession, Unopened> {
        let (ports, cancel) = (self.ports(turns), CancelToken::new());
        let opening = open(OpenRequest {
            home: self.access.home.clone(),
            which,
            working_dir: self.access.base.clone(),
            strictness: if self.args.strict { Strictness::Strict } else { Strictness::Lenient },
            environment: self.access.environment.clone(),
            approval: ports.approval,
            display: ports.display,
            tap: ports.tap,
            prompt: parts.prompt,
            resolver: parts.resolver,
            lock: parts.lock,
            origin: parts.origin,
            cancel: cancel.clone(),
        });
        let opened = stops.unless_stopped(opening, &cancel).await.map_err(Unopened::Stopped)?;
        opened.map_err(Unopened::Failed)
    }

    /// Opens the session that was left for one that did not open; who ends the chat does not want it. Else why it did not
    /// open either, and what the program ends with.
    pub(super) async fn open_again(
        &self,
        why: &Unopened,
        which: Which,
        parts: Parts,
        turns: &Arc<TurnWatch>,
        stops: &mut Stops,
    ) -> Result<OpenSession, (Option<AppError>, Exit)> {
        if let Unopened::Stopped(stop) = why
            && *stop != Stop::Interrupt
        {
            return Err((None, stop.exit()));
        }
        self.open(which, parts, turns, stops).await.map_err(|unopened| match unopened {
            Unopened::Failed(error) => (Some(error), Exit::Failure),
            unopened => (None, unopened.exit()),
        })
    }

    /// Forgets what was allowed for the session that was left; what is told says so.
    pub(super) fn forget_grants(&self, told: String) -> String {
        if self.approvals.allowed_in_session().is_empty() {
            return told;
        }
        self.approvals.forget_session();
        format!("{told}; what was allowed for the session before is asked about again")
    }
}
