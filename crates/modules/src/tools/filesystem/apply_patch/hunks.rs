//! Finds the places of hunks in a text and makes their changes. Forgives white space at the ends of lines, nothing else.

use super::super::endings::Ending;
use super::parse::{Hunk, Line};

/// Where a hunk does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::tools::filesystem) enum Misfit {
    #[error("Invalid Anchor {from}: no line after line {from} reads `{anchor}`")]
    Anchor { from: usize, anchor: String },
    #[error("Invalid Context {from}:\n{}", expected.join("\n"))]
    Context { from: usize, expected: Vec<String> },
}

/// A line and what ends it.
#[derive(Clone)]
struct Row {
    text: String,
    end: String,
}

/// The text with all hunks applied, in order. Lines that stay keep their bytes; new ones end as most lines do.
pub(in crate::tools::filesystem) fn apply(text: &str, hunks: &[Hunk]) -> Result<String, Misfit> {
    let rows: Vec<_> = text.split_inclusive('\n').map(row).collect();
    let ending = match Ending::of(text) {
        Ending::Lf => "\n",
        Ending::CrLf => "\r\n",
    };
    let mut result: Vec<Row> = Vec::with_capacity(rows.len());
    let mut copied = 0;
    for hunk in hunks {
        let at = place(&rows, copied, hunk)?;
        result.extend(rows.iter().take(at).skip(copied).cloned());
        copied = at;
        for line in &hunk.lines {
            match line {
                Line::Keep(_) => {
                    result.extend(rows.get(copied).cloned());
                    copied += 1;
                }
                Line::Remove(_) => copied += 1,
                Line::Add(text) => result.push(Row { text: text.clone(), end: ending.to_owned() }),
            }
        }
    }
    result.extend(rows.iter().skip(copied).cloned());
    Ok(join(result, ending, text))
}

/// Puts lines together. Whether the last one has an end stays as it was.
fn join(mut rows: Vec<Row>, ending: &str, original: &str) -> String {
    let last = rows.len().saturating_sub(1);
    for (at, row) in rows.iter_mut().enumerate() {
        if at < last && row.end.is_empty() {
            row.end = ending.to_owned();
        } else if at == last && row.end.is_empty() != (!original.is_empty() && !original.ends_with('\n')) {
            row.end = if row.end.is_empty() { ending.to_owned() } else { String::new() };
        }
    }
    rows.into_iter().map(|row| row.text + &row.end).collect()
}

fn row(line: &str) -> Row {
    let text = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
    Row { text: text.to_owned(), end: line.get(text.len()..).unwrap_or_default().to_owned() }
}

/// The row at which a hunk begins, at or after `from`.
fn place(rows: &[Row], mut from: usize, hunk: &Hunk) -> Result<usize, Misfit> {
    for anchor in &hunk.anchors {
        let reads = |same: fn(&str, &str) -> bool| {
            rows.iter().skip(from).position(|row| same(&row.text, anchor)).map(|at| from + at + 1)
        };
        let found = SAME.iter().find_map(|same| reads(*same));
        from = found.ok_or_else(|| Misfit::Anchor { from, anchor: anchor.clone() })?;
    }
    let expected: Vec<_> = hunk.lines.iter().filter_map(old).collect();
    if expected.is_empty() {
        // Nothing to find: behind its anchor, or at the end.
        return Ok(if hunk.anchors.is_empty() || hunk.at_end { rows.len() } else { from });
    }
    let last = rows.len().checked_sub(expected.len());
    let fits = |at: usize, same: fn(&str, &str) -> bool| {
        let window = rows.iter().skip(at);
        expected.iter().zip(window).all(|(wanted, row)| same(&row.text, wanted))
    };
    if let Some(last) = last.filter(|last| *last >= from) {
        for same in SAME {
            if hunk.at_end && fits(last, same) {
                return Ok(last);
            }
            if let Some(at) = (from..=last).find(|at| fits(*at, same)) {
                return Ok(at);
            }
        }
    }
    Err(Misfit::Context { from, expected: expected.into_iter().map(str::to_owned).collect() })
}

/// When two lines count as the same, the strictest first.
const SAME: [fn(&str, &str) -> bool; 3] =
    [|a, b| a == b, |a, b| a.trim_end() == b.trim_end(), |a, b| a.trim() == b.trim()];

/// What a line of a hunk expects in the file.
fn old(line: &Line) -> Option<&str> {
    match line {
        Line::Keep(text) | Line::Remove(text) => Some(text),
        Line::Add(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk(anchors: &[&str], lines: &[&str]) -> Hunk {
        let line = |line: &&str| match line.split_at(1) {
            ("-", text) => Line::Remove(text.to_owned()),
            ("+", text) => Line::Add(text.to_owned()),
            (_, text) => Line::Keep(text.to_owned()),
        };
        let anchors = anchors.iter().map(|anchor| (*anchor).to_owned()).collect();
        Hunk { anchors, lines: lines.iter().map(line).collect(), at_end: false }
    }

    #[test]
    fn hunks_find_their_place_in_order_behind_their_anchors() {
        let text = "fn a\n  x\nfn b\n  x\nend";
        let behind = hunk(&["fn b"], &["-  x", "+  y"]);
        assert_eq!(apply(text, &[behind]).unwrap(), "fn a\n  x\nfn b\n  y\nend");
        let both = [hunk(&[], &["-  x", "+  1"]), hunk(&[], &["-  x", "+  2"])];
        assert_eq!(apply(text, &both).unwrap(), "fn a\n  1\nfn b\n  2\nend");
        let at_end = Hunk { at_end: true, ..hunk(&[], &["+more"]) };
        assert_eq!(apply("one\n", &[at_end]).unwrap(), "one\nmore\n");
    }

    #[test]
    fn endings_and_the_missing_last_one_are_kept() {
        assert_eq!(apply("a\r\nb\r\n", &[hunk(&[], &["-b", "+c"])]).unwrap(), "a\r\nc\r\n");
        assert_eq!(apply("a\nb", &[hunk(&[], &["-b", "+c", "+d"])]).unwrap(), "a\nc\nd");
        assert_eq!(apply("", &[hunk(&[], &["+c"])]).unwrap(), "c\n");
    }

    #[test]
    fn kept_lines_are_the_files_own_even_where_white_space_differs() {
        let changed = apply("\tif x:  \n\t\ty\n", &[hunk(&[], &[" if x:", "-y", "+z"])]).unwrap();
        assert_eq!(changed, "\tif x:  \nz\n");
    }

    #[test]
    fn what_does_not_fit_says_what_was_expected() {
        let misfit = apply("a\n", &[hunk(&[], &[" b", "-c"])]).unwrap_err();
        assert_eq!(misfit.to_string(), "Invalid Context 0:\nb\nc");
        let misfit = apply("a\n", &[hunk(&["zz"], &["-a"])]).unwrap_err();
        assert!(misfit.to_string().starts_with("Invalid Anchor 0:"));
    }
}
