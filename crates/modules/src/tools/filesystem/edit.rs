//! One text for another in a text. Pure: no file is touched here.

use amplifier_core::contracts::ToolFailure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::endings::{Ending, Plain, plain};

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Edit {
    /// The text to replace, exactly as it stands in the file, white space included. Line numbers are not part of it.
    pub(super) old_string: String,
    /// What to put in its place.
    pub(super) new_string: String,
    /// Replace every occurrence. Without it `old_string` must occur exactly once.
    #[serde(default)]
    pub(super) replace_all: bool,
}

/// Why an edit cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Misfit {
    /// There is nothing to look for.
    Empty,
    /// Nothing would change.
    Same,
    /// It is not in the text; `near` is the line where it stands with other white space.
    Absent { near: Option<usize> },
    /// It is there more than once.
    Many { occurrences: usize },
}

impl Edit {
    /// What can be said without the text.
    pub(super) fn check(&self) -> Result<(), Misfit> {
        if self.old_string.is_empty() {
            return Err(Misfit::Empty);
        }
        if plain(&self.old_string) == plain(&self.new_string) {
            return Err(Misfit::Same);
        }
        Ok(())
    }

    /// The text with the edit made, and how often. Line feeds match whatever ends the lines of the text; what is not
    /// replaced stays byte for byte.
    pub(super) fn apply(&self, text: &str) -> Result<(String, usize), Misfit> {
        self.check()?;
        let old = plain(&self.old_string);
        let source = Plain::of(text);
        let found: Vec<_> = source.text.match_indices(old.as_ref()).map(|(at, _)| at).collect();
        if found.is_empty() {
            return Err(Misfit::Absent { near: near(&source.text, &old) });
        }
        if found.len() > 1 && !self.replace_all {
            return Err(Misfit::Many { occurrences: found.len() });
        }
        let new = Ending::of(text).write(&self.new_string);
        let mut edited = String::with_capacity(text.len());
        let mut copied = 0;
        for at in &found {
            let (start, end) = (source.original(*at), source.original(at + old.len()));
            edited.push_str(text.get(copied..start).unwrap_or_default());
            edited.push_str(&new);
            copied = end;
        }
        edited.push_str(text.get(copied..).unwrap_or_default());
        Ok((edited, found.len()))
    }

    /// What the model reads.
    pub(super) fn failure(&self, misfit: &Misfit, file: &str) -> ToolFailure {
        let mut failure = match misfit {
            Misfit::Empty => {
                let message = "old_string is required; to write a whole file use write_file";
                return ToolFailure::new(message).of_kind("InvalidInput");
            }
            Misfit::Same => {
                let message = "old_string and new_string must be different";
                return ToolFailure::new(message).of_kind("InvalidInput");
            }
            Misfit::Absent { near } => {
                let hint = near.map(|line| {
                    format!("; the same lines with other white space begin at line {line}, copy them exactly")
                });
                let message = format!("old_string not found in file: {file}{}", hint.unwrap_or_default());
                ToolFailure::new(message).of_kind("NotFound")
            }
            Misfit::Many { occurrences } => {
                let message = format!(
                    "old_string appears {occurrences} times in file. Either provide more context to make it unique or \
                     set replace_all=true"
                );
                let mut failure = ToolFailure::new(message).of_kind("NotUnique");
                failure.details.insert("occurrences".to_owned(), Value::from(*occurrences));
                failure
            }
        };
        failure.details.insert("old_string".to_owned(), Value::String(self.old_string.clone()));
        failure
    }
}

/// The line where a text stands in another if white space at both ends of its lines does not count.
fn near(text: &str, wanted: &str) -> Option<usize> {
    let wanted: Vec<_> = wanted.trim().lines().map(str::trim).collect();
    if wanted.iter().all(|line| line.is_empty()) {
        return None;
    }
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    lines.windows(wanted.len()).position(|window| window == wanted).map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str, new: &str) -> Edit {
        Edit { old_string: old.to_owned(), new_string: new.to_owned(), replace_all: false }
    }

    #[test]
    fn one_place_is_replaced_and_the_rest_stays_byte_for_byte() {
        assert_eq!(edit("b", "x").apply("a\r\nb\nc\r\n"), Ok(("a\r\nx\nc\r\n".to_owned(), 1)));
        assert_eq!(edit("b", "").apply("abc"), Ok(("ac".to_owned(), 1)));
    }

    #[test]
    fn line_feeds_match_carriage_returns_and_the_other_way_round() {
        assert_eq!(edit("a\nb", "x\ny").apply("a\r\nb\r\n"), Ok(("x\r\ny\r\n".to_owned(), 1)));
        assert_eq!(edit("a\r\nb", "x\r\ny").apply("a\nb\n"), Ok(("x\ny\n".to_owned(), 1)));
        assert_eq!(edit("\nb", "").apply("a\r\nb\r\n"), Ok(("a\r\n".to_owned(), 1)));
    }

    #[test]
    fn what_cannot_be_done_says_why_and_where_to_look() {
        assert_eq!(edit("", "x").apply("a"), Err(Misfit::Empty));
        assert_eq!(edit("a\r\n", "a\n").apply("a\n"), Err(Misfit::Same));
        assert_eq!(edit("a", "x").apply("a a a"), Err(Misfit::Many { occurrences: 3 }));
        assert_eq!(edit("zz", "x").apply("a"), Err(Misfit::Absent { near: None }));
        let text = "one\n    if x {\n        y\n    }\n";
        assert_eq!(edit("if x {\n    y\n}", "").apply(text), Err(Misfit::Absent { near: Some(2) }));
        let all = Edit { replace_all: true, ..edit("a", "x") };
        assert_eq!(all.apply("a a a"), Ok(("x x x".to_owned(), 3)));
    }
}
