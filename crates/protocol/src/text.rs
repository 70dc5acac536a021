//! Text that a model may read: what is removed before it does.

use std::borrow::Cow;

/// Removes control characters that model services reject; tab, line feed and carriage return stay.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_unfit) {
        Cow::Owned(text.chars().filter(|c| !is_unfit(*c)).collect())
    } else {
        Cow::Borrowed(text)
    }
}

fn is_unfit(c: char) -> bool {
    matches!(c, '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}

/// The longest prefix of at most `max` characters, with `...[truncated]` when something was cut.
pub fn shorten(text: &str, max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max) {
        Some((at, _)) => Cow::Owned(format!("{}...[truncated]", text.get(..at).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_go_and_line_ends_stay() {
        assert_eq!(sanitize("a\u{0}b\tc\r\nd\u{7f}\u{85}e\u{1b}[0m"), "ab\tc\r\nde[0m");
        assert!(matches!(sanitize("plain\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn shortening_counts_characters_not_bytes() {
        assert_eq!(shorten("äöü", 3), "äöü");
        assert_eq!(shorten("äöüß", 3), "äöü...[truncated]");
    }
}
