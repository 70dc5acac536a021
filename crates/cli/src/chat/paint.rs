//! Styled text: pieces with a style, wrapped to a width, written with colours or without. It knows no terminal.

use std::borrow::Cow;

use crate::harmless::plain;
use crate::width::{beginning, first};

pub use crate::width::width;

/// A colour of the terminal's own palette, so that it fits every background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hue {
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

impl Hue {
    fn code(self) -> &'static str {
        match self {
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Blue => "34",
            Self::Magenta => "35",
            Self::Cyan => "36",
        }
    }
}

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    pub hue: Option<Hue>,
    weight: Weight,
    italic: Slant,
    line: Stroke,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Weight {
    #[default]
    Normal,
    Bold,
    Dim,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Slant {
    #[default]
    Upright,
    Italic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stroke {
    #[default]
    None,
    Under,
    Through,
}

impl Style {
    pub const PLAIN: Self =
        Self { hue: None, weight: Weight::Normal, italic: Slant::Upright, line: Stroke::None };
    pub const BOLD: Self = Self { weight: Weight::Bold, ..Self::PLAIN };
    pub const DIM: Self = Self { weight: Weight::Dim, ..Self::PLAIN };

    pub const fn of(hue: Hue) -> Self {
        Self { hue: Some(hue), ..Self::PLAIN }
    }

    pub const fn bold(self) -> Self {
        Self { weight: Weight::Bold, ..self }
    }

    pub const fn italic(self) -> Self {
        Self { italic: Slant::Italic, ..self }
    }

    pub const fn underlined(self) -> Self {
        Self { line: Stroke::Under, ..self }
    }

    pub const fn struck(self) -> Self {
        Self { line: Stroke::Through, ..self }
    }

    fn codes(self) -> String {
        let weight = match self.weight {
            Weight::Normal => None,
            Weight::Bold => Some("1"),
            Weight::Dim => Some("2"),
        };
        let slant = (self.italic == Slant::Italic).then_some("3");
        let line = match self.line {
            Stroke::None => None,
            Stroke::Under => Some("4"),
            Stroke::Through => Some("9"),
        };
        [weight, slant, line, self.hue.map(Hue::code)].into_iter().flatten().collect::<Vec<_>>().join(";")
    }
}

/// A piece of text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub text: String,
    pub style: Style,
}

impl Span {
    /// A piece that cannot deceive the eye, whoever wrote it.
    pub fn new(text: impl Into<String>, style: Style) -> Self {
        let text = text.into();
        let text = match plain(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(plain) => plain,
        };
        Self { text, style }
    }

    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Style::PLAIN)
    }
}

/// One line on the screen.
pub type Line = Vec<Span>;

/// Whether styles are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    On,
    Off,
}

/// A line as it is sent to the terminal.
pub fn written(line: &[Span], colour: Colour) -> String {
    let mut text = begun(line, colour);
    text.truncate(text.trim_end_matches(' ').len());
    text
}

/// The same of a line that goes on, with the blanks at its end.
pub fn begun(line: &[Span], colour: Colour) -> String {
    let mut text = String::new();
    for span in line {
        let codes = if colour == Colour::On { span.style.codes() } else { String::new() };
        if codes.is_empty() {
            text.push_str(&span.text);
        } else {
            text.push_str(&format!("\u{1b}[{codes}m{}\u{1b}[0m", span.text));
        }
    }
    text
}

pub fn line_width(line: &[Span]) -> usize {
    line.iter().map(|span| width(&span.text)).sum()
}

/// The beginning of a line that fits the width, with a mark where something was cut.
pub fn cut(line: &[Span], room: usize) -> Line {
    if line_width(line) <= room {
        return line.to_vec();
    }
    let (mut kept, mut left) = (Vec::new(), room.saturating_sub(1));
    for span in line {
        let text = beginning(&span.text, left);
        left -= width(text);
        let whole = text.len() == span.text.len();
        if !text.is_empty() {
            kept.push(Span::new(text, span.style));
        }
        if !whole {
            break;
        }
    }
    kept.push(Span::new("…", Style::DIM));
    kept
}

/// What stands at the beginning of wrapped lines: of the first, and of the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Margin {
    pub first: Line,
    pub rest: Line,
}

/// Breaks text between words so that every line fits; a word longer than a line is broken where it must. A line feed in a
/// piece begins a new line.
pub fn wrap(spans: &[Span], room: usize, margin: &Margin) -> Vec<Line> {
    let mut out = Wrapping {
        lines: Vec::new(),
        line: margin.first.clone(),
        used: line_width(&margin.first),
        margin,
        room,
        empty: true,
    };
    let mut word: Line = Vec::new();
    for span in spans {
        for piece in span.text.split_inclusive([' ', '\n']) {
            let text = piece.trim_end_matches([' ', '\n']);
            if !text.is_empty() {
                word.push(Span::new(text, span.style));
            }
            if piece.ends_with('\n') {
                out.word(std::mem::take(&mut word));
                out.end_line();
            } else if piece.ends_with(' ') {
                out.word(std::mem::take(&mut word));
                out.blank(span.style);
            }
        }
    }
    out.word(word);
    out.end_line();
    out.lines
}

/// Lines as they are, with every blank; one that is longer than the room goes on in the next.
pub fn exact(text: &str, style: Style, room: usize, margin: &Margin) -> Vec<Line> {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let mut rest = line;
        loop {
            let mut row = if lines.is_empty() { margin.first.clone() } else { margin.rest.clone() };
            let mut head = beginning(rest, room.saturating_sub(line_width(&row)));
            if head.is_empty() {
                // Not even one character fits: it is shown all the same, else this would never end.
                head = first(rest);
            }
            row.push(Span::new(head, style));
            lines.push(row);
            rest = rest.get(head.len()..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
        }
    }
    lines
}

/// Pieces side by side, two blanks between them, as many in a line as fit; none is broken.
pub fn packed(pieces: Vec<Line>, room: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for piece in pieces {
        match lines.last_mut().filter(|line| line_width(line) + 2 + line_width(&piece) <= room) {
            Some(line) => {
                line.push(Span::plain("  "));
                line.extend(piece);
            }
            None => lines.push(piece),
        }
    }
    lines
}

struct Wrapping<'a> {
    lines: Vec<Line>,
    line: Line,
    used: usize,
    margin: &'a Margin,
    room: usize,
    /// Whether the line holds nothing but its margin.
    empty: bool,
}

impl Wrapping<'_> {
    fn word(&mut self, word: Line) {
        let size = line_width(&word);
        if size == 0 {
            return;
        }
        if !self.empty && self.used + size > self.room {
            self.end_line();
        }
        for span in word {
            self.piece(&span);
        }
    }

    /// A piece of a word, broken where even an empty line has no room for it.
    fn piece(&mut self, span: &Span) {
        let mut text = span.text.as_str();
        while self.used + width(text) > self.room {
            let mut head = beginning(text, self.room.saturating_sub(self.used));
            if head.is_empty() && self.empty {
                // Not even one character fits: it is shown all the same, else this would never end.
                head = first(text);
            }
            if !head.is_empty() {
                self.line.push(Span::new(head, span.style));
                self.empty = false;
            }
            text = text.get(head.len()..).unwrap_or_default();
            if text.is_empty() {
                self.used = self.room;
                return;
            }
            self.end_line();
        }
        if !text.is_empty() {
            self.line.push(Span::new(text, span.style));
            self.used += width(text);
            self.empty = false;
        }
    }

    fn blank(&mut self, style: Style) {
        if !self.empty && self.used < self.room {
            self.line.push(Span::new(" ", style));
            self.used += 1;
        }
    }

    fn end_line(&mut self) {
        let next = self.margin.rest.clone();
        self.used = line_width(&next);
        self.empty = true;
        self.lines.push(std::mem::replace(&mut self.line, next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, room: usize) -> Vec<String> {
        let lines = wrap(&[Span::plain(text)], room, &Margin::default());
        lines.iter().map(|line| written(line, Colour::Off)).collect()
    }

    #[test]
    fn text_is_broken_between_words_and_long_words_where_they_must_be() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrapped("日本語 テキスト", 6), ["日本語", "テキス", "ト"]);
        assert_eq!(wrapped("日", 1), ["日"]);
        assert_eq!(wrapped("a\nb", 9), ["a", "b"]);
        assert_eq!(wrapped("", 9), [""]);
    }

    #[test]
    fn exact_lines_keep_their_blanks() {
        let margin = Margin { first: vec![Span::plain("? ")], rest: vec![Span::plain("  ")] };
        let lines = exact("a:\n    b  c\n\n  日本語", Style::PLAIN, 9, &margin);
        let lines: Vec<_> = lines.iter().map(|line| written(line, Colour::Off)).collect();
        assert_eq!(lines, ["? a:", "      b", "  c", "", "    日本", "  語"]);
        assert_eq!(exact("日", Style::PLAIN, 1, &Margin::default()).len(), 1);
    }

    #[test]
    fn a_word_of_two_styles_stays_together() {
        let spans = [Span::plain("see "), Span::new("bold", Style::BOLD), Span::plain(".")];
        let lines: Vec<_> =
            wrap(&spans, 8, &Margin::default()).iter().map(|line| written(line, Colour::On)).collect();
        assert_eq!(lines, ["see", "\u{1b}[1mbold\u{1b}[0m."]);
    }

    #[test]
    fn margins_stand_before_every_line() {
        let margin = Margin { first: vec![Span::plain("• ")], rest: vec![Span::plain("  ")] };
        let lines = wrap(&[Span::plain("one two three")], 9, &margin);
        let lines: Vec<_> = lines.iter().map(|line| written(line, Colour::Off)).collect();
        assert_eq!(lines, ["• one two", "  three"]);
    }

    #[test]
    fn what_is_cut_has_a_mark() {
        let line = [Span::plain("日本語"), Span::plain("abc")];
        assert_eq!(written(&cut(&line, 6), Colour::Off), "日本…");
        assert_eq!(written(&cut(&line, 9), Colour::Off), "日本語abc");
    }
}
