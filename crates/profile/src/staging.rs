//! Changes in `share/` that are whole or not there: files written beside their place, folders exchanged in one step.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::ProfileError;
use crate::lock_file::LOCK_FILE;
use crate::mount_type::MountType;

/// Writes a file: the old text or the new one is there, never half of one.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), ProfileError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir).map_err(ProfileError::io("create", dir))?;
    let mut file = tempfile::Builder::new()
        .prefix(".write-")
        .tempfile_in(dir)
        .map_err(ProfileError::io("write in", dir))?;
    file.write_all(bytes)
        .and_then(|()| file.as_file().sync_all())
        .map_err(ProfileError::io("write", path))?;
    readable(file.as_file()).map_err(ProfileError::io("write", path))?;
    file.persist(path).map_err(|error| ProfileError::io("replace", path)(error.error))?;
    Ok(())
}

/// A temporary file is for its owner alone; what it becomes is as readable as any other.
#[cfg(unix)]
fn readable(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable(_file: &fs::File) -> io::Result<()> {
    Ok(())
}

/// A folder being built for a profile, beside the one that is in use. Dropping it removes it.
///
/// Whoever has one holds the guard of the collection, so there is one at a time.
#[derive(Debug)]
pub(crate) struct Staging {
    path: PathBuf,
    /// The folder it will replace.
    place: PathBuf,
}

impl Staging {
    /// Begins; what an interrupted run left is put right first.
    pub(crate) fn begin(place: &Path) -> Result<Self, ProfileError> {
        let staging = Self { path: beside(place, ".staging-"), place: place.to_owned() };
        let aside = beside(place, ".old-");
        if aside.exists() {
            if place.exists() {
                staging.rescue(&aside)?;
                remove(&aside)?;
            } else {
                fs::rename(&aside, place).map_err(ProfileError::io("put back", place))?;
            }
        }
        if staging.path.exists() {
            staging.rescue(&staging.path)?;
            remove(&staging.path)?;
        }
        fs::create_dir_all(&staging.path).map_err(ProfileError::io("create", &staging.path))?;
        Ok(staging)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts the new folder in the place of the old one; files of others in the old one move along.
    ///
    /// `text` is the `profile.md` the new folder was built from: an edit made meanwhile is kept.
    pub(crate) fn finish(self, text: &[u8]) -> Result<(), ProfileError> {
        let old = if exchange(&self.path, &self.place).is_ok() {
            self.path.clone()
        } else {
            let aside = beside(&self.place, ".old-");
            fs::rename(&self.place, &aside).map_err(ProfileError::io("move aside", &self.place))?;
            fs::rename(&self.path, &self.place).map_err(ProfileError::io("put in place", &self.place))?;
            aside
        };
        let edited = old.join("profile.md");
        if fs::read(&edited).is_ok_and(|now| now != text) {
            let to = self.place.join("profile.md");
            fs::rename(&edited, &to).map_err(ProfileError::io("keep the edit of", &to))?;
        }
        self.rescue(&old)?;
        remove(&old)
    }

    /// Moves what was not made here from an old folder to the one in use.
    fn rescue(&self, old: &Path) -> Result<(), ProfileError> {
        let made = made_here();
        for entry in fs::read_dir(old).map_err(ProfileError::io("read", old))? {
            let entry = entry.map_err(ProfileError::io("read", old))?;
            let name = entry.file_name();
            let to = self.place.join(&name);
            let is_ours =
                name.to_str().is_some_and(|name| made.contains(name) || name.starts_with(".write-"));
            if !is_ours && fs::symlink_metadata(&to).is_err() {
                fs::rename(entry.path(), &to).map_err(ProfileError::io("keep", &to))?;
            }
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What cannot be removed is removed by the next run.
        fs::remove_dir_all(&self.path).ok();
    }
}

fn made_here() -> BTreeSet<&'static str> {
    let folders = MountType::ALL.map(MountType::as_str);
    folders.into_iter().chain(["agents", "contexts", "profile.md", LOCK_FILE]).collect()
}

fn beside(place: &Path, prefix: &str) -> PathBuf {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    place.with_file_name(format!("{prefix}{name}"))
}

pub(crate) fn remove(path: &Path) -> Result<(), ProfileError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ProfileError::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Exchanges two folders in one step, so that nobody ever finds none.
#[cfg(target_os = "linux")]
fn exchange(one: &Path, two: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, two, RenameFlags::EXCHANGE)?)
}

#[cfg(not(target_os = "linux"))]
fn exchange(_one: &Path, _two: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
