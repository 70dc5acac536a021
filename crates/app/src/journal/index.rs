//! `events.idx`: where some records begin in the journal, so that opening and seeking read only what they must.
//!
//! Nothing depends on it: an entry is believed only when the journal has that record at that place, and the file is
//! made again when it is gone. Entries have one width, `<seq> <offset> <crc>`, each with its own checksum.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::files::{Durability, FileError, private, write_atomic};

/// How far apart entries are at least, in records or in bytes, whichever comes first.
const RECORDS_APART: u64 = 1024;
const BYTES_APART: u64 = 1024 * 1024;
const ENTRY_BYTES: usize = 51;

/// A record and the byte its line begins at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) seq: u64,
    pub(super) offset: u64,
}

/// Decides which places become entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spacing {
    last: Entry,
}

impl Spacing {
    /// The first line needs no entry, so spacing begins there.
    pub(super) fn new() -> Self {
        Self { last: Entry { seq: 1, offset: 0 } }
    }

    pub(super) fn after(last: Entry) -> Self {
        Self { last }
    }

    /// Whether this place is far enough from the last entry to become one.
    pub(super) fn takes(&mut self, entry: Entry) -> bool {
        let far = entry.seq.saturating_sub(self.last.seq) >= RECORDS_APART
            || entry.offset.saturating_sub(self.last.offset) >= BYTES_APART;
        if far {
            self.last = entry;
        }
        far
    }
}

/// The last entry with a sequence number up to `seq`. Anything unreadable is as good as no entry.
pub(super) fn locate(path: &Path, seq: u64) -> Option<Entry> {
    let mut file = File::open(path).ok()?;
    let count = file.metadata().ok()?.len() / ENTRY_BYTES as u64;
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        match read_entry(&mut file, middle)? {
            entry if entry.seq <= seq => low = middle + 1,
            _ => high = middle,
        }
    }
    read_entry(&mut file, low.checked_sub(1)?)
}

/// Adds an entry at the end. A part of an entry that a killed process left is cut first.
pub(super) fn add(path: &Path, entry: Entry) -> Result<(), FileError> {
    let mut file =
        private().write(true).create(true).truncate(false).open(path).map_err(FileError::at("open", path))?;
    let mut write = || -> io::Result<()> {
        let whole = file.metadata()?.len() / ENTRY_BYTES as u64 * ENTRY_BYTES as u64;
        file.set_len(whole)?;
        file.seek(SeekFrom::Start(whole))?;
        file.write_all(text(entry).as_bytes())
    };
    write().map_err(FileError::at("write", path))
}

/// Replaces the whole file.
pub(super) fn rebuild(path: &Path, entries: &[Entry]) -> Result<(), FileError> {
    let content: String = entries.iter().map(|entry| text(*entry)).collect();
    write_atomic(&PathBuf::from(path), content.as_bytes(), Durability::Rebuildable)
}

fn read_entry(file: &mut File, number: u64) -> Option<Entry> {
    let mut bytes = [0; ENTRY_BYTES];
    file.seek(SeekFrom::Start(number * ENTRY_BYTES as u64)).ok()?;
    file.read_exact(&mut bytes).ok()?;
    let (numbers, crc) = std::str::from_utf8(&bytes).ok()?.trim_end().rsplit_once(' ')?;
    if crc != format!("{:08x}", crc32fast::hash(numbers.as_bytes())) {
        return None;
    }
    let (seq, offset) = numbers.split_once(' ')?;
    Some(Entry { seq: seq.parse().ok()?, offset: offset.parse().ok()? })
}

fn text(entry: Entry) -> String {
    let numbers = format!("{:020} {:020}", entry.seq, entry.offset);
    let crc = crc32fast::hash(numbers.as_bytes());
    format!("{numbers} {crc:08x}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_earlier_entry_is_found_and_damage_is_no_entry() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.idx");
        assert_eq!(locate(&path, 5), None);
        let entries: Vec<_> = (1..=9).map(|n| Entry { seq: n * 10, offset: n * 1000 }).collect();
        rebuild(&path, &entries[..8]).unwrap();
        private().append(true).open(&path).unwrap().write_all(b"0000 torn").unwrap();
        add(&path, entries[8]).unwrap();
        assert_eq!(locate(&path, 9), None);
        assert_eq!(locate(&path, 10), Some(entries[0]));
        assert_eq!(locate(&path, 59), Some(entries[4]));
        assert_eq!(locate(&path, u64::MAX), Some(entries[8]));
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 20;
        bytes[last] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(locate(&path, u64::MAX), None);
    }
}
