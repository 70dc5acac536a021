//! Git's own progress lines, such as `Receiving objects:  45% (9/20)`, told apart from what it complains about.

/// The newest complaints that are kept, in bytes.
const TAIL: usize = 2048;

/// Reads what git writes to its error stream, as it comes.
pub(super) struct Reader<F> {
    line: Vec<u8>,
    complaints: String,
    listen: F,
    last: Option<(String, u8)>,
}

impl<F: FnMut(&str, u8)> Reader<F> {
    pub(super) fn new(listen: F) -> Self {
        Self { line: Vec::new(), complaints: String::new(), listen, last: None }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if matches!(byte, b'\r' | b'\n') {
                self.end_line();
            } else if self.line.len() < TAIL {
                self.line.push(*byte);
            }
        }
    }

    /// What git complained about: its newest lines, without progress.
    pub(super) fn finish(mut self) -> String {
        self.end_line();
        self.complaints.trim().to_owned()
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        match progress(line) {
            Some((phase, percent)) => {
                // Each step once: a fast fetch writes hundreds of lines that say the same.
                if self.last.as_ref().is_none_or(|(last, at)| last != phase || *at != percent) {
                    (self.listen)(phase, percent);
                    self.last = Some((phase.to_owned(), percent));
                }
            }
            None if line.is_empty() || line.starts_with("remote: ") && !is_complaint(line) => {}
            None => {
                if !self.complaints.is_empty() {
                    self.complaints.push_str("; ");
                }
                self.complaints.push_str(line);
                let excess = self.complaints.len().saturating_sub(TAIL);
                let start = (excess..self.complaints.len()).find(|at| self.complaints.is_char_boundary(*at));
                self.complaints.drain(..start.unwrap_or(0));
            }
        }
    }
}

fn is_complaint(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    ["error", "denied", "fatal", "not found", "warning"].iter().any(|word| lower.contains(word))
}

fn progress(line: &str) -> Option<(&str, u8)> {
    let line = line.strip_prefix("remote: ").unwrap_or(line);
    let (phase, rest) = line.split_once(':')?;
    let (percent, _) = rest.trim_start().split_once('%')?;
    Some((phase, percent.parse().ok().filter(|percent| *percent <= 100)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_once_a_step_and_complaints_are_kept() {
        let mut told = Vec::new();
        let mut reader = Reader::new(|phase: &str, percent| told.push(format!("{phase} {percent}")));
        reader.push(b"remote: Counting objects: 100% (3/3)\rRecei");
        reader.push(b"ving objects:  33% (1/3)\rReceiving objects:  33% (1/3)\rReceiving objects: 100% (3/3), done.\n");
        reader.push(b"remote: Enumerating objects: 3, done.\nfatal: no\nhint: x");
        assert_eq!(reader.finish(), "fatal: no; hint: x");
        assert_eq!(told, ["Counting objects 100", "Receiving objects 33", "Receiving objects 100"]);
    }

    #[test]
    fn an_endless_line_and_endless_complaints_stay_small() {
        let mut reader = Reader::new(|_: &str, _| ());
        reader.push(&vec![b'x'; 1_000_000]);
        for _ in 0..10_000 {
            reader.push("\nfatal: ä".as_bytes());
        }
        let text = reader.finish();
        assert!(text.len() <= TAIL && text.ends_with("fatal: ä"), "{}", text.len());
    }
}
