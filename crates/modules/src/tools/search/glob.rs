//! `glob`: files by name, the newest first.

use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use amplifier_core::contracts::{ToolCx, ToolFailure, TypedTool};
use amplifier_protocol::tool::Effects;
use globset::{GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use ignore::DirEntry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Limits;
use super::walk::{Choice, Ground, Ignored, Stop, walk};
use crate::files::names::{NOT_TEXT, is_text, told};
use crate::files::paths::{Asked, Purpose, Reach};

/// The most entries that are remembered before they are sorted.
const MATCHES: usize = 200_000;

/// Finds files by name, the newest first.
///
/// `*` stands for anything in a name, `**` for any number of folders, `{a,b}` for either: `**/*.rs`, `src/*.{ts,tsx}`.
/// What version control ignores, hidden files and generated folders such as `node_modules` are passed over.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The pattern, relative to `path`.
    pattern: String,
    /// The folder to look in. Without it the working folder.
    #[serde(default)]
    path: Option<String>,
    /// What to find: `file` (when absent), `dir` or `any`.
    #[serde(default, rename = "type")]
    kind: Wanted,
    /// Patterns of what to leave out.
    #[serde(default)]
    exclude: Vec<String>,
    /// Also find what is ignored, hidden or generated.
    #[serde(default)]
    include_ignored: bool,
}

/// What to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Wanted {
    /// Files.
    #[default]
    File,
    /// Folders.
    Dir,
    /// Both.
    Any,
}

/// What was found.
#[derive(Debug, Serialize)]
pub(crate) struct Output {
    pattern: String,
    base_path: String,
    total_files: usize,
    count: usize,
    matches: Vec<Match>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    results_capped: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

#[derive(Debug, Serialize)]
struct Match {
    path: String,
    #[serde(rename = "type")]
    kind: &'static str,
    size: Option<u64>,
}

pub(crate) struct Glob {
    reach: Reach,
    limits: Limits,
}

impl Glob {
    pub(crate) fn new(reach: Reach, limits: Limits) -> Self {
        Self { reach, limits }
    }
}

impl TypedTool for Glob {
    const NAME: &'static str = "glob";
    const EFFECTS: Effects = Effects::READS;
    type Input = Input;
    type Output = Output;

    async fn run(&self, mut input: Input, cx: &ToolCx) -> Result<Output, ToolFailure> {
        if input.pattern.trim().is_empty() {
            return Err(ToolFailure::new("pattern is required").of_kind("InvalidInput"));
        }
        if let Some((folder, rest)) = split_absolute(&input.pattern) {
            (input.path, input.pattern) = (Some(folder), rest);
        }
        let names = Names::read(&input)?;
        let asked = self.reach.ask(input.path.as_deref().unwrap_or("."), Purpose::Read).await?;
        let (limits, stop) = (self.limits.clone(), Stop::new(cx, self.limits.timeout));
        let searched =
            tokio::task::spawn_blocking(move || search(&asked, &input, &names, limits, &stop)).await;
        searched.unwrap_or_else(|error| Err(ToolFailure::new(format!("the search broke off: {error}"))))
    }
}

/// What names must and must not match.
struct Names {
    wanted: GlobMatcher,
    unwanted: GlobSet,
}

impl Names {
    fn read(input: &Input) -> Result<Self, ToolFailure> {
        let bad = |pattern: &str, error: &dyn std::fmt::Display| {
            ToolFailure::new(format!("Invalid glob pattern: {pattern}: {error}")).of_kind("InvalidInput")
        };
        let leaves = |pattern: &str| Path::new(pattern).components().any(|part| part == Component::ParentDir);
        if leaves(&input.pattern) {
            return Err(bad(&input.pattern, &"`..` is not followed; give the folder as `path`"));
        }
        let glob = |pattern: &str| {
            let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
            let built = GlobBuilder::new(pattern).literal_separator(true).empty_alternates(true).build();
            built.map_err(|error| bad(pattern, &error))
        };
        let mut unwanted = GlobSetBuilder::new();
        for pattern in &input.exclude {
            unwanted.add(glob(pattern)?);
            // A bare name means it wherever it stands, and what is in it.
            if !pattern.contains('/') {
                unwanted.add(glob(&format!("**/{pattern}"))?).add(glob(&format!("**/{pattern}/**"))?);
            }
        }
        let unwanted = unwanted.build().map_err(|error| bad(&input.exclude.join(", "), &error))?;
        Ok(Self { wanted: glob(&input.pattern)?.compile_matcher(), unwanted })
    }

    fn fits(&self, below: &Path) -> bool {
        self.wanted.is_match(below) && !self.unwanted.is_match(below)
    }
}

/// The folder an absolute pattern begins with, and the rest.
fn split_absolute(pattern: &str) -> Option<(String, String)> {
    if !Path::new(pattern).is_absolute() {
        return None;
    }
    let magic = pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len());
    let at = pattern.get(..magic)?.rfind('/')?;
    let folder = pattern.get(..at).filter(|folder| !folder.is_empty()).unwrap_or("/");
    Some((folder.to_owned(), pattern.get(at + 1..)?.to_owned()))
}

struct Candidate {
    modified: Option<SystemTime>,
    path: PathBuf,
    is_folder: bool,
    bytes: Option<u64>,
}

fn search(
    asked: &Asked,
    input: &Input,
    names: &Names,
    mut limits: Limits,
    stop: &Stop,
) -> Result<Output, ToolFailure> {
    let ground = Ground::find(asked)?;
    if !ground.root.is_dir() {
        let message = format!("{} is not a directory; give the folder to look in", asked.text);
        return Err(ToolFailure::new(message).of_kind("NotADirectory"));
    }
    let ignored = if input.include_ignored { Ignored::Visited } else { Ignored::PassedOver };
    // Whoever writes the dot wants what is hidden.
    limits.hidden |= input.pattern.split('/').any(|part| part.starts_with('.') && part.len() > 1);
    let choice = Choice { ignored, overrides: None, types: None };
    let found = Mutex::new((Vec::new(), 0));
    walk(&ground, choice, &limits, stop, || {
        |entry: &DirEntry| {
            let Ok(below) = entry.path().strip_prefix(&ground.root) else { return };
            let Some(kind) = entry.file_type().filter(|_| entry.depth() > 0) else { return };
            let wanted = match input.kind {
                Wanted::File => kind.is_file(),
                Wanted::Dir => kind.is_dir(),
                Wanted::Any => kind.is_file() || kind.is_dir(),
            };
            if !wanted || !names.fits(below) {
                return;
            }
            let about = entry.metadata().ok();
            let candidate = Candidate {
                modified: about.as_ref().and_then(|about| about.modified().ok()),
                path: ground.shown(entry.path()),
                is_folder: kind.is_dir(),
                bytes: about.filter(|_| kind.is_file()).map(|about| about.len()),
            };
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.1 += 1;
            if found.0.len() < MATCHES {
                found.0.push(candidate);
            }
        }
    });
    stop.check_cancelled()?;
    let (mut found, total_files) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
    found.truncate(limits.max_results);
    let late = stop.was_late().then(|| {
        format!(
            "stopped after {} s; there may be more, look in a smaller folder",
            limits.timeout.as_secs_f64()
        )
    });
    let no_text = (!found.iter().all(|candidate| is_text(&candidate.path))).then(|| NOT_TEXT.to_owned());
    let told: Vec<_> = late.into_iter().chain(no_text).collect();
    let matches: Vec<_> = found.into_iter().map(shown).collect();
    Ok(Output {
        pattern: input.pattern.clone(),
        base_path: ground.shown(&ground.root).display().to_string(),
        total_files,
        count: matches.len(),
        results_capped: matches.len() < total_files,
        matches,
        warning: (!told.is_empty()).then(|| told.join("; ")),
    })
}

fn shown(candidate: Candidate) -> Match {
    let kind = if candidate.is_folder { "dir" } else { "file" };
    Match { path: told(candidate.path), kind, size: candidate.bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absolute_pattern_is_a_folder_and_a_pattern() {
        let split = |pattern: &str| split_absolute(pattern).map(|(a, b)| format!("{a} {b}"));
        assert_eq!(split("/a/b/**/*.rs").as_deref(), Some("/a/b **/*.rs"));
        assert_eq!(split("/*.rs").as_deref(), Some("/ *.rs"));
        assert_eq!(split("/a/b.rs").as_deref(), Some("/a b.rs"));
        assert_eq!(split("a/*.rs"), None);
    }
}
