//! Everything that is printed. Answers go to standard output, everything else to standard error.

use std::borrow::Cow;
use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use amplifier_app::ended::ToldError;
use amplifier_app::failure::Failure;
use amplifier_app::{DisplayMessage, DisplaySystem, causes};
use amplifier_protocol::hook::MessageLevel;
use amplifier_protocol::run::RunPlace;
use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::Notify;

use crate::exit::Exit;
use crate::harmless::{escaped, plain};
use crate::outlet::{Outlet, Way};
use crate::page;
use crate::voice::VOICE;
pub use crate::voice::{Manner, Palette, Tone};

/// Says how this process prints. Only the first word counts.
pub fn set_manner(manner: Manner) {
    VOICE.set_manner(manner);
}

pub fn tone() -> Tone {
    VOICE.manner().tone
}

/// What a command needs behind its name to work where this process does.
pub fn flags() -> &'static str {
    VOICE.manner().flags.as_str()
}

/// A text whose commands work as they are printed.
pub fn typed(text: &str) -> Cow<'_, str> {
    VOICE.manner().flags.put_into(text)
}

/// Whether something that is shown on this stream may have colours.
pub fn has_colors(stream: &impl IsTerminal) -> bool {
    match VOICE.manner().palette {
        Palette::Colors => stream.is_terminal(),
        Palette::Always => true,
        Palette::Plain => false,
    }
}

/// Every error that was told, in order.
pub fn errors_told() -> Vec<ToldError> {
    VOICE.told()
}

/// All of them as one, for who has one place for it; nothing when none was told.
pub fn told_as_one() -> Option<ToldError> {
    let told = errors_told();
    let errors: Vec<_> = told.iter().map(|told| told.error.as_str()).collect();
    (!told.is_empty()).then(|| ToldError {
        error: errors.join("\n"),
        causes: told.iter().flat_map(|told| told.causes.clone()).collect(),
        hint: told.iter().find_map(|told| told.hint.clone()),
        place: told.iter().find_map(|told| told.place.clone()),
    })
}

/// Takes note of an error that somebody else has told.
pub fn remember(error: &str, hint: &str) {
    let (error, hint) = (error.to_owned(), Some(hint.to_owned()));
    VOICE.remember(ToldError { error, hint, ..ToldError::default() });
}

/// Whether anything went to standard output.
pub fn has_answered() -> bool {
    VOICE.has_answered()
}

/// The last line when everything else is over; it waits in no queue, since nobody would wait for that.
pub fn last_word(text: &str) {
    drop(write(Way::Answer, format!("{text}\n").as_bytes()));
}

/// From now on what is printed waits in a queue, so that printing never blocks; see [`Outlet`]. Notifies when nobody reads
/// standard output any more.
pub fn queue(unread: Arc<Notify>) {
    VOICE.set_queue(|| Outlet::new(|way, bytes| drop(write(way, bytes))), unread);
}

/// Waits until the reader has taken so much that more can be printed. Blocks: it is the work that has to wait.
pub fn wait_for_room() {
    if let Some(outlet) = VOICE.queue() {
        outlet.wait_for_room();
    }
}

/// Whether more can be printed without anybody having to wait.
pub fn has_room() -> bool {
    VOICE.queue().is_none_or(Outlet::has_room)
}

/// From now on nobody waits for a reader: what is going on has to end.
pub fn let_go() {
    if let Some(outlet) = VOICE.queue() {
        outlet.let_go();
    }
}

/// Waits until everything is printed.
pub async fn drained() {
    if let Some(outlet) = VOICE.queue() {
        outlet.drained().await;
    }
}

/// Waits until everything on standard error is printed.
pub async fn asides_drained() {
    if let Some(outlet) = VOICE.queue() {
        outlet.asides_drained().await;
    }
}

/// Whether everything printed to standard output has left this process.
pub fn is_delivered() -> bool {
    VOICE.queue().is_none_or(Outlet::is_delivered) && !has_lost_output() && !VOICE.is_unread()
}

/// One line of an answer. A reader that went away is told nothing more; the exit code tells it, see [`ending`].
pub fn out(text: &str) {
    drop(line(text));
}

/// The same for whoever has more to print and ends when nobody reads it. On a terminal a line cannot steer it, whatever it
/// names; programs get what there is.
pub fn line(text: &str) -> Result<(), Unread> {
    match io::stdout().is_terminal() {
        true => raw(plain(text).into_owned() + "\n"),
        false => raw(format!("{text}\n")),
    }
}

/// One line of our own words, with commands that work as they are printed.
pub fn say(text: &str) {
    out(&typed(text));
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
    if way == Way::Answer {
        VOICE.answer();
    }
    let Some(outlet) = VOICE.queue() else { return write(way, &bytes) };
    outlet.push(way, bytes);
    if VOICE.is_unread() { Err(Unread) } else { Ok(()) }
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
            VOICE.is_left();
            Err(Unread)
        }
        Err(error) => {
            if VOICE.lose() {
                let hint = match error.kind() {
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                        "make room where it goes, or send it elsewhere; then try again"
                    }
                    _ => "send it elsewhere, and try again",
                };
                Remark::error(format!("standard output cannot be written: {error}")).hint(hint).tell();
            }
            Ok(())
        }
    }
}

/// Whether something that should stand on standard output does not.
pub fn has_lost_output() -> bool {
    VOICE.has_lost()
}

/// How the program ends after all: an answer that could not be given, or that nobody took, is no success.
pub fn ending(exit: Exit) -> Exit {
    match exit {
        Exit::Success | Exit::Unread if has_lost_output() => Exit::Failure,
        Exit::Success if VOICE.is_unread() => Exit::Unread,
        Exit::Success if !is_delivered() => Exit::Failure,
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
    out(&escaped(&format!("{value:#}")));
}

/// One JSON value on one line, at once.
pub fn json_line(value: &Value) -> Result<(), Unread> {
    raw(escaped(&format!("{value}\n")).into_owned())
}

/// Nobody reads standard output any more.
#[derive(Debug)]
pub struct Unread;

/// Something the person should know beside the answer, and what can be done about it: both are told or neither.
#[must_use]
pub struct Remark {
    pub weight: Weight,
    pub text: String,
    /// The line of a file that it is about.
    pub excerpt: Option<String>,
    /// Why, from the nearest cause to the first.
    pub causes: Vec<String>,
    pub hint: Option<String>,
    /// Where in a file it is.
    pub place: Option<RunPlace>,
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
    /// Something worth knowing, in our own words, with commands that work as they are printed.
    pub fn note(text: impl AsRef<str>) -> Self {
        Self::quoting(Weight::Note, typed(text.as_ref()))
    }

    /// Something that may be wrong, in our own words.
    pub fn warning(text: impl AsRef<str>) -> Self {
        Self::quoting(Weight::Warning, typed(text.as_ref()))
    }

    /// Something that is wrong, in our own words.
    pub fn error(text: impl AsRef<str>) -> Self {
        Self::quoting(Weight::Error, typed(text.as_ref()))
    }

    /// Something in the words of somebody else, or about what they wrote: not a letter of it is changed.
    pub fn quoting(weight: Weight, text: impl Into<String>) -> Self {
        Self { weight, text: text.into(), excerpt: None, causes: Vec::new(), hint: None, place: None }
    }

    /// An error with every cause.
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        let mut texts = causes(error).into_iter();
        let text = texts.next().unwrap_or_default();
        Self { causes: texts.collect(), ..Self::quoting(Weight::Error, text) }
    }

    /// With the line of a file that it is about, where there is one.
    pub fn excerpt(self, excerpt: Option<String>) -> Self {
        Self { excerpt, ..self }
    }

    /// At a place in a file, where one is known.
    pub fn at(self, place: Option<RunPlace>) -> Self {
        Self { place, ..self }
    }

    /// With what can be done about it.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        self.maybe_hint(Some(hint.into()))
    }

    /// With what can be done about it, if anything can.
    pub fn maybe_hint(self, hint: Option<String>) -> Self {
        Self { hint: hint.map(|hint| typed(&hint).into_owned()), ..self }
    }

    /// Tells it; of those who want silence errors alone.
    pub fn tell(self) {
        let Self { weight, text: error, excerpt, causes, hint, place } = self;
        if weight != Weight::Error && tone() == Tone::Quiet {
            return;
        }
        print_aside(&format!("{}: {error}", weight.label()));
        excerpt.iter().flat_map(|excerpt| excerpt.lines()).for_each(print_aside);
        causes.iter().for_each(|cause| print_aside(&format!("  caused by: {cause}")));
        if let Some(hint) = &hint {
            print_aside(&format!("  hint: {hint}"));
        }
        if weight == Weight::Error {
            VOICE.remember(ToldError { error, causes, hint, place });
        }
    }
}

/// One line of our own words beside the answer, with commands that work as they are printed.
pub fn say_aside(text: &str) {
    print_aside(&typed(text));
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
    Remark::of(error).maybe_hint(hint.map(str::to_owned)).tell();
}

/// What a model read and wrote.
pub fn tokens(read: u64, written: u64) -> String {
    let word = if read == 1 { "token" } else { "tokens" };
    format!("{read} {word} in, {written} out")
}

/// A turn that failed, and what can be done about it.
pub fn failure(failure: &Failure) {
    Remark::quoting(Weight::Error, &failure.message).maybe_hint(failure.hint.clone()).tell();
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
        Remark::quoting(weight, format!("{} ({})", message.message, message.source)).tell();
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
