//! What the loop does next. Pure: it is told what happened and answers with the next effect.

use amplifier_core::contracts::TurnError;
use amplifier_protocol::event::TurnStatus;
use amplifier_protocol::tool::ToolCall;

/// What happened.
#[derive(Debug, PartialEq)]
pub(super) enum Happened {
    /// The prompt is in the conversation.
    Begun,
    /// A hook refused the prompt or the request.
    Denied { reason: String },
    /// The model answered, and its answer is stored.
    Answered { text: String, calls: Vec<ToolCall> },
    /// The model answered without calls, and meanwhile somebody sent more to take up.
    Steered { text: String },
    /// Every call has its result in the conversation.
    ToolsRan,
    /// Somebody wants the turn to stop.
    Cancelled,
    /// The turn cannot go on.
    Failed(TurnError),
}

/// What to do next.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// Ask the model.
    Ask(Round),
    /// Run the calls of the answer.
    RunTools(Vec<ToolCall>),
    /// The turn is over. Boxed, or every step would carry the size of an error.
    End(Box<Ending>),
}

/// One question to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Round {
    /// Which, beginning with 0.
    pub(super) iteration: u64,
    pub(super) purpose: Purpose,
}

/// What a question is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To get on; tools are offered.
    Work,
    /// To have an answer although the number of questions is used up; no tools are offered.
    WrapUp,
}

/// How a turn ended.
#[derive(Debug, PartialEq)]
pub(super) struct Ending {
    pub(super) status: TurnStatus,
    /// The answer, or what was said so far.
    pub(super) answer: String,
    /// What the caller gets instead of the answer.
    pub(super) error: Option<TurnError>,
}

/// Where a turn stands.
pub(super) struct Step {
    // `None` for any number.
    max_iterations: Option<u64>,
    asked: u64,
    rounds: u64,
    purpose: Purpose,
    said: String,
}

impl Step {
    /// A turn that has not begun. A negative number allows any number of questions.
    pub(super) fn new(max_iterations: i64) -> Self {
        let max_iterations = u64::try_from(max_iterations).ok();
        Self { max_iterations, asked: 0, rounds: 0, purpose: Purpose::Work, said: String::new() }
    }

    /// How many rounds of tools were run.
    pub(super) fn tool_rounds(&self) -> u64 {
        self.rounds
    }

    pub(super) fn next(&mut self, happened: Happened) -> Next {
        match happened {
            Happened::Begun => self.ask(),
            Happened::ToolsRan => {
                self.rounds += 1;
                self.ask()
            }
            Happened::Answered { text, calls } => self.answered(text, calls),
            Happened::Steered { text } => {
                self.said = text;
                self.ask()
            }
            Happened::Denied { reason } => {
                self.said = format!("Operation denied: {reason}");
                self.end(TurnStatus::Denied)
            }
            Happened::Cancelled => self.end(TurnStatus::Cancelled),
            Happened::Failed(TurnError::Cancelled) => self.end(TurnStatus::Cancelled),
            Happened::Failed(error) => {
                let status = match &error {
                    TurnError::Limit(_) => TurnStatus::LimitReached,
                    _ => TurnStatus::Error,
                };
                let answer = std::mem::take(&mut self.said);
                Next::End(Box::new(Ending { status, answer, error: Some(error) }))
            }
        }
    }

    fn ask(&mut self) -> Next {
        let iteration = self.asked;
        if self.max_iterations.is_some_and(|most| iteration >= most) {
            self.purpose = Purpose::WrapUp;
        }
        self.asked += 1;
        Next::Ask(Round { iteration, purpose: self.purpose })
    }

    fn answered(&mut self, text: String, calls: Vec<ToolCall>) -> Next {
        let silent = text.is_empty();
        if !silent {
            self.said = text;
        }
        match self.purpose {
            Purpose::WrapUp => self.end(TurnStatus::MaxIterations),
            Purpose::Work if !calls.is_empty() => Next::RunTools(calls),
            // Asking again would most likely give nothing again, without end.
            Purpose::Work if silent => {
                self.said.clear();
                self.end(TurnStatus::Incomplete)
            }
            Purpose::Work => self.end(TurnStatus::Success),
        }
    }

    fn end(&mut self, status: TurnStatus) -> Next {
        Next::End(Box::new(Ending { status, answer: std::mem::take(&mut self.said), error: None }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
    use serde_json::json;

    fn said(text: &str) -> Happened {
        Happened::Answered { text: text.to_owned(), calls: Vec::new() }
    }

    fn called(text: &str) -> Happened {
        let calls = vec![ToolCall::new("c", "t", json!({}))];
        Happened::Answered { text: text.to_owned(), calls }
    }

    fn work(iteration: u64) -> Next {
        Next::Ask(Round { iteration, purpose: Purpose::Work })
    }

    fn over(status: TurnStatus, answer: &str) -> Next {
        Next::End(Box::new(Ending { status, answer: answer.to_owned(), error: None }))
    }

    #[test]
    fn tools_are_run_and_the_model_is_asked_again_until_it_answers() {
        let mut step = Step::new(-1);
        assert_eq!(step.next(Happened::Begun), work(0));
        assert!(matches!(step.next(called("")), Next::RunTools(calls) if calls.len() == 1));
        assert_eq!(step.next(Happened::ToolsRan), work(1));
        assert_eq!(step.next(said("done")), over(TurnStatus::Success, "done"));
        assert_eq!(step.tool_rounds(), 1);
    }

    #[test]
    fn an_answer_exactly_at_the_limit_is_a_success() {
        let mut step = Step::new(1);
        step.next(Happened::Begun);
        assert_eq!(step.next(said("done")), over(TurnStatus::Success, "done"));
    }

    #[test]
    fn after_the_last_question_one_more_is_asked_without_tools() {
        let mut step = Step::new(1);
        step.next(Happened::Begun);
        step.next(called("looking"));
        let wrap_up = Next::Ask(Round { iteration: 1, purpose: Purpose::WrapUp });
        assert_eq!(step.next(Happened::ToolsRan), wrap_up);
        // A model that calls tools nobody offered does not get them.
        assert_eq!(step.next(called("so far")), over(TurnStatus::MaxIterations, "so far"));
        assert_eq!(
            Step::new(0).next(Happened::Begun),
            Next::Ask(Round { iteration: 0, purpose: Purpose::WrapUp })
        );
    }

    #[test]
    fn an_answer_does_not_end_a_turn_that_was_sent_more() {
        let mut step = Step::new(-1);
        step.next(Happened::Begun);
        let steered = Happened::Steered { text: "done".to_owned() };
        assert_eq!(step.next(steered), work(1));
        assert_eq!(step.next(said("done differently")), over(TurnStatus::Success, "done differently"));
    }

    #[test]
    fn silence_ends_the_turn_as_incomplete() {
        let mut step = Step::new(-1);
        step.next(Happened::Begun);
        assert_eq!(step.next(said("")), over(TurnStatus::Incomplete, ""));
    }

    #[test]
    fn a_cancelled_turn_keeps_what_was_said_so_far() {
        let mut step = Step::new(-1);
        step.next(Happened::Begun);
        step.next(called("looking"));
        assert_eq!(step.next(Happened::Cancelled), over(TurnStatus::Cancelled, "looking"));
        assert_eq!(
            Step::new(-1).next(Happened::Failed(TurnError::Cancelled)),
            over(TurnStatus::Cancelled, "")
        );
    }

    #[test]
    fn a_failure_travels_unchanged() {
        let error = TurnError::Model(LlmError::new(LlmErrorKind::RateLimit, "slow down"));
        let Next::End(ending) = Step::new(-1).next(Happened::Failed(error.clone())) else {
            panic!("goes on")
        };
        assert_eq!((ending.status, ending.error), (TurnStatus::Error, Some(error)));
    }
}
