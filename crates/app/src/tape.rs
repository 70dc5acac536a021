//! Whether what is said to models can be recorded or played back where the environment says so. It is asked before anything
//! begins: an answer that was paid for and cannot be kept would be lost.
//!
//! Who records and plays is in the modules.

use std::path::{Path, PathBuf};

use amplifier_protocol::mount_plan::MountPlan;

use crate::detect::asks_nobody;
use crate::env::{AMPLIFIER_RECORD, AMPLIFIER_REPLAY, Environment};
use crate::files::{FileError, create_private_dir, create_private_file};
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

/// What is to be told where a plan leaves nothing to record or to play: who is asked first answers by itself. Whoever set the
/// variable thinks otherwise.
pub(crate) fn idle(plan: &MountPlan, environment: &Environment) -> Option<Told> {
    // A module from elsewhere may ask whomever it likes, whatever it is called.
    let asked = plan.providers.first().filter(|spec| spec.source.is_none() && asks_nobody(&spec.module))?;
    let variable = [AMPLIFIER_RECORD, AMPLIFIER_REPLAY]
        .into_iter()
        .find(|variable| named(environment, variable).is_some())?;
    Some(Told::IdleTape { variable, provider: asked.module.clone() })
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
