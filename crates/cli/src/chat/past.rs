//! What was said and done before a session was opened again, as the chat showed it then: the last turns, with the calls that
//! `/tools last` and `/expand` know.

use std::collections::HashMap;

use amplifier_app::redact;
use amplifier_app::sessions::story::{self, Happening, Recent};
use amplifier_app::words;
use amplifier_protocol::event::TurnStatus;
use amplifier_protocol::record::{Record, RecordBody};
use amplifier_protocol::time::Timestamp;

use super::Chat;
use super::calls::{Call, Calls, Well};
use super::markdown::{Stream, safe};
use super::obey::look::LAST_CALLS;
use super::paint::{Hue, Line, Margin, Span, Style, wrap};
use super::screen::Face;
use super::seat::short;
use super::tap::{self, Seen};
use super::view::{self, Memory};
use crate::commands::session::{count, status_word};

/// How many turns are shown, and how many of their lines at most.
const TURNS: usize = 3;
const LINES: usize = 120;

/// Whether what was said before is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    Shown,
    Hidden,
}

impl Chat {
    /// Remembers what was done in this session before it was opened, and shows the end of it; whether there was something.
    pub(super) fn recall(&mut self, past: Past) -> Past {
        let recent = match story::recent(&self.seat.opened.folder, TURNS, LAST_CALLS) {
            Ok(recent) => recent,
            Err(error) => {
                let told = format!(
                    "warning: what was said before cannot be shown: {}",
                    amplifier_app::chain(&error)
                );
                self.say(&told, Style::of(Hue::Yellow));
                return Past::Hidden;
            }
        };
        self.memory = Memory {
            session: Some(self.seat.opened.session.id().clone()),
            calls: Calls::after(recent.calls),
            thinking: self.memory.thinking,
            last_thought: None,
        };
        let lines = Page::of(&recent, &mut self.memory, view::room(&self.screen)).lines;
        self.memory.calls.drop_open();
        // A program that says something has its own way to read it.
        if past == Past::Hidden || self.screen.face() == Face::Pipe || lines.is_empty() {
            return Past::Hidden;
        }
        self.show(&[Line::new()]);
        let cut = lines.len().saturating_sub(LINES);
        if let Some(told) = left_out(cut, recent.earlier) {
            let id = short(self.seat.opened.session.id());
            self.say(&format!("… {told}: `amplifier session replay {id}` shows all"), Style::DIM);
            self.show(&[Line::new()]);
        }
        self.show(lines.get(cut..).unwrap_or_default());
        Past::Shown
    }
}

/// What is not shown, in words.
fn left_out(lines: usize, turns: usize) -> Option<String> {
    let parts = [(turns, "earlier turn"), (lines, "line")].into_iter().filter(|(number, _)| *number > 0);
    let told: Vec<_> = parts.map(|(number, thing)| count(number as u64, thing)).collect();
    Some(told.join(" and ")).filter(|told| !told.is_empty())
}

/// What stood last; different things have an empty line between them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Beginning,
    Prompt,
    Text,
    Call,
    Note,
}

/// The lines of what happened.
struct Page<'a> {
    memory: &'a mut Memory,
    room: usize,
    lines: Vec<Line>,
    last: Kind,
    /// When the calls began that have no end yet.
    began: HashMap<String, Timestamp>,
}

impl<'a> Page<'a> {
    fn of(recent: &Recent, memory: &'a mut Memory, room: usize) -> Self {
        let mut page = Self { memory, room, lines: Vec::new(), last: Kind::Beginning, began: HashMap::new() };
        for record in &recent.records {
            page.take(record);
            if record.turn < recent.from {
                // Remembered, and not shown.
                page.lines.clear();
                page.last = Kind::Beginning;
            }
        }
        page
    }

    fn take(&mut self, record: &Record) {
        match &record.body {
            RecordBody::Message(_) => {
                for moment in story::moments(record) {
                    self.happened(moment.what, record.ts);
                }
            }
            RecordBody::CallStarted { call_id, .. } => drop(self.began.insert(call_id.clone(), record.ts)),
            RecordBody::Event { name, data } => match tap::of_event(name.as_str(), data) {
                Some(Seen::CallBegan { id, tool, input }) => {
                    self.memory.calls.begin(id, tool, redact(&input))
                }
                Some(Seen::Changed { id, path, diff }) => self.memory.calls.change(&id, path, diff),
                Some(Seen::CallEnded { id, success, text, diff }) => {
                    self.end_call(&id, record.ts, view::well(success), text, diff);
                }
                _ => story::moments(record)
                    .into_iter()
                    .for_each(|moment| self.happened(moment.what, record.ts)),
            },
            _ => {}
        }
    }

    fn happened(&mut self, what: Happening, now: Timestamp) {
        match what {
            Happening::Prompt { text } => {
                self.part(Kind::Prompt);
                let margin = Margin {
                    first: vec![Span::new("> ", Style::of(Hue::Green))],
                    rest: vec![Span::plain("  ")],
                };
                let words = [Span::plain(safe(words::own(&text).trim()))];
                self.lines.extend(wrap(&words, self.room, &margin));
            }
            Happening::Said { text } => {
                let mut stream = Stream::new(self.room);
                let mut lines = stream.push(&text);
                lines.extend(stream.finish());
                if !lines.is_empty() {
                    self.part(Kind::Text);
                    self.lines.extend(lines);
                }
            }
            Happening::Thought { text } => self.memory.last_thought = Some(text),
            // What stands in the conversation says it of one that was stopped.
            Happening::Ended { status: TurnStatus::Success | TurnStatus::Cancelled } => {}
            Happening::Ended { status } => {
                self.part(Kind::Note);
                let told = format!("the turn ended: {}", status_word(status));
                self.lines.push(vec![Span::new(told, Style::of(Hue::Yellow))]);
            }
            // A call that was refused or never run has no other end.
            Happening::Answered { call_id, text, .. } => {
                self.end_call(&call_id, now, Well::Failed, text, None)
            }
            _ => {}
        }
    }

    fn end_call(&mut self, id: &str, now: Timestamp, well: Well, text: String, diff: Option<String>) {
        let took = self.began.remove(id).map(|began| now.since(began));
        let room = self.room;
        let shown = |call: &Call| [vec![call.line(room, "")], call.below(room)].concat();
        let Some(lines) = self.memory.calls.ended(id, took, well, text, diff).map(shown) else { return };
        self.part(Kind::Call);
        self.lines.extend(lines);
    }

    fn part(&mut self, kind: Kind) {
        if self.last != Kind::Beginning && (self.last != kind || kind == Kind::Prompt) {
            self.lines.push(Line::new());
        }
        self.last = kind;
    }
}
