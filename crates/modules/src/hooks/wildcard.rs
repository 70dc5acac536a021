//! Patterns with `*` (any text) and `?` (one character). No classes, no escapes: names and commands need none.

/// Whether the whole text fits the pattern. Takes at most pattern times text steps.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at_pattern, mut at_text) = (0, 0);
    // Where to go on when a guess about the last star was wrong.
    let mut star: Option<(usize, usize)> = None;
    while let Some(letter) = text.get(at_text) {
        match pattern.get(at_pattern) {
            Some('*') => {
                star = Some((at_pattern + 1, at_text));
                at_pattern += 1;
            }
            Some(wanted) if *wanted == '?' || wanted == letter => {
                at_pattern += 1;
                at_text += 1;
            }
            _ => {
                let Some((after_star, taken)) = star else { return false };
                star = Some((after_star, taken + 1));
                at_pattern = after_star;
                at_text = taken + 1;
            }
        }
    }
    pattern.iter().skip(at_pattern).all(|rest| *rest == '*')
}

/// Whether the text fits one of the patterns.
pub(super) fn fits_any(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| fits(pattern, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text_and_a_question_mark_one_character() {
        assert!(fits("llm:stream_*delta", "llm:stream_block_delta") && !fits("llm:*delta", "llm:request"));
        assert!(fits("*", "") && fits("a*b*c", "aXbYbc") && !fits("a*b", "abc"));
        assert!(fits("?a", "äa") && !fits("?a", "a") && fits("", "") && !fits("", "x"));
    }
}
