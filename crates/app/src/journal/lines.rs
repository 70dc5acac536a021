//! The lines of a journal in order, each checked, in the memory of one line. It stops before a torn end.
//!
//! A torn end is a last line without a line feed, or a last line whose checksum does not hold. Opening repairs it;
//! readers and followers do not show it. Everything else that does not fit is an error with file and line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use amplifier_protocol::record::Record;

use super::blobs::Blobs;
use super::error::{BlobError, Damage, JournalFileError};
use super::index::{self, Entry};
use super::line::{self, Frame, Refused};
use crate::files::FileError;
use crate::paths::SessionFolder;

/// The longest line that is read. Lines are written far shorter, large values being kept apart.
pub const MAX_LINE: usize = 64 * 1024 * 1024;

/// A place in a journal from which its lines are read.
pub(super) struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    /// Where the next line begins, and the sequence number it must have.
    place: Entry,
    line: Vec<u8>,
}

/// What came next.
#[derive(Debug)]
pub(super) enum Step {
    /// An intact line with the expected sequence number. It is held until the next step.
    Line(Frame),
    /// The end, with the length of a torn last line after it.
    End { torn: u64 },
}

impl Lines {
    /// From the first line.
    pub(super) fn from_start(folder: &SessionFolder) -> Result<Self, JournalFileError> {
        Self::at(folder, Entry { seq: 1, offset: 0 })
    }

    /// From the best known place at or before the record `seq`.
    pub(super) fn near(folder: &SessionFolder, seq: u64) -> Result<Self, JournalFileError> {
        if let Some(entry) = index::locate(&folder.index(), seq) {
            let mut lines = Self::at(folder, entry)?;
            // The index is only believed when the journal agrees.
            if matches!(lines.step(), Ok(Step::Line(_))) {
                return Self::at(folder, entry);
            }
        }
        Self::from_start(folder)
    }

    /// From a known place.
    pub(super) fn at(folder: &SessionFolder, place: Entry) -> Result<Self, JournalFileError> {
        let path = folder.events();
        let mut file = File::open(&path).map_err(FileError::at("open", &path))?;
        file.seek(SeekFrom::Start(place.offset)).map_err(FileError::at("read", &path))?;
        Ok(Self { path, reader: BufReader::with_capacity(64 * 1024, file), place, line: Vec::new() })
    }

    /// Where the next line begins.
    pub(super) fn place(&self) -> Entry {
        self.place
    }

    /// Checks the next line.
    pub(super) fn step(&mut self) -> Result<Step, JournalFileError> {
        self.line.clear();
        if self.line.capacity() > 1024 * 1024 {
            self.line = Vec::new();
        }
        let bytes = (&mut self.reader)
            .take(MAX_LINE as u64 + 1)
            .read_until(b'\n', &mut self.line)
            .map_err(FileError::at("read", &self.path))?;
        if bytes > MAX_LINE {
            return Err(JournalFileError::LineTooLong {
                path: self.path.clone(),
                line: self.place.seq,
                max: MAX_LINE,
            });
        }
        let Some(text) = self.line.strip_suffix(b"\n") else {
            return Ok(Step::End { torn: bytes as u64 });
        };
        match line::read(text) {
            Ok(frame) if frame.seq == self.place.seq => {
                self.place = Entry { seq: frame.seq + 1, offset: self.place.offset + bytes as u64 };
                Ok(Step::Line(frame))
            }
            Ok(frame) => Err(self.damaged(Damage::Sequence { expected: self.place.seq, found: frame.seq })),
            Err(Refused::Newer(version)) => {
                Err(JournalFileError::Newer { path: self.path.clone(), line: self.place.seq, version })
            }
            Err(Refused::Damage { damage, intact }) => {
                let rest = self.reader.fill_buf().map_err(FileError::at("read", &self.path))?;
                match rest.is_empty() && !intact {
                    true => Ok(Step::End { torn: bytes as u64 }),
                    false => Err(self.damaged(damage)),
                }
            }
        }
    }

    /// The bytes of the line that was just stepped over, with its line feed.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.line
    }

    /// The body of the line that was just stepped over, large values still apart.
    pub(super) fn body(&self, frame: &Frame) -> &str {
        let bytes = self.line.get(frame.body.clone()).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// The record of the line that was just stepped over, large values back in place.
    pub(super) fn record(&self, frame: Frame, blobs: &Blobs) -> Result<Record, JournalFileError> {
        let Frame { seq, ts, turn, body } = frame;
        let folded = self
            .line
            .get(body)
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .ok_or_else(|| self.damaged_at(seq, Damage::Shape))?;
        let blob = |source: BlobError| JournalFileError::Blob { path: self.path.clone(), line: seq, source };
        let text = super::fold::unfold(folded, |reference| blobs.fetch(reference)).map_err(blob)?;
        let body = line::read_body(&text).map_err(|source| JournalFileError::Record {
            path: self.path.clone(),
            line: seq,
            source,
        })?;
        Ok(Record { seq, ts, turn, body })
    }

    // Sequence numbers begin with 1 and have no gaps, so the line's number is its record's.
    fn damaged(&self, damage: Damage) -> JournalFileError {
        self.damaged_at(self.place.seq, damage)
    }

    fn damaged_at(&self, line: u64, damage: Damage) -> JournalFileError {
        JournalFileError::Damaged { path: self.path.clone(), line, damage }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// The records of a journal in order, large values back in place, one in memory at a time.
///
/// It ends before a torn last line. After an error it ends.
pub struct RecordReader {
    lines: Option<Lines>,
    blobs: Blobs,
    from: u64,
}

impl RecordReader {
    /// All records.
    pub fn open(folder: &SessionFolder) -> Result<Self, JournalFileError> {
        Ok(Self::over(Lines::from_start(folder)?, folder, 1))
    }

    /// The records from `seq` on, without reading all before it.
    pub fn from_seq(folder: &SessionFolder, seq: u64) -> Result<Self, JournalFileError> {
        Ok(Self::over(Lines::near(folder, seq)?, folder, seq))
    }

    fn over(lines: Lines, folder: &SessionFolder, from: u64) -> Self {
        Self { lines: Some(lines), blobs: Blobs::new(folder.blobs()), from }
    }

    fn advance(&mut self) -> Result<Option<Record>, JournalFileError> {
        let Some(lines) = &mut self.lines else { return Ok(None) };
        loop {
            match lines.step()? {
                Step::Line(frame) if frame.seq < self.from => {}
                Step::Line(frame) => return lines.record(frame, &self.blobs).map(Some),
                Step::End { .. } => return Ok(None),
            }
        }
    }
}

impl Iterator for RecordReader {
    type Item = Result<Record, JournalFileError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.lines = None;
        }
        next
    }
}
