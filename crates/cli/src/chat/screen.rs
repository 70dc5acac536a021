//! The screen: finished lines that stay, and below them a few that are drawn again and again while something runs.
//!
//! Nothing that stands above is ever touched, so that what scrolled away is what was shown. Where the terminal can do
//! nothing, or there is none, lines come one after the other and nothing is drawn twice.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::paint::{Colour, Line, begun, cut, line_width, written};
use crate::render;

/// The most lines that are drawn again, besides what the terminal's height allows.
const LIVE: usize = 14;
/// How long little is drawn after the window became narrower, and how many lines: every step of that wraps what stands there,
/// and a terminal that tells of it later than it does it, or lets as much scroll away, keeps a copy of what was drawn.
const SETTLING: (Duration, usize) = (Duration::from_millis(400), 3);
/// Begins a frame on a line of its own, wherever the cursor is.
const LINE_START: &str = "\r\u{1b}[K";
/// What is taken for the width where nobody tells.
const USUAL: (u16, u16) = (80, 24);

/// What the other side can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Face {
    /// A terminal that understands escape sequences.
    Full,
    /// A terminal that prints what it gets and no more.
    Dumb,
    /// No terminal: programs read along.
    Pipe,
}

impl Face {
    /// What this process talks to; `term` is the terminal's name as the environment tells it.
    pub fn find(term: Option<&str>) -> Self {
        let all = io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
        match term {
            _ if !io::stdin().is_terminal() => Self::Pipe,
            None | Some("" | "dumb") => Self::Dumb,
            Some(_) if all => Self::Full,
            Some(_) => Self::Dumb,
        }
    }
}

/// Where everything is shown.
pub struct Screen {
    face: Face,
    colour: Colour,
    /// That of what is no answer, where it goes another way.
    asides: Colour,
    live: Live,
    /// How wide the window was when something was drawn last, and until when it may still become narrower.
    drawn: (usize, Option<Instant>),
    frame: String,
    /// How much of the frame, at its beginning, erases the last one.
    erasing: usize,
    /// Set when the process continues after a stop, before it can draw anything: the cursor is no longer where the last frame
    /// left it.
    continued: Arc<AtomicBool>,
    /// Whether what a program reads stands in the middle of a line.
    midway: bool,
    /// Told when nobody reads the answers any more.
    unread: Arc<Notify>,
}

impl Screen {
    pub fn new(face: Face, colour: Colour, unread: Arc<Notify>) -> Self {
        Self {
            face,
            colour,
            asides: colour,
            live: Live::default(),
            drawn: (0, None),
            frame: String::new(),
            erasing: 0,
            continued: if face == Face::Full { continued() } else { Arc::default() },
            midway: false,
            unread,
        }
    }

    /// With other colours for what is no answer.
    pub fn asides(self, asides: Colour) -> Self {
        Self { asides, ..self }
    }

    pub fn face(&self) -> Face {
        self.face
    }

    /// Whether answers are read by a program, which wants them as they were written.
    pub fn answers_to_a_program(&self) -> bool {
        self.face != Face::Full && !io::stdout().is_terminal()
    }

    /// Columns and rows.
    pub fn size(&self) -> (usize, usize) {
        match self.face {
            Face::Full | Face::Dumb => terminal_size(),
            Face::Pipe => (usize::from(USUAL.0), usize::from(USUAL.1)),
        }
    }

    pub fn columns(&self) -> usize {
        self.size().0
    }

    /// Lines of an answer.
    pub fn answer(&mut self, lines: &[Line]) {
        match self.face {
            Face::Full => self.stay(lines),
            Face::Dumb | Face::Pipe => self.print(&plain(lines, self.colour)),
        }
    }

    /// A piece of an answer, as it is, for programs.
    pub fn raw(&mut self, text: &str) {
        self.midway = if text.is_empty() { self.midway } else { !text.ends_with('\n') };
        self.print(text);
    }

    /// An answer that nobody reads or that cannot be written is nothing to ask the model for.
    fn print(&self, text: &str) {
        if render::raw(text).is_err() || render::has_lost_output() {
            self.unread.notify_one();
        }
    }

    /// The mark before a line that is read plainly. Not where answers are, which a program may read.
    pub fn mark(&self, text: &str) {
        render::raw_aside(text.to_owned());
    }

    /// Ends the line that a program reads, where it has no end.
    pub fn end_raw(&mut self) {
        if self.midway {
            self.raw("\n");
        }
    }

    /// Everything that is not an answer.
    pub fn note(&mut self, lines: &[Line]) {
        match self.face {
            Face::Full => self.stay(lines),
            Face::Dumb | Face::Pipe => render::raw_aside(plain(lines, self.asides)),
        }
    }

    /// Puts lines above those that are drawn again, which are gone until they are drawn again.
    fn stay(&mut self, lines: &[Line]) {
        self.erase();
        for line in lines {
            self.frame.push_str(&written(line, self.colour));
            self.frame.push_str("\r\n");
        }
    }

    /// Draws the lines that change. The cursor stands in the last one.
    pub fn live(&mut self, lines: &[Line], cursor: Cursor) {
        if self.face != Face::Full {
            return;
        }
        let (columns, rows) = self.size();
        let (most, room) = match self.is_settling(columns) {
            true => (SETTLING.1, columns / 2),
            // One column stays free: a line that fills the last one wraps on some terminals and not on others.
            false => (LIVE.min(rows.saturating_sub(1)).max(1), columns.saturating_sub(1)),
        };
        let lines = lines.get(lines.len().saturating_sub(most)..).unwrap_or_default();
        self.erase();
        for (at, line) in lines.iter().enumerate() {
            if at > 0 {
                self.frame.push_str("\r\n");
            }
            let line = cut(line, room);
            self.live.widths.push(line_width(&line));
            self.frame.push_str(&written(&line, self.colour));
        }
        self.live.cursor = self.live.widths.last().copied().unwrap_or_default();
        match (cursor, lines.last()) {
            (Cursor::After(spans), Some(last)) => {
                let before = cut(last.get(..spans).unwrap_or(last), room);
                self.live.cursor = line_width(&before);
                // Written once more up to the cursor: only the terminal knows how wide it takes that to be.
                self.frame.push_str(&format!("\r{}\u{1b}[?25h", begun(&before, self.colour)));
            }
            _ => self.frame.push_str("\u{1b}[?25l"),
        }
        self.show();
    }

    /// Whether the window became narrower a moment ago.
    fn is_settling(&mut self, columns: usize) -> bool {
        let now = Instant::now();
        let (before, until) = &mut self.drawn;
        if std::mem::replace(before, columns) > columns {
            *until = Some(now + SETTLING.0);
        }
        until.take_if(|until| now >= *until);
        until.is_some()
    }

    /// Somebody else had the terminal: what was drawn stands somewhere above, and the next lines begin where the cursor is.
    pub fn forget(&mut self) {
        self.continued.store(false, Ordering::Relaxed);
        self.live = Live::default();
        self.frame.push_str(LINE_START);
    }

    /// Takes the lines that change away, and shows everything that waits.
    pub fn clear(&mut self) {
        if self.face == Face::Full {
            self.erase();
            self.frame.push_str("\u{1b}[?25h");
            self.show();
        }
    }

    fn erase(&mut self) {
        let live = std::mem::take(&mut self.live);
        if live.widths.is_empty() {
            return;
        }
        let (rows, above) = live.rows(self.columns().max(1));
        if above > 0 {
            self.frame.push_str(&format!("\u{1b}[{above}A"));
        }
        self.frame.push_str("\r\u{1b}[K");
        if rows > 1 {
            // Not everything in one go: what is erased from the very first place of a screen on, some terminals keep as if
            // it had scrolled away, and there would be a copy of it for every time it is drawn.
            self.frame.push_str("\u{1b}[B\u{1b}[J\u{1b}[A");
        }
        self.erasing = self.frame.len();
    }

    /// Sends a whole picture in one piece; terminals that can show it in one piece do.
    fn show(&mut self) {
        let mut frame = std::mem::take(&mut self.frame);
        let erasing = std::mem::take(&mut self.erasing);
        // A stop may come in the middle of a frame.
        if self.continued.swap(false, Ordering::Relaxed) {
            frame.replace_range(..erasing, LINE_START);
        }
        render::picture(format!("\u{1b}[?2026h{frame}\u{1b}[?2026l"));
    }
}

/// A flag that a signal handler sets when the process continues after a stop.
fn continued() -> Arc<AtomicBool> {
    let flag = Arc::<AtomicBool>::default();
    #[cfg(unix)]
    // Without it frames are drawn as if nothing had been stopped, which costs a line of the shell at worst.
    drop(signal_hook::flag::register(rustix::process::Signal::CONT.as_raw(), Arc::clone(&flag)));
    flag
}

fn plain(lines: &[Line], colour: Colour) -> String {
    lines.iter().map(|line| written(line, colour) + "\n").collect()
}

/// Columns and rows of the terminal; the usual ones where it does not tell.
pub fn terminal_size() -> (usize, usize) {
    let (columns, rows) = crossterm::terminal::size().unwrap_or(USUAL);
    let known = |size: u16, usual: u16| usize::from(if size == 0 { usual } else { size });
    (known(columns, USUAL.0), known(rows, USUAL.1))
}

/// Whether the cursor is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cursor {
    /// In the last line, behind so many of its pieces.
    After(usize),
    Hidden,
}

/// The lines that are drawn again, as they were drawn last.
#[derive(Default)]
struct Live {
    widths: Vec<usize>,
    /// How many columns of the last line stand before the cursor.
    cursor: usize,
}

impl Live {
    /// How many rows the lines take, and how many of them are above the cursor: a terminal that became narrower wrapped what
    /// stood there.
    fn rows(&self, columns: usize) -> (usize, usize) {
        let rows = |width: &usize| width.div_ceil(columns).max(1);
        let all: usize = self.widths.iter().map(rows).sum();
        let last = self.widths.last().map_or(0, rows);
        (all, all - last + rows(&self.cursor) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_drawn_while_a_window_becomes_narrower() {
        let mut screen = Screen::new(Face::Full, Colour::Off, Arc::default());
        assert_eq!(
            [80, 80, 100, 60, 60].map(|columns| screen.is_settling(columns)),
            [false, false, false, true, true]
        );
        screen.drawn.1 = Some(Instant::now());
        assert!(!screen.is_settling(60));
    }

    #[test]
    fn what_a_narrower_terminal_wrapped_is_counted_up_to_the_cursor() {
        let live = Live { widths: vec![79, 10, 79], cursor: 79 };
        assert_eq!([80, 40, 30].map(|columns| live.rows(columns)), [(3, 2), (5, 4), (7, 6)]);
        let live = Live { cursor: 12, ..live };
        assert_eq!([80, 40, 10].map(|columns| live.rows(columns)), [(3, 2), (5, 3), (17, 10)]);
        assert_eq!(Live { widths: vec![0], cursor: 0 }.rows(80), (1, 0));
    }
}
