//! The grammar: lists, pipelines, simple commands. Loops and conditions are read in `compound.rs`, words in `words.rs`.

use super::expand::braces;
use super::{Command, Group, LONGEST, Pipeline, Script, Simple, Unreadable};

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
    pub(super) here: Option<Here>,
}

/// Here-documents of this line: their text begins after `line_end` and ends at `resume`.
pub(super) struct Here {
    pub(super) line_end: usize,
    pub(super) resume: usize,
    pub(super) depth: usize,
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
    pub(super) fn keyword(&self) -> Option<String> {
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

    pub(super) fn skip_blanks(&mut self) {
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
    pub(super) fn skip_lines(&mut self) -> Result<(), Unreadable> {
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

    pub(super) fn command(&mut self) -> Result<Command, Unreadable> {
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

    pub(super) fn redirected(&mut self, mut group: Group) -> Result<Command, Unreadable> {
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
}
