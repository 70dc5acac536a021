//! Lines of a journal looked at without being read: number, time, turn and kind, in the memory of one line. Whoever wants
//! what a line says asks for its record. Most readers of a long journal want a few kinds of records out of many.

use amplifier_protocol::record::Record;
use amplifier_protocol::time::Timestamp;

use super::blobs::Blobs;
use super::error::JournalFileError;
use super::line::Frame;
use super::lines::{Lines, Step};
use crate::paths::SessionFolder;

/// Looks at the lines of a journal in order. It ends before a torn last line.
pub struct Peeker {
    lines: Lines,
    blobs: Blobs,
    /// The first record that is looked at, and the first that is not any more.
    from: u64,
    until: u64,
}

/// A line that was looked at.
pub struct Peek<'a> {
    pub seq: u64,
    pub ts: Timestamp,
    pub turn: u64,
    /// The line of the file it stands in: that of its number, unless lines are missing or stand elsewhere.
    pub line: u64,
    frame: Frame,
    lines: &'a Lines,
    blobs: &'a Blobs,
}

impl<'a> Peek<'a> {
    pub(super) fn of(frame: Frame, line: u64, lines: &'a Lines, blobs: &'a Blobs) -> Self {
        let Frame { seq, ts, turn, .. } = frame;
        Self { seq, ts, turn, line, frame, lines, blobs }
    }
}

impl Peeker {
    /// From the first line.
    pub fn open(folder: &SessionFolder) -> Result<Self, JournalFileError> {
        Ok(Self::over(Lines::from_start(folder)?, folder, 1))
    }

    /// From the record `seq` on, without reading all before it.
    pub fn from_seq(folder: &SessionFolder, seq: u64) -> Result<Self, JournalFileError> {
        Ok(Self::over(Lines::near(folder, seq)?, folder, seq))
    }

    /// The last stretch of the journal before the record `seq`, as the index divides it: for whoever reads from the end.
    pub fn before(folder: &SessionFolder, seq: u64) -> Result<Self, JournalFileError> {
        let lines = Lines::near(folder, seq.saturating_sub(1))?;
        let from = lines.place().seq;
        Ok(Self { until: seq, ..Self::over(lines, folder, from) })
    }

    /// The number of the first record that it looks at.
    pub fn first(&self) -> u64 {
        self.from
    }

    fn over(lines: Lines, folder: &SessionFolder, from: u64) -> Self {
        Self { lines, blobs: Blobs::new(folder.blobs()), from, until: u64::MAX }
    }

    /// The next line; nothing at the end.
    pub fn next_line(&mut self) -> Result<Option<Peek<'_>>, JournalFileError> {
        loop {
            match self.lines.step()? {
                Step::End { .. } => return Ok(None),
                Step::Line(frame) if frame.seq < self.from => {}
                Step::Line(frame) if frame.seq >= self.until => return Ok(None),
                Step::Line(frame) => {
                    let line = frame.seq;
                    return Ok(Some(Peek::of(frame, line, &self.lines, &self.blobs)));
                }
            }
        }
    }
}

impl Peek<'_> {
    /// The body as it stands in the line, large values still apart.
    pub fn text(&self) -> &str {
        self.lines.body(&self.frame)
    }

    /// The key of the body, such as `message` or `event`.
    pub fn kind(&self) -> &str {
        first_string(self.text())
    }

    /// The name of an event; nothing for other records.
    pub fn event(&self) -> Option<&str> {
        let rest = self.text().strip_prefix(r#"{"event":{"name":"#)?;
        Some(first_string(rest))
    }

    /// The whole record, large values back in place.
    pub fn record(self) -> Result<Record, JournalFileError> {
        self.lines.record(self.frame, self.blobs)
    }

    /// The record with a few words in the place of each large value that cannot be read, and what is wrong with it; no
    /// record where nothing of it can be read.
    pub fn record_around(self) -> (Option<Record>, Vec<JournalFileError>) {
        self.lines.record_around(self.frame, self.line, self.blobs)
    }
}

fn first_string(text: &str) -> &str {
    text.split('"').nth(1).unwrap_or_default()
}
