//! Everything that is typed, read by a thread of its own: reading blocks, and must never hold up anything else.
//!
//! On a full terminal the thread runs the line editor at the prompt (`editor.rs`) and hands on single keys while something
//! runs. Elsewhere it reads lines: from a dumb terminal whenever one comes, from a pipe only when one is asked for, because a
//! line of a pipe is a prompt and not a word to a running turn.

use std::io::{self, BufRead, Read};
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste, Event, KeyEvent, KeyEventKind};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::draft::Draft;
use super::editor::{Break, Editor, Nudge, Setup};
use super::hush::Hush;
use super::screen::Face;
use crate::render;

/// How often a thread that watches keys looks whether something else is wanted.
const LOOK: Duration = Duration::from_millis(15);
/// How long the end of the chat waits for what was typed.
const LAST: Duration = Duration::from_millis(500);
/// The longest line that is read plainly, in bytes.
const LONGEST: u64 = 1024 * 1024;

/// What came from the person.
#[derive(Debug)]
pub enum Typed {
    Line(String),
    /// Ctrl-C at the prompt, with nothing on the line.
    Interrupt,
    /// The same, after another one has emptied the line.
    InterruptAnew,
    /// Ctrl-C took away what was on the line, and more was typed behind it.
    Emptied,
    /// Ctrl-Z at the prompt.
    Suspend,
    /// Ctrl-D, or the end of what was piped in.
    End,
    /// One key, while something runs.
    Key(KeyEvent),
    /// Text that was pasted while something ran.
    Paste(String),
    /// No more keys come until they are asked for.
    Rested,
    /// A line that cannot be taken, and why.
    Refused(String),
    /// Nothing can be read any more, and why.
    Broken(String),
}

impl Typed {
    /// What an event of the terminal is, if somebody typed it.
    pub fn of(event: Event) -> Option<Self> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => Some(Self::Key(key)),
            Event::Paste(text) => Some(Self::Paste(text)),
            _ => None,
        }
    }
}

/// What the thread shall do.
#[derive(Debug)]
enum Wish {
    /// Read one line; what was typed before stands in it.
    Line { mark: String, begun: Draft },
    /// Hand on keys.
    Watch,
    /// Say that no more of them come.
    Rest,
    /// Keep a line in the history.
    Remember(String),
}

/// The person's side of the chat.
pub struct Input {
    /// What has to be put back in order at the end.
    face: Face,
    hush: Option<Hush>,
    /// Whether keys are handed on.
    watching: bool,
    /// Whether keys may come that were typed behind the end of a line.
    ahead: bool,
    /// Whether a line is being read: one at a time, or the second would be read instead of keys.
    asked: bool,
    /// Interrupts the line that is being read.
    nudge: Nudge,
    wishes: Sender<Wish>,
    typed: UnboundedReceiver<Typed>,
}

impl Input {
    /// Starts to listen.
    pub fn open(face: Face, setup: Setup) -> io::Result<Self> {
        let (wishes, wanted) = channel();
        let (sender, typed) = unbounded_channel();
        let nudge = Nudge::default();
        let nudged = nudge.clone();
        // A thread of its own, which ends with the process: reading a terminal cannot be cancelled.
        std::thread::Builder::new().name("input".to_owned()).spawn(move || match face {
            Face::Full => keys(&wanted, &sender, Editor::new(setup, nudged)),
            Face::Dumb => lines(&sender),
            Face::Pipe => piped(&wanted, &sender),
        })?;
        let hush = (face == Face::Full).then(Hush::begin).flatten();
        Ok(Self { face, hush, watching: false, ahead: false, asked: false, nudge, wishes, typed })
    }

    /// Asks for a line, behind a mark; `begun` stands in it already. A line that is being read goes on.
    pub fn ask(&mut self, mark: &str, begun: Draft) {
        if !std::mem::replace(&mut self.asked, true) {
            self.nudge.take();
            // A thread that is gone has said so.
            self.wishes.send(Wish::Line { mark: mark.to_owned(), begun }).ok();
        }
    }

    /// Interrupts the line that is being read. Whether something comes of it: only an editor can be interrupted.
    pub fn interrupt(&self, why: Break) -> bool {
        let can = self.asked && self.face == Face::Full;
        if can {
            self.nudge.give(why);
        }
        can
    }

    /// Takes back an interrupt that came too late for the line; whether there was one.
    pub fn was_too_late(&self) -> bool {
        self.nudge.take() == Some(Break::Interrupt)
    }

    /// Waits until everything that was typed is kept, but not for ever.
    pub async fn settle(&mut self) {
        let waits = self.interrupt(Break::Leave) || self.rest();
        let kept = async { while waits && !matches!(self.next().await, Typed::Rested | Typed::End) {} };
        tokio::time::timeout(LAST, kept).await.ok();
    }

    /// Asks for single keys from now on.
    pub fn watch(&mut self) {
        self.watching = self.face == Face::Full;
        self.wishes.send(Wish::Watch).ok();
    }

    /// Keeps a line in the history that was not typed at the prompt.
    pub fn remember(&self, line: &str) {
        if !line.trim().is_empty() {
            self.wishes.send(Wish::Remember(line.to_owned())).ok();
        }
    }

    /// Asks for no more keys. Whether some may be on their way, with [`Typed::Rested`] behind the last.
    pub fn rest(&mut self) -> bool {
        let may_come = std::mem::take(&mut self.watching) | std::mem::take(&mut self.ahead);
        may_come && self.wishes.send(Wish::Rest).is_ok()
    }

    /// Everything that was typed up to now; no more keys come until they are asked for again.
    pub async fn rest_of_keys(&mut self) -> Vec<Typed> {
        let mut typed = Vec::new();
        let mut resting = self.rest();
        while resting {
            match self.next().await {
                Typed::Rested => resting = false,
                last @ (Typed::End | Typed::Broken(_)) => {
                    typed.push(last);
                    resting = false;
                }
                key => typed.push(key),
            }
        }
        typed
    }

    /// Gives the terminal to somebody else, as it was found, until it is taken again.
    pub fn lend(&self) {
        // Also where no more keys are asked for: a terminal that was watched stays raw until the next line is read.
        if self.face == Face::Full {
            // A terminal that is gone needs nothing.
            crossterm::terminal::disable_raw_mode().ok();
            crossterm::execute!(std::io::stdout(), DisableBracketedPaste, crossterm::cursor::Show).ok();
        }
        if let Some(hush) = &self.hush {
            hush.lift();
        }
    }

    /// Takes the terminal again, whatever somebody else made of it, and has a line that is being read shown again.
    pub fn take_back(&self) {
        if let Some(hush) = &self.hush {
            hush.renew();
        }
        if self.watching {
            // What is said to be raw already would not be made so again.
            let taken = crossterm::terminal::disable_raw_mode().and_then(|()| listen_raw());
            // One that cannot be taken is told by the next reading.
            taken.ok();
        }
        self.interrupt(Break::Redraw);
    }

    /// Leaves the terminal as it was found.
    pub fn close(&mut self) {
        if std::mem::replace(&mut self.face, Face::Pipe) == Face::Full {
            // A terminal that is gone needs nothing.
            crossterm::terminal::disable_raw_mode().ok();
            crossterm::execute!(std::io::stdout(), DisableBracketedPaste, crossterm::cursor::Show).ok();
            self.hush = None;
        }
    }

    pub async fn next(&mut self) -> Typed {
        let typed = self.typed.recv().await.unwrap_or(Typed::End);
        self.asked &= matches!(typed, Typed::Key(_) | Typed::Paste(_) | Typed::Rested);
        self.ahead |= self.face == Face::Full && !self.asked && !matches!(typed, Typed::Rested);
        typed
    }
}

impl Drop for Input {
    // However the chat ends.
    fn drop(&mut self) {
        self.close();
    }
}

/// A full terminal.
fn keys(wanted: &Receiver<Wish>, typed: &UnboundedSender<Typed>, mut editor: Editor) {
    let mut wish = wanted.recv();
    while let Ok(now) = wish {
        let next = match now {
            Wish::Line { mark, begun } => {
                let read = std::iter::once(editor.line(&mark, &begun)).chain(editor.typed_ahead());
                if read.into_iter().any(|read| typed.send(read).is_err()) {
                    return;
                }
                None
            }
            Wish::Watch => watch(wanted, typed, &mut editor),
            Wish::Remember(line) => {
                editor.remember(&line);
                None
            }
            Wish::Rest => {
                if typed.send(Typed::Rested).is_err() {
                    return;
                }
                None
            }
        };
        wish = match next {
            Some(next) => Ok(next),
            None => wanted.recv(),
        };
    }
}

/// Hands on keys until something else is wanted.
fn watch(wanted: &Receiver<Wish>, typed: &UnboundedSender<Typed>, editor: &mut Editor) -> Option<Wish> {
    if let Err(error) = listen_raw() {
        typed.send(Typed::Broken(error.to_string())).ok();
        return None;
    }
    loop {
        match wanted.recv_timeout(Duration::ZERO) {
            Ok(Wish::Remember(line)) => {
                editor.remember(&line);
                continue;
            }
            Ok(Wish::Rest) => {
                // What came in one piece with a key that was handed on goes the same way.
                while hand_on(typed, Duration::ZERO).is_continue() {}
                return Some(Wish::Rest);
            }
            Ok(wish) => return Some(wish),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
        if hand_on(typed, LOOK) == ControlFlow::Break(Quiet::ForEver) {
            return None;
        }
    }
}

/// Why no key was handed on.
#[derive(PartialEq, Eq)]
enum Quiet {
    ForNow,
    ForEver,
}

/// Hands on the next key, if one comes in time.
fn hand_on(typed: &UnboundedSender<Typed>, within: Duration) -> ControlFlow<Quiet> {
    let seen = match event::poll(within) {
        Ok(false) => return ControlFlow::Break(Quiet::ForNow),
        Ok(true) => event::read(),
        Err(error) => Err(error),
    };
    let seen = match seen {
        Ok(event) => Typed::of(event),
        Err(error) => Some(Typed::Broken(error.to_string())),
    };
    let is_over = matches!(seen, Some(Typed::Broken(_)));
    match seen.is_some_and(|seen| typed.send(seen).is_err()) || is_over {
        true => ControlFlow::Break(Quiet::ForEver),
        false => ControlFlow::Continue(()),
    }
}

/// Every key by itself, and what is pasted in one piece.
fn listen_raw() -> io::Result<()> {
    crossterm::terminal::enable_raw_mode()?;
    crossterm::execute!(std::io::stdout(), EnableBracketedPaste)
}

/// A dumb terminal: every line as it comes.
fn lines(typed: &UnboundedSender<Typed>) {
    loop {
        let line = read_line();
        let last = !matches!(line, Typed::Line(_) | Typed::Refused(_));
        if typed.send(line).is_err() || last {
            return;
        }
    }
}

/// A pipe: a line when one is wanted.
fn piped(wanted: &Receiver<Wish>, typed: &UnboundedSender<Typed>) {
    while let Ok(wish) = wanted.recv() {
        if matches!(wish, Wish::Line { .. }) && typed.send(read_line()).is_err() {
            return;
        }
    }
}

fn read_line() -> Typed {
    let (mut stdin, mut bytes) = (io::stdin().lock(), Vec::new());
    let read = stdin.by_ref().take(LONGEST + 1).read_until(b'\n', &mut bytes);
    let is_whole = bytes.len() as u64 <= LONGEST || bytes.ends_with(b"\n");
    let read = read.and_then(|read| if is_whole { Ok(read) } else { stdin.skip_until(b'\n') });
    match read {
        Ok(_) if !is_whole => {
            let why = format!(
                "a line of standard input is longer than {} and was not sent; put what is long into a file and write \
                 `@FILE`, or give it to `amplifier run`",
                render::bytes(LONGEST)
            );
            Typed::Refused(render::typed(&why).into_owned())
        }
        Ok(0) => Typed::End,
        Ok(_) => match String::from_utf8(bytes) {
            Ok(line) => Typed::Line(line.trim_end_matches(['\n', '\r']).to_owned()),
            Err(error) => Typed::Broken(format!("standard input is not text: {error}")),
        },
        Err(error) => Typed::Broken(format!("standard input cannot be read: {error}")),
    }
}
