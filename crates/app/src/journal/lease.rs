//! Who may write a session: a file with an operating system's lock, held by one process at a time.
//!
//! The lock ends with the process, however it ends. The text in the file is for people and for fencing: each holder
//! writes a higher generation, and a holder whose text is gone has lost the lease. Readers need no lease.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use amplifier_protocol::ids::SessionId;
use amplifier_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::files::{FileError, lock_within, private};

/// More than any owner's text; what is longer was not written by us.
const MAX_BYTES: u64 = 4096;
/// How long a lease that is held is tried: somebody may just be done with it.
const PATIENCE: Duration = Duration::from_millis(50);
/// How long it is tried where whoever has it only looks. What a list makes again of a long session takes a while.
const PATIENCE_WITH_LOOKERS: Duration = Duration::from_secs(10);
/// What those call themselves who only look.
const LOOKER: &str = "amplifier session list";

/// Who holds a lease, as the next one is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub program: String,
    pub pid: u32,
    pub host: String,
    pub since: Timestamp,
}

/// Why a lease could not be had or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// Another process, or another part of this one, writes the session.
    #[error("session `{}` is in use by {}; `{}` is locked", session_of(path), owner.as_ref().map_or_else(|| "another process".to_owned(), ToString::to_string), path.display())]
    Held { owner: Option<Owner>, path: PathBuf },
    /// The file was removed or replaced while it was held.
    #[error("the lease `{}` was taken away; somebody else may be writing the session", path.display())]
    Lost { path: PathBuf },
    #[error(transparent)]
    File(#[from] FileError),
}

/// The right to write one session, until it is dropped.
#[derive(Debug)]
pub struct Lease {
    path: PathBuf,
    file: File,
    text: String,
    generation: u64,
}

impl Drop for Lease {
    /// Closing the file is not enough: a program that is just being started has a copy of it until it runs, and would hold
    /// the lock that long. Should unlocking fail, the last close still releases it.
    fn drop(&mut self) {
        drop(self.file.unlock());
    }
}

#[derive(Serialize, Deserialize)]
struct LeaseText {
    generation: u64,
    owner: Owner,
    // Makes each text unlike every other, also within one process and one tick of its clock.
    token: String,
}

impl Owner {
    /// This process, under the name of the program that runs.
    pub fn this_process(program: impl Into<String>, since: Timestamp) -> Self {
        let host = ["/proc/sys/kernel/hostname", "/etc/hostname"]
            .into_iter()
            .find_map(|path| std::fs::read_to_string(path).ok())
            .map_or_else(|| "this host".to_owned(), |name| name.trim().to_owned());
        Self { program: program.into(), pid: std::process::id(), host, since }
    }

    /// This process, which looks at a session and is soon done: others wait for it.
    pub fn who_looks(since: Timestamp) -> Self {
        Self::this_process(LOOKER, since)
    }

    /// Somebody who has not written down who it is.
    fn unknown() -> Self {
        let (program, host) = ("another process".to_owned(), "this host".to_owned());
        Self { program, pid: 0, host, since: Timestamp::default() }
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` (process {} on {}, since {})", self.program, self.pid, self.host, self.since)
    }
}

impl Lease {
    /// Takes the lease at `path`, or says who has it.
    pub fn acquire(path: &Path, owner: Owner) -> Result<Self, LeaseError> {
        let at = |action| FileError::at(action, path);
        let mut file =
            private().read(true).write(true).create(true).truncate(false).open(path).map_err(at("open"))?;
        let begun = Instant::now();
        while !lock_within(&file, path, PATIENCE)? {
            let owner = read_text(&mut file).ok().and_then(|text| parse(&text)).map(|held| held.owner);
            let only_looks = owner.as_ref().is_some_and(|owner| owner.program == LOOKER);
            if !only_looks || begun.elapsed() > PATIENCE_WITH_LOOKERS {
                return Err(LeaseError::Held { owner, path: path.to_owned() });
            }
        }
        let mut old = read_text(&mut file).map_err(at("read"))?;
        let held = parse(&old);
        if held.is_none() {
            // The lock is what counts. A text that nobody can read tells nothing, and is not kept.
            file.set_len(0).map_err(at("write"))?;
            old.clear();
        }
        let generation = held.map_or(0, |held| held.generation) + 1;
        let token = SessionId::generate(owner.since).to_string();
        let mut text = serde_json::to_string(&LeaseText { generation, owner, token })
            .map_err(|error| at("write")(error.into()))?;
        // Blanks up to the old length: one write changes the whole text, so a kill leaves the old one or the new.
        text.push_str(&" ".repeat(old.trim_end_matches('\n').len().saturating_sub(text.len())));
        text.push('\n');
        file.rewind().and_then(|()| file.write_all(text.as_bytes())).map_err(at("write"))?;
        let lease = Self { path: path.to_owned(), file, text, generation };
        // Between opening and locking the file may have been removed; then the lock is on nothing.
        lease.check()?;
        Ok(lease)
    }

    /// Who holds the lease at `path` now; nobody when it is free or was never taken. Takes and writes nothing.
    pub fn holder(path: &Path) -> Result<Option<Owner>, LeaseError> {
        let mut file = match File::open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(FileError::at("open", path))?,
        };
        match file.try_lock_shared() {
            Ok(()) => {
                drop(file.unlock());
                Ok(None)
            }
            Err(TryLockError::WouldBlock) => {
                let held = read_text(&mut file).ok().and_then(|text| parse(&text)).map(|held| held.owner);
                Ok(Some(held.unwrap_or_else(Owner::unknown)))
            }
            Err(TryLockError::Error(source)) => Err(FileError::at("lock", path)(source).into()),
        }
    }

    /// How many holders there were, this one included.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Errors when the file is no longer the one that was locked.
    pub fn check(&self) -> Result<(), LeaseError> {
        let lost = || LeaseError::Lost { path: self.path.clone() };
        let mut file = File::open(&self.path).map_err(|_| lost())?;
        match read_text(&mut file) {
            Ok(text) if text == self.text => Ok(()),
            _ => Err(lost()),
        }
    }
}

/// Who held the lease last, and may hold it still. Nothing is locked to find out, so that nobody is kept from it.
pub fn last_owner(path: &Path) -> Option<Owner> {
    let mut file = File::open(path).ok()?;
    read_text(&mut file).ok().and_then(|text| parse(&text)).map(|held| held.owner)
}

/// The session of a lease: its folder has the name.
fn session_of(path: &Path) -> String {
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    folder.to_string_lossy().into_owned()
}

fn read_text(file: &mut File) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn parse(text: &str) -> Option<LeaseText> {
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(program: &str) -> Owner {
        Owner { program: program.to_owned(), pid: 7, host: "h".to_owned(), since: Timestamp::from_micros(0) }
    }

    #[test]
    fn a_second_writer_is_told_who_the_first_is_and_generations_grow() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lease");
        let first = Lease::acquire(&path, owner("a-long-name-of-the-first")).unwrap();
        let error = Lease::acquire(&path, owner("second")).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "session `{}` is in use by `a-long-name-of-the-first` (process 7 on h, since \
                 1970-01-01T00:00:00.000000+00:00); `{}` is locked",
                dir.path().file_name().unwrap().display(),
                path.display()
            )
        );
        assert_eq!(first.generation(), 1);
        drop(first);
        let second = Lease::acquire(&path, owner("second")).unwrap();
        assert_eq!(second.generation(), 2);
        second.check().unwrap();
    }

    #[test]
    fn whoever_only_looks_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lease");
        let looks = Lease::acquire(&path, Owner::who_looks(Timestamp::from_micros(0))).unwrap();
        std::thread::scope(|threads| {
            let second =
                threads.spawn(|| Lease::acquire(&path, owner("second")).map(|lease| lease.generation()));
            // Longer than anybody else is waited for; that it takes longer yet changes nothing.
            std::thread::sleep(PATIENCE * 3);
            drop(looks);
            assert_eq!(second.join().unwrap().unwrap(), 2);
        });
    }

    #[test]
    fn a_lease_given_up_is_free_although_a_program_being_started_still_has_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lease");
        let first = Lease::acquire(&path, owner("first")).unwrap();
        let copy = first.file.try_clone().unwrap();
        drop(first);
        Lease::acquire(&path, owner("second")).unwrap();
        drop(copy);
    }

    #[test]
    fn a_lease_that_holds_garbage_is_taken_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lease");
        for garbage in [vec![0xff; 7], vec![0xfe; 20_000], b"{}".to_vec()] {
            std::fs::write(&path, garbage).unwrap();
            let lease = Lease::acquire(&path, owner("first")).unwrap();
            lease.check().unwrap();
            assert_eq!(lease.generation(), 1);
            drop(lease);
            assert_eq!(Lease::acquire(&path, owner("second")).unwrap().generation(), 2);
        }
    }

    #[test]
    fn a_lease_whose_file_was_replaced_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lease");
        let first = Lease::acquire(&path, owner("first")).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(first.check(), Err(LeaseError::Lost { .. })));
        let second = Lease::acquire(&path, owner("second")).unwrap();
        assert!(matches!(first.check(), Err(LeaseError::Lost { .. })));
        second.check().unwrap();
    }
}
