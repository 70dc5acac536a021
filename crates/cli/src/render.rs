//! Everything that is printed. Answers go to standard output, everything else to standard error.

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use amplifier_app::failure::Failure;
use amplifier_app::{DisplayMessage, DisplaySystem, causes};
use amplifier_protocol::hook::MessageLevel;
use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::Notify;

use crate::exit::Exit;
use crate::harmless::plain;
use crate::outlet::{Outlet, Way};
use crate::page;

/// How much is told beside the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Errors alone.
    Quiet,
    /// What the person should know.
    #[default]
    Usual,
    /// Every step.
    Verbose,
}

/// Whether colours may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Palette {
    /// Where there is a terminal.
    #[default]
    Colors,
    /// Everywhere.
    Always,
    /// Nowhere.
    Plain,
}

/// How this process prints. There is one terminal, so there is one of these, set once before anything is printed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Manner {
    pub tone: Tone,
    pub palette: Palette,
}

static MANNER: OnceLock<Manner> = OnceLock::new();
/// Whether something could not be printed.
static LOST: AtomicBool = AtomicBool::new(false);
/// Whether something was printed that nobody reads any more.
static UNREAD: AtomicBool = AtomicBool::new(false);
/// The queue of a command that listens while it prints, and who is told when nobody reads any more.
static QUEUE: OnceLock<(Outlet, Arc<Notify>)> = OnceLock::new();
/// The errors that were told, for the summary that programs read.
static ERRORS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Says how this process prints. Only the first word counts.
pub fn set_manner(manner: Manner) {
    MANNER.get_or_init(|| manner);
}

pub fn tone() -> Tone {
    MANNER.get().copied().unwrap_or_default().tone
}

/// Whether something that is shown on this stream may have colours.
pub fn has_colors(stream: &impl IsTerminal) -> bool {
    match MANNER.get().copied().unwrap_or_default().palette {
        Palette::Colors => stream.is_terminal(),
        Palette::Always => true,
        Palette::Plain => false,
    }
}

/// Every error that was told, in order.
pub fn errors_told() -> Vec<String> {
    ERRORS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// From now on what is printed waits in a queue, so that printing never blocks; see [`Outlet`]. Notifies when nobody reads
/// standard output any more.
pub fn queue(unread: Arc<Notify>) {
    QUEUE.get_or_init(|| (Outlet::new(|way, bytes| drop(write(way, bytes))), unread));
}

/// Waits until the reader has taken so much that more can be printed. Blocks: it is the work that has to wait.
pub fn wait_for_room() {
    if let Some((outlet, _)) = QUEUE.get() {
        outlet.wait_for_room();
    }
}

/// Whether more can be printed without anybody having to wait.
pub fn has_room() -> bool {
    QUEUE.get().is_none_or(|(outlet, _)| outlet.has_room())
}

/// From now on nobody waits for a reader: what is going on has to end.
pub fn let_go() {
    if let Some((outlet, _)) = QUEUE.get() {
        outlet.let_go();
    }
}

/// Waits until everything is printed.
pub async fn drained() {
    if let Some((outlet, _)) = QUEUE.get() {
        outlet.drained().await;
    }
}

/// One line of an answer. A reader that went away is told nothing more; the exit code tells it, see [`ending`].
pub fn out(text: &str) {
    drop(line(text));
}

/// The same for whoever has more to print and ends when nobody reads it. On a terminal a line cannot steer it, whatever it
/// names; programs get what there is.
pub fn line(text: &str) -> Result<(), Unread> {
    match io::stdout().is_terminal() {
        true => raw(plain(text) + "\n"),
        false => raw(format!("{text}\n")),
    }
}

/// An answer that is whole already, or a piece of one, as it is.
pub fn raw(bytes: impl Into<Vec<u8>>) -> Result<(), Unread> {
    print(Way::Answer, bytes.into())
}

/// A picture on the terminal, which the next one replaces.
pub fn picture(text: String) {
    drop(print(Way::Picture, text.into_bytes()));
}

/// Something beside the answer that is whole already, as it is.
pub fn raw_aside(text: String) {
    drop(print(Way::Aside, text.into_bytes()));
}

fn print(way: Way, bytes: Vec<u8>) -> Result<(), Unread> {
    let Some((outlet, _)) = QUEUE.get() else { return write(way, &bytes) };
    outlet.push(way, bytes);
    if UNREAD.load(Ordering::Relaxed) { Err(Unread) } else { Ok(()) }
}

fn write(way: Way, bytes: &[u8]) -> Result<(), Unread> {
    match way {
        Way::Aside => {
            let mut stderr = io::stderr().lock();
            // Where errors are told is nothing left to tell them to.
            drop(stderr.write_all(bytes).and_then(|()| stderr.flush()));
            Ok(())
        }
        Way::Answer | Way::Picture => {
            let mut stdout = io::stdout().lock();
            let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
            drop(stdout);
            if way == Way::Picture { Ok(()) } else { heard(written) }
        }
    }
}

/// Takes note of what came of printing, for [`ending`]; what is lost is told once.
pub fn heard(written: io::Result<()>) -> Result<(), Unread> {
    match written {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            UNREAD.store(true, Ordering::Relaxed);
            if let Some((_, unread)) = QUEUE.get() {
                unread.notify_one();
            }
            Err(Unread)
        }
        Err(error) => {
            if !LOST.swap(true, Ordering::Relaxed) {
                Remark::error(format!("standard output cannot be written: {error}")).tell();
            }
            Ok(())
        }
    }
}

/// Whether something that should stand on standard output does not.
pub fn has_lost_output() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// How the program ends after all: an answer that could not be given, or that nobody took, is no success.
pub fn ending(exit: Exit) -> Exit {
    match exit {
        Exit::Success | Exit::Unread if has_lost_output() => Exit::Failure,
        Exit::Success if UNREAD.load(Ordering::Relaxed) => Exit::Unread,
        exit => exit,
    }
}

/// How wide a page is where there is no terminal to ask.
const PAGE: usize = 80;
/// Longer lines are hard to read, whatever the terminal shows.
const WIDEST: usize = 100;

/// How many columns the terminal has that answers go to; nothing where they go elsewhere, and then nothing is shortened.
pub fn columns() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// The same of the terminal that everything else goes to.
pub fn columns_aside() -> Option<usize> {
    terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| usize::from(width.0))
}

fn page() -> usize {
    columns().map_or(PAGE, |columns| columns.min(WIDEST))
}

/// Text in lines that fit the page, each begun with as many blanks. Paragraphs stay apart.
pub fn wrapped(text: &str, indent: usize) -> String {
    page::wrapped(text, indent, page())
}

/// A name and, in a column to its right, what is said about it. A name too long for its column has a line of its own, and on
/// a narrow terminal every name has.
pub fn entry(name: &str, text: &str, column: usize) -> String {
    page::entry(name, text, column, page())
}

/// More text about the name of an [`entry`], on lines of its own.
pub fn below(text: &str, column: usize) -> String {
    page::below(text, column, page())
}

/// A number of bytes in a unit that fits.
pub fn bytes(bytes: u64) -> String {
    let units = [(1_u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(size, _)| bytes >= *size) {
        // One digit behind the point, computed in whole numbers so that no large size is rounded up to the next unit.
        Some((size, unit)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(size);
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} B"),
    }
}

/// One JSON value, for people and programs.
pub fn json(value: &Value) {
    out(&format!("{value:#}"));
}

/// One JSON value on one line, at once.
pub fn json_line(value: &Value) -> Result<(), Unread> {
    raw(format!("{value}\n"))
}

/// Nobody reads standard output any more.
#[derive(Debug)]
pub struct Unread;

/// Something the person should know beside the answer, and what can be done about it: both are told or neither.
#[must_use]
pub struct Remark {
    pub weight: Weight,
    pub text: String,
    pub hint: Option<String>,
}

/// How much a remark weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    Note,
    Warning,
    Error,
}

impl Weight {
    /// What stands before it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Remark {
    /// Something worth knowing.
    pub fn note(text: impl Into<String>) -> Self {
        Self::new(Weight::Note, text)
    }

    /// Something that may be wrong.
    pub fn warning(text: impl Into<String>) -> Self {
        Self::new(Weight::Warning, text)
    }

    /// Something that is wrong.
    pub fn error(text: impl Into<String>) -> Self {
        Self::new(Weight::Error, text)
    }

    pub fn new(weight: Weight, text: impl Into<String>) -> Self {
        Self { weight, text: text.into(), hint: None }
    }

    /// With what can be done about it.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        self.maybe_hint(Some(hint.into()))
    }

    /// With what can be done about it, if anything can.
    pub fn maybe_hint(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }

    /// Tells it; of those who want silence errors alone.
    pub fn tell(self) {
        if self.weight == Weight::Error {
            ERRORS.lock().unwrap_or_else(PoisonError::into_inner).push(self.text.clone());
        } else if tone() == Tone::Quiet {
            return;
        }
        print_aside(&format!("{}: {}", self.weight.label(), self.text));
        if let Some(hint) = self.hint {
            print_aside(&format!("  hint: {hint}"));
        }
    }
}

/// A line of something that is told, as it is.
pub fn note(line: &str) {
    print_aside(line);
}

/// Something that only those want to know who did not ask for silence.
pub fn aside(line: &str) {
    if tone() != Tone::Quiet {
        print_aside(line);
    }
}

/// Something that only those who asked for every step want to know.
pub fn detail(line: &str) {
    if tone() == Tone::Verbose {
        print_aside(line);
    }
}

/// A question to the person; not even silence silences it.
pub fn ask(text: &str) {
    print_aside(text);
}

/// A line names what somebody typed, what a file holds or what a model says, and none of them may steer the terminal.
fn print_aside(line: &str) {
    let fitting = |line: &str| match columns_aside() {
        Some(columns) => page::broken(line, columns),
        None => line.to_owned(),
    };
    let line = plain(line).lines().map(fitting).collect::<Vec<_>>().join("\n");
    let line = if has_colors(&io::stderr()) { painted(&line) } else { line };
    raw_aside(line + "\n");
}

/// The label of a line in its colour.
fn painted(line: &str) -> String {
    let colors = [("error:", "1;31"), ("warning:", "33"), ("note:", "36"), ("  hint:", "36")];
    let found = colors.iter().find_map(|(label, color)| Some((label, color, line.strip_prefix(label)?)));
    match found {
        Some((label, color, rest)) => format!("\u{1b}[{color}m{label}\u{1b}[0m{rest}"),
        None => line.to_owned(),
    }
}

/// An error with every cause, and what can be done about it.
pub fn error(error: &(dyn Error + 'static), hint: Option<&str>) {
    let mut texts = causes(error).into_iter();
    texts.by_ref().take(1).for_each(|text| Remark::error(text).tell());
    texts.for_each(|text| note(&format!("  caused by: {text}")));
    if let Some(hint) = hint {
        note(&format!("  hint: {hint}"));
    }
}

/// What a model read and wrote.
pub fn tokens(read: u64, written: u64) -> String {
    let word = if read == 1 { "token" } else { "tokens" };
    format!("{read} {word} in, {written} out")
}

/// A turn that failed, and what can be done about it.
pub fn failure(failure: &Failure) {
    Remark::error(&failure.message).maybe_hint(failure.hint.clone()).tell();
}

/// Shows messages of hooks on standard error.
pub struct Stderr;

#[async_trait]
impl DisplaySystem for Stderr {
    async fn show_message(&self, message: DisplayMessage) {
        let weight = match message.level {
            MessageLevel::Info => Weight::Note,
            MessageLevel::Warning => Weight::Warning,
            MessageLevel::Error => Weight::Error,
        };
        Remark::new(weight, format!("{} ({})", message.message, message.source)).tell();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_label_has_a_colour() {
        assert_eq!(painted("error: no"), "\u{1b}[1;31merror:\u{1b}[0m no");
        assert_eq!(painted("an error: no"), "an error: no");
    }

    #[test]
    fn sizes_are_said_in_a_unit_that_fits() {
        assert_eq!([bytes(0), bytes(1023), bytes(1024)], ["0 B", "1023 B", "1.0 KiB"]);
        assert_eq!([bytes(1_048_575), bytes(3 << 29)], ["1023.9 KiB", "1.5 GiB"]);
    }
}
