//! The lines of a journal that can be read, around those that cannot: for whoever only shows what there is. Whoever writes or
//! goes on reads strictly, with [`super::Peeker`] or [`super::RecordReader`].
//!
//! Up to the first damage both are the same. Behind it every line is looked at once: one whose checksum holds is what was
//! written, and its own number says where it belongs, wherever it stands. Numbers that are nowhere are gaps. As long as
//! nothing is damaged this costs nothing.

use std::vec::IntoIter;

use super::blobs::Blobs;
use super::error::{Damage, JournalFileError};
use super::index::Entry;
use super::line::Frame;
use super::lines::{Lines, Look, Step};
use super::peek::Peek;
use super::recover::was_cut;
use crate::paths::SessionFolder;

/// How many faults are told one by one. Whatever changes the ends of all lines makes as many as there are lines.
const FAULTS: usize = 20;

/// Reads around damage. It ends before a torn last line.
pub struct Around {
    folder: SessionFolder,
    /// Nothing where there is no file.
    lines: Option<Lines>,
    blobs: Blobs,
    /// The last record there must be.
    known: u64,
    last: Found,
    frame: Option<Frame>,
    /// The readable lines behind the first damage, by their numbers.
    rest: Option<std::iter::Peekable<IntoIter<Found>>>,
    is_torn: bool,
    faults: Vec<Fault>,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// A line that can be read: [`Around::line`] has it.
    Line,
    Gap(Gap),
    End,
}

/// Records that are nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The first and the last of them.
    pub from: u64,
    pub to: u64,
    /// The line where the first should stand.
    pub line: u64,
    /// The turn of the record before them, and of the one behind.
    pub before: u64,
    pub behind: Option<u64>,
}

/// Something that is wrong with a line.
#[derive(Debug)]
pub struct Fault {
    /// Counted from 1, as they stand in the file.
    pub line: u64,
    pub error: JournalFileError,
}

/// Where a readable line stands.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    seq: u64,
    turn: u64,
    line: u64,
    offset: u64,
}

impl Gap {
    /// How many records are missing.
    pub fn records(&self) -> u64 {
        (self.to - self.from).saturating_add(1)
    }
}

impl Around {
    /// Reads a journal that had a record `known`; 0 where nobody knows.
    pub fn open(folder: &SessionFolder, known: u64) -> Result<Self, JournalFileError> {
        let lines = match Lines::from_start(folder) {
            Err(JournalFileError::File(error)) if error.is_missing() && known > 0 => None,
            lines => Some(lines?),
        };
        Ok(Self {
            folder: folder.clone(),
            rest: lines.is_none().then(|| Vec::new().into_iter().peekable()),
            lines,
            blobs: Blobs::new(folder.blobs()),
            known,
            last: Found::default(),
            frame: None,
            is_torn: false,
            faults: Vec::new(),
        })
    }

    /// Goes to the next line that can be read, or to the gap before it.
    pub fn advance(&mut self) -> Result<Passage, JournalFileError> {
        self.frame = None;
        let Some(lines) = self.lines.as_mut().filter(|_| self.rest.is_none()) else { return self.go_on() };
        let place = lines.place();
        match lines.step() {
            Ok(Step::Line(frame)) => {
                let Frame { seq, turn, .. } = frame;
                self.last = Found { seq, turn, line: seq, offset: place.offset };
                self.frame = Some(frame);
                return Ok(Passage::Line);
            }
            Ok(Step::End { torn }) => {
                self.is_torn = torn > 0;
                self.rest = Some(Vec::new().into_iter().peekable());
            }
            Err(JournalFileError::Damaged { .. } | JournalFileError::LineTooLong { .. }) => {
                let survey = Survey::from(lines, place)?;
                self.is_torn = survey.is_torn;
                self.faults = survey.faults;
                self.rest = Some(survey.found.into_iter().peekable());
            }
            Err(error) => return Err(error),
        }
        self.go_on()
    }

    /// The line that was just come to.
    pub fn line(&self) -> Option<Peek<'_>> {
        let (frame, lines) = (self.frame.clone()?, self.lines.as_ref()?);
        Some(Peek::of(frame, self.last.line, lines, &self.blobs))
    }

    /// What was found to be wrong since this was last asked.
    pub fn take_faults(&mut self) -> Vec<Fault> {
        std::mem::take(&mut self.faults)
    }

    /// The next of the lines behind the damage.
    fn go_on(&mut self) -> Result<Passage, JournalFileError> {
        let next = self.rest.as_mut().and_then(|rest| rest.peek().copied());
        let (Some(next), Some(lines)) = (next, &mut self.lines) else { return Ok(self.end()) };
        let expected = self.last.seq.saturating_add(1);
        if next.seq > expected {
            self.last.seq = next.seq - 1;
            return Ok(Passage::Gap(self.gap(expected, next.seq - 1, Some(next.turn))));
        }
        self.rest.as_mut().and_then(Iterator::next);
        self.last = next;
        lines.go_to(Entry { seq: next.seq, offset: next.offset })?;
        match lines.look()? {
            Look::Line(frame) | Look::Converted(frame, _) if frame.seq == next.seq => {
                self.frame = Some(frame);
                Ok(Passage::Line)
            }
            Look::Bad(error) => Err(error),
            // Somebody changed the file meanwhile.
            Look::Line(_) | Look::Converted(..) | Look::End { .. } => Ok(Passage::End),
        }
    }

    /// The end, after the gap before it. A torn last line was one record, which its finder keeps beside and tells of.
    fn end(&mut self) -> Passage {
        let (from, to) = (self.last.seq.saturating_add(1), self.known);
        if to < from || (to == from && (self.is_torn || was_cut(&self.folder, to))) {
            return Passage::End;
        }
        self.last.seq = to;
        Passage::Gap(self.gap(from, to, None))
    }

    fn gap(&self, from: u64, to: u64, behind: Option<u64>) -> Gap {
        Gap { from, to, line: self.last.line.saturating_add(1), before: self.last.turn, behind }
    }
}

/// What stands in a journal from its first damage on.
#[derive(Default)]
struct Survey {
    found: Vec<Found>,
    faults: Vec<Fault>,
    /// The line of the first fault that is not told by itself, and how many come behind it.
    more: Option<(u64, u64)>,
    is_torn: bool,
    /// The number that the next line should have.
    expected: u64,
}

impl Survey {
    fn from(lines: &mut Lines, first: Entry) -> Result<Self, JournalFileError> {
        let mut survey = Self { expected: first.seq, ..Self::default() };
        let (mut line, mut offset) = (first.seq, first.offset);
        loop {
            // Errors call a line by the number of the place.
            lines.go_to(Entry { seq: line, offset })?;
            let found = |frame: &Frame| Found { seq: frame.seq, turn: frame.turn, line, offset };
            match lines.look()? {
                Look::End { torn } => {
                    survey.is_torn = torn > 0;
                    break;
                }
                Look::Bad(error) => {
                    survey.blame(line, error);
                    survey.expected = survey.expected.saturating_add(1);
                }
                Look::Converted(frame, error) => {
                    survey.blame(line, error);
                    survey.take(found(&frame), first, lines);
                }
                Look::Line(frame) => survey.take(found(&frame), first, lines),
            }
            offset = lines.place().offset;
            line += 1;
        }
        if let Some((line, more)) = survey.more {
            let error = JournalFileError::More { path: lines.path().to_owned(), line, more };
            survey.faults.push(Fault { line, error });
        }
        survey.found.sort_by_key(|found| found.seq);
        survey.found.dedup_by_key(|found| found.seq);
        Ok(survey)
    }

    fn take(&mut self, found: Found, first: Entry, lines: &Lines) {
        let Found { seq, line, .. } = found;
        if seq != self.expected {
            let damage = Damage::Sequence { expected: self.expected, found: seq };
            self.blame(line, JournalFileError::Damaged { path: lines.path().to_owned(), line, damage });
        }
        // Of two with one number the first counts, also where it stands before the damage.
        if seq >= first.seq {
            self.found.push(found);
        }
        self.expected = seq.saturating_add(1);
    }

    fn blame(&mut self, line: u64, error: JournalFileError) {
        match &mut self.more {
            None if self.faults.len() < FAULTS => self.faults.push(Fault { line, error }),
            None => self.more = Some((line, 0)),
            Some((_, more)) => *more += 1,
        }
    }
}
