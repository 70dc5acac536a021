//! Markdown as it comes in: what is finished is rendered once and never again, so that a long answer costs its length.
//!
//! A block ends at a blank line, at a heading, at the next item of a list or where code begins; code goes out line by line.
//! How one block looks is `markdown/block.rs`'s business. Empty lines stand where the author put them, never two in a row.

use std::borrow::Cow;

use amplifier_protocol::text::{sanitize, visible};

use super::highlight::Highlighter;
use super::paint::{Line, Margin, Span, Style, wrap};

mod block;

use block::render;

/// How much of an unfinished block is rendered for a look at it; of more only the end is shown.
const DRAFT: usize = 4_000;

/// Text without what could steer the terminal: no sequences, no control characters, no tabs.
pub fn safe(text: &str) -> Cow<'_, str> {
    let text =
        if text.contains('\u{1b}') { Cow::Owned(without_sequences(text)) } else { Cow::Borrowed(text) };
    let text = match text {
        Cow::Borrowed(text) => sanitize(text),
        Cow::Owned(text) => Cow::Owned(sanitize(&text).into_owned()),
    };
    if text.contains(['\t', '\r']) { Cow::Owned(text.replace('\r', "").replace('\t', "    ")) } else { text }
}

/// Text of a question: all of it, with what could steer the terminal or deceive the eye spelled out.
pub fn literal(text: &str) -> Cow<'_, str> {
    let text = visible(text);
    if text.contains('\t') { Cow::Owned(text.replace('\t', "    ")) } else { text }
}

/// Colours of a program's output, and worse: without their first character the rest would stand there as text.
fn without_sequences(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\u{1b}') {
        out.push_str(before);
        rest = match behind.chars().next() {
            Some('[') => behind_parameters(behind),
            Some(']' | 'P' | 'X' | '^' | '_') => behind_string(behind),
            // One character of its own.
            Some(c) if c != '\n' && c != '\u{1b}' => behind.get(c.len_utf8()..).unwrap_or_default(),
            _ => behind,
        };
    }
    out.push_str(rest);
    out
}

/// Behind `[`, parameters and one letter; what is none of them is text again.
fn behind_parameters(text: &str) -> &str {
    let rest = text.get(1..).unwrap_or_default().trim_start_matches(|c| matches!(c, ' '..='?'));
    rest.strip_prefix(|c| matches!(c, '@'..='~')).unwrap_or(rest)
}

/// Behind a string with an end of its own. One that does not end in its line is none: its text is shown, for nothing tells
/// it from what follows.
fn behind_string(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    let ends = ["\u{7}", "\u{1b}\\", "\u{9c}"];
    let end = ends.iter().filter_map(|end| line.find(end).map(|at| at + end.len())).min();
    text.get(end.unwrap_or(1)..).unwrap_or_default()
}

/// An answer that is still coming.
pub struct Stream {
    room: usize,
    /// The line that has no end yet.
    pending: String,
    block: String,
    /// How far the block is indented by the lists around it.
    indent: usize,
    place: Place,
    in_list: bool,
    gap: Gap,
}

enum Place {
    Text,
    Code { fence: Fence, indent: usize, colours: Option<Highlighter> },
}

/// What stands before the next line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gap {
    /// Nothing was shown yet: no empty line at the very beginning.
    Beginning,
    None,
    Blank,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: char,
    length: usize,
}

impl Stream {
    pub fn new(room: usize) -> Self {
        Self {
            room: room.max(1),
            pending: String::new(),
            block: String::new(),
            indent: 0,
            place: Place::Text,
            in_list: false,
            gap: Gap::Beginning,
        }
    }

    /// Takes another width for what comes.
    pub fn resize(&mut self, room: usize) {
        self.room = room.max(1);
    }

    /// Takes a piece and returns the lines that are finished with it.
    pub fn push(&mut self, text: &str) -> Vec<Line> {
        let mut lines = Vec::new();
        for piece in text.split_inclusive('\n') {
            self.pending.push_str(piece);
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.pending);
                self.take(safe(line.trim_end_matches(['\n', '\r'])).as_ref(), &mut lines);
            }
        }
        lines
    }

    /// The rest, and ready for another answer.
    pub fn finish(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        if !self.pending.is_empty() {
            let line = std::mem::take(&mut self.pending);
            self.take(safe(&line).as_ref(), &mut lines);
        }
        self.flush(&mut lines);
        *self = Self::new(self.room);
        lines
    }

    /// How the unfinished end would look now.
    pub fn draft(&self) -> Vec<Line> {
        let pending = safe(&self.pending);
        if let Place::Code { indent, .. } = &self.place {
            return if pending.is_empty() {
                Vec::new()
            } else {
                vec![code_line(vec![Span::plain(pending)], *indent)]
            };
        }
        let whole = self.block.len() + pending.len();
        if whole == 0 {
            return Vec::new();
        }
        if whole > DRAFT {
            let text = format!("{}{pending}", self.block);
            let from = text.ceil_char_boundary(text.len().saturating_sub(DRAFT / 4));
            let tail = text.get(from..).unwrap_or_default().replace('\n', " ");
            return wrap(&[Span::plain(tail)], self.room, &Margin::default());
        }
        let mut lines = if self.gap == Gap::Blank { vec![Line::new()] } else { Vec::new() };
        // A list's item that is not begun yet is no end of the block before it.
        lines.extend(render(&format!("{}{pending}", self.block), self.indent, self.room));
        lines
    }

    fn take(&mut self, line: &str, lines: &mut Vec<Line>) {
        if let Place::Code { fence, indent, colours } = &mut self.place {
            let text = line.get(blanks(line).min(*indent)..).unwrap_or_default();
            if fence.closes(line) {
                self.place = Place::Text;
                return;
            }
            let code = match colours {
                Some(colours) => colours.line(text),
                None => vec![Span::plain(text)],
            };
            lines.push(code_line(code, *indent));
            return;
        }
        if line.trim().is_empty() {
            self.flush(lines);
            if self.gap == Gap::None {
                self.gap = Gap::Blank;
            }
            return;
        }
        self.text(line, lines);
    }

    fn text(&mut self, line: &str, lines: &mut Vec<Line>) {
        let (deep, bare) = (blanks(line), line.trim_start());
        if let Some((fence, language)) = Fence::opening(line).filter(|_| self.in_list || deep < 4) {
            self.flush(lines);
            self.space(lines);
            self.place = Place::Code { fence, indent: deep, colours: Highlighter::new(language) };
            return;
        }
        if is_item(bare) && (deep < 4 || self.in_list) {
            self.flush(lines);
            self.in_list = true;
            self.begin(deep, line);
        } else if is_heading(bare) && deep < 4 {
            self.flush(lines);
            self.in_list = false;
            self.begin(0, line);
            self.flush(lines);
        } else if self.block.is_empty() {
            // What is indented behind an item goes on with it; everything else ends the list.
            self.in_list = self.in_list && deep >= 2;
            self.begin(if self.in_list { deep } else { 0 }, line);
        } else {
            self.block.push_str(line);
            self.block.push('\n');
        }
    }

    fn begin(&mut self, indent: usize, line: &str) {
        self.indent = indent;
        self.block.push_str(line);
        self.block.push('\n');
    }

    fn flush(&mut self, lines: &mut Vec<Line>) {
        if self.block.is_empty() {
            return;
        }
        self.space(lines);
        lines.extend(render(&self.block, self.indent, self.room));
        self.block.clear();
        self.indent = 0;
    }

    /// The empty line that the author put here.
    fn space(&mut self, lines: &mut Vec<Line>) {
        if self.gap == Gap::Blank {
            lines.push(Line::new());
        }
        self.gap = Gap::None;
    }
}

impl Fence {
    fn opening(line: &str) -> Option<(Self, &str)> {
        let bare = line.trim_start();
        let mark = bare.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let rest = bare.trim_start_matches(mark);
        let length = bare.len() - rest.len();
        let fits = length >= 3 && !(mark == '`' && rest.contains('`'));
        fits.then_some((Self { mark, length }, rest.trim()))
    }

    fn closes(self, line: &str) -> bool {
        let bare = line.trim();
        bare.len() >= self.length && bare.chars().all(|c| c == self.mark)
    }
}

fn blanks(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_heading(bare: &str) -> bool {
    let rest = bare.trim_start_matches('#');
    let level = bare.len() - rest.len();
    (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with(' '))
}

/// Whether a line begins an item of a list.
fn is_item(bare: &str) -> bool {
    let rest = match bare.strip_prefix(['-', '*', '+']) {
        Some(rest) => rest,
        None => {
            let rest = bare.trim_start_matches(|c: char| c.is_ascii_digit());
            let digits = bare.len() - rest.len();
            if digits == 0 || digits > 9 {
                return false;
            }
            match rest.strip_prefix(['.', ')']) {
                Some(rest) => rest,
                None => return false,
            }
        }
    };
    rest.starts_with(' ') && !is_rule(bare)
}

/// `* * *` is a line across, not an item.
fn is_rule(bare: &str) -> bool {
    let mut marks = bare.chars().filter(|c| *c != ' ');
    let Some(first) = marks.next().filter(|c| matches!(c, '-' | '*' | '_')) else { return false };
    bare.chars().filter(|c| *c == first).count() >= 3 && marks.all(|c| c == first)
}

/// A line of code is never wrapped by us: what is copied from the screen must be what was written.
fn code_line(code: Line, indent: usize) -> Line {
    let mut line = vec![Span::new(" ".repeat(indent + 2), Style::PLAIN)];
    line.extend(code);
    line
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
