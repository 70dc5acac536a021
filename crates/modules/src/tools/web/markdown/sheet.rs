//! Lines of text and what each of them begins with: the marks of quotes and items, and the distance to the line before.
//!
//! Nothing is written until there is text for it, so what is empty leaves no trace.

use std::borrow::Cow;

use super::escape::{self, After, At};
use super::mark::{Mark, OpenMark, image};

/// How far lines are moved to the right at most; what is deeper is as far as that.
const WIDEST: usize = 18;

/// What stands between what was written and what comes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    #[default]
    None,
    Space,
    /// A new line of the same text.
    Break,
    /// A new line of another text.
    Line,
    /// An empty line.
    Block,
}

#[derive(Debug)]
struct Margin {
    first: Cow<'static, str>,
    rest: Cow<'static, str>,
    is_begun: bool,
}

#[derive(Debug, Default)]
pub(super) struct Sheet {
    pub(super) out: String,
    gap: Gap,
    margins: Vec<Margin>,
    /// Where the text of the last line begins.
    line: usize,
    is_heading: bool,
    is_cell: bool,
    pub(super) marks: Vec<OpenMark>,
    /// Marks that ended, innermost first; another of the same that follows at once goes on where they ended.
    pub(super) ended: Vec<OpenMark>,
}

impl Sheet {
    pub(super) fn begin_cell(&mut self) {
        self.is_cell = true;
    }

    pub(super) fn is_heading(&self) -> bool {
        self.is_heading
    }

    /// Whether lines stand further right, as those of an item do.
    pub(super) fn is_indented(&self) -> bool {
        self.margins.last().is_some_and(|margin| margin.rest.starts_with(' '))
    }

    /// Keeps at least this distance.
    pub(super) fn raise(&mut self, gap: Gap) {
        let gap = if self.is_heading { gap.min(Gap::Space) } else { gap };
        if !self.is_fresh() {
            self.gap = self.gap.max(gap);
        }
    }

    /// Keeps exactly this distance.
    pub(super) fn set(&mut self, gap: Gap) {
        if !self.is_fresh() {
            self.gap = gap;
        }
    }

    pub(super) fn line_break(&mut self) {
        // Two in a row are how many pages part their paragraphs.
        self.raise(if self.gap == Gap::Break { Gap::Block } else { Gap::Break });
    }

    /// Lines begin with `rest` after what they begin with already, the next one with `first`.
    pub(super) fn begin_margin(&mut self, first: Cow<'static, str>, rest: Cow<'static, str>) {
        let width: usize = self.margins.iter().map(|margin| margin.rest.len()).sum();
        let rest = if width + rest.len() > WIDEST { Cow::default() } else { rest };
        self.margins.push(Margin { first, rest, is_begun: false });
    }

    /// Lines stand further right, and what comes next needs no mark of its own for it.
    pub(super) fn begin_indent(&mut self) {
        self.begin_margin("  ".into(), "  ".into());
        if let Some(margin) = self.margins.last_mut() {
            margin.is_begun = true;
        }
    }

    pub(super) fn end_margin(&mut self) {
        self.margins.pop();
    }

    pub(super) fn begin_heading(&mut self, level: usize) {
        self.begin_margin(format!("{} ", "#".repeat(level)).into(), Cow::default());
        self.is_heading = true;
    }

    pub(super) fn end_heading(&mut self) {
        let begun = self.margins.pop().is_some_and(|margin| margin.is_begun);
        let bare = self.out.trim_end_matches('#').len();
        if begun && bare < self.out.len() && self.out.get(..bare).is_some_and(|text| text.ends_with(' ')) {
            // They would count as the end of the heading's marks.
            self.out.insert(bare, '\\');
        }
        self.is_heading = false;
        self.raise(Gap::Block);
    }

    /// Text with any whitespace in it.
    pub(super) fn text(&mut self, text: &str) {
        if self.is_anchor(text) {
            return;
        }
        let mut rest = text;
        loop {
            let trimmed = rest.trim_start();
            if trimmed.len() < rest.len() {
                self.raise(Gap::Space);
            }
            if trimmed.is_empty() {
                return;
            }
            let end = trimmed.find(char::is_whitespace).unwrap_or(trimmed.len());
            let (word, after) = trimmed.split_at(end);
            self.word(word, if after.is_empty() { After::Unknown } else { After::Space });
            rest = after;
        }
    }

    fn word(&mut self, word: &str, after: After) {
        let unseen = |c: char| c.is_control() || matches!(c, '\u{ad}' | '\u{200b}' | '\u{feff}');
        let word =
            if word.contains(unseen) { Cow::Owned(word.replace(unseen, "")) } else { Cow::Borrowed(word) };
        if word.is_empty() {
            return;
        }
        self.ready();
        if self.marks.iter().any(|open| open.mark == Mark::Code) {
            self.out.push_str(&word);
            return;
        }
        let at = if self.begins_line(&word, after) { At::LineStart } else { At::Inside };
        escape::put(&mut self.out, &word, at, after);
    }

    /// Whether what the next word begins with could begin something else.
    fn begins_line(&self, word: &str, after: After) -> bool {
        if self.out.len() != self.line || self.is_heading {
            return false;
        }
        // The first line of a cell is likely to stand in the middle of a row.
        let heads_cell = word.starts_with('#') && after == After::Space;
        !(self.is_cell && self.line == 0) || heads_cell
    }

    pub(super) fn image(&mut self, alt: &str, address: &str) {
        if self.marks.iter().any(|open| open.mark == Mark::Code) {
            return;
        }
        self.ready();
        image(&mut self.out, alt, address);
    }

    /// Lines as they are, with nothing beside them.
    pub(super) fn block(&mut self, text: &str) {
        self.raise(Gap::Block);
        self.settle();
        self.suspend();
        let gap = std::mem::take(&mut self.gap);
        self.new_line(gap);
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.out.push('\n');
                let begins = self.out.len();
                self.margins.iter().for_each(|margin| self.out.push_str(&margin.rest));
                if line.is_empty() {
                    self.trim_line(begins);
                }
            }
            self.out.push_str(line);
        }
        self.raise(Gap::Block);
    }

    pub(super) fn finish(mut self) -> String {
        self.settle();
        self.suspend();
        self.out
    }

    /// Makes everything ready for text to be written.
    fn ready(&mut self) {
        let gap = std::mem::take(&mut self.gap);
        if self.out.is_empty() || gap >= Gap::Break {
            self.settle();
            if gap >= Gap::Line {
                self.suspend();
            }
            self.new_line(gap);
        } else if gap == Gap::Space {
            self.settle();
            self.out.push(' ');
        } else {
            self.rejoin();
        }
        self.open_marks();
    }

    fn new_line(&mut self, gap: Gap) {
        if !self.out.is_empty() {
            self.out.push('\n');
            if gap == Gap::Block {
                let begins = self.out.len();
                for margin in self.margins.iter().filter(|margin| margin.is_begun) {
                    self.out.push_str(&margin.rest);
                }
                self.trim_line(begins);
                self.out.push('\n');
            }
        }
        for margin in &mut self.margins {
            let begun = std::mem::replace(&mut margin.is_begun, true);
            self.out.push_str(if begun { &margin.rest } else { &margin.first });
        }
        self.line = self.out.len();
    }

    /// Removes the blanks at the end of a line that begins here.
    fn trim_line(&mut self, begins: usize) {
        let end = self.out.trim_end_matches(' ').len();
        self.out.truncate(end.max(begins));
    }

    /// Whether an item or a quote has begun and nothing of it is written.
    fn is_fresh(&self) -> bool {
        self.margins.last().is_some_and(|margin| !margin.is_begun)
    }

    /// Whether this is no word but a sign that leads to where it stands, as headings have it.
    fn is_anchor(&self, text: &str) -> bool {
        matches!(text.trim(), "¶" | "§" | "#" | "🔗" | "\u{f0c1}")
            && self.marks.last().is_some_and(OpenMark::is_unwritten_anchor)
    }
}
