//! The sessions of a home: making and finding their folders, and the views of their journals.
//!
//! The journal is the truth. `metadata.json` and `transcript.jsonl` are made from it and can be made again. This file
//! opens no session and holds no lease; that is `open.rs`'s business. Lists are in `sessions`.

mod fold;
mod history;
mod metadata;
mod transcript;
mod views;

use std::path::PathBuf;

use amplifier_protocol::ids::SessionId;
use amplifier_protocol::mount_plan::{MountPlan, PlanError, PlanForm};

pub(crate) use history::transcript_of;
pub use history::{ReadHistory, ViewsUse, read_history};
#[cfg(test)]
pub(crate) use metadata::PROGRESS_VERSION;
pub use metadata::{Metadata, Progress, TITLE_CHARS};
pub use views::{Views, are_damaged, check_journal, metadata_now, metadata_of, rebuild_views, update_views};
pub(crate) use views::{take_in, update_views_to, updated};

use crate::files::{Durability, FileError, create_private_dir, write_atomic};
use crate::journal::JournalFileError;
use crate::paths::{Home, SessionFolder};
use crate::sessions::mark;

/// The most that is set aside for the names of sessions before they are read.
const MOST_ROOM: u64 = 4 * 1024 * 1024;

/// The sessions of one home.
#[derive(Debug, Clone)]
pub struct SessionStore {
    home: Home,
}

/// Why a session could not be made, found or shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no session of this id.
    #[error("session `{id}` not found in `{}`", sessions.display())]
    NotFound { id: SessionId, sessions: PathBuf },
    /// The id is taken.
    #[error("session `{id}` exists already")]
    Exists { id: SessionId },
    /// Its journal holds nothing.
    #[error("nothing was written down in `{}`", journal.display())]
    Empty { journal: PathBuf },
    /// Its journal has lost records. The views were made of them and may be the last copy, so they are left as they are.
    #[error("`{}` {}, and {}: records were lost", journal.display(), ending(*ends), knowing(*known))]
    Behind {
        journal: PathBuf,
        /// The last record there is; nothing when there is no file.
        ends: Option<u64>,
        /// The last record that the views know, where they tell.
        known: Option<u64>,
    },
    /// A file of the session is not what it should be.
    #[error("`{}` is not readable", path.display())]
    Json {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    /// The session's plan is no mount plan.
    #[error("`{}` is no mount plan", path.display())]
    Plan {
        path: PathBuf,
        #[source]
        source: PlanError,
    },
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Journal(#[from] JournalFileError),
}

fn ending(ends: Option<u64>) -> String {
    match ends {
        None => "is not there".to_owned(),
        Some(0) => "holds no record".to_owned(),
        Some(ends) => format!("ends at record {ends}"),
    }
}

fn knowing(known: Option<u64>) -> String {
    match known {
        Some(known) => format!("the views that were made from it know {known}"),
        None => "there is a transcript that was made from it".to_owned(),
    }
}

impl SessionStore {
    pub fn new(home: Home) -> Self {
        Self { home }
    }

    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Makes the folder of a new session and keeps its plan there, references to secrets unexpanded.
    pub fn create(&self, id: &SessionId, plan: &MountPlan) -> Result<SessionFolder, StoreError> {
        let folder = self.home.session(id);
        create_private_dir(&self.home.sessions())?;
        match std::fs::create_dir(folder.dir()) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(StoreError::Exists { id: id.clone() });
            }
            Err(error) => return Err(FileError::at("create folder", folder.dir())(error).into()),
        }
        match self.begin(&folder, plan) {
            Ok(()) => Ok(folder),
            Err(error) => {
                discard(&folder);
                Err(error)
            }
        }
    }

    fn begin(&self, folder: &SessionFolder, plan: &MountPlan) -> Result<(), StoreError> {
        #[cfg(unix)]
        {
            let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            std::fs::set_permissions(folder.dir(), private)
                .map_err(FileError::at("set the mode of", folder.dir()))?;
        }
        // Whoever opens it makes the content durable, and the first sync of its journal the names; before it there is
        // nothing to lose.
        self.put_plan(folder, plan, Durability::Rebuildable)
    }

    /// The folder of a session that exists.
    pub fn open(&self, id: &SessionId) -> Result<SessionFolder, StoreError> {
        let folder = self.home.session(id);
        match folder.dir().is_dir() {
            true => Ok(folder),
            false => Err(StoreError::NotFound { id: id.clone(), sessions: self.home.sessions() }),
        }
    }

    /// The folder of a session whose journal has all that its views were made of.
    pub fn open_whole(&self, id: &SessionId) -> Result<SessionFolder, StoreError> {
        let folder = self.open(id)?;
        check_journal(&folder).inspect_err(|error| mark::refused(&folder, error))?;
        Ok(folder)
    }

    /// Replaces the plan of a session.
    pub fn write_plan(&self, folder: &SessionFolder, plan: &MountPlan) -> Result<(), StoreError> {
        self.put_plan(folder, plan, Durability::Synced)
    }

    fn put_plan(
        &self,
        folder: &SessionFolder,
        plan: &MountPlan,
        durability: Durability,
    ) -> Result<(), StoreError> {
        let path = folder.mount_plan();
        let text = pretty(&plan.write(PlanForm::Nested))
            .map_err(|source| StoreError::Json { path: path.clone(), source })?;
        Ok(write_atomic(&path, &text, durability)?)
    }

    /// The plan a session was opened with.
    pub fn plan(&self, folder: &SessionFolder) -> Result<MountPlan, StoreError> {
        let path = folder.mount_plan();
        let bytes = std::fs::read(&path).map_err(FileError::at("read", &path))?;
        let value = serde_json::from_slice(&bytes)
            .map_err(|source| StoreError::Json { path: path.clone(), source })?;
        MountPlan::read(&value).map_err(|source| StoreError::Plan { path, source })
    }

    /// The ids of all sessions, newest first where ids are ours, without reading any.
    pub fn ids(&self) -> Result<Vec<SessionId>, StoreError> {
        // Names that are no ids were not made by us: editors and file managers leave such files.
        let mut ids: Vec<SessionId> = self.names()?.split('/').filter_map(|name| name.parse().ok()).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Ok(ids)
    }

    /// What the folder of sessions holds, in no order, each name ended by a `/`: ids, and whatever others put there. One
    /// text, since there may be tens of thousands.
    pub(crate) fn names(&self) -> Result<String, StoreError> {
        let path = self.home.sessions();
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(FileError::at("list", &path)(error).into()),
        };
        // About as long as the folder's own file, on systems that say so.
        let room = std::fs::metadata(&path).map_or(0, |metadata| metadata.len().min(MOST_ROOM));
        let mut names = String::with_capacity(usize::try_from(room).unwrap_or(0));
        for entry in entries {
            let name = entry.map_err(FileError::at("list", &path))?.file_name();
            for part in name.to_str().into_iter().flat_map(|name| [name, "/"]) {
                names.push_str(part);
            }
        }
        Ok(names)
    }

    /// What lists show of one session, from its metadata alone.
    pub fn metadata(&self, id: &SessionId) -> Result<Metadata, StoreError> {
        metadata::read(&self.home.session(id))
    }
}

/// What a session was when its views were last brought up to date; nothing where that cannot be read.
pub(crate) fn known_of(folder: &SessionFolder) -> Option<Metadata> {
    metadata::read(folder).ok()
}

/// Removes the folder of a session that did not come to be: one that stays would only be in the way of the real ones.
pub(crate) fn discard(folder: &SessionFolder) {
    // Why it did not come to be is the error worth telling; what stays is swept up by the next cleanup.
    std::fs::remove_dir_all(folder.dir()).ok();
}

/// JSON that people read and diff.
fn pretty(value: &impl serde::Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(text)
}
