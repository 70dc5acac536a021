//! Whether the key of an object says that its value is a secret.
//!
//! Keys are read as words (`openai_api_key`, `X-Api-Key`, `clientSecret`) and judged by the last of them, so that
//! `max_tokens`, `token_budget` and `api_key_env` keep their values.

use std::borrow::Cow;
use std::ops::Range;

/// Last words that always mean a secret.
const SECRET_WORDS: [&str; 12] = [
    "secret",
    "secrets",
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "pwd",
    "credential",
    "credentials",
    "auth",
    "authorization",
    "cookie",
];

/// Endings of a last word that was written without separators, such as `openaiapikey`.
const SECRET_ENDINGS: [&str; 9] = [
    "apikey",
    "apikeys",
    "secretkey",
    "accesskey",
    "privatekey",
    "password",
    "secret",
    "accesstoken",
    "authtoken",
];

/// Words that make a following `key` or `keys` a secret.
const KEY_KINDS: [&str; 11] = [
    "api",
    "access",
    "secret",
    "private",
    "encryption",
    "signing",
    "ssh",
    "master",
    "account",
    "shared",
    "subscription",
];

/// Words that make a following `token` a thing of language models rather than a secret.
const TOKEN_COUNTS: [&str; 12] =
    ["max", "min", "per", "eos", "bos", "pad", "unk", "stop", "mask", "sep", "cls", "special"];

/// Words that make a following `tokens`, otherwise a count, secrets.
const TOKEN_KINDS: [&str; 4] = ["access", "auth", "refresh", "bearer"];

/// Whether the value under this key must not be shown.
///
/// ```
/// use amplifier_core::redact::names_a_secret;
///
/// assert!(names_a_secret("OPENAI_API_KEY") && !names_a_secret("max_tokens"));
/// ```
pub fn names_a_secret(key: &str) -> bool {
    let (before, last) = last_words(key);
    let (before, last) = (lower(before), lower(last));
    match &*last {
        "key" | "keys" => KEY_KINDS.contains(&&*before),
        "token" => !TOKEN_COUNTS.contains(&&*before),
        "tokens" => TOKEN_KINDS.contains(&&*before),
        word => SECRET_WORDS.contains(&word) || SECRET_ENDINGS.iter().any(|ending| word.ends_with(ending)),
    }
}

fn lower(word: &str) -> Cow<'_, str> {
    let is_lower = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if is_lower { Cow::Borrowed(word) } else { Cow::Owned(word.to_lowercase()) }
}

/// The last word and the one before it; nothing where there is none. Words end at anything that is no letter or digit, and
/// where a capital begins another (`apiKey`, `APIKey`).
fn last_words(key: &str) -> (&str, &str) {
    let (mut before, mut last) = ("", "");
    let mut end = |word: Range<usize>| {
        if let Some(word) = key.get(word).filter(|word| !word.is_empty()) {
            before = std::mem::replace(&mut last, word);
        }
    };
    let (mut start, mut previous) = (0, ' ');
    let mut rest = key.char_indices().peekable();
    while let Some((at, letter)) = rest.next() {
        let next_is_lower = rest.peek().is_some_and(|(_, next)| next.is_lowercase());
        let begins_word = letter.is_uppercase()
            && (previous.is_lowercase()
                || previous.is_numeric()
                || (previous.is_uppercase() && next_is_lower));
        if begins_word {
            end(start..at);
            start = at;
        } else if !letter.is_alphanumeric() {
            end(start..at);
            start = at + letter.len_utf8();
        }
        previous = letter;
    }
    end(start..key.len());
    (before, last)
}
