//! Whether what is said to models can be recorded or played back where the environment says so. It is asked before anything
//! begins: an answer that was paid for and cannot be kept would be lost.
//!
//! Who records and plays is in the modules.

use std::path::{Path, PathBuf};

use crate::env::{AMPLIFIER_RECORD, AMPLIFIER_REPLAY, Environment};
use crate::files::{FileError, create_private_dir, create_private_file};

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
    let named = |name: &str| environment.get(name).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    if let Some(folder) = named(AMPLIFIER_RECORD) {
        try_to_write(&folder).map_err(|source| TapeError::Record { folder, source })?;
    }
    match named(AMPLIFIER_REPLAY).filter(|folder| !folder.is_dir()) {
        Some(folder) => Err(TapeError::Replay { folder }),
        None => Ok(()),
    }
}

fn try_to_write(folder: &Path) -> Result<(), FileError> {
    create_private_dir(folder)?;
    let probe = folder.join(format!(".probe.{}.tmp", std::process::id()));
    create_private_file(&probe)?;
    std::fs::remove_file(&probe).map_err(FileError::at("remove", &probe))
}
