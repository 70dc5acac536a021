//! Files of settings as text: read within bounds, replaced as a whole under a lock.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::SettingsError;
use crate::files::{
    Durability, FileError, READ, create_private_dir, lock_within, private, refuse_special, write_atomic,
};

/// How long a change waits for another process that changes the same file.
const PATIENCE: Duration = Duration::from_secs(10);

/// The text of a file; nothing when there is none.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Option<String>, SettingsError> {
    let failed = |error| SettingsError::File(FileError::at(READ, path)(error));
    match std::fs::metadata(path) {
        Ok(found) if found.len() > limit => {
            return Err(SettingsError::TooLarge { path: path.to_owned(), bytes: found.len(), limit });
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(failed(error)),
        Ok(found) => refuse_special(path, &found).map_err(failed)?,
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    String::from_utf8(bytes).map(Some).map_err(|_| SettingsError::NotText { path: path.to_owned() })
}

/// Changes a file while nobody else does. What the change gives back is written, unless it gives nothing.
pub(crate) fn change<T>(
    path: &Path,
    limit: u64,
    change: impl FnOnce(Option<String>) -> Result<(Option<String>, T), SettingsError>,
) -> Result<T, SettingsError> {
    // A file that is a link, as people keep them in a repository of their own, stays one.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let folder = path.parent().unwrap_or(Path::new("."));
    create_folder(folder)?;
    let lock = lock(folder)?;
    let (new, answer) = change(read(&path, limit)?)?;
    if let Some(new) = new {
        write_atomic(&path, new.as_bytes(), Durability::Synced)?;
    }
    drop(lock);
    Ok(answer)
}

fn create_folder(folder: &Path) -> Result<(), SettingsError> {
    if folder.is_dir() {
        return Ok(());
    }
    Ok(create_private_dir(folder)?)
}

/// On unix the folder itself is locked, so that no lock file lies in anybody's repository.
fn lock(folder: &Path) -> Result<File, SettingsError> {
    let path: PathBuf = if cfg!(unix) { folder.to_path_buf() } else { folder.join(".settings.lock") };
    let lock = if cfg!(unix) {
        File::open(&path)
    } else {
        private().create(true).truncate(false).write(true).open(&path)
    };
    let lock = lock.map_err(FileError::at("open", &path))?;
    match lock_within(&lock, &path, PATIENCE)? {
        true => Ok(lock),
        false => Err(SettingsError::Busy { path, seconds: PATIENCE.as_secs() }),
    }
}
