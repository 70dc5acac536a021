//! From one session to another, or to the same one in another form, and back where that does not open.

use std::sync::Arc;

use amplifier_core::cancel::CancelToken;
use amplifier_core::canonical::{PlanHash, plan_hash};

use super::wants::Wants;
use super::{Ending, Ground, Move, Seat};
use crate::files::{Durability, FileError, READ, write_atomic};
use crate::open::{self, AppError, Keeps, OpenSession, Which};
use crate::start::{Parts, Start};
use crate::store::StoreError;
use crate::turns::TurnWatch;

/// Who waits for a session to open, and may be asked to stop that.
pub trait Patience: Send {
    /// What asked to stop.
    type Stop: Send;

    /// Waits for something that ends soon once it is cancelled, unless something asks to stop first.
    fn wait_for<T: Send>(
        &mut self,
        work: impl Future<Output = T> + Send,
        cancel: &CancelToken,
    ) -> impl Future<Output = Result<T, Self::Stop>> + Send;

    /// Whether everything shall end, and not only what was waited for.
    fn ends_all(stop: &Self::Stop) -> bool;
}

/// What came of going elsewhere.
pub struct Arrival<S> {
    /// That it is so, or why the session goes on as it was.
    pub outcome: Result<Arrived, Unopened<S>>,
    /// What went wrong beside it.
    pub problems: Vec<String>,
}

/// The session is another, or has another form.
pub struct Arrived {
    /// The plan of the session before this changed it: who goes on with the same one knows what changes in it.
    pub before: Option<PlanHash>,
    /// Whether something was allowed for the session that was left: it is asked about again.
    pub forgot_grants: bool,
}

/// Why a session is not open.
#[derive(Debug)]
pub enum Unopened<S> {
    Failed(Box<AppError>),
    /// It was, and is not what was asked for.
    Unwanted(String),
    Stopped(S),
}

/// There is nothing to go on with: neither session is open.
pub struct Lost<S> {
    /// Why the old one did not open again.
    pub why: Unopened<S>,
    pub ending: Ending,
}

impl Seat {
    /// Leaves the session for another one, or for itself in another form. Where that does not open, the old one is opened
    /// again and the reason is given beside it; without either there is nothing to go on with.
    pub async fn go<P: Patience>(
        mut self,
        to: Move,
        patience: &mut P,
    ) -> Result<(Self, Arrival<P::Stop>), Lost<P::Stop>> {
        // One that could not be come back to is not left.
        let keeps = match self.keeps().await {
            Ok(keeps) => keeps,
            Err(error) => {
                let (outcome, problems) = (Err(Unopened::Failed(Box::new(error))), Vec::new());
                return Ok((self, Arrival { outcome, problems }));
            }
        };
        let back = self.opened.session.id().clone();
        let old = self.opened.session.coordinator().plan().clone();
        let leaves = !matches!(&to.which, Which::Resume(id, _) if *id == back);
        let is_empty = self.is_empty();
        let mut problems = self.opened.let_go().await;
        // Only one may write to a session: the old one lets go first.
        drop(self.opened);
        let before = if leaves { None } else { plan_hash(&old).ok() };
        let Move { which, parts, made_of, wants } = to;
        let resolver = parts.resolver.clone();
        self.turns = Arc::default();
        let there = match self.ground.open(which, parts, &self.turns, patience).await {
            Ok(opened) => met(opened, &wants, &mut problems).await,
            unopened => unopened,
        };
        let (opened, outcome) = match there {
            Ok(opened) => {
                (self.resolver, self.made_of) = (resolver, made_of);
                let forgot_grants = leaves && self.ground.forget_grants();
                (opened, Ok(Arrived { before, forgot_grants }))
            }
            Err(why) => {
                let which = Which::Resume(back.clone(), Some(Box::new(old)));
                // With all that worked: what belongs to the other one has been kept already.
                let Keeps { prompt, lock, origin, request, environment } = keeps;
                let (resolver, environment) = (self.resolver.clone(), Some(environment));
                let parts = Parts { prompt: Some(prompt), resolver, lock, origin, request, environment };
                match self.ground.open_again(why, which, parts, &self.turns, patience).await {
                    Ok((opened, why)) => (opened, Err(why)),
                    Err(why) => {
                        let ending = match is_empty {
                            true => Ending::forgetting(self.ground.access.home, &back, problems),
                            false => Ending::keeping(&self.ground.access.home, back, problems),
                        };
                        return Err(Lost { why, ending });
                    }
                }
            }
        };
        self.opened = opened;
        if outcome.is_ok() && leaves {
            self.is_new = false;
            problems.extend(is_empty.then(|| open::forget(self.ground.access.home.clone(), &back)).flatten());
        }
        self.modes.guard(&self.opened.session);
        Ok((self, Arrival { outcome, problems }))
    }

    /// What is needed to come back.
    async fn keeps(&self) -> Result<Keeps, AppError> {
        self.opened.update_views().await?;
        let keeps = self.opened.keeps()?;
        // Opening writes as well: a disk that takes nothing would leave neither session open.
        let plan = self.opened.folder.mount_plan();
        let text = std::fs::read(&plan).map_err(FileError::at(READ, &plan)).map_err(StoreError::from)?;
        write_atomic(&plan, &text, Durability::Rebuildable).map_err(StoreError::from)?;
        Ok(keeps)
    }
}

impl Ground {
    /// Opens a session, unless something asks to stop first.
    async fn open<P: Patience>(
        &self,
        which: Which,
        parts: Parts,
        turns: &Arc<TurnWatch>,
        patience: &mut P,
    ) -> Result<OpenSession, Unopened<P::Stop>> {
        let cancel = CancelToken::new();
        let (access, strictness) = (self.access_until(cancel.clone()), self.wish.strictness);
        let start = Start { access, which, parts, before: None, strictness };
        let opened = patience.wait_for(start.open(self.ports(turns)), &cancel).await;
        opened.map_err(Unopened::Stopped)?.map_err(|error| Unopened::Failed(Box::new(error)))
    }

    /// Opens the session that was left for one that did not open, and gives back why; who ends everything does not want it.
    /// Else why there is none.
    async fn open_again<P: Patience>(
        &self,
        why: Unopened<P::Stop>,
        which: Which,
        parts: Parts,
        turns: &Arc<TurnWatch>,
        patience: &mut P,
    ) -> Result<(OpenSession, Unopened<P::Stop>), Unopened<P::Stop>> {
        match why {
            Unopened::Stopped(stop) if P::ends_all(&stop) => Err(Unopened::Stopped(stop)),
            why => Ok((self.open(which, parts, turns, patience).await?, why)),
        }
    }

    /// Forgets what was allowed for the session that was left; says whether there was anything.
    fn forget_grants(&self) -> bool {
        let had_any = !self.approvals.allowed_in_session().is_empty();
        self.approvals.forget_session();
        had_any
    }
}

/// The session, if it is what was wanted; else it is closed again.
async fn met<S>(
    opened: OpenSession,
    wants: &Wants,
    problems: &mut Vec<String>,
) -> Result<OpenSession, Unopened<S>> {
    match wants.are_met(&opened) {
        Ok(()) => Ok(opened),
        Err(reason) => {
            problems.extend(opened.let_go().await);
            Err(Unopened::Unwanted(reason))
        }
    }
}
