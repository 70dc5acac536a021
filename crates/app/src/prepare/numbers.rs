//! Whole numbers of a plan file that 64 bits do not hold. Read as doubles they would be other numbers, so they are refused
//! while the text that tells is still there.

use amplifier_core::validate::{Check, Severity};
use amplifier_protocol::locate::join;

/// More than these tell nobody anything new.
const MOST: usize = 10;

/// Where the scan is inside an object or a list.
enum Level<'t> {
    Key(&'t str),
    Index(usize),
}

/// An error for each, the first ones of many. The text is JSON that could be parsed; it is passed once.
pub(super) fn checks(text: &str) -> Vec<Check> {
    let (mut found, mut levels, mut rest) = (Vec::new(), Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '-' | '0'..='9' => rest.find([',', '}', ']', ' ', '\t', '\n', '\r']).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
        match (first, levels.last_mut()) {
            ('{', _) => levels.push(Level::Key("\"\"")),
            ('[', _) => levels.push(Level::Index(0)),
            ('}' | ']', _) => drop(levels.pop()),
            (',', Some(Level::Index(index))) => *index += 1,
            ('"', Some(Level::Key(key))) if behind.trim_start().starts_with(':') => *key = token,
            ('-' | '0'..='9', _) if is_too_long(token) => found.push(out_of_range(&levels, token)),
            _ => {}
        }
        if found.len() >= MOST {
            break;
        }
        rest = behind;
    }
    found
}

/// Of a string with its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let ends = |c: char| {
        let closes = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        closes
    };
    text.get(1..).and_then(|inside| inside.find(ends)).map_or(text.len(), |inside| inside + 2)
}

fn is_too_long(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err()
}

fn out_of_range(levels: &[Level<'_>], written: &str) -> Check {
    let pointer = levels.iter().fold(String::new(), |pointer, level| match level {
        Level::Index(index) => join(&pointer, &index.to_string()),
        // A key that was parsed once can be parsed again.
        Level::Key(key) => join(&pointer, &serde_json::from_str::<String>(key).unwrap_or_default()),
    });
    let message =
        format!("the whole number `{written}` does not fit into 64 bits; write it as a text: \"{written}\"");
    Check { name: "number_range".to_owned(), passed: false, message, severity: Severity::Error, pointer }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Vec<String> {
        serde_json::from_str::<serde_json::Value>(text).unwrap();
        checks(text).into_iter().map(|check| check.pointer).collect()
    }

    #[test]
    fn whole_numbers_that_would_change_are_refused_and_all_others_are_taken() {
        let text = "{\"a\": 18446744073709551615, \"b\": [18446744073709551616,\n 1e30, -0, -0.0, 0.5, 1.0],\n\
                    \"c/d\": {\"e\" : -9223372036854775809, \"f\": -9223372036854775808, \"g\": 99999999999999999999.0},\n\
                    \"text\": \"99999999999999999999\", \"quo\\\\te\\\"\": [[], {}, [\"]\", 99999999999999999999]]}";
        assert_eq!(refused(text), ["/b/0", "/c~1d/e", "/quo\\te\"/2/1"]);
        assert_eq!(refused("123456789012345678901"), [""]);
        assert_eq!(refused(&format!("[{}1]", "99999999999999999999,".repeat(1000))).len(), MOST);
    }
}
