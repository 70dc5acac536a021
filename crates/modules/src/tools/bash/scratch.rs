//! The folder that commands of one session keep notes and temporary files in. It goes with the session; one whose process was
//! killed is taken away by the next session that makes one, when its commands have ended too.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::{FdFlags, fcntl_setfd};
use tempfile::TempDir;

const PREFIX: &str = "amplifier-bash-";
/// Held, shared, for as long as the owner or one of its commands lives; whoever can have it alone has found a folder that is
/// nobody's any more.
const LOCK: &str = "lock";
/// How far a folder of temporary files is looked through, and how much is taken away at a time.
const MOST_SEEN: usize = 10_000;
const MOST_REMOVED: usize = 16;

pub(super) struct Scratch {
    // Dropped first: then the lock is gone with the folder.
    dir: TempDir,
    _lock: File,
    /// Open in every process that is started from now on: a command may outlive a session that was killed.
    _of_commands: File,
}

impl Scratch {
    /// Makes one, and takes away what killed processes left.
    pub(super) fn make() -> io::Result<Self> {
        let made = Self::make_in(&std::env::temp_dir())?;
        let own = made.path().to_path_buf();
        // Nobody waits for it, neither the first command nor the end of the program: what is not gone by then is the next one's.
        std::thread::spawn(move || sweep(&own));
        Ok(made)
    }

    fn make_in(parent: &Path) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        // It has its name only when it is held: nobody sees a lock that is still free.
        let unnamed = dir.path().join("lock.new");
        let lock = File::create_new(&unnamed)?;
        lock.lock_shared()?;
        // Opened for itself: what a command does with it leaves the other one held.
        let of_commands = File::open(&unnamed)?;
        of_commands.lock_shared()?;
        fcntl_setfd(&of_commands, FdFlags::empty())?;
        fs::rename(&unnamed, dir.path().join(LOCK))?;
        for folder in ["notes", "tmp"] {
            fs::create_dir(dir.path().join(folder))?;
        }
        Ok(Self { dir, _lock: lock, _of_commands: of_commands })
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Removes the folders beside this one that are nobody's any more. Only those of the same person: what a link or another person
/// puts there is left alone.
fn sweep(own: &Path) {
    let Some(entries) = own.parent().and_then(|parent| fs::read_dir(parent).ok()) else { return };
    let ours = |path: &PathBuf| {
        let name = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        name && path != own && is_folder_of_owner(path, own)
    };
    let paths = entries.take(MOST_SEEN).filter_map(|entry| Some(entry.ok()?.path()));
    // What cannot be taken away stands in nobody's way: those behind it are.
    let removed = paths.filter(ours).filter_map(|path| remove_left(&path).ok()?);
    removed.take(MOST_REMOVED).for_each(drop);
}

/// Removes a folder if it is nobody's any more, and tells whether it was.
fn remove_left(path: &Path) -> io::Result<Option<()>> {
    let lock = File::open(path.join(LOCK))?;
    if lock.try_lock().is_err() {
        return Ok(None);
    }
    // The lock goes last: a folder without one would never be found again by whoever finishes this.
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_name() == LOCK {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())
        } else {
            fs::remove_file(entry.path())
        }?;
    }
    fs::remove_dir_all(path).map(Some)
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
        sweep(own.path());
        assert!(!left.exists(), "its owner is gone");
        assert!(live.path().exists() && own.path().exists() && begun.exists() && other.join(LOCK).exists());
        let gone = live.path().to_owned();
        drop(live);
        assert!(!gone.exists());
    }

    #[cfg(unix)]
    #[test]
    fn what_cannot_be_taken_away_stands_in_nobodys_way() {
        use std::os::unix::fs::PermissionsExt;
        let parent = TempDir::new().unwrap();
        let own = Scratch::make_in(parent.path()).unwrap();
        let folders: Vec<_> =
            (0..2 * MOST_REMOVED).map(|number| parent.path().join(format!("{PREFIX}{number}"))).collect();
        let allow = |folder: &Path, mode: u32| {
            fs::set_permissions(folder.join("tmp"), fs::Permissions::from_mode(mode)).unwrap();
        };
        for folder in &folders {
            fs::create_dir_all(folder.join("tmp/cache")).unwrap();
            fs::write(folder.join(LOCK), "").unwrap();
        }
        let (fast, loose) = folders.split_at(MOST_REMOVED);
        fast.iter().for_each(|folder| allow(folder, 0o555));
        // Whoever may do anything needs one more time: as much is taken away at a time as ever.
        sweep(own.path());
        sweep(own.path());
        assert!(loose.iter().all(|folder| !folder.exists()));
        fast.iter().filter(|folder| folder.exists()).for_each(|folder| allow(folder, 0o755));
        sweep(own.path());
        assert!(fast.iter().all(|folder| !folder.exists()), "what was left of them is found again");
    }

    #[cfg(unix)]
    #[test]
    fn a_command_that_outlives_its_session_keeps_the_folder() {
        use std::process::{Command, Stdio};
        let parent = TempDir::new().unwrap();
        let own = Scratch::make_in(parent.path()).unwrap();
        let Scratch { dir, _lock, _of_commands } = Scratch::make_in(parent.path()).unwrap();
        let mut command = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        // As when its owner is killed.
        let folder = dir.keep();
        drop((_lock, _of_commands));
        sweep(own.path());
        assert!(folder.join("tmp").exists(), "somebody still works there");
        drop(command.stdin.take());
        command.wait().unwrap();
        // What other tests started meanwhile has it open as well, until it ends.
        amplifier_testing::block_until("the folder is gone", || {
            sweep(own.path());
            !folder.exists()
        });
    }
}
