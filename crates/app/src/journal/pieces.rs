//! Keys that arrive in pieces: a model that says one streams it in parts, and each part is a record of its own.
//!
//! A part that was written stays, so a key is recognized by its beginning. What of it comes before that is a few letters,
//! less than half of it: as much as every key of a service has in common.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use amplifier_core::redact::REDACTED;
use amplifier_protocol::record::RecordBody;
use serde_json::Value;

use super::secrets::Secrets;

/// A beginning that is longer is taken for the key.
const TELLING: usize = 8;
/// How many streams are followed at once: those of one answer.
const STREAMS: usize = 16;

/// What was said last in each stream.
#[derive(Default)]
pub(super) struct Pieces(Mutex<HashMap<String, String>>);

impl Pieces {
    /// The body of a piece without what is part of a key; nothing where it stays as it is.
    pub(super) fn hide(&self, body: &RecordBody, secrets: &Secrets) -> Option<RecordBody> {
        let RecordBody::Event { name, data } = body else { return None };
        if !name.as_str().ends_with("delta") {
            return None;
        }
        let longest = secrets.values().map(str::len).max()?;
        let text = data.get("text").and_then(Value::as_str)?;
        let stream = ["request_id", "block_index"].map(|key| data.get(key).map(ToString::to_string));
        let stream = format!("{name} {stream:?}");
        // Nothing is half done where a panic could leave it.
        let mut tails = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tails.len() >= STREAMS && !tails.contains_key(&stream) {
            tails.clear();
        }
        let tail = tails.entry(stream).or_default();
        let before = tail.len();
        tail.push_str(text);
        let hidden = without_parts(tail, before, secrets);
        let keep = tail.ceil_char_boundary(tail.len().saturating_sub(longest));
        tail.drain(..keep);
        let mut data = data.clone();
        data.as_object_mut()?.insert("text".to_owned(), Value::from(hidden?));
        Some(RecordBody::Event { name: name.clone(), data })
    }
}

/// What stands behind `before`, without what belongs to a key that began earlier or is about to go on.
fn without_parts(text: &str, before: usize, secrets: &Secrets) -> Option<String> {
    let mut parts: Vec<_> = secrets.values().flat_map(|secret| parts_of(text, secret)).collect();
    parts.retain(|(_, end)| *end > before);
    parts.sort_unstable();
    let (mut hidden, mut at) = (String::new(), before);
    for (begin, end) in &parts {
        hidden.push_str(text.get(at..(*begin).max(at))?);
        hidden.push_str(REDACTED);
        at = at.max(*end);
    }
    hidden.push_str(text.get(at..)?);
    (!parts.is_empty()).then_some(hidden)
}

/// Where a key stands in a text, and where it has begun at the end of it.
fn parts_of(text: &str, secret: &str) -> Vec<(usize, usize)> {
    let mut parts: Vec<_> = text.match_indices(secret).map(|(at, found)| (at, at + found.len())).collect();
    let telling = TELLING.min(secret.len() / 2).max(1);
    let begun = text.char_indices().map(|(at, _)| at).find(|at| {
        let end = text.get(*at..).unwrap_or_default();
        end.len() >= telling && end.len() < secret.len() && secret.starts_with(end)
    });
    parts.extend(begun.map(|at| (at, text.len())));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(pieces: &[&str]) -> Vec<String> {
        let (streams, secrets) = (Pieces::default(), Secrets::new(["sk-very-secret-1".to_owned()]));
        let piece = |text: &str| {
            let data = json!({"block_index": 0, "block_type": "text", "text": text});
            let body = RecordBody::Event { name: "content_block:delta".parse().unwrap(), data };
            match streams.hide(&body, &secrets) {
                Some(RecordBody::Event { data, .. }) => data["text"].as_str().unwrap().to_owned(),
                _ => text.to_owned(),
            }
        };
        pieces.iter().map(|text| piece(text)).collect()
    }

    #[test]
    fn a_key_in_pieces_is_hidden_but_for_its_first_letters() {
        let gone = REDACTED;
        assert_eq!(said(&["it is sk-very-", "secret-1."]), [format!("it is {gone}"), format!("{gone}.")]);
        let letters = said(&["s", "k-", "very", "-s", "ec", "ret", "-1", " ok"]);
        assert_eq!(letters, ["s", "k-", "very", gone, gone, gone, gone, " ok"]);
        assert_eq!(said(&["x sk-very-secret-1 y"]), [format!("x {gone} y")]);
    }

    #[test]
    fn what_only_begins_alike_and_other_streams_stay_as_they_are() {
        assert_eq!(said(&["sk-", "very", " nice"]), ["sk-", "very", " nice"]);
        assert_eq!(said(&["ä sk-ö", "very-secret-1"]), ["ä sk-ö", "very-secret-1"]);
    }
}
