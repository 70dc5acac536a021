//! Asks the person at the terminal whether a tool may, in plain lines: works on every terminal, also when the prompt was
//! piped in. The chat has its own way of asking.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};

use amplifier_app::ApprovalError;
use amplifier_app::approval::{Answer, Asker, Grant, Places, changes, dangers, lasting, wording};
use amplifier_protocol::hook::Question;
use amplifier_protocol::text::visible;
use async_trait::async_trait;
use tokio::sync::{Mutex, mpsc};

use crate::chat::{dangers_named, terminal_size};
use crate::render;
use crate::width::{beginning, first};

/// How many lines may be typed ahead.
const TYPED: usize = 64;

/// How many rows are kept for what can be answered, and how few are left for what is asked.
const KEYS_ROWS: usize = 4;
const FEWEST: usize = 3;

/// What can be answered before all of it was shown.
const UNSEEN: &str = "[v] view all, before it can be allowed  [n] no";

/// The terminal that a process belongs to, whatever its standard input is.
const TERMINAL: &str = "/dev/tty";

/// A person at a terminal.
pub struct Terminal {
    /// What is typed, from the first question on: what was typed before it is for the shell.
    lines: Mutex<Option<mpsc::Receiver<String>>>,
    /// What paths of calls are relative to.
    places: Places,
}

impl Terminal {
    /// The terminal of this process, if a person sits there: one that can be read, and standard error on it.
    pub fn find(places: Places) -> Option<Self> {
        let is_there = std::io::stdin().is_terminal() || File::open(TERMINAL).is_ok();
        (std::io::stderr().is_terminal() && is_there).then(|| Self { lines: Mutex::new(None), places })
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
        let (call, places) = (question.call.clone(), self.places.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let Some(call) = call else { return Default::default() };
            let changes = changes(&call, &places);
            let changes = changes.iter().map(|change| format!("{}\n{}", change.note, change.diff));
            (changes.collect::<String>(), dangers(&call, &places))
        });
        // What would be changed is shown as far as it can be told; the whole call stands in the question.
        let (changes, dangers) = looked.await.unwrap_or_default();
        let asked = [visible(&changes).trim(), &visible(wording(question))].join("\n");
        let (asked, dangers) = (asked.trim_start_matches('\n'), dangers_named(&dangers, question).join("\n"));
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
        let (columns, rows) = terminal_size();
        let cut = cut(asked, columns, rows.saturating_sub(KEYS_ROWS + dangers.lines().count()));
        render::ask(cut.as_deref().unwrap_or(asked));
        let lasting = lasting(question);
        let mut seen = cut.is_none();
        loop {
            if !dangers.is_empty() {
                render::ask(&dangers);
            }
            match seen {
                true => render::ask(&keys(lasting.as_ref())),
                false => render::ask(UNSEEN),
            }
            let Some(line) = lines.recv().await else {
                return Err(unavailable("the terminal was closed".to_owned()));
            };
            if matches!(line.trim(), "v" | "view") && cut.is_some() {
                render::ask(asked);
                seen = true;
                continue;
            }
            match Answer::read(&line, lasting.as_ref()) {
                Some(answer) if seen || answer == Answer::No => return Ok(answer),
                Some(_) => render::ask("not allowed yet: part of it was left out; [v] shows all of it"),
                None => {}
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

/// The beginning and the end of a text that does not fit into so many rows, with how much was left out between them.
fn cut(text: &str, columns: usize, rows: usize) -> Option<String> {
    // A tab takes as many columns as the terminal likes, up to eight.
    let text = text.replace('\t', "        ");
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut rest = line;
        loop {
            let head = beginning(rest, columns.max(1));
            let head = if head.is_empty() { first(rest) } else { head };
            lines.push(head);
            rest = rest.get(head.len()..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
        }
    }
    let kept = rows.max(FEWEST) - 1;
    if lines.len() <= rows.max(FEWEST) {
        return None;
    }
    let head = lines.iter().take(kept - kept / 2);
    let tail = lines.iter().skip(lines.len() - kept / 2);
    let left_out = format!("… {} of {} lines left out; [v] shows all", lines.len() - kept, lines.len());
    let shown: Vec<&str> = head.copied().chain([left_out.as_str()]).chain(tail.copied()).collect();
    Some(shown.join("\n"))
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

    #[test]
    fn what_does_not_fit_is_cut_in_its_middle_and_counted() {
        assert_eq!(cut("a\nb\nc", 10, 3), None);
        let shown = |text: &str| cut(text, 10, 5).unwrap();
        let long: String = (0..9).map(|at| format!("line {at}\n")).collect();
        assert_eq!(shown(&long), "line 0\nline 1\n… 5 of 9 lines left out; [v] shows all\nline 7\nline 8");
        for pushed in [format!("ls{};rm x", " ".repeat(400)), format!("ls{};rm x", "\t".repeat(50))] {
            let shown = shown(&pushed);
            assert!(
                shown.starts_with("ls ") && shown.ends_with("rm x") && shown.contains("left out"),
                "{shown}"
            );
        }
    }
}
