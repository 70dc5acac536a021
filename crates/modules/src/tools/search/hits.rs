//! What was found, kept in the order of paths and in bounds while many threads bring more.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// One line that matches, with the lines around it when they were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) line_number: Option<u64>,
    pub(super) content: String,
    pub(super) context: Vec<Near>,
}

/// A line near a match, or the match itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Near {
    pub(super) line_number: Option<u64>,
    pub(super) content: String,
    pub(super) is_match: bool,
}

/// What one file gave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Found {
    /// How many lines match, also those that are not kept.
    pub(super) matches: u64,
    pub(super) hits: Vec<Hit>,
}

/// What all files gave. Keeps the first `keep` of what the mode counts, by path; the rest is only counted. Which thread
/// came first makes no difference.
pub(super) struct Hits {
    keep: usize,
    kept: usize,
    pub(super) files: BTreeMap<PathBuf, Found>,
    /// Files that match.
    pub(super) total_files: u64,
    /// Lines that match.
    pub(super) total_matches: u64,
    unit: Unit,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Files,
    Lines,
}

impl Hits {
    pub(super) fn new(keep: usize, unit: Unit) -> Self {
        Self { keep, kept: 0, files: BTreeMap::new(), total_files: 0, total_matches: 0, unit }
    }

    pub(super) fn add(&mut self, path: PathBuf, found: Found) {
        self.total_files += 1;
        self.total_matches += found.matches;
        self.kept += self.weight(&found);
        self.files.insert(path, found);
        // The last file goes as soon as what stands before it is enough.
        while let Some(last) = self.files.last_entry() {
            let weight = match self.unit {
                Unit::Files => 1,
                Unit::Lines => last.get().hits.len(),
            };
            if self.kept - weight < self.keep {
                break;
            }
            last.remove();
            self.kept -= weight;
        }
    }

    fn weight(&self, found: &Found) -> usize {
        match self.unit {
            Unit::Files => 1,
            Unit::Lines => found.hits.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lines: usize) -> Found {
        let hit = Hit { line_number: None, content: String::new(), context: Vec::new() };
        Found { matches: lines as u64, hits: vec![hit; lines] }
    }

    #[test]
    fn the_first_by_path_are_kept_whatever_order_they_come_in() {
        let names = ["c", "a", "d", "b", "e"];
        for turn in 0..names.len() {
            let mut hits = Hits::new(5, Unit::Lines);
            for at in 0..names.len() {
                hits.add(PathBuf::from(names[(turn + at) % names.len()]), found(2));
            }
            let kept: Vec<_> = hits.files.keys().map(|path| path.display().to_string()).collect();
            assert_eq!(kept, ["a", "b", "c"], "{turn}");
            assert_eq!((hits.total_files, hits.total_matches), (5, 10));
        }
    }
}
