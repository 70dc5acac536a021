//! Some lines of a text file, numbered, reading no more than needed and keeping no more than shown.

use std::io::BufRead;

/// The longest part of a line that is shown, in characters.
const LINE_CHARS: usize = 2_000;
/// The most bytes such a part can have, and one character more so that a cut can be told from an end.
const LINE_BYTES: usize = (LINE_CHARS + 1) * 4;
/// The most that is shown at once, in bytes.
const CONTENT_BYTES: usize = 256 * 1024;
/// How far behind the shown lines the rest is looked through to count its lines.
const COUNT_BYTES: u64 = 64 * 1024 * 1024;

/// Which lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// The first, beginning with 1.
    pub(super) offset: u64,
    /// How many.
    pub(super) limit: u64,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Excerpt {
    /// The lines, each with its number.
    pub(super) content: String,
    pub(super) lines_read: u64,
    /// How many lines the file has; `None` when counting them would have taken too long.
    pub(super) total_lines: Option<u64>,
    /// Whether fewer lines than asked for are shown because they were too large together.
    pub(super) cut: bool,
}

/// Why nothing could be shown.
#[derive(Debug)]
pub(super) enum Unfit {
    /// Not text.
    Binary,
    /// Somebody wants to stop.
    Cancelled,
    Io(std::io::Error),
}

impl From<std::io::Error> for Unfit {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads the lines of a window. `go_on` is asked between reads.
pub(super) fn read(
    mut source: impl BufRead,
    window: Window,
    go_on: impl Fn() -> bool,
) -> Result<Excerpt, Unfit> {
    let mut reading =
        Reading { window, excerpt: Excerpt::default(), number: 1, line: Vec::new(), open: false };
    let mut counted = 0;
    loop {
        if !go_on() {
            return Err(Unfit::Cancelled);
        }
        let chunk = source.fill_buf()?;
        let length = chunk.len();
        if length == 0 {
            reading.end()?;
            return Ok(reading.excerpt);
        }
        if reading.wants_more() {
            reading.take(chunk)?;
        } else {
            counted += u64::try_from(length).unwrap_or(u64::MAX);
            if counted > COUNT_BYTES {
                return Ok(reading.excerpt);
            }
            reading.count(chunk);
        }
        source.consume(length);
    }
}

struct Reading {
    window: Window,
    excerpt: Excerpt,
    /// The line being read.
    number: u64,
    /// What is kept of it.
    line: Vec<u8>,
    /// Whether anything of it was seen.
    open: bool,
}

impl Reading {
    fn wants_more(&self) -> bool {
        !self.excerpt.cut && self.number < self.window.offset.saturating_add(self.window.limit)
    }

    fn take(&mut self, chunk: &[u8]) -> Result<(), Unfit> {
        // A zero byte is in every binary format and in no text.
        if chunk.contains(&0) {
            return Err(Unfit::Binary);
        }
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.open = true;
            if self.wants_more() && self.number >= self.window.offset && self.line.len() < LINE_BYTES {
                let room = LINE_BYTES - self.line.len();
                self.line.extend_from_slice(piece.get(..room).unwrap_or(piece));
            }
            if piece.ends_with(b"\n") {
                self.close()?;
            }
        }
        Ok(())
    }

    fn count(&mut self, chunk: &[u8]) {
        let ends = chunk.iter().filter(|byte| **byte == b'\n').count();
        self.number += u64::try_from(ends).unwrap_or(u64::MAX);
        self.open = !chunk.ends_with(b"\n");
    }

    /// Ends the line being read.
    fn close(&mut self) -> Result<(), Unfit> {
        if self.wants_more() && self.number >= self.window.offset {
            let text = shown(&self.line)?;
            if self.excerpt.lines_read > 0 && self.excerpt.content.len() + text.len() > CONTENT_BYTES {
                self.excerpt.cut = true;
            } else {
                let gap = if self.excerpt.lines_read == 0 { "" } else { "\n" };
                self.excerpt.content.push_str(&format!("{gap}{:>6}\t{text}", self.number));
                self.excerpt.lines_read += 1;
            }
        }
        self.line.clear();
        self.open = false;
        self.number += 1;
        Ok(())
    }

    fn end(&mut self) -> Result<(), Unfit> {
        if self.open {
            self.close()?;
        }
        self.excerpt.total_lines = Some(self.number - 1);
        Ok(())
    }
}

/// A line as it is shown: without its end, cut when it is long.
fn shown(line: &[u8]) -> Result<String, Unfit> {
    let line = line.strip_suffix(b"\n").map_or(line, |line| line.strip_suffix(b"\r").unwrap_or(line));
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        // Only the last character of a line we cut ourselves may be incomplete.
        Err(error) if error.error_len().is_none() && line.len() + 1 >= LINE_BYTES => {
            std::str::from_utf8(line.get(..error.valid_up_to()).unwrap_or_default())
                .map_err(|_| Unfit::Binary)?
        }
        Err(_) => return Err(Unfit::Binary),
    };
    Ok(match text.char_indices().nth(LINE_CHARS) {
        Some((at, _)) => format!("{}... [truncated]", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(text: &[u8], offset: u64, limit: u64) -> Excerpt {
        read(text, Window { offset, limit }, || true).unwrap()
    }

    #[test]
    fn lines_are_numbered_and_counted() {
        let all = excerpt(b"one\ntwo\nthree", 1, 2_000);
        assert_eq!(all.content, "     1\tone\n     2\ttwo\n     3\tthree");
        assert_eq!((all.lines_read, all.total_lines), (3, Some(3)));
        let second = excerpt(b"one\ntwo\nthree\n", 2, 1);
        assert_eq!(second.content, "     2\ttwo");
        assert_eq!((second.lines_read, second.total_lines), (1, Some(3)));
        assert_eq!(excerpt(b"", 1, 9), Excerpt { total_lines: Some(0), ..Excerpt::default() });
    }

    #[test]
    fn only_line_feeds_end_lines() {
        let text = "a\r\nb\u{c}c\u{85}d\u{2028}e\rf\n";
        assert_eq!(excerpt(text.as_bytes(), 1, 9).content, "     1\ta\n     2\tb\u{c}c\u{85}d\u{2028}e\rf");
    }

    /// Golden case 11.1: read_file of a line of more than 2000 characters.
    #[test]
    fn a_long_line_is_cut_by_characters_however_it_arrives() {
        let text = "ä".repeat(2_005);
        let expected = format!("     1\t{}... [truncated]", "ä".repeat(2_000));
        assert_eq!(excerpt(text.as_bytes(), 1, 1).content, expected);
        let slow = std::io::BufReader::with_capacity(3, text.as_bytes());
        assert_eq!(read(slow, Window { offset: 1, limit: 1 }, || true).unwrap().content, expected);
        let huge = "𝄞".repeat(100_000);
        assert!(excerpt(huge.as_bytes(), 1, 1).content.ends_with("... [truncated]"));
        assert_eq!(
            excerpt("x".repeat(2_000).as_bytes(), 1, 1).content,
            format!("     1\t{}", "x".repeat(2_000))
        );
    }

    #[test]
    fn what_is_not_text_is_refused() {
        for bytes in [&b"\xff\xfe\x00"[..], b"ab\x00cd", b"\xc3\x28\n"] {
            assert!(matches!(read(bytes, Window { offset: 1, limit: 9 }, || true), Err(Unfit::Binary)));
        }
    }

    #[test]
    fn too_much_at_once_is_cut_at_a_line() {
        let text = format!("{}\n", "x".repeat(1_000)).repeat(1_000);
        let part = excerpt(text.as_bytes(), 1, 2_000);
        assert!(part.cut && part.content.len() <= CONTENT_BYTES + 16, "{}", part.content.len());
        assert_eq!(part.total_lines, Some(1_000));
        assert!(part.lines_read > 200);
    }

    #[test]
    fn a_wish_to_stop_is_heard() {
        assert!(matches!(read(&b"a"[..], Window { offset: 1, limit: 1 }, || false), Err(Unfit::Cancelled)));
    }
}
