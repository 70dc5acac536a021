//! A session read for being shown: around what is damaged, with what the transcript still has of it, and with a list of what
//! is wrong. Whoever writes to a session or goes on with it reads strictly instead.

use std::collections::{HashMap, HashSet};

use amplifier_protocol::ids::SessionId;
use amplifier_protocol::message::Messages;
use amplifier_protocol::record::{Record, RecordBody};
use amplifier_protocol::time::Timestamp;

use super::kept::kept_in_gaps;
use super::{SessionError, story};
use crate::journal::{Around, Gap, JournalFileError, Passage, Peek};
use crate::paths::SessionFolder;
use crate::store::{Metadata, StoreError, check_journal, known_of, take_in};

/// A place of a journal that is not what was written.
#[derive(Debug)]
pub struct Damaged {
    /// The line, counted from 1.
    pub line: u64,
    pub error: SessionError,
}

/// Reads a session around what is damaged.
pub(super) struct Reading {
    folder: SessionFolder,
    around: Around,
    known: u64,
    turns: u64,
    begun: Timestamp,
    damaged: Vec<Damaged>,
    /// What the transcript has of lost records, by the first of them; read when it is first wanted.
    kept: Option<HashMap<u64, Messages>>,
}

/// What comes next.
pub(super) enum Part {
    /// A line that can be read: [`Reading::line`] has it.
    Line,
    Lost(Lost),
    End,
}

/// A record, as far as it can be read.
pub(super) enum Read {
    Record(Record),
    /// A few words stand in the place of a large value.
    Partly(Record),
    Lost(Lost),
}

/// Records that cannot be read.
#[derive(Debug, Clone)]
pub(super) struct Lost {
    pub(super) gap: Gap,
    /// What the transcript still has of them.
    pub(super) kept: Messages,
    /// Whether that is all that was said in them.
    pub(super) is_known: bool,
    /// The turn of the record behind them, or the last there was.
    pub(super) last: u64,
}

impl Lost {
    /// The turns of the messages that the transcript has. A prompt begins the next one, unless there would be more turns
    /// than there were: then the first prompt is that of the turn before the gap.
    pub(super) fn turns(&self) -> Vec<u64> {
        let Gap { before, .. } = self.gap;
        let prompts = self.kept.iter().filter(|message| story::is_prompt(message)).count() as u64;
        let mut next = before.saturating_add(prompts).min(self.last).saturating_sub(prompts);
        let mut turn = before;
        let turns = self.kept.iter().map(|message| {
            if story::is_prompt(message) {
                next += 1;
                turn = next.max(before);
            }
            turn
        });
        turns.collect()
    }
}

impl Reading {
    pub(super) fn open(folder: &SessionFolder) -> Result<Self, SessionError> {
        let (known, turns, begun) = known_of(folder)
            .map_or((0, 0, Timestamp::from_micros(0)), |Metadata { views, turns, created, .. }| {
                (views.seq, turns, created)
            });
        if known == 0
            && let Err(error @ StoreError::Behind { .. }) = check_journal(folder)
        {
            return Err(error.into());
        }
        let around = Around::open(folder, known)?;
        Ok(Self { folder: folder.clone(), around, known, turns, begun, damaged: Vec::new(), kept: None })
    }

    /// When the session began, for what stands before the first line that can be read; 1970 where nobody knows.
    pub(super) fn begun(&self) -> Timestamp {
        self.begun
    }

    /// Goes to the next line that can be read, or to what is missing before it.
    pub(super) fn advance(&mut self) -> Result<Part, SessionError> {
        let passage = self.around.advance()?;
        for fault in self.around.take_faults() {
            self.damaged.push(Damaged { line: fault.line, error: fault.error.into() });
        }
        Ok(match passage {
            Passage::Line => Part::Line,
            Passage::End => Part::End,
            Passage::Gap(gap) => {
                if gap.behind.is_none() {
                    self.damaged.push(Damaged { line: gap.line, error: self.behind(gap.from - 1).into() });
                }
                let last = gap.behind.unwrap_or(self.turns).max(gap.before);
                let kept = self.kept(gap.from);
                Part::Lost(Lost { gap, is_known: kept.is_some(), kept: kept.unwrap_or_default(), last })
            }
        })
    }

    /// The line that was just come to.
    pub(super) fn line(&self) -> Option<Peek<'_>> {
        self.around.line()
    }

    /// The record of the line that was just come to. A message of which a part is gone is taken from the transcript.
    pub(super) fn record(&mut self) -> Option<Read> {
        let peek = self.around.line()?;
        let (seq, line, ts, turn) = (peek.seq, peek.line, peek.ts, peek.turn);
        let (record, faults) = peek.record_around();
        if faults.is_empty() {
            return record.map(Read::Record);
        }
        self.blame(line, faults);
        let kept = self.kept(seq).unwrap_or_default();
        let gap = Gap { from: seq, to: seq, line, before: turn, behind: Some(turn) };
        Some(match (kept.as_slice(), record) {
            ([message], _) => {
                Read::Record(Record { seq, ts, turn, body: RecordBody::Message(message.clone()) })
            }
            (_, Some(record)) => Read::Partly(record),
            (_, None) => Read::Lost(Lost { gap, kept, is_known: false, last: turn }),
        })
    }

    /// What was found to be wrong.
    pub(super) fn damaged(self) -> Vec<Damaged> {
        self.damaged
    }

    fn blame(&mut self, line: u64, faults: Vec<JournalFileError>) {
        self.damaged.extend(faults.into_iter().map(|error| Damaged { line, error: error.into() }));
    }

    fn kept(&mut self, from: u64) -> Option<Messages> {
        let folder = &self.folder;
        self.kept.get_or_insert_with(|| kept_in_gaps(folder)).get(&from).cloned()
    }

    fn behind(&self, ends: u64) -> StoreError {
        let journal = self.folder.events();
        StoreError::Behind { ends: journal.exists().then_some(ends), journal, known: Some(self.known) }
    }
}

/// What a session is, from the records that can be read. The one that opens it may be among those that cannot.
pub(super) fn metadata_around(
    folder: &SessionFolder,
    id: &SessionId,
) -> Result<Option<Metadata>, SessionError> {
    let (mut reading, mut metadata) = (Reading::open(folder)?, None);
    loop {
        match reading.advance()? {
            Part::End => return Ok(metadata),
            Part::Lost(_) => {}
            Part::Line => {
                let Some(Read::Record(record) | Read::Partly(record)) = reading.record() else { continue };
                if metadata.is_none() && !matches!(record.body, RecordBody::Opened { .. }) {
                    let (session_id, plan_hash) = (id.clone(), String::new());
                    let body = RecordBody::Opened { session_id, parent_id: None, plan_hash };
                    take_in(&mut metadata, Record { body, ..record });
                }
                take_in(&mut metadata, record);
            }
        }
    }
}

/// Adds what was found in another reading of the same session.
pub fn join(damaged: &mut Vec<Damaged>, more: Vec<Damaged>) {
    let told = |one: &Damaged| (one.line, amplifier_core::error::chain(&one.error));
    let known: HashSet<_> = damaged.iter().map(told).collect();
    damaged.extend(more.into_iter().filter(|one| !known.contains(&told(one))));
    damaged.sort_by_key(|one| one.line);
}
