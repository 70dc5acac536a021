//! Texts that cannot deceive whoever looks at the terminal: whatever a model or a file says, the cursor stays where it is,
//! colours and the title of the window are left alone, and letters stand in the order in which they were written. Files and
//! pipes get the bytes as they are; JSON keeps the characters as escapes, which mean the same.
//!
//! Right-to-left scripts, joined letters and emoji look as their writer meant them to.

use std::borrow::Cow;
use std::io::{self, Write};

/// What stands in the place of a control character.
const STAND_IN: char = '\u{fffd}';
/// Begins the flag of a region, whose name follows in tags.
const BLACK_FLAG: char = '\u{1f3f4}';
/// The most tags in one flag.
const FLAG_TAGS: usize = 7;

/// A text that cannot move the cursor, change colours or reorder what stands there; what would is spelled out, as `<U+202E>`.
pub fn plain(text: &str) -> Cow<'_, str> {
    // There they are right; elsewhere they have no purpose but to deceive.
    let marks = if text.chars().any(is_right_to_left) { Marks::Meant } else { Marks::Replaced };
    replaced(text, marks, |c, shown| match c.is_control() {
        true => shown.push(STAND_IN),
        false => shown.push_str(&format!("<U+{:04X}>", u32::from(c))),
    })
}

/// The same value as JSON, with escapes for the characters that [`plain`] would replace.
pub fn escaped(json: &str) -> Cow<'_, str> {
    replaced(json, Marks::Replaced, |c, shown| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            shown.push_str(&format!("\\u{unit:04x}"));
        }
    })
}

/// What becomes of marks of direction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    Meant,
    Replaced,
}

fn replaced(text: &str, marks: Marks, replace: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if text.chars().all(|c| kind(c) == Kind::Seen) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let (mut before, mut tags) = (' ', 0_usize);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        tags = match kind(c) {
            Kind::Tag => tags.saturating_sub(1),
            _ if c == BLACK_FLAG => FLAG_TAGS + 1,
            _ => 0,
        };
        let next = rest.peek().copied().unwrap_or(' ');
        let is_meant = match kind(c) {
            Kind::Seen => true,
            Kind::Steering => false,
            Kind::Mark => marks == Marks::Meant,
            Kind::Joiner => is_joined(before) || is_joined(next),
            Kind::Variant => is_joined(before) || matches!(before, '0'..='9' | '#' | '*'),
            Kind::Tag => tags > 0,
        };
        match is_meant {
            true => shown.push(c),
            false => replace(c, &mut shown),
        }
        before = c;
    }
    Cow::Owned(shown)
}

/// What a character does to a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It is seen.
    Seen,
    /// It moves the cursor, or reorders what follows.
    Steering,
    /// A mark of direction.
    Mark,
    /// It is not seen and joins or parts letters of some scripts, and emoji.
    Joiner,
    /// It chooses how the character before it looks.
    Variant,
    /// A letter that is not seen.
    Tag,
}

fn kind(c: char) -> Kind {
    match c {
        '\n' | '\t' | ' '..='~' => Kind::Seen,
        c if c.is_control() => Kind::Steering,
        '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}' | '\u{fff0}'..='\u{fffb}' => Kind::Steering,
        '\u{200e}' | '\u{200f}' | '\u{61c}' => Kind::Mark,
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => Kind::Variant,
        '\u{e0000}'..='\u{e0fff}' => Kind::Tag,
        '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}'
        | '\u{2060}'..='\u{2065}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}' => Kind::Joiner,
        _ => Kind::Seen,
    }
}

/// Whether a joiner beside this character may be meant: plain ASCII has nothing to join.
fn is_joined(c: char) -> bool {
    !c.is_ascii() && kind(c) == Kind::Seen
}

fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{61b}' | '\u{61d}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
        | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
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
    fn what_reorders_or_hides_letters_is_spelled_out() {
        let cases = [
            ("user\u{202e}gpj.exe", "user<U+202E>gpj.exe"),
            ("a\u{2066}b\u{2069}", "a<U+2066>b<U+2069>"),
            ("a\u{200f}b\u{61c}", "a<U+200F>b<U+061C>"),
            ("pay\u{200b}pal\u{200d}.example", "pay<U+200B>pal<U+200D>.example"),
            ("x\u{e0041}\u{e0042}", "x<U+E0041><U+E0042>"),
            ("a\u{fe0f}", "a<U+FE0F>"),
            ("🏴a\u{e0041}", "🏴a<U+E0041>"),
            ("\u{5e9}\u{202e}a", "\u{5e9}<U+202E>a"),
        ];
        for (text, shown) in cases {
            assert_eq!(plain(text), shown);
        }
    }

    #[test]
    fn scripts_and_emoji_look_as_they_were_meant() {
        let meant = [
            "שלום עולם 123",
            "\u{5e9}\u{5dc}\u{200f} (a)\u{200e}",
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            "👩\u{200d}💻 ❤\u{fe0f} 1\u{fe0f}\u{20e3} 🇩🇪",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "葛\u{e0100}城",
            "ä e\u{301}\n\t日本",
        ];
        for text in meant {
            assert_eq!(plain(text), text);
        }
    }

    #[test]
    fn json_says_the_same_with_escapes() {
        let text = "a\u{202e}b\u{9b}\u{e0041}👩\u{200d}💻\n";
        let json = serde_json::to_string(text).unwrap();
        let escaped = escaped(&json);
        assert_eq!(escaped, "\"a\\u202eb\\u009b\\udb40\\udc41👩\u{200d}💻\\n\"");
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
    }

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
