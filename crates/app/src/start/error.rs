//! Why no session can be started, and what the person can do about it.

use std::error::Error;
use std::fmt;

use crate::choice::ChoiceError;
use crate::detect::DetectError;
use crate::keys::Problem;
use crate::lack::NobodyToAsk;
use crate::open::AppError;
use crate::overrides::OverrideError;
use crate::providers::UnknownProvider;
use crate::sessions::SessionError;
use crate::tape::TapeError;
use crate::trust::CheckError;

/// Why there is nothing to open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The session that shall go on is not there.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The plan of that session cannot be read.
    #[error(transparent)]
    Kept(#[from] Box<AppError>),
    /// What was chosen gives no plan.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// It asks for what the user has not agreed to.
    #[error(transparent)]
    Trust(#[from] CheckError),
    /// There is no provider, or not the one that was named.
    #[error(transparent)]
    Provider(#[from] NoProvider),
    /// A value cannot be set.
    #[error(transparent)]
    Set(#[from] OverrideError),
    /// Every provider of the plan waits for a variable.
    #[error(transparent)]
    Keyless(#[from] Box<NobodyToAsk>),
    /// What is said cannot be recorded or played back as the environment wants it.
    #[error(transparent)]
    Tape(#[from] TapeError),
}

impl StartError {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Session(error) => error.hint(),
            Self::Kept(error) => error.hint(),
            Self::Choice(error) => error.hint(),
            Self::Trust(error) => error.hint(),
            Self::Provider(error) => error.fault.hint().map(str::to_owned),
            Self::Set(error) => error.hint().map(str::to_owned),
            Self::Keyless(nobody) => Some(nobody.lack.cure()),
            Self::Tape(error) => Some(error.hint()),
        }
    }
}

/// Why a provider cannot be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderFault {
    /// Nobody knows the one that was named.
    #[error(transparent)]
    Unknown(#[from] UnknownProvider),
    /// The one that was named lacks something here.
    #[error("the provider `{name}` cannot be used here: {reason}")]
    NotUsable {
        /// As it was named.
        name: String,
        /// What it lacks.
        reason: String,
    },
    /// None was found.
    #[error(transparent)]
    Detect(#[from] DetectError),
}

impl ProviderFault {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unknown(error) => Some(error.hint()),
            Self::NotUsable { .. } => Some(
                "`amplifier init` connects it and keeps its key; `amplifier provider list` shows the others",
            ),
            Self::Detect(error) => error.hint(),
        }
    }
}

/// A provider that cannot be asked, and what may be the reason behind it.
#[derive(Debug)]
pub struct NoProvider {
    pub fault: ProviderFault,
    /// What went wrong while stored keys were looked for.
    pub keys: Vec<Problem>,
}

impl fmt::Display for NoProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(f)
    }
}

impl Error for NoProvider {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.fault.source()
    }
}
