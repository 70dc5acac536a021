//! What stands in `pre`: text as it is, between fences.

use super::Tag;

/// More empty lines than this, one after the other, are no text any more.
const EMPTY_LINES: usize = 20;

#[derive(Debug)]
pub(super) struct Listing {
    text: String,
    language: String,
    /// Newlines at the end of the text.
    newlines: usize,
    fresh: bool,
}

impl Listing {
    pub(super) fn new(language: &str) -> Self {
        Self { text: String::new(), language: language.to_owned(), newlines: 0, fresh: true }
    }

    /// An element begins inside: a block has its own lines, and often it is the code inside that tells the language.
    pub(super) fn begin(&mut self, tag: Tag, attribute: &str) {
        match tag {
            Tag::Code if self.language.is_empty() => attribute.clone_into(&mut self.language),
            Tag::Cell if !self.text.is_empty() && self.newlines == 0 => self.text.push(' '),
            Tag::Strong | Tag::Em | Tag::Code | Tag::Link | Tag::Cell => {}
            _ => self.line(),
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        let mut text = text;
        if std::mem::take(&mut self.fresh) {
            // The first newline only makes the page's own source look better.
            text = text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n')).unwrap_or(text);
        }
        let mut before = '\0';
        for c in text.chars() {
            match c {
                '\n' if before == '\r' => {}
                '\n' | '\r' => self.newline(),
                '\u{a0}' => self.put(' '),
                '\t' => self.put(c),
                c if c.is_control() => {}
                c => self.put(c),
            }
            before = c;
        }
    }

    /// What follows begins on a line of its own.
    pub(super) fn line(&mut self) {
        if !self.text.is_empty() && self.newlines == 0 {
            self.newline();
        }
    }

    /// Parts the number that a line begins with from the line; on a page its style does.
    pub(super) fn end_number(&mut self) {
        let digits = self.text.bytes().rev().take(8).take_while(u8::is_ascii_digit).count();
        let before = self.text.bytes().rev().nth(digits);
        if (1..8).contains(&digits) && before.is_none_or(|byte| byte == b'\n') {
            self.put(' ');
        }
    }

    /// The text, when it is one line.
    pub(super) fn one_line(&self) -> Option<&str> {
        let text = self.text.trim();
        (!text.contains('\n')).then_some(text)
    }

    /// Fenced; nothing when there is nothing to see.
    pub(super) fn finish(self) -> String {
        let text = self.text.trim_end();
        if text.is_empty() {
            return String::new();
        }
        let fence = "`".repeat((longest_run(text) + 1).max(3));
        format!("{fence}{}\n{text}\n{fence}", self.language)
    }

    fn put(&mut self, c: char) {
        self.text.push(c);
        self.newlines = 0;
    }

    fn newline(&mut self) {
        if self.newlines <= EMPTY_LINES {
            self.text.push('\n');
        }
        self.newlines += 1;
    }
}

/// How many backticks stand side by side at most.
pub(super) fn longest_run(text: &str) -> usize {
    let (mut run, mut most) = (0, 0);
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        most = most.max(run);
    }
    most
}
