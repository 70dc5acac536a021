//! The answer of `grep` in the form of each output mode, in bounds.

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::hits::{Hits, Near};
use super::{Input, OutputMode};
use crate::files::names::told;

/// What was found.
#[derive(Debug, Serialize)]
pub(crate) struct Output {
    pattern: String,
    output_mode: OutputMode,
    /// Of everything, shown or not: lines, or files in the mode that names files.
    total_matches: u64,
    /// What is shown.
    matches_count: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    results_capped: bool,
    #[serde(flatten)]
    shown: Shown,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Shown {
    Results(Vec<Item>),
    Files(Vec<String>),
    Counts(Map<String, Value>),
}

#[derive(Debug, Serialize)]
struct Item {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line_number: Option<u64>,
    content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    context: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    line_number: Option<u64>,
    content: String,
    is_match: bool,
}

/// How much is given.
pub(super) struct Bounds {
    pub(super) limit: usize,
    pub(super) max_output_bytes: usize,
}

impl Output {
    pub(super) fn new(input: &Input, hits: Hits, bounds: &Bounds, warning: Option<String>) -> Self {
        let (total_files, total_lines) = (hits.total_files, hits.total_matches);
        let (limit, offset) = (bounds.limit, input.offset);
        let mut room = bounds.max_output_bytes;
        let mut fits = |bytes: usize| {
            let enough = room >= bytes;
            room = if enough { room - bytes } else { 0 };
            enough
        };
        let files = hits.files.into_iter().map(|(path, found)| (told(path), found));
        let (shown, count, countable) = match input.output_mode {
            OutputMode::FilesWithMatches => {
                let names = files.map(|(file, _)| file).skip(offset).take(limit);
                let names: Vec<_> = names.take_while(|file| fits(file.len())).collect();
                let count = names.len();
                (Shown::Files(names), count, total_files)
            }
            OutputMode::Count => {
                let counts = files.map(|(file, found)| (file, Value::from(found.matches)));
                let counts = counts.skip(offset).take(limit).take_while(|(file, _)| fits(file.len()));
                let counts: Map<_, _> = counts.collect();
                let count = counts.len();
                (Shown::Counts(counts), count, total_files)
            }
            OutputMode::Content => {
                let items = files.flat_map(|(file, found)| {
                    found.hits.into_iter().map(move |hit| Item {
                        file: file.clone(),
                        line_number: hit.line_number,
                        content: hit.content,
                        context: hit.context.into_iter().map(line).collect(),
                    })
                });
                let items = items.skip(offset).take(limit).take_while(|item| fits(item.bytes()));
                let items: Vec<_> = items.collect();
                let count = items.len();
                (Shown::Results(items), count, total_lines)
            }
        };
        let reached = u64::try_from(offset.saturating_add(count)).unwrap_or(u64::MAX);
        Self {
            pattern: input.pattern.clone(),
            output_mode: input.output_mode,
            total_matches: match input.output_mode {
                OutputMode::FilesWithMatches => total_files,
                OutputMode::Content | OutputMode::Count => total_lines,
            },
            matches_count: count,
            results_capped: reached < countable,
            shown,
            warning,
        }
    }
}

impl Item {
    fn bytes(&self) -> usize {
        let context: usize = self.context.iter().map(|line| line.content.len()).sum();
        self.file.len() + self.content.len() + context
    }
}

fn line(near: Near) -> Line {
    Line { line_number: near.line_number, content: near.content, is_match: near.is_match }
}
