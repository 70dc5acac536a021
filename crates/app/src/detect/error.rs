//! Why there is no provider to ask.

use std::fmt;

use amplifier_core::session::OpenError;

/// Something that was looked for and cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed {
    /// A module, or a kind of server.
    pub what: String,
    /// Why not.
    pub reason: String,
}

/// Nothing here can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NothingFound {
    /// What was looked for.
    pub missed: Vec<Missed>,
    /// Whether calls are played from a tape, which names no provider.
    pub is_replaying: bool,
}

impl fmt::Display for NothingFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no provider is named, and none was found here")?;
        self.missed.iter().try_for_each(|missed| write!(f, "\n  {}: {}", missed.what, missed.reason))
    }
}

impl std::error::Error for NothingFound {}

/// Why no provider was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DetectError {
    /// There is none.
    #[error(transparent)]
    Nothing(#[from] NothingFound),
    /// One is set up in a way that cannot work: nobody who does that wants another.
    #[error("no provider is named, and one that is set up here cannot be used: {reason}")]
    Broken {
        /// What is wrong.
        reason: String,
    },
    /// The session on which modules are looked at did not open.
    #[error("the providers cannot be looked at")]
    Open(#[from] Box<OpenError>),
}

impl DetectError {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Nothing(NothingFound { is_replaying: true, .. }) => {
                Some("name the provider that the calls were recorded with: `--provider NAME`")
            }
            Self::Nothing(_) => {
                Some("set one of these variables, start a server, or name a provider with `--provider NAME`")
            }
            Self::Broken { .. } => {
                Some("mend the variable or unset it, or name another provider with `--provider NAME`")
            }
            Self::Open(_) => None,
        }
    }
}
