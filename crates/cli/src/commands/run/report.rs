//! What a run came to: the exit code, the answer, the summary for programs.

use std::io::IsTerminal;
use std::time::Duration;

use amplifier_app::failure::{self, Doors, Failure, Front};
use amplifier_app::open::OpenSession;
use amplifier_app::telling::time;
use amplifier_app::turns::{Outcome, TurnWatch};
use amplifier_app::{ExecuteError, causes};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::run::{RunResult, RunStatus, RunTotals, RunUsage, result_line};
use amplifier_protocol::spend::Unit;

use crate::args::{Output, StartArgs};
use crate::chat::{self, Colour};
use crate::exit::Exit;
use crate::failed;
use crate::render::{self, Remark, ToldError};
use crate::stop::Stop;

/// A turn that is over, one way or another.
pub(super) struct Ended<'a> {
    pub(super) opened: &'a OpenSession,
    pub(super) watch: &'a TurnWatch,
    /// Whom the session may ask.
    pub(super) doors: &'a Doors,
    /// Nothing when the turn had to be left.
    pub(super) result: Option<&'a Result<String, ExecuteError>>,
    pub(super) stopped: Option<Stop>,
    /// Whether somebody looked on and has seen the answer.
    pub(super) is_shown: bool,
    /// The session, unless nothing was said in it.
    pub(super) kept: Option<&'a SessionId>,
}

impl Ended<'_> {
    pub(super) fn exit(&self) -> Exit {
        Exit::of(self.outcome(), self.stopped)
    }

    fn outcome(&self) -> Outcome {
        Outcome::of(self.result, &self.opened.session, self.watch)
    }

    fn status(&self, exit: Exit) -> RunStatus {
        match exit {
            Exit::Success => RunStatus::Completed,
            Exit::Refused if self.outcome() == Outcome::Denied => RunStatus::Denied,
            Exit::Refused => RunStatus::LimitReached,
            Exit::TimedOut => RunStatus::TimedOut,
            Exit::Interrupted | Exit::Terminated | Exit::HungUp | Exit::Unread => RunStatus::Cancelled,
            Exit::Usage => RunStatus::Error,
            Exit::Failure | Exit::News => RunStatus::Failed,
        }
    }

    pub(super) fn print(&self, output: Output, exit: Exit) {
        let failure = self.failure(exit);
        if let Some(failure) = &failure {
            render::failure(failure);
        }
        match (output, self.result) {
            (Output::Json | Output::Jsonl, _) => print(output, &self.summary(exit, failure)),
            (Output::Text, Some(Ok(answer))) if exit == Exit::Success && !self.is_shown => {
                print_answer(answer);
            }
            // A denial is no answer, nor is half of one; whoever reads standard output must not take it for one.
            (Output::Text, _) => {}
        }
    }

    /// Whether something was said that nobody has seen: what was stopped has no answer to print.
    pub(super) fn is_withheld(&self, output: Output) -> bool {
        let said = matches!(self.result, Some(Ok(said)) if !said.is_empty());
        output == Output::Text && said && !self.is_shown && self.outcome() == Outcome::Stopped
    }

    /// Why there is no answer, unless that has been told with why it was stopped.
    fn failure(&self, exit: Exit) -> Option<Failure> {
        match self.result? {
            Ok(answer) => (exit == Exit::Refused).then(|| Failure { message: answer.clone(), hint: None }),
            Err(_) if self.stopped.is_some_and(|stop| stop.exit() == exit) => None,
            Err(error) => Some(failure::describe(error, self.opened, self.doors, Front::Shell)),
        }
    }

    fn summary(&self, exit: Exit, failure: Option<Failure>) -> RunResult {
        let session = &self.opened.session;
        let spent = self.opened.spent_in_run();
        let answered = self.result.and_then(|result| result.as_ref().ok());
        let wrong = if exit == Exit::Success { None } else { self.wrong(failure) };
        let (error, causes, hint, place) = match wrong {
            Some(ToldError { error, causes, hint, place }) => (Some(error), causes, hint, place),
            None => (None, Vec::new(), None, None),
        };
        RunResult {
            status: self.status(exit),
            exit_code: exit.code(),
            // Nothing that was said before it was stopped is no answer, and a denial is none either.
            answer: answered
                .filter(|answer| exit == Exit::Success || (exit != Exit::Refused && !answer.is_empty()))
                .cloned(),
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

    /// What went wrong, for programs: how the turn failed, else what was told last.
    fn wrong(&self, failure: Option<Failure>) -> Option<ToldError> {
        let error = self.result.and_then(|result| result.as_ref().err());
        let causes = error.map(|error| causes(error).into_iter().skip(1).collect()).unwrap_or_default();
        match failure {
            Some(Failure { message, hint }) => {
                let hint = hint.map(|hint| render::typed(&hint).into_owned());
                Some(ToldError { error: message, causes, hint, place: None })
            }
            None => render::errors_told().pop(),
        }
    }

    /// What it took, for those who want to know, and a limit that could not be kept.
    pub(super) fn tell_costs(&self, start: &StartArgs, took: Duration) {
        let session = &self.opened.session;
        let spent = self.opened.spent_in_run();
        let cost = self.opened.cost_of_run();
        let is_limited = session.coordinator().ledger().limits(Unit::CostNanos);
        if is_limited && cost.is_none() && spent.output_tokens > 0 {
            Remark::warning("no price is known for this model, so the limit of money could not be kept")
                .hint("`prices` in the provider's config tells it: `{\"MODEL\": {\"input\": \"1.25\", \"output\": \"10\"}}`, \
                       in US dollars for a million tokens")
                .tell();
        }
        if let (Some(most), Some(cost)) = (start.max_cost, self.opened.cost())
            && cost > most
        {
            Remark::warning(format!(
                "the session cost ${cost}, more than the ${most} of `--max-cost`: what a call costs is known when it has ended"
            ))
            .tell();
        }
        let cost = cost.map_or_else(|| "cost unknown".to_owned(), |cost| format!("${cost}"));
        render::detail(&format!(
            "{}: {}, {cost}, {} tool {}; session {}",
            time(took),
            render::tokens(spent.input_tokens, spent.output_tokens),
            spent.tool_calls,
            if spent.tool_calls == 1 { "call" } else { "calls" },
            session.id()
        ));
    }
}

/// For a person as the chat shows it, for a program as it is.
fn print_answer(answer: &str) {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return render::out(answer);
    }
    let colour = if render::has_colors(&stdout) { Colour::On } else { Colour::Off };
    // It has its colours, and what the model wrote cannot steer the terminal any more.
    drop(render::raw(chat::rendered(answer, colour) + "\n"));
}

/// Tells programs that there is no session, with what was told to the person.
pub(super) fn without_session(output: Output, exit: Exit) {
    if output == Output::Text {
        return;
    }
    let nothing = || ToldError { error: "there is no session".to_owned(), ..ToldError::default() };
    let ToldError { error, causes, hint, place } = render::told_as_one().unwrap_or_else(nothing);
    let result = RunResult {
        causes,
        hint,
        place,
        ..RunResult::without_session(failed::status(exit), exit.code(), error)
    };
    print(output, &result);
}

/// Tells that there was nothing to do: no model was asked.
pub(super) fn nothing_to_finish(output: Output, id: SessionId) {
    Remark::note(format!("there is nothing to finish: the last turn of session `{id}` is complete"))
        .hint(format!("`amplifier run --resume {id} PROMPT` asks something new"))
        .tell();
    if output != Output::Text {
        let nothing = RunResult::without_session(RunStatus::Completed, Exit::Success.code(), String::new());
        print(output, &RunResult { error: None, session_id: Some(id), ..nothing });
    }
}

fn print(output: Output, result: &RunResult) {
    let printed = match output {
        Output::Jsonl => result_line(result),
        _ => serde_json::to_value(result),
    };
    match (printed, output) {
        // Whether anybody still reads makes no difference: this was the last word.
        (Ok(line), Output::Jsonl) => drop(render::json_line(&line)),
        (Ok(value), _) => render::json(&value),
        (Err(error), _) => render::error(&error, None),
    }
}
