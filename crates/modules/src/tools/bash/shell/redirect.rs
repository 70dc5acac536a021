//! Redirects and here-documents.

use super::parser::{Here, Parser};
use super::{Part, Redirect, RedirectKind, Unreadable, Word};

impl Parser {
    /// A redirect, if one stands here.
    pub(super) fn redirect(&mut self) -> Result<Option<Redirect>, Unreadable> {
        let begin = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        let here_string = self.eat("<<<");
        if !here_string && self.eat("<<") {
            let indent = if self.eat("-") { '\t' } else { '\n' };
            return self.here_document(indent).map(Some);
        }
        let kind = if here_string {
            RedirectKind::Here
        } else if self.starts("<(") || self.starts(">(") {
            self.at = begin;
            return Ok(None);
        } else if self.eat("&>>") || self.eat("&>") || self.eat(">>") || self.eat(">|") || self.eat("<>") {
            RedirectKind::Write
        } else if self.eat(">&") || self.eat("<&") {
            RedirectKind::Duplicate
        } else if self.eat(">") {
            RedirectKind::Write
        } else if self.eat("<") {
            RedirectKind::Read
        } else {
            self.at = begin;
            return Ok(None);
        };
        self.skip_blanks();
        let target = self.one_word()?;
        // `>&file` writes a file; only digits and `-` name a descriptor.
        let descriptor = |text: String| text.chars().all(|c| c.is_ascii_digit() || c == '-');
        let kind = match kind {
            RedirectKind::Duplicate if !target.literal().is_some_and(descriptor) => RedirectKind::Write,
            kind => kind,
        };
        Ok(Some(Redirect { kind, target }))
    }

    /// The text of a here-document; `indent` is taken away before each line, and no line holds a `\n`.
    fn here_document(&mut self, indent: char) -> Result<Redirect, Unreadable> {
        self.skip_blanks();
        let delimiter = self.one_word()?;
        let quoted = delimiter.parts.iter().any(|part| matches!(part, Part::Text { quoted: true, .. }));
        let end = delimiter.literal().ok_or(Unreadable::HereDocument)?;
        let line_end = self.chars.iter().skip(self.at).position(|c| *c == '\n');
        let line_end = line_end.map(|ahead| self.at + ahead).ok_or(Unreadable::HereDocument)?;
        let mut at = match &self.here {
            Some(here) if here.line_end == line_end && here.depth == self.depth => here.resume,
            Some(_) => return Err(Unreadable::HereDocument),
            None => line_end + 1,
        };
        let mut body = String::new();
        loop {
            let line: String = self.chars.iter().skip(at).take_while(|c| **c != '\n').collect();
            let past = at + line.chars().count() + 1;
            let shown = line.trim_start_matches(indent);
            if shown == end {
                self.here = Some(Here { line_end, resume: past.min(self.chars.len()), depth: self.depth });
                break;
            }
            if past > self.chars.len() {
                return Err(Unreadable::HereDocument);
            }
            body.push_str(shown);
            body.push('\n');
            at = past;
        }
        let target = if quoted { Word::text(body) } else { self.text_of(&body)? };
        Ok(Redirect { kind: RedirectKind::Here, target })
    }

    /// Text that is expanded as if it stood in double quotes.
    fn text_of(&self, text: &str) -> Result<Word, Unreadable> {
        let mut inner = Parser { chars: text.chars().collect(), at: 0, depth: self.depth, here: None };
        inner.deeper(|inner| inner.double_quoted(None))
    }
}
