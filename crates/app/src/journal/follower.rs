//! Reads a journal while somebody writes it. It needs no lease, changes nothing and outlives the writer.

use amplifier_protocol::record::Record;

use super::blobs::Blobs;
use super::error::JournalFileError;
use super::index::Entry;
use super::lines::{Lines, Step};
use crate::paths::SessionFolder;

/// How much one call reads at most; the next call goes on.
const MAX_RECORDS: usize = 4096;
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// How often a line that seems damaged is read again: its torn beginning may just be replaced by a repair.
const ATTEMPTS: usize = 3;

/// A reader that remembers how far it came.
pub struct Follower {
    folder: SessionFolder,
    blobs: Blobs,
    place: Entry,
    from: u64,
}

impl Follower {
    /// Follows from the first record. The journal need not exist yet.
    pub fn open(folder: &SessionFolder) -> Self {
        Self::after(folder, 0)
    }

    /// Follows from the record after `seq`.
    pub fn after(folder: &SessionFolder, seq: u64) -> Self {
        Self {
            folder: folder.clone(),
            blobs: Blobs::new(folder.blobs()),
            place: Entry { seq: 1, offset: 0 },
            from: seq.saturating_add(1),
        }
    }

    /// The complete records that came since the last call, none when there are none yet. Together the answers are
    /// always a prefix of what the writer wrote.
    ///
    /// One call reads a few megabytes at most, so that following a long journal from its start stays small.
    ///
    /// # Errors
    /// As [`super::RecordReader`]. The place is kept; a later call tries the same line again.
    pub fn read_new(&mut self) -> Result<Vec<Record>, JournalFileError> {
        for _ in 1..ATTEMPTS {
            match self.read_once() {
                Err(JournalFileError::Damaged { .. }) => {}
                other => return other,
            }
        }
        self.read_once()
    }

    fn read_once(&mut self) -> Result<Vec<Record>, JournalFileError> {
        let opened = match self.place.offset {
            0 => Lines::near(&self.folder, self.from),
            _ => Lines::at(&self.folder, self.place),
        };
        let mut lines = match opened {
            Err(JournalFileError::File(error)) if error.is_missing() => return Ok(Vec::new()),
            other => other?,
        };
        let mut records = Vec::new();
        let mut bytes = 0;
        while records.len() < MAX_RECORDS && bytes < MAX_BYTES {
            let place = lines.place();
            let next = match lines.step() {
                Ok(Step::Line(frame)) if frame.seq < self.from => continue,
                Ok(Step::Line(frame)) => lines.record(frame, &self.blobs),
                Ok(Step::End { .. }) => break,
                Err(error) => Err(error),
            };
            match next {
                Ok(record) => records.push(record),
                Err(error) if records.is_empty() => return Err(error),
                // What came before the bad line is good and is shown first; the next call comes back to it.
                Err(_) => {
                    self.place = place;
                    return Ok(records);
                }
            }
            bytes += lines.place().offset - place.offset;
        }
        self.place = lines.place();
        Ok(records)
    }
}
