//! One fetch of one thing at a time, and who uses it, over all processes: a file with an operating system's lock, which ends with its holder.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use tokio::time::Instant;

use crate::error::FetchError;
use crate::fetch::FetchContext;
use crate::progress::Stage;

/// How often the lock is tried, and how often waiting is told.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
const TELL_EVERY: Duration = Duration::from_secs(2);
/// More than any holder's text.
const MOST_BYTES: u64 = 256;

/// The right to fetch one thing, until it is dropped.
#[derive(Debug)]
pub struct KeyLock {
    file: File,
}

impl Drop for KeyLock {
    /// Closing the file is not enough: a program that is just being started has a copy of it until it runs, and would hold
    /// the lock that long. Should unlocking fail, the last close still releases it.
    fn drop(&mut self) {
        drop(self.file.unlock());
    }
}

impl KeyLock {
    /// Takes the lock, or says that somebody has it.
    pub(crate) fn try_acquire(path: &Path) -> Result<Option<Self>, FetchError> {
        let at = |action| FetchError::in_cache(action, path);
        let mut file = open(path).map_err(at("open the lock"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(at("take the lock")(error)),
        }
        // For people who wait; a text that is late or torn harms nobody.
        file.set_len(0)
            .and_then(|()| write!(file, "process {}", std::process::id()))
            .map_err(at("write the lock"))?;
        Ok(Some(Self { file }))
    }

    /// Waits for the lock, telling who holds it.
    pub async fn acquire(
        path: &Path,
        longest: Duration,
        source: &str,
        cx: &FetchContext,
    ) -> Result<Self, FetchError> {
        let begun = Instant::now();
        let mut told: Option<Instant> = None;
        let mut pause = SHORTEST_PAUSE;
        loop {
            if let Some(lock) = Self::try_acquire(path)? {
                return Ok(lock);
            }
            let waited = begun.elapsed();
            if waited > longest {
                return Err(FetchError::Busy { path: path.to_owned(), holder: holder(path), waited });
            }
            if told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
                cx.tell(source, Stage::Waiting { holder: holder(path), seconds: waited.as_secs() });
                told = Some(Instant::now());
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = cx.cancel.cancelled(CancelLevel::Graceful) => {
                    return Err(FetchError::Cancelled { uri: source.to_owned() });
                }
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// An entry that is used, by any number of processes, until it is dropped.
#[derive(Debug)]
pub struct InUse {
    file: File,
}

impl Drop for InUse {
    /// As with [`KeyLock`].
    fn drop(&mut self) {
        drop(self.file.unlock());
    }
}

impl InUse {
    /// Nothing where the cache cannot be written to, so that a cache that is only read can be used.
    pub(super) fn acquire(path: &Path) -> Option<Self> {
        let file = open(path).ok()?;
        file.try_lock_shared().ok()?;
        Some(Self { file })
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

fn holder(path: &Path) -> Option<String> {
    let mut text = String::new();
    let mut file = File::open(path).ok()?;
    file.rewind().ok()?;
    file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_given_up_is_free_although_a_program_being_started_still_has_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let first = KeyLock::try_acquire(&path).unwrap().unwrap();
        assert!(KeyLock::try_acquire(&path).unwrap().is_none());
        let copy = first.file.try_clone().unwrap();
        drop(first);
        assert!(KeyLock::try_acquire(&path).unwrap().is_some());
        drop(copy);
    }
}
