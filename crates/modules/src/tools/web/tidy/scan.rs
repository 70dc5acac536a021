//! Reads tags off the front of a text. Every function is one pass and takes any text.

pub(super) fn value<'t>(attributes: &[(String, &'t str)], key: &str) -> Option<&'t str> {
    attributes.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
}

/// Where the first tag begins; the length of the text when it has none.
pub(super) fn opens_tag(text: &str) -> usize {
    let opens = |(at, _): &(usize, &str)| {
        let next = text.get(at + 1..).and_then(|rest| rest.chars().next());
        next.is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'))
    };
    text.match_indices('<').find(opens).map_or(text.len(), |(at, _)| at)
}

/// What comes after the first `end`; nothing when there is none.
pub(super) fn after<'t>(text: &'t str, end: &str) -> &'t str {
    text.split_once(end).map_or("", |(_, rest)| rest)
}

/// The name a tag begins with, in small letters.
pub(super) fn name(text: &str) -> (String, &str) {
    if !text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return (String::new(), text);
    }
    let end = text.find(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/')).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    (name.to_ascii_lowercase(), rest)
}

/// The attributes of a tag, and what comes after its `>`.
pub(super) fn attributes(mut text: &str) -> (Vec<(String, &str)>, &str) {
    let mut found = Vec::new();
    loop {
        text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '='));
        if let Some(rest) = text.strip_prefix('>') {
            return (found, rest);
        }
        if text.is_empty() {
            return (found, text);
        }
        let end = text.find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | '>' | '/'));
        let (key, rest) = text.split_at(end.unwrap_or(text.len()));
        let (value, rest) = match rest.trim_start().strip_prefix('=') {
            Some(rest) => attribute_value(rest.trim_start()),
            None => ("", rest),
        };
        // No page needs more, and a tag of a million attributes needs no memory.
        if found.len() < 32 {
            found.push((key.to_ascii_lowercase(), value));
        }
        text = rest;
    }
}

fn attribute_value(text: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some(quoted) = text.strip_prefix(quote) {
            return quoted.split_once(quote).unwrap_or((quoted, ""));
        }
    }
    let end = text.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(text.len());
    text.split_at(end)
}

/// What is inside an element that holds only text for a browser, and what comes after its end.
pub(super) fn content<'t>(text: &'t str, name: &str) -> (&'t str, &'t str) {
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find("</")) {
        let at = from + found;
        let inner = text.get(at + 2..).unwrap_or_default();
        if inner.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return (text.get(..at).unwrap_or_default(), after(inner, ">"));
        }
        from = at + 2;
    }
    (text, "")
}
