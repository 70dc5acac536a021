//! Whether what is said to models can be recorded or played back where the environment says so. It is asked before anything
//! begins: an answer that was paid for and cannot be kept would be lost.
//!
//! Who records and plays is in the modules.

use std::path::{Path, PathBuf};

use crate::detect::asks_nobody;
use crate::env::{AMPLIFIER_RECORD, AMPLIFIER_REPLAY, Environment};
use crate::files::{FileError, create_private_dir, create_private_file};
use crate::open::OpenSession;
use crate::providers;
use crate::told::Told;

/// Why a recording cannot be made or played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TapeError {
    #[error("`{AMPLIFIER_RECORD}` names `{}`, where nothing can be recorded", folder.display())]
    Record {
        folder: PathBuf,
        #[source]
        source: FileError,
    },
    #[error("`{AMPLIFIER_REPLAY}` names `{}`, which is no folder", folder.display())]
    Replay { folder: PathBuf },
}

impl TapeError {
    /// What the person can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Record { .. } => {
                format!(
                    "`{AMPLIFIER_RECORD}` takes a folder that you may write to; without it nothing is recorded"
                )
            }
            Self::Replay { .. } => format!(
                "`{AMPLIFIER_REPLAY}` takes a folder that `{AMPLIFIER_RECORD}` filled; without it the model is asked"
            ),
        }
    }
}

/// Refuses places that are of no use. A folder to record in is made.
pub(crate) fn check(environment: &Environment) -> Result<(), TapeError> {
    if let Some(folder) = named(environment, AMPLIFIER_RECORD) {
        try_to_write(&folder).map_err(|source| TapeError::Record { folder, source })?;
    }
    match named(environment, AMPLIFIER_REPLAY).filter(|folder| !folder.is_dir()) {
        Some(folder) => Err(TapeError::Replay { folder }),
        None => Ok(()),
    }
}

/// What is to be told where there is nothing to record or to play: who is asked answers by itself. Whoever set the variable
/// thinks otherwise.
pub fn idle(opened: &OpenSession) -> Option<Told> {
    let environment = opened.environment();
    let variable = [AMPLIFIER_RECORD, AMPLIFIER_REPLAY]
        .into_iter()
        .find(|variable| named(environment, variable).is_some())?;
    let (session, plan) = (&opened.session, opened.session.coordinator().plan());
    let (asked, _) = providers::asked(session.coordinator())?;
    let provider = plan.providers.get(providers::place_of(session, &asked)?)?;
    // A module from elsewhere may ask whomever it likes, whatever it is called.
    (provider.source.is_none() && asks_nobody(&provider.module))
        .then(|| Told::IdleTape { variable, provider: provider.module.clone() })
}

fn named(environment: &Environment, variable: &str) -> Option<PathBuf> {
    environment.get(variable).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

fn try_to_write(folder: &Path) -> Result<(), FileError> {
    create_private_dir(folder)?;
    let probe = folder.join(format!(".probe.{}.tmp", std::process::id()));
    create_private_file(&probe)?;
    std::fs::remove_file(&probe).map_err(FileError::at("remove", &probe))
}
