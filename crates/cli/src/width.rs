//! How many columns text takes on a terminal, and as much of it as fits. Nothing else in this program measures text.
//!
//! Terminals do not agree: a family of emoji that are joined is two columns wide on one and eight on another, a heart that is
//! made an emoji one or two. What is taken here is the most that any of them takes, so that no line wraps that was thought to
//! fit. What belongs together on the screen is never torn.

use std::ops::RangeInclusive;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What joins two characters to one picture.
const JOINER: char = '\u{200d}';

/// What gives the character before it the colour of a skin.
const TONES: RangeInclusive<char> = '\u{1f3fb}'..='\u{1f3ff}';
/// Two of these are a flag.
const FLAGS: RangeInclusive<char> = '\u{1f1e6}'..='\u{1f1ff}';

/// How many columns a text takes at most.
pub fn width(text: &str) -> usize {
    match text.is_ascii() {
        true => text.len(),
        false => pieces(text).map(piece_width).sum(),
    }
}

/// As much of the beginning as fits.
pub fn beginning(text: &str, room: usize) -> &str {
    text.get(..fitting(pieces(text), room)).unwrap_or_default()
}

/// As much of the end as fits.
pub fn ending(text: &str, room: usize) -> &str {
    let pieces: Vec<_> = pieces(text).collect();
    text.get(text.len() - fitting(pieces.into_iter().rev(), room)..).unwrap_or_default()
}

/// The first thing that stands on the screen by itself, however wide.
pub fn first(text: &str) -> &str {
    pieces(text).next().unwrap_or_default()
}

/// How many bytes of these pieces fit.
fn fitting<'a>(pieces: impl Iterator<Item = &'a str>, room: usize) -> usize {
    let (mut used, mut bytes) = (0, 0);
    for piece in pieces {
        used += piece_width(piece);
        if used > room {
            break;
        }
        bytes += piece.len();
    }
    bytes
}

/// Characters, each with what is drawn over it or joined to it.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let mut last = first;
        let begins = |(at, c): (usize, char)| {
            let before = std::mem::replace(&mut last, c);
            let is_second_half = at == first.len_utf8() && [first, c].iter().all(|c| FLAGS.contains(c));
            let belongs = before == JOINER || TONES.contains(&c) || is_second_half || c.width() == Some(0);
            (at > 0 && !belongs).then_some(at)
        };
        let (piece, behind) = rest.split_at(rest.char_indices().find_map(begins).unwrap_or(rest.len()));
        rest = behind;
        Some(piece)
    })
}

fn piece_width(piece: &str) -> usize {
    let alone: usize = piece.chars().map(|c| c.width().unwrap_or(0)).sum();
    alone.max(piece.width())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_takes_the_most_that_any_terminal_gives_it() {
        let widths = ["abc", "日本", "e\u{301}", "❤\u{fe0f}", "👩\u{200d}👧", "👍🏽", "🇩🇪", ""].map(width);
        assert_eq!(widths, [3, 4, 1, 2, 4, 4, 2, 0]);
    }

    #[test]
    fn what_belongs_together_is_not_torn() {
        let text = "a👩\u{200d}👧e\u{301}❤\u{fe0f}z";
        assert_eq!(
            [0, 1, 4, 5, 6, 7, 8].map(|room| beginning(text, room)),
            [
                "",
                "a",
                "a",
                "a👩\u{200d}👧",
                "a👩\u{200d}👧e\u{301}",
                "a👩\u{200d}👧e\u{301}",
                "a👩\u{200d}👧e\u{301}❤\u{fe0f}",
            ]
        );
        assert_eq!(
            [0, 2, 3, 4].map(|room| ending(text, room)),
            ["", "z", "❤\u{fe0f}z", "e\u{301}❤\u{fe0f}z"]
        );
        assert_eq!(first("e\u{301}x"), "e\u{301}");
        let text = "a👍🏽🇩🇪🇫🇷";
        assert_eq!(
            [2, 4, 5, 6, 7, 8, 9].map(|room| beginning(text, room)),
            ["a", "a", "a👍🏽", "a👍🏽", "a👍🏽🇩🇪", "a👍🏽🇩🇪", text]
        );
        assert_eq!([1, 2, 5, 7, 8].map(|room| ending(text, room)), ["", "🇫🇷", "🇩🇪🇫🇷", "🇩🇪🇫🇷", "👍🏽🇩🇪🇫🇷"]);
    }
}
