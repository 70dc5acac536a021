//! Folders in which things are made before they are put in place, and the sweeping of those whose makers have died.
//!
//! Beside each folder lies a locked file. Who can lock it knows that its maker is gone.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::FetchError;

/// How many times another name is tried.
const ATTEMPTS: usize = 16;

/// A folder of one's own on the file system of the cache; removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    dir: PathBuf,
    // Dropped after the folder is gone; then the file goes too.
    _lock: NamedTempFile,
}

impl Scratch {
    pub(super) fn create(store: &Path) -> Result<Self, FetchError> {
        let temp = store.join(".temp");
        let at = || FetchError::in_cache("make a folder in", &temp);
        std::fs::create_dir_all(&temp).map_err(at())?;
        for _ in 0..ATTEMPTS {
            let lock =
                tempfile::Builder::new().prefix("t-").suffix(".lock").tempfile_in(&temp).map_err(at())?;
            // A sweeper may have come between the two steps. It removes the file while it holds the lock.
            if lock.as_file().try_lock().is_err() || !lock.path().exists() {
                continue;
            }
            let dir = lock.path().with_extension("");
            std::fs::create_dir(&dir).map_err(at())?;
            return Ok(Self { dir, _lock: lock });
        }
        Err(at()(io::Error::other("every name was taken")))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    /// Removes what dead processes left. What cannot be removed now is left for the next sweep.
    pub(super) fn sweep(store: &Path) -> Result<(), FetchError> {
        let temp = store.join(".temp");
        for name in super::names_in(&temp)? {
            let Some(stem) = name.strip_suffix(".lock") else { continue };
            let lock = temp.join(&name);
            let Ok(file) = File::open(&lock) else { continue };
            if file.try_lock().is_err() {
                continue;
            }
            let dir = temp.join(stem);
            match remove_tree(&dir) {
                // A child that outlived its parent may still write; then the folder is not empty yet.
                Err(error) if error.kind() != io::ErrorKind::NotFound => continue,
                _ => {}
            }
            super::remove_if_there(&lock)?;
        }
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed stays, as after a crash; the owner of a cache sees it there.
        remove_tree(&self.dir).ok();
    }
}

/// Removes a folder, also one in which somebody made folders read-only: what is in those could not be removed else.
pub(super) fn remove_tree(dir: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(dir)?;
            std::fs::remove_dir_all(dir)
        }
        ended => ended,
    }
}

/// Lets the owner change every folder of a tree. Links are not followed.
pub(super) fn make_writable(dir: &Path) -> io::Result<()> {
    allow(dir)?;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_writable(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn allow(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut permissions = std::fs::symlink_metadata(dir)?.permissions();
    permissions.set_mode(permissions.mode() | 0o700);
    std::fs::set_permissions(dir, permissions)
}

#[cfg(not(unix))]
fn allow(_dir: &Path) -> io::Result<()> {
    Ok(())
}
