//! E-mail addresses and telephone numbers, strictly: a date, an id, a version or a count is none.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// What stands where personal data was.
pub(super) const HIDDEN: &str = "[REDACTED:PII]";

/// Endings that make `name@2x.png` a file.
const FILES: [&str; 9] = ["png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "css", "js"];

// A pattern that does not compile would hide nothing; the tests below fail then.
static MAIL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,24}").ok()
});

/// With a plus and a country, or in the North American form with its separators.
static PHONE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\+[1-9][0-9]{0,2}(?:[ .-]?\(?[0-9]{1,4}\)?){2,6}|\([2-9][0-9]{2}\) ?[2-9][0-9]{2}-[0-9]{4}|[2-9][0-9]{2}-[2-9][0-9]{2}-[0-9]{4}").ok()
});

/// The text without them; borrowed when there are none.
pub(super) fn hide(text: &str) -> Cow<'_, str> {
    let text = if text.contains('@') { hide_where(text, &MAIL, is_mail) } else { Cow::Borrowed(text) };
    if !hints_at_phone(text.as_bytes()) {
        return text;
    }
    match text {
        Cow::Borrowed(text) => hide_where(text, &PHONE, is_phone),
        Cow::Owned(text) => Cow::Owned(hide_where(&text, &PHONE, is_phone).into_owned()),
    }
}

/// Whether the pattern for telephone numbers could fit somewhere. Most texts have none, and most programs end before they
/// met one: then the pattern is never made.
fn hints_at_phone(text: &[u8]) -> bool {
    text.iter().enumerate().any(|(at, byte)| {
        let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
        match byte {
            b'+' => matches!(after, [b'1'..=b'9', ..]),
            b'(' => matches!(after, [b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b')', ..]),
            b'-' => {
                matches!(before, [.., b'0'..=b'9', b'0'..=b'9', b'0'..=b'9'])
                    && matches!(after, [b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'-', ..])
            }
            _ => false,
        }
    })
}

fn hide_where<'t>(
    text: &'t str,
    pattern: &Option<Regex>,
    fits: fn(&str, &str, &str) -> bool,
) -> Cow<'t, str> {
    let Some(pattern) = pattern else { return Cow::Borrowed(text) };
    let mut clean = String::new();
    let mut copied = 0;
    for found in pattern.find_iter(text) {
        let (before, after) =
            (text.get(..found.start()).unwrap_or_default(), text.get(found.end()..).unwrap_or_default());
        if fits(before, found.as_str(), after) {
            clean.push_str(text.get(copied..found.start()).unwrap_or_default());
            clean.push_str(HIDDEN);
            copied = found.end();
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    clean.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(clean)
}

fn is_mail(_before: &str, found: &str, after: &str) -> bool {
    let ending = found.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    // `git@host.org:path` and `user@host.org/path` name places, not people.
    let names_a_place = after.starts_with('/') || (after.starts_with(':') && !after.starts_with(": "));
    !FILES.contains(&ending.as_str()) && !names_a_place
}

fn is_phone(before: &str, found: &str, after: &str) -> bool {
    let digits = found.bytes().filter(u8::is_ascii_digit).count();
    // Part of a longer number, a sum, an offset of a time, or a name: none of them is dialled.
    let touches_left =
        before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_' | '+' | ':'));
    let touches_right = after.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '+'))
        || after.starts_with(['-', '.'])
            && after.get(1..).is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
    (8..=15).contains(&digits) && !touches_left && !touches_right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_numbers_are_hidden() {
        assert_eq!(hide("mail jo.b+x@mail.example.org now"), "mail [REDACTED:PII] now");
        for number in
            ["+49 30 901820", "+1 (555) 234-5678", "(555) 234-5678", "555-234-5678", "+4915112345678"]
        {
            assert_eq!(hide(&format!("call {number}.")), "call [REDACTED:PII].", "{number}");
        }
    }

    #[test]
    fn dates_ids_versions_and_remotes_are_left_alone() {
        for plain in [
            "id 1234567890 ok",
            "2026-11-15 19:44",
            "2026-11-15T19:44:00.123456+00:00",
            "1735689600000000",
            "192.168.100.200:8080",
            "git@github.com:org/repo.git",
            "icon@2x.png",
            "tokio@1.54.1",
            "3 + 12345678",
            "019a8a1e-7f10-7c3a-9d52-3b1f0e6c4a11",
            "build 555-234-56789",
        ] {
            assert!(matches!(hide(plain), Cow::Borrowed(_)), "{plain} became {}", hide(plain));
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_the_pattern_finds_was_hinted_at(text in "[0-9+(). a-]{0,24}|[2-9][0-9]{2}-[2-9][0-9]{2}-[0-9]{4}|\\([2-9][0-9]{2}\\) ?[2-9][0-9]{2}-[0-9]{4}") {
            let found = PHONE.as_ref().unwrap().is_match(&text);
            proptest::prop_assert!(!found || hints_at_phone(text.as_bytes()));
        }
    }
}
