//! Everything that is printed. Answers go to standard output, everything else to standard error.

use std::error::Error;
use std::io::{self, Write};

use amplifier_app::{DisplayMessage, DisplaySystem};
use amplifier_protocol::hook::MessageLevel;
use async_trait::async_trait;
use serde_json::Value;

/// One line of an answer. A reader that went away is not our error: there is nobody left to tell.
pub fn out(line: &str) {
    drop(writeln!(io::stdout().lock(), "{line}"));
}

/// How wide a page is; terminals of all kinds have that much room.
const PAGE: usize = 80;

/// Text in lines that fit the page, each begun with as many blanks. Paragraphs stay apart.
pub fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = Vec::new();
    for paragraph in text.split("\n\n") {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let room = PAGE.saturating_sub(indent);
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
                lines.push(format!("{:indent$}{line}", ""));
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(format!("{:indent$}{line}", ""));
    }
    lines.join("\n")
}

/// A name and, in a column to its right, what is said about it. A name too long for its column has a line of its own.
pub fn entry(name: &str, text: &str, column: usize) -> String {
    let body = wrapped(text, column);
    let room = column.saturating_sub(4);
    if name.chars().count() > room {
        return format!("  {name}\n{body}");
    }
    format!("  {name:room$}  {}", body.trim_start())
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
pub fn json_line(value: &Value) {
    let mut stdout = io::stdout().lock();
    drop(writeln!(stdout, "{value}").and_then(|()| stdout.flush()));
}

/// Something the person should know beside the answer.
pub fn note(line: &str) {
    drop(writeln!(io::stderr().lock(), "{line}"));
}

/// An error with every cause, and what can be done about it.
pub fn error(error: &(dyn Error + 'static), hint: Option<&str>) {
    note(&format!("error: {error}"));
    let mut said = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !said.ends_with(&text) {
            note(&format!("  caused by: {text}"));
        }
        said = text;
        source = cause.source();
    }
    if let Some(hint) = hint {
        note(&format!("  hint: {hint}"));
    }
}

/// Shows messages of hooks on standard error.
pub struct Stderr;

#[async_trait]
impl DisplaySystem for Stderr {
    async fn show_message(&self, message: DisplayMessage) {
        let level = match message.level {
            MessageLevel::Info => "note",
            MessageLevel::Warning => "warning",
            MessageLevel::Error => "error",
        };
        note(&format!("{level}: {} ({})", message.message, message.source));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_to_the_page_and_its_paragraphs() {
        let text = wrapped(&format!("{}\n\nend", "word ".repeat(40)), 4);
        assert!(text.lines().all(|line| line.chars().count() <= PAGE), "{text}");
        assert!(text.ends_with("\n\n    end"), "{text}");
        // A word longer than the page is not torn.
        assert_eq!(wrapped(&"x".repeat(100), 2).chars().count(), 102);
    }

    #[test]
    fn a_long_name_has_a_line_of_its_own() {
        assert_eq!(entry("a", "what it is", 8), "  a     what it is");
        assert_eq!(entry("abcdef", "what it is", 8), "  abcdef\n        what it is");
    }

    #[test]
    fn sizes_are_said_in_a_unit_that_fits() {
        assert_eq!([bytes(0), bytes(1023), bytes(1024)], ["0 B", "1023 B", "1.0 KiB"]);
        assert_eq!([bytes(1_048_575), bytes(3 << 29)], ["1023.9 KiB", "1.5 GiB"]);
    }
}
