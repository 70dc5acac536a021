//! What programs are told that asked for JSON, when the command they ran has none to give: one object, the same for every
//! command; and who asked for lines gets the last one, the result of a run without a session. Who has printed something already
//! has told it in its own shape, as `run` does.

use std::ffi::{OsStr, OsString};

use amplifier_app::ended::{self, ToldError};
use amplifier_protocol::run::{RunFailure, RunStatus, result_line};
use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::exit::Exit;
use crate::harmless::escaped;
use crate::render;

/// What a program wants to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// One object.
    Object,
    /// One object a line, the last one a result.
    Lines,
}

impl Wanted {
    fn of(form: &OsStr) -> Option<Self> {
        match form.to_str()? {
            "json" => Some(Self::Object),
            "jsonl" => Some(Self::Lines),
            _ => None,
        }
    }
}

/// What somebody typed that the command is to answer in, if that is JSON. Where it does so anyway, as `plan show`, what it
/// prints is meant for a file, and a file must not hold what is none.
pub fn wanted(matches: &ArgMatches) -> Option<Wanted> {
    let mut leaf = matches;
    while let Some((_, below)) = leaf.subcommand() {
        leaf = below;
    }
    let typed = |id: &str| {
        leaf.try_contains_id(id).is_ok() && leaf.value_source(id) == Some(ValueSource::CommandLine)
    };
    let form = || leaf.try_get_raw("output").ok().flatten().and_then(|mut values| values.next());
    let short = || leaf.try_get_one::<bool>("json").ok().flatten().copied();
    let output = if typed("output") { form().and_then(Wanted::of) } else { None };
    output.or_else(|| short().unwrap_or_default().then_some(Wanted::Object))
}

/// The same of a command line that the parser did not take.
pub fn seemingly_wanted() -> Option<Wanted> {
    let words: Vec<_> = std::env::args_os().skip(1).take_while(|word| word != "--").collect();
    let joined = |word: &OsString| Wanted::of(OsStr::new(word.to_str()?.strip_prefix("--output=")?));
    let pair = |pair: &[OsString]| match pair {
        [flag, form] if flag == "--output" => Wanted::of(form),
        _ => None,
    };
    let found = words.iter().find_map(joined).or_else(|| words.windows(2).find_map(pair));
    // No other command knows lines.
    found.filter(|wanted| *wanted == Wanted::Object || crate::takes_prompt())
}

/// Tells it, with what the person was told.
pub fn tell(exit: Exit, wanted: Wanted) {
    if matches!(exit, Exit::Success | Exit::News | Exit::Unread) || render::has_answered() {
        return;
    }
    let nothing = || ToldError { error: "nothing was done".to_owned(), ..ToldError::default() };
    let told = render::told_as_one().unwrap_or_else(nothing);
    let (status, exit_code) = (status(exit), exit.code());
    let text = match wanted {
        Wanted::Object => {
            let ToldError { error, causes, hint, place } = told;
            let failure = RunFailure { status, exit_code, error, causes, hint, place };
            serde_json::to_value(failure).map(|value| format!("{value:#}"))
        }
        Wanted::Lines => {
            result_line(&ended::without_session(status, exit_code, told)).map(|line| line.to_string())
        }
    };
    match text {
        Ok(text) => render::last_word(&escaped(&text)),
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
