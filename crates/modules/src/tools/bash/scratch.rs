//! The folder that commands of one session keep notes and temporary files in. It goes with the session; one whose process was
//! killed is taken away by the next session that makes one.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

const PREFIX: &str = "amplifier-bash-";
/// Held for as long as the owner lives; whoever can take it has found a folder without an owner.
const LOCK: &str = "lock";
/// How far a folder of temporary files is looked through, and how much is taken away at a time.
const MOST_SEEN: usize = 10_000;
const MOST_REMOVED: usize = 16;

pub(super) struct Scratch {
    // Dropped first: then the lock is gone with the folder.
    dir: TempDir,
    _lock: File,
}

impl Scratch {
    /// Makes one, and takes away what killed processes left.
    pub(super) fn make() -> io::Result<Self> {
        let made = Self::make_in(&std::env::temp_dir())?;
        // What cannot be taken away now is somebody else's, or the next one's.
        sweep(made.path()).ok();
        Ok(made)
    }

    fn make_in(parent: &Path) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        // It has its name only when it is held: nobody sees a lock that is still free.
        let unnamed = dir.path().join("lock.new");
        let lock = File::create_new(&unnamed)?;
        lock.lock()?;
        fs::rename(&unnamed, dir.path().join(LOCK))?;
        for folder in ["notes", "tmp"] {
            fs::create_dir(dir.path().join(folder))?;
        }
        Ok(Self { dir, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Removes the folders beside this one whose owner is gone. Only those of the same person: what a link or another person puts
/// there is left alone.
fn sweep(own: &Path) -> io::Result<()> {
    let Some(parent) = own.parent() else { return Ok(()) };
    let ours = |path: &PathBuf| {
        let name = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        name && path != own && is_folder_of_owner(path, own)
    };
    let entries = fs::read_dir(parent)?.take(MOST_SEEN).filter_map(|entry| Some(entry.ok()?.path()));
    for path in entries.filter(ours).filter(|path| is_left(path)).take(MOST_REMOVED) {
        fs::remove_dir_all(path)?;
    }
    Ok(())
}

fn is_left(path: &Path) -> bool {
    File::open(path.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
}

/// Whether it is a folder, no link to one, of the same person as another.
#[cfg(unix)]
fn is_folder_of_owner(path: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(found), Ok(other)) = (fs::symlink_metadata(path), fs::symlink_metadata(other)) else {
        return false;
    };
    found.is_dir() && found.uid() == other.uid()
}

#[cfg(not(unix))]
fn is_folder_of_owner(path: &Path, _other: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_no_owner_any_more_is_taken_away() {
        let parent = TempDir::new().unwrap();
        let (live, own) =
            (Scratch::make_in(parent.path()).unwrap(), Scratch::make_in(parent.path()).unwrap());
        let left = parent.path().join("amplifier-bash-left");
        let begun = parent.path().join("amplifier-bash-begun");
        let other = parent.path().join("other");
        for folder in [&left, &begun, &other] {
            fs::create_dir_all(folder.join("tmp")).unwrap();
        }
        fs::write(left.join(LOCK), "").unwrap();
        fs::write(other.join(LOCK), "").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(&other, parent.path().join("amplifier-bash-link")).unwrap();
        sweep(own.path()).unwrap();
        assert!(!left.exists(), "its owner is gone");
        assert!(live.path().exists() && own.path().exists() && begun.exists() && other.join(LOCK).exists());
        let gone = live.path().to_owned();
        drop(live);
        assert!(!gone.exists());
    }
}
