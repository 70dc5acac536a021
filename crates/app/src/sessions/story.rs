//! A session as a story: what was asked, thought, said, called and answered, in order, from the journal. For showing,
//! exporting, searching and replaying. Secrets are taken out here, so whatever is made from it has none.

use std::fs::File;
use std::io::{Read as _, Seek, SeekFrom};
use std::path::Path;

use amplifier_core::redact::{redact, redact_text};
use amplifier_modules::CANCELLED_NOTE;
use amplifier_protocol::content::ContentBlock;
use amplifier_protocol::event::{Event, OrchestratorComplete, SessionRewound, TurnStatus};
use amplifier_protocol::message::{Content, Message, Role};
use amplifier_protocol::record::{Record, RecordBody};
use amplifier_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::SessionError;
use super::reading::{Damaged, Lost, Part, Read, Reading};
use crate::paths::SessionFolder;
use crate::words;

/// How much of a transcript is read for its last words.
const TAIL: u64 = 256 * 1024;

/// Something that happened, and when.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moment {
    pub seq: u64,
    pub ts: Timestamp,
    pub turn: u64,
    #[serde(flatten)]
    pub what: Happening,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Happening {
    /// The person asked.
    Prompt { text: String },
    /// Something was put into the conversation that neither the person nor the model said.
    Injected { by: String, text: String },
    /// The model thought.
    Thought { text: String },
    /// The model said.
    Said { text: String },
    /// The model called a tool.
    Called { call_id: String, tool: String, input: Value },
    /// A tool answered.
    Answered { call_id: String, tool: String, text: String },
    /// A picture or something we do not know stands here.
    Shown { kind: String },
    /// The context was replaced as a whole and holds this many messages now.
    Replaced { messages: usize },
    /// The conversation went back to the end of a turn.
    Rewound { to: u64 },
    /// The turn ended.
    Ended { status: TurnStatus },
    /// Records that stood here cannot be read: so many, from this line of the journal on. So many messages of theirs come
    /// next, from the transcript.
    Lost { records: u64, line: u64, kept: usize },
}

/// Tells the story of a session from a turn on, one moment after the other; and what of the session is damaged. That is told
/// around: a moment stands where something is missing.
pub fn tell(
    folder: &SessionFolder,
    from: u64,
    mut each: impl FnMut(Moment) -> Result<(), SessionError>,
) -> Result<Vec<Damaged>, SessionError> {
    let mut reading = Reading::open(folder)?;
    let mut now = reading.begun();
    loop {
        let told = match reading.advance()? {
            Part::End => return Ok(reading.damaged()),
            Part::Lost(lost) => of_lost(&lost, now),
            Part::Line => {
                let Some(peek) = reading.line() else { continue };
                now = peek.ts;
                if peek.turn < from || !is_told(peek.kind(), peek.event()) {
                    continue;
                }
                match reading.record() {
                    Some(Read::Record(record) | Read::Partly(record)) => moments(&record),
                    Some(Read::Lost(lost)) => of_lost(&lost, now),
                    None => continue,
                }
            }
        };
        told.into_iter().filter(|moment| moment.turn >= from).try_for_each(&mut each)?;
    }
}

/// What is told in the place of records that cannot be read.
pub(super) fn of_lost(lost: &Lost, ts: Timestamp) -> Vec<Moment> {
    let Lost { gap, kept, .. } = lost;
    let moment = |turn, what| Moment { seq: gap.from, ts, turn, what };
    let what = Happening::Lost { records: gap.records(), line: gap.line, kept: kept.len() };
    let turns = lost.turns();
    let first = turns.first().copied().or(gap.behind).unwrap_or(gap.before);
    let mut told = vec![moment(first, what)];
    for (message, turn) in kept.iter().zip(turns) {
        told.extend(of_message(message).into_iter().map(|what| moment(turn, what)));
    }
    told
}

/// The words for records that cannot be read.
pub fn lost_words(records: u64, line: u64, kept: usize) -> String {
    let (records, them) = match records {
        1 => ("1 record".to_owned(), "it"),
        records => (format!("{records} records"), "them"),
    };
    let kept = match kept {
        0 => String::new(),
        _ => format!("; what was said in {them} follows from the transcript"),
    };
    format!("{records} cannot be read: events.jsonl:{line}{kept}")
}

/// The last things that were said, from the end of the transcript: for whoever goes on with a session that may be long. What
/// cannot be read is left out; the session itself is opened from what can.
pub fn last(folder: &SessionFolder, most: usize) -> Vec<Happening> {
    let tail = read_tail(&folder.transcript()).unwrap_or_default();
    let messages = tail.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let mut happened: Vec<_> = messages.flat_map(|message| of_message(&message)).collect();
    let mut last = happened.split_off(happened.len().saturating_sub(most));
    for what in &mut last {
        if let Happening::Prompt { text } = what {
            *text = words::own(text).to_owned();
        }
    }
    last
}

/// The last lines of a file, whole ones.
fn read_tail(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    file.take(TAIL).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let whole = if length > TAIL { text.split_once('\n').map_or("", |(_, rest)| rest) } else { &text };
    Ok(whole.to_owned())
}

fn is_told(kind: &str, event: Option<&str>) -> bool {
    match event {
        Some(name) => name == OrchestratorComplete::NAME || name == SessionRewound::NAME,
        // A body that is kept as text may hold any of them.
        None => matches!(kind, "message" | "messages" | "$json"),
    }
}

/// What a record tells; most tell nothing.
pub fn moments(record: &Record) -> Vec<Moment> {
    let Record { seq, ts, turn, body } = record;
    let happened = match body {
        RecordBody::Message(message) => of_message(message),
        RecordBody::Messages(messages) => vec![Happening::Replaced { messages: messages.len() }],
        RecordBody::Event { name, data } => of_event(name.as_str(), data),
        _ => Vec::new(),
    };
    happened.into_iter().map(|what| Moment { seq: *seq, ts: *ts, turn: *turn, what }).collect()
}

fn of_event(name: &str, data: &Value) -> Vec<Happening> {
    match name {
        OrchestratorComplete::NAME => match data.get("status").map(TurnStatus::deserialize) {
            Some(Ok(status)) => vec![Happening::Ended { status }],
            _ => Vec::new(),
        },
        SessionRewound::NAME => {
            data.get("to").and_then(Value::as_u64).map(|to| Happening::Rewound { to }).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn of_message(message: &Message) -> Vec<Happening> {
    let source = message.metadata.get("source").and_then(Value::as_str);
    match (message.role, source) {
        (Role::User, None) => vec![Happening::Prompt { text: clean(&text_of(&message.content)) }],
        (Role::Assistant, _) => of_assistant(message),
        (Role::Tool | Role::Function, _) => vec![Happening::Answered {
            call_id: message.tool_call_id.clone().unwrap_or_default(),
            tool: message.name.clone().unwrap_or_default(),
            text: clean(&text_of(&message.content)),
        }],
        (Role::System | Role::Developer | Role::User, source) => vec![Happening::Injected {
            by: source.unwrap_or("the application").to_owned(),
            text: clean(&text_of(&message.content)),
        }],
    }
}

fn of_assistant(message: &Message) -> Vec<Happening> {
    let mut happened = Vec::new();
    let said = |text: &str| Happening::Said { text: clean(text) };
    match &message.content {
        Content::Text(text) if text.is_empty() => {}
        Content::Text(text) => happened.push(said(text)),
        Content::Blocks(blocks) => {
            for block in blocks {
                match block {
                    ContentBlock::Text(block) => happened.push(said(&block.text)),
                    ContentBlock::Thinking(block) => {
                        happened.push(Happening::Thought { text: clean(&block.thinking) });
                    }
                    // Told below, with those that stand beside the blocks.
                    ContentBlock::ToolCall(_) => {}
                    block => happened.push(Happening::Shown { kind: block.kind() }),
                }
            }
        }
    }
    happened.extend(message.calls().into_iter().map(|call| Happening::Called {
        call_id: call.id,
        tool: call.name,
        input: redact(&call.arguments),
    }));
    happened
}

/// The text of a message; a block that is no text is named.
fn text_of(content: &Content) -> String {
    let Content::Blocks(blocks) = content else { return content.visible_text().into_owned() };
    let texts = blocks.iter().map(|block| match block {
        ContentBlock::Text(block) => block.text.clone(),
        ContentBlock::ToolResult(block) => match &block.output {
            Value::String(text) => text.clone(),
            output => output.to_string(),
        },
        block => format!("[{}]", block.kind()),
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// Whether a message is what the person asked: what begins a turn.
pub(super) fn is_prompt(message: &Message) -> bool {
    message.role == Role::User && !message.metadata.contains_key("source")
}

/// What the model said, without what the loop noted behind it when it was stopped.
pub fn without_note(said: &str) -> &str {
    said.strip_suffix(CANCELLED_NOTE).map_or(said, str::trim_end)
}

fn clean(text: &str) -> String {
    redact_text(text).into_owned()
}
