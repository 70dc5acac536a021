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
use super::fold::BlobRef;
use super::index::{self, Entry};
use super::line::{self, Frame, Refused};
use crate::files::{FileError, READ};
use crate::paths::SessionFolder;

/// The longest line that is read. Lines are written far shorter, large values being kept apart.
pub const MAX_LINE: usize = 64 * 1024 * 1024;

/// A place in a journal from which its lines are read.
pub(super) struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    /// Where the next line begins, and the sequence number it must have.
    place: Entry,
    /// How far the file was read; beyond the place where a torn line was looked at.
    read: u64,
    line: Vec<u8>,
}

/// A line as it stands, wherever it should stand.
#[derive(Debug)]
pub(super) enum Look {
    Line(Frame),
    /// What was written, but for a carriage return before its line feed.
    Converted(Frame, JournalFileError),
    /// Not what was written.
    Bad(JournalFileError),
    End {
        torn: u64,
    },
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
        let mut file = File::open(&path).map_err(FileError::at(READ, &path))?;
        file.seek(SeekFrom::Start(place.offset)).map_err(FileError::at("read", &path))?;
        let reader = BufReader::with_capacity(64 * 1024, file);
        Ok(Self { path, reader, place, read: place.offset, line: Vec::new() })
    }

    /// Goes on from another place. Costs nothing where that is the next line.
    pub(super) fn go_to(&mut self, place: Entry) -> Result<(), JournalFileError> {
        if place.offset != self.read {
            self.reader.seek(SeekFrom::Start(place.offset)).map_err(FileError::at("read", &self.path))?;
        }
        (self.place, self.read) = (place, place.offset);
        Ok(())
    }

    /// Where the next line begins.
    pub(super) fn place(&self) -> Entry {
        self.place
    }

    /// Checks the next line.
    pub(super) fn step(&mut self) -> Result<Step, JournalFileError> {
        match self.look()? {
            Look::Line(frame) if frame.seq == self.place.seq => {
                self.place.seq += 1;
                Ok(Step::Line(frame))
            }
            Look::Line(frame) => {
                Err(self.damaged(Damage::Sequence { expected: self.place.seq, found: frame.seq }))
            }
            Look::Bad(error) | Look::Converted(_, error) => Err(error),
            Look::End { torn } => Ok(Step::End { torn }),
        }
    }

    /// Looks at the next line, whatever its number. Errors call it by the number it should have.
    pub(super) fn look(&mut self) -> Result<Look, JournalFileError> {
        self.line.clear();
        if self.line.capacity() > 1024 * 1024 {
            self.line = Vec::new();
        }
        let bytes = (&mut self.reader)
            .take(MAX_LINE as u64 + 1)
            .read_until(b'\n', &mut self.line)
            .map_err(FileError::at("read", &self.path))?;
        self.read += bytes as u64;
        if bytes > MAX_LINE {
            if !self.line.ends_with(b"\n") {
                self.read += self.reader.skip_until(b'\n').map_err(FileError::at("read", &self.path))? as u64;
            }
            self.place.offset = self.read;
            let (path, line) = (self.path.clone(), self.place.seq);
            return Ok(Look::Bad(JournalFileError::LineTooLong { path, line, max: MAX_LINE }));
        }
        let Some(text) = self.line.strip_suffix(b"\n") else {
            return Ok(Look::End { torn: bytes as u64 });
        };
        let looked = match line::read(text) {
            Ok(frame) => Look::Line(frame),
            Err(Refused::Converted(frame)) => Look::Converted(frame, self.damaged(Damage::LineEnd)),
            Err(Refused::Newer(version)) => {
                let (path, line) = (self.path.clone(), self.place.seq);
                return Err(JournalFileError::Newer { path, line, version });
            }
            Err(Refused::Damage { damage, intact }) => {
                let rest = self.reader.fill_buf().map_err(FileError::at("read", &self.path))?;
                if rest.is_empty() && !intact {
                    return Ok(Look::End { torn: bytes as u64 });
                }
                Look::Bad(self.damaged(damage))
            }
        };
        self.place.offset = self.read;
        Ok(looked)
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
        let line = frame.seq;
        self.unfolded(frame, line, |reference| blobs.fetch(reference))
    }

    /// The record of the line that was just stepped over, a text in the place of each large value that cannot be read; and
    /// what is wrong with it. There is no record where it is nothing without such a value.
    pub(super) fn record_around(
        &self,
        frame: Frame,
        line: u64,
        blobs: &Blobs,
    ) -> (Option<Record>, Vec<JournalFileError>) {
        let mut lost = Vec::new();
        let record = self.unfolded(frame, line, |reference| {
            blobs.fetch(reference).or_else(|source| {
                lost.push(JournalFileError::Blob { path: self.path.clone(), line, source });
                Ok(reference.stand_in())
            })
        });
        match record {
            Ok(record) => (Some(record), lost),
            // A body that is kept apart as a whole is no body without it; that it is gone was told.
            Err(JournalFileError::Record { .. }) if !lost.is_empty() => (None, lost),
            Err(error) => {
                lost.push(error);
                (None, lost)
            }
        }
    }

    fn unfolded(
        &self,
        frame: Frame,
        line: u64,
        fetch: impl FnMut(&BlobRef) -> Result<String, BlobError>,
    ) -> Result<Record, JournalFileError> {
        let Frame { seq, ts, turn, body } = frame;
        let folded = self
            .line
            .get(body)
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .ok_or_else(|| self.damaged_at(line, Damage::Shape))?;
        let path = || self.path.clone();
        let text = super::fold::unfold(folded, fetch).map_err(|source| JournalFileError::Blob {
            path: path(),
            line,
            source,
        })?;
        let body = line::read_body(&text).map_err(|source| JournalFileError::Record {
            path: path(),
            line,
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

    pub(super) fn over(lines: Lines, folder: &SessionFolder, from: u64) -> Self {
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
