//! Brace expansion: one word becomes several, as in `{rm,-rf,/}`.

use super::{Part, Word};

/// More words than this are left as they are; a name with braces is unknown anyway.
const MOST: usize = 64;

pub(super) fn braces(word: Word) -> Vec<Word> {
    let (mut done, mut open) = (Vec::new(), vec![word]);
    while let Some(word) = open.pop() {
        match alternatives(&word) {
            Some(several) if done.len() + open.len() + several.len() <= MOST => {
                open.extend(several.into_iter().rev());
            }
            _ => done.push(word),
        }
    }
    done
}

/// The words that the first list in braces stands for.
fn alternatives(word: &Word) -> Option<Vec<Word>> {
    word.parts.iter().enumerate().find_map(|(at, part)| {
        let Part::Text { text, quoted: false } = part else { return None };
        let (before, choices, after) = first_list(text)?;
        let (head, tail) = (word.parts.get(..at)?, word.parts.get(at + 1..)?);
        let whole = |choice: &str| {
            let middle = Part::Text { text: format!("{before}{choice}{after}"), quoted: false };
            let mut parts = head.to_vec();
            parts.push(middle);
            parts.extend_from_slice(tail);
            Word { parts }
        };
        Some(choices.into_iter().map(whole).collect())
    })
}

/// `a{b,c}d` as `a`, `[b, c]`, `d`.
fn first_list(text: &str) -> Option<(&str, Vec<&str>, &str)> {
    for (open, _) in text.char_indices().filter(|(_, c)| *c == '{') {
        let inside = text.get(open + 1..)?;
        let (mut depth, mut begin, mut choices) = (0_usize, 0, Vec::new());
        for (at, c) in inside.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => {
                    if choices.is_empty() {
                        break;
                    }
                    choices.push(inside.get(begin..at)?);
                    return Some((text.get(..open)?, choices, inside.get(at + 1..)?));
                }
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    choices.push(inside.get(begin..at)?);
                    begin = at + 1;
                }
                _ => {}
            }
        }
    }
    None
}
