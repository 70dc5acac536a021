//! The end of a conversation as it was written down, for whoever goes on with it. The journal is read from its end, no
//! further than what is wanted begins: a session may be as long as it likes.

use std::collections::VecDeque;

use amplifier_protocol::event::{Event, OrchestratorComplete, ToolPre};
use amplifier_protocol::record::{Record, RecordBody};

use super::SessionError;
use super::turns::{Head, Mark};
use crate::journal::Peeker;
use crate::paths::SessionFolder;

/// How far back is read.
#[derive(Debug, Clone, Copy)]
pub struct Reach {
    /// The last turn that is of interest.
    pub until: u64,
    /// How many turns are wanted, and how many calls, whatever turns made them.
    pub turns: usize,
    pub calls: usize,
    /// With so many records, or stretches of the journal of about a mebibyte, it is enough.
    pub records: usize,
    pub stretches: usize,
}

/// The end of a conversation.
pub struct Recent {
    /// What there is before the records.
    pub before: Before,
    /// The first turn that is wanted.
    pub from: u64,
    /// How many calls the records tell of.
    pub calls: usize,
    /// What belongs to the conversation, in order: messages, calls and what they told, ends of turns. It begins before the
    /// first turn that is wanted where the calls that are wanted do.
    pub records: Vec<Record>,
}

/// What there is of a conversation before a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    Nothing,
    Turns,
    /// The beginning of the turn, too.
    Unread,
}

/// Reads the end of a conversation.
pub fn recent(folder: &SessionFolder, reach: &Reach) -> Result<Recent, SessionError> {
    let mut tail = Tail::default();
    let mut end = u64::MAX;
    for _ in 0..reach.stretches {
        end = tail.read_before(folder, end, reach.until)?;
        tail.is_whole = end <= 1;
        if tail.is_whole || tail.reaches(reach) {
            break;
        }
    }
    Ok(tail.conversation(reach.turns))
}

/// The last turns of a journal, those that count and those that do not.
#[derive(Default)]
struct Tail {
    turns: VecDeque<Part>,
    is_whole: bool,
}

/// What was read of a turn.
struct Part {
    turn: u64,
    marks: Vec<Mark>,
    records: Vec<Record>,
}

impl Tail {
    /// Puts the stretch that ends before a record before what is known; gives where it begins.
    fn read_before(&mut self, folder: &SessionFolder, end: u64, until: u64) -> Result<u64, SessionError> {
        let mut peeker = Peeker::before(folder, end)?;
        let first = peeker.first();
        let mut turns: Vec<Part> = Vec::new();
        while let Some(peek) = peeker.next_line()? {
            if peek.turn > until {
                break;
            }
            if turns.last().is_none_or(|last| last.turn < peek.turn) {
                turns.push(Part { turn: peek.turn, marks: Vec::new(), records: Vec::new() });
            }
            let Some(last) = turns.last_mut() else { continue };
            if Mark::is_one(&peek) {
                last.marks.push(Mark::of(peek)?);
            } else if is_shown(peek.kind(), peek.event()) {
                last.records.push(peek.record()?);
            }
        }
        for mut earlier in turns.into_iter().rev() {
            match self.turns.front_mut().filter(|later| later.turn == earlier.turn) {
                None => self.turns.push_front(earlier),
                Some(later) => {
                    earlier.marks.append(&mut later.marks);
                    earlier.records.append(&mut later.records);
                    *later = earlier;
                }
            }
        }
        Ok(first)
    }

    /// The turns of the conversation, the last one first, by their place; and the turn before them, where that is known.
    fn counted(&self) -> (Vec<usize>, Option<u64>) {
        let mut wanted = self.turns.back().map(Part::head);
        let mut counted = Vec::new();
        for (at, part) in self.turns.iter().enumerate().rev() {
            if wanted == Some(part.turn) && part.turn > 0 {
                counted.push(at);
                wanted = match at.checked_sub(1).and_then(|before| self.turns.get(before)) {
                    Some(before) => Some(before.head()),
                    None => self.is_whole.then_some(0),
                };
            }
        }
        (counted, wanted)
    }

    /// Whether all that is wanted is there. The first turn may have begun earlier.
    fn reaches(&self, reach: &Reach) -> bool {
        let (counted, _) = self.counted();
        let parts = || counted.iter().filter_map(|at| self.turns.get(*at));
        let calls: usize = parts().map(Part::calls).sum();
        let whole = counted.iter().filter(|at| **at > 0).count();
        let records: usize = parts().map(|part| part.records.len()).sum();
        (whole >= reach.turns && calls >= reach.calls) || records >= reach.records
    }

    fn conversation(self, most: usize) -> Recent {
        let (counted, wanted) = self.counted();
        let shown: Vec<usize> = counted.iter().copied().take(most).collect();
        let first = shown.last().and_then(|at| self.turns.get(*at));
        let from = first.map_or(u64::MAX, |first| first.turn);
        let before = match (shown.last(), wanted) {
            (Some(0), None) => Before::Unread,
            (Some(_), Some(0)) if shown.len() == counted.len() => Before::Nothing,
            (Some(_), _) => Before::Turns,
            (None, Some(1..)) => Before::Turns,
            (None, _) => Before::Nothing,
        };
        let kept = self.turns.into_iter().enumerate().filter(|(at, _)| counted.contains(at));
        let kept: Vec<Part> = kept.map(|(_, part)| part).collect();
        let calls = kept.iter().map(Part::calls).sum();
        Recent { before, from, calls, records: kept.into_iter().flat_map(|part| part.records).collect() }
    }
}

impl Part {
    /// The turn that the conversation ends with behind it.
    fn head(&self) -> u64 {
        let mut head = Head::at(self.turn);
        self.marks.iter().for_each(|mark| head.take(*mark));
        head.turn
    }

    fn calls(&self) -> usize {
        let is_call = |record: &&Record| matches!(&record.body, RecordBody::Event { name, .. } if name.as_str() == ToolPre::NAME);
        self.records.iter().filter(is_call).count()
    }
}

/// Whether a record is a message, tells of a call, or of how a turn ended; tools tell of themselves under names of their own.
fn is_shown(kind: &str, event: Option<&str>) -> bool {
    match event {
        Some(OrchestratorComplete::NAME) => true,
        Some(name) => ["tool:", "apply-patch:"].iter().any(|begins| name.starts_with(begins)),
        None => matches!(kind, "message" | "call_started" | "$json"),
    }
}
