//! Whether the key of an object says that its value is a secret.
//!
//! Keys are read as words (`openai_api_key`, `X-Api-Key`, `clientSecret`) and judged by the last of them, so that
//! `max_tokens`, `token_budget` and `api_key_env` keep their values.

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
    let words = words(key);
    let mut from_last = words.iter().rev().map(String::as_str);
    let Some(last) = from_last.next() else { return false };
    let before = from_last.next().unwrap_or_default();
    match last {
        "key" | "keys" => KEY_KINDS.contains(&before),
        "token" => !TOKEN_COUNTS.contains(&before),
        "tokens" => TOKEN_KINDS.contains(&before),
        word => SECRET_WORDS.contains(&word) || SECRET_ENDINGS.iter().any(|ending| word.ends_with(ending)),
    }
}

/// Splits at anything that is no letter or digit, and where a capital begins a word (`apiKey`, `APIKey`).
fn words(key: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut previous = ' ';
    let mut rest = key.chars().peekable();
    while let Some(letter) = rest.next() {
        let next_is_lower = rest.peek().is_some_and(|next| next.is_lowercase());
        let begins_word = letter.is_uppercase()
            && (previous.is_lowercase()
                || previous.is_numeric()
                || (previous.is_uppercase() && next_is_lower));
        if (begins_word || !letter.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        previous = letter;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}
