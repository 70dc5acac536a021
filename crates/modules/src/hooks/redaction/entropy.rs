//! Long random values, and the values of variables whose names say "secret" in the text of an environment.
//!
//! Random means: 32 to 128 characters of base64, small and capital letters and digits mixed, no words between
//! separators, and little repetition. Hashes, UUIDs, paths, identifiers and encoded files are none.

use std::borrow::Cow;
use std::ops::Range;

use amplifier_core::redact::{REDACTED, names_a_secret};

const SHORTEST: usize = 32;
const LONGEST: usize = 128;
/// Bits per character; random base64 of 32 characters has about 4.6, names made of words have about 4.0.
const LEAST_BITS: f64 = 4.3;

/// The text without such values; borrowed when there are none.
pub(super) fn hide(text: &str) -> Cow<'_, str> {
    let mut clean = String::new();
    let mut copied = 0;
    for word in words(text) {
        let Some(found) = text.get(word.clone()) else { continue };
        let (hidden_from, hide) = match assigned(found) {
            Some(value_at) => (word.start + value_at, true),
            None => (word.start, is_random(found)),
        };
        if hide && hidden_from >= copied {
            clean.push_str(text.get(copied..hidden_from).unwrap_or_default());
            clean.push_str(REDACTED);
            copied = word.end;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    clean.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(clean)
}

/// Runs of characters that a key may hold, with a name and `=` before them when they are assigned.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while bytes.get(at).is_some_and(|byte| !is_of_key(*byte)) {
            at += 1;
        }
        let start = at;
        while bytes.get(at).is_some_and(|byte| is_of_key(*byte)) {
            at += 1;
        }
        (at > start).then_some(start..at)
    })
}

fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_' | b'-' | b'=')
}

/// Where the value of `NAME=value` begins, if it must be hidden: the name says so, or the value is random.
fn assigned(word: &str) -> Option<usize> {
    let (name, value) = word.split_once('=')?;
    let is_variable = name.len() > 1
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    let hides = !value.trim_end_matches('=').is_empty()
        && ((is_variable && names_a_secret(name)) || is_random(value));
    hides.then_some(name.len() + 1)
}

fn is_random(word: &str) -> bool {
    let word = word.trim_end_matches('=');
    if !(SHORTEST..=LONGEST).contains(&word.len()) {
        return false;
    }
    let count = |fits: fn(&u8) -> bool| word.bytes().filter(&fits).count();
    let is_mixed = count(u8::is_ascii_lowercase) >= 2
        && count(u8::is_ascii_uppercase) >= 2
        && count(u8::is_ascii_digit) >= 2;
    let is_word = |part: &str| {
        part.len() >= 3
            && (part.bytes().all(|byte| byte.is_ascii_lowercase())
                || part.bytes().all(|byte| byte.is_ascii_uppercase()))
    };
    is_mixed && !word.split(['/', '_', '-', '+']).any(is_word) && bits(word) >= LEAST_BITS
}

/// Shannon's entropy of the characters.
fn bits(word: &str) -> f64 {
    let mut counts = [0_u32; 128];
    for byte in word.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let length = f64::from(u32::try_from(word.len()).unwrap_or(u32::MAX));
    let share = |count: &u32| f64::from(*count) / length;
    counts.iter().filter(|count| **count > 0).map(|count| -share(count) * share(count).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_values_go_and_everything_that_only_looks_long_stays() {
        assert_eq!(hide("key wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLq8 end"), "key [REDACTED] end");
        assert_eq!(hide("x=9fK2mQ7vLz4TbX8sWnR3cYhJ6pDgAe5U\n"), "x=[REDACTED]\n");
        for plain in [
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "019a8a1e-7f10-7c3a-9d52-3b1f0e6c4a11",
            "crates/modules/src/hooks/Redaction2/EntropyTests9.rs",
            "SomeVeryLongCamelCaseIdentifierNameNumber42",
            "THIS_IS_A_LONG_CONSTANT_NAME_WITH_Digits_123",
            "2026-11-15T19:44:00.123456+00:00",
        ] {
            assert!(matches!(hide(plain), Cow::Borrowed(_)), "{plain} became {}", hide(plain));
        }
        let encoded_file = "Qk02U1f9AAAA".repeat(40);
        assert!(matches!(hide(&encoded_file), Cow::Borrowed(_)));
    }

    #[test]
    fn variables_that_name_a_secret_lose_their_value_however_short() {
        assert_eq!(hide("DB_PASSWORD=hunter2 PATH=/usr/bin"), "DB_PASSWORD=[REDACTED] PATH=/usr/bin");
        assert_eq!(hide("let token = 5; max_tokens=10"), "let token = 5; max_tokens=10");
    }
}
