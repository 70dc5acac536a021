//! What the exit code tells a script.

use std::process::ExitCode;

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
    /// It was interrupted.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Usage => 2,
            Exit::Refused => 3,
            Exit::Interrupted => 130,
        })
    }
}
