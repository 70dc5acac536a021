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
