//! Gathers what the searcher finds in one file: as many matches as can be shown, and the number of all.

use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};

use super::super::hits::{Found, Hit, Near};
use super::super::walk::Stop;
use super::{Input, OutputMode};

/// The longest part of a line that is shown, in characters.
const LINE_CHARS: usize = 2_000;
/// The longest match over several lines that is shown, in bytes.
const MATCH_BYTES: usize = 16 * 1024;

pub(super) struct Gather<'a> {
    input: &'a Input,
    /// The most matches that are kept.
    keep: usize,
    stop: &'a Stop,
    matches: u64,
    /// Every line that may be shown, in order.
    lines: Vec<Near>,
    kept: usize,
    is_binary: bool,
}

impl<'a> Gather<'a> {
    pub(super) fn new(input: &'a Input, keep: usize, stop: &'a Stop) -> Self {
        Self { input, keep, stop, matches: 0, lines: Vec::new(), kept: 0, is_binary: false }
    }

    /// What the file gives, if it matches and is text.
    pub(super) fn finish(self) -> Option<Found> {
        if self.matches == 0 || self.is_binary {
            return None;
        }
        let (before, after) = self.input.context();
        let with_context = before + after > 0;
        let number = |number: Option<u64>| number.filter(|_| self.input.line_numbers);
        let mut hits = Vec::with_capacity(self.kept);
        for (at, line) in self.lines.iter().enumerate().filter(|(_, line)| line.is_match) {
            let mut context = Vec::new();
            if with_context {
                let near = |other: &&Near| is_near(line, other, before, after);
                let window = self.lines.iter().skip(at.saturating_sub(before)).take(before + after + 1);
                let shown = |near: &Near| Near { line_number: number(near.line_number), ..near.clone() };
                context = window.filter(near).map(shown).collect();
            }
            hits.push(Hit { line_number: number(line.line_number), content: line.content.clone(), context });
        }
        Some(Found { matches: self.matches, hits })
    }
}

/// Whether a line stands close enough to a match to be shown with it.
fn is_near(line: &Near, other: &Near, before: usize, after: usize) -> bool {
    let (Some(line), Some(other)) = (line.line_number, other.line_number) else { return false };
    let wide = |lines: usize| u64::try_from(lines).unwrap_or(u64::MAX);
    other >= line.saturating_sub(wide(before)) && other <= line.saturating_add(wide(after))
}

impl Sink for Gather<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        self.matches += 1;
        match self.input.output_mode {
            // One match is enough to name a file.
            OutputMode::FilesWithMatches => return Ok(false),
            OutputMode::Count => {}
            OutputMode::Content if self.kept < self.keep => {
                self.kept += 1;
                self.lines.push(Near {
                    line_number: found.line_number(),
                    content: shown(found.bytes()),
                    is_match: true,
                });
            }
            OutputMode::Content => {}
        }
        Ok(!self.stop.wanted())
    }

    fn context(&mut self, _searcher: &Searcher, near: &SinkContext<'_>) -> Result<bool, Self::Error> {
        if self.kept < self.keep || self.lines.last().is_some_and(|last| last.is_match) {
            self.lines.push(Near {
                line_number: near.line_number(),
                content: shown(near.bytes()),
                is_match: false,
            });
        }
        Ok(true)
    }

    fn finish(&mut self, _searcher: &Searcher, end: &SinkFinish) -> Result<(), Self::Error> {
        self.is_binary = end.binary_byte_offset().is_some();
        Ok(())
    }
}

/// Lines as they are shown: without the last end, long ones cut.
fn shown(bytes: &[u8]) -> String {
    let cut = bytes.get(..MATCH_BYTES).unwrap_or(bytes);
    let text = String::from_utf8_lossy(cut);
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    match text.char_indices().nth(LINE_CHARS) {
        Some((at, _)) if !text.contains('\n') => {
            format!("{}... [truncated]", text.get(..at).unwrap_or_default())
        }
        _ if cut.len() < bytes.len() => format!("{text}... [truncated]"),
        _ => text.to_owned(),
    }
}
