//! Loops, conditions, tests and functions: what is inside them, and nothing of what they mean.

use super::parser::Parser;
use super::{Command, Group, Pipeline, Script, Unreadable};

impl Parser {
    /// Lists between keywords, up to the last one.
    pub(super) fn blocks(&mut self, last: &'static str) -> Result<Command, Unreadable> {
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

    pub(super) fn for_loop(&mut self) -> Result<Command, Unreadable> {
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

    pub(super) fn case(&mut self) -> Result<Command, Unreadable> {
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
    pub(super) fn test(&mut self) -> Result<Command, Unreadable> {
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

    pub(super) fn function(&mut self, name: String) -> Result<Command, Unreadable> {
        self.skip_lines()?;
        let body = self.deeper(Self::command)?;
        let body = Script { pipelines: vec![Pipeline { commands: vec![body], background: false }] };
        Ok(Command::Function { name, body })
    }
}
