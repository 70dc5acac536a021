//! What a run came to, told: the exit code, the answer, the summary for programs, which `app` makes.

use std::io::IsTerminal;
use std::time::Duration;

use amplifier_app::ended::{self, Ended, ToldError};
use amplifier_app::telling::time;
use amplifier_app::turns::Outcome;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::run::{RunResult, result_line};
use amplifier_protocol::spend::Unit;

use crate::args::{Output, StartArgs};
use crate::chat::{self, Colour};
use crate::exit::Exit;
use crate::failed;
use crate::render::{self, Remark};
use crate::stop::Stop;

/// A turn that is over, and what is printed of it.
pub(super) struct Report<'a> {
    pub(super) ended: Ended<'a>,
    pub(super) stopped: Option<Stop>,
    /// Whether somebody looked on and has seen the answer.
    pub(super) is_shown: bool,
}

impl Report<'_> {
    pub(super) fn exit(&self) -> Exit {
        Exit::of(self.ended.outcome(), self.stopped)
    }

    pub(super) fn print(&self, output: Output, exit: Exit) {
        if let Some(failure) = self.ended.failure() {
            render::failure(&failure);
        }
        match (output, self.ended.result) {
            (Output::Json | Output::Jsonl, _) => {
                let result = self.ended.result(render::errors_told().pop());
                // A signal has a code of its own, and a command works as it is printed.
                let hint = result.hint.map(|hint| render::typed(&hint).into_owned());
                print(output, &RunResult { exit_code: exit.code(), hint, ..result });
            }
            (Output::Text, Some(Ok(answer))) if exit == Exit::Success && !self.is_shown => {
                print_answer(answer);
            }
            // A denial is no answer, nor is half of one; whoever reads standard output must not take it for one.
            (Output::Text, _) => {}
        }
    }

    /// Whether something was said that nobody has seen: what was stopped has no answer to print.
    pub(super) fn is_withheld(&self, output: Output) -> bool {
        let said = matches!(self.ended.result, Some(Ok(said)) if !said.is_empty());
        output == Output::Text && said && !self.is_shown && self.ended.outcome() == Outcome::Stopped
    }

    /// What it took, for those who want to know, and a limit that could not be kept.
    pub(super) fn tell_costs(&self, start: &StartArgs, took: Duration) {
        let opened = self.ended.opened;
        let (session, spent, cost) = (&opened.session, opened.spent_in_run(), opened.cost_of_run());
        let is_limited = session.coordinator().ledger().limits(Unit::CostNanos);
        if is_limited && cost.is_none() && spent.output_tokens > 0 {
            Remark::warning("no price is known for this model, so the limit of money could not be kept")
                .hint("`prices` in the provider's config tells it: `{\"MODEL\": {\"input\": \"1.25\", \"output\": \"10\"}}`, \
                       in US dollars for a million tokens")
                .tell();
        }
        if let (Some(most), Some(cost)) = (start.max_cost, opened.cost())
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
    let told = render::told_as_one().unwrap_or_else(nothing);
    print(output, &ended::without_session(failed::status(exit), exit.code(), told));
}

/// Tells that there was nothing to do: no model was asked.
pub(super) fn nothing_to_finish(output: Output, id: SessionId) {
    Remark::note(format!("there is nothing to finish: the last turn of session `{id}` is complete"))
        .hint(format!("`amplifier run --resume {id} PROMPT` asks something new"))
        .tell();
    if output != Output::Text {
        print(output, &ended::nothing_to_finish(id));
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
