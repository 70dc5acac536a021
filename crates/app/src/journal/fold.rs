//! Takes large strings out of a record's JSON text and puts them back, byte for byte.
//!
//! It works on the text and not on values, because a record may hold blocks whose bytes must not change. A string value
//! of more than [`LARGE`] bytes becomes `{"$blob":"<sha256>","bytes":n}`. A key that already reads `$blob` gets one
//! more `$`, so that data can look like a reference without being one. It touches no disk: blobs are handed over.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;

use super::error::BlobError;

/// The longest string that stays in its line.
pub(super) const LARGE: usize = 64 * 1024;
/// The longest body that stays in its line, however short its strings are. Longer ones are kept as one blob.
const MAX_BODY: usize = 8 * 1024 * 1024;
/// The key of a body that is kept as text: it holds line feeds between its tokens, or is too long.
const TEXT_KEY: &str = "$json";

/// A large string, cut out of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blob {
    pub(super) hash: String,
    pub(super) bytes: Vec<u8>,
}

/// What stands in a line instead of a large string.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BlobRef {
    #[serde(rename = "$blob")]
    pub(super) hash: String,
    pub(super) bytes: u64,
    /// The blob is the JSON literal and not the text it spells: it was spelled in a way we would not spell it.
    #[serde(default)]
    pub(super) literal: bool,
}

impl BlobRef {
    /// What is read in the place of a value that is gone.
    pub(super) fn stand_in(&self) -> String {
        let text = format!("[{} bytes that cannot be read any more]", self.bytes);
        if self.literal { quoted(&text) } else { text }
    }
}

/// Cuts large strings out of a body and escapes what looks like a reference.
pub(super) fn fold(body: String) -> (String, Vec<Blob>) {
    if body.len() <= LARGE && !body.contains("$blob\"") && !body.contains('\n') {
        return (body, Vec::new());
    }
    // A raw line feed can only stand between tokens, in a block that came that way; a line has room for none.
    if !body.contains('\n') {
        let folded = fold_strings(&body);
        if folded.0.len() <= MAX_BODY {
            return folded;
        }
    }
    fold_strings(&format!("{{\"{TEXT_KEY}\":{}}}", quoted(&body)))
}

fn fold_strings(text: &str) -> (String, Vec<Blob>) {
    let mut out = String::with_capacity(text.len().min(2 * LARGE));
    let mut blobs = Vec::new();
    let mut copied = 0;
    for token in Strings::of(text) {
        let literal = slice(text, &token.range);
        let replacement = match token.is_key {
            true => dollars(literal).map(|_| literal.replacen('"', "\"$", 1)),
            false if literal.len() > LARGE => {
                let (blob, form) = Blob::of(literal);
                let reference =
                    format!("{{\"$blob\":\"{}\",\"bytes\":{}{form}}}", blob.hash, blob.bytes.len());
                blobs.push(blob);
                Some(reference)
            }
            false => None,
        };
        if let Some(replacement) = replacement {
            out.push_str(slice(text, &(copied..token.range.start)));
            out.push_str(&replacement);
            copied = token.range.end;
        }
    }
    out.push_str(slice(text, &(copied..text.len())));
    (out, blobs)
}

/// Puts large strings back and undoes the escapes. `fetch` gives the bytes of a blob, already checked.
pub(super) fn unfold<'a>(
    body: &'a str,
    mut fetch: impl FnMut(&BlobRef) -> Result<String, BlobError>,
) -> Result<Cow<'a, str>, BlobError> {
    let text = match body.contains("$blob\"") {
        true => Cow::Owned(unfold_strings(body, &mut fetch)?),
        false => Cow::Borrowed(body),
    };
    let Some(literal) =
        text.strip_prefix("{\"").and_then(|rest| rest.strip_prefix(TEXT_KEY)?.strip_prefix("\":"))
    else {
        return Ok(text);
    };
    literal
        .strip_suffix('}')
        .and_then(|literal| serde_json::from_str(literal).ok())
        .map(Cow::Owned)
        .ok_or_else(|| BlobError::Reference { text: shown(&text) })
}

fn unfold_strings(
    text: &str,
    fetch: &mut impl FnMut(&BlobRef) -> Result<String, BlobError>,
) -> Result<String, BlobError> {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for token in Strings::of(text) {
        let literal = slice(text, &token.range);
        if !token.is_key || token.range.start < copied {
            continue;
        }
        match dollars(literal) {
            None => {}
            Some(1) => {
                let from = token.range.start.saturating_sub(1);
                let rest = text.get(from..).unwrap_or_default();
                let reference = rest.find('}').and_then(|end| rest.get(..=end)).unwrap_or(rest);
                let malformed = || BlobError::Reference { text: shown(reference) };
                let parsed: BlobRef = serde_json::from_str(reference).map_err(|_| malformed())?;
                out.push_str(slice(text, &(copied..from)));
                let content = fetch(&parsed)?;
                match parsed.literal {
                    true => out.push_str(&content),
                    false => out.push_str(&quoted(&content)),
                }
                copied = from + reference.len();
            }
            Some(_) => {
                out.push_str(slice(text, &(copied..token.range.start)));
                out.push_str(&literal.replacen('$', "", 1));
                copied = token.range.end;
            }
        }
    }
    out.push_str(slice(text, &(copied..text.len())));
    Ok(out)
}

impl Blob {
    /// The text a literal spells, where we would spell it the same way; else the literal itself, and the reference
    /// says so.
    fn of(literal: &str) -> (Self, &'static str) {
        let (bytes, form) = match serde_json::from_str::<String>(literal) {
            Ok(text) if quoted(&text) == literal => (text.into_bytes(), ""),
            _ => (literal.as_bytes().to_vec(), ",\"literal\":true"),
        };
        (Self { hash: super::blobs::hash(&bytes), bytes }, form)
    }
}

/// For a key that reads `$blob`, `$$blob` and so on: how many `$` there are.
fn dollars(literal: &str) -> Option<usize> {
    let dollars = literal.strip_prefix('"')?.strip_suffix("blob\"")?;
    (!dollars.is_empty() && dollars.bytes().all(|byte| byte == b'$')).then_some(dollars.len())
}

fn quoted(text: &str) -> String {
    // A string is always writable as JSON; `Value` spells it without an error to drop.
    serde_json::Value::from(text).to_string()
}

fn slice<'a>(text: &'a str, range: &Range<usize>) -> &'a str {
    text.get(range.clone()).unwrap_or_default()
}

fn shown(text: &str) -> String {
    amplifier_protocol::text::shorten(text, 120).into_owned()
}

/// The string literals of a JSON text, in order.
struct Strings<'a> {
    text: &'a str,
    at: usize,
}

struct StringToken {
    /// Where the literal stands, quotes included.
    range: Range<usize>,
    is_key: bool,
}

impl<'a> Strings<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for Strings<'_> {
    type Item = StringToken;

    fn next(&mut self) -> Option<StringToken> {
        let start = self.at + self.text.get(self.at..)?.find('"')?;
        let mut end = start + 1;
        loop {
            let rest = self.text.get(end..)?;
            let stop = rest.find(['"', '\\'])?;
            end += stop + 1;
            if rest.as_bytes().get(stop) == Some(&b'"') {
                break;
            }
            // What follows a backslash is one ASCII byte; the digits after `\u` need no skipping.
            end += 1;
        }
        self.at = end;
        let is_key = self.text.get(end..)?.trim_start().starts_with(':');
        Some(StringToken { range: start..end, is_key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn round_trip(body: &str) -> (String, usize) {
        let (folded, blobs) = fold(body.to_owned());
        assert!(!folded.contains('\n'));
        let store: HashMap<_, _> =
            blobs.iter().map(|b| (b.hash.clone(), String::from_utf8(b.bytes.clone()).unwrap())).collect();
        let back = unfold(&folded, |reference| {
            let content = &store[&reference.hash];
            assert_eq!(content.len() as u64, reference.bytes);
            Ok(content.clone())
        });
        assert!(back.unwrap() == body, "{folded}");
        (folded, blobs.len())
    }

    #[test]
    fn short_strings_stay_and_long_ones_go() {
        let long = "é\"\\".repeat(LARGE);
        let body = format!(r#"{{"a":"short","b":[{}, "x"]}}"#, quoted(&long));
        let (folded, blobs) = round_trip(&body);
        assert_eq!((blobs, folded.contains("short")), (1, true));
        assert!(folded.len() < 200, "{folded}");
    }

    #[test]
    fn data_that_looks_like_a_reference_is_not_one() {
        for body in [
            r#"{"$blob":"x"}"#,
            r#"{ "$blob" : {"$$blob":"$blob"} , "a":"$blob\"", "$$$blob":1}"#,
            r#"{"\u0024blob":1,"x$blob":2,"$blobs":3}"#,
        ] {
            assert_eq!(round_trip(body).1, 0, "{body}");
        }
    }

    #[test]
    fn a_literal_with_another_spelling_keeps_it() {
        let body = format!(r#"{{"a":"\u00e9\/\ud800{}"}}"#, "x".repeat(LARGE));
        let (folded, blobs) = round_trip(&body);
        assert_eq!((blobs, folded.contains("\"literal\":true")), (1, true));
    }

    #[test]
    fn line_feeds_between_tokens_and_endless_bodies_are_kept() {
        let (folded, _) = round_trip("{\"x\": [1,\n 2, {\"$blob\":\n \"s\"}]}");
        assert!(folded.starts_with("{\"$json\":\""), "{folded}");
        let endless = format!("[{}1]", "\"abc\",".repeat(MAX_BODY / 5));
        let (folded, blobs) = round_trip(&endless);
        assert_eq!((blobs, folded.len() < 200), (1, true));
    }

    #[test]
    fn a_malformed_reference_is_an_error_that_shows_it() {
        for body in [r#"{"$blob":7}"#, r#"{"a":1,"$blob":"x","bytes":1}"#, r#"{"$blob":"#] {
            let error = unfold(body, |_| Ok(String::new())).unwrap_err();
            assert!(matches!(error, BlobError::Reference { .. }), "{error}");
        }
    }
}
