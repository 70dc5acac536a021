//! The session that somebody works in, and everything that is needed to open it again in another form or to leave it for
//! another one (`seat/go.rs`). A front end brings what shows and asks; nothing is shown here.

use std::sync::Arc;

use amplifier_core::cancel::CancelToken;
use amplifier_core::contracts::{ApprovalSystem, DisplaySystem, ModuleSourceResolver};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::mount_plan::MountPlan;

use crate::approval::{Approvals, GrantFile};
use crate::choice::Choice;
use crate::library::Access;
use crate::modes::ModeSwitch;
use crate::open::{self, AppError, OpenSession, RecordTap, Which};
use crate::paths::Home;
use crate::providers::UnknownProvider;
use crate::start::{self, Parts, Ports, Start, StartError, Wish};
use crate::store::SessionStore;
use crate::told::Teller;
use crate::turns::{Taps, TurnWatch};
use crate::{inquire, prepare, providers};

mod go;
mod models;
mod wants;

pub use go::{Arrival, Arrived, Lost, Patience, Unopened};
pub use models::ModelsError;
use wants::{Wants, model_of};

/// What every session of a seat stands on, one after the other: where it works, who looks on, who answers its questions.
pub struct Ground {
    pub access: Access,
    pub wish: Wish,
    /// Who answers questions, with what was allowed for longer.
    pub approvals: Arc<Approvals>,
    pub display: Arc<dyn DisplaySystem>,
    /// Sees the records of every session.
    pub tap: Arc<dyn RecordTap>,
}

/// The session that somebody works in.
pub struct Seat {
    pub opened: OpenSession,
    /// What the session is made of, for people.
    pub made_of: String,
    pub modes: ModeSwitch,
    /// How the turns of the session end.
    pub turns: Arc<TurnWatch>,
    ground: Ground,
    resolver: Option<Arc<dyn ModuleSourceResolver>>,
    is_new: bool,
}

/// Where somebody goes on.
pub struct Move {
    which: Which,
    parts: Parts,
    /// What the session is made of then, for people.
    pub made_of: String,
    wants: Wants,
}

/// What is left of a session that was ended.
pub struct Ending {
    /// The session, if it is kept: one without a word is not.
    pub kept: Option<SessionId>,
    /// What went wrong with its end.
    pub problems: Vec<String>,
}

impl Ground {
    /// The same for something that can be stopped by itself: a token that has stopped something stays stopped.
    fn access_until(&self, cancel: CancelToken) -> Access {
        Access { cancel, ..self.access.clone() }
    }

    fn ports(&self, turns: &Arc<TurnWatch>) -> Ports {
        let taps = vec![Arc::clone(turns) as Arc<dyn RecordTap>, Arc::clone(&self.tap)];
        Ports {
            approval: Some(Arc::clone(&self.approvals) as Arc<dyn ApprovalSystem>),
            display: Some(Arc::clone(&self.display)),
            tap: Some(Arc::new(Taps(taps))),
        }
    }

    /// What a session is made of, as it was named.
    fn made_of(&self, which: &Which) -> String {
        match (self.wish.choice.shown(), which) {
            (Some(named), _) => named,
            (None, Which::Resume(id, _)) => self.origin_of(id),
            // A registry that cannot be read is told by whoever prepares the bundle.
            (None, Which::New(_)) => prepare::current(&self.access).unwrap_or_default(),
        }
    }

    /// What a session was started from, as it was named then.
    fn origin_of(&self, id: &SessionId) -> String {
        // A session that cannot be read is told by whoever opens it.
        let about = SessionStore::new(self.access.home.clone()).metadata(id).ok();
        let origin = about.and_then(|about| about.bundle);
        origin.map_or_else(|| "its own plan".to_owned(), |origin| origin.reference)
    }
}

impl Seat {
    /// Opens a session to work in.
    pub async fn take(start: Start, ground: Ground) -> Result<Self, AppError> {
        let (resolver, turns) = (start.parts.resolver.clone(), Arc::default());
        let (made_of, is_new) = (ground.made_of(&start.which), matches!(start.which, Which::New(_)));
        let opened = start.open(ground.ports(&turns)).await?;
        let modes = ModeSwitch::default();
        modes.guard(&opened.session);
        Ok(Self { opened, made_of, modes, turns, ground, resolver, is_new })
    }

    /// Where it stands, and with which settings.
    pub fn access(&self) -> &Access {
        &self.ground.access
    }

    /// The same for something that can be stopped by itself.
    pub fn access_until(&self, cancel: CancelToken) -> Access {
        self.ground.access_until(cancel)
    }

    /// Who answers questions, with what was allowed for longer.
    pub fn approvals(&self) -> &Approvals {
        &self.ground.approvals
    }

    /// Where what is allowed always is kept.
    pub fn grants(&self) -> GrantFile {
        GrantFile::new(self.ground.access.home.approvals())
    }

    /// The provider that is asked first, and its model.
    pub fn model(&self) -> (String, Option<String>) {
        model_of(&self.opened)
    }

    /// The same session, in which another provider is asked.
    pub fn with_provider(&self, name: &str) -> Result<Move, UnknownProvider> {
        let mut plan = self.opened.session.coordinator().plan().clone();
        providers::prefer(&mut plan, name)?;
        Ok(Move { wants: Wants::FirstProvider, ..self.with_plan(plan) })
    }

    /// The same session, in which the provider that answers asks another model.
    pub fn with_model(&self, model: &str) -> Move {
        let mut plan = self.opened.session.coordinator().plan().clone();
        let (asked, _) = self.model();
        let at = providers::place_of(&self.opened.session, &asked).unwrap_or_default();
        inquire::prefer_model_of(&mut plan, at, model);
        Move { wants: Wants::Model(model.to_owned()), ..self.with_plan(plan) }
    }

    /// The same session with another plan.
    fn with_plan(&self, plan: MountPlan) -> Move {
        let id = self.opened.session.id().clone();
        self.alike(Which::Resume(id, Some(Box::new(plan))))
    }

    /// The same session with the plan of another bundle.
    pub async fn with_bundle(
        &self,
        reference: &str,
        cancel: CancelToken,
        tell: Teller<'_>,
    ) -> Result<Move, StartError> {
        let choice = Choice::Bundle(reference.to_owned());
        let made_of = choice.shown().unwrap_or_default();
        let wish = Wish { choice, ..self.ground.wish.clone() };
        let access = self.ground.access_until(cancel);
        let start = start::find(&wish, Some(self.opened.session.id()), access, tell).await?;
        Ok(Move { which: start.which, parts: start.parts, made_of, wants: Wants::Nothing })
    }

    /// The same session as it is, for who finds that its journal takes nothing more: what was wrong may be mended by now, but
    /// what the disk kept is only known to who opens it again. What is gone cannot be opened.
    pub async fn anew(&self) -> Option<Move> {
        if !self.opened.folder.events().exists() {
            return None;
        }
        let coordinator = self.opened.session.coordinator();
        coordinator.sync_journal().await.err().map(|_| self.with_plan(coordinator.plan().clone()))
    }

    /// A copy of this session.
    pub fn copy(&self, id: SessionId) -> Move {
        self.alike(Which::Resume(id, None))
    }

    /// What is made of the same as this one.
    fn alike(&self, which: Which) -> Move {
        let environment = Some(self.opened.environment().clone());
        let parts = Parts { resolver: self.resolver.clone(), environment, ..Parts::default() };
        Move { which, parts, made_of: self.made_of.clone(), wants: Wants::Nothing }
    }

    /// Another session, as it was.
    pub fn other(&self, id: SessionId) -> Move {
        let made_of = self.ground.origin_of(&id);
        Move { which: Which::Resume(id, None), parts: Parts::default(), made_of, wants: Wants::Nothing }
    }

    /// Whether nobody said anything: a session without a word is not worth keeping.
    fn is_empty(&self) -> bool {
        self.is_new && self.opened.is_silent()
    }

    /// Ends the session.
    pub async fn close(self) -> Ending {
        let (id, is_empty) = (self.opened.session.id().clone(), self.is_empty());
        let Self { opened, ground, .. } = self;
        let problems = opened.finish().await;
        // The lease goes with it.
        drop(opened);
        match is_empty {
            true => Ending::forgetting(ground.access.home, &id, problems),
            false => Ending::keeping(&ground.access.home, id, problems),
        }
    }
}

impl Ending {
    /// That of a session that can be come back to, unless somebody removed it meanwhile.
    fn keeping(home: &Home, id: SessionId, problems: Vec<String>) -> Self {
        let is_there = home.session(&id).events().exists();
        Self { kept: is_there.then_some(id), problems }
    }

    /// That of a session in which nothing was said.
    fn forgetting(home: Home, id: &SessionId, mut problems: Vec<String>) -> Self {
        problems.extend(open::forget(home, id));
        Self { kept: None, problems }
    }
}
