//! `metadata.json`: what lists show of a session, and how far the views have come. A view; the journal is the truth.

use std::path::PathBuf;

use amplifier_protocol::event::{ForkPoint, SessionOrigin};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::run::RunUsage;
use amplifier_protocol::spend::Amounts;
use amplifier_protocol::status::SessionState;
use amplifier_protocol::time::Timestamp;
use amplifier_protocol::usage::Usd;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::StoreError;
use crate::files::{Durability, FileError, write_atomic};
use crate::paths::SessionFolder;

/// The longest title, in characters.
pub const TITLE_CHARS: usize = 80;

/// What lists show of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    pub session_id: SessionId,
    pub parent_id: Option<SessionId>,
    /// The time of the first record.
    pub created: Timestamp,
    /// The time of the last one.
    pub updated: Timestamp,
    pub turns: u64,
    /// The beginning of the first prompt.
    pub title: Option<String>,
    /// What the person calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The folder it was started in. Sessions of old do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<PathBuf>,
    /// What it was started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<SessionOrigin>,
    /// The model that answered last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Where it branched off another session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkPoint>,
    /// The hash of the plan it was last opened with.
    pub plan_hash: String,
    pub status: SessionState,
    /// How far this file and the transcript have come.
    pub views: Progress,
}

impl Metadata {
    /// What people know it by: its name, else how it began.
    pub fn label(&self) -> &str {
        self.name.as_deref().or(self.title.as_deref()).unwrap_or("(nothing was said)")
    }
}

impl Metadata {
    /// Whether it was made as this version of the program makes it.
    pub(crate) fn is_current(&self) -> bool {
        self.views.version == PROGRESS_VERSION
    }

    /// What it cost; nothing when nobody told a price.
    pub fn cost(&self) -> Option<Usd> {
        let nanos = self.views.spent.cost_nanos;
        (nanos > 0).then(|| Usd::from_nanos(nanos))
    }

    /// Tokens of every model call, those of agents among them, whichever process made it.
    pub fn usage(&self) -> RunUsage {
        RunUsage::of(&self.views.spent)
    }

    /// What programs are told of it: all of it but how far the files have come, and what was used.
    pub fn told(&self) -> Value {
        let mut told = serde_json::to_value(self).unwrap_or_default();
        if let Value::Object(told) = &mut told {
            told.shift_remove("views");
            told.insert("usage".to_owned(), json!(self.usage()));
            told.insert("cost_usd".to_owned(), json!(self.cost()));
        }
        told
    }
}

/// The version of [`Progress`]. What an older one says is made again.
pub(crate) const PROGRESS_VERSION: u32 = 3;

/// The oldest version with transcripts as they are now; what changed since is what is counted beside them.
pub(super) const TRANSCRIPT_VERSION: u32 = 2;

/// How far the views of a journal have come, and what is needed to go on from there without reading what was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    pub version: u32,
    /// The last record they hold.
    pub seq: u64,
    /// The length of the transcript then. What is longer was written by an update that did not end.
    pub transcript_bytes: u64,
    /// The CRC-32 of the transcript then.
    pub transcript_crc: u32,
    /// Whether a message of the transcript is spelled in another way than in the journal.
    pub respelled: bool,
    /// What was spent up to that record.
    pub spent: Amounts,
    /// The record of the model's last message; calls after it may be open.
    pub last_word: u64,
    /// Whether nobody went back in the conversation or cleared it: every turn is part of it then. Views of old do not tell.
    pub straight: bool,
}

pub(super) fn read(folder: &SessionFolder) -> Result<Metadata, StoreError> {
    let path = folder.metadata();
    let bytes = std::fs::read(&path).map_err(FileError::at("read", &path))?;
    serde_json::from_slice(&bytes).map_err(|source| StoreError::Json { path, source })
}

/// Replaces the file.
pub(super) fn write(
    folder: &SessionFolder,
    metadata: &Metadata,
    durability: Durability,
) -> Result<(), StoreError> {
    let path = folder.metadata();
    let text = super::pretty(metadata).map_err(|source| StoreError::Json { path: path.clone(), source })?;
    Ok(write_atomic(&path, &text, durability)?)
}

/// Says that the transcript no longer is what the count of its bytes was made for. Durable before the transcript
/// changes, else an update after a crash could add to the wrong text.
pub(super) fn forget_progress(folder: &SessionFolder) -> Result<(), StoreError> {
    match read(folder) {
        Ok(metadata) if metadata.views != Progress::default() => {
            write(folder, &Metadata { views: Progress::default(), ..metadata }, Durability::Synced)
        }
        // Metadata that cannot be read is not believed later either.
        _ => Ok(()),
    }
}
