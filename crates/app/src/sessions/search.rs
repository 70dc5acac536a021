//! Looking for a text in what was said, over all sessions of a scope. It reads journals as a stream and takes apart only the
//! messages that hold the text. Upper and lower case are the same; secrets are not shown.

use amplifier_protocol::ids::SessionId;
use amplifier_protocol::time::Timestamp;
use regex::{Regex, RegexBuilder};
use serde::Serialize;

use super::list::{Listed, Listing, Scope, Unread, list};
use super::reading::{Damaged, Part, Read, Reading};
use super::story::{self, Happening, Moment, moments};
use super::{SessionError, mark};
use crate::journal::{JournalFileError, Peek};
use crate::store::{Metadata, SessionStore};

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
    /// Sessions of which a part could not be read.
    pub damaged: Vec<(SessionId, Vec<Damaged>)>,
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
        let (go_on, damaged) = match of_session(store, &listed, &words, &mut searched.hits, &mut each) {
            Ok(done) => done,
            Err(error) => {
                searched.unread.push((listed.metadata.session_id, error));
                continue;
            }
        };
        if !damaged.is_empty() {
            mark::note(&store.home().session(&listed.metadata.session_id), &damaged);
            searched.damaged.push((listed.metadata.session_id, damaged));
        }
        if go_on == GoOn::No {
            break;
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
) -> Result<(GoOn, Vec<Damaged>), SessionError> {
    let folder = store.home().session(&listed.metadata.session_id);
    let mut reading = match Reading::open(&folder) {
        Err(SessionError::Journal(JournalFileError::File(error))) if error.is_missing() => {
            return Ok((GoOn::Yes, Vec::new()));
        }
        reading => reading?,
    };
    loop {
        let told = match reading.advance()? {
            Part::End => return Ok((GoOn::Yes, reading.damaged())),
            Part::Lost(lost) => story::of_lost(&lost, listed.metadata.created),
            Part::Line => {
                let may_tell = |peek: Peek<'_>| {
                    matches!(peek.kind(), "message" | "$json") && words.may_be_in(peek.text())
                };
                match reading.line().is_some_and(may_tell).then(|| reading.record()).flatten() {
                    Some(Read::Record(record) | Read::Partly(record)) => moments(&record),
                    Some(Read::Lost(lost)) => story::of_lost(&lost, listed.metadata.created),
                    None => continue,
                }
            }
        };
        for hit in told.into_iter().flat_map(|moment| hits_of(moment, &listed.metadata, words)) {
            *hits += 1;
            if each(hit) == GoOn::No {
                return Ok((GoOn::No, reading.damaged()));
            }
        }
    }
}

fn hits_of(moment: Moment, about: &Metadata, words: &Words) -> Vec<Hit> {
    let Moment { ts, turn, what, .. } = moment;
    let Some((by, text)) = said(what) else { return Vec::new() };
    let hits = found(&text, words).into_iter().map(|(line, text, at)| Hit {
        session_id: about.session_id.clone(),
        label: about.label().to_owned(),
        turn,
        ts,
        by: by.clone(),
        line,
        text,
        at,
    });
    hits.collect()
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
