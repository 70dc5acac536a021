//! A session out of everything that can be read of a damaged one: its records in their order under new numbers, messages that
//! only the transcript still has in their places, and a word to the model where something is missing. The damaged session
//! is left as it is.
//!
//! A call whose result is lost, or a result whose call is, stays as it is read: providers mend such a conversation each time
//! they send it, as they do after a kill.

use std::sync::Arc;

use amplifier_core::journal::Journal;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::message::Message;
use amplifier_protocol::record::{Record, RecordBody};
use amplifier_protocol::time::Timestamp;
use serde_json::Value;

use super::SessionError;
use super::describe::own;
use super::fork::{Forked, Making};
use super::reading::{Damaged, Lost, Part, Read, Reading};
use crate::files::create_private_file;
use crate::journal::{FileJournal, Lease};
use crate::paths::SessionFolder;
use crate::store::{Metadata, SessionStore, check_journal, known_of, transcript_of};

/// Who says that something is missing.
const SPEAKER: &str = "amplifier";
/// What the model reads there.
const MISSING: &str =
    "(Something that was said or done here could not be read from the disk any more and is missing.)";

/// A session that was made of what could be read.
#[derive(Debug)]
pub struct Salvaged {
    pub forked: Forked,
    /// How many records were left out, how many messages of theirs the transcript had, and in how many places the model is
    /// told that something may be missing.
    pub left_out: u64,
    pub kept: u64,
    pub told: u64,
    /// What is wrong with the other session.
    pub damaged: Vec<Damaged>,
}

/// Makes a session of all that can be read of another one, which nobody may be using.
pub fn salvage(store: &SessionStore, id: &SessionId, name: Option<&str>) -> Result<Salvaged, SessionError> {
    let making = Making::of(store, id, name)?;
    let source = &making.source;
    if let Ok(Some(owner)) = Lease::holder(&source.lease()) {
        return Err(SessionError::InUse { id: id.clone(), owner });
    }
    let (mut lost, mut damaged) = (Losses::default(), Vec::new());
    let forked = making.make(store, |target| {
        let mut reading = Reading::open(source)?;
        let mut copy = Copy::begin(&making, target)?;
        loop {
            match reading.advance()? {
                Part::End => break,
                Part::Lost(lost) => copy.bridge(&lost)?,
                Part::Line => match reading.record() {
                    Some(Read::Record(record)) => copy.take(record)?,
                    Some(Read::Partly(record)) => {
                        copy.lost.told += u64::from(matches!(record.body, RecordBody::Message(_)));
                        copy.take(record)?;
                    }
                    Some(Read::Lost(lost)) => copy.bridge(&lost)?,
                    None => {}
                },
            }
        }
        if copy.taken == 0 {
            check_journal(source)?;
            return Err(SessionError::Empty { id: id.clone() });
        }
        copy.settle(source)?;
        damaged = reading.damaged();
        lost = copy.lost;
        copy.end(&making)
    })?;
    let Losses { left_out, kept, told } = lost;
    Ok(Salvaged { forked, left_out, kept, told, damaged })
}

/// A journal that is filled with what can be read of another.
struct Copy {
    journal: FileJournal,
    seq: u64,
    ts: Timestamp,
    turn: u64,
    /// How many records were taken over, and the last of them as the other session counts.
    taken: u64,
    last: u64,
    lost: Losses,
    /// What the views know of the session that is copied.
    known: Option<Metadata>,
}

/// What could not be taken over, as [`Salvaged`] tells it.
#[derive(Debug, Clone, Copy, Default)]
struct Losses {
    left_out: u64,
    kept: u64,
    told: u64,
}

impl Copy {
    fn begin(making: &Making<'_>, target: &SessionFolder) -> Result<Self, SessionError> {
        create_private_file(&target.events())?;
        let (journal, _) = own(target, &making.new, "amplifier session fork")?;
        let known = known_of(&making.source);
        let plan_hash = known.as_ref().map(|metadata| metadata.plan_hash.clone()).unwrap_or_default();
        let first = making.first_record(plan_hash);
        let ts = known.as_ref().map_or(first.ts, |metadata| metadata.created);
        journal.append(&first)?;
        Ok(Self { journal, seq: 1, ts, turn: 0, taken: 0, last: 0, lost: Losses::default(), known })
    }

    fn take(&mut self, record: Record) -> Result<(), SessionError> {
        // The fork has a beginning of its own.
        if record.seq == 1 && matches!(record.body, RecordBody::Opened { .. }) {
            return Ok(());
        }
        self.taken += 1;
        self.last = self.last.max(record.seq);
        self.add(record.ts, record.turn, record.body)
    }

    fn add(&mut self, ts: Timestamp, turn: u64, body: RecordBody) -> Result<(), SessionError> {
        (self.seq, self.ts, self.turn) = (self.seq + 1, ts, self.turn.max(turn));
        Ok(self.journal.append(&Record { seq: self.seq, ts, turn: self.turn, body })?)
    }

    /// Puts what the transcript has in the place of records that are lost; where it has nothing, that is said.
    fn bridge(&mut self, lost: &Lost) -> Result<(), SessionError> {
        self.lost.left_out = self.lost.left_out.saturating_add(lost.gap.records());
        self.lost.kept += lost.kept.len() as u64;
        self.taken += lost.kept.len() as u64;
        for (message, turn) in lost.kept.iter().zip(lost.turns()) {
            self.add(self.ts, turn, RecordBody::Message(Arc::clone(message)))?;
        }
        if !lost.is_known {
            self.lost.told += 1;
            let mut message = Message::user(MISSING);
            message.metadata.insert("source".to_owned(), Value::from(SPEAKER));
            self.add(self.ts, lost.last, RecordBody::Message(Arc::new(message)))?;
        }
        Ok(())
    }

    /// Where the places of what is missing are not certain, the transcript still is what the conversation came to, if no record
    /// is later than it.
    fn settle(&mut self, source: &SessionFolder) -> Result<(), SessionError> {
        if self.lost.told > 0
            && let Some((seq, said)) = transcript_of(source)
            && seq >= self.last
        {
            (self.lost.told, self.lost.kept) = (0, said.len() as u64);
            self.add(self.ts, self.turn, RecordBody::Messages(said))?;
        }
        Ok(())
    }

    fn end(mut self, making: &Making<'_>) -> Result<u64, SessionError> {
        let turn = self.turn;
        let described = making.described_as_known(turn, self.known.take());
        self.add(self.ts, turn, described)?;
        self.journal.sync_now()?;
        Ok(turn)
    }
}
