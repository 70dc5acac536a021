//! A Rust file reduced to the part a rule may look at: comments, literals and tests become blanks, lines stay lines.
//!
//! It is a scanner, not a parser: it knows where text begins and ends and how braces match, which is all the rules need.

/// The file with comments, strings and character literals blanked, so that a word in them breaks no rule.
pub(crate) fn code_only(text: &str) -> String {
    let mut scanner =
        Scanner { chars: text.chars().collect(), at: 0, out: String::with_capacity(text.len()) };
    while scanner.step() {}
    scanner.out
}

/// The code without the items marked `#[cfg(test)]`. Takes what [`code_only`] returned.
pub(crate) fn without_tests(code: &str) -> String {
    if code.contains("#![cfg(test)]") {
        return String::new();
    }
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = ["#[cfg(test)]", "#[cfg(all(test"].iter().filter_map(|mark| rest.find(mark)).min()
    {
        let (before, item) = rest.split_at(start);
        out.push_str(before);
        let (item, after) = item.split_at(item_length(item));
        out.extend(item.chars().map(blank));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// How many bytes the item at the beginning of `code` takes, its attributes included.
fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// Every place where `word` stands as a whole word, as 1-based line numbers.
pub(crate) fn lines_with(code: &str, word: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let whole = |(at, _): (usize, &str)| {
            let before = line.get(..at).and_then(|text| text.chars().next_back());
            let after = line.get(at + word.len()..).and_then(|text| text.chars().next());
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        };
        if line.match_indices(word).any(whole) {
            lines.push(number + 1);
        }
    }
    lines
}

/// The names a grouped import takes straight from `std`, with their line: `fs` and `io` of `use std::{fs, io::Read};`.
pub(crate) fn grouped_std_imports(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, mark) in code.match_indices("std::{") {
        let mut depth = 0_usize;
        let mut line = code.get(..at).unwrap_or("").matches('\n').count() + 1;
        let mut word = String::new();
        let mut done = false;
        for c in code.get(at + mark.len()..).unwrap_or("").chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => done = false,
                c if depth == 0 && !done && is_word(c) => {
                    word.push(c);
                    continue;
                }
                _ => {}
            }
            if !word.is_empty() {
                found.push((line, std::mem::take(&mut word)));
                done = c != ',';
            }
            line += usize::from(c == '\n');
        }
        if !word.is_empty() {
            found.push((line, word));
        }
    }
    found
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn blank(c: char) -> char {
    if c == '\n' { '\n' } else { ' ' }
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    out: String,
}

impl Scanner {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn keep(&mut self) {
        self.out.extend(self.peek(0));
        self.at += 1;
    }

    fn drop(&mut self) {
        self.out.extend(self.peek(0).map(blank));
        self.at += 1;
    }

    /// Handles one token; `false` at the end of the text.
    fn step(&mut self) -> bool {
        let Some(c) = self.peek(0) else { return false };
        match (c, self.peek(1)) {
            ('/', Some('/')) => self.line_comment(),
            ('/', Some('*')) => self.block_comment(),
            ('"', _) => self.quoted('"'),
            ('\'', Some('\\')) => self.quoted('\''),
            // `'a'` is a character; `'a` is a lifetime and stays.
            ('\'', Some(_)) if self.peek(2) == Some('\'') => (0..3).for_each(|_| self.drop()),
            (c, _) if is_word(c) => self.word(),
            _ => self.keep(),
        }
        true
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.drop();
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        while let Some(c) = self.peek(0) {
            match (c, self.peek(1)) {
                ('/', Some('*')) => depth += 1,
                ('*', Some('/')) => depth = depth.saturating_sub(1),
                _ => {
                    self.drop();
                    continue;
                }
            }
            self.drop();
            self.drop();
            if depth == 0 {
                return;
            }
        }
    }

    fn quoted(&mut self, end: char) {
        self.drop();
        while let Some(c) = self.peek(0) {
            self.drop();
            if c == '\\' {
                self.drop();
            } else if c == end {
                return;
            }
        }
    }

    /// A word, or the raw string it introduces.
    fn word(&mut self) {
        let start = self.at;
        while self.peek(0).is_some_and(is_word) {
            self.keep();
        }
        let raw = matches!(self.chars.get(start..self.at), Some(['r'] | ['b' | 'c', 'r']));
        let hashes = self.chars.iter().skip(self.at).take_while(|c| **c == '#').count();
        if !raw || self.peek(hashes) != Some('"') {
            return;
        }
        (0..=hashes).for_each(|_| self.drop());
        while let Some(c) = self.peek(0) {
            let closes = c == '"' && (1..=hashes).all(|ahead| self.peek(ahead) == Some('#'));
            self.drop();
            if closes {
                (0..hashes).for_each(|_| self.drop());
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blank_and_lines_stay() {
        let text = "let a = \"std::fs \\\" x\"; // std::fs\n/* std::fs\n /* */ std::env */ let b = 'x';\n\
                    let c = r#\"std::net \" \"#; let d: &'static str = '\\'' ; end";
        let code = code_only(text);
        assert_eq!(code.lines().count(), text.lines().count());
        assert!(!code.contains("std::"), "{code}");
        for kept in ["let a", "let b", "let c", "&'static str", "end"] {
            assert!(code.contains(kept), "{kept}: {code}");
        }
    }

    #[test]
    fn test_items_are_left_out_and_what_follows_stays() {
        let code = "fn a() {}\n#[cfg(test)]\n#[path = x]\nmod tests;\nfn b() {}\n\
                    #[cfg(test)]\nmod more { fn x() { [0; 3]; } }\nfn c() {}\n";
        let left = without_tests(code);
        for kept in ["fn a", "fn b", "fn c"] {
            assert!(left.contains(kept), "{left}");
        }
        assert!(!left.contains("mod"), "{left}");
        assert_eq!(left.lines().count(), code.lines().count());
        assert_eq!(without_tests("#![cfg(test)]\nfn a() {}"), "");
    }

    #[test]
    fn a_word_is_found_whole_or_not_at_all() {
        let code = "use std::fs;\nuse std::fs_like;\nmystd::fs();\nstd::fs::read(x)";
        assert_eq!(lines_with(code, "std::fs"), [1, 4]);
    }

    #[test]
    fn a_grouped_import_gives_its_first_names() {
        let code = "use std::{fs, io::{self, Read},\n    env as e, fmt};\nuse std::sync::{Arc};";
        let found: Vec<_> = grouped_std_imports(code);
        let expected = [(1, "fs"), (1, "io"), (2, "env"), (2, "fmt")];
        assert_eq!(found, expected.map(|(line, name)| (line, name.to_owned())));
    }
}
