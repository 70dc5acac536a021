//! Patterns for commands: `*` stands for anything, everything else for itself, big and small letters alike.

/// Whether one of the patterns is the whole command.
pub(super) fn matches_whole(patterns: &[String], command: &str) -> bool {
    let command = tidy(command);
    patterns.iter().any(|pattern| wild(&tidy(pattern), &command))
}

/// Whether one of the patterns is the command letter by letter, without a `*` that could stand for more.
pub(super) fn matches_exactly(patterns: &[String], command: &str) -> bool {
    let command = tidy(command);
    patterns.iter().any(|pattern| tidy(pattern) == command && !pattern.contains('*'))
}

/// Whether one of the patterns is the whole command or, without `*`, stands in it word for word.
pub(super) fn mentioned(patterns: &[String], command: &str) -> bool {
    let command = tidy(command);
    patterns.iter().map(|pattern| tidy(pattern)).any(|pattern| {
        let words = || format!(" {command} ").contains(&format!(" {pattern} "));
        !pattern.is_empty() && (wild(&pattern, &command) || (!pattern.contains('*') && words()))
    })
}

fn tidy(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Greedy from the left, falling back to the last star: linear in practice, never exponential.
fn wild(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    wild_with(&pattern, &text, |one, other| one == other)
}

/// The same with another notion of alike.
pub(super) fn wild_with(pattern: &[char], text: &[char], alike: impl Fn(char, char) -> bool) -> bool {
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if text.get(t).is_some_and(|other| alike(*c, *other)) => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_anything_and_a_denied_word_is_a_word() {
        let one = |pattern: &str| vec![pattern.to_owned()];
        assert!(matches_whole(&one("git push *"), "git  push origin"));
        assert!(!matches_whole(&one("git"), "git push"));
        assert!(mentioned(&one("npm publish"), "npm publish --tag x"));
        assert!(mentioned(&one("--force"), "git push --force"));
        assert!(!mentioned(&one("rm"), "cargo fmt; echo arm"));
        assert!(wild("*a*b*", &"a".repeat(2_000)) == wild("a*b", "aaa"));
    }
}
