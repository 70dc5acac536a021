//! Asks the person at the terminal whether a tool may, in plain lines: works on every terminal, also when the prompt was
//! piped in. The chat has its own way of asking.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::PathBuf;

use amplifier_app::ApprovalError;
use amplifier_app::approval::{Answer, Asker, Grant, changes, lasting, wording};
use amplifier_protocol::hook::Question;
use amplifier_protocol::text::visible;
use async_trait::async_trait;
use tokio::sync::{Mutex, mpsc};

use crate::render;

/// How many lines may be typed ahead.
const TYPED: usize = 64;

/// The terminal that a process belongs to, whatever its standard input is.
const TERMINAL: &str = "/dev/tty";

/// A person at a terminal.
pub struct Terminal {
    /// What is typed, from the first question on: what was typed before it is for the shell.
    lines: Mutex<Option<mpsc::Receiver<String>>>,
    /// What relative paths of calls are relative to.
    folder: PathBuf,
}

impl Terminal {
    /// The terminal of this process, if a person sits there: one that can be read, and standard error on it.
    pub fn find(folder: PathBuf) -> Option<Self> {
        let is_there = std::io::stdin().is_terminal() || File::open(TERMINAL).is_ok();
        (std::io::stderr().is_terminal() && is_there).then(|| Self { lines: Mutex::new(None), folder })
    }
}

/// Begins to read what is typed from now on.
fn listen() -> std::io::Result<mpsc::Receiver<String>> {
    let source: Box<dyn BufRead + Send> = if std::io::stdin().is_terminal() {
        forget_typed(std::io::stdin())?;
        Box::new(BufReader::new(std::io::stdin()))
    } else {
        // Standard input is taken; the terminal itself can still be read.
        let terminal = File::open(TERMINAL)?;
        forget_typed(&terminal)?;
        Box::new(BufReader::new(terminal))
    };
    let (sender, lines) = mpsc::channel(TYPED);
    // A thread of its own, which ends with the process: reading a terminal cannot be cancelled.
    std::thread::Builder::new().name("terminal".to_owned()).spawn(move || read(source, &sender))?;
    Ok(lines)
}

fn read(source: Box<dyn BufRead + Send>, sender: &mpsc::Sender<String>) {
    for line in source.lines() {
        let Ok(line) = line else { return };
        if sender.blocking_send(line).is_err() {
            return;
        }
    }
}

#[async_trait]
impl Asker for Terminal {
    async fn ask(&self, question: &Question) -> Result<Answer, ApprovalError> {
        let mut lines = self.lines.lock().await;
        let (call, folder) = (question.call.clone(), self.folder.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let changes = call.map(|call| changes(&call, &folder)).unwrap_or_default();
            changes.iter().map(|change| format!("{}\n{}", change.note, change.diff)).collect::<String>()
        });
        // What would be changed is shown as far as it can be told; the whole call stands in the question.
        let changes = looked.await.unwrap_or_default();
        let unavailable = |message: String| ApprovalError::Unavailable { message };
        let lines = match &mut *lines {
            Some(lines) => lines,
            none => {
                let begun =
                    listen().map_err(|error| unavailable(format!("the terminal cannot be read: {error}")))?;
                none.insert(begun)
            }
        };
        // What was typed before the question was asked is no answer to it.
        while lines.try_recv().is_ok() {}
        if !changes.trim().is_empty() {
            render::ask(visible(&changes).trim());
        }
        render::ask(&visible(wording(question)));
        let lasting = lasting(question);
        loop {
            render::ask(&keys(lasting.as_ref()));
            let Some(line) = lines.recv().await else {
                return Err(unavailable("the terminal was closed".to_owned()));
            };
            if let Some(answer) = Answer::read(&line, lasting.as_ref()) {
                return Ok(answer);
            }
        }
    }
}

/// Drops what was typed before anything was asked.
#[cfg(unix)]
fn forget_typed(terminal: impl std::os::fd::AsFd) -> std::io::Result<()> {
    use rustix::termios::{QueueSelector, tcflush};

    Ok(tcflush(terminal, QueueSelector::IFlush)?)
}

#[cfg(not(unix))]
fn forget_typed<T>(_terminal: T) -> std::io::Result<()> {
    Ok(())
}

/// What can be answered, and what an answer for longer covers.
fn keys(lasting: Option<&Grant>) -> String {
    match lasting {
        Some(grant) => format!(
            "[y] once  [s] for this session  [a] always in this folder  [n] no\n[s] and [a] cover {}",
            visible(&grant.scope())
        ),
        None => "[y] once  [n] no".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_offered_is_not_shown() {
        assert!(!keys(None).contains("always"));
    }
}
