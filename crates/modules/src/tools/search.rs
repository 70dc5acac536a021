//! `tool-search`: `grep` for what is in files and `glob` for their names, with ripgrep's rules about what to look at.
//!
//! `walk.rs` decides which files are visited; `grep.rs` and `glob.rs` are the tools.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::contracts::{Module, Mounted, Typed};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) mod glob;
mod grep;
mod hits;
mod kinds;
mod walk;

use crate::files::paths::{Reach, Rules};
use crate::table::BuiltIn;

/// Folders that hold what nobody wrote by hand, wherever they stand below the place that is searched.
const EXCLUSIONS: [&str; 19] = [
    "node_modules",
    ".venv",
    "venv",
    ".git",
    "__pycache__",
    ".mypy_cache",
    ".pytest_cache",
    ".tox",
    "dist",
    "build",
    ".next",
    ".nuxt",
    "target",
    "vendor",
    ".gradle",
    ".idea",
    ".vscode",
    "coverage",
    ".nyc_output",
];

/// What a plan may configure.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// What relative paths are relative to; without it the session's own, `session.working_dir`.
    working_dir: Option<String>,
    /// The folders and files that may be searched, with everything in them; without it the working folder.
    allowed_paths: Option<Vec<String>>,
    /// The most results of either tool, where the keys below do not say otherwise.
    max_results: Option<usize>,
    /// What concerns `grep` alone.
    grep: GrepConfig,
    /// What concerns `glob` alone.
    glob: GlobConfig,
}

/// What concerns `grep` alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct GrepConfig {
    /// The most results, whatever the output mode.
    max_results: Option<usize>,
    /// The most results by output mode, when a call names none.
    default_limits: DefaultLimits,
    /// The largest file that is searched, in bytes; 10 MiB when absent.
    max_file_size: Option<u64>,
    /// How long a search may take, in seconds; 60 when absent. What was found by then is given.
    timeout: Option<f64>,
    /// Names of folders that are passed over; what is generated, when absent.
    exclusions: Option<Vec<String>>,
    /// Whether hidden files are searched.
    hidden: bool,
    /// Whether a pattern without capitals finds both cases.
    smart_case: bool,
    /// The most text that is given at once, in bytes; 256 KiB when absent.
    max_output_bytes: Option<usize>,
}

/// The most results by output mode.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct DefaultLimits {
    /// Files that match.
    files_with_matches: usize,
    /// Lines that match.
    content: usize,
    /// Files with their counts.
    count: usize,
}

impl Default for DefaultLimits {
    fn default() -> Self {
        Self { files_with_matches: 200, content: 500, count: 200 }
    }
}

/// What concerns `glob` alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct GlobConfig {
    /// The most results; 500 when absent.
    max_results: Option<usize>,
    /// How long a search may take, in seconds; 60 when absent.
    timeout: Option<f64>,
    /// Names of folders that are passed over; what is generated, when absent.
    exclusions: Option<Vec<String>>,
    /// Whether hidden files are found by patterns that do not name them.
    hidden: bool,
}

/// How far a search goes.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    max_results: usize,
    timeout: Duration,
    exclusions: Vec<String>,
    hidden: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_results: 500,
            timeout: Duration::from_secs(60),
            exclusions: EXCLUSIONS.iter().map(|name| (*name).to_owned()).collect(),
            hidden: false,
        }
    }
}

impl Limits {
    fn set_timeout(&mut self, seconds: Option<f64>) {
        // A time that is no time leaves the usual one.
        let set = seconds.filter(|seconds| *seconds > 0.0);
        if let Some(timeout) = set.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
            self.timeout = timeout;
        }
    }
}

/// The module, as the table lists it.
pub(crate) struct Search;

#[async_trait]
impl Module for Search {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("tool-search")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Tool
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        let rules = Rules {
            working_dir: config.working_dir.clone(),
            read: config.allowed_paths.clone(),
            ..Rules::default()
        };
        let reach = Reach::new(rules, cx.coordinator.clone());
        let usual = Limits::default();

        let mut limits = usual.clone();
        limits.hidden = config.grep.hidden;
        limits.exclusions = config.grep.exclusions.clone().unwrap_or(limits.exclusions);
        limits.set_timeout(config.grep.timeout);
        let grep = grep::Grep::new(reach.clone(), limits, &config.grep, config.max_results);
        cx.mount_tool(Arc::new(Typed(grep)));

        let mut limits = usual;
        limits.hidden = config.glob.hidden;
        limits.max_results = config.glob.max_results.or(config.max_results).unwrap_or(limits.max_results);
        limits.exclusions = config.glob.exclusions.clone().unwrap_or(limits.exclusions);
        limits.set_timeout(config.glob.timeout);
        cx.mount_tool(Arc::new(Typed(glob::Glob::new(reach, limits))));
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for Search {
    fn info(&self) -> ModuleInfo {
        self.about("Finds text in files (`grep`) and files by name (`glob`), passing over what is ignored.")
            .config::<Config>()
            .uses("session.working_dir")
            .uses("user.home_dir")
            .uses("mention_resolver")
    }
}
