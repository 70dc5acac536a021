//! Keys that arrive in pieces: a model that says one streams it in parts, and each part is an event of its own.
//!
//! What was written stays, so the end of a piece that may be the beginning of a key is not written with it but with the next
//! piece, when it is known what it is. What is still held when its block ends is written with none: the whole block is told
//! in its end, and a key that was broken off there is better not begun.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use amplifier_core::redact::REDACTED;
use amplifier_protocol::event::{Event, ProviderRequest};
use serde_json::Value;

use super::secrets::Secrets;

/// How many streams may hold something: those of one answer. Of streams that never end the oldest is forgotten.
const STREAMS: usize = 16;

/// What is held of each stream that holds something.
#[derive(Default)]
pub(super) struct Pieces(Mutex<Vec<(Stream, Held)>>);

/// The namespace of the event, the call, and the block.
type Stream = (String, Option<String>, Option<u64>);

/// The end of what was said in a stream, which may be the beginning of a key.
struct Held {
    text: String,
    /// So many bytes of it belong to another key, which was hidden already.
    told: usize,
}

impl Pieces {
    /// What stands in place of the `text` of an event; nothing where it stays as it is.
    pub(super) fn hide(&self, event: &str, data: &Value, secrets: &Secrets) -> Option<String> {
        secrets.spellings().next()?;
        let (namespace, action) = event.split_once(':')?;
        // Nothing is half done where a panic could leave it.
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !action.ends_with("delta") {
            forget(&mut held, event, namespace, data);
            return None;
        }
        let piece = data.get("text").and_then(Value::as_str)?;
        let before = match held.is_empty() {
            true => None,
            false => {
                let stream = stream(namespace, data);
                held.iter().position(|(other, _)| *other == stream).map(|at| held.remove(at).1)
            }
        };
        let told = before.as_ref().map_or(0, |before| before.told);
        let text = match &before {
            Some(before) => Cow::Owned(format!("{}{piece}", before.text)),
            None => Cow::Borrowed(piece),
        };
        let found = Found::in_text(&text, secrets);
        if before.is_none() && found.is_nothing(&text) {
            return None;
        }
        if let Some(rest) = text.get(found.begun..).filter(|rest| !rest.is_empty()) {
            if held.len() >= STREAMS {
                held.remove(0);
            }
            let now = Held { text: rest.to_owned(), told: found.tellable() - found.begun };
            held.push((stream(namespace, data), now));
        }
        Some(found.told(&text, told))
    }
}

fn stream(namespace: &str, data: &Value) -> Stream {
    let call = data.get("request_id").and_then(Value::as_str).map(str::to_owned);
    (namespace.to_owned(), call, data.get("block_index").and_then(Value::as_u64))
}

/// Forgets what is held of streams that end with this event, or begin anew.
fn forget(held: &mut Vec<(Stream, Held)>, event: &str, namespace: &str, data: &Value) {
    if held.is_empty() {
        return;
    }
    if event == ProviderRequest::NAME {
        return held.clear();
    }
    let (_, call, block) = stream(namespace, data);
    let is_over = |(theirs, of_call, at): &Stream| {
        theirs == namespace && *of_call == call && (block.is_none() || *at == block)
    };
    held.retain(|(stream, _)| !is_over(stream));
}

/// Where keys stand in a text.
struct Found {
    /// The whole ones, in order; those that overlap are one.
    keys: Vec<Range<usize>>,
    /// From where on the text may be the beginning of one; its end where it is none.
    begun: usize,
}

impl Found {
    fn in_text(text: &str, secrets: &Secrets) -> Self {
        let whole = |secret| text.match_indices(secret).map(|(at, key): (_, &str)| at..at + key.len());
        let mut all: Vec<Range<usize>> = secrets.spellings().flat_map(whole).collect();
        all.sort_unstable_by_key(|key| key.start);
        let mut keys: Vec<Range<usize>> = Vec::with_capacity(all.len());
        for key in all {
            match keys.last_mut() {
                Some(last) if key.start < last.end => last.end = last.end.max(key.end),
                _ => keys.push(key),
            }
        }
        let begun = secrets.spellings().filter_map(|secret| begun(text, secret)).min();
        Self { keys, begun: begun.unwrap_or(text.len()) }
    }

    fn is_nothing(&self, text: &str) -> bool {
        self.keys.is_empty() && self.begun == text.len()
    }

    /// How far it can be told: up to the beginning of a key, which may stand in another one that is whole.
    fn tellable(&self) -> usize {
        let holds = |key: &&Range<usize>| key.start < self.begun && self.begun < key.end;
        self.keys.iter().find(holds).map_or(self.begun, |key| key.end)
    }

    /// What can be told behind what was told.
    fn told(&self, text: &str, before: usize) -> String {
        let (mut out, mut at, end) = (String::new(), before, self.tellable());
        for key in self.keys.iter().take_while(|key| key.start < end) {
            out.push_str(text.get(at..key.start).unwrap_or_default());
            // One that began in what was told was hidden there.
            if key.start >= before {
                out.push_str(REDACTED);
            }
            at = at.max(key.end);
        }
        out.push_str(text.get(at..end).unwrap_or_default());
        out
    }
}

/// Where a text ends with the beginning of a key.
fn begun(text: &str, secret: &str) -> Option<usize> {
    let from = text.ceil_char_boundary(text.len().saturating_sub(secret.len().saturating_sub(1)));
    let end = text.get(from..)?;
    end.char_indices()
        .map(|(at, _)| at)
        .find(|at| end.get(*at..).is_some_and(|end| secret.starts_with(end)))
        .map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const GONE: &str = REDACTED;

    fn said_of(keys: &[&str], pieces: &[&str]) -> Vec<String> {
        let (streams, secrets) = (Pieces::default(), Secrets::new(keys.iter().map(|key| (*key).to_owned())));
        let piece = |text: &&str| {
            let data = json!({"block_index": 0, "block_type": "text", "text": text});
            streams.hide("content_block:delta", &data, &secrets).unwrap_or_else(|| (*text).to_owned())
        };
        pieces.iter().map(piece).collect()
    }

    fn said(pieces: &[&str]) -> Vec<String> {
        said_of(&["sk-very-secret-1"], pieces)
    }

    #[test]
    fn not_a_letter_is_written_of_a_key_in_pieces() {
        assert_eq!(said(&["it is sk-very-", "secret-1."]), ["it is ".to_owned(), format!("{GONE}.")]);
        let letters = said(&["s", "k-", "very", "-s", "ec", "ret", "-1", " ok"]);
        assert_eq!(letters, ["", "", "", "", "", "", GONE, " ok"]);
        assert_eq!(said(&["x sk-very-secret-1 y"]), [format!("x {GONE} y")]);
        assert_eq!(said(&["sk-sk-very", "-secret-1sk-"]), ["sk-".to_owned(), GONE.to_owned()]);
    }

    #[test]
    fn what_only_begins_alike_comes_with_the_next_piece() {
        assert_eq!(said(&["sk-", "very", " nice"]), ["", "", "sk-very nice"]);
        assert_eq!(said(&["ä sk-ö", "very-secret-1"]), ["ä sk-ö", "very-secret-1"]);
        assert_eq!(said(&["this", "", " it"]), ["thi", "", "s it"]);
    }

    #[test]
    fn keys_that_hold_or_overlap_each_other_are_hidden_whole() {
        let longer = ["abcdefgh", "abcdefghij"];
        assert_eq!(said_of(&longer, &["abcdefgh", "ij."]), ["".to_owned(), format!("{GONE}.")]);
        assert_eq!(said_of(&longer, &["abcdefgh", " x"]), ["".to_owned(), format!("{GONE} x")]);
        let next = ["abcdefgh", "ghijklmn"];
        assert_eq!(said_of(&next, &["abcdefgh", "ijklmn."]), [GONE, "."]);
        assert_eq!(said_of(&next, &["abcdefgh", "ijk."]), [GONE, "ijk."]);
        let arguments = said_of(&["quo\"te-key"], &["{\"a\": \"quo\\", "\"te-key\"}"]);
        assert_eq!(arguments, ["{\"a\": \"".to_owned(), format!("{GONE}\"}}")]);
    }

    #[test]
    fn a_block_that_ends_leaves_nothing_to_the_next_and_streams_without_end_are_few() {
        let (streams, secrets) = (Pieces::default(), Secrets::new(["sk-very-secret-1".to_owned()]));
        let tell = |event: &str, data: Value| streams.hide(event, &data, &secrets);
        let held = || streams.0.lock().unwrap().len();
        let piece = |call: &str| json!({"request_id": call, "block_index": 1, "text": "yes"});
        for (event, data) in [
            ("llm:stream_block_end", json!({"request_id": "a", "block_index": 1})),
            ("llm:stream_aborted", json!({"request_id": "a"})),
            ("provider:request", json!({})),
        ] {
            assert_eq!(tell("llm:stream_block_delta", piece("a")), Some("ye".to_owned()));
            assert_eq!((tell("tool:pre", json!({})), held()), (None, 1));
            assert_eq!((tell(event, data), held()), (None, 0), "{event}");
        }
        (0..1_000).for_each(|call| drop(tell("llm:stream_block_delta", piece(&call.to_string()))));
        assert_eq!(held(), STREAMS);
    }
}
