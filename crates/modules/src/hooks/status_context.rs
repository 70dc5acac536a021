//! `hooks-status-context`: tells the model where it works: folder, session, date, and how the git repository stands.
//!
//! Git is looked at in the background, when the session opens and when something may have changed
//! (`status_context/look.rs`); a request waits for it a moment at most and then goes out with what is known. It is told anew with each request and never stored.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler, Module, Mounted};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::event::{Event, PromptSubmit, ProviderRequest, ToolPost};
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use amplifier_protocol::time::Timestamp;
use async_trait::async_trait;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::reminder::{Place, Voice, remind};
use crate::table::BuiltIn;

mod git;
mod look;
mod paths;
mod refs;
mod text;
mod zone;

use look::Look;

const NAME: &str = "hooks-status-context";

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// The folder that is told about; without it the session's own, `session.working_dir`.
    working_dir: Option<String>,
    /// Whether git is told about at all.
    include_git: bool,
    /// Whether changed and new files are listed.
    git_include_status: bool,
    /// How many of the last commits are listed; 0 for none.
    git_include_commits: u32,
    /// Whether the current branch is named.
    git_include_branch: bool,
    /// Whether the main branch is named.
    git_include_main_branch: bool,
    /// Whether files that git does not know are listed.
    git_status_include_untracked: bool,
    /// The most such files that are listed.
    git_status_max_untracked: usize,
    /// The most lines of the status altogether.
    git_status_max_lines: usize,
    /// Whether dependencies and build results are only counted, and lock, log and editor files listed sparingly.
    git_status_enable_path_filtering: bool,
    /// More paths that are only counted, such as `generated/**` or `*.pb.go`.
    git_status_tier1_patterns_extend: Vec<String>,
    /// More paths that are listed sparingly.
    git_status_tier2_patterns_extend: Vec<String>,
    /// The most files that are listed of those listed sparingly.
    git_status_tier2_limit: usize,
    /// The most changed files that are listed.
    git_status_max_tracked: usize,
    /// Whether it is said how many files were left out.
    git_status_show_filter_summary: bool,
    /// Whether date and time are told, as they were when the turn began.
    include_datetime: bool,
    /// Whether the time zone is told with them.
    datetime_include_timezone: bool,
    /// Whether the session's ids are told.
    include_session: bool,
    /// Where the hook stands among the others; lower runs first.
    priority: i32,
    /// How long a request waits for git, in milliseconds; then it goes out with what is known.
    git_wait_ms: u64,
    /// How long git may take before it is stopped, in milliseconds.
    git_timeout_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            working_dir: None,
            include_git: true,
            git_include_status: true,
            git_include_commits: 5,
            git_include_branch: true,
            git_include_main_branch: true,
            git_status_include_untracked: true,
            git_status_max_untracked: 20,
            git_status_max_lines: 100,
            git_status_enable_path_filtering: true,
            git_status_tier1_patterns_extend: Vec::new(),
            git_status_tier2_patterns_extend: Vec::new(),
            git_status_tier2_limit: 10,
            git_status_max_tracked: 50,
            git_status_show_filter_summary: true,
            include_datetime: true,
            datetime_include_timezone: false,
            include_session: true,
            priority: 0,
            git_wait_ms: 300,
            git_timeout_ms: 3_000,
        }
    }
}

struct Status {
    config: Config,
    coordinator: Coordinator,
    zone: Arc<OnceLock<TimeZone>>,
    look: Option<Look>,
    // When the running turn made its first request: one time for the whole turn keeps its requests alike.
    began: Mutex<Option<(u64, Timestamp)>>,
}

#[async_trait]
impl HookHandler for Status {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        match event.name.as_str() {
            ProviderRequest::NAME => {
                let body = self.told(event).await;
                return Ok(remind(NAME, &body, Voice::User, Place::Apart));
            }
            // The person may have changed anything since the last turn. The first request is not there yet, so git has
            // time until then.
            PromptSubmit::NAME => self.look.iter().for_each(Look::begin_turn),
            ToolPost::NAME if self.may_have_changed_files(event) => self.look.iter().for_each(Look::doubt),
            _ => {}
        }
        Ok(HookResult::proceed())
    }
}

impl Status {
    async fn told(&self, event: &HookEvent) -> String {
        let seen = match &self.look {
            Some(look) => look.latest(Duration::from_millis(self.config.git_wait_ms)).await,
            None => look::Seen::default(),
        };
        let stamp = &event.stamp;
        text::told(&text::Facts {
            config: &self.config,
            dir: self.look.as_ref().map(Look::dir),
            session: &stamp.session_id,
            parent: stamp.parent_id.as_ref(),
            time: self.turn_began(stamp.turn, stamp.timestamp),
            zone: self.zone.get_or_init(zone::here),
            seen: &seen,
        })
    }

    fn turn_began(&self, turn: u64, now: Timestamp) -> Timestamp {
        let mut began = self.began.lock().unwrap_or_else(PoisonError::into_inner);
        match *began {
            Some((known, since)) if known == turn => since,
            _ => began.insert((turn, now)).1,
        }
    }

    fn may_have_changed_files(&self, event: &HookEvent) -> bool {
        let tool = event.data.get("tool_name").and_then(Value::as_str);
        let tool = tool.and_then(|name| self.coordinator.tool(name));
        tool.is_none_or(|tool| {
            let effects = tool.effects();
            effects.writes || effects.executes || effects.class.changes_the_world()
        })
    }
}

/// The module, as the table lists it.
pub(crate) struct StatusContext;

#[async_trait]
impl Module for StatusContext {
    fn id(&self) -> ModuleId {
        ModuleId::fixed(NAME)
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Hook
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        let coordinator = cx.coordinator.clone();
        let session = coordinator.capability_text("session.working_dir").map(PathBuf::from);
        let dir = match (session, &config.working_dir) {
            (Some(session), Some(own)) => Some(session.join(own)),
            (None, Some(own)) => Some(PathBuf::from(own)),
            (session, None) => session,
        };
        if dir.as_ref().is_some_and(|dir| dir.is_relative()) {
            cx.warn(
                "`working_dir` is relative and the session has no working folder; no folder is told about",
            );
        }
        let look = dir.filter(|dir| dir.is_absolute()).map(|dir| Look::new(dir, &config));
        let (priority, with_git) = (config.priority, config.include_git && look.is_some());
        if with_git {
            look.iter().for_each(Look::begin_early);
        }
        let (zone, began) = (Arc::new(OnceLock::new()), Mutex::default());
        if config.include_datetime {
            // Finding the zone reads files, and the first request is not there yet.
            let early = Arc::clone(&zone);
            tokio::task::spawn_blocking(move || {
                early.get_or_init(zone::here);
            });
        }
        let status = Arc::new(Status { config, coordinator, zone, look, began });
        let mut patterns = vec![EventPattern::event::<ProviderRequest>()];
        if with_git {
            patterns.extend([EventPattern::event::<PromptSubmit>(), EventPattern::event::<ToolPost>()]);
        }
        for pattern in patterns {
            cx.on(HookSpec::new(pattern, NAME).priority(priority), status.clone());
        }
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for StatusContext {
    fn info(&self) -> ModuleInfo {
        self.about("Tells the model the state of git, the date and the folder it works in.")
            .config::<Config>()
            .uses("session.working_dir")
    }
}
