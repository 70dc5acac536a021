//! `hooks-logging`: writes every event to a file, one JSON line each (`docs/reference/log.md`).
//!
//! It runs before all other hooks, so that what they deny is in the log too, and the turn never waits for it: a line is
//! put into a bounded queue (`logging/queue.rs`), made and written elsewhere (`logging/line.rs`, `logging/file.rs`). It is
//! not the journal: nothing is read back from here.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::contracts::{
    Capability, HookEvent, HookFailure, HookHandler, Module, Mounted, TaskFailure,
};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::event::{EVENTS, Event, SessionEnd};
use amplifier_protocol::hook::{HookResult, MessageLevel};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod file;
mod line;
mod queue;

use self::file::{LogFile, Sharing};
use self::line::{Entry, Level, Line};
use self::queue::Queue;
use super::place;
use super::redaction::{RULES_CAPABILITY, Redactor};
use super::wildcard::{fits, fits_any};
use crate::table::BuiltIn;
use crate::workspace;

/// Under this name the application takes out the keys that it knows.
const KEYS_CAPABILITY: &str = "secrets.hide_event";
/// How long the end of a session waits for the disk.
const LAST_FLUSH: Duration = Duration::from_secs(5);

/// Where lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    /// A file for each session, `<output_dir>/<session id>.jsonl`.
    SessionOnly,
    /// One file for all sessions, `<output_dir>/events.jsonl`.
    Combined,
    /// Nothing is written.
    Off,
}

/// Which events are written, as patterns with `*` and `?`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Events {
    /// Only events that fit one of these.
    include: Vec<String>,
    /// Not those that fit one of these.
    exclude: Vec<String>,
}

impl Default for Events {
    fn default() -> Self {
        Self { include: vec!["*".to_owned()], exclude: Vec::new() }
    }
}

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Config {
    /// Where lines go: `session-only`, `combined` or `off`.
    mode: Mode,
    /// The folder of the log, relative to the working folder.
    output_dir: String,
    /// A whole path instead of `output_dir`; `{session_id}` and `{project}` are filled in.
    session_log_template: Option<String>,
    /// The least level that is written: `debug`, `info`, `warning` or `error`.
    level: Level,
    /// Which events are written.
    events: Events,
    /// Events that are not written, beside `events.exclude`; by default the small pieces of streams.
    exclude_events: Vec<String>,
    /// Whether events that are not in the agreed list are written too.
    auto_discover: bool,
    /// Events that are written although they are not in the agreed list, when `auto_discover` is off.
    additional_events: Vec<String>,
    /// Whether the raw payloads of providers (`raw`) are left out.
    strip_raw: bool,
    /// A file that would grow beyond this many bytes is put aside and a new one begun.
    max_bytes: u64,
    /// How many files are kept, the current one among them.
    max_files: u32,
    /// A line longer than this many bytes is written without its data.
    max_line_bytes: usize,
    /// How many lines may wait for the disk; what comes then is counted and left out.
    max_waiting_lines: usize,
    /// How many bytes may wait for the disk, about.
    max_waiting_bytes: usize,
    /// The place among the hooks; lower runs first. Behind a hook that denies, denied events are not seen.
    priority: i32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: Mode::SessionOnly,
            output_dir: ".amplifier/logs".to_owned(),
            session_log_template: None,
            level: Level::Info,
            events: Events::default(),
            exclude_events: vec!["llm:stream_*delta".to_owned()],
            auto_discover: true,
            additional_events: Vec::new(),
            strip_raw: false,
            max_bytes: 50 * 1024 * 1024,
            max_files: 5,
            max_line_bytes: 1024 * 1024,
            max_waiting_lines: 4_096,
            max_waiting_bytes: 64 * 1024 * 1024,
            priority: -1_000,
        }
    }
}

struct Logger {
    config: Config,
    queue: Queue,
}

impl Logger {
    fn wants(&self, event: &HookEvent, level: Level) -> bool {
        let (name, config) = (event.name.as_str(), &self.config);
        let is_known = || config.auto_discover || EVENTS.iter().any(|kind| kind.name == name);
        level >= config.level
            && fits_any(&config.events.include, name)
            && !fits_any(&config.events.exclude, name)
            && !fits_any(&config.exclude_events, name)
            && (is_known() || config.additional_events.iter().any(|known| fits(known, name)))
    }
}

#[async_trait]
impl HookHandler for Logger {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        let level = Level::of(event);
        let is_last = event.name.as_str() == SessionEnd::NAME;
        if self.wants(event, level) {
            let mut data = event.data.clone();
            if self.config.strip_raw {
                data.shift_remove("raw");
            }
            let entry = Entry { name: event.name.clone(), stamp: event.stamp.clone(), level, data };
            self.queue.offer(Line::Event(Box::new(entry)));
        }
        if is_last {
            // What goes wrong here is told by the cleanup, which flushes again.
            drop(tokio::time::timeout(LAST_FLUSH, self.queue.flush()).await);
        }
        Ok(match self.queue.trouble() {
            Some(trouble) => HookResult::proceed().showing(trouble, MessageLevel::Warning),
            None => HookResult::proceed(),
        })
    }
}

/// The module, as the table lists it.
pub(crate) struct Logging;

#[async_trait]
impl Module for Logging {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("hooks-logging")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Hook
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        if config.mode == Mode::Off {
            return Ok(Mounted::Skipped { reason: "`mode` is `off`".to_owned() });
        }
        let place = config.session_log_template.as_deref().unwrap_or(&config.output_dir);
        if let Some(declined) = place::homeless(&[place], cx) {
            return Ok(declined);
        }
        let file = log_file(&config, cx)?;
        let shown = file.path().display().to_string();
        let opened = tokio::task::spawn_blocking(move || file.opened()).await;
        let file = opened
            .map_err(|error| place::refused(cx, error.to_string()))?
            .map_err(|error| place::refused(cx, format!("cannot open the log `{shown}`: {error}")))?;
        let queue = Queue::start(file, &config);
        if let Some(Capability::Call(hide)) = cx.coordinator.capability(KEYS_CAPABILITY) {
            queue.hide_keys_with(hide);
        }
        let (last, rules) = (queue.clone(), queue.clone());
        // Registered first, so it runs when the handler hears nothing more.
        cx.register_cleanup(move || async move { last.flush().await.map_err(TaskFailure::new) });
        cx.on_session_ready(move |coordinator: Coordinator| async move {
            if let Some(Capability::Value(value)) = coordinator.capability(RULES_CAPABILITY) {
                let redactor = Redactor::of_rules(value)
                    .ok_or_else(|| TaskFailure::new(format!("`{RULES_CAPABILITY}` cannot be read")))?;
                rules.redact_with(redactor);
            }
            Ok(())
        });
        let spec = HookSpec::new(EventPattern::All, "hooks-logging").priority(config.priority);
        cx.on(spec, Arc::new(Logger { config, queue }));
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for Logging {
    fn info(&self) -> ModuleInfo {
        self.about("Writes events as lines of JSON, without holding up the turn.")
            .config::<Config>()
            .uses("session.working_dir")
            .uses("user.home_dir")
            .uses(workspace::CAPABILITY)
            .uses("redaction.rules")
            .uses("secrets.hide_event")
    }
}

fn log_file(config: &Config, cx: &MountCx) -> Result<LogFile, LoadError> {
    let session_id = cx.coordinator.session_id().as_str();
    let (text, sharing) = match (&config.session_log_template, config.mode) {
        (Some(template), _) => {
            let text = template.replace("{session_id}", session_id).replace("{project}", &project(cx));
            // A template that does not name the session is a file that sessions share.
            let own = template.contains("{session_id}");
            (text, if own { Sharing::Own } else { Sharing::Shared })
        }
        (None, Mode::Combined) => (format!("{}/events.jsonl", config.output_dir), Sharing::Shared),
        (None, _) => (format!("{}/{session_id}.jsonl", config.output_dir), Sharing::Own),
    };
    Ok(LogFile::new(place::resolve(&text, cx)?, sharing, config.max_bytes, config.max_files))
}

/// The working folder as one word, as other tools of the ecosystem name their folders.
fn project(cx: &MountCx) -> String {
    let folder = place::working_dir(&cx.coordinator).unwrap_or_default().display().to_string();
    let slug = folder.replace(['/', '\\'], "-").replace(':', "");
    if slug.starts_with('-') { slug } else { format!("-{slug}") }
}
