//! What a person should know before the first answer of a session. It is told while it is found out, and it decides nothing:
//! a front end shows it, in the words that stand here or in its own.

use std::fmt;
use std::path::PathBuf;

use amplifier_bundle::notice::{Notice, Severity};
use amplifier_protocol::event::SessionOrigin;
use amplifier_protocol::ids::ModuleId;

use crate::detect::{Detected, NothingFound};
use crate::env::AMPLIFIER_RECORD;
use crate::keys::Problem;
use crate::prepare::PreparedBundle;
use crate::sessions::export::kind;
use crate::spelling::{quoted, told};

/// Hears what is to be told, as soon as it is known.
pub type Teller<'a> = &'a (dyn Fn(Told) + Send + Sync);

/// Something that a person should know.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Told {
    /// About the text of a bundle or of a profile.
    Notice(Notice),
    /// About a plan file: a line that says where, and how much it weighs.
    Check(String),
    /// A module cannot be had.
    Missing(String),
    /// The session goes on in another folder than it began in.
    Elsewhere { began: PathBuf, here: PathBuf },
    /// What the session was started from gives something else now.
    Changed(SessionOrigin),
    /// It gives nothing any more, for this reason.
    Gone { origin: SessionOrigin, reason: String },
    /// No provider is named, and this one is asked.
    Found(Box<Detected>),
    /// No provider is named and none was found: the demo answers.
    Demo(NothingFound),
    /// The demo answered so far, and this provider is asked from here on.
    Relieved { provider: ModuleId },
    /// A stored key could not be looked up.
    Key(Problem),
    /// This variable wants model calls recorded or played, and this provider makes none.
    IdleTape { variable: &'static str, provider: ModuleId },
}

impl Told {
    /// What is worth telling about a bundle that is ready.
    pub fn of_bundle(bundle: &PreparedBundle) -> Vec<Self> {
        let notices = bundle.notices().iter().cloned().map(Self::Notice);
        notices.chain(bundle.missing.iter().cloned().map(Self::Missing)).collect()
    }

    /// How much it weighs.
    pub fn severity(&self) -> Severity {
        match self {
            Self::Notice(notice) => notice.severity,
            Self::Check(_) | Self::Missing(_) | Self::Key(_) | Self::IdleTape { .. } => Severity::Warning,
            Self::Elsewhere { .. }
            | Self::Changed(_)
            | Self::Gone { .. }
            | Self::Found(_)
            | Self::Demo(_)
            | Self::Relieved { .. } => Severity::Note,
        }
    }

    /// What the person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Notice(notice) => notice.hint.clone(),
            Self::Elsewhere { began, .. } if began.is_dir() => {
                Some(format!("`--cwd {}` works there again", quoted(began)))
            }
            Self::Elsewhere { .. } => None,
            Self::Changed(origin) => {
                let (flag, reference) = (kind(origin.kind), &origin.reference);
                Some(format!("`--{flag} {reference}` takes what is there now"))
            }
            Self::Demo(_) => Some(
                "`amplifier init` connects a model; `amplifier provider list` shows what was looked for"
                    .to_owned(),
            ),
            Self::IdleTape { variable, .. } => {
                Some(format!("`--provider NAME` asks one that does; without `{variable}` this is not told"))
            }
            Self::Check(_)
            | Self::Missing(_)
            | Self::Gone { .. }
            | Self::Found(_)
            | Self::Relieved { .. }
            | Self::Key(_) => None,
        }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = |origin: &SessionOrigin| format!("{} `{}`", kind(origin.kind), origin.reference);
        match self {
            Self::Notice(notice) => notice.fmt(f),
            Self::Check(line) | Self::Missing(line) => f.write_str(line),
            Self::Elsewhere { began, here } => {
                let gone = if began.is_dir() { "" } else { ", which is no folder any more" };
                let (began, here) = (told(began), told(here));
                write!(f, "this session began in `{began}`{gone}; its tools work in `{here}` now")
            }
            Self::Changed(origin) => {
                let what = what(origin);
                write!(f, "{what} changed since this session began; it goes on with what it began with")
            }
            Self::Gone { origin, reason } => {
                write!(f, "{} cannot be compared with the plan of this session: {reason}", what(origin))
            }
            Self::Found(found) => {
                let (module, reason) = (&found.spec.module, &found.reason);
                write!(f, "no provider is named; `{module}` is used: {reason}")
            }
            Self::Demo(_) => f.write_str(
                "no model is connected, so the built-in demo answers: it looks at this folder and thinks nothing",
            ),
            Self::Relieved { provider } => {
                write!(f, "the demo answered so far; `{provider}` is asked from here on")
            }
            Self::Key(problem) => problem.fmt(f),
            Self::IdleTape { variable, provider } => {
                let done = if *variable == AMPLIFIER_RECORD { "recorded" } else { "replayed" };
                write!(
                    f,
                    "`{variable}` is set, and nothing is {done}: `{provider}` asks nobody over the network"
                )
            }
        }
    }
}
