//! Everything that is typed, read by a thread of its own: reading blocks, and must never hold up anything else.
//!
//! On a full terminal the thread runs the line editor at the prompt (`editor.rs`) and hands on single keys while something
//! runs. Elsewhere it reads lines: from a dumb terminal whenever one comes, from a pipe only when one is asked for, because a
//! line of a pipe is a prompt and not a word to a running turn.

use std::io::{BufRead, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste, Event, KeyEvent, KeyEventKind};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::editor::{Editor, Setup};
use super::hush::Hush;
use super::screen::Face;

/// How often a thread that watches keys looks whether something else is wanted.
const LOOK: Duration = Duration::from_millis(15);
/// The longest line of a pipe, in bytes.
const LONGEST: u64 = 1024 * 1024;

/// What came from the person.
#[derive(Debug)]
pub enum Typed {
    Line(String),
    /// Ctrl-C at the prompt, with nothing on the line.
    Interrupt,
    /// The same, after another one has emptied the line.
    InterruptAnew,
    /// Ctrl-D, or the end of what was piped in.
    End,
    /// One key, while something runs.
    Key(KeyEvent),
    /// Text that was pasted while something ran.
    Paste(String),
    /// No more keys come until they are asked for.
    Rested,
    /// Nothing can be read any more, and why.
    Broken(String),
}

/// What the thread shall do.
#[derive(Debug)]
enum Wish {
    /// Read one line; what was typed before stands in it.
    Line { mark: String, begun: String },
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
    wishes: Sender<Wish>,
    typed: UnboundedReceiver<Typed>,
}

impl Input {
    /// Starts to listen.
    pub fn open(face: Face, setup: Setup) -> Self {
        let (wishes, wanted) = channel();
        let (sender, typed) = unbounded_channel();
        let hush = (face == Face::Full).then(Hush::begin).flatten();
        std::thread::spawn(move || match face {
            Face::Full => keys(&wanted, &sender, setup),
            Face::Dumb => lines(&sender),
            Face::Pipe => piped(&wanted, &sender),
        });
        Self { face, hush, watching: false, wishes, typed }
    }

    /// Asks for a line, behind a mark; `begun` stands in it already.
    pub fn ask(&self, mark: &str, begun: String) {
        // A thread that is gone has said so.
        self.wishes.send(Wish::Line { mark: mark.to_owned(), begun }).ok();
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
        std::mem::take(&mut self.watching) && self.wishes.send(Wish::Rest).is_ok()
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
        self.typed.recv().await.unwrap_or(Typed::End)
    }
}

impl Drop for Input {
    // However the chat ends.
    fn drop(&mut self) {
        self.close();
    }
}

/// A full terminal.
fn keys(wanted: &Receiver<Wish>, typed: &UnboundedSender<Typed>, setup: Setup) {
    let mut editor = Editor::new(setup);
    let mut wish = wanted.recv();
    while let Ok(now) = wish {
        let next = match now {
            Wish::Line { mark, begun } => {
                if typed.send(editor.line(&mark, &begun)).is_err() {
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
    let ready = crossterm::terminal::enable_raw_mode()
        .and_then(|()| crossterm::execute!(std::io::stdout(), EnableBracketedPaste));
    if let Err(error) = ready {
        typed.send(Typed::Broken(error.to_string())).ok();
        return None;
    }
    loop {
        match wanted.recv_timeout(Duration::ZERO) {
            Ok(Wish::Remember(line)) => {
                editor.remember(&line);
                continue;
            }
            Ok(wish) => return Some(wish),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
        let seen = match event::poll(LOOK) {
            Ok(false) => continue,
            Ok(true) => event::read(),
            Err(error) => Err(error),
        };
        let seen = match seen {
            Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => Typed::Key(key),
            Ok(Event::Paste(text)) => Typed::Paste(text),
            Ok(_) => continue,
            Err(error) => {
                typed.send(Typed::Broken(error.to_string())).ok();
                return None;
            }
        };
        if typed.send(seen).is_err() {
            return None;
        }
    }
}

/// A dumb terminal: every line as it comes.
fn lines(typed: &UnboundedSender<Typed>) {
    loop {
        let line = read_line();
        let last = !matches!(line, Typed::Line(_));
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
    let mut bytes = Vec::new();
    match std::io::stdin().lock().take(LONGEST).read_until(b'\n', &mut bytes) {
        Ok(0) => Typed::End,
        Ok(_) => match String::from_utf8(bytes) {
            Ok(line) => Typed::Line(line.trim_end_matches(['\n', '\r']).to_owned()),
            Err(error) => Typed::Broken(format!("standard input is not text: {error}")),
        },
        Err(error) => Typed::Broken(format!("standard input cannot be read: {error}")),
    }
}
