//! Looking for a text in what was said, over all sessions of a scope. It reads journals as a stream and takes apart only the
//! messages that hold the text. Upper and lower case are the same; secrets are not shown.

use amplifier_protocol::ids::SessionId;
use amplifier_protocol::time::Timestamp;
use regex::{Regex, RegexBuilder};
use serde::Serialize;

use super::SessionError;
use super::list::{Listed, Listing, Scope, Unread, list};
use super::story::{Happening, moments};
use crate::journal::{JournalFileError, Peeker};
use crate::store::{SessionStore, check_journal};

/// How much is shown around what was found, in characters on each side.
const AROUND: usize = 60;

/// A place where the text stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    pub session_id: SessionId,
    /// What people know the session by.
    pub label: String,
    pub turn: u64,
    pub ts: Timestamp,
    /// Who said it: `you`, `answer`, `thought`, or what called or answered.
    pub by: String,
    /// The line of the text, counted from 1.
    pub line: usize,
    /// The line, its ends cut where it is long.
    pub text: String,
    /// Where in `text` the match begins and ends, in bytes.
    pub at: (usize, usize),
}

/// What a search came to.
#[derive(Debug, Default)]
pub struct Searched {
    pub sessions: usize,
    pub hits: usize,
    /// Sessions that could not be read, and why.
    pub unread: Vec<Unread>,
}

/// Looks for a text, the last used sessions first. `each` gets every hit and says whether to go on.
pub fn search(
    store: &SessionStore,
    scope: &Scope,
    text: &str,
    mut each: impl FnMut(Hit) -> GoOn,
) -> Result<Searched, SessionError> {
    let words = Words::new(text);
    let Listing { sessions, unread, .. } = list(store, scope)?;
    let mut searched = Searched { unread, ..Searched::default() };
    for listed in sessions {
        searched.sessions += 1;
        match of_session(store, &listed, &words, &mut searched.hits, &mut each) {
            Ok(GoOn::Yes) => {}
            Ok(GoOn::No) => break,
            Err(error) => searched.unread.push((listed.metadata.session_id, error)),
        }
    }
    Ok(searched)
}

/// Whether a search goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoOn {
    Yes,
    No,
}

/// What is looked for, as it stands in a text and as it stands in a line of a journal.
struct Words {
    plain: Option<Regex>,
    written: Option<Regex>,
}

impl Words {
    fn new(text: &str) -> Self {
        let pattern =
            |text: &str| RegexBuilder::new(&regex::escape(text)).case_insensitive(true).build().ok();
        let json = serde_json::to_string(text).unwrap_or_default();
        let inner = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or_default();
        Self { plain: pattern(text), written: pattern(inner) }
    }

    /// Whether a line may hold it. Large values stand apart from their line, so such a line may.
    fn may_be_in(&self, body: &str) -> bool {
        self.written.as_ref().is_none_or(|written| written.is_match(body)) || body.contains("\"$blob\"")
    }
}

fn of_session(
    store: &SessionStore,
    listed: &Listed,
    words: &Words,
    hits: &mut usize,
    each: &mut impl FnMut(Hit) -> GoOn,
) -> Result<GoOn, SessionError> {
    let folder = store.home().session(&listed.metadata.session_id);
    check_journal(&folder)?;
    let mut peeker = match Peeker::open(&folder) {
        Err(JournalFileError::File(error)) if error.is_missing() => return Ok(GoOn::Yes),
        peeker => peeker?,
    };
    while let Some(peek) = peeker.next_line()? {
        if !matches!(peek.kind(), "message" | "$json") || !words.may_be_in(peek.text()) {
            continue;
        }
        for moment in moments(&peek.record()?) {
            let Some((by, text)) = said(moment.what) else { continue };
            for (line, text, at) in found(&text, words) {
                *hits += 1;
                let hit = Hit {
                    session_id: listed.metadata.session_id.clone(),
                    label: listed.metadata.label().to_owned(),
                    turn: moment.turn,
                    ts: moment.ts,
                    by: by.clone(),
                    line,
                    text,
                    at,
                };
                if each(hit) == GoOn::No {
                    return Ok(GoOn::No);
                }
            }
        }
    }
    Ok(GoOn::Yes)
}

fn said(what: Happening) -> Option<(String, String)> {
    Some(match what {
        Happening::Prompt { text } => ("you".to_owned(), text),
        Happening::Said { text } => ("answer".to_owned(), text),
        Happening::Thought { text } => ("thought".to_owned(), text),
        Happening::Injected { by, text } => (by, text),
        Happening::Called { tool, input, .. } => (format!("{tool} called"), input.to_string()),
        Happening::Answered { tool, text, .. } => (format!("{tool} answered"), text),
        _ => return None,
    })
}

/// The lines of a text that hold the words, once each.
fn found(text: &str, words: &Words) -> Vec<(usize, String, (usize, usize))> {
    let Some(plain) = &words.plain else { return Vec::new() };
    let hits = text.lines().enumerate().filter_map(|(at, line)| {
        let found = plain.find(line)?;
        let (text, begin) = around(line, found.start(), found.end());
        Some((at + 1, text, (begin, begin + found.len())))
    });
    hits.collect()
}

/// The part of a line around a match, and where the match begins in it.
fn around(line: &str, start: usize, end: usize) -> (String, usize) {
    let (before, after) = (line.get(..start).unwrap_or_default(), line.get(end..).unwrap_or_default());
    let from = before.char_indices().rev().nth(AROUND - 1).map_or(0, |(at, _)| at);
    let to = after.char_indices().nth(AROUND).map_or(line.len(), |(at, _)| end + at);
    let (head, tail) = (if from > 0 { "…" } else { "" }, if to < line.len() { "…" } else { "" });
    let text = format!("{head}{}{tail}", line.get(from..to).unwrap_or_default());
    (text, start - from + head.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_around_what_was_found() {
        let words = Words::new("Needle");
        let text = format!("nothing\n{}needle{}", "ä".repeat(100), "b".repeat(100));
        let hits = found(&text, &words);
        assert_eq!(hits.len(), 1);
        let (line, text, (from, to)) = hits[0].clone();
        assert_eq!((line, &text[from..to]), (2, "needle"));
        assert!(text.starts_with('…') && text.ends_with('…') && text.chars().count() == 128, "{text}");
        assert!(words.may_be_in(r#"{"message":"a NEEDLE"}"#) && !words.may_be_in("{}"));
    }

    #[test]
    fn quotes_are_found_as_they_are_written_in_a_line() {
        let words = Words::new("say \"hi\"\\");
        assert!(words.may_be_in(r#"{"message":"I say \"hi\"\\ "}"#));
        assert_eq!(found("I say \"hi\"\\ ", &words).len(), 1);
    }
}
