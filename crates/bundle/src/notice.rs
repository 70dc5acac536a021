//! What is worth telling about a bundle: a problem, the place, and what to do about it.
//!
//! A notice never stops anything by itself. Reading stops on errors at the end of a file, so that one run shows all of
//! them; in strict mode warnings count as errors too.

use std::fmt;

use crate::origin::Place;

/// How much a notice weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know; never an error.
    Note,
    /// Something written has no effect, or not the one its author expects. An error in strict mode.
    Warning,
    /// The file cannot be used.
    Error,
}

/// Whether warnings stop a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strictness {
    /// Warnings are reported, the load goes on.
    #[default]
    Lenient,
    /// Warnings are errors.
    Strict,
}

/// The kind of a notice, for callers that treat kinds differently and for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// A key nobody reads.
    UnknownKey,
    /// A key written twice in one mapping.
    DuplicateKey,
    /// A module listed twice in one file.
    DuplicateModule,
    /// A word that older YAML reads as a boolean, or a number that may not mean what it says.
    AmbiguousScalar,
    /// A value of the wrong type.
    WrongType,
    /// A value that must be there is not.
    Missing,
    /// A value of the right type that makes no sense.
    BadValue,
    /// A part of the file that has no effect where it stands.
    NoEffect,
    /// An include that could not be loaded.
    IncludeFailed,
    /// An include that leads back to a file that is being loaded.
    Cycle,
    /// Two sources claim one namespace.
    NamespaceClash,
    /// A context file that is not there.
    MissingContext,
    /// An agent without a file or a definition.
    MissingAgent,
    /// A path that leaves its root.
    Escape,
    /// A `!delete` with nothing to delete.
    NothingToDelete,
    /// An address that holds a credential.
    Credential,
}

/// One thing worth telling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// How much it weighs.
    pub severity: Severity,
    /// What kind it is.
    pub code: Code,
    /// Where; `None` when no text caused it.
    pub place: Option<Place>,
    /// What is the matter.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Notice {
    /// A notice that makes the file unusable.
    pub fn error(code: Code, place: &Place, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, place, message)
    }

    /// A notice that is an error in strict mode only.
    pub fn warning(code: Code, place: &Place, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, place, message)
    }

    /// A notice that is never an error.
    pub fn note(code: Code, place: &Place, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, code, place, message)
    }

    fn new(severity: Severity, code: Code, place: &Place, message: impl Into<String>) -> Self {
        Self { severity, code, place: Some(place.clone()), message: message.into(), hint: None }
    }

    /// The same notice with advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether it stops a load of this strictness.
    pub fn stops(&self, strictness: Strictness) -> bool {
        match strictness {
            Strictness::Lenient => self.severity == Severity::Error,
            Strictness::Strict => self.severity >= Severity::Warning,
        }
    }

    /// The message, the line with a caret, and the advice: what a person reads.
    pub fn render(&self) -> String {
        let mut text = self.to_string();
        if let Some(excerpt) = self.place.as_ref().and_then(Place::excerpt) {
            text.push('\n');
            text.push_str(&excerpt);
        }
        if let Some(hint) = &self.hint {
            text.push_str("\nhint: ");
            text.push_str(hint);
        }
        text
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// The known word closest to `word`, when it is close enough to be a slip of the pen.
pub fn closest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let lower = word.to_lowercase();
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lower, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 5)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Names in backticks, separated by commas.
pub fn quoted<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    words.into_iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_finds_its_neighbour() {
        let known = ["providers", "tools", "hooks", "includes"];
        assert_eq!(closest("tool", known), Some("tools"));
        assert_eq!(closest("Provider", known), Some("providers"));
        assert_eq!(closest("incldues", known), Some("includes"));
        assert_eq!(closest("routing", known), None);
    }

    #[test]
    fn strictness_decides_what_stops() {
        let place = Place::start(&std::sync::Arc::new(crate::origin::SourceFile::new("b.md", "")));
        let note = Notice::note(Code::Cycle, &place, "x");
        let warning = Notice::warning(Code::Cycle, &place, "x");
        let error = Notice::error(Code::Cycle, &place, "x");
        let stops = |strictness| [&note, &warning, &error].map(|notice| notice.stops(strictness));
        assert_eq!(stops(Strictness::Lenient), [false, false, true]);
        assert_eq!(stops(Strictness::Strict), [false, true, true]);
    }
}
