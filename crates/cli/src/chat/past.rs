//! What was said and done before a session was opened again, as the chat showed it then: the last turns, and the calls that
//! `/tools last` and `/expand` know, when they are asked for.

use std::collections::HashMap;

use amplifier_app::redact;
use amplifier_app::sessions::recent::{self, Before, Reach, Recent};
use amplifier_app::sessions::story::{self, Happening};
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
use super::turn::STOPPED;
use super::view::{self, Earlier, Kind, Memory};
use crate::commands::session::{count, status_word};
use crate::render;

/// How many turns are shown, and how many of their lines at most.
const TURNS: usize = 3;
const LINES: usize = 120;

/// What is read before the first prompt: as many records as fill those lines, each call having a few, and no more of the journal
/// than is read in a moment.
const PAGE: Reach = Reach { until: u64::MAX, turns: TURNS, calls: 0, records: LINES * 4, stretches: 8 };
/// What is read for who asks for calls or thoughts.
const CALLS: Reach =
    Reach { until: u64::MAX, turns: TURNS, calls: LAST_CALLS, records: usize::MAX, stretches: 64 };

/// Whether what was said before is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    Shown,
    Hidden,
}

impl Chat {
    /// Shows the end of what was done in this session before it was opened, where somebody looks; whether there was something.
    /// What else was done is read when it is asked for.
    pub(super) fn recall(&mut self, past: Past) -> Past {
        let session = &self.seat.opened.session;
        // The kernel counts calls from the opening on; the ledger knows what was before it.
        let made = session.coordinator().ledger().statement().total.tool_calls;
        let calls = usize::try_from(made).unwrap_or(usize::MAX);
        let earlier = Earlier { turn: session.coordinator().turn(), calls };
        self.memory = Memory {
            session: Some(session.id().clone()),
            calls: Calls::after(calls),
            thinking: self.memory.thinking,
            last_thought: None,
            earlier: Some(earlier),
        };
        // A program that says something has its own way to read it.
        if past == Past::Hidden || self.screen.face() == Face::Pipe {
            return Past::Hidden;
        }
        let Some(recent) = self.read_past(&Reach { until: earlier.turn, ..PAGE }) else {
            return Past::Hidden;
        };
        self.memory.calls = Calls::after(calls.saturating_sub(recent.calls));
        let lines = Page::of(&recent, &mut self.memory, view::room(&self.screen)).lines;
        self.memory.calls.drop_open();
        self.memory.earlier = Some(Earlier { calls: self.memory.calls.made(), ..earlier });
        let cut = lines.len().saturating_sub(LINES);
        if lines.is_empty() && recent.before == Before::Nothing {
            return Past::Hidden;
        }
        self.show(&[Line::new()]);
        if let Some(told) = left_out(cut, recent.before) {
            let id = short(self.seat.opened.session.id());
            let told = format!("… {told}: `amplifier session replay {id}` shows all");
            self.say(&render::typed(&told), Style::DIM);
            self.show(&[Line::new()]);
        }
        self.show(lines.get(cut..).unwrap_or_default());
        Past::Shown
    }

    /// Remembers the last calls and the last thought from before the session was opened, for whoever asks for them.
    pub(super) fn recall_earlier(&mut self) {
        let Some(earlier) = self.memory.earlier.take() else { return };
        let Some(recent) = self.read_past(&Reach { until: earlier.turn, ..CALLS }) else { return };
        let mut memory = Memory::default();
        Page::of(&recent, &mut memory, view::room(&self.screen));
        self.memory.calls.put_before(memory.calls, earlier.calls);
        self.memory.last_thought = self.memory.last_thought.take().or(memory.last_thought);
    }

    fn read_past(&mut self, reach: &Reach) -> Option<Recent> {
        match recent::recent(&self.seat.opened.folder, reach) {
            Ok(recent) => Some(recent),
            Err(error) => {
                let why = amplifier_app::chain(&error);
                let told = format!("warning: what was said before cannot be shown: {why}");
                self.say(&told, Style::of(Hue::Yellow));
                None
            }
        }
    }
}

/// What is not shown, in words.
fn left_out(lines: usize, before: Before) -> Option<String> {
    let before = match before {
        Before::Nothing => None,
        Before::Turns => Some("earlier turns".to_owned()),
        Before::Unread => Some("what was before".to_owned()),
    };
    let lines = (lines > 0).then(|| count(lines as u64, "line"));
    let told: Vec<_> = before.into_iter().chain(lines).collect();
    Some(told.join(" and ")).filter(|told| !told.is_empty())
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
                let mut lines = stream.push(story::without_note(&text));
                lines.extend(stream.finish());
                if !lines.is_empty() {
                    self.part(Kind::Text);
                    self.lines.extend(lines);
                }
            }
            Happening::Thought { text } => self.memory.last_thought = Some(text),
            Happening::Ended { status: TurnStatus::Success } => {}
            Happening::Ended { status } => {
                self.part(Kind::Note);
                let told = match status {
                    TurnStatus::Cancelled => STOPPED.to_owned(),
                    status => format!("the turn ended: {}", status_word(status)),
                };
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
        if self.last != Kind::Beginning && kind.stands_apart_from(self.last) {
            self.lines.push(Line::new());
        }
        self.last = kind;
    }
}
