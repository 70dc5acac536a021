//! The turns of a session, and where each ends in its journal.
//!
//! Numbers only grow. After a rewind the next turn follows the one that was gone back to, so turns are a tree and the
//! conversation is one way through it. Nothing is forgotten: going back to a turn that no longer counts works too.

use amplifier_core::history::Replay;
use amplifier_protocol::event::{Event, OrchestratorComplete, PromptSubmit, SessionRewound, TurnStatus};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::message::Messages;
use amplifier_protocol::record::RecordBody;
use amplifier_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::SessionError;
use crate::journal::{Peek, Peeker};
use crate::paths::SessionFolder;
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
}

/// A place in a journal: everything up to the record `seq`, which is the end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) turn: u64,
    pub(crate) seq: u64,
    /// Whether the turn ended by itself.
    pub(crate) ended: bool,
}

/// All turns of a session in order.
pub fn turns(folder: &SessionFolder) -> Result<Vec<Turn>, SessionError> {
    let mut peeker = Peeker::open(folder)?;
    let (mut turns, mut head) = (Vec::<Turn>::new(), Head::at(0));
    while let Some(peek) = peeker.next_line()? {
        if peek.turn > turns.last().map_or(0, |turn| turn.number) {
            let (number, begun, after) = (peek.turn, peek.ts, head.turn);
            turns.push(Turn { number, begun, prompt: None, status: None, after, counts: false });
            head = Head::at(number);
        }
        if Mark::is_one(&peek) {
            head.take(Mark::of(peek)?);
        } else if let Some(PromptSubmit::NAME | OrchestratorComplete::NAME) = peek.event()
            && let (RecordBody::Event { data, .. }, Some(turn)) = (peek.record()?.body, turns.last_mut())
        {
            tell(turn, &data);
        }
    }
    let mut head = head.turn;
    for turn in turns.iter_mut().rev() {
        if turn.number == head {
            (turn.counts, head) = (true, turn.after);
        }
    }
    Ok(turns)
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
        // All that was ever said may stand there, and only whether something does is of interest.
        match (peek.event(), peek.text()) {
            (None, EMPTY) => Ok(Self::Emptied),
            (None, _) => Ok(Self::Replaced),
            (Some(_), _) => Ok(Self::GoesTo(rewound_to(peek)?)),
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
        turn.prompt = Some(words::one_line(words::own(prompt), PROMPT_CHARS));
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
