//! Line endings: a model writes line feeds, a file keeps what it has.
//!
//! Most texts hold no carriage return at all. That is found out first, for a byte is found much faster than a pair of them,
//! and then nothing is copied.

use std::borrow::Cow;

/// How lines end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Lf,
    CrLf,
}

impl Ending {
    /// How most lines of a text end.
    pub(super) fn of(text: &str) -> Self {
        if windows(text) * 2 > feeds(text) { Self::CrLf } else { Self::Lf }
    }

    /// Whether not one line of a text ends otherwise.
    pub(super) fn is_everywhere_in(self, text: &str) -> bool {
        match self {
            Self::Lf => windows(text) == 0,
            Self::CrLf => windows(text) == feeds(text),
        }
    }

    /// A text with every line ending this way.
    pub(super) fn write(self, text: &str) -> String {
        let plain = plain(text);
        match self {
            Self::Lf => plain.into_owned(),
            Self::CrLf => plain.replace('\n', "\r\n"),
        }
    }
}

fn feeds(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

fn windows(text: &str) -> usize {
    if text.contains('\r') { text.matches("\r\n").count() } else { 0 }
}

/// A text with line feeds only.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if text.contains('\r') { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

/// A text with line feeds only, and the way back to the places of the original.
pub(super) struct Plain<'a> {
    pub(super) text: Cow<'a, str>,
    /// Where a line feed stands that was more, in order.
    widened: Vec<usize>,
}

impl<'a> Plain<'a> {
    pub(super) fn of(original: &'a str) -> Self {
        if !original.contains('\r') {
            return Self { text: Cow::Borrowed(original), widened: Vec::new() };
        }
        let mut text = String::with_capacity(original.len());
        let mut widened = Vec::new();
        for piece in original.split_inclusive("\r\n") {
            match piece.strip_suffix("\r\n") {
                Some(line) => {
                    text.push_str(line);
                    widened.push(text.len());
                    text.push('\n');
                }
                None => text.push_str(piece),
            }
        }
        Self { text: Cow::Owned(text), widened }
    }

    /// The place in the original.
    pub(super) fn original(&self, at: usize) -> usize {
        at + self.widened.partition_point(|widened| *widened < at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lead_back_to_the_original() {
        let original = "a\r\nb\nc\r\n\r\nd";
        let plain = Plain::of(original);
        assert_eq!(plain.text, "a\nb\nc\n\nd");
        assert_eq!(plain.original(1), 1);
        assert_eq!(plain.original(2), 3);
        assert_eq!(&original[plain.original(4)..plain.original(7)], "c\r\n\r\n");
        assert_eq!(plain.original(plain.text.len()), original.len());
    }

    #[test]
    fn the_majority_decides_how_lines_end() {
        assert_eq!(Ending::of("a\r\nb\r\nc\n"), Ending::CrLf);
        assert_eq!(Ending::of("a\r\nb\n"), Ending::Lf);
        assert_eq!(Ending::of("abc"), Ending::Lf);
        assert!(Ending::CrLf.is_everywhere_in("a\r\nb") && !Ending::CrLf.is_everywhere_in("a\r\nb\n"));
        assert_eq!(Ending::CrLf.write("a\nb\r\n"), "a\r\nb\r\n");
    }
}
