//! `hooks-backup`: keeps what files held before a tool changed them, and what was said before it is shortened.
//!
//! `backup/store.rs` keeps and restores files, `call_paths.rs` finds the paths of a call, `backup/transcript.rs` writes
//! conversations. Only files inside the working folder (or `allowed_paths`) are copied: a copy of what the model may not
//! read must not land where it may.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use amplifier_core::contracts::{Capability, HookEvent, HookFailure, HookHandler, Module, Mounted};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::event::{
    ContextPreCompact, Event, OrchestratorComplete, SessionEnd, ToolPre, TurnStatus,
};
use amplifier_protocol::hook::{HookResult, MessageLevel};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod restore;
mod store;
mod transcript;

pub use self::restore::{RestoreError, Restored};
pub use self::store::{About, BackupError, Backups, Entry, Kept, Limits};

use self::transcript::Messages;
use super::{call_paths, place};
use crate::table::BuiltIn;
use crate::workspace;

/// How long the conversation may take to be read; the context that asks may be busy with the very thing.
const PATIENCE: Duration = Duration::from_secs(5);
/// Under this name the application takes out the keys that it knows.
const KEYS_CAPABILITY: &str = "secrets.hide";

/// How a conversation is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// A line for each message.
    Jsonl,
    /// One object.
    Json,
}

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// Where backups are kept, a folder for each session in it; relative to the working folder.
    backup_dir: String,
    /// Whether files are kept before a tool changes them.
    files: bool,
    /// Whether the conversation is kept before it is shortened and when the session ends.
    transcripts: bool,
    /// How a conversation is written: `jsonl` or `json`.
    format: Format,
    /// Whether a conversation begins with what is known about it.
    include_metadata: bool,
    /// Folders beside the working folder whose files may be copied.
    allowed_paths: Vec<String>,
    /// Whether a file that cannot be kept must not be changed.
    required: bool,
    /// A larger file is not copied.
    max_file_bytes: u64,
    /// What the copies of one session may take together; the oldest go first.
    max_total_bytes: u64,
    /// How many changes of one session are kept; the oldest go first.
    max_backups: usize,
    /// How many conversations of one session are kept; the oldest go first.
    max_transcripts: usize,
    /// How many sessions are kept; the oldest go first.
    max_sessions: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            backup_dir: ".amplifier/backups".to_owned(),
            files: true,
            transcripts: true,
            format: Format::Jsonl,
            include_metadata: true,
            allowed_paths: Vec::new(),
            required: false,
            max_file_bytes: 10 * 1024 * 1024,
            max_total_bytes: 500 * 1024 * 1024,
            max_backups: 1_000,
            max_transcripts: 20,
            max_sessions: 50,
        }
    }
}

struct Keeper {
    config: Config,
    coordinator: Coordinator,
    /// The session's folder.
    folder: PathBuf,
    /// Where files may be copied from.
    roots: Vec<PathBuf>,
    base: PathBuf,
    // Opened at the first change; used on blocking threads only.
    store: Arc<Mutex<Option<Backups>>>,
    told: Mutex<BTreeSet<PathBuf>>,
}

impl Keeper {
    async fn keep_files(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        let call: ToolPre = event.read().map_err(|error| HookFailure::new(error.to_string()))?;
        let writes = self.coordinator.tool(&call.tool_name).is_some_and(|tool| tool.effects().writes);
        let paths = if writes {
            call_paths::absolute(&call.tool_name, &call.tool_input, &self.base)
        } else {
            Vec::new()
        };
        if paths.is_empty() {
            return Ok(HookResult::proceed());
        }
        let about = About {
            time: event.stamp.timestamp,
            turn: event.stamp.turn,
            tool_name: call.tool_name,
            tool_call_id: call.tool_call_id,
        };
        let (store, folder, roots) = (Arc::clone(&self.store), self.folder.clone(), self.roots.clone());
        let (limits, max_sessions) = (self.limits(), self.config.max_sessions);
        let kept = tokio::task::spawn_blocking(move || {
            let mut store = lock(&store);
            let backups = match &mut *store {
                Some(backups) => backups,
                none => {
                    let opened = Backups::open(&folder, limits)?;
                    store::forget_old_sessions(&folder, max_sessions)?;
                    none.insert(opened)
                }
            };
            let keep = |path: PathBuf| Ok((backups.keep(&path, &roots, &about)?, path));
            paths.into_iter().map(keep).collect::<Result<Vec<_>, BackupError>>()
        });
        match kept.await {
            Ok(Ok(kept)) => Ok(self.tell(kept)),
            Ok(Err(error)) => Ok(self.failed(&amplifier_core::error::chain(&error))),
            Err(error) => Ok(self.failed(&error.to_string())),
        }
    }

    /// Says once what is not kept.
    fn tell(&self, kept: Vec<(Kept, PathBuf)>) -> HookResult {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let mut words = Vec::new();
        for (kept, path) in kept {
            if let Kept::Skipped { reason } = kept {
                if self.config.required {
                    return self.failed(&reason);
                }
                if told.insert(path) {
                    words.push(format!("not backed up: {reason}"));
                }
            }
        }
        if words.is_empty() {
            return HookResult::proceed();
        }
        HookResult::proceed().showing(words.join("\n"), MessageLevel::Warning)
    }

    fn failed(&self, error: &str) -> HookResult {
        if self.config.required {
            return HookResult::deny(format!("the file cannot be backed up first: {error}"));
        }
        HookResult::proceed().showing(format!("no backup was made: {error}"), MessageLevel::Warning)
    }

    async fn keep_transcript(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        let messages: Messages = match event.data.get("messages").and_then(Value::as_array) {
            Some(messages) => Box::new(messages.clone().into_iter()),
            None => {
                let Some(context) = self.coordinator.context() else { return Ok(HookResult::proceed()) };
                let messages = tokio::time::timeout(PATIENCE, context.messages()).await;
                let messages = messages
                    .map_err(|_| HookFailure::new("the context did not give its messages in time"))?
                    .map_err(|error| HookFailure::new(error.to_string()))?;
                Box::new(messages.into_iter().map(|message| serde_json::json!(message)))
            }
        };
        if messages.len() == 0 {
            return Ok(HookResult::proceed());
        }
        let hide = match self.coordinator.capability(KEYS_CAPABILITY) {
            Some(Capability::Call(hide)) => Some(hide),
            _ => None,
        };
        let kind = if event.name.as_str() == SessionEnd::NAME { "final" } else { "compact" };
        let record = transcript::Record {
            kind,
            stamp: event.stamp.clone(),
            messages,
            hide,
            format: self.config.format,
            include_metadata: self.config.include_metadata,
        };
        let (folder, most) = (self.folder.join("transcripts"), self.config.max_transcripts);
        let written = tokio::task::spawn_blocking(move || transcript::write(&folder, record, most)).await;
        match written {
            Ok(Ok(_)) => Ok(HookResult::proceed()),
            Ok(Err(error)) => Err(HookFailure::new(format!("the conversation was not kept: {error}"))),
            Err(error) => Err(HookFailure::new(error.to_string())),
        }
    }

    /// When a turn is over, lets go of copies of what its calls did not change: they were refused, or they failed.
    async fn forget_unchanged(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        let done: OrchestratorComplete = event.read().map_err(|error| HookFailure::new(error.to_string()))?;
        // What was stopped in the middle may still be writing.
        if matches!(done.status, TurnStatus::Cancelled | TurnStatus::Error) {
            return Ok(HookResult::proceed());
        }
        let (store, turn) = (Arc::clone(&self.store), event.stamp.turn);
        let forgotten = tokio::task::spawn_blocking(move || match &mut *lock(&store) {
            Some(backups) => backups.forget_unchanged(turn),
            None => Ok(()),
        });
        match forgotten.await {
            Ok(Ok(())) => Ok(HookResult::proceed()),
            Ok(Err(error)) => Err(HookFailure::new(amplifier_core::error::chain(&error))),
            Err(error) => Err(HookFailure::new(error.to_string())),
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            max_file_bytes: self.config.max_file_bytes,
            max_total_bytes: self.config.max_total_bytes,
            max_entries: self.config.max_backups,
        }
    }
}

// A panic in the middle of a change leaves the index on disk as it was; the store is read from it again.
fn lock(store: &Mutex<Option<Backups>>) -> MutexGuard<'_, Option<Backups>> {
    store.lock().unwrap_or_else(|poisoned| {
        let mut store = poisoned.into_inner();
        *store = None;
        store
    })
}

#[async_trait]
impl HookHandler for Keeper {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        match event.name.as_str() {
            ToolPre::NAME => self.keep_files(event).await,
            OrchestratorComplete::NAME => self.forget_unchanged(event).await,
            ContextPreCompact::NAME | SessionEnd::NAME => self.keep_transcript(event).await,
            _ => Ok(HookResult::proceed()),
        }
    }
}

/// The module, as the table lists it.
pub(crate) struct Backup;

#[async_trait]
impl Module for Backup {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("hooks-backup")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Hook
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        if let Some(declined) = place::homeless(&[&config.backup_dir], cx) {
            return Ok(declined);
        }
        let folder = session_folder(&place::resolve(&config.backup_dir, cx)?, cx.coordinator.session_id());
        let base = place::working_dir(&cx.coordinator).unwrap_or_default();
        let mut roots: Vec<_> = Some(base.clone()).filter(|base| base.is_absolute()).into_iter().collect();
        for path in &config.allowed_paths {
            roots.push(place::resolve(path, cx)?);
        }
        let (files, transcripts, required) = (config.files, config.transcripts, config.required);
        let (coordinator, store, told) = (cx.coordinator.clone(), Arc::default(), Mutex::default());
        let keeper = Arc::new(Keeper { config, coordinator, folder, roots, base, store, told });
        if files {
            // Behind the gates: what they deny changes nothing.
            let spec = HookSpec::new(EventPattern::event::<ToolPre>(), "hooks-backup").priority(90);
            cx.on(if required { spec.closed() } else { spec }, keeper.clone());
            let spec = HookSpec::new(EventPattern::event::<OrchestratorComplete>(), "hooks-backup");
            cx.on(spec.priority(90), keeper.clone());
        }
        if transcripts {
            let spec = HookSpec::new(EventPattern::event::<ContextPreCompact>(), "hooks-backup-transcript");
            cx.on(spec.priority(10), keeper.clone());
            let spec = HookSpec::new(EventPattern::event::<SessionEnd>(), "hooks-backup-transcript");
            cx.on(spec.priority(100), keeper);
        }
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for Backup {
    fn info(&self) -> ModuleInfo {
        self.about("Keeps files before a tool changes them and the conversation before it is shortened.")
            .config::<Config>()
            .uses("session.working_dir")
            .uses("user.home_dir")
            .uses(workspace::CAPABILITY)
            .uses(KEYS_CAPABILITY)
    }
}

/// Where the backups of a session are, below the folder that `backup_dir` names.
pub fn session_folder(backup_dir: &Path, session_id: &amplifier_protocol::ids::SessionId) -> PathBuf {
    backup_dir.join(session_id.as_str())
}
