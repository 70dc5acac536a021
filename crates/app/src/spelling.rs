//! Paths in what is told to people: readable whatever they are made of, and in a command as a shell takes them.

use std::borrow::Cow;
use std::ffi::OsStr;

use amplifier_protocol::text::spelled;

/// A path for a person to read: what is not UTF-8 is spelled out as `\xff`.
pub fn told<P: AsRef<OsStr> + ?Sized>(path: &P) -> Cow<'_, str> {
    spelled(path.as_ref().as_encoded_bytes())
}

/// A path as a word that a shell takes for it.
pub fn quoted<P: AsRef<OsStr> + ?Sized>(path: &P) -> Cow<'_, str> {
    let path = path.as_ref();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+:@%~".contains(letter);
    match path.to_str() {
        Some(word) if !word.is_empty() && !word.starts_with('~') && word.chars().all(is_plain) => {
            Cow::Borrowed(word)
        }
        Some(word) => Cow::Owned(format!("'{}'", word.replace('\'', r"'\''"))),
        None => Cow::Owned(bytes(path.as_encoded_bytes())),
    }
}

/// What no quotes can hold as it is: shells read the numbers of the bytes.
fn bytes(word: &[u8]) -> String {
    let mut quoted = "$'".to_owned();
    for chunk in word.utf8_chunks() {
        quoted.push_str(&chunk.valid().replace('\\', r"\\").replace('\'', r"\'"));
        // As octal digits: those have an end, whatever stands behind them.
        chunk.invalid().iter().for_each(|byte| quoted.push_str(&format!("\\{byte:03o}")));
    }
    quoted + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_a_word_back_as_it_was() {
        assert_eq!([quoted("/a/b.c"), quoted("it's"), quoted("")], ["/a/b.c", r"'it'\''s'", "''"]);
        assert_eq!(quoted("~x"), "'~x'");
    }

    #[cfg(unix)]
    #[test]
    fn a_shell_reads_bytes_back_that_are_no_text() {
        use std::os::unix::ffi::OsStrExt;

        let name = OsStr::from_bytes(b"it's \\b\xc3\xa4d\xff0");
        assert_eq!(told(name), "it's \\b\u{e4}d\\xff0");
        let script = format!("printf %s {}", quoted(name));
        let read = std::process::Command::new("bash").arg("-c").arg(script).output().unwrap();
        assert_eq!(read.stdout, name.as_bytes());
    }
}
