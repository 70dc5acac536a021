//! The grammar: lists, pipelines, compound commands, redirects. Words are read in `words.rs`.

use super::expand::braces;
use super::{Command, Group, LONGEST, Pipeline, Redirect, RedirectKind, Script, Simple, Unreadable, Word};

const DEEPEST: usize = 40;
/// Words that end a list and belong to whoever began it.
const CLOSERS: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "}"];

/// Reads a whole command.
pub(crate) fn parse(command: &str) -> Result<Script, Unreadable> {
    parse_at(command, 0)
}

pub(super) fn parse_at(command: &str, depth: usize) -> Result<Script, Unreadable> {
    if command.len() > LONGEST {
        return Err(Unreadable::TooLong);
    }
    if command.contains('\0') {
        return Err(Unreadable::Nul);
    }
    let mut parser = Parser { chars: command.chars().collect(), at: 0, depth, here: None };
    let script = parser.list()?;
    match parser.peek() {
        None if parser.here.is_some() => Err(Unreadable::HereDocument),
        None => Ok(script),
        Some(_) => Err(parser.unexpected()),
    }
}

pub(super) struct Parser {
    pub(super) chars: Vec<char>,
    pub(super) at: usize,
    pub(super) depth: usize,
    here: Option<Here>,
}

/// Here-documents of this line: their text begins after `line_end` and ends at `resume`.
struct Here {
    line_end: usize,
    resume: usize,
    depth: usize,
}

impl Parser {
    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    pub(super) fn starts(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, c)| self.peek_at(ahead) == Some(c))
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let starts = self.starts(text);
        if starts {
            self.at += text.chars().count();
        }
        starts
    }

    pub(super) fn unexpected(&self) -> Unreadable {
        let near = self.chars.iter().skip(self.at).take(12).collect();
        Unreadable::Unexpected(near)
    }

    pub(super) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Unreadable>,
    ) -> Result<T, Unreadable> {
        if self.depth >= DEEPEST {
            return Err(Unreadable::TooDeep);
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// The unquoted word that stands here, if it is one that the grammar may know.
    fn keyword(&self) -> Option<String> {
        let ends = |c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '<' | '>');
        let word: String = self.chars.iter().skip(self.at).take_while(|c| !ends(**c)).take(12).collect();
        let known = CLOSERS.contains(&word.as_str())
            || matches!(
                word.as_str(),
                "if" | "while"
                    | "until"
                    | "for"
                    | "select"
                    | "case"
                    | "function"
                    | "[["
                    | "{"
                    | "!"
                    | "time"
                    | "coproc"
            );
        known.then_some(word)
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\r') => self.at += 1,
                Some('\\') if self.peek_at(1) == Some('\n') => self.at += 2,
                Some('#') => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    /// Skips blanks, ends of lines and the here-documents that begin there.
    fn skip_lines(&mut self) -> Result<(), Unreadable> {
        loop {
            self.skip_blanks();
            if self.peek() != Some('\n') {
                return Ok(());
            }
            match &self.here {
                Some(here) if here.line_end == self.at && here.depth == self.depth => {
                    self.at = here.resume;
                    self.here = None;
                }
                // The shell would look for the text somewhere else than this reader does.
                Some(here) if here.line_end <= self.at => return Err(Unreadable::HereDocument),
                _ => self.at += 1,
            }
        }
    }

    /// Commands up to something that closes them, which is left in place.
    pub(super) fn list(&mut self) -> Result<Script, Unreadable> {
        self.deeper(|this| {
            let mut script = Script::default();
            loop {
                this.skip_lines()?;
                let closed = this.keyword().is_some_and(|word| CLOSERS.contains(&word.as_str()));
                if closed || matches!(this.peek(), None | Some(')')) || this.starts(";;") {
                    return Ok(script);
                }
                let mut pipeline = this.pipeline()?;
                this.skip_blanks();
                if this.eat("&&") || this.eat("||") {
                    script.pipelines.push(pipeline);
                    continue;
                }
                if !this.starts(";;") && !this.starts(";&") {
                    pipeline.background = this.eat("&");
                    let ended = pipeline.background || this.eat(";");
                    if !ended && !matches!(this.peek(), None | Some('\n' | ')')) {
                        return Err(this.unexpected());
                    }
                }
                script.pipelines.push(pipeline);
                if this.starts(";&") {
                    return Ok(script);
                }
            }
        })
    }

    fn pipeline(&mut self) -> Result<Pipeline, Unreadable> {
        let mut commands = Vec::new();
        loop {
            self.skip_lines()?;
            while matches!(self.keyword().as_deref(), Some("!" | "time" | "coproc")) {
                let length = self.keyword().map_or(1, |word| word.chars().count());
                self.at += length;
                self.skip_blanks();
                if self.eat("-p ") {
                    self.skip_blanks();
                }
            }
            commands.push(self.command()?);
            self.skip_blanks();
            if self.starts("||") || !self.eat("|") {
                return Ok(Pipeline { commands, background: false });
            }
            self.eat("&");
        }
    }

    fn command(&mut self) -> Result<Command, Unreadable> {
        if self.starts("((")
            && let Some(word) = self.arithmetic()?
        {
            return self.redirected(Group { words: vec![word], ..Group::default() });
        }
        if self.eat("(") {
            let body = self.list()?;
            self.expect(")")?;
            return self.redirected(Group { body, isolated: true, ..Group::default() });
        }
        let Some(keyword) = self.keyword() else { return self.simple() };
        let begin = self.at;
        self.at += keyword.chars().count();
        match keyword.as_str() {
            "{" => {
                let body = self.list()?;
                self.expect("}")?;
                self.redirected(Group { body, ..Group::default() })
            }
            "if" | "while" | "until" => self.blocks(if keyword == "if" { "fi" } else { "done" }),
            "for" | "select" => self.for_loop(),
            "case" => self.case(),
            "[[" => self.test(),
            "function" => {
                self.skip_blanks();
                let name = self.one_word()?.shown();
                self.skip_blanks();
                if self.eat("(") {
                    self.skip_blanks();
                    self.expect(")")?;
                }
                self.function(name)
            }
            _ => {
                self.at = begin;
                Err(self.unexpected())
            }
        }
    }

    pub(super) fn expect(&mut self, text: &'static str) -> Result<(), Unreadable> {
        self.skip_blanks();
        if self.eat(text) {
            return Ok(());
        }
        if self.peek().is_none() { Err(Unreadable::Unclosed(text)) } else { Err(self.unexpected()) }
    }

    /// Lists between keywords, up to the last one.
    fn blocks(&mut self, last: &'static str) -> Result<Command, Unreadable> {
        let mut group = Group::default();
        loop {
            group.body.pipelines.extend(self.list()?.pipelines);
            match self.keyword() {
                Some(word) if word == last => {
                    self.at += last.chars().count();
                    return self.redirected(group);
                }
                Some(word) if matches!(word.as_str(), "then" | "elif" | "else" | "do") => {
                    self.at += word.chars().count();
                }
                _ if self.peek().is_none() => return Err(Unreadable::Unclosed(last)),
                _ => return Err(self.unexpected()),
            }
        }
    }

    fn for_loop(&mut self) -> Result<Command, Unreadable> {
        self.skip_blanks();
        let mut words = Vec::new();
        if self.starts("((") {
            words.extend(self.arithmetic()?);
        }
        while !matches!(self.peek(), None | Some('\n' | ';')) {
            words.push(self.one_word()?);
            self.skip_blanks();
        }
        self.eat(";");
        self.skip_lines()?;
        if self.keyword().as_deref() != Some("do") && self.keyword().as_deref() != Some("{") {
            return Err(self.unexpected());
        }
        let braced = self.keyword().as_deref() == Some("{");
        self.at += if braced { 1 } else { 2 };
        let body = self.blocks(if braced { "}" } else { "done" })?;
        let Command::Group(mut group) = body else { return Ok(body) };
        group.words.extend(words);
        Ok(Command::Group(group))
    }

    fn case(&mut self) -> Result<Command, Unreadable> {
        self.skip_blanks();
        let mut group = Group { words: vec![self.one_word()?], ..Group::default() };
        self.skip_lines()?;
        self.expect("in")?;
        loop {
            self.skip_lines()?;
            if self.keyword().as_deref() == Some("esac") {
                self.at += 4;
                return self.redirected(group);
            }
            self.eat("(");
            loop {
                self.skip_blanks();
                group.words.push(self.one_word()?);
                self.skip_blanks();
                if !self.eat("|") {
                    break;
                }
            }
            self.expect(")")?;
            group.body.pipelines.extend(self.list()?.pipelines);
            if !(self.eat(";;&") || self.eat(";;") || self.eat(";&"))
                && self.keyword().as_deref() != Some("esac")
            {
                return Err(Unreadable::Unclosed("case"));
            }
        }
    }

    /// `[[ … ]]`: no commands but those in substitutions.
    fn test(&mut self) -> Result<Command, Unreadable> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                None => return Err(Unreadable::Unclosed("[[")),
                Some(c @ ('&' | '|' | '<' | '>' | '(' | ')' | '\n')) => {
                    if matches!(c, '<' | '>') && self.peek_at(1) == Some('(') {
                        words.push(self.one_word()?);
                    } else {
                        self.at += 1;
                    }
                }
                Some(_) => {
                    let word = self.one_word()?;
                    if word.literal().as_deref() == Some("]]") {
                        return self.redirected(Group { words, ..Group::default() });
                    }
                    words.push(word);
                }
            }
        }
    }

    fn function(&mut self, name: String) -> Result<Command, Unreadable> {
        self.skip_lines()?;
        let body = self.deeper(Self::command)?;
        let body = Script { pipelines: vec![Pipeline { commands: vec![body], background: false }] };
        Ok(Command::Function { name, body })
    }

    fn redirected(&mut self, mut group: Group) -> Result<Command, Unreadable> {
        loop {
            self.skip_blanks();
            match self.redirect()? {
                Some(redirect) => group.redirects.push(redirect),
                None => return Ok(Command::Group(group)),
            }
        }
    }

    fn simple(&mut self) -> Result<Command, Unreadable> {
        let begin = self.at;
        let mut simple = Simple::default();
        loop {
            self.skip_blanks();
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                continue;
            }
            match self.peek() {
                None | Some('\n' | ';' | '&' | '|' | ')') => break,
                Some('(') => {
                    let [name] = simple.words.as_slice() else { return Err(self.unexpected()) };
                    let name = name.shown();
                    self.at += 1;
                    self.expect(")")?;
                    return self.function(name);
                }
                Some(_) if simple.words.is_empty() => match self.assignment()? {
                    Some(assignment) => simple.assignments.push(assignment),
                    None => simple.words.extend(self.words()?.into_iter().flat_map(braces)),
                },
                Some(_) => simple.words.extend(self.words()?.into_iter().flat_map(braces)),
            }
        }
        if self.at == begin { Err(self.unexpected()) } else { Ok(Command::Simple(simple)) }
    }

    /// A redirect, if one stands here.
    fn redirect(&mut self) -> Result<Option<Redirect>, Unreadable> {
        let begin = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        let here_string = self.eat("<<<");
        if !here_string && self.eat("<<") {
            let strip = self.eat("-");
            return self.here_document(strip).map(Some);
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

    fn here_document(&mut self, strip: bool) -> Result<Redirect, Unreadable> {
        self.skip_blanks();
        let delimiter = self.one_word()?;
        let quoted =
            delimiter.parts.iter().any(|part| matches!(part, super::Part::Text { quoted: true, .. }));
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
            let shown = if strip { line.trim_start_matches('\t') } else { &line };
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
        let mut inner =
            Self { chars: text.chars().collect(), at: 0, depth: self.depth, here: None };
        inner.deeper(|inner| inner.double_quoted(None))
    }
}
