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
    let (mut turns, mut head, mut going_to) = (Vec::<Turn>::new(), 0, None);
    while let Some(peek) = peeker.next_line()? {
        if peek.turn > turns.last().map_or(0, |turn| turn.number) {
            let (number, begun) = (peek.turn, peek.ts);
            turns.push(Turn { number, begun, prompt: None, status: None, after: head, counts: false });
            (head, going_to) = (number, None);
        }
        match (peek.event(), peek.kind()) {
            (Some(SessionRewound::NAME), _) => going_to = rewound_to(peek)?,
            (None, "messages") => {
                head = match going_to.take() {
                    Some(to) => to,
                    // A conversation that was cleared has no turn any more; one that was summed up has them in another form.
                    None if is_empty(peek)? => 0,
                    None => head,
                }
            }
            (Some(PromptSubmit::NAME | OrchestratorComplete::NAME), _) => {
                if let (RecordBody::Event { data, .. }, Some(turn)) = (peek.record()?.body, turns.last_mut())
                {
                    tell(turn, &data);
                }
            }
            _ => {}
        }
    }
    for turn in turns.iter_mut().rev() {
        if turn.number == head {
            (turn.counts, head) = (true, turn.after);
        }
    }
    Ok(turns)
}

fn tell(turn: &mut Turn, data: &Value) {
    if let Some(prompt) = data.get("prompt").and_then(Value::as_str) {
        turn.prompt = Some(words::one_line(words::own(prompt), PROMPT_CHARS));
    }
    if let Some(Ok(status)) = data.get("status").map(TurnStatus::deserialize) {
        turn.status = Some(status);
    }
}

/// Whether the context holds nothing from here on.
fn is_empty(peek: Peek<'_>) -> Result<bool, SessionError> {
    Ok(matches!(peek.record()?.body, RecordBody::Messages(messages) if messages.is_empty()))
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
