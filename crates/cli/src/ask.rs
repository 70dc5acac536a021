//! Asks the person at the terminal whether a tool may, in plain lines: works on every terminal, also when the prompt was
//! piped in. The chat has its own way of asking.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};

use amplifier_app::ApprovalError;
use amplifier_app::approval::{Answer, Asker};
use amplifier_protocol::hook::Question;
use amplifier_protocol::text::sanitize;
use async_trait::async_trait;
use tokio::sync::{Mutex, mpsc};

use crate::render;

/// How many lines may be typed ahead.
const TYPED: usize = 64;

/// A person at a terminal.
pub struct Terminal {
    lines: Mutex<mpsc::Receiver<String>>,
}

impl Terminal {
    /// The terminal of this process, if a person sits there: one that can be read, and standard error on it.
    pub fn find() -> Option<Self> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let source: Box<dyn BufRead + Send> = if std::io::stdin().is_terminal() {
            Box::new(BufReader::new(std::io::stdin()))
        } else {
            // Standard input is taken; the terminal itself can still be read.
            Box::new(BufReader::new(File::open("/dev/tty").ok()?))
        };
        let (sender, lines) = mpsc::channel(TYPED);
        // A thread of its own, which ends with the process: reading a terminal cannot be cancelled.
        std::thread::Builder::new().name("terminal".to_owned()).spawn(move || read(source, &sender)).ok()?;
        Some(Self { lines: Mutex::new(lines) })
    }
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
        // What was typed before the question was asked is no answer to it.
        while lines.try_recv().is_ok() {}
        render::ask(&sanitize(&question.prompt));
        loop {
            render::ask("[y] once  [s] for this session  [a] always in this folder  [n] no");
            let Some(line) = lines.recv().await else {
                return Err(ApprovalError::Unavailable { message: "the terminal was closed".to_owned() });
            };
            if let Some(answer) = answer(&line) {
                return Ok(answer);
            }
        }
    }
}

/// What somebody means.
fn answer(line: &str) -> Option<Answer> {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" | "o" | "once" => Some(Answer::Once),
        "s" | "session" => Some(Answer::Session),
        "a" | "always" => Some(Answer::Always),
        "n" | "no" => Some(Answer::No),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_word_is_an_answer() {
        let answers = ["y", " YES ", "s", "always", "n"].map(answer);
        let expected = [Answer::Once, Answer::Once, Answer::Session, Answer::Always, Answer::No];
        assert_eq!(answers, expected.map(Some));
        assert_eq!(["", "maybe", "yn"].map(answer), [None, None, None]);
    }
}
