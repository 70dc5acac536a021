//! Where changes to files are planned and carried out. A plan says what every file was and shall be; nothing is written
//! before the whole plan stands, and a plan that fails half-way is taken back.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_core::contracts::ToolFailure;
use amplifier_core::coordinator::Coordinator;
use amplifier_protocol::event::ArtifactWrite;
use serde_json::Value;
use tokio::sync::Mutex;

use super::approval::Approvals;
use super::commit::commit;
use super::neighbours;
use super::stamps::{Hash, Seen, Stamp, Stamps, hash};
use crate::files::blocking;
use crate::files::paths::{Asked, Purpose, Reach};
use crate::files::place::{Folders, Place};

/// What all tools of a session that change files share.
pub(super) struct Desk {
    pub(super) reach: Reach,
    pub(super) stamps: Arc<Stamps>,
    pub(super) coordinator: Coordinator,
    /// The largest file that is edited or written.
    pub(super) max_file_bytes: u64,
    pub(super) overwriting: Overwriting,
    /// What a person was asked; `None` when nobody needs to be.
    pub(super) approvals: Option<Approvals>,
    pub(super) telling: Telling,
    /// Calls run side by side; two edits of one file must not lose each other.
    pub(super) writing: Mutex<()>,
}

/// Who is told of changes beside those who listen to events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    Nobody,
    /// `tool-filesystem`, which is another module here.
    Filesystem,
}

/// What must be known of a file before it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overwriting {
    /// It must have been read, and not have changed since.
    NeedsReading,
    /// Nothing.
    Free,
}

/// How much a change says about what it expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knowledge {
    /// It quotes the file.
    Quoted,
    /// It says nothing.
    Blind,
}

/// A file as it is.
pub(super) struct Current {
    pub(super) asked: Asked,
    pub(super) real: PathBuf,
    pub(super) before: Before,
}

/// What is at a path.
pub(super) enum Before {
    Absent,
    File {
        bytes: Vec<u8>,
        stamp: Stamp,
    },
    /// A file with more in it than we take into memory.
    Large {
        stamp: Stamp,
    },
    Folder,
    /// A pipe, a device, a socket.
    Special,
}

/// What shall be at a path.
pub(super) enum After {
    Bytes(Vec<u8>),
    Gone,
}

pub(super) struct Change {
    pub(super) current: Current,
    pub(super) after: After,
}

/// What a call would do.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) changes: Vec<Change>,
    /// What the model is told when it is done.
    pub(super) answer: Value,
    /// What a patch does to each file, told as events of their own.
    pub(super) applied: Vec<Patched>,
}

/// What a patch does to one file.
pub(super) struct Patched {
    pub(super) path: String,
    pub(super) operation: &'static str,
    pub(super) diff: String,
}

impl Current {
    fn load(asked: Asked, most: u64) -> Result<Self, ToolFailure> {
        let real = asked.confine()?;
        let before = Before::look(&real, most).map_err(|error| asked.unreadable(&error))?;
        Ok(Self { asked, real, before })
    }

    /// The text of the file, for tools that need one to be there.
    pub(super) fn text(&self) -> Result<&str, ToolFailure> {
        let text = &self.asked.text;
        match &self.before {
            Before::File { bytes, .. } => match std::str::from_utf8(bytes) {
                Ok(found) if !found.contains('\0') => Ok(found),
                _ => Err(self.asked.no_text()),
            },
            Before::Absent => Err(ToolFailure::new(format!("File not found: {text}")).of_kind("NotFound")),
            Before::Large { .. } => {
                let message = format!("{text} is too large to edit here; use another tool for it");
                Err(ToolFailure::new(message).of_kind("TooLarge"))
            }
            Before::Folder => {
                let message = format!("{text} is a directory; name a file in it");
                Err(ToolFailure::new(message).of_kind("IsADirectory"))
            }
            Before::Special => {
                let message = format!("Cannot read file: {text} (not a regular file)");
                Err(ToolFailure::new(message).of_kind("NotAFile"))
            }
        }
    }

    /// The path as answers and events show it.
    pub(super) fn shown(&self) -> String {
        self.asked.shown.display().to_string()
    }
}

impl Before {
    pub(super) fn look(real: &std::path::Path, most: u64) -> std::io::Result<Self> {
        let place = match Place::reach(real, Folders::Expected) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::Absent),
            Err(error) if error.kind() == std::io::ErrorKind::IsADirectory => return Ok(Self::Folder),
            place => place?,
        };
        let Some(about) = place.about()? else { return Ok(Self::Absent) };
        if about.is_dir() {
            return Ok(Self::Folder);
        }
        if !about.is_file() {
            return Ok(Self::Special);
        }
        match place.read(most) {
            Ok(bytes) => {
                let stamp = Stamp::new(&place.open()?.metadata()?, Some(hash(&bytes)));
                Ok(Self::File { bytes, stamp })
            }
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
                Ok(Self::Large { stamp: Stamp::new(&place.open()?.metadata()?, None) })
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn stamp(&self) -> Option<&Stamp> {
        match self {
            Self::File { stamp, .. } | Self::Large { stamp } => Some(stamp),
            Self::Absent | Self::Folder | Self::Special => None,
        }
    }
}

impl Desk {
    /// The file at a path the model wrote, as something to change.
    pub(super) async fn current(&self, text: &str) -> Result<Current, ToolFailure> {
        let asked = self.reach.ask(text, Purpose::Write).await?;
        let most = self.max_file_bytes;
        blocking(move || Current::load(asked, most)).await
    }

    /// Refuses a change of a file that is not as it was seen.
    pub(super) fn check_seen(&self, current: &Current, knowledge: Knowledge) -> Result<(), ToolFailure> {
        let Some(stamp) = current.before.stamp() else { return Ok(()) };
        if self.overwriting == Overwriting::Free {
            return Ok(());
        }
        let text = &current.asked.text;
        match (self.stamps.compare(&current.real, stamp), knowledge) {
            (Seen::Same, _) | (Seen::Never, Knowledge::Quoted) => Ok(()),
            (Seen::Never, Knowledge::Blind) => {
                let message =
                    format!("{text} exists and was not read in this session; read it with read_file first");
                Err(ToolFailure::new(message).of_kind("NotRead"))
            }
            (Seen::Changed, _) => {
                let message = format!(
                    "{text} has changed since it was read; read it again with read_file, then repeat the change"
                );
                Err(ToolFailure::new(message).of_kind("Stale"))
            }
        }
    }

    /// Refuses what is larger than we write.
    pub(super) fn check_size(&self, bytes: usize) -> Result<(), ToolFailure> {
        if u64::try_from(bytes).unwrap_or(u64::MAX) <= self.max_file_bytes {
            return Ok(());
        }
        let message = format!(
            "{bytes} bytes are more than the {} a file may have here; write less",
            self.max_file_bytes
        );
        Err(ToolFailure::new(message).of_kind("TooLarge"))
    }

    /// Makes the changes of a plan, remembers them as seen and tells of them.
    pub(super) async fn carry_out(&self, plan: Plan, call_id: &str) -> Result<Value, ToolFailure> {
        let Plan { changes, answer, applied } = plan;
        let (stamps, events) = (Arc::clone(&self.stamps), written(&changes));
        let files: Vec<_> = changes.iter().map(|change| change.current.real.clone()).collect();
        blocking(move || {
            for (real, stamp) in commit(changes)? {
                match stamp {
                    Some(stamp) => stamps.note(real, stamp),
                    None => stamps.forget(&real),
                }
            }
            Ok(())
        })
        .await?;
        if self.telling == Telling::Filesystem {
            neighbours::tell(files, &self.coordinator).await;
        }
        for event in events {
            self.coordinator.emit(event).await;
        }
        for Patched { path, operation, diff } in applied {
            let (operation, tool_call_id) = (operation.to_owned(), Some(call_id.to_owned()));
            self.coordinator.emit(super::apply_patch::Applied { path, operation, diff, tool_call_id }).await;
        }
        Ok(answer)
    }
}

impl Plan {
    /// What the plan does, in short: two plans with the same mark do the same to the same.
    pub(super) fn mark(&self) -> Hash {
        let mut marked = Vec::new();
        for Change { current, after } in &self.changes {
            marked.extend(hash(current.real.as_os_str().as_encoded_bytes()));
            marked.extend(match &current.before {
                Before::File { bytes, .. } => hash(bytes),
                Before::Large { stamp } => hash(format!("{stamp:?}").as_bytes()),
                Before::Absent | Before::Folder | Before::Special => [0; 32],
            });
            marked.extend(match after {
                After::Bytes(bytes) => hash(bytes),
                After::Gone => [0; 32],
            });
        }
        hash(&marked)
    }
}

fn written(changes: &[Change]) -> Vec<ArtifactWrite> {
    let of = |change: &Change| match &change.after {
        After::Bytes(bytes) => Some(ArtifactWrite {
            path: change.current.shown(),
            bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        }),
        After::Gone => None,
    };
    changes.iter().filter_map(of).collect()
}
