//! From one session of a chat to another, or to the same one in another form, and back where that does not open.

use std::sync::Arc;

use amplifier_app::chain;
use amplifier_app::open::{AppError, Keeps, OpenSession, Which};
use amplifier_app::{Session, plan_hash};

use super::ground::{Parts, Unopened};
use super::wants::Wants;
use super::{Farewell, Move, Seat, forget};
use crate::commands::start;
use crate::exit::Exit;
use crate::stop::Stops;

/// What came of going elsewhere.
pub struct Arrival {
    /// What is said now, or why the session goes on as it was.
    pub outcome: Result<String, String>,
    /// What the program would end with.
    pub exit: Exit,
    /// What went wrong beside it.
    pub problems: Vec<String>,
}

/// There is nothing to go on with: neither session is open.
pub struct Lost {
    /// Why the old one did not open again; nothing where that was not waited for.
    pub error: Option<AppError>,
    pub exit: Exit,
    pub farewell: Farewell,
}

impl Seat {
    /// Leaves the session for another one, or for itself in another form. Where that does not open, the old one is opened
    /// again and the reason is given beside it; without either there is nothing to go on with.
    pub async fn go(mut self, to: Move, stops: &mut Stops) -> Result<(Self, Arrival), Lost> {
        // One that could not be come back to is not left.
        let keeps = match self.keeps().await {
            Ok(keeps) => keeps,
            Err(error) => {
                let (outcome, exit) = (Err(chain(&error)), Exit::Failure);
                return Ok((self, Arrival { outcome, exit, problems: Vec::new() }));
            }
        };
        let back = self.opened.session.id().clone();
        let old = self.opened.session.coordinator().plan().clone();
        let leaves = !matches!(&to.which, Which::Resume(id, _) if *id == back);
        let is_empty = self.is_empty();
        let mut problems = cleaned_up(&self.opened.session).await;
        // Only one may write to a session: the old one lets go first.
        drop(self.opened);
        // Who goes on with the same session knows what changes in it.
        let before = if leaves { None } else { plan_hash(&old).ok() };
        let Move { which, prompt, resolver, lock, origin, made_of, wants, told } = to;
        let parts = Parts { prompt, resolver: resolver.clone(), lock, origin };
        self.turns = Arc::default();
        let there = match self.ground.open(which, parts, &self.turns, stops).await {
            Ok(opened) => met(opened, &wants, &mut problems).await,
            unopened => unopened,
        };
        let (opened, outcome, exit) = match there {
            Ok(opened) => {
                start::tell_about(&opened, before.as_ref());
                (self.resolver, self.made_of) = (resolver, made_of);
                let told = if leaves { self.ground.forget_grants(told) } else { told };
                (opened, Ok(told), Exit::Success)
            }
            Err(why) => {
                let which = Which::Resume(back.clone(), Some(Box::new(old)));
                // With all that worked: what belongs to the other one has been kept already.
                let Keeps { prompt, lock, origin } = keeps;
                let parts = Parts { prompt: Some(prompt), resolver: self.resolver.clone(), lock, origin };
                match self.ground.open_again(&why, which, parts, &self.turns, stops).await {
                    Ok(opened) => (opened, Err(why.reason()), why.exit()),
                    Err((error, exit)) => {
                        let farewell = match is_empty {
                            true => Farewell::forgetting(self.ground.access.home, &back, problems),
                            false => Farewell::with_way_back(&back, problems),
                        };
                        return Err(Lost { error, exit, farewell });
                    }
                }
            }
        };
        self.opened = opened;
        if outcome.is_ok() && leaves {
            self.is_new = false;
            problems.extend(is_empty.then(|| forget(self.ground.access.home.clone(), &back)).flatten());
        }
        self.modes.guard(&self.opened.session);
        Ok((self, Arrival { outcome, exit, problems }))
    }

    /// What is needed to come back.
    async fn keeps(&self) -> Result<Keeps, AppError> {
        self.opened.update_views().await?;
        self.opened.keeps()
    }
}

/// The session, if it is what was wanted; else it is closed again.
async fn met(
    opened: OpenSession,
    wants: &Wants,
    problems: &mut Vec<String>,
) -> Result<OpenSession, Unopened> {
    match wants.are_met(&opened) {
        Ok(()) => Ok(opened),
        Err(reason) => {
            problems.extend(cleaned_up(&opened.session).await);
            Err(Unopened::Unwanted(reason))
        }
    }
}

/// Ends a session; gives what went wrong with that.
pub(super) async fn cleaned_up(session: &Session) -> Vec<String> {
    session.cleanup().await.failed.iter().map(|failed| format!("cleanup of {failed}")).collect()
}
