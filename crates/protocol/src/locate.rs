//! JSON pointers and where they land in a text, for messages such as `plan.json:12:5`.
//!
//! A scanner, not a parser: it skips what it is not asked about and never fails on broken text, it only finds nothing.
//! Values are parsed elsewhere.

/// A place in a text; both numbers begin at 1, columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character within the line.
    pub column: usize,
}

/// Extends a JSON pointer by one key or index.
///
/// ```
/// assert_eq!(amplifier_protocol::locate::join("/agents", "a/b"), "/agents/a~1b");
/// ```
pub fn join(pointer: &str, token: &str) -> String {
    format!("{pointer}/{}", token.replace('~', "~0").replace('/', "~1"))
}

/// Where the value that `pointer` names begins in the JSON text, or `None` if it is not there.
///
/// Of a key written twice the last counts, as it does for the parser.
pub fn locate(text: &str, pointer: &str) -> Option<Position> {
    let mut scan = Scan { text, at: 0 };
    scan.skip_byte_order_mark();
    scan.skip_space();
    let mut tokens = pointer.split('/');
    // What stands before the first slash must be nothing.
    if tokens.next() != Some("") {
        return None;
    }
    for token in tokens {
        let token = token.replace("~1", "/").replace("~0", "~");
        scan.at = match scan.peek()? {
            b'{' => scan.find_member(&token)?,
            b'[' => scan.find_item(token.parse().ok()?)?,
            _ => return None,
        };
    }
    scan.begins_value().then(|| position(text, scan.at))
}

/// Like [`locate`], but falls back to the closest ancestor that is there; the answer for "this key is missing".
pub fn locate_nearest(text: &str, pointer: &str) -> Option<Position> {
    let mut pointer = pointer;
    loop {
        if let Some(found) = locate(text, pointer) {
            return Some(found);
        }
        pointer = pointer.rsplit_once('/')?.0;
    }
}

fn position(text: &str, offset: usize) -> Position {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Position {
        line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
        column: before.get(line_start..).unwrap_or_default().trim_start_matches('\u{feff}').chars().count()
            + 1,
    }
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scan<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_byte_order_mark(&mut self) {
        if self.text.starts_with('\u{feff}') {
            self.at = '\u{feff}'.len_utf8();
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn begins_value(&self) -> bool {
        matches!(self.peek(), Some(b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n'))
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
        }
        found
    }

    /// The offset of the value of the last member called `key`; stands at the `{` when called.
    ///
    /// Text that breaks off after the member was seen still has the member.
    fn find_member(&mut self, key: &str) -> Option<usize> {
        let mut found = None;
        self.eat(b'{');
        loop {
            self.skip_space();
            let Some(name) = self.take_string() else { return found };
            self.skip_space();
            if !self.eat(b':') {
                return found;
            }
            self.skip_space();
            if name_is(name, key) {
                found = Some(self.at);
            }
            if self.skip_value().is_none() {
                return found;
            }
            self.skip_space();
            if !self.eat(b',') {
                return found;
            }
        }
    }

    /// The offset of item `index`; stands at the `[` when called.
    fn find_item(&mut self, index: usize) -> Option<usize> {
        self.eat(b'[');
        for _ in 0..index {
            self.skip_space();
            self.skip_value()?;
            self.skip_space();
            if !self.eat(b',') {
                return None;
            }
        }
        self.skip_space();
        Some(self.at)
    }

    /// Passes a string and gives its text with the quotes, escapes untouched.
    fn take_string(&mut self) -> Option<&'t str> {
        let start = self.at;
        if !self.eat(b'"') {
            return None;
        }
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        self.text.get(start..self.at)
    }

    /// Passes one value of any kind, by counting brackets: nesting costs no stack.
    fn skip_value(&mut self) -> Option<()> {
        if !self.begins_value() {
            return None;
        }
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.take_string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                _ => self.skip_word(),
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn skip_word(&mut self) {
        let ends = |byte| matches!(byte, b',' | b':' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r' | b'"');
        while self.peek().is_some_and(|byte| !ends(byte)) {
            self.at += 1;
        }
    }
}

/// Whether a quoted name, with whatever escapes it holds, spells `key`.
fn name_is(quoted: &str, key: &str) -> bool {
    if !quoted.contains('\\') {
        return quoted.get(1..quoted.len().saturating_sub(1)) == Some(key);
    }
    serde_json::from_str::<String>(quoted).is_ok_and(|name| name == key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(line: usize, column: usize) -> Option<Position> {
        Some(Position { line, column })
    }

    #[test]
    fn a_pointer_lands_on_the_first_character_of_its_value() {
        let text = "{\n  \"session\": {\"context\": \"c\"},\n  \"providers\": [\n    1,\n    {\"module\": \"x\"}\n  ]\n}";
        assert_eq!(locate(text, ""), at(1, 1));
        assert_eq!(locate(text, "/session/context"), at(2, 26));
        assert_eq!(locate(text, "/providers/0"), at(4, 5));
        assert_eq!(locate(text, "/providers/1/module"), at(5, 16));
    }

    #[test]
    fn what_is_not_there_is_not_found_but_its_parent_is() {
        let text = "{\"a\": [{}, 2]}";
        for absent in ["/b", "/a/2", "/a/0/x", "/a/x", "/a/1/0", "a", "/a/"] {
            assert_eq!(locate(text, absent), None, "{absent}");
        }
        assert_eq!(locate_nearest(text, "/a/0/x"), at(1, 8));
        assert_eq!(locate_nearest(text, "/b/c"), at(1, 1));
        assert_eq!(locate_nearest("", "/b"), None);
    }

    #[test]
    fn escapes_in_keys_and_pointers_are_understood() {
        let text = r#"{"a\"}": {"m~n": 1, "x/y": 2, "\u00e9": 3}}"#;
        assert_eq!(locate(text, "/a\"}/m~0n"), at(1, 18));
        assert_eq!(locate(text, "/a\"}/x~1y"), at(1, 28));
        assert_eq!(locate(text, "/a\"}/é"), at(1, 41));
    }

    #[test]
    fn the_last_of_two_equal_keys_counts_and_columns_count_characters() {
        assert_eq!(locate(r#"{"a":1,"a":2}"#, "/a"), at(1, 12));
        assert_eq!(locate("\u{feff}{\"äöü\": 1, \"b\": 2}", "/b"), at(1, 17));
        assert_eq!(locate(r#"{"a": 1, "b"#, "/a"), at(1, 7));
    }

    proptest! {
        #[test]
        fn any_text_and_pointer_are_survived(
            text in r#"[\[\]{}":,a\\ \n0é]{0,60}"#,
            pointer in "[/a0~é]{0,8}",
        ) {
            locate(&text, &pointer);
            locate_nearest(&text, &pointer);
        }

        #[test]
        fn what_is_found_parses_to_the_value_there(items in proptest::collection::vec("[a-z\"\\\\{,é]{0,6}", 1..6)) {
            let value = serde_json::json!({ "k": items, "z": { "deep": items } });
            let text = serde_json::to_string_pretty(&value).unwrap();
            for (index, item) in items.iter().enumerate() {
                for pointer in [format!("/k/{index}"), format!("/z/deep/{index}")] {
                    let place = locate(&text, &pointer).unwrap();
                    let line = text.lines().nth(place.line - 1).unwrap();
                    let rest: String = line.chars().skip(place.column - 1).collect();
                    prop_assert_eq!(rest.trim_end_matches(','), serde_json::to_string(item).unwrap());
                }
            }
        }
    }
}
