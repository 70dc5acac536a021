//! Where a value was written: the file it stands in, the line and the column, and what it overrode.
//!
//! Every value of a composed bundle carries this, so that a plan can be traced to the text people wrote. It reads no
//! file itself.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use amplifier_protocol::address::star;
use amplifier_protocol::run::RunPlace;
use serde_json::Value;

use crate::node::Node;

/// A text that was read, kept for messages that show the line they speak of.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The file on this machine.
    pub path: PathBuf,
    /// How people see it: a path, or the address it was fetched from.
    pub name: String,
    /// Its text, byte order marks removed.
    pub text: String,
}

impl SourceFile {
    /// A file whose shown name is its path.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        let path = path.into();
        let name = path.display().to_string();
        Self { path, name, text: text.into() }
    }

    /// The line with this number, counted from 1 and as YAML does: a carriage return alone ends a line too.
    pub fn line(&self, number: u32) -> Option<&str> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        let lines = self.text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        lines.flat_map(|line| line.split('\r')).nth(index)
    }
}

/// A place in a file; line and column begin at 1, columns count characters. Line 0 is no line: a value that a variable or the
/// program itself set, of which only the name is shown.
#[derive(Clone)]
pub struct Place {
    /// The file.
    pub file: Arc<SourceFile>,
    /// The line.
    pub line: u32,
    /// The character within the line.
    pub column: u32,
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        // Files are compared by their name: texts are long, and a load reads each file once.
        self.line == other.line
            && self.column == other.column
            && (Arc::ptr_eq(&self.file, &other.file) || self.file.name == other.file.name)
    }
}

impl Eq for Place {}

impl Place {
    /// The first character of a file.
    pub fn start(file: &Arc<SourceFile>) -> Self {
        Self { file: Arc::clone(file), line: 1, column: 1 }
    }

    /// The name of something that has no lines.
    pub fn named(name: impl Into<String>) -> Self {
        let file = SourceFile { path: PathBuf::new(), name: name.into(), text: String::new() };
        Self { file: Arc::new(file), line: 0, column: 0 }
    }

    /// The line the place lies in with a caret under its column; `None` when the file has no such line.
    pub fn excerpt(&self) -> Option<String> {
        const WIDEST: usize = 160;
        let line = &star(self.file.line(self.line)?);
        let before = usize::try_from(self.column.saturating_sub(1)).ok()?;
        // A long line is shown around its caret, never whole.
        let skipped = before.saturating_sub(WIDEST / 2);
        let shown: String = line.chars().skip(skipped).take(WIDEST).collect();
        // Tabs keep their width on the caret's line, so that the caret stays below what it means.
        let padding: String = line
            .chars()
            .skip(skipped)
            .take(before - skipped)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        Some(format!("{number} | {shown}\n{margin} | {padding}^"))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return f.write_str(&self.file.name);
        }
        write!(f, "{}:{}:{}", self.file.name, self.line, self.column)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<&Place> for RunPlace {
    fn from(place: &Place) -> Self {
        let known = |number: u32| usize::try_from(number).ok().filter(|_| place.line > 0);
        Self { file: place.file.name.clone(), line: known(place.line), column: known(place.column) }
    }
}

/// A value that a later layer replaced.
#[derive(Debug, Clone, PartialEq)]
pub struct Overridden {
    /// Where it had been set.
    pub place: Place,
    /// What it had been.
    pub value: Value,
    /// The list or mapping it had been: its parts have places and histories of their own. Nothing for a single value.
    pub parts: Option<Arc<Node>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_points_below_the_column() {
        let file = Arc::new(SourceFile::new("b.md", "a\n\tkey: [1\n"));
        let place = Place { file, line: 2, column: 7 };
        assert_eq!(place.to_string(), "b.md:2:7");
        assert_eq!(place.excerpt().unwrap(), "2 | \tkey: [1\n  | \t     ^");
    }

    #[test]
    fn an_excerpt_shows_no_credential() {
        let file = Arc::new(SourceFile::new("b.md", "{source: git+https://u:t0k@h/r, x: 1}"));
        let excerpt = Place { file, line: 1, column: 34 }.excerpt().unwrap();
        assert_eq!(excerpt, format!("1 | {{source: git+https://*****@h/r, x: 1}}\n  | {}^", " ".repeat(33)));
    }

    #[test]
    fn a_long_line_is_cut_around_its_caret() {
        let file = Arc::new(SourceFile::new("b.md", "x".repeat(5000)));
        let excerpt = Place { file: Arc::clone(&file), line: 1, column: 4000 }.excerpt().unwrap();
        assert!(excerpt.len() < 400, "{}", excerpt.len());
        assert_eq!(Place { file, line: 2, column: 1 }.excerpt(), None);
    }
}
