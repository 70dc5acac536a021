//! The files that `hooks-backup` kept: which there are, and putting one back. What is kept and when is the hook's
//! business; asking the person is the front end's.

use std::io;
use std::path::{Path, PathBuf};

use amplifier_core::clock::Clock;
use amplifier_modules::hooks::backup::{About, BackupError, Backups, Limits};
use amplifier_protocol::ids::SessionId;
use serde::Serialize;
use sha2::{Digest, Sha256};

pub(crate) use amplifier_modules::hooks::backup::session_folder;
pub use amplifier_modules::hooks::backup::{Entry, RestoreError, Restored};

use crate::clock::SystemClock;
use crate::journal::{Lease, LeaseError, Owner};
use crate::paths::Home;
use crate::settings::SettingsFiles;

/// Where `hooks-backup` keeps its copies in the working folder, unless a plan says otherwise.
pub const USUAL_DIR: &str = ".amplifier/backups";

/// The folder whose copies are meant in a working folder: itself, or the nearest above it in its project that has copies in
/// `dir`.
pub fn keeper(files: &SettingsFiles, dir: &Path) -> PathBuf {
    let here = files.working_dir();
    let project = files.project().unwrap_or(here);
    let within = here.ancestors().take_while(|folder| folder.starts_with(project));
    let nearest = within.into_iter().find(|folder| folder.join(dir).is_dir());
    nearest.unwrap_or(here).to_path_buf()
}

/// The copies of one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionBackups {
    /// The session.
    #[serde(rename = "session_id")]
    pub session: SessionId,
    /// What is kept, oldest first.
    pub entries: Vec<Entry>,
}

/// What stands where a copy would be put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// No file.
    Nothing,
    /// Just what the copy holds.
    Same,
    /// Something else, of this many bytes.
    File(u64),
}

/// A copy that was found, and what putting it back would overwrite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The session it belongs to.
    pub session: SessionId,
    /// The copy.
    pub entry: Entry,
    /// What stands there now.
    pub now: Standing,
}

/// Why backups could not be shown or put back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupsError {
    /// Nothing is kept there.
    #[error("there are no backups in `{}`", dir.display())]
    None {
        /// Where was looked.
        dir: PathBuf,
    },
    /// Nothing is kept there of this session.
    #[error("there are no backups of session `{session}` in `{}`", dir.display())]
    NoneOfSession {
        /// The session.
        session: SessionId,
        /// Where was looked.
        dir: PathBuf,
    },
    /// A number names a copy within its session only.
    #[error("there are backups of {} sessions, and each counts from 1", sessions.len())]
    WhichSession {
        /// The sessions.
        sessions: Vec<SessionId>,
    },
    /// The folder could not be read.
    #[error(transparent)]
    Read(#[from] BackupError),
    /// The session runs: it counts its copies itself.
    #[error("session `{session}` cannot be kept still while a file is put back")]
    Running {
        /// The session.
        session: SessionId,
        /// Who has it.
        #[source]
        source: LeaseError,
    },
    /// The copy was not put back.
    #[error(transparent)]
    Restore(#[from] RestoreError),
}

impl BackupsError {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::None { .. } | Self::NoneOfSession { .. } => {
                Some("`--dir DIR` names the folder, if the plan sets another `backup_dir`")
            }
            Self::WhichSession { .. } => Some("name one with `--session SESSION`"),
            Self::Running { .. } => Some("end that session first"),
            Self::Restore(RestoreError::Unknown { .. }) => {
                Some("`amplifier backup list` shows what there is")
            }
            Self::Restore(RestoreError::Outside { .. }) => {
                Some("`--within DIR` names the folder that files may be put back into")
            }
            _ => None,
        }
    }

    /// Whether it was asked in a wrong way, and nothing is wrong with the backups.
    pub fn is_usage(&self) -> bool {
        let of_restore = |error: &RestoreError| {
            matches!(error, RestoreError::Unknown { .. } | RestoreError::Outside { .. })
        };
        match self {
            Self::None { .. } | Self::NoneOfSession { .. } | Self::WhichSession { .. } => true,
            Self::Restore(error) => of_restore(error),
            _ => false,
        }
    }
}

/// The copies in a folder, of all sessions or of those whose id begins so; the sessions oldest first. Nothing kept is an
/// empty list; nothing kept of the session that was named is an error.
pub fn list(dir: &Path, only: Option<&SessionId>) -> Result<Vec<SessionBackups>, BackupsError> {
    let failed = |source| BackupError { action: "read folder", path: dir.to_owned(), source };
    let folders = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && only.is_none() => return Ok(Vec::new()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(BackupsError::None { dir: dir.to_owned() });
        }
        folders => folders.map_err(failed)?,
    };
    let mut found = Vec::new();
    for folder in folders {
        let folder = folder.map_err(failed)?;
        // What is no session of ours is none of our business.
        let Some(session) = folder.file_name().to_str().and_then(|name| name.parse::<SessionId>().ok())
        else {
            continue;
        };
        if only.is_some_and(|only| !session.as_str().starts_with(only.as_str())) {
            continue;
        }
        let entries = Backups::look(&folder.path())?;
        if !entries.is_empty() {
            found.push(SessionBackups { session, entries });
        }
    }
    found.sort_by(|a, b| a.session.cmp(&b.session));
    match only {
        Some(session) if found.is_empty() => {
            Err(BackupsError::NoneOfSession { session: session.clone(), dir: dir.to_owned() })
        }
        _ => Ok(found),
    }
}

/// The copy with a number, of the session that is named or of the only one.
pub fn find(dir: &Path, session: Option<&SessionId>, number: u64) -> Result<Found, BackupsError> {
    let mut sessions = list(dir, session)?;
    if sessions.len() > 1 {
        let sessions = sessions.into_iter().map(|backups| backups.session).collect();
        return Err(BackupsError::WhichSession { sessions });
    }
    let Some(SessionBackups { session: found, entries }) = sessions.pop() else {
        return Err(BackupsError::None { dir: dir.to_owned() });
    };
    let entry = entries.into_iter().find(|entry| entry.number == number);
    let entry = entry.ok_or(RestoreError::Unknown { number })?;
    let now = standing(&entry)?;
    Ok(Found { session: found, entry, now })
}

fn standing(entry: &Entry) -> Result<Standing, BackupsError> {
    let failed = |source| BackupError { action: "look at", path: entry.path.clone(), source };
    let found = match std::fs::metadata(&entry.path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && entry.sha256.is_none() => {
            return Ok(Standing::Same);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Standing::Nothing),
        found => found.map_err(failed)?,
    };
    // Only a file of the same size is worth reading.
    if found.is_file() && found.len() == entry.bytes && entry.sha256.is_some() {
        let bytes = std::fs::read(&entry.path).map_err(failed)?;
        let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        if entry.sha256.as_ref() == Some(&hash) {
            return Ok(Standing::Same);
        }
    }
    Ok(Standing::File(found.len()))
}

/// What was done, and the number under which that can be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutBack {
    /// What was done.
    pub restored: Restored,
    /// The copy of what stood there before.
    pub undo: u64,
}

/// Puts a copy back, if its file lies in `within`. What stands there is kept first. A session that runs is left alone.
pub fn restore(
    dir: &Path,
    found: &Found,
    within: &Path,
    home: Option<&Home>,
) -> Result<PutBack, BackupsError> {
    let clock = SystemClock::default();
    let folder = home.map(|home| home.session(&found.session)).filter(|folder| folder.dir().is_dir());
    // Held to the end: the session would number its next copy like ours.
    let _lease = match folder {
        Some(folder) => {
            let lease = Lease::acquire(&folder.lease(), Owner::this_process("amplifier backup", clock.now()));
            let session = found.session.clone();
            Some(lease.map_err(|source| BackupsError::Running { session, source })?)
        }
        None => None,
    };
    // Putting back must not push out what is kept; the session's own limits come back with the session.
    let limits = Limits { max_file_bytes: u64::MAX, max_total_bytes: u64::MAX, max_entries: usize::MAX };
    let mut backups = Backups::open(&session_folder(dir, &found.session), limits)?;
    let about =
        About { time: clock.now(), turn: 0, tool_name: "backup restore".to_owned(), tool_call_id: None };
    let restored = backups.restore(found.entry.number, within, &about)?;
    let undo = backups.entries().last().map_or(0, |last| last.number);
    Ok(PutBack { restored, undo })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_kept_is_an_empty_list_and_a_wrong_number_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("backups");
        assert_eq!(list(&dir, None).unwrap(), []);
        let error = find(&dir, None, 1).unwrap_err();
        assert!(matches!(error, BackupsError::None { .. }) && error.is_usage(), "{error}");
        // Folders of others are passed over.
        std::fs::create_dir_all(dir.join("not a session")).unwrap();
        assert_eq!(list(&dir, None).unwrap(), []);
    }
}
