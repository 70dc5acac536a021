//! Questions to a person at a terminal: lines in, lines out, so that they work on every terminal. Nobody is asked where there
//! is none; the caller looks first. They are written to standard error, for answers go to standard output.

use std::io::{self, BufRead, IsTerminal, Write};

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::harmless::plain;
use crate::page;
use crate::render;

/// How many choices are listed; of longer lists the name is typed.
const MOST_LISTED: usize = 20;

/// Whether somebody is there to be asked.
pub fn is_somebody_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// One of several, by number or by name; an empty line takes the one that is marked.
pub fn choose(question: &str, choices: &[(String, String)], usual: usize) -> io::Result<usize> {
    say(question)?;
    let width = choices.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (at, (name, text)) in choices.iter().enumerate().take(MOST_LISTED) {
        say(format!("  {:>2}  {name:width$}  {text}", at + 1).trim_end())?;
    }
    if choices.len() > MOST_LISTED {
        say(&format!("      … and {} more; type a name", choices.len() - MOST_LISTED))?;
    }
    loop {
        let line = line(&format!("Number or name [{}]: ", usual + 1))?;
        if line.is_empty() {
            return Ok(usual);
        }
        let number = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let found = number.filter(|at| *at < choices.len());
        match found.or_else(|| choices.iter().position(|(name, _)| *name == line)) {
            Some(at) => return Ok(at),
            None => say(&format!("`{line}` is none of them."))?,
        }
    }
}

/// A line of text; an empty line takes what is usual, if anything is.
pub fn text(question: &str, usual: Option<&str>) -> io::Result<String> {
    loop {
        let shown = usual.map(|usual| format!(" [{usual}]")).unwrap_or_default();
        let line = line(&format!("{question}{shown}: "))?;
        match (line.is_empty(), usual) {
            (false, _) => return Ok(line),
            (true, Some(usual)) => return Ok(usual.to_owned()),
            (true, None) => say("Something is needed here.")?,
        }
    }
}

/// A line of text that must be fit for something; what is not is told, and asked for again.
pub fn fitting<E: std::fmt::Display>(
    question: &str,
    usual: Option<&str>,
    fit: impl Fn(&str) -> Result<String, E>,
) -> io::Result<String> {
    loop {
        match fit(&text(question, usual)?) {
            Ok(text) => return Ok(text),
            Err(error) => say(&format!("{error}."))?,
        }
    }
}

/// A text that is not shown while it is typed.
pub fn secret(question: &str) -> io::Result<String> {
    // First the terminal is told to show nothing, then the question is asked: whoever types at once is not seen either.
    let raw = Raw::begin()?;
    let asked = write!(io::stderr().lock(), "{question}: ").and_then(|()| io::stderr().flush());
    let typed = asked.and_then(|()| typed());
    drop(raw);
    say("")?;
    typed
}

/// A terminal that shows nothing of what is typed, until it is dropped.
struct Raw;

impl Raw {
    fn begin() -> io::Result<Self> {
        crossterm::terminal::enable_raw_mode()?;
        Ok(Self)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // There is nothing else to try when the terminal is gone.
        crossterm::terminal::disable_raw_mode().ok();
    }
}

/// One line, key by key.
fn typed() -> io::Result<String> {
    let mut text = String::new();
    loop {
        match event::read()? {
            Event::Paste(pasted) => text.push_str(&pasted),
            Event::Key(KeyEvent { code, modifiers, kind, .. }) if kind != KeyEventKind::Release => {
                let control = modifiers.contains(KeyModifiers::CONTROL);
                match code {
                    KeyCode::Enter => return Ok(text),
                    KeyCode::Char('j' | 'm') if control => return Ok(text),
                    KeyCode::Char('c') if control => return Err(io::ErrorKind::Interrupted.into()),
                    KeyCode::Char('d') if control && text.is_empty() => {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    KeyCode::Char('u') if control => text.clear(),
                    KeyCode::Char(c) if !control => text.push(c),
                    KeyCode::Backspace => drop(text.pop()),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// The answer that an empty line gives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Usual {
    Yes,
    No,
}

/// Yes or no.
pub fn agree(question: &str, usual: Usual) -> io::Result<bool> {
    let marks = if usual == Usual::Yes { "[Y/n]" } else { "[y/N]" };
    loop {
        match line(&format!("{question} {marks} "))?.to_lowercase().as_str() {
            "" => return Ok(usual == Usual::Yes),
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => say("`y` or `n`, please.")?,
        }
    }
}

/// Something the person should know before the next question.
pub fn say(text: &str) -> io::Result<()> {
    // What a server calls its models, for one, may be anything.
    let text = plain(text);
    let text = match render::columns_aside() {
        Some(columns) => page::broken(&text, columns),
        None => text.into_owned(),
    };
    writeln!(io::stderr().lock(), "{text}")
}

fn line(question: &str) -> io::Result<String> {
    let mut stderr = io::stderr().lock();
    write!(stderr, "{}", plain(question))?;
    stderr.flush()?;
    drop(stderr);
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim().to_owned())
}
