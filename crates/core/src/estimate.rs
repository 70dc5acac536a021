//! How many tokens a text is, roughly, where nobody measured it.

/// A quarter of the characters, rounded down: the agreed measure for injections.
pub fn estimate_tokens(text: &str) -> u64 {
    u64::try_from(text.chars().count() / 4).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forty_characters_are_ten_tokens() {
        assert_eq!(estimate_tokens(&"ä".repeat(40)), 10);
        assert_eq!(estimate_tokens("abc"), 0);
    }
}
