//! Finds what looks like a well-known secret inside a text, in one pass from left to right.
//!
//! A candidate begins only where a word begins, and what was looked at and rejected ends at the same word, so no
//! character is looked at more than a few times.

use std::borrow::Cow;
use std::ops::Range;

use amplifier_protocol::address::is_secret_parameter;

use super::REDACTED;

/// A kind of key that is known by how it begins.
struct Shape {
    prefix: &'static str,
    /// How many characters must follow the prefix at least.
    least: usize,
    /// What those characters may be.
    fits: fn(u8) -> bool,
}

/// Keys of services that mark theirs, longest prefix first where one begins another.
const SHAPES: [Shape; 19] = [
    Shape { prefix: "sk-ant-", least: 8, fits: is_dashed },
    Shape { prefix: "github_pat_", least: 16, fits: is_dashed },
    Shape { prefix: "ghp_", least: 16, fits: is_plain },
    Shape { prefix: "gho_", least: 16, fits: is_plain },
    Shape { prefix: "ghu_", least: 16, fits: is_plain },
    Shape { prefix: "ghs_", least: 16, fits: is_plain },
    Shape { prefix: "ghr_", least: 16, fits: is_plain },
    Shape { prefix: "glpat-", least: 16, fits: is_dashed },
    Shape { prefix: "AKIA", least: 16, fits: is_capital },
    Shape { prefix: "ASIA", least: 16, fits: is_capital },
    Shape { prefix: "AIza", least: 20, fits: is_dashed },
    Shape { prefix: "hf_", least: 20, fits: is_plain },
    Shape { prefix: "npm_", least: 20, fits: is_plain },
    Shape { prefix: "gsk_", least: 20, fits: is_plain },
    Shape { prefix: "xai-", least: 20, fits: is_dashed },
    Shape { prefix: "sk_live_", least: 16, fits: is_plain },
    Shape { prefix: "rk_live_", least: 16, fits: is_plain },
    Shape { prefix: "pypi-", least: 20, fits: is_dashed },
    Shape { prefix: "sk-", least: 16, fits: is_dashed },
];

/// How far before a parameter the address it belongs to is looked for.
const LONGEST_URL: usize = 4096;

/// A PEM label is short; a longer line that begins like one is something else.
const LONGEST_LABEL: usize = 64;

/// Words before a secret that are none themselves, as in `Bearer ${TOKEN}`.
const SCHEMES: [&str; 3] = ["bearer", "basic", "token"];

/// The text without what looks like a secret; borrowed when there is nothing to take out.
///
/// ```
/// use amplifier_core::redact::redact_text;
///
/// assert_eq!(redact_text("git clone https://me:hunter2@example.org/x"), "git clone https://me:[REDACTED]@example.org/x");
/// assert_eq!(redact_text("${OPENAI_API_KEY}"), "${OPENAI_API_KEY}");
/// ```
pub fn redact_text(text: &str) -> Cow<'_, str> {
    let mut clean = String::new();
    let mut copied = 0;
    let mut at = 0;
    // A secret that was announced but begins later, as a password does after the user's name.
    let mut ahead = 0..0;
    while at < text.len() {
        at = next_begin(text.as_bytes(), at, &ahead);
        let secret = match secret_at(text, at) {
            _ if ahead.contains(&at) => at..ahead.end,
            Some(here) if here.start == at => here,
            later => {
                ahead = later.unwrap_or(ahead);
                at += 1;
                continue;
            }
        };
        // Patterns begin and end at ASCII, so these are character borders.
        clean.push_str(text.get(copied..at).unwrap_or_default());
        clean.push_str(REDACTED);
        copied = secret.end;
        at = secret.end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    clean.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(clean)
}

/// Whether a secret, or what introduces one, can begin with this byte. Most of a long text is skipped by this, and by where
/// words begin.
fn begins(byte: u8) -> bool {
    // A test holds this against the prefixes.
    matches!(
        byte,
        b':' | b'-'
            | b'?'
            | b'&'
            | b'b'
            | b'B'
            | b'e'
            | b'x'
            | b's'
            | b'g'
            | b'A'
            | b'h'
            | b'n'
            | b'r'
            | b'p'
    )
}

/// The next byte from `at` on that must be looked at, or the end of the text.
fn next_begin(bytes: &[u8], at: usize, ahead: &Range<usize>) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let mut previous = at.checked_sub(1).and_then(|before| bytes.get(before)).copied().unwrap_or(b' ');
    let is_begin = |byte: &u8| {
        let previous = std::mem::replace(&mut previous, *byte);
        begins(*byte) && (matches!(byte, b':' | b'-' | b'?' | b'&') || !is_dashed(previous))
    };
    let next = rest.iter().position(is_begin).map_or(bytes.len(), |skipped| at + skipped);
    let announced = if ahead.start < at && !ahead.contains(&at) { next } else { ahead.start.max(at) };
    next.min(announced)
}

/// For the value of a secret key: keeps `${VAR}` references and the scheme before them, hides their defaults, and
/// gives `None` if there is any other text.
pub(super) fn hide_all_but_references(text: &str) -> Option<String> {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (reference, after) = after.split_once('}')?;
        let name_end = reference.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (name, default) = reference.split_at(name_end.unwrap_or(reference.len()));
        if name.is_empty() || !is_harmless(before) || !(default.is_empty() || default.starts_with(':')) {
            return None;
        }
        kept.push_str(before);
        let is_empty_default = default.trim_start_matches([':', '-']).is_empty();
        if is_empty_default {
            kept.push_str(&format!("${{{name}{default}}}"));
        } else {
            kept.push_str(&format!("${{{name}:-{REDACTED}}}"));
        }
        rest = after;
    }
    (!kept.is_empty() && is_harmless(rest)).then(|| kept + rest)
}

fn is_harmless(text: &str) -> bool {
    let word = text.trim().to_ascii_lowercase();
    word.is_empty() || SCHEMES.contains(&word.as_str())
}

/// The range to hide if a secret, or what introduces one, begins at this byte, where a word begins or a mark stands.
fn secret_at(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    match bytes.get(at)? {
        b':' => return password_in_url(bytes, at),
        b'-' => return private_key(text, at),
        b'?' | b'&' => return parameter_of_url(text, at),
        _ => {}
    }
    after_scheme(bytes, at)
        .or_else(|| slack(bytes, at))
        .or_else(|| web_token(bytes, at))
        .or_else(|| SHAPES.iter().find_map(|shape| shaped(bytes, at, shape)))
}

fn shaped(bytes: &[u8], at: usize, shape: &Shape) -> Option<Range<usize>> {
    // One byte tells most words apart, before any comparison of more.
    let prefix = shape.prefix.as_bytes();
    if bytes.get(at) != prefix.first() || !starts(bytes, at, prefix) {
        return None;
    }
    let body = at + shape.prefix.len();
    let end = run(bytes, body, shape.fits);
    // A shorter key is still one if it has a digit; words with dashes, as in `sk-learn`, seldom do.
    let short_key = shape.prefix == "sk-" && end - body >= 8 && has_digit(bytes, body..end);
    (end - body >= shape.least || short_key).then_some(at..end)
}

/// `xoxb-…` and its kin.
fn slack(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let is_prefix = starts(bytes, at, b"xox")
        && bytes.get(at + 3).is_some_and(u8::is_ascii_lowercase)
        && bytes.get(at + 4) == Some(&b'-');
    let end = run(bytes, at + 5, is_dashed);
    (is_prefix && end >= at + 13).then_some(at..end)
}

/// A signed web token: three base64 parts, the first of which begins with an encoded `{"`.
fn web_token(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    if !starts(bytes, at, b"eyJ") {
        return None;
    }
    let end = run(bytes, at, |byte| is_dashed(byte) || byte == b'.');
    let dots = bytes.get(at..end)?.iter().filter(|byte| **byte == b'.').count();
    (end - at >= 30 && dots >= 2).then_some(at..end)
}

/// What follows `Bearer`, anywhere, or `Basic`, in a header. Prose about bearers has shorter words and no digits.
fn after_scheme(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let is_word =
        |word: &[u8]| bytes.get(at..at + word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word));
    let is_bearer = is_word(b"bearer");
    if !is_bearer && !is_word(b"basic") {
        return None;
    }
    let scheme_end = at + if is_bearer { b"bearer".len() } else { b"basic".len() };
    let start = run(bytes, scheme_end, |byte| matches!(byte, b' ' | b'\t'));
    let end = run(bytes, start, |byte| is_dashed(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'='));
    let looks_like_a_key = end - start >= 16 || (end - start >= 6 && has_digit(bytes, start..end));
    let is_secret = end > start && (is_bearer && looks_like_a_key || follows_authorization(bytes, at));
    (start > scheme_end && is_secret).then_some(start..end)
}

/// Whether the text before `at` ends like the name of an authorization header, quoted or not.
fn follows_authorization(bytes: &[u8], at: usize) -> bool {
    let before = bytes.get(at.saturating_sub(20)..at).unwrap_or_default();
    let tail = String::from_utf8_lossy(before).to_ascii_lowercase();
    tail.trim_end_matches([' ', '"', '\'', ':', '=', '\\']).ends_with("authorization")
}

/// The password of `scheme://user:password@host`; stands at the colon of `://` when called.
fn password_in_url(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    if !starts(bytes, at, b"://") {
        return None;
    }
    let start = at + 3;
    let end = run(bytes, start, |byte| {
        !byte.is_ascii_whitespace() && !matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>')
    });
    let authority = bytes.get(start..end)?;
    let host_at = start + authority.iter().rposition(|byte| *byte == b'@')?;
    let password_at = start + authority.iter().position(|byte| *byte == b':')? + 1;
    let password = bytes.get(password_at..host_at)?;
    let is_reference = password.starts_with(b"${") && password.ends_with(b"}");
    (!password.is_empty() && !is_reference).then_some(password_at..host_at)
}

/// The value of a secret parameter of an address; stands at the mark before its name when called.
fn parameter_of_url(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let name_end = run(bytes, at + 1, |byte| is_dashed(byte) || byte == b'.');
    let is_secret = bytes.get(name_end) == Some(&b'=') && is_secret_parameter(text.get(at + 1..name_end)?);
    let start = name_end + 1;
    let end = run(bytes, start, |byte| is_in_url(byte) && !matches!(byte, b'&' | b'#'));
    let before = bytes.get(at.saturating_sub(LONGEST_URL)..at)?;
    let is_url = || {
        let word = before.iter().rposition(|byte| !is_in_url(*byte)).map_or(0, |blank| blank + 1);
        before.get(word..).is_some_and(|word| word.windows(3).any(|mark| mark == b"://"))
    };
    (is_secret && end > start && is_url() && !text.get(start..end)?.starts_with("${")).then_some(start..end)
}

fn is_in_url(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\')
}

/// A PEM block that holds a private key, to its end line or, cut off, to the end of the text.
fn private_key(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    const BEGIN: &[u8] = b"-----BEGIN ";
    if !starts(bytes, at, BEGIN) {
        return None;
    }
    let label = at + BEGIN.len();
    let label_end =
        run(bytes, label, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ');
    let is_private = label_end - label <= LONGEST_LABEL
        && bytes.get(label..label_end)?.ends_with(b"PRIVATE KEY")
        && starts(bytes, label_end, b"-----");
    if !is_private {
        return None;
    }
    let rest = text.get(label_end..)?;
    let end = rest.find("-----END ").and_then(|from| {
        let tail = from + "-----END ".len();
        rest.get(tail..)?.find("-----").map(|close| label_end + tail + close + 5)
    });
    Some(at..end.unwrap_or(text.len()))
}

fn starts(bytes: &[u8], at: usize, prefix: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(prefix))
}

/// Where the run of fitting bytes that begins at `from` ends.
fn run(bytes: &[u8], from: usize, fits: fn(u8) -> bool) -> usize {
    let length = bytes.get(from..).map_or(0, |rest| rest.iter().take_while(|byte| fits(**byte)).count());
    from + length
}

fn has_digit(bytes: &[u8], range: Range<usize>) -> bool {
    bytes.get(range).is_some_and(|run| run.iter().any(u8::is_ascii_digit))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_dashed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn is_capital(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_begins_with_a_byte_that_is_skipped() {
        let others = [":", "-", "?", "&", "bearer", "Basic", "xoxb-", "eyJ"];
        for word in SHAPES.iter().map(|shape| shape.prefix).chain(others) {
            assert!(begins(word.as_bytes()[0]), "{word}");
        }
    }
}
