//! `context-persistent`: `context-simple` with a file of its own, which outlives the process.
//!
//! The file is only ever appended to, one JSON line a message, and on the disk before an add returns. A session that finds
//! it goes on from it, whatever else it is offered. It is no second journal: it holds messages, not events. As there, the
//! keys that the application knows are not in it; a session that is open goes on with what was said.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::contracts::{
    Capability, CapabilityCall, ContextError, ContextManager, Module, Mounted, RequestBudget, TaskFailure,
};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::loader::{LoadError, MountCx, near_misses};
use amplifier_protocol::event::ContextInclude;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::message::{Message, Messages};
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Map, Value};

mod memory_files;
mod transcript;

use super::events::{SetMessagesIgnored, ToolResultClipped, with_events};
use super::window::{Window, WindowConfig};
use crate::table::BuiltIn;
use crate::workspace::{CAPABILITY as TRUST, Workspace};
use transcript::{Line, Loaded, Sync, Transcript, TranscriptError};

const ID: ModuleId = ModuleId::fixed("context-persistent");
/// The file's name in a session's folder. Not `transcript.jsonl`: that is a view of the journal and has another owner.
const FILE: &str = "context-messages.jsonl";
/// Under this name the application takes out the keys that it knows.
const KEYS_CAPABILITY: &str = "secrets.hide";

/// What a plan may configure.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// The file. A relative path begins at the session's working folder. Without it: `context-messages.jsonl` in the
    /// session's own folder where the application offers one, else in `.amplifier/sessions/<session id>/` of the working
    /// folder.
    transcript_path: Option<PathBuf>,
    /// Files whose text a new conversation begins with, as system messages. Relative paths begin at the working folder.
    memory_files: Vec<PathBuf>,
    /// `message` brings every message to the disk before it counts as stored; `none` leaves that to the system, so that
    /// a power failure may cost the last seconds.
    sync: Sync,
    /// Read for compatibility; has no effect.
    truncate_boundary: Option<f64>,
    #[serde(flatten)]
    window: WindowConfig,
    // What nobody above wanted, to be warned about.
    #[serde(flatten)]
    #[schemars(skip)]
    unknown: Map<String, Value>,
}

struct PersistentContext {
    window: Arc<Window>,
    coordinator: Coordinator,
    // Held while a line is written and its message stored, so that both have the same order.
    file: Arc<Mutex<Transcript>>,
    // Whether the conversation came from the file; then it is the complete one.
    from_file: AtomicBool,
    // Takes out the keys that the application knows.
    hide: Option<Arc<dyn CapabilityCall>>,
}

impl PersistentContext {
    /// Writes lines and stores messages, in a thread that may wait for the disk. It is done to the end even when nobody
    /// waits for it any more: a line without its message, or the reverse, would be two truths.
    async fn write(&self, change: Change) -> Result<Vec<ToolResultClipped>, ContextError> {
        let (file, window) = (Arc::clone(&self.file), Arc::clone(&self.window));
        let lines = self.lines(&change).await?;
        let written = tokio::task::spawn_blocking(move || {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.append(lines.into_iter())?;
            match change {
                Change::Add(messages) => {
                    Ok(messages.into_iter().filter_map(|message| window.add(message)).collect())
                }
                Change::Replace(messages) => {
                    window.replace(messages);
                    Ok(Vec::new())
                }
            }
        });
        let written = written.await.map_err(|error| ContextError::Store { message: error.to_string() })?;
        written.map_err(|error: TranscriptError| ContextError::Store { message: error.chain() })
    }

    /// What is written down of a change. A message without a key is written as it came, byte for byte.
    async fn lines(&self, change: &Change) -> Result<Vec<Line>, ContextError> {
        let refused = |message: String| ContextError::Store { message };
        let (mut lines, messages) = match change {
            Change::Add(messages) => (Vec::new(), messages),
            Change::Replace(messages) => (vec![Line::cleared()], messages),
        };
        for message in messages {
            let mut line = Line::Message(Arc::clone(message));
            if let Some(hide) = &self.hide {
                let said = serde_json::to_value(message).map_err(|error| refused(error.to_string()))?;
                let hidden = hide.call(said.clone()).await.map_err(|error| refused(error.to_string()))?;
                if hidden != said {
                    line = Line::Hidden(hidden);
                }
            }
            lines.push(line);
        }
        Ok(lines)
    }

    async fn add(&self, messages: Messages) -> Result<(), ContextError> {
        for clipped in self.write(Change::Add(messages)).await? {
            self.window.tell(Some(clipped)).await;
        }
        Ok(())
    }

    /// What is offered beyond what the file holds. The journal is written first, so a process that was killed may have
    /// recorded a message that never reached the file.
    fn beyond_file(&self, offered: &Messages) -> Option<Messages> {
        let own = self.window.all();
        let mut own = own.iter().filter(|message| !memory_files::is_memory(message));
        let mut rest = offered.iter();
        for message in own.by_ref() {
            if rest.next() != Some(message) {
                return None;
            }
        }
        Some(rest.cloned().collect())
    }

    async fn tell_ignored(&self, offered: usize) {
        let path = self.file.lock().unwrap_or_else(PoisonError::into_inner).path().display().to_string();
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let (kept_messages, offered_messages) = (count(self.window.all().len()), count(offered));
        self.coordinator.emit(SetMessagesIgnored { path, kept_messages, offered_messages }).await;
    }
}

enum Change {
    Add(Messages),
    Replace(Messages),
}

#[async_trait]
impl ContextManager for PersistentContext {
    async fn add_message(&self, message: Arc<Message>) -> Result<(), ContextError> {
        self.add(vec![message]).await
    }

    async fn messages_for_request(&self, budget: RequestBudget) -> Result<Messages, ContextError> {
        self.window.for_request(budget).await
    }

    async fn messages(&self) -> Result<Messages, ContextError> {
        Ok(self.window.all())
    }

    async fn set_messages(&self, messages: Messages) -> Result<(), ContextError> {
        if !self.from_file.load(Ordering::Acquire) {
            // What a new file began with is no part of what was said and stays in front of it.
            let mut all = self.window.all();
            all.retain(|message| memory_files::is_memory(message) && !messages.contains(message));
            all.extend(messages);
            self.write(Change::Replace(all)).await?;
            return Ok(());
        }
        match self.beyond_file(&messages) {
            Some(beyond) if beyond.is_empty() => Ok(()),
            Some(beyond) => self.add(beyond).await,
            None => {
                self.tell_ignored(messages.len()).await;
                Ok(())
            }
        }
    }

    async fn clear(&self) -> Result<(), ContextError> {
        self.write(Change::Replace(Messages::new())).await?;
        // What is set after this replaces nothing that anybody wants to keep.
        self.from_file.store(false, Ordering::Release);
        Ok(())
    }
}

/// The module, as the table lists it.
pub(crate) struct Persistent;

#[async_trait]
impl Module for Persistent {
    fn id(&self) -> ModuleId {
        ID
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Context
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        warn_of_unknown(&config, cx);
        if let Some(message) = config.window.fault() {
            return Err(failed(message));
        }
        let path = path(&config, &cx.coordinator).map_err(failed)?;
        let sync = config.sync;
        let opened = tokio::task::spawn_blocking(move || Transcript::open(&path, sync)).await;
        let (file, loaded) =
            opened.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.chain()))?;
        let hide = match cx.coordinator.capability(KEYS_CAPABILITY) {
            Some(Capability::Call(hide)) => Some(hide),
            _ => None,
        };
        let most_tokens = config.window.most_tokens();
        let context = Arc::new(PersistentContext {
            window: Window::new(config.window, cx.coordinator.clone()),
            coordinator: cx.coordinator.clone(),
            file: Arc::new(Mutex::new(file)),
            from_file: AtomicBool::new(!loaded.messages.is_empty()),
            hide,
        });
        if loaded.messages.is_empty() {
            let memory = memory_files::read(&config.memory_files, most_tokens, cx).await.map_err(failed)?;
            context.add(memory).await.map_err(|error| failed(error.to_string()))?;
        }
        warn_of_repairs(&loaded, cx);
        for message in loaded.messages {
            context.window.add(message);
        }
        let file = Arc::downgrade(&context.file);
        // The lock on the file ends with the session, not with whoever still holds the context.
        cx.register_cleanup(move || async move {
            if let Some(file) = file.upgrade() {
                file.lock().unwrap_or_else(PoisonError::into_inner).close();
            }
            Ok::<(), TaskFailure>(())
        });
        cx.mount_context(context);
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for Persistent {
    fn info(&self) -> ModuleInfo {
        let info = self
            .about("As `context-simple`, with every message on disk before it counts; a resume begins there.")
            .config::<Config>();
        with_events(info)
            .emits::<SetMessagesIgnored>()
            .emits::<ContextInclude>()
            .uses(KEYS_CAPABILITY)
            .uses("session.dir")
            .uses("session.working_dir")
            .uses(TRUST)
    }
}

fn failed(message: String) -> LoadError {
    LoadError::Mount { id: ID, message }
}

/// Where the file is.
fn path(config: &Config, coordinator: &Coordinator) -> Result<PathBuf, String> {
    let working_dir = coordinator.capability_text("session.working_dir").map(PathBuf::from);
    let id = coordinator.session_id().as_str();
    if let Some(path) = &config.transcript_path {
        let path = working_dir.map_or_else(|| path.clone(), |dir| dir.join(path));
        if let Some(real) = Workspace::of(coordinator).leads_out(&path) {
            let (path, real) = (path.display(), real.display());
            return Err(format!("`{path}` leads to `{real}`, out of a directory that is not trusted"));
        }
        return match path.is_absolute() {
            true => Ok(path),
            false => Err(format!(
                "`transcript_path` is `{}`, which is relative, and the session has no working folder; give the whole path",
                path.display()
            )),
        };
    }
    if let Some(dir) = coordinator.capability_text("session.dir").map(PathBuf::from) {
        // A child may be shown its parent's folder; two conversations must not share a file.
        let own = dir.file_name().is_some_and(|name| name == id);
        return Ok(if own { dir.join(FILE) } else { dir.join(id).join(FILE) });
    }
    let dir =
        working_dir.ok_or("the session has no folder to keep the conversation in; set `transcript_path`")?;
    Ok(dir.join(".amplifier/sessions").join(id).join(FILE))
}

// The kernel's own check does not see through a flattened part.
fn warn_of_unknown(config: &Config, cx: &MountCx) {
    let schema = schema_for!(Config).to_value();
    let keys = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let known: Vec<_> = keys.map(|(key, _)| key.clone()).collect();
    for key in config.unknown.keys() {
        let near = near_misses(key, &known);
        let meant =
            if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) };
        cx.warn(format!("unknown config key `{key}` is ignored{meant}"));
    }
    if config.truncate_boundary.is_some() {
        cx.warn("`truncate_boundary` has no effect; `truncate_chars` says how much of a text stays");
    }
}

fn warn_of_repairs(loaded: &Loaded, cx: &MountCx) {
    if let Some(torn) = &loaded.torn {
        cx.warn(format!(
            "the last line of the conversation's file was torn; its {} bytes are in `{}`",
            torn.bytes,
            torn.saved.display()
        ));
    }
    for line in &loaded.unreadable {
        cx.warn(format!("line {line} of the conversation's file cannot be read and is passed over"));
    }
}
