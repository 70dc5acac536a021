//! `grep`: lines by what is in them. `grep/sink.rs` gathers what one file gives; this file is the tool around it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use amplifier_core::contracts::{ToolCx, ToolFailure, TypedTool};
use amplifier_protocol::tool::Effects;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::DirEntry;
use ignore::overrides::OverrideBuilder;
use schemars::JsonSchema;
use serde::Deserialize;

use super::hits::{Hits, Unit};
use super::kinds;
use super::walk::{Choice, Ground, Ignored, Stop, walk};
use super::{DefaultLimits, GrepConfig, Limits};
use crate::files::names::{NOT_TEXT, is_text};
use crate::files::paths::{Asked, Purpose, Reach};

mod answer;
mod sink;

use answer::Output;
use sink::Gather;

/// The most results of one call, also of one that asks for all.
const RESULTS: usize = 10_000;
/// The most lines of context on either side of a match.
const CONTEXT: usize = 50;
/// How large a compiled pattern may become, in bytes.
const PATTERN_BYTES: usize = 16 * 1024 * 1024;

/// Searches the content of files with a regular expression.
///
/// Looks into every text file below `path` but those that version control ignores, hidden ones and generated folders such
/// as `node_modules`. The syntax is ripgrep's: escape `{`, `(` and other signs to mean them literally. Results come
/// sorted by path; when there are more than fit, `results_capped` is set: ask again with `offset` or a narrower search.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The regular expression.
    pub(super) pattern: String,
    /// The file or folder to search. Without it the working folder.
    #[serde(default)]
    path: Option<String>,
    /// What to give: `files_with_matches` (when absent), `content` or `count`.
    #[serde(default)]
    pub(super) output_mode: OutputMode,
    /// Find both cases.
    #[serde(default, rename = "-i")]
    ignore_case: bool,
    /// Give line numbers (content mode).
    #[serde(default = "yes", rename = "-n")]
    line_numbers: bool,
    /// Lines to show after each match (content mode).
    #[serde(default, rename = "-A")]
    after: usize,
    /// Lines to show before each match (content mode).
    #[serde(default, rename = "-B")]
    before: usize,
    /// Lines to show on both sides of each match (content mode).
    #[serde(default, rename = "-C")]
    around: usize,
    /// Search only files whose path matches, such as `*.rs` or `!*.lock`.
    #[serde(default)]
    glob: Option<String>,
    /// Search only files of a type, such as `rust`, `py`, `ts`.
    #[serde(default, rename = "type")]
    kind: Option<String>,
    /// Let the pattern span lines; `.` then matches line ends too.
    #[serde(default)]
    multiline: bool,
    /// The most results to give; 0 for all.
    #[serde(default)]
    head_limit: Option<usize>,
    /// How many results to leave out at the beginning.
    #[serde(default)]
    pub(super) offset: usize,
    /// Also search what is ignored, hidden or generated.
    #[serde(default)]
    include_ignored: bool,
}

fn yes() -> bool {
    true
}

/// What to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OutputMode {
    /// The lines.
    Content,
    /// The names of the files.
    #[default]
    FilesWithMatches,
    /// How many lines of each file.
    Count,
}

pub(super) struct Grep {
    reach: Reach,
    limits: Limits,
    settings: Settings,
}

/// What the config says of every search.
#[derive(Clone)]
struct Settings {
    default_limits: DefaultLimits,
    max_results: Option<usize>,
    max_file_size: u64,
    max_output_bytes: usize,
    smart_case: bool,
}

impl Grep {
    pub(super) fn new(reach: Reach, limits: Limits, config: &GrepConfig, max_results: Option<usize>) -> Self {
        let settings = Settings {
            default_limits: config.default_limits.clone(),
            max_results: config.max_results.or(max_results),
            max_file_size: config.max_file_size.unwrap_or(10 * 1024 * 1024),
            max_output_bytes: config.max_output_bytes.unwrap_or(256 * 1024),
            smart_case: config.smart_case,
        };
        Self { reach, limits, settings }
    }
}

impl TypedTool for Grep {
    const NAME: &'static str = "grep";
    const EFFECTS: Effects = Effects::READS;
    type Input = Input;
    type Output = Output;

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolFailure> {
        if input.pattern.is_empty() {
            return Err(ToolFailure::new("pattern is required").of_kind("InvalidInput"));
        }
        let matcher = matcher(&input, &self.settings)?;
        let asked = self.reach.ask(input.path.as_deref().unwrap_or("."), Purpose::Read).await?;
        let search = Search {
            asked,
            input,
            matcher,
            settings: self.settings.clone(),
            limits: self.limits.clone(),
            stop: Stop::new(cx, self.limits.timeout),
            base: self.reach.working_dir(),
        };
        let searched = tokio::task::spawn_blocking(move || search.run()).await;
        searched.unwrap_or_else(|error| Err(ToolFailure::new(format!("the search broke off: {error}"))))
    }
}

fn matcher(input: &Input, settings: &Settings) -> Result<RegexMatcher, ToolFailure> {
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).case_insensitive(input.ignore_case).case_smart(settings.smart_case);
    builder.size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
    if input.multiline {
        builder.dot_matches_new_line(true);
    } else {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&input.pattern).map_err(|error| {
        let error = error.to_string();
        let hint = if error.contains("\\n") { "; set `multiline` to search across lines" } else { "" };
        ToolFailure::new(format!("Invalid regex pattern: {error}{hint}")).of_kind("InvalidInput")
    })
}

/// One search, with all it needs.
struct Search {
    asked: Asked,
    input: Input,
    matcher: RegexMatcher,
    settings: Settings,
    limits: Limits,
    stop: Stop,
    /// What paths are shown relative to.
    base: Option<PathBuf>,
}

impl Search {
    fn run(self) -> Result<Output, ToolFailure> {
        let ground = Ground::find(&self.asked)?;
        let choice = self.choice(&ground)?;
        let limit = self.limit();
        let unit = if self.input.output_mode == OutputMode::Content { Unit::Lines } else { Unit::Files };
        let keep = self.input.offset.saturating_add(limit);
        let hits = Mutex::new(Hits::new(keep, unit));
        let too_large = AtomicU64::new(0);
        walk(&ground, choice, &self.limits, &self.stop, || {
            let mut searcher = self.searcher();
            let (hits, too_large, ground, search) = (&hits, &too_large, &ground, &self);
            move |entry: &DirEntry| {
                if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                    return;
                }
                if entry.metadata().is_ok_and(|about| about.len() > search.settings.max_file_size) {
                    too_large.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                if let Some(found) = search.look(&mut searcher, entry.path(), keep) {
                    let path = search.shown(ground, entry.path());
                    hits.lock().unwrap_or_else(PoisonError::into_inner).add(path, found);
                }
            }
        });
        self.stop.check_cancelled()?;
        let hits = hits.into_inner().unwrap_or_else(PoisonError::into_inner);
        let warning = self.warning(too_large.into_inner(), &hits);
        let bounds = answer::Bounds { limit, max_output_bytes: self.settings.max_output_bytes };
        Ok(Output::new(&self.input, hits, &bounds, warning))
    }

    /// What a file gives; nothing when it does not match, is no text or cannot be read.
    fn look(&self, searcher: &mut Searcher, path: &Path, keep: usize) -> Option<super::hits::Found> {
        let mut gather = Gather::new(&self.input, keep, &self.stop);
        // A file that cannot be read is passed over, as ripgrep does with what it cannot open.
        searcher.search_path(&self.matcher, path, &mut gather).ok()?;
        gather.finish()
    }

    fn searcher(&self) -> Searcher {
        let mut builder = SearcherBuilder::new();
        builder.binary_detection(BinaryDetection::quit(0)).multi_line(self.input.multiline);
        let (before, after) = self.input.context();
        builder.line_number(self.input.output_mode == OutputMode::Content);
        builder.before_context(before).after_context(after);
        builder.build()
    }

    fn choice(&self, ground: &Ground) -> Result<Choice, ToolFailure> {
        let ignored = if self.input.include_ignored { Ignored::Visited } else { Ignored::PassedOver };
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        let overrides = match given(&self.input.glob) {
            None => None,
            Some(glob) => {
                let mut builder = OverrideBuilder::new(&ground.root);
                let built = builder.add(&glob).and_then(|builder| builder.build());
                Some(built.map_err(|error| {
                    ToolFailure::new(format!("Invalid glob pattern: {error}")).of_kind("InvalidInput")
                })?)
            }
        };
        let types = given(&self.input.kind).map(|kind| kinds::types(&kind)).transpose()?;
        Ok(Choice { ignored, overrides, types })
    }

    /// How many results are given.
    fn limit(&self) -> usize {
        let usual = match self.input.output_mode {
            OutputMode::Content => self.settings.default_limits.content,
            OutputMode::FilesWithMatches => self.settings.default_limits.files_with_matches,
            OutputMode::Count => self.settings.default_limits.count,
        };
        let asked = match self.input.head_limit {
            None => usual,
            Some(0) => RESULTS,
            Some(limit) => limit,
        };
        asked.min(self.settings.max_results.unwrap_or(RESULTS)).min(RESULTS)
    }

    fn shown(&self, ground: &Ground, path: &Path) -> PathBuf {
        let shown = ground.shown(path);
        let below = self.base.as_ref().and_then(|base| shown.strip_prefix(base).ok());
        below.filter(|below| !below.as_os_str().is_empty()).map(Path::to_owned).unwrap_or(shown)
    }

    fn warning(&self, too_large: u64, hits: &Hits) -> Option<String> {
        let mut told = Vec::new();
        if self.stop.was_late() {
            let seconds = self.limits.timeout.as_secs_f64();
            told.push(format!("stopped after {seconds} s; there may be more, search a smaller folder"));
        }
        if too_large > 0 {
            let most = self.settings.max_file_size;
            told.push(format!("{too_large} files of more than {most} bytes were not searched"));
        }
        if !hits.files.keys().all(is_text) {
            told.push(NOT_TEXT.to_owned());
        }
        (!told.is_empty()).then(|| told.join("; "))
    }
}

impl Input {
    /// Lines before and after a match.
    fn context(&self) -> (usize, usize) {
        if self.output_mode != OutputMode::Content {
            return (0, 0);
        }
        let of = |own: usize| own.max(self.around).min(CONTEXT);
        (of(self.before), of(self.after))
    }
}
