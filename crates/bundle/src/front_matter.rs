//! Splits a Markdown file into its YAML head and its body, lines kept. It reads no YAML.

use std::ops::Range;

/// A text in two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrontMatter<'t> {
    /// What stands between the fences; `None` without a head.
    pub yaml: Option<&'t str>,
    /// The number of the head's first line.
    pub yaml_line: u32,
    /// What follows the head, or the whole text.
    pub body: &'t str,
    /// The number of the body's first line.
    pub body_line: u32,
}

/// Splits a text. A head begins with `---` on the very first line and ends with the next line that is only `---`.
///
/// A fence that is never closed is no head: the text is all body, and the caller may want to say so
/// (see [`opens_unclosed`]).
pub fn split(text: &str) -> FrontMatter<'_> {
    let whole = FrontMatter { yaml: None, yaml_line: 1, body: text, body_line: 1 };
    let Some((yaml, body_start)) = find(text) else { return whole };
    let body = text.get(body_start..).unwrap_or_default();
    let blank = body.len() - body.trim_start_matches(['\n', '\r', ' ', '\t']).len();
    // Blank lines after the fence are nobody's; an indented first line keeps its indentation.
    let skipped = body.get(..blank).and_then(|space| space.rfind('\n')).map_or(0, |newline| newline + 1);
    let start = if blank == body.len() { text.len() } else { body_start + skipped };
    FrontMatter {
        yaml: text.get(yaml.clone()),
        yaml_line: 2,
        body: text.get(start..).unwrap_or_default(),
        body_line: line_of(text, start),
    }
}

/// Whether a text begins like one with a head whose closing fence is missing.
pub fn opens_unclosed(text: &str) -> bool {
    text.split_inclusive('\n').next().is_some_and(is_fence) && find(text).is_none()
}

/// A text without the byte order marks some editors put before it.
pub fn without_byte_order_mark(text: &str) -> &str {
    text.trim_start_matches('\u{feff}')
}

fn find(text: &str) -> Option<(Range<usize>, usize)> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| is_fence(line))?;
    let mut at = first.len();
    for line in lines {
        if is_fence(line) {
            return Some((first.len()..at, at + line.len()));
        }
        at += line.len();
    }
    None
}

fn is_fence(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| rest.trim().is_empty())
}

fn line_of(text: &str, offset: usize) -> u32 {
    let newlines = text.get(..offset).unwrap_or(text).bytes().filter(|byte| *byte == b'\n').count();
    u32::try_from(newlines).unwrap_or(u32::MAX).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (Option<&str>, &str) {
        let found = split(text);
        (found.yaml, found.body)
    }

    #[test]
    fn heads_are_found() {
        assert_eq!(parts("---\na: 1\n---\nbody\n"), (Some("a: 1\n"), "body\n"));
        assert_eq!(parts("---\na: 1\n---"), (Some("a: 1\n"), ""));
        assert_eq!(parts("---\r\na: 1\r\n---\r\nb\r\n"), (Some("a: 1\r\n"), "b\r\n"));
        assert_eq!(parts("--- \na: 1\n--- \nb"), (Some("a: 1\n"), "b"));
        assert_eq!(parts("---\n---\nbody"), (Some(""), "body"));
        assert_eq!(parts("---\n\n---\nbody"), (Some("\n"), "body"));
    }

    #[test]
    fn what_only_looks_like_a_fence_is_none() {
        assert_eq!(parts("\n---\na: 1\n---\n"), (None, "\n---\na: 1\n---\n"));
        assert_eq!(parts("---\na: 1\n...\nx"), (None, "---\na: 1\n...\nx"));
        assert!(opens_unclosed("---\na: 1\n...\nx"));
        assert!(!opens_unclosed("---\na: 1\n---\nx") && !opens_unclosed("text"));
        assert_eq!(parts("---\na: |\n  ---\n  x\n---\nb"), (Some("a: |\n  ---\n  x\n"), "b"));
        assert_eq!(parts("---\na: 1\n----\nx\n---\ny"), (Some("a: 1\n----\nx\n"), "y"));
        assert_eq!(parts("plain\n---\n"), (None, "plain\n---\n"));
    }

    #[test]
    fn the_body_knows_its_first_line() {
        let found = split("---\na: 1\n---\n\n\n    code\nb");
        assert_eq!((found.body, found.body_line, found.yaml_line), ("    code\nb", 6, 2));
        assert_eq!(split("x").body_line, 1);
        assert_eq!(split("---\n---\n \n\n").body, "");
    }

    #[test]
    fn byte_order_marks_are_nothing() {
        assert_eq!(without_byte_order_mark("\u{feff}\u{feff}---\n"), "---\n");
    }
}
