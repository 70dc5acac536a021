//! What the session last saw of each file, so that a change nobody saw is not written over.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

/// How many files are remembered. Past it all are forgotten, which costs a session nothing but reading again.
const FILES: usize = 50_000;

/// The bytes of a file, in short.
pub(super) type Hash = [u8; 32];

/// A file as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Of everything in it; `None` when only a part was read.
    pub(super) hash: Option<Hash>,
    modified: Option<SystemTime>,
    bytes: u64,
}

impl Stamp {
    pub(super) fn new(about: &Metadata, hash: Option<Hash>) -> Self {
        Self { hash, modified: about.modified().ok(), bytes: about.len() }
    }

    /// Whether both are the same file content. A time alone tells too little: two writes may fall into one tick of it.
    fn agrees(&self, other: &Self) -> bool {
        match (self.hash, other.hash) {
            (Some(one), Some(other)) => one == other,
            _ => self.modified == other.modified && self.bytes == other.bytes,
        }
    }
}

/// How a file compares with what was seen of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Never,
    Same,
    Changed,
}

/// The files of one session.
#[derive(Default)]
pub(super) struct Stamps(Mutex<HashMap<PathBuf, Stamp>>);

impl Stamps {
    /// Notes what was seen.
    pub(super) fn note(&self, real: PathBuf, stamp: Stamp) {
        let mut stamps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if stamps.len() >= FILES {
            stamps.clear();
        }
        stamps.insert(real, stamp);
    }

    /// Forgets a file that is gone.
    pub(super) fn forget(&self, real: &Path) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(real);
    }

    /// Compares a file as it is now with what was seen.
    pub(super) fn compare(&self, real: &Path, now: &Stamp) -> Seen {
        let stamps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match stamps.get(real) {
            None => Seen::Never,
            Some(stamp) if stamp.agrees(now) => Seen::Same,
            Some(_) => Seen::Changed,
        }
    }
}

/// The hash of some bytes.
pub(super) fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// Hashes what is read through it.
pub(super) struct Hashing<R> {
    source: R,
    hasher: Sha256,
    ended: bool,
}

impl<R> Hashing<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, hasher: Sha256::new(), ended: false }
    }

    /// The hash, if the end was reached.
    pub(super) fn finish(self) -> Option<Hash> {
        self.ended.then(|| self.hasher.finalize().into())
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.source.read(buffer)?;
        self.ended = length == 0 && !buffer.is_empty();
        self.hasher.update(buffer.get(..length).unwrap_or_default());
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_decides_and_the_time_only_where_the_content_is_unknown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let about = file.as_file().metadata().unwrap();
        let (stamps, path) = (Stamps::default(), file.path().to_owned());
        let (one, other) = (Stamp::new(&about, Some([1; 32])), Stamp::new(&about, Some([2; 32])));
        assert_eq!(stamps.compare(&path, &one), Seen::Never);
        stamps.note(path.clone(), one.clone());
        assert_eq!(stamps.compare(&path, &one), Seen::Same);
        assert_eq!(stamps.compare(&path, &other), Seen::Changed);
        assert_eq!(stamps.compare(&path, &Stamp::new(&about, None)), Seen::Same);
        stamps.forget(&path);
        assert_eq!(stamps.compare(&path, &one), Seen::Never);
    }

    #[test]
    fn what_is_read_to_the_end_has_the_hash_of_its_bytes() {
        let mut whole = Hashing::new(&b"abc"[..]);
        std::io::copy(&mut whole, &mut std::io::sink()).unwrap();
        assert_eq!(whole.finish(), Some(hash(b"abc")));
        let mut part = Hashing::new(&b"abc"[..]);
        part.read_exact(&mut [0; 2]).unwrap();
        assert_eq!(part.finish(), None);
    }
}
