//! Texts that cannot steer a terminal: whatever a model or a file says, the cursor stays where it is and colours and the
//! title of the window are left alone. Files and pipes get the bytes as they are.

use std::io::{self, Write};

/// What stands in the place of a control character.
const STAND_IN: char = '\u{fffd}';

/// A text that cannot move the cursor or change colours.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if steers(c) { STAND_IN } else { c }).collect()
}

fn steers(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
}

/// A terminal that is written to: control characters do not come through.
pub struct Harmless<W> {
    out: W,
    /// The first bytes of a character whose rest comes with the next write.
    cut: Vec<u8>,
}

impl<W: Write> Harmless<W> {
    pub fn new(out: W) -> Self {
        Self { out, cut: Vec::new() }
    }
}

impl<W: Write> Write for Harmless<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.cut.extend_from_slice(bytes);
        let held = std::mem::take(&mut self.cut);
        let mut rest = held.as_slice();
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.out.write_all(plain(text).as_bytes())?;
                    rest = &[];
                }
                Err(error) => {
                    let (text, after) = rest.split_at_checked(error.valid_up_to()).unwrap_or((rest, &[]));
                    self.out.write_all(plain(&String::from_utf8_lossy(text)).as_bytes())?;
                    match error.error_len() {
                        None => {
                            self.cut = after.to_vec();
                            rest = &[];
                        }
                        Some(wrong) => {
                            write!(self.out, "{STAND_IN}")?;
                            rest = after.get(wrong..).unwrap_or_default();
                        }
                    }
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_cannot_steer_the_terminal() {
        assert_eq!(plain("a\u{1b}[31mb\nc\r"), "a\u{fffd}[31mb\nc\u{fffd}");
    }

    #[test]
    fn characters_that_come_in_parts_are_whole_and_harmless() {
        let text = "ä\u{1b}]0;title\u{7} \u{9b}31m 日本\n".as_bytes();
        for size in 1..text.len() {
            let mut seen = Vec::new();
            let mut out = Harmless::new(&mut seen);
            text.chunks(size).for_each(|part| out.write_all(part).unwrap());
            assert_eq!(
                String::from_utf8(seen).unwrap(),
                "ä\u{fffd}]0;title\u{fffd} \u{fffd}31m 日本\n",
                "{size} bytes at a time"
            );
        }
        let mut seen = Vec::new();
        Harmless::new(&mut seen).write_all(b"a\xffb").unwrap();
        assert_eq!(seen, "a\u{fffd}b".as_bytes());
    }
}
