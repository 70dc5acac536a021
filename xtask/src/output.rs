//! What the tasks print, and the one error type they share. No task decides about colours or log levels.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;

/// Why a task could not do its work. What a task *finds* is not an error but an outcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskError {
    /// A program we call is not there or could not be started.
    #[error("`{program}` could not be started")]
    Start {
        program: String,
        #[source]
        source: io::Error,
    },
    /// A program we call ended badly; its own words are in `said`.
    #[error("`{command}` ended with {status}{}", if said.is_empty() { String::new() } else { format!(": {said}") })]
    Status { command: String, status: String, said: String },
    /// A program we call ran longer than it may.
    #[error("`{command}` did not end within {seconds} s and was stopped")]
    Deadline { command: String, seconds: u64 },
    /// `cargo metadata` printed something we cannot read.
    #[error("the output of `cargo metadata` could not be read")]
    Metadata(#[source] serde_json::Error),
    /// A file of the workspace could not be read.
    #[error("`{}` could not be read", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A file could not be written.
    #[error("`{}` could not be written", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The schema of an event could not be turned into JSON.
    #[error("the schema of `{name}` could not be read")]
    Schema {
        name: String,
        #[source]
        source: serde_json::Error,
    },
    /// Our own program printed something we cannot read.
    #[error("what `{command}` printed could not be read")]
    Printed {
        command: String,
        #[source]
        source: serde_json::Error,
    },
    /// A name on the command line that we do not know.
    #[error("no fuzz target `{name}`; there are {}", known.join(", "))]
    UnknownTarget { name: String, known: Vec<String> },
    /// The bench printed nothing we could put into the table.
    #[error(
        "`{command}` printed no measurement; expected lines like {{\"name\": \"emit_0\", \"value\": 1, \"unit\": \"ns\"}}"
    )]
    NoMeasurement { command: String },
    /// Our own output went nowhere.
    #[error("the result could not be printed")]
    Print(#[source] io::Error),
}

/// Prints one line, or a whole table, on standard output.
pub(crate) fn say(text: &str) -> Result<(), TaskError> {
    writeln!(io::stdout().lock(), "{text}").map_err(TaskError::Print)
}

/// Prints an error and its causes on standard error.
pub(crate) fn complain(error: &dyn Error) {
    let mut text = format!("xtask: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!("\n  because {error}"));
        cause = error.source();
    }
    // Standard error being gone leaves nobody to tell; the exit code still says it.
    writeln!(io::stderr().lock(), "{text}").unwrap_or(());
}
