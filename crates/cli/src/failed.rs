//! What programs are told that asked for JSON, when the command they ran has none to give: one object, the same for every
//! command. Who has printed something already has told it in its own shape, as `run` does.

use std::ffi::OsString;

use amplifier_app::ended::ToldError;
use amplifier_protocol::run::{RunFailure, RunStatus};
use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::exit::Exit;
use crate::render;

/// Whether somebody typed that the command is to answer in JSON. Where it does so anyway, as `plan show`, what it prints is
/// meant for a file, and a file must not hold what is none.
pub fn wants_json(matches: &ArgMatches) -> bool {
    let mut leaf = matches;
    while let Some((_, below)) = leaf.subcommand() {
        leaf = below;
    }
    let typed = |id: &str| {
        leaf.try_contains_id(id).is_ok() && leaf.value_source(id) == Some(ValueSource::CommandLine)
    };
    let form = || leaf.try_get_raw("output").ok().flatten().and_then(|mut values| values.next());
    let short = || leaf.try_get_one::<bool>("json").ok().flatten().copied();
    (typed("output") && form().is_some_and(|form| form == "json")) || short().unwrap_or_default()
}

/// The same of a command line that the parser did not take.
pub fn seems_to_want_json() -> bool {
    let words: Vec<_> = std::env::args_os().skip(1).take_while(|word| word != "--").collect();
    let is_pair = |pair: &[OsString]| matches!(pair, [flag, form] if flag == "--output" && form == "json");
    words.iter().any(|word| word == "--output=json") || words.windows(2).any(is_pair)
}

/// Tells it, with what the person was told.
pub fn tell(exit: Exit) {
    if matches!(exit, Exit::Success | Exit::News | Exit::Unread) || render::has_answered() {
        return;
    }
    let nothing = || ToldError { error: "nothing was done".to_owned(), ..ToldError::default() };
    let ToldError { error, causes, hint, place } = render::told_as_one().unwrap_or_else(nothing);
    let failure = RunFailure { status: status(exit), exit_code: exit.code(), error, causes, hint, place };
    match serde_json::to_value(failure) {
        Ok(value) => render::last_word(&value),
        Err(error) => render::error(&error, None),
    }
}

/// How something ended that came to no session.
pub fn status(exit: Exit) -> RunStatus {
    match exit {
        Exit::TimedOut => RunStatus::TimedOut,
        Exit::Interrupted | Exit::Terminated | Exit::HungUp | Exit::Unread => RunStatus::Cancelled,
        _ => RunStatus::Error,
    }
}
