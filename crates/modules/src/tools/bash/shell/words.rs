//! Words: quotes, escapes, variables and substitutions.

use super::parser::{Parser, parse_at};
use super::{Part, Script, Unreadable, Word};

impl Parser {
    /// The words that stand here as one; `$IFS` divides them.
    pub(super) fn words(&mut self) -> Result<Vec<Word>, Unreadable> {
        let (begin, mut words, mut word) = (self.at, Vec::new(), Word::default());
        while let Some(c) = self.peek() {
            match c {
                '<' | '>' if self.peek_at(1) == Some('(') => {
                    self.at += 2;
                    word.parts.push(Part::Stream(self.code()?));
                }
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '$' if self.eat("$IFS") || self.eat("${IFS}") => {
                    if self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
                        && self.chars.get(self.at.wrapping_sub(1)) != Some(&'}')
                    {
                        // Another variable whose name only begins so.
                        while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                            self.at += 1;
                        }
                        word.parts.push(Part::Unknown(Vec::new()));
                    } else if !word.parts.is_empty() {
                        words.push(std::mem::take(&mut word));
                    }
                }
                _ => self.piece(c, &mut word)?,
            }
        }
        if self.at == begin {
            return Err(self.unexpected());
        }
        if !word.parts.is_empty() || words.is_empty() {
            words.push(word);
        }
        Ok(words)
    }

    /// One word where the grammar takes only one.
    pub(super) fn one_word(&mut self) -> Result<Word, Unreadable> {
        let mut words = self.words()?;
        match (words.pop(), words.is_empty()) {
            (Some(word), true) => Ok(word),
            _ => Ok(Word::unknown()),
        }
    }

    /// `NAME=value`, if it stands here.
    pub(super) fn assignment(&mut self) -> Result<Option<(String, Word)>, Unreadable> {
        let rest = self.chars.get(self.at..).unwrap_or_default();
        let named = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
        let name: String = rest.iter().copied().take_while(named).collect();
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(None);
        }
        let mut length = name.len();
        if rest.get(length) == Some(&'[') {
            let inside = rest.iter().skip(length).position(|c| *c == ']' || c.is_whitespace());
            match inside.map(|ahead| length + ahead) {
                Some(end) if rest.get(end) == Some(&']') => length = end + 1,
                _ => return Ok(None),
            }
        }
        let adds = rest.get(length) == Some(&'+');
        if adds {
            length += 1;
        }
        if rest.get(length) != Some(&'=') {
            return Ok(None);
        }
        // An index is arithmetic, and arithmetic can hold code.
        let index: String = rest.iter().take(length).skip(name.len()).collect();
        let mut extra = Word::default();
        if adds {
            extra.parts.push(Part::Unknown(Vec::new()));
        }
        if index.contains('$') || index.contains('`') {
            extra.parts.push(Part::Unknown(vec![parse_at(
                &format!(": {}", index.trim_matches(['[', ']', '+'])),
                self.depth + 1,
            )?]));
        }
        self.at += length + 1;
        let mut value = match self.peek() {
            Some('(') => self.array()?,
            None | Some(' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | ')' | '<' | '>')
                if !self.starts("<(") && !self.starts(">(") =>
            {
                Word::default()
            }
            _ => {
                // No splitting in an assignment, so what `$IFS` divides stays one value.
                let words = self.words()?;
                Word { parts: words.into_iter().flat_map(|word| word.parts).collect() }
            }
        };
        value.parts.extend(extra.parts);
        Ok(Some((name, value)))
    }

    fn array(&mut self) -> Result<Word, Unreadable> {
        self.at += 1;
        let mut value = Word::default();
        loop {
            match self.peek() {
                None => return Err(Unreadable::Unclosed("(")),
                Some(')') => break,
                Some(c) if c.is_whitespace() => self.at += 1,
                Some('#') => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                Some(_) => value.parts.extend(self.words()?.into_iter().flat_map(|word| word.parts)),
            }
        }
        self.at += 1;
        // Its elements are no one text.
        value.parts.push(Part::Unknown(Vec::new()));
        Ok(value)
    }

    /// The next piece of a word outside quotes.
    fn piece(&mut self, c: char, word: &mut Word) -> Result<(), Unreadable> {
        self.at += 1;
        match c {
            '\\' => match self.peek() {
                Some('\n') => self.at += 1,
                Some(next) => {
                    self.at += 1;
                    word.push_quoted(next);
                }
                None => word.push_quoted('\\'),
            },
            '\'' => {
                let text = self.until('\'', "'")?;
                word.parts.push(Part::Text { text, quoted: true });
            }
            '"' => word.parts.extend(self.deeper(|this| this.double_quoted(Some('"')))?.parts),
            '`' => word.parts.push(self.backticks()?),
            '$' if self.eat("'") => {
                let text = self.ansi()?;
                word.parts.push(Part::Text { text, quoted: true });
            }
            '$' if self.peek() == Some('"') => {}
            '$' => word.parts.push(self.dollar()?),
            c => word.push(c),
        }
        Ok(())
    }

    fn until(&mut self, end: char, what: &'static str) -> Result<String, Unreadable> {
        let mut text = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            if c == end {
                return Ok(text);
            }
            text.push(c);
        }
        Err(Unreadable::Unclosed(what))
    }

    /// What stands in double quotes, up to and over `end`; up to the end of the text without one.
    pub(super) fn double_quoted(&mut self, end: Option<char>) -> Result<Word, Unreadable> {
        // Also an empty pair of quotes makes a word.
        let mut word = Word { parts: vec![Part::Text { text: String::new(), quoted: true }] };
        loop {
            let Some(c) = self.peek() else {
                return if end.is_none() { Ok(word) } else { Err(Unreadable::Unclosed("\"")) };
            };
            self.at += 1;
            match c {
                c if Some(c) == end => return Ok(word),
                '\\' => match self.peek() {
                    Some('\n') => self.at += 1,
                    Some(next @ ('$' | '`' | '"' | '\\')) => {
                        self.at += 1;
                        word.push_quoted(next);
                    }
                    _ => word.push_quoted('\\'),
                },
                '`' => word.parts.push(self.backticks()?),
                '$' => word.parts.push(self.dollar()?),
                c => word.push_quoted(c),
            }
        }
    }

    /// What follows a `$`.
    fn dollar(&mut self) -> Result<Part, Unreadable> {
        if self.starts("((")
            && let Some(word) = self.arithmetic()?
        {
            return self.counted(&word);
        }
        if self.eat("(") {
            return self.code().map(Part::Code);
        }
        if self.eat("{") {
            return self.deeper(Self::braced);
        }
        if self.eat("[") {
            let mut word = Word::default();
            self.deeper(|this| this.nested(']', "$[", &mut word))?;
            return self.counted(&word);
        }
        let mut name = String::new();
        while let Some(c) = self.peek().filter(|c| c.is_ascii_alphanumeric() || *c == '_') {
            self.at += 1;
            name.push(c);
            if name.len() == 1 && c.is_ascii_digit() {
                break;
            }
        }
        if name.is_empty()
            && let Some(c) = self.peek().filter(|c| "?$!@*#-".contains(*c))
        {
            self.at += 1;
            name.push(c);
        }
        if name.is_empty() {
            return Ok(Part::Text { text: "$".to_owned(), quoted: true });
        }
        Ok(Part::Variable(name))
    }

    /// The inside of `$(` or `<(`, up to and over its `)`.
    fn code(&mut self) -> Result<Script, Unreadable> {
        let script = self.list()?;
        self.expect(")")?;
        Ok(script)
    }

    fn backticks(&mut self) -> Result<Part, Unreadable> {
        let mut inside = String::new();
        loop {
            let c = self.peek().ok_or(Unreadable::Unclosed("`"))?;
            self.at += 1;
            match c {
                '`' => break,
                '\\' => match self.peek() {
                    Some(next @ ('`' | '\\' | '$')) => {
                        self.at += 1;
                        inside.push(next);
                    }
                    _ => inside.push('\\'),
                },
                c => inside.push(c),
            }
        }
        let depth = self.depth + 1;
        Ok(Part::Code(self.deeper(|_| parse_at(&inside, depth))?))
    }

    /// The inside of `${`.
    fn braced(&mut self) -> Result<Part, Unreadable> {
        let begin = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
            self.at += 1;
        }
        if self.peek() == Some('}') && self.at > begin {
            let name = self.chars.get(begin..self.at).unwrap_or_default().iter().collect();
            self.at += 1;
            return Ok(Part::Variable(name));
        }
        let mut word = Word::default();
        self.nested('}', "${", &mut word)?;
        self.counted(&word)
    }

    /// An expansion: the shell runs the code in it, and may run what stands in its quotes when it counts.
    fn counted(&self, word: &Word) -> Result<Part, Unreadable> {
        let mut scripts: Vec<Script> = word.scripts().cloned().collect();
        for part in &word.parts {
            if let Part::Text { text, .. } = part
                && (text.contains("$(") || text.contains('`'))
            {
                scripts.push(parse_at(&format!(": {text}"), self.depth + 1)?);
            }
        }
        Ok(Part::Unknown(scripts))
    }

    /// Pieces up to and over `end`, which may be nested.
    fn nested(&mut self, end: char, what: &'static str, word: &mut Word) -> Result<(), Unreadable> {
        loop {
            let c = self.peek().ok_or(Unreadable::Unclosed(what))?;
            if c == end {
                self.at += 1;
                return Ok(());
            }
            self.piece(c, word)?;
        }
    }

    /// `((…))` from its first parenthesis, or nothing when it is a group in a group.
    pub(super) fn arithmetic(&mut self) -> Result<Option<Word>, Unreadable> {
        let begin = self.at;
        self.at += 2;
        let (mut word, mut open) = (Word::default(), 0_usize);
        loop {
            let c = self.peek().ok_or(Unreadable::Unclosed("(("))?;
            match c {
                '(' => open += 1,
                ')' if open > 0 => open -= 1,
                ')' if self.peek_at(1) == Some(')') => {
                    self.at += 2;
                    return Ok(Some(word));
                }
                ')' => {
                    self.at = begin;
                    return Ok(None);
                }
                _ => {
                    self.piece(c, &mut word)?;
                    continue;
                }
            }
            self.at += 1;
        }
    }
}
