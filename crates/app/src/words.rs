//! What a person typed, out of a prompt that carries more: files that were mentioned, what was piped in, reminders. For
//! titles and glances; the prompt itself is kept whole. And texts on one line.

/// How a prompt begins when files were mentioned in it; a file cannot contain the end.
const FILE: (&str, &str) = ("<context_file paths=", "</context_file>");
/// What stands behind the words of the person.
const BEHIND: [&str; 2] = ["\n\n<stdin>\n", "\n\n<system-reminder source=\"mention\">"];

/// The words of the person; the whole text where there are none.
pub fn own(prompt: &str) -> &str {
    let mut text = prompt.trim_start();
    while let Some(file) = text.strip_prefix(FILE.0)
        && let Some((_, rest)) = file.split_once(FILE.1)
    {
        text = rest.trim_start();
    }
    let words = BEHIND.iter().fold(text, |text, mark| text.split_once(mark).map_or(text, |(words, _)| words));
    if words.trim().is_empty() { prompt } else { words }
}

/// A text on one line, its end cut off where it is too long.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    // Only the beginning is looked at: a prompt may be a whole book.
    let beginning: String = text.trim_start().chars().take(most * 8).collect();
    let line = beginning.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        None => line,
        Some(_) => line.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_around_the_words_of_a_person_is_left_out() {
        let file = "<context_file paths=\"@a → /a\">\nlong\n</context_file>\n\n";
        let reminder = "\n\n<system-reminder source=\"mention\">do it</system-reminder>";
        assert_eq!(own("hi"), "hi");
        assert_eq!(own(&format!("{file}{file}see @a{reminder}")), "see @a");
        assert_eq!(own("sum up\n\n<stdin>\na\nb\n</stdin>"), "sum up");
        assert_eq!(own("what is <context_file paths=x>?"), "what is <context_file paths=x>?");
        // Nothing is better than too little.
        assert_eq!(own(file), file);
        assert_eq!(own("<context_file paths=cut"), "<context_file paths=cut");
    }
}
