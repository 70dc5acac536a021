//! What the exit code tells a script.

use std::process::ExitCode;

use amplifier_app::turns::Outcome;

use crate::stop::Stop;

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It did what was asked.
    Success,
    /// It could not.
    Failure,
    /// It was asked in a wrong way, or its configuration is wrong.
    Usage,
    /// A hook, the person or a limit stood against it.
    Refused,
    /// It looked for something new, and there is.
    News,
    /// Its time was up.
    TimedOut,
    /// The terminal was closed.
    HungUp,
    /// It was interrupted.
    Interrupted,
    /// Nobody reads any more.
    Unread,
    /// Another program ended it.
    Terminated,
}

impl Exit {
    /// What a turn came to; what stopped it tells why.
    pub fn of(outcome: Outcome, stopped: Option<Stop>) -> Self {
        match outcome {
            Outcome::Answered => Self::Success,
            Outcome::Denied | Outcome::LimitReached => Self::Refused,
            Outcome::Stopped => stopped.map_or(Self::Interrupted, Stop::exit),
            Outcome::Unanswerable => Self::Usage,
            Outcome::Failed => Self::Failure,
        }
    }

    /// The number. Those of signals are the shell's: 128 and the number of the signal.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::News => 100,
            Self::TimedOut => 124,
            Self::HungUp => 129,
            Self::Interrupted => 130,
            Self::Unread => 141,
            Self::Terminated => 143,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_that_of_the_status_unless_a_signal_has_its_own() {
        let ends = [
            (Outcome::Answered, None),
            (Outcome::Denied, None),
            (Outcome::LimitReached, None),
            (Outcome::Stopped, None),
            (Outcome::Stopped, Some(Stop::Interrupt)),
            (Outcome::Stopped, Some(Stop::TimeUp)),
            (Outcome::Unanswerable, None),
            (Outcome::Failed, None),
        ];
        for (outcome, stop) in ends {
            let status = outcome.status(stop.map(Stop::cause));
            assert_eq!(Exit::of(outcome, stop).code(), status.exit_code(), "{outcome:?} {stop:?}");
        }
    }
}
