//! The other form of a change: one operation on one file, with its diff. Knows the form, not the files.

use super::parse::{self, Operation, ParseError};
use crate::tools::filesystem::endings::Ending;

/// What tools that make unified diffs write above the first hunk.
const HEADERS: [&str; 8] = [
    "diff --git ",
    "index ",
    "new file mode ",
    "deleted file mode ",
    "old mode ",
    "new mode ",
    "--- ",
    "+++ ",
];
/// Told about a last line without an end, in a line of its own.
const NO_END: &str = "\\ No newline";

/// Why an operation cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum DiffError {
    #[error("Unknown operation type: {0}; use create_file, update_file or delete_file")]
    Kind(String),
    #[error("{0} needs `diff`")]
    NoDiff(&'static str),
    #[error(
        "Diff parse error: line {line} belongs to a whole patch: {text}; give the lines of one file alone"
    )]
    Mark { line: usize, text: String },
    #[error("Diff parse error: {0}")]
    Hunk(#[from] ParseError),
}

/// Reads an operation.
pub(super) fn read(kind: &str, path: &str, diff: Option<&str>) -> Result<Operation, DiffError> {
    match kind {
        "create_file" => {
            let diff = diff.ok_or(DiffError::NoDiff("create_file"))?;
            Ok(Operation::Add { path: path.to_owned(), content: content(diff)? })
        }
        "update_file" => {
            let diff = diff.ok_or(DiffError::NoDiff("update_file"))?;
            let lines = lines(diff)?.into_iter().filter(|line| !line.starts_with(NO_END));
            Ok(parse::hunks(path, lines.collect())?)
        }
        "delete_file" => Ok(Operation::Delete { path: path.to_owned() }),
        other => Err(DiffError::Kind(other.to_owned())),
    }
}

/// The lines without the headers of a unified diff. Only what stands above everything else is one: further down,
/// `--- x` takes a line `-- x` away.
fn lines(diff: &str) -> Result<Vec<&str>, DiffError> {
    let mut lines: Vec<_> = diff.lines().collect();
    if let Some(at) = lines.iter().position(|line| parse::is_mark(line)) {
        let text = lines.get(at).copied().unwrap_or_default().to_owned();
        return Err(DiffError::Mark { line: at + 1, text });
    }
    let is_header = |line: &&&str| HEADERS.iter().any(|header| line.starts_with(header));
    let top = lines.iter().take_while(is_header).count();
    let mut pairs = lines.iter().zip(lines.iter().skip(1)).take(top);
    let names = pairs.position(|(old, new)| old.starts_with("--- ") && new.starts_with("+++ "));
    let headers = match names {
        Some(at) => at + 2,
        None if lines.first().is_some_and(|line| line.starts_with("diff --git ")) => top,
        // A lone `--- x` is a line.
        None => 0,
    };
    lines.drain(..headers);
    Ok(lines)
}

/// What a new file holds: each line after its `+`, and lines that lack one as they are, since models forget it.
/// Every line has an end, unless the diff says that the last one has none.
fn content(diff: &str) -> Result<String, DiffError> {
    let (mut content, mut ends) = (String::with_capacity(diff.len()), true);
    let lines = lines(diff)?;
    let has_head = lines.first().is_some_and(|line| line.starts_with("@@"));
    for line in lines.into_iter().skip(usize::from(has_head)) {
        ends = !line.starts_with(NO_END);
        if ends {
            content.push_str(line.strip_prefix('+').unwrap_or(line));
            content.push('\n');
        }
    }
    if !ends {
        content.pop();
    }
    Ok(match Ending::of(diff) {
        Ending::Lf => content,
        Ending::CrLf => Ending::CrLf.write(&content),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(diff: &str) -> String {
        match read("create_file", "p", Some(diff)).unwrap() {
            Operation::Add { content, .. } => content,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_new_file_has_every_line_with_its_end() {
        assert_eq!(made("+a\n+b\n"), "a\nb\n");
        assert_eq!(made("+a\n+b"), "a\nb\n");
        assert_eq!(made("a\n\nb"), "a\n\nb\n");
        assert_eq!(made("+a\r\n+b\r\n"), "a\r\nb\r\n");
        assert_eq!(made("+a\n+b\n\\ No newline at end of file\n"), "a\nb");
        assert_eq!(made("--- /dev/null\n+++ b/p\n@@ -0,0 +1 @@\n+a\n"), "a\n");
        // A page that begins with a rule is no header.
        assert_eq!(made("--- \ntitle: x\n--- \n"), "--- \ntitle: x\n--- \n");
        assert_eq!(made(""), "");
    }

    #[test]
    fn a_diff_reads_as_the_same_hunks_in_a_patch() {
        let diff = "diff --git a/p b/p\nindex 1..2 100644\n--- a/p\n+++ b/p\n@@ -1,2 +1,2 @@ fn x\n one\n--- two\n\
                    \\ No newline at end of file\n+2\n@@\n+end\n*** End of File\n";
        let patch = "*** Begin Patch\n*** Update File: p\n@@ fn x\n one\n--- two\n+2\n@@\n+end\n*** End of File\n\
                     *** End Patch";
        let operation = read("update_file", "p", Some(diff)).unwrap();
        assert_eq!(Ok(vec![operation]), parse::parse(patch));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let error = |kind: &str, diff: Option<&str>| read(kind, "p", diff).unwrap_err().to_string();
        assert!(error("foo", None).starts_with("Unknown operation type: foo"));
        assert_eq!(error("create_file", None), "create_file needs `diff`");
        assert!(
            error("update_file", Some("*** Begin Patch\n-a")).contains("line 1 belongs to a whole patch")
        );
        assert!(error("create_file", Some("+a\n*** End Patch")).contains("line 2 belongs to a whole patch"));
        assert!(error("update_file", Some("")).contains("changes nothing"));
        assert!(error("update_file", Some("a\nb")).contains("line 1 of a hunk must begin with"));
        assert_eq!(read("delete_file", "p", None), Ok(Operation::Delete { path: "p".to_owned() }));
    }
}
