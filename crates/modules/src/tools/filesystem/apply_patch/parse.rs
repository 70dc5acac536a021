//! Reads the text of a patch. Knows the form, not the files.

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// One section of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools::filesystem) enum Operation {
    Add { path: String, content: String },
    Delete { path: String },
    Update { path: String, target: Option<String>, hunks: Vec<Hunk> },
}

/// Lines that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::tools::filesystem) struct Hunk {
    /// Lines of the file that stand somewhere before it, in order.
    pub(in crate::tools::filesystem) anchors: Vec<String>,
    pub(in crate::tools::filesystem) lines: Vec<Line>,
    /// Whether it stands at the end of the file.
    pub(in crate::tools::filesystem) at_end: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools::filesystem) enum Line {
    Keep(String),
    Remove(String),
    Add(String),
}

/// Why a text is no patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ParseError {
    #[error("Patch must start with '*** Begin Patch'")]
    Begin,
    #[error("Patch must end with '*** End Patch'")]
    End,
    #[error(
        "Patch holds no section; begin one with '*** Add File: ', '*** Update File: ' or '*** Delete File: '"
    )]
    Nothing,
    #[error("line {line} belongs to no section: {text}")]
    Stray { line: usize, text: String },
    #[error("line {line} names no file")]
    NoPath { line: usize },
    #[error("line {line} of an added file must begin with '+': {text}")]
    Bare { line: usize, text: String },
    #[error("line {line} of a hunk must begin with ' ', '-' or '+': {text}")]
    Mark { line: usize, text: String },
    #[error("the part about `{path}` changes nothing")]
    Empty { path: String },
}

/// Reads the hunks of one file, of which a diff consists.
pub(super) fn hunks(path: &str, lines: Vec<&str>) -> Result<Operation, ParseError> {
    Reader { lines, at: 0 }.update(path.to_owned())
}

/// Whether a line is one of those that give a patch its form, and no line of a file.
pub(super) fn is_mark(line: &str) -> bool {
    [BEGIN, END, ADD, DELETE, UPDATE, MOVE].iter().any(|mark| line.starts_with(mark))
}

/// Reads a patch.
pub(super) fn parse(text: &str) -> Result<Vec<Operation>, ParseError> {
    let text = text.trim();
    let mut lines: Vec<_> = text.lines().collect();
    if lines.first().map(|line| line.trim()) != Some(BEGIN) {
        return Err(ParseError::Begin);
    }
    if lines.pop().map(str::trim) != Some(END) {
        return Err(ParseError::End);
    }
    let mut reader = Reader { lines, at: 1 };
    let mut operations = Vec::new();
    while let Some(line) = reader.next() {
        if let Some(path) = line.strip_prefix(ADD) {
            let path = reader.path(path)?;
            operations.push(reader.add(path)?);
        } else if let Some(path) = line.strip_prefix(DELETE) {
            operations.push(Operation::Delete { path: reader.path(path)? });
        } else if let Some(path) = line.strip_prefix(UPDATE) {
            let path = reader.path(path)?;
            operations.push(reader.update(path)?);
        } else if !line.trim().is_empty() {
            return Err(ParseError::Stray { line: reader.at, text: line.to_owned() });
        }
    }
    if operations.is_empty() { Err(ParseError::Nothing) } else { Ok(operations) }
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    /// The next line, and the number of the one before it.
    at: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let line = self.lines.get(self.at).copied()?;
        self.at += 1;
        Some(line)
    }

    /// The next line, unless it begins another section.
    fn next_of_section(&mut self) -> Option<&'a str> {
        let line = self.lines.get(self.at).copied()?;
        let begins = [ADD, DELETE, UPDATE].iter().any(|head| line.starts_with(head));
        if begins { None } else { self.next() }
    }

    fn path(&self, text: &str) -> Result<String, ParseError> {
        let path = text.trim();
        if path.is_empty() { Err(ParseError::NoPath { line: self.at }) } else { Ok(path.to_owned()) }
    }

    fn add(&mut self, path: String) -> Result<Operation, ParseError> {
        let mut content = String::new();
        while let Some(line) = self.next_of_section() {
            let Some(added) = line.strip_prefix('+') else {
                return Err(ParseError::Bare { line: self.at, text: line.to_owned() });
            };
            content.push_str(added);
            content.push('\n');
        }
        Ok(Operation::Add { path, content })
    }

    fn update(&mut self, path: String) -> Result<Operation, ParseError> {
        let (mut target, mut hunks, mut hunk) = (None, Vec::new(), Hunk::default());
        while let Some(line) = self.next_of_section() {
            if let Some(moved) = line.strip_prefix(MOVE) {
                target = Some(self.path(moved)?);
            } else if line.trim_end() == END_OF_FILE {
                hunk.at_end = true;
                hunks.push(std::mem::take(&mut hunk));
            } else if let Some(anchor) = line.strip_prefix("@@") {
                if !hunk.lines.is_empty() {
                    hunks.push(std::mem::take(&mut hunk));
                }
                hunk.anchors.extend(anchor_of(anchor));
            } else {
                hunk.lines.push(self.line(line)?);
            }
        }
        if !hunk.lines.is_empty() {
            hunks.push(hunk);
        }
        if hunks.is_empty() && target.is_none() {
            return Err(ParseError::Empty { path });
        }
        Ok(Operation::Update { path, target, hunks })
    }

    fn line(&self, line: &str) -> Result<Line, ParseError> {
        let mut rest = line.chars();
        let mark = rest.next();
        let rest = rest.as_str().to_owned();
        match mark {
            // Models and editors drop the blank of an empty line.
            None => Ok(Line::Keep(String::new())),
            Some(' ') => Ok(Line::Keep(rest)),
            Some('-') => Ok(Line::Remove(rest)),
            Some('+') => Ok(Line::Add(rest)),
            Some(_) => Err(ParseError::Mark { line: self.at, text: line.to_owned() }),
        }
    }
}

/// The line a hunk head names. Line numbers of a unified diff name none.
fn anchor_of(text: &str) -> Option<String> {
    let text = text.strip_prefix(' ').unwrap_or(text);
    let named = match text.trim_start().strip_prefix('-') {
        Some(numbers) => numbers.split_once("@@").map_or("", |(_, named)| named.trim_start()),
        None => text,
    };
    (!named.trim().is_empty()).then(|| named.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_section_is_read() {
        let patch = "*** Begin Patch\n*** Add File: a\n+one\n+\n*** Delete File: b\n*** Update File: c\n*** Move to: d\n\
                     @@ fn x()\n keep\n-old\n+new\n\n@@\n+end\n*** End of File\n*** End Patch\n";
        let keep = |text: &str| Line::Keep(text.to_owned());
        let expected = [
            Operation::Add { path: "a".to_owned(), content: "one\n\n".to_owned() },
            Operation::Delete { path: "b".to_owned() },
            Operation::Update {
                path: "c".to_owned(),
                target: Some("d".to_owned()),
                hunks: vec![
                    Hunk {
                        anchors: vec!["fn x()".to_owned()],
                        lines: vec![
                            keep("keep"),
                            Line::Remove("old".to_owned()),
                            Line::Add("new".to_owned()),
                            keep(""),
                        ],
                        at_end: false,
                    },
                    Hunk { anchors: vec![], lines: vec![Line::Add("end".to_owned())], at_end: true },
                ],
            },
        ];
        assert_eq!(parse(patch).unwrap(), expected);
    }

    #[test]
    fn what_is_no_patch_says_what_is_missing() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(error("hello"), "Patch must start with '*** Begin Patch'");
        assert_eq!(error(""), "Patch must start with '*** Begin Patch'");
        assert_eq!(error("*** Begin Patch\n*** Delete File: a"), "Patch must end with '*** End Patch'");
        assert!(error("*** Begin Patch\n*** End Patch").contains("no section"));
        assert!(error("*** Begin Patch\nfoo\n*** End Patch").contains("line 2 belongs to no section: foo"));
        assert!(
            error("*** Begin Patch\n*** Add File: a\nfoo\n*** End Patch").contains("must begin with '+'")
        );
        assert!(error("*** Begin Patch\n*** Update File:\n*** End Patch").contains("names no file"));
    }

    #[test]
    fn line_numbers_of_a_unified_diff_are_no_anchor() {
        assert_eq!(anchor_of(" -1,2 +1,2 @@ fn x()"), Some("fn x()".to_owned()));
        assert_eq!(anchor_of(" -1,2 +1,2 @@"), None);
        assert_eq!(anchor_of(""), None);
    }
}
