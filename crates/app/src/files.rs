//! Files and folders that hold private text: made for their owner alone, replaced as a whole or not at all.
//!
//! Every error names what was attempted and where. What is written is other files' business.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

use amplifier_core::clock::Clock;
use amplifier_protocol::time::Timestamp;

use crate::clock::{SystemClock, can_be_right};

/// What helps who may not write to the home.
pub(crate) const OTHER_HOME: &str = "`--home DIR` or AMPLIFIER_HOME names a folder you can write to";
/// What helps where a disk is full.
pub(crate) const NO_ROOM: &str = "make room on the disk, and try again: nothing that was kept is gone";

/// What helps where a file is closed to whoever wants it.
pub(crate) const NOT_READABLE: &str = "make the file readable and writable for you";

/// What helps where a folder has the name of a file.
pub(crate) const A_FOLDER: &str =
    "a folder stands where a file belongs: move it away, and put a copy of the file back where there is one";

/// What is attempted with a file that is only looked at.
pub(crate) const READ: &str = "read";
/// What is attempted with a file that becomes another.
pub(crate) const COPY: &str = "copy";
/// What is attempted with the folders on the way to it.
pub(crate) const ENTER: &str = "enter";

/// A file or folder could not be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{}`", path.display())]
pub struct FileError {
    /// What was attempted, as a verb.
    pub action: &'static str,
    pub path: PathBuf,
    #[source]
    pub source: io::Error,
}

impl FileError {
    /// Turns an I/O error into one that names the attempt and the place.
    pub(crate) fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| match closed_above(action, path, &source) {
            Some((folder, source)) => Self { action: ENTER, path: folder.to_owned(), source },
            None => Self { action, path: path.to_owned(), source },
        }
    }

    /// Whether a file could not even be looked at. Of a file of configuration that is wrong configuration, as one that makes
    /// no sense is, and no failure of what was to be done.
    pub fn is_reading(&self) -> bool {
        self.action == READ || self.action == ENTER
    }

    pub(crate) fn is_missing(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// Whether a folder stands where a file belongs. Who copies is told in other words that there is no file.
    pub(crate) fn is_folder(&self) -> bool {
        self.source.kind() == io::ErrorKind::IsADirectory || (self.action == COPY && self.path.is_dir())
    }

    pub(crate) fn is_denied(&self) -> bool {
        self.source.kind() == io::ErrorKind::PermissionDenied
    }

    /// What helps whoever it happened to, where the error itself tells; nothing where it does not.
    pub(crate) fn cure(&self) -> Option<&'static str> {
        match self.source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(NO_ROOM),
            io::ErrorKind::NotADirectory if self.action == ENTER => Some("name a folder instead of it"),
            io::ErrorKind::PermissionDenied if self.action == ENTER => {
                Some("`chmod u+rwx` makes the folder yours, if it is; else name another one")
            }
            io::ErrorKind::PermissionDenied if is_closed(&self.path) => Some(NOT_READABLE),
            _ if self.is_folder() => Some(A_FOLDER),
            _ => None,
        }
    }
}

/// Whether a text that hands on what the system said tells of a full disk.
#[cfg(unix)]
pub(crate) fn tells_no_room(text: &str) -> bool {
    use rustix::io::Errno;
    [Errno::NOSPC, Errno::DQUOT].into_iter().any(|errno| text.contains(&io::Error::from(errno).to_string()))
}

/// Whether a text that hands on what the system said tells of a full disk: `ERROR_DISK_FULL`.
#[cfg(not(unix))]
pub(crate) fn tells_no_room(text: &str) -> bool {
    text.contains(&io::Error::from_raw_os_error(112).to_string())
}

/// Whether it tells of a folder in place of a file. Where the system has no word for that nobody is told more than it says.
pub(crate) fn tells_a_folder(text: &str) -> bool {
    #[cfg(unix)]
    return text.contains(&io::Error::from(rustix::io::Errno::ISDIR).to_string());
    #[cfg(not(unix))]
    return text.is_empty();
}

/// Opens a file to read it. Opening a pipe waits until somebody writes, and a device may have no end: neither is taken for a
/// file. Only what was handed over open already may be a pipe, such as `/dev/stdin` and the `<(…)` of a shell.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    refuse_special(path, &std::fs::metadata(path)?)?;
    File::open(path)
}

/// Refuses what is neither a file nor a folder, nor a pipe that was handed over.
pub(crate) fn refuse_special(path: &Path, about: &Metadata) -> io::Result<()> {
    match special(about) {
        None => Ok(()),
        Some(PIPE) if is_handed_over(path) => Ok(()),
        Some(what) => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what} and no file"))),
    }
}

/// Whether a path stands for what this process was started with, and not for a place on the disk.
pub fn is_handed_over(path: &Path) -> bool {
    let is_numbered = |folder: &str| path.parent() == Some(Path::new(folder));
    path == Path::new("/dev/stdin") || is_numbered("/dev/fd") || is_numbered("/proc/self/fd")
}

/// Whether a path stands for standard input.
pub fn is_standard_input(path: &Path) -> bool {
    is_handed_over(path) && path.file_name().is_some_and(|name| name == "stdin" || name == "0")
}

const PIPE: &str = "a pipe";

/// What something is that is neither a file nor a folder.
#[cfg(unix)]
fn special(about: &Metadata) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt;
    let kind = about.file_type();
    match () {
        () if kind.is_fifo() => Some(PIPE),
        () if kind.is_socket() => Some("a socket"),
        () if kind.is_char_device() || kind.is_block_device() => Some("a device"),
        () => None,
    }
}

#[cfg(not(unix))]
fn special(about: &Metadata) -> Option<&'static str> {
    (!about.is_file() && !about.is_dir()).then_some("a device")
}

/// The first folder on the way to a file that is none or may not be entered: the file itself may not even be there.
fn closed_above<'a>(action: &str, path: &'a Path, error: &io::Error) -> Option<(&'a Path, io::Error)> {
    let tells = |kind| matches!(kind, io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied);
    if !matches!(action, READ | "list") || !tells(error.kind()) {
        return None;
    }
    let above: Vec<_> = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()).collect();
    above.into_iter().rev().find_map(|folder| {
        // What is looked at lies in the folder, so the folder is entered for it.
        let error = std::fs::metadata(folder.join(".")).err().filter(|error| tells(error.kind()))?;
        let told = match error.kind() {
            io::ErrorKind::NotADirectory => io::Error::new(error.kind(), "it is no folder"),
            _ => error,
        };
        Some((folder, told))
    })
}

/// Whether a file may not even be read.
fn is_closed(path: &Path) -> bool {
    File::open(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Whether a replaced file must survive a power failure, or can be made again from elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Synced, with its folder, before the call returns.
    Synced,
    /// Its content is synced; the caller syncs the folder, once for many files.
    ContentSynced,
    /// Whole or absent after the end of a process; after a power failure it may be empty.
    Rebuildable,
}

/// Makes a folder and those above it, for the owner alone. A folder that exists keeps its mode.
pub fn create_private_dir(path: &Path) -> Result<(), FileError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| match dead_link(path) {
        // The system says of a link that leads nowhere that the file exists, which helps nobody.
        Some(link) => FileError::at("create folder", path)(io::Error::new(
            io::ErrorKind::NotFound,
            format!("`{}` is a link that leads nowhere", link.display()),
        )),
        None => FileError::at("create folder", path)(error),
    })
}

/// The link on the way to a path that leads nowhere.
fn dead_link(path: &Path) -> Option<&Path> {
    path.ancestors().find(|path| path.is_symlink() && !path.exists())
}

/// Makes an empty file for the owner alone; one that exists stays as it is.
pub fn create_private_file(path: &Path) -> Result<(), FileError> {
    private().append(true).create(true).open(path).map(drop).map_err(FileError::at("create", path))
}

/// Options that create files for the owner alone.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// How often a lock that somebody else has is tried.
const PAUSE: Duration = Duration::from_millis(5);

/// Locks a file; says whether it could be had within this time.
pub(crate) fn lock_within(file: &File, path: &Path, patience: Duration) -> Result<bool, FileError> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if begun.elapsed() < patience => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(source)) => return Err(FileError::at("lock", path)(source)),
        }
    }
}

/// Makes the names in a folder durable.
pub(crate) fn sync_dir(path: &Path) -> Result<(), FileError> {
    // Only unix lets a folder be opened and synced; elsewhere the file system orders names by itself.
    if cfg!(unix) {
        File::open(path).and_then(|dir| dir.sync_all()).map_err(FileError::at("sync folder", path))?;
    }
    Ok(())
}

/// Replaces a file as a whole: readers see the old text or the new one, never a part. An existing file keeps its mode.
pub fn write_atomic(path: &Path, bytes: &[u8], durability: Durability) -> Result<(), FileError> {
    let temp = temp_beside(path);
    let written = write_temp(&temp, path, bytes, durability)
        .and_then(|()| std::fs::rename(&temp, path).map_err(FileError::at("replace", path)));
    if let Err(error) = written {
        // The first error is the one worth telling; a temporary file that stays is swept up.
        std::fs::remove_file(&temp).ok();
        return Err(error);
    }
    match (durability, path.parent()) {
        (Durability::Synced, Some(dir)) => sync_dir(dir),
        _ => Ok(()),
    }
}

/// Errors name the file that was wanted: nobody asked for the temporary one.
fn write_temp(temp: &Path, path: &Path, bytes: &[u8], durability: Durability) -> Result<(), FileError> {
    let mut file = private()
        .write(true)
        .create(true)
        .truncate(true)
        .open(temp)
        .map_err(FileError::at("create", path))?;
    if let Ok(existing) = std::fs::metadata(path) {
        file.set_permissions(existing.permissions()).map_err(FileError::at("set the mode of", path))?;
    }
    file.write_all(bytes).map_err(FileError::at("write", path))?;
    if durability != Durability::Rebuildable {
        file.sync_all().map_err(FileError::at("sync", path))?;
    }
    Ok(())
}

/// How long ago something was changed last. A time that cannot be right tells nothing: who changed it while the clock was wrong
/// may still be at it. From now on it counts.
pub(crate) fn age(path: &Path) -> Option<Duration> {
    let modified = std::fs::symlink_metadata(path).and_then(|about| about.modified()).ok()?;
    let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    let modified = modified.duration_since(UNIX_EPOCH).map_or(0, micros);
    let now = SystemClock::default().now().as_micros();
    if !can_be_right(Timestamp::from_micros(modified)) {
        let now = UNIX_EPOCH + Duration::from_micros(u64::try_from(now).unwrap_or_default());
        // Where that is not possible it stays as it is, and costs room and nothing else.
        File::open(path).and_then(|file| file.set_modified(now)).ok();
        return None;
    }
    u64::try_from(now.saturating_sub(modified)).ok().map(Duration::from_micros)
}

/// What was left in the middle of a write is left alone this long: somebody may be at it.
const STALE: Duration = Duration::from_secs(3600);

/// Removes temporary files that killed processes left in a folder. One that stays costs room and nothing else.
pub(crate) fn sweep_temps(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_stale = || age(&entry.path()).is_some_and(|age| age > STALE);
        if entry.file_name().to_str().is_some_and(is_temp) && is_stale() {
            std::fs::remove_file(entry.path()).ok();
        }
    }
}

/// Whether a name is one that [`temp_beside`] gives.
fn is_temp(name: &str) -> bool {
    let inner = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp"));
    let process = inner.and_then(|name| name.rsplit_once('.'));
    process.is_some_and(|(_, id)| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()))
}

// A name per process, since not every file has one writer at a time; what a killed one leaves is swept up.
pub(crate) fn temp_beside(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn new_files_are_private_and_existing_ones_keep_their_mode() {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("a/b");
        create_private_dir(&dir).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(dir.parent().unwrap())), (0o700, 0o700));
        let path = dir.join("x.json");
        write_atomic(&path, b"1", Durability::Synced).unwrap();
        assert_eq!(mode(&path), 0o600);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        write_atomic(&path, b"2", Durability::Rebuildable).unwrap();
        assert_eq!((mode(&path), std::fs::read(&path).unwrap()), (0o640, b"2".to_vec()));
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn temporary_files_of_the_dead_are_swept_up_and_nothing_else_is() {
        let temp = tempfile::tempdir().unwrap();
        let old = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let stale = [".metadata.json.4711.tmp", ".x.1.tmp"];
        let kept = [".new.json.12.tmp", "events.jsonl", ".a.tmp", ".a.b.tmp", "a.1.tmp"];
        for name in stale.iter().chain(&kept) {
            let file = File::create(temp.path().join(name)).unwrap();
            if *name != kept[0] {
                file.set_modified(old).unwrap();
            }
        }
        sweep_temps(temp.path());
        assert!(stale.iter().all(|name| !temp.path().join(name).exists()));
        assert!(kept.iter().all(|name| temp.path().join(name).exists()));
    }

    #[test]
    fn an_error_names_the_attempt_and_the_place() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = write_atomic(&file.join("below"), b"1", Durability::Synced).unwrap_err();
        assert!(error.to_string().starts_with("cannot create `"), "{error}");
        assert!(error.to_string().contains("below"), "{error}");
    }
}
