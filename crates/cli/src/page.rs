//! Text that fits: wrapped at words, or shortened with a mark where one line has to do. How wide it may be is asked by
//! `render.rs`; nothing is printed here.

use crate::width::{beginning, ending};

pub use crate::width::width;

/// The least room for text beside a column of names; with less the text stands below its name.
const LEAST: usize = 24;
/// How far text stands in below its name.
const BELOW: usize = 6;

/// Text in lines that fit the page, each begun with as many blanks. Paragraphs stay apart, and no word is torn.
pub fn wrapped(text: &str, indent: usize, page: usize) -> String {
    let mut lines = Vec::new();
    let room = page.saturating_sub(indent);
    for paragraph in text.split("\n\n") {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && width(&line) + 1 + width(word) > room {
                lines.push(format!("{:indent$}{line}", ""));
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(format!("{:indent$}{line}", ""));
    }
    lines.join("\n")
}

/// Where text beside names really begins: at its column, or a little to the right where the page is narrow.
fn column(wanted: usize, page: usize) -> usize {
    if page < wanted + LEAST { BELOW.min(wanted) } else { wanted }
}

/// A name and, in a column to its right, what is said about it. A name too long for its column has a line of its own.
pub fn entry(name: &str, text: &str, wanted: usize, page: usize) -> String {
    let column = column(wanted, page);
    let body = wrapped(text, column, page);
    let room = column.saturating_sub(4);
    if width(name) > room {
        return format!("  {name}\n{body}");
    }
    format!("  {name:room$}  {}", body.trim_start())
}

/// More text about the same name, on lines of its own.
pub fn below(text: &str, wanted: usize, page: usize) -> String {
    wrapped(text, column(wanted, page), page)
}

/// A line as it is, or broken at words where it does not fit; what goes on stands a little further in.
pub fn broken(line: &str, page: usize) -> String {
    if width(line) <= page {
        return line.to_owned();
    }
    let words = line.trim_start_matches(' ');
    let indent = line.len() - words.len();
    let (mut lines, mut current) = (Vec::new(), " ".repeat(indent));
    for word in words.split(' ') {
        let is_begun = !current.trim().is_empty();
        if is_begun && width(&current) + 1 + width(word) > page {
            let next = " ".repeat(indent + 2);
            lines.push(std::mem::replace(&mut current, next));
        } else if is_begun {
            current.push(' ');
        }
        current.push_str(word);
    }
    lines.push(current);
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

/// As much of the beginning of a line as fits, with a mark where something is missing.
pub fn shortened(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let kept = beginning(text, room.saturating_sub(1)).trim_end();
    if room > 0 { format!("{kept}…") } else { String::new() }
}

/// As much of the end as fits: the end of a path says more than its beginning.
pub fn shortened_before(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let kept = ending(text, room.saturating_sub(1));
    if room > 0 { format!("…{kept}") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_to_the_page_and_its_paragraphs() {
        for page in [40, 80, 100] {
            let text = wrapped(&format!("{}\n\nend", "word ".repeat(40)), 4, page);
            assert!(text.lines().all(|line| width(line) <= page), "{text}");
            assert!(text.ends_with("\n\n    end"), "{text}");
        }
        // A word longer than the page is not torn.
        assert_eq!(width(&wrapped(&"x".repeat(100), 2, 80)), 102);
    }

    #[test]
    fn a_long_name_has_a_line_of_its_own() {
        assert_eq!(entry("a", "what it is", 8, 80), "  a     what it is");
        assert_eq!(entry("abcdef", "what it is", 8, 80), "  abcdef\n        what it is");
    }

    #[test]
    fn on_a_narrow_page_text_stands_below_its_name() {
        assert_eq!(entry("name", "what it is and does", 24, 40), "  name\n      what it is and does");
        assert_eq!(below("more", 24, 40), "      more");
        assert_eq!(below("more", 24, 80), format!("{:24}more", ""));
    }

    #[test]
    fn a_long_line_is_broken_at_words_and_a_short_one_stays() {
        assert_eq!(broken("  a  b", 40), "  a  b");
        assert_eq!(broken("  hint: one two three four", 14), "  hint: one\n    two three\n    four");
        assert_eq!(broken(&"x".repeat(50), 40), "x".repeat(50));
    }

    #[test]
    fn what_is_shortened_fits_and_says_so() {
        assert_eq!(shortened("a title", 7), "a title");
        assert_eq!(shortened("a long title", 8), "a long…");
        assert_eq!(shortened("日本語", 5), "日本…");
        assert_eq!(shortened_before("/home/me/work", 6), "…/work");
        assert_eq!([shortened("abc", 1), shortened("abc", 0)], ["…", ""]);
    }
}
