//! The turns of a session, and where each ends in its journal.
//!
//! Numbers only grow. After a rewind the next turn follows the one that was gone back to, so turns are a tree and the
//! conversation is one way through it. Nothing is forgotten: going back to a turn that no longer counts works too.

use amplifier_core::history::Replay;
use amplifier_core::redact::redact_text;
use amplifier_protocol::event::{Event, OrchestratorComplete, PromptSubmit, SessionRewound, TurnStatus};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::message::{Message, Messages};
use amplifier_protocol::record::RecordBody;
use amplifier_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::reading::{Damaged, Lost, Part, Read, Reading};
use super::{SessionError, story};
use crate::journal::{Peek, Peeker};
use crate::paths::SessionFolder;
use crate::store::metadata_now;
use crate::words;

/// How much of a prompt a turn shows, in characters.
const PROMPT_CHARS: usize = 200;
/// How the record of a context begins and ends that holds nothing.
const EMPTY: &str = r#"{"messages":[]}"#;

/// One turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Turn {
    pub number: u64,
    pub begun: Timestamp,
    /// The beginning of what was asked, on one line; nothing when an interrupted turn was continued.
    pub prompt: Option<String>,
    /// How it ended; nothing when it did not.
    pub status: Option<TurnStatus>,
    /// The turn it follows in the conversation; 0 for none.
    pub after: u64,
    /// Whether it is part of the conversation now.
    pub counts: bool,
    /// Whether records of it cannot be read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
}

impl Turn {
    /// Whether all of it can be read.
    pub(super) fn is_whole(&self) -> bool {
        self.status.is_some() && !self.damaged
    }
}

/// A place in a journal: everything up to the record `seq`, which is the end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) turn: u64,
    pub(crate) seq: u64,
    /// Whether the turn ended by itself.
    pub(crate) ended: bool,
}

/// All turns of a session in order. Refuses a damaged journal.
pub fn turns(folder: &SessionFolder) -> Result<Vec<Turn>, SessionError> {
    let (turns, damaged) = turns_around(folder)?;
    match damaged.into_iter().next() {
        Some(damaged) => Err(damaged.error),
        None => Ok(turns),
    }
}

/// How many turns a session took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Those that are part of the conversation now.
    pub counted: u64,
    /// Those that are not any more.
    pub gone: u64,
}

/// Tells of the turns that a session took how many count. Only a journal in which somebody went back is read for it.
pub fn tally(folder: &SessionFolder, taken: u64) -> Result<Tally, SessionError> {
    if metadata_now(folder)?.views.straight {
        return Ok(Tally { counted: taken, gone: 0 });
    }
    let (counted, gone): (Vec<_>, Vec<_>) = turns(folder)?.into_iter().partition(|turn| turn.counts);
    let count = |turns: Vec<Turn>| u64::try_from(turns.len()).unwrap_or(u64::MAX);
    Ok(match count(gone) {
        0 => Tally { counted: taken, gone: 0 },
        gone => Tally { counted: count(counted), gone },
    })
}

/// All turns of a session in order, as far as they can be read, and what cannot.
pub fn turns_around(folder: &SessionFolder) -> Result<(Vec<Turn>, Vec<Damaged>), SessionError> {
    let mut reading = Reading::open(folder)?;
    let mut row = Row::beginning(reading.begun());
    loop {
        match reading.advance()? {
            Part::End => return Ok((row.counted(), reading.damaged())),
            Part::Lost(lost) => row.miss(&lost),
            Part::Line => {
                let Some(peek) = reading.line() else { continue };
                if row.look(&peek) == Glance::Short {
                    match reading.record() {
                        Some(Read::Record(record) | Read::Partly(record)) => row.take(record.body),
                        Some(Read::Lost(lost)) => row.miss(&lost),
                        None => {}
                    }
                }
            }
        }
    }
}

/// The last turns of a session that took so many. The journal is read from its end, no further than the first of them begins.
pub fn last_turns(folder: &SessionFolder, taken: u64, most: u64) -> Result<Vec<Turn>, SessionError> {
    let first = taken.saturating_sub(most).saturating_add(1);
    let mut end = u64::MAX;
    // A turn that a stretch begins with may have begun before it.
    while end > 1 {
        let mut stretch = Peeker::before(folder, end)?;
        end = stretch.first().min(end.saturating_sub(1));
        if stretch.next_line()?.is_some_and(|peek| peek.turn < first) {
            break;
        }
    }
    let mut peeker = Peeker::from_seq(folder, end)?;
    let mut row = Row::beginning(Timestamp::from_micros(0));
    while let Some(peek) = peeker.next_line()? {
        if row.look(&peek) == Glance::Short {
            row.take(peek.record()?.body);
        }
    }
    Ok(row.counted().into_iter().skip_while(|turn| turn.number < first).collect())
}

/// Whether a look at a line is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Glance {
    Enough,
    /// The record has to be read.
    Short,
}

/// The turns that were read so far.
struct Row {
    turns: Vec<Turn>,
    head: Head,
    now: Timestamp,
}

impl Row {
    fn beginning(now: Timestamp) -> Self {
        Self { turns: Vec::new(), head: Head::at(0), now }
    }

    /// Takes what a line tells at sight.
    fn look(&mut self, peek: &Peek<'_>) -> Glance {
        self.now = peek.ts;
        self.reach(peek.turn);
        let is_mark = Mark::is_one(peek);
        if let Some(mark) = is_mark.then(|| Mark::at_sight(peek)).flatten() {
            self.head.take(mark);
            return Glance::Enough;
        }
        let tells = matches!(peek.event(), Some(PromptSubmit::NAME | OrchestratorComplete::NAME));
        match is_mark || tells || (peek.kind() == "message" && self.wants_prompt()) {
            true => Glance::Short,
            false => Glance::Enough,
        }
    }

    /// Begins a turn, if it is one that was not begun.
    fn reach(&mut self, number: u64) {
        if number > self.turns.last().map_or(0, |turn| turn.number) {
            let (begun, after) = (self.now, self.head.turn);
            let turn =
                Turn { number, begun, prompt: None, status: None, after, counts: false, damaged: false };
            self.turns.push(turn);
            self.head = Head::at(number);
        }
    }

    /// Whether no record told what was asked: it may be lost, here or in the session that this one was made of.
    fn wants_prompt(&self) -> bool {
        self.turns.last().is_some_and(|turn| turn.prompt.is_none())
    }

    fn take(&mut self, body: RecordBody) {
        let (name, data) = match body {
            RecordBody::Event { name, data } => (name, data),
            RecordBody::Message(message) => return self.ask(&message),
            _ => return,
        };
        if name.as_str() == SessionRewound::NAME {
            self.head.take(Mark::GoesTo(data.get("to").and_then(Value::as_u64)));
        } else if let Some(turn) = self.turns.last_mut() {
            tell(turn, &data);
        }
    }

    /// Records are missing here: of the last turn, unless it has ended, and of those up to the next one.
    fn miss(&mut self, lost: &Lost) {
        if let Some(turn) = self.turns.last_mut().filter(|turn| turn.status.is_none()) {
            turn.damaged = true;
        }
        for (message, number) in lost.kept.iter().zip(lost.turns()) {
            self.reach(number);
            self.ask(message);
            self.turns.last_mut().into_iter().for_each(|turn| turn.damaged = true);
        }
        if let Some(behind) = lost.gap.behind.filter(|behind| *behind > lost.gap.before) {
            self.reach(behind);
            self.turns.last_mut().into_iter().for_each(|turn| turn.damaged = true);
        }
    }

    /// What was asked in the last turn, where nothing else tells.
    fn ask(&mut self, message: &Message) {
        if let Some(turn) = self.turns.last_mut().filter(|_| story::is_prompt(message)) {
            let said = message.content.visible_text();
            // A message stands there as it was said; the event that tells the prompt had look-alikes of keys taken out.
            let said = redact_text(words::own(&said));
            turn.prompt.get_or_insert_with(|| words::one_line(&said, PROMPT_CHARS));
        }
    }

    fn counted(mut self) -> Vec<Turn> {
        let mut head = self.head.turn;
        for turn in self.turns.iter_mut().rev() {
            if turn.number == head {
                (turn.counts, head) = (true, turn.after);
            }
        }
        self.turns
    }
}

/// What a record says about where the conversation ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mark {
    /// It goes back to the end of a turn; what it is then comes next.
    GoesTo(Option<u64>),
    /// It is something else from here on, and has the same turns in another form.
    Replaced,
    /// It was cleared, and has no turn any more.
    Emptied,
}

impl Mark {
    pub(super) fn is_one(peek: &Peek<'_>) -> bool {
        match peek.event() {
            Some(name) => name == SessionRewound::NAME,
            None => peek.kind() == "messages",
        }
    }

    pub(super) fn of(peek: Peek<'_>) -> Result<Self, SessionError> {
        Ok(match Self::at_sight(&peek) {
            Some(mark) => mark,
            None => Self::GoesTo(rewound_to(peek)?),
        })
    }

    /// What can be told without reading the record. All that was ever said may stand there, and only whether something does
    /// is of interest.
    fn at_sight(peek: &Peek<'_>) -> Option<Self> {
        match (peek.event(), peek.text()) {
            (None, EMPTY) => Some(Self::Emptied),
            (None, _) => Some(Self::Replaced),
            (Some(_), _) => None,
        }
    }
}

/// The turn that the conversation ends with, as one mark after the other says.
pub(super) struct Head {
    pub(super) turn: u64,
    going_to: Option<u64>,
}

impl Head {
    pub(super) fn at(turn: u64) -> Self {
        Self { turn, going_to: None }
    }

    pub(super) fn take(&mut self, mark: Mark) {
        match mark {
            Mark::GoesTo(turn) => self.going_to = turn,
            Mark::Replaced => self.turn = self.going_to.take().unwrap_or(self.turn),
            Mark::Emptied => self.turn = self.going_to.take().unwrap_or(0),
        }
    }
}

fn tell(turn: &mut Turn, data: &Value) {
    if let Some(prompt) = data.get("prompt").and_then(Value::as_str) {
        turn.prompt = Some(words::one_line(&redact_text(words::own(prompt)), PROMPT_CHARS));
    }
    if let Some(Ok(status)) = data.get("status").map(TurnStatus::deserialize) {
        turn.status = Some(status);
    }
}

fn rewound_to(peek: Peek<'_>) -> Result<Option<u64>, SessionError> {
    let RecordBody::Event { data, .. } = peek.record()?.body else { return Ok(None) };
    Ok(data.get("to").and_then(Value::as_u64))
}

impl Cut {
    /// The end of a turn. What came after it and before the next one, such as a rewind or a cleared context, is not part
    /// of it: that is what going back to it undoes.
    pub(crate) fn at(folder: &SessionFolder, id: &SessionId, turn: u64) -> Result<Self, SessionError> {
        let mut peeker = Peeker::open(folder)?;
        let mut cut = Self { turn: 0, seq: 0, ended: false };
        loop {
            let peek = match peeker.next_line() {
                // Damage after the end of a turn does not touch it.
                Err(_) if cut.turn == turn && cut.ended => None,
                peek => peek?,
            };
            let Some(peek) = peek else { break };
            if peek.turn > turn {
                break;
            }
            if peek.turn > cut.turn {
                cut = Self { turn: peek.turn, seq: peek.seq, ended: false };
            }
            let event = peek.event();
            if peek.turn == turn
                && (event == Some(SessionRewound::NAME) || (cut.ended && peek.kind() == "messages"))
            {
                break;
            }
            cut.seq = peek.seq;
            cut.ended |= event == Some(OrchestratorComplete::NAME);
        }
        match cut {
            Cut { seq: 0, .. } => Err(SessionError::NoJournal { id: id.clone(), journal: folder.events() }),
            cut if cut.turn == turn => Ok(cut),
            cut => Err(SessionError::NoTurn { id: id.clone(), turn, last: cut.turn }),
        }
    }

    /// The end of the journal as it is now.
    pub(crate) fn at_end(folder: &SessionFolder, id: &SessionId) -> Result<Self, SessionError> {
        let mut peeker = Peeker::open(folder)?;
        let mut cut = Self { turn: 0, seq: 0, ended: true };
        while let Some(peek) = peeker.next_line()? {
            let ended =
                cut.ended && peek.turn == cut.turn || peek.event() == Some(OrchestratorComplete::NAME);
            cut = Self { turn: peek.turn, seq: peek.seq, ended };
        }
        match cut.seq {
            0 => Err(SessionError::NoJournal { id: id.clone(), journal: folder.events() }),
            _ => Ok(cut),
        }
    }
}

/// What the context held at a cut. Calls that were open there are told as interrupted.
pub(crate) fn messages_at(folder: &SessionFolder, cut: Cut) -> Result<Messages, SessionError> {
    let mut peeker = Peeker::open(folder)?;
    let mut replay = Replay::default();
    while let Some(peek) = peeker.next_line()? {
        if peek.seq > cut.seq {
            break;
        }
        // Events say nothing about the conversation, and there are many of them.
        if peek.kind() != "event" {
            replay.push(&peek.record()?);
        }
    }
    let mut history = replay.finish();
    history.messages.append(&mut history.mended);
    Ok(history.messages)
}
