//! Output in bounded memory: the beginning, the end, and how much there was.

use std::collections::VecDeque;

/// What one stream has given so far. It never holds more than twice its limit.
pub(super) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    limit: usize,
    total: u64,
    read: u64,
}

/// Output as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) text: String,
    /// The bytes there were in all.
    pub(super) total: u64,
    /// The bytes that are not in `text`.
    pub(super) left_out: u64,
}

/// Whether a stream can still grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum More {
    MayCome,
    Never,
}

impl Capture {
    pub(super) fn new(limit: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), limit, total: 0, read: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.limit.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(bytes.get(..room).unwrap_or_default());
        let kept = bytes.get(bytes.len().saturating_sub(self.limit)..).unwrap_or_default();
        let excess = (self.tail.len() + kept.len()).saturating_sub(self.limit);
        self.tail.drain(..excess);
        self.tail.extend(kept);
    }

    /// Everything, or its beginning and its end.
    pub(super) fn whole(&mut self) -> Shown {
        if self.total <= self.limit as u64 {
            let text = String::from_utf8_lossy(&self.head).into_owned();
            return Shown { text, total: self.total, left_out: 0 };
        }
        let share = self.limit / 5 * 2;
        let tail: &[u8] = self.tail.make_contiguous();
        let head = self.head.get(..share).unwrap_or(&self.head);
        let tail = tail.get(tail.len().saturating_sub(share)..).unwrap_or(tail);
        let (by_line_head, by_line_tail) = (whole_lines_before(head), whole_lines_after(tail));
        // Lines so long that whole ones leave next to nothing are cut in the middle.
        let (head, tail) = if by_line_head.len() + by_line_tail.len() < self.limit / 5 {
            (whole_chars_before(head), whole_chars_after(tail))
        } else {
            (by_line_head, by_line_tail)
        };
        let left_out = self.total - (head.len() + tail.len()) as u64;
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        let gap = if head.ends_with('\n') || head.is_empty() { "" } else { "\n" };
        let text = format!("{head}{gap}[… {left_out} bytes left out here …]\n{tail}");
        Shown { text, total: self.total, left_out }
    }

    /// What came since this was last asked. What was overwritten meanwhile is counted, not shown.
    pub(super) fn unread(&mut self, more: More) -> Shown {
        let oldest = self.total - self.tail.len() as u64;
        let from = self.read.max(oldest);
        let left_out = from - self.read;
        let skip = usize::try_from(from - oldest).unwrap_or(usize::MAX);
        let bytes = self.tail.make_contiguous().get(skip..).unwrap_or_default();
        // Half a character waits for its other half.
        let bytes = if more == More::MayCome { whole_chars_before(bytes) } else { bytes };
        self.read = from + bytes.len() as u64;
        Shown { text: String::from_utf8_lossy(bytes).into_owned(), total: self.total, left_out }
    }
}

fn whole_lines_before(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    bytes.get(..end).unwrap_or_default()
}

fn whole_lines_after(bytes: &[u8]) -> &[u8] {
    let begin = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
    bytes.get(begin..).unwrap_or_default()
}

/// Without a character that the cut divided.
fn whole_chars_before(bytes: &[u8]) -> &[u8] {
    let back = bytes.iter().rev().take(4).position(|byte| byte & 0xC0 != 0x80);
    let Some(at) = back.map(|back| bytes.len() - 1 - back) else { return bytes };
    let length = match bytes.get(at) {
        Some(byte) if byte & 0xE0 == 0xC0 => 2,
        Some(byte) if byte & 0xF0 == 0xE0 => 3,
        Some(byte) if byte & 0xF8 == 0xF0 => 4,
        _ => return bytes,
    };
    if at + length > bytes.len() { bytes.get(..at).unwrap_or_default() } else { bytes }
}

fn whole_chars_after(bytes: &[u8]) -> &[u8] {
    let begin = bytes.iter().take(4).position(|byte| byte & 0xC0 != 0x80).unwrap_or(0);
    bytes.get(begin..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_output_is_whole_and_long_output_keeps_whole_lines_of_both_ends() {
        let mut short = Capture::new(100);
        short.push(b"a\nb\n");
        assert_eq!(short.whole(), Shown { text: "a\nb\n".to_owned(), total: 4, left_out: 0 });
        let mut long = Capture::new(100);
        (0..1_000).for_each(|n| long.push(format!("line {n}\n").as_bytes()));
        let shown = long.whole();
        assert_eq!(shown.total, 8_890);
        assert!(shown.text.starts_with("line 0\nline 1\n") && shown.text.ends_with("line 998\nline 999\n"));
        assert!(shown.text.contains("[… 8819 bytes left out here …]"), "{}", shown.text);
    }

    #[test]
    fn one_huge_line_is_cut_between_characters() {
        let mut capture = Capture::new(1_000);
        capture.push("ä€".repeat(100_000).as_bytes());
        let shown = capture.whole();
        assert!(!shown.text.contains('\u{fffd}'), "{}", shown.text);
        assert_eq!((shown.total, shown.text.chars().next()), (500_000, Some('ä')));
    }

    #[test]
    fn what_was_read_is_not_read_again_and_a_divided_character_waits() {
        let mut capture = Capture::new(10);
        capture.push("aé".as_bytes().get(..2).unwrap());
        assert_eq!(capture.unread(More::MayCome).text, "a");
        capture.push(&[0xA9, b'b']);
        assert_eq!(capture.unread(More::MayCome).text, "éb");
        capture.push(b"0123456789ABCDEF");
        assert_eq!(
            capture.unread(More::MayCome),
            Shown { text: "6789ABCDEF".to_owned(), total: 20, left_out: 6 }
        );
        assert_eq!(capture.unread(More::Never).text, "");
    }

    proptest! {
        #[test]
        fn memory_and_text_stay_bounded_and_every_byte_is_counted(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..40), limit in 10_usize..500
        ) {
            let mut capture = Capture::new(limit);
            pieces.iter().for_each(|piece| capture.push(piece));
            let all: Vec<u8> = pieces.concat();
            prop_assert!(capture.head.len() <= limit && capture.tail.len() <= limit);
            let shown = capture.whole();
            prop_assert_eq!(shown.total, all.len() as u64);
            // A replaced byte takes three.
            prop_assert!(shown.text.len() <= limit * 3 + 120);
            if shown.left_out == 0 {
                prop_assert_eq!(shown.text, String::from_utf8_lossy(&all).into_owned());
            }
        }
    }
}
