//! `$'…'`: text with escapes in it.

use super::Unreadable;
use super::parser::Parser;

impl Parser {
    /// The inside of `$'…'`, decoded.
    pub(super) fn ansi(&mut self) -> Result<String, Unreadable> {
        let mut text = String::new();
        loop {
            let c = self.peek().ok_or(Unreadable::Unclosed("$'"))?;
            self.at += 1;
            match c {
                '\'' => return Ok(text),
                '\\' => {
                    let escape = self.peek().ok_or(Unreadable::Unclosed("$'"))?;
                    self.at += 1;
                    match escape {
                        'n' => text.push('\n'),
                        't' => text.push('\t'),
                        'r' => text.push('\r'),
                        'e' | 'E' => text.push('\u{1b}'),
                        'a' | 'b' | 'f' | 'v' => text.push(' '),
                        'x' => text.extend(self.number(16, 2)),
                        'u' => text.extend(self.number(16, 4)),
                        'U' => text.extend(self.number(16, 8)),
                        '0'..='7' => {
                            self.at -= 1;
                            text.extend(self.number(8, 3));
                        }
                        other => text.push(other),
                    }
                }
                c => text.push(c),
            }
        }
    }

    fn number(&mut self, radix: u32, most: usize) -> Option<char> {
        let (mut value, mut read) = (0_u32, 0);
        while read < most
            && let Some(digit) = self.peek().and_then(|c| c.to_digit(radix))
        {
            value = value.wrapping_mul(radix).wrapping_add(digit);
            self.at += 1;
            read += 1;
        }
        char::from_u32(value).filter(|c| *c != '\0')
    }
}
