//! What a run came to, as every front end tells it to programs: one [`RunResult`]. How a process ends and what people are shown
//! is the front end's business.

use amplifier_core::error::causes;
use amplifier_core::session::ExecuteError;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::run::{RunPlace, RunResult, RunStatus, RunTotals, RunUsage};

use crate::failure::{self, Doors, Failure, Front};
use crate::open::OpenSession;
use crate::turns::{Outcome, TurnWatch};

/// Why a turn was stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Its time was up.
    TimeUp,
    /// Somebody did not want it any more, or is gone.
    Wish,
}

/// An error that somebody was told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToldError {
    pub error: String,
    /// Why, from the nearest cause to the first.
    pub causes: Vec<String>,
    pub hint: Option<String>,
    /// Where in a file it is.
    pub place: Option<RunPlace>,
}

/// A turn that is over, one way or another.
pub struct Ended<'a> {
    pub opened: &'a OpenSession,
    pub watch: &'a TurnWatch,
    /// Whom the session may ask.
    pub doors: &'a Doors,
    /// Where the person stands who reads why there is no answer.
    pub front: Front,
    /// Nothing when the turn had to be left.
    pub result: Option<&'a Result<String, ExecuteError>>,
    /// Why it was asked to stop, if it was: it may have come to its end all the same.
    pub stopped: Option<Cause>,
    /// The session, unless nothing was said in it.
    pub kept: Option<&'a SessionId>,
}

impl Ended<'_> {
    pub fn outcome(&self) -> Outcome {
        Outcome::of(self.result, &self.opened.session, self.watch)
    }

    /// Why there is no answer, unless whoever stopped it tells that.
    pub fn failure(&self) -> Option<Failure> {
        let outcome = self.outcome();
        match self.result? {
            Ok(answer) => {
                (outcome == Outcome::Denied).then(|| Failure { message: answer.clone(), hint: None })
            }
            Err(_) if outcome == Outcome::Stopped && self.stopped.is_some() => None,
            Err(error) => Some(failure::describe(error, self.opened, self.doors, self.front)),
        }
    }

    /// What it came to. `told` is what was told of what stopped it.
    pub fn result(&self, told: Option<ToldError>) -> RunResult {
        let (session, outcome) = (&self.opened.session, self.outcome());
        let status = outcome.status(self.stopped);
        let spent = self.opened.spent_in_run();
        let wrong = if outcome == Outcome::Answered { None } else { self.wrong().or(told) };
        let (error, causes, hint, place) = match wrong {
            Some(ToldError { error, causes, hint, place }) => (Some(error), causes, hint, place),
            None => (None, Vec::new(), None, None),
        };
        RunResult {
            status,
            exit_code: status.exit_code(),
            answer: self.answer(outcome),
            error,
            causes,
            hint,
            place,
            finish_reason: self.watch.finish_reason(),
            session_id: self.kept.cloned(),
            turn: session.status().turns,
            usage: RunUsage::of(&spent),
            cost_usd: self.opened.cost_of_run(),
            session: Some(RunTotals {
                usage: RunUsage::of(&self.opened.spent()),
                cost_usd: self.opened.cost(),
            }),
            tool_calls: spent.tool_calls,
            denied: self.watch.denied(),
            plan_hash: Some(session.plan_hash().to_string()),
            load_report: serde_json::to_value(session.report()).ok(),
        }
    }

    /// Nothing that was said before it was stopped is no answer, and a denial is none either.
    fn answer(&self, outcome: Outcome) -> Option<String> {
        let said = self.result?.as_ref().ok()?;
        let is_answer = match outcome {
            Outcome::Answered => true,
            Outcome::Denied => false,
            _ => !said.is_empty(),
        };
        is_answer.then(|| said.clone())
    }

    /// How the turn failed, with its causes.
    fn wrong(&self) -> Option<ToldError> {
        let Failure { message, hint } = self.failure()?;
        let error = self.result.and_then(|result| result.as_ref().err());
        let causes = error.map(|error| causes(error).into_iter().skip(1).collect()).unwrap_or_default();
        Some(ToldError { error: message, causes, hint, place: None })
    }
}

/// What a run came to that had no session to run in, for a reason that was told.
pub fn without_session(status: RunStatus, exit_code: u8, told: ToldError) -> RunResult {
    let ToldError { error, causes, hint, place } = told;
    RunResult { causes, hint, place, ..RunResult::without_session(status, exit_code, error) }
}

/// What a run came to that was to finish a turn, and the turn is complete: no model was asked.
pub fn nothing_to_finish(id: SessionId) -> RunResult {
    let status = RunStatus::Completed;
    let nothing = RunResult::without_session(status, status.exit_code(), String::new());
    RunResult { error: None, session_id: Some(id), ..nothing }
}
