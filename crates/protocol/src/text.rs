//! Text for models and for people: what is removed before a model reads it, and what is made visible before a person decides.

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

/// The same text with everything that could deceive the eye spelled out: control characters as `^[`, characters that
/// reorder text or cannot be seen as `\u{202e}`. Nothing is left out, so that whoever is asked about a text sees all of
/// it; tab and line feed stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| is_control(c) || is_unseen(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\u{7f}' => shown.push_str("^?"),
            c if c.is_ascii() && is_control(c) => {
                shown.push('^');
                // The letter of the key that makes it: Ctrl-[ is escape.
                shown.extend(u8::try_from(c).map(|byte| char::from(byte | 0x40)));
            }
            c if is_control(c) || is_unseen(c) => shown.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

fn is_control(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

/// What has no shape of its own: marks of direction, joiners, blanks without width, fillers, tags, and line ends that are
/// none for a terminal.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Bytes that are meant to be text, such as the name of a file: what is no UTF-8 is spelled out as `\xff`, so that two names
/// never look the same and nobody takes what is shown for the name itself.
pub fn spelled(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut spelled = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        spelled.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| spelled.push_str(&format!("\\x{byte:02x}")));
    }
    Cow::Owned(spelled)
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
    fn what_is_no_text_is_spelled_out() {
        assert_eq!(spelled(b"b\xc3\xa4d\xff\xfe.txt"), "b\u{e4}d\\xff\\xfe.txt");
        assert!(matches!(spelled("bäd".as_bytes()), Cow::Borrowed(_)));
    }

    #[test]
    fn what_deceives_the_eye_is_spelled_out_and_nothing_is_left_out() {
        assert_eq!(visible("a\u{1b}]x\u{7}\u{8}\r\u{0}\u{7f}b"), "a^[]x^G^H^M^@^?b");
        assert_eq!(
            visible("\u{9b}8m \u{202e}txt\u{2066}\u{200b}"),
            "\\u{9b}8m \\u{202e}txt\\u{2066}\\u{200b}"
        );
        assert!(matches!(visible("plain\ttext, äöü 日本\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn shortening_counts_characters_not_bytes() {
        assert_eq!(shorten("äöü", 3), "äöü");
        assert_eq!(shorten("äöüß", 3), "äöü...[truncated]");
    }
}
