//! Puts a file back as it was before a change. What it holds now is kept first, so that a restore can be undone.

use std::io;
use std::path::{Path, PathBuf};

use super::store::{About, BackupError, Backups, Entry, Kept, hash, is_inside};
use crate::hooks::place::{real_path, write_atomic};

/// A file was not put back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// No such entry.
    #[error("there is no backup number {number}; it may have been the oldest when room was needed")]
    Unknown {
        /// What was asked for.
        number: u64,
    },
    /// The file lies outside the folder that restoring is confined to.
    #[error("`{}` lies outside `{}`", path.display(), within.display())]
    Outside {
        /// The file.
        path: PathBuf,
        /// Where it may lie.
        within: PathBuf,
    },
    /// The copy is not what was put in.
    #[error("the copy of `{}` is damaged: its hash is no longer `{sha256}`", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What its hash was.
        sha256: String,
    },
    /// What the file holds now cannot be kept, and would be lost.
    #[error("what stands there now would be lost: {reason}")]
    WouldLose {
        /// Why it cannot be kept.
        reason: String,
    },
    /// The disk refused.
    #[error(transparent)]
    Backup(#[from] BackupError),
}

/// What a restore did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restored {
    /// The file holds what it held.
    Written(PathBuf),
    /// There was no file before the change, so there is none again.
    Removed(PathBuf),
}

impl Backups {
    /// Puts the file of an entry back, if it lies in the folder `within` after links are followed.
    pub fn restore(&mut self, number: u64, within: &Path, about: &About) -> Result<Restored, RestoreError> {
        let known = self.entries().iter().find(|entry| entry.number == number);
        let entry = known.cloned().ok_or(RestoreError::Unknown { number })?;
        let roots = [within.to_owned()];
        // The entry holds the real path of then; somebody may have put a link on the way since.
        let path = real_path(&entry.path);
        if !is_inside(&path, &roots) {
            return Err(RestoreError::Outside { path, within: within.to_owned() });
        }
        let content = self.content(&entry)?;
        if let Kept::Skipped { reason } = self.keep(&path, &roots, about)? {
            return Err(RestoreError::WouldLose { reason });
        }
        let Some(content) = content else {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(BackupError::at("remove", &path)(error).into());
                }
                _ => return Ok(Restored::Removed(path)),
            }
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(BackupError::at("create folder", folder))?;
        }
        write_atomic(&path, &content).map_err(BackupError::at("write", &path))?;
        set_mode(&path, entry.mode).map_err(BackupError::at("set the mode of", &path))?;
        Ok(Restored::Written(path))
    }

    /// What the file held; nothing when there was none.
    fn content(&self, entry: &Entry) -> Result<Option<Vec<u8>>, RestoreError> {
        let Some(sha256) = &entry.sha256 else { return Ok(None) };
        let damaged = || RestoreError::Damaged { path: entry.path.clone(), sha256: sha256.clone() };
        // The index is a file that others can write; a hash that is none must not lead out of the folder.
        if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(damaged());
        }
        let object = self.object(sha256);
        let content = std::fs::read(&object).map_err(BackupError::at("read", &object))?;
        if hash(&content) == *sha256 { Ok(Some(content)) } else { Err(damaged()) }
    }
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: Option<u32>) -> io::Result<()> {
    let Some(mode) = mode else { return Ok(()) };
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_path: &Path, _mode: Option<u32>) -> io::Result<()> {
    Ok(())
}
