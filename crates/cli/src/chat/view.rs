//! How a turn looks: the answer as it forms, a line for each call, one for a thought, and what is going on right now.

use std::time::{Duration, Instant};

use amplifier_app::approval::Answer;
use amplifier_app::telling;
use amplifier_protocol::event::ContextCompaction;
use amplifier_protocol::ids::SessionId;
use crossterm::event::{KeyCode, KeyEvent};
use tokio::sync::mpsc::UnboundedReceiver;

use super::approve::{Asked, Meaning, Open};
use super::calls::{Call, Calls, Well, one_line, seconds, shortened};
use super::draft::{Draft, Meant};
use super::markdown::{Stream, safe};
use super::paint::{Hue, Line, Margin, Span, Style, width, wrap};
use super::screen::{Cursor, Face, Screen};
use super::tap::{Seen, Success};
use crate::page::shortened_before;
use crate::width::{beginning, ending};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How long one picture of the spinner stays.
const BEAT: Duration = Duration::from_millis(100);
/// The most lines of a forming answer that are drawn again.
const FORMING: usize = 8;
/// What stands before what is typed.
const MARK: &str = "> ";
/// How much of a thought is shown while it goes on, in columns.
const THINKING: usize = 41;
/// How much of the last thought is kept, in bytes.
const THOUGHT: usize = 64 * 1024;

/// Whether thoughts are shown as they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Thinking {
    #[default]
    Folded,
    Shown,
}

/// What a turn leaves for later.
#[derive(Default)]
pub struct Memory {
    /// The session it is about.
    pub session: Option<SessionId>,
    pub calls: Calls,
    pub thinking: Thinking,
    pub last_thought: Option<String>,
    /// What was done before the session was opened, as long as nobody asked for it.
    pub earlier: Option<Earlier>,
}

/// What was done in a session before it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Earlier {
    /// Its last turn then.
    pub turn: u64,
    /// How many tools were called.
    pub calls: usize,
}

/// What stood last; different things have an empty line between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Beginning,
    Prompt,
    Text,
    Call,
    Note,
}

impl Kind {
    pub fn stands_apart_from(self, last: Self) -> bool {
        self != last || self == Self::Prompt
    }
}

pub struct View<'a> {
    screen: &'a mut Screen,
    pub memory: &'a mut Memory,
    pub draft: &'a mut Draft,
    answer: Stream,
    /// Whether pieces of the text that is coming were shown.
    streamed: String,
    /// Whether this turn showed any text.
    pub answered: bool,
    thought: Option<(Instant, String)>,
    last: Kind,
    /// Whether nothing stands above that the first line has to be told from.
    is_top: bool,
    began: Instant,
    pub queued: Vec<String>,
    pub question: Option<Open>,
    /// What was typed when a question came and was set aside for it; it comes back after the answer.
    aside: String,
    pub stopping: Stopping,
    /// Tokens and money of this turn so far, in words.
    pub spent: Option<String>,
}

/// What came of a line while a question was open.
pub enum Heard {
    Nothing,
    Answer(Box<Open>, Answer),
    /// A word to the turn.
    Message(String),
}

/// Whether the turn was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stopping {
    #[default]
    No,
    /// When what runs is done.
    Soon,
    Now,
}

impl<'a> View<'a> {
    pub fn new(screen: &'a mut Screen, memory: &'a mut Memory, draft: &'a mut Draft) -> Self {
        let answer = Stream::new(room(screen));
        Self {
            screen,
            memory,
            draft,
            answer,
            streamed: String::new(),
            answered: false,
            thought: None,
            last: Kind::Beginning,
            is_top: false,
            began: Instant::now(),
            queued: Vec::new(),
            question: None,
            aside: String::new(),
            stopping: Stopping::No,
            spent: None,
        }
    }

    /// With no empty line before the first.
    pub fn at_the_top(self) -> Self {
        Self { is_top: true, ..self }
    }

    /// Shows everything that happened up to now.
    pub fn take_all(&mut self, seen: &mut UnboundedReceiver<Seen>) {
        // Not what happens meanwhile: something that never rests would keep everything else waiting.
        for _ in 0..seen.len() {
            let Ok(seen) = seen.try_recv() else { return };
            self.take(seen);
        }
    }

    /// Shows what happened.
    pub fn take(&mut self, seen: Seen) {
        match seen {
            Seen::Text(text) => {
                self.streamed.push_str(&text);
                self.text(&text);
            }
            Seen::TextEnd(text) => {
                // What may have been the beginning of a key came with no piece.
                if let Some(rest) = text.strip_prefix(self.streamed.as_str()).filter(|rest| !rest.is_empty())
                {
                    self.text(rest);
                }
                self.end_text();
            }
            Seen::Thinking(text) => self.think(&text),
            Seen::ThinkingEnd(text) => self.end_thought(text),
            Seen::CallBegan { id, tool, input } => {
                self.end_text();
                self.memory.calls.begin(id, tool, input);
            }
            Seen::CallStarted(id) => self.memory.calls.start(&id),
            Seen::CallEnded { id, success, text, diff } => self.end_call(&id, success, text, diff),
            Seen::Changed { id, path, diff } => self.memory.calls.change(&id, path, diff),
            Seen::Agent { id, session } => self.memory.calls.hand_out(&id, session),
            Seen::BelowBegan { agent, depth, id, tool, input } => {
                if let Some(agents) = self.memory.calls.agents_with(agent.as_str()) {
                    agents.begin(agent.as_str(), depth, id, tool, &input);
                }
            }
            Seen::BelowEnded { agent, id, success } => {
                if let Some(agents) = self.memory.calls.agents_with(agent.as_str()) {
                    agents.end(agent.as_str(), &id, well(success));
                }
            }
            Seen::Retry(retry) => self.note(&telling::retry(&retry), Style::of(Hue::Yellow)),
            Seen::Compacted(compaction) => self.note(&compacted(&compaction), Style::DIM),
            Seen::Notice { text, level } => self.notice(&text, level.as_deref()),
            Seen::Steered => {
                if !self.queued.is_empty() {
                    let taken = self.queued.remove(0);
                    self.note(&format!("taken up: {}", one_line(&taken)), Style::DIM);
                }
            }
        }
    }

    fn text(&mut self, text: &str) {
        self.fold_thought();
        if text.is_empty() {
            return;
        }
        self.answered = true;
        if self.screen.answers_to_a_program() {
            self.screen.raw(text);
            return;
        }
        self.answer.resize(room(self.screen));
        let lines = self.answer.push(text);
        self.show_answer(&lines);
    }

    fn end_text(&mut self) {
        self.fold_thought();
        self.streamed.clear();
        if self.screen.answers_to_a_program() {
            // What is said next, after a tool, is no part of this line.
            return self.screen.end_raw();
        }
        let lines = self.answer.finish();
        self.show_answer(&lines);
    }

    fn show_answer(&mut self, lines: &[Line]) {
        if !lines.is_empty() {
            self.part(Kind::Text);
            self.screen.answer(lines);
        }
    }

    fn think(&mut self, text: &str) {
        let (_, thought) = self.thought.get_or_insert_with(|| (Instant::now(), String::new()));
        if thought.len() < THOUGHT {
            thought.push_str(text);
        }
    }

    fn end_thought(&mut self, text: String) {
        if self.thought.is_none() && !text.is_empty() && self.memory.last_thought.as_ref() != Some(&text) {
            self.thought = Some((Instant::now(), text));
        }
        self.fold_thought();
    }

    /// A thought that is over becomes one line, or all of it where the person wants to read it.
    fn fold_thought(&mut self) {
        let Some((began, thought)) = self.thought.take() else { return };
        self.part(Kind::Note);
        let room = room(self.screen);
        let lines = match self.memory.thinking {
            Thinking::Shown => thought_lines(&thought, room),
            Thinking::Folded => {
                let head = format!("thought for {}: ", seconds(began.elapsed()));
                let rest = shortened(&one_line(&thought), room.saturating_sub(width(&head)));
                vec![vec![Span::new(head + &rest, Style::DIM.italic())]]
            }
        };
        self.screen.note(&lines);
        self.memory.last_thought = Some(thought);
    }

    fn end_call(&mut self, id: &str, success: Success, text: String, diff: Option<String>) {
        let room = room(self.screen);
        let Some(call) = self.memory.calls.end(id, well(success), text, diff) else { return };
        let mut lines = vec![call.line(room, "")];
        lines.extend(call.below(room));
        self.part(Kind::Call);
        self.screen.note(&lines);
    }

    pub fn note(&mut self, text: &str, style: Style) {
        self.part(Kind::Note);
        let lines = wrap(&[Span::new(safe(text), style)], room(self.screen), &Margin::default());
        self.screen.note(&lines);
    }

    fn notice(&mut self, text: &str, level: Option<&str>) {
        // The chat sends them again by itself.
        if text.ends_with("send them again") && !self.queued.is_empty() {
            return;
        }
        match level {
            Some("error") => self.note(&format!("error: {text}"), Style::of(Hue::Red)),
            Some("warning") => self.note(&format!("warning: {text}"), Style::of(Hue::Yellow)),
            _ => self.note(text, Style::DIM),
        }
    }

    /// Different things have an empty line between them; programs get none.
    fn part(&mut self, kind: Kind) {
        let is_first = self.last == Kind::Beginning && (self.is_top || self.screen.face() != Face::Full);
        if kind.stands_apart_from(self.last) && !is_first && self.screen.face() != Face::Pipe {
            self.screen.note(&[Line::new()]);
        }
        self.last = kind;
    }

    /// Puts a question. What is being typed goes on.
    pub fn ask(&mut self, asked: Asked, now: Instant) {
        self.end_text();
        let rows = match self.screen.face() {
            Face::Full => self.screen.size().1,
            // What scrolled away there was read line by line.
            Face::Dumb | Face::Pipe => usize::MAX,
        };
        let mut open = Open::new(asked, self.draft.text(), now);
        let lines = open.shown(room(self.screen), rows);
        self.part(Kind::Call);
        self.screen.note(&lines);
        self.question = Some(open);
    }

    /// Time goes by for a question: one whose asker went away needs no answer any more, one that stands there takes one.
    pub fn wait(&mut self, now: Instant) {
        self.drop_stale_question();
        let Some(open) = &mut self.question else { return };
        if open.wait(now) && self.screen.face() == Face::Dumb {
            let lines = open.lines(room(self.screen));
            self.screen.note(&lines);
        }
    }

    /// A key, for the line that is being typed.
    pub fn key(&mut self, key: KeyEvent, now: Instant) -> Meant {
        let Some(open) = &mut self.question else { return self.draft.key(key) };
        if key.code == KeyCode::Esc && open.leaves_the_draft() {
            self.aside = self.draft.take();
            open.begin(now);
            return Meant::Nothing;
        }
        let meant = self.draft.key(key);
        if meant == Meant::Nothing {
            open.typed(self.draft.text(), now);
        }
        meant
    }

    /// Text that was pasted.
    pub fn paste(&mut self, text: &str, now: Instant) {
        self.draft.paste(text);
        if let Some(open) = &mut self.question {
            open.typed(self.draft.text(), now);
        }
    }

    /// Lines that were ended and are not to be sent.
    pub fn put_before(&mut self, lines: Vec<String>, now: Instant) {
        self.draft.put_before(lines);
        if let Some(open) = &mut self.question {
            open.typed(self.draft.text(), now);
        }
    }

    /// Takes a line while a question is open.
    pub fn answer_with(&mut self, line: &str, now: Instant) -> Heard {
        let Some(open) = &mut self.question else { return Heard::Nothing };
        match open.line_ended(line, now) {
            Meaning::Answer(answer) => {
                let Some(open) = self.question.take() else { return Heard::Nothing };
                self.draft.put(std::mem::take(&mut self.aside));
                return Heard::Answer(Box::new(open), answer);
            }
            Meaning::Message(line) => return Heard::Message(line),
            Meaning::View => {
                let lines = open.view(room(self.screen));
                self.screen.note(&lines);
            }
            Meaning::Unseen => {
                self.note(
                    "not allowed yet: part of it was left out; `v` shows all of it",
                    Style::of(Hue::Yellow),
                );
            }
            Meaning::Unclear => {
                let keys = open.keys();
                self.note(keys, Style::of(Hue::Yellow));
            }
            Meaning::TooSoon => {
                self.note("that came before the question could be read", Style::of(Hue::Yellow));
            }
            Meaning::Nothing => {}
        }
        Heard::Nothing
    }

    /// A question whose asker went away needs no answer any more.
    fn drop_stale_question(&mut self) {
        if self.question.as_ref().is_some_and(|open| open.asked.answer.is_closed()) {
            self.leave_question();
            self.note("nobody answered in time", Style::of(Hue::Yellow));
        }
    }

    /// Puts back what was being typed when a question came that nobody answers any more.
    pub fn leave_question(&mut self) {
        let Some(open) = self.question.take() else { return };
        if !open.leaves_the_draft() {
            self.draft.put(std::mem::take(&mut self.aside));
        }
    }

    /// Ends the turn on the screen: everything that was still forming is finished.
    pub fn finish(&mut self) {
        self.end_text();
        self.screen.clear();
    }

    /// Draws what changes.
    pub fn draw(&mut self) {
        if self.screen.face() != Face::Full {
            return;
        }
        let room = room(self.screen);
        let mut lines = Vec::new();
        let forming = self.answer.draft();
        let is_first = self.is_top && self.last == Kind::Beginning;
        if !forming.is_empty() && self.last != Kind::Text && !is_first {
            lines.push(Line::new());
        }
        lines.extend(forming.iter().skip(forming.len().saturating_sub(FORMING)).cloned());
        let beat = self.began.elapsed().as_millis() / BEAT.as_millis();
        let spinner = SPINNER.get(usize::try_from(beat).unwrap_or(0) % SPINNER.len()).copied().unwrap_or("·");
        let with_agents = |call: &Call| {
            let mut lines = vec![call.line(room, spinner)];
            lines.extend(call.live_below(room, spinner));
            lines
        };
        let running: Vec<Line> = self.memory.calls.running().flat_map(with_agents).collect();
        if let Some(open) = &self.question {
            lines.extend(open.lines(room));
            let cursor = self.draft_line(&mut lines, room);
            self.screen.live(&lines, cursor);
            return;
        }
        if !lines.is_empty() || self.last != Kind::Call || running.is_empty() {
            lines.push(Line::new());
        }
        let calls = running.len();
        lines.extend(running);
        lines.push(self.status(spinner, calls, room));
        lines.extend(
            self.queued.iter().map(|text| vec![Span::new(format!("queued: {}", one_line(text)), Style::DIM)]),
        );
        let cursor = match self.draft.text().is_empty() {
            true => Cursor::Hidden,
            false => self.draft_line(&mut lines, room),
        };
        self.screen.live(&lines, cursor);
    }

    /// Takes what changes off the screen: somebody else gets the terminal.
    pub fn hide(&mut self) {
        self.screen.clear();
    }

    /// Draws what changes where the cursor is now: somebody else had the terminal.
    pub fn draw_anew(&mut self) {
        self.screen.forget();
        self.draw();
    }

    /// What is being typed, as much of it around the cursor as fits.
    fn draft_line(&self, lines: &mut Vec<Line>, room: usize) -> Cursor {
        let (before, behind) = self.draft.parts();
        let (before, behind) = (shown(before), shown(behind));
        let room = room.saturating_sub(MARK.len() + 1);
        let before = ending(&before, room);
        let behind = beginning(&behind, room.saturating_sub(width(before)));
        lines.push(vec![Span::plain(MARK), Span::plain(before), Span::plain(behind)]);
        Cursor::After(2)
    }

    fn status(&self, spinner: &str, calls: usize, room: usize) -> Line {
        let doing = match (&self.thought, self.stopping) {
            (_, Stopping::Soon | Stopping::Now) => "stopping".to_owned(),
            (Some((_, thought)), _) => {
                format!("thinking: {}", shortened_before(&one_line(thought), THINKING))
            }
            (None, _) if calls > 0 => "running".to_owned(),
            (None, _) => "working".to_owned(),
        };
        let time = seconds(self.began.elapsed());
        let keys = match self.stopping {
            Stopping::No => "Ctrl-C stops",
            Stopping::Soon => "Ctrl-C again stops at once",
            Stopping::Now => "",
        };
        let spent = self.spent.as_deref().unwrap_or_default();
        let told = |parts: &[&str]| {
            parts.iter().copied().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
        };
        let all = told(&[&doing, &time, spent, keys]);
        // How it is stopped is needed more than what it took, which is told at its end.
        let all = if width(&all) + 2 <= room { all } else { told(&[&doing, &time, keys]) };
        vec![Span::new(format!("{spinner} "), Style::of(Hue::Yellow)), Span::new(all, Style::DIM)]
    }
}

pub fn well(success: Success) -> Well {
    if success == Success::Yes { Well::Done } else { Well::Failed }
}

/// A thought as it is read.
pub fn thought_lines(thought: &str, room: usize) -> Vec<Line> {
    let margin = Margin { first: vec![Span::new("  ", Style::DIM)], rest: vec![Span::new("  ", Style::DIM)] };
    wrap(&[Span::new(safe(thought.trim()), Style::DIM.italic())], room, &margin)
}

/// Line ends of a draft are shown as a mark: it has one line on the screen.
fn shown(text: &str) -> String {
    safe(text).replace('\n', "⏎")
}

/// One column stays free, so that no terminal wraps where we do not.
pub fn room(screen: &Screen) -> usize {
    screen.columns().saturating_sub(1).max(1)
}

fn compacted(compaction: &ContextCompaction) -> String {
    format!(
        "the model sees a shorter form of the conversation: {} of {} messages, about {} tokens",
        compaction.after_messages, compaction.before_messages, compaction.after_tokens
    )
}
