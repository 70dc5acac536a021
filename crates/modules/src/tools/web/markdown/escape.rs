//! Keeps text from reading as Markdown: a backslash where a reader would take a sign for a mark, and nowhere else.

/// Where in its line a word stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    LineStart,
    Inside,
}

/// What follows a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Space,
    /// The end of the text, and then anything.
    Unknown,
}

/// Writes a word.
pub(super) fn put(out: &mut String, word: &str, at: At, after: After) {
    let word = if at == At::LineStart { put_line_start(out, word) } else { word };
    let is_address = word.contains("://") || word.starts_with("www.");
    let mut rest = word;
    while let Some(c) = rest.chars().next() {
        let (same, tail) = match c {
            '*' | '_' => rest.split_at(rest.len() - rest.trim_start_matches(c).len()),
            _ => rest.split_at(c.len_utf8()),
        };
        let next = tail.chars().next();
        let escaped = match c {
            '`' => true,
            '<' => next.map_or(after == After::Unknown, |c| c.is_ascii_alphabetic() || "/!?".contains(c)),
            '(' => out.ends_with(']'),
            _ if is_address => false,
            '\\' => next.map_or(after == After::Unknown, |c| c.is_ascii_punctuation()),
            '&' => is_reference(tail),
            '*' => is_mark(out.chars().next_back(), next, after, |_| false),
            '_' => is_mark(out.chars().next_back(), next, after, char::is_alphanumeric),
            _ => false,
        };
        if escaped {
            for c in same.chars() {
                out.push('\\');
                out.push(c);
            }
        } else {
            out.push_str(same);
        }
        rest = tail;
    }
}

/// Whether stars or underscores between these two would mark something.
fn is_mark(before: Option<char>, next: Option<char>, after: After, joins: fn(char) -> bool) -> bool {
    let blank_before = before.is_none_or(char::is_whitespace);
    let blank_next = next.is_none() && after == After::Space;
    let joined = before.is_some_and(joins) && next.is_some_and(joins);
    !(joined || blank_before && blank_next)
}

/// Writes what the first word of a line needs so that it begins nothing, and gives what is left of the word.
fn put_line_start<'w>(out: &mut String, word: &'w str) -> &'w str {
    let only = |sign: char| word.chars().all(|c| c == sign);
    let escaped = match word.chars().next() {
        Some('>') => true,
        Some('#') => only('#') && word.len() <= 6,
        Some('+') => word == "+",
        Some(sign @ ('-' | '=')) => only(sign),
        Some('*') => only('*'),
        Some('_') => only('_') && word.len() > 2,
        Some('~') => word.starts_with("~~~"),
        Some('[') => word.split_once(']').is_some_and(|(_, rest)| rest.starts_with(':')),
        _ => false,
    };
    if escaped {
        let (sign, rest) = word.split_at(1);
        out.push('\\');
        out.push_str(sign);
        // The others are alone among blanks, and mark nothing any more.
        if only('*') || only('_') {
            out.push_str(rest);
            return "";
        }
        return rest;
    }
    let digits = word.trim_start_matches(|c: char| c.is_ascii_digit());
    if digits.len() < word.len() && matches!(digits, "." | ")") {
        out.push_str(word.get(..word.len() - 1).unwrap_or_default());
        out.push('\\');
        return digits;
    }
    word
}

/// Whether what follows an ampersand would make a character reference of it.
fn is_reference(tail: &str) -> bool {
    let name = tail.strip_prefix('#').unwrap_or(tail);
    let end = name.bytes().take(32).position(|byte| !byte.is_ascii_alphanumeric());
    end.is_some_and(|end| end > 0 && name.get(end..).is_some_and(|rest| rest.starts_with(';')))
}
