//! Finds mentions in a text. Code is not text: fenced blocks and spans between backticks are passed over, and so is the
//! `@` inside an e-mail address. It does not look at files.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A mention as it stands in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// What follows the `@`, without the punctuation a sentence ends with.
    pub body: String,
    /// What follows the `@` with that punctuation, when there is any: a file may be called so.
    pub whole: Option<String>,
    /// The line it stands in, from 1.
    pub line: usize,
}

impl Mention {
    /// The mention with its `@`.
    pub fn text(&self) -> String {
        format!("@{}", self.body)
    }
}

/// Whether mentions between quotation marks count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quotes {
    /// They do, as in bundles.
    #[default]
    Read,
    /// They do not, as in profiles.
    Skip,
}

/// The mentions of a text, each once, in the order of their first appearance.
pub fn scan(text: &str, quotes: Quotes) -> Vec<Mention> {
    let code = Ranges(code_ranges(text));
    let quoted = Ranges(if quotes == Quotes::Skip { quoted_ranges(text) } else { Vec::new() });
    let mut seen = HashSet::new();
    let mut mentions = Vec::new();
    let mut line = 1;
    let mut counted = 0;
    for (at, _) in text.match_indices('@') {
        if is_in_word(text, at) || code.contains(at) || quoted.contains(at) {
            continue;
        }
        let Some((body, whole)) = body_at(text, at + 1) else { continue };
        line += text.get(counted..at).unwrap_or_default().bytes().filter(|byte| *byte == b'\n').count();
        counted = at;
        if seen.insert(body.clone()) {
            mentions.push(Mention { body, whole, line });
        }
    }
    mentions
}

/// Ranges in order that do not overlap.
struct Ranges(Vec<Range<usize>>);

impl Ranges {
    fn contains(&self, at: usize) -> bool {
        let after = self.0.partition_point(|range| range.start <= at);
        after.checked_sub(1).and_then(|last| self.0.get(last)).is_some_and(|range| range.contains(&at))
    }
}

/// Whether the `@` follows a letter or a digit, as in an address.
fn is_in_word(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default().chars().next_back();
    before.is_some_and(|before| before.is_alphanumeric() || matches!(before, '_' | '@' | '\\'))
}

/// What follows an `@`: the body without closing punctuation, and with it where that differs.
fn body_at(text: &str, start: usize) -> Option<(String, Option<String>)> {
    let rest = text.get(start..)?;
    if let Some(quoted) = rest.strip_prefix('"') {
        let body = quoted.split(['"', '\n']).next()?;
        let closed = quoted.get(body.len()..)?.starts_with('"');
        return (closed && !body.is_empty()).then(|| (body.to_owned(), None));
    }
    let end = rest.find(|c: char| !is_body(c)).unwrap_or(rest.len());
    let whole = rest.get(..end)?;
    // `@name@host` is an address of another kind.
    if whole.is_empty() || rest.get(end..)?.starts_with('@') {
        return None;
    }
    let body = whole.trim_end_matches(['.', ':', '-']);
    if body.is_empty() || !body.contains(|c: char| c.is_alphanumeric() || matches!(c, '~' | '/' | '.')) {
        // `@..` keeps its dots; a lone `@.` or `@:` is the end of a sentence.
        let folder = matches!(whole, ".." | "~");
        return folder.then(|| (whole.to_owned(), None));
    }
    // The literal word stands for the idea, not for a file.
    if body == "mention" {
        return None;
    }
    let whole = (whole != body).then(|| whole.to_owned());
    Some((body.to_owned(), whole))
}

fn is_body(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | ':' | '.' | '/' | '~' | '-')
}

/// The parts of a text between two quotation marks of one line; an apostrophe within a word is none, and neither is the
/// mark of `@"a path"`.
fn quoted_ranges(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut open: Option<(char, usize)> = None;
    let mut before: Option<char> = None;
    for (at, c) in text.char_indices() {
        match open {
            _ if c == '\n' => open = None,
            Some((quote, start)) if c == quote => {
                ranges.push(start..at);
                open = None;
            }
            None if matches!(c, '"' | '\'')
                && !before.is_some_and(|before| before.is_alphanumeric() || before == '@') =>
            {
                open = Some((c, at));
            }
            _ => {}
        }
        before = Some(c);
    }
    ranges
}

/// The parts of a text that are code, in order.
fn code_ranges(text: &str) -> Vec<Range<usize>> {
    let fences = Ranges(fenced(text));
    let mut spans = Vec::new();
    let mut paragraph = 0;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        if line.trim().is_empty() || fences.contains(start) {
            spans.extend(inline(text, paragraph..start));
            paragraph = end;
        }
        start = end;
    }
    spans.extend(inline(text, paragraph..start));
    spans.extend(fences.0);
    spans.sort_by_key(|range| range.start);
    spans
}

/// Fenced blocks: three or more backticks or tildes, at any indentation; a fence that is never closed is none.
fn fenced(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut open: Option<(char, usize, usize)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        let mark = trimmed.chars().next().filter(|mark| matches!(mark, '`' | '~'));
        let length = mark.map_or(0, |mark| trimmed.chars().take_while(|c| *c == mark).count());
        let rest = trimmed.get(length..).unwrap_or_default();
        match (open, mark) {
            (None, Some(mark)) if length >= 3 && !(mark == '`' && rest.contains('`')) => {
                open = Some((mark, length, start));
            }
            (Some((fence, least, from)), Some(mark))
                if mark == fence && length >= least && rest.is_empty() =>
            {
                ranges.push(from..start + line.len());
                open = None;
            }
            _ => {}
        }
        start += line.len();
    }
    ranges
}

/// Spans between equal runs of backticks within one paragraph.
fn inline(text: &str, paragraph: Range<usize>) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut at = paragraph.start;
    let part = text.get(paragraph.clone()).unwrap_or_default();
    while let Some(found) = part.get(at - paragraph.start..).and_then(|rest| rest.find('`')) {
        let start = at + found;
        let length =
            text.get(start..paragraph.end).unwrap_or_default().bytes().take_while(|b| *b == b'`').count();
        runs.push((start, length));
        at = start + length;
    }
    let mut by_length: HashMap<usize, Vec<usize>> = HashMap::new();
    for (index, (_, length)) in runs.iter().enumerate() {
        by_length.entry(*length).or_default().push(index);
    }
    let mut spans = Vec::new();
    let mut index = 0;
    while let Some((start, length)) = runs.get(index).copied() {
        let equal = by_length.get(&length).map(Vec::as_slice).unwrap_or_default();
        let close = equal.get(equal.partition_point(|other| *other <= index)).copied();
        match close.and_then(|close| Some((close, runs.get(close)?))) {
            Some((close, (end, _))) => {
                spans.push(start..end + length);
                index = close + 1;
            }
            None => index += 1,
        }
    }
    spans
}
