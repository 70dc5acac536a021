//! What is kept of a session in its folder besides its journal: its plan, what its prompt is made from, and what exactly its
//! sources are. Nothing is mounted here.

use std::fs::File;
use std::io;
use std::sync::Arc;

use amplifier_protocol::event::OriginKind;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_sources::lock::BundleLock;

use super::AppError;
use crate::files::{Durability, FileError, write_atomic};
use crate::journal::{FileJournal, Opened, Owner};
use crate::paths::SessionFolder;
use crate::prompt::{PromptError, PromptParts};
use crate::sessions::mark;
use crate::store::{SessionStore, StoreError, check_journal, discard};
use crate::trust::Request;

/// What is kept of a session in its folder.
pub(super) struct Kept {
    pub(super) id: SessionId,
    pub(super) plan: MountPlan,
    pub(super) folder: SessionFolder,
    pub(super) parts: PromptParts,
    pub(super) lock: Option<Arc<BundleLock>>,
    /// What it needs the user's consent for; `None` leaves what is kept.
    pub(super) request: Option<Request>,
    pub(super) is_new: bool,
}

impl Kept {
    pub(super) fn create(
        store: &SessionStore,
        id: SessionId,
        plan: MountPlan,
        parts: Option<PromptParts>,
    ) -> Result<Self, AppError> {
        let folder = store.create(&id, &plan)?;
        if let Some(parts) = &parts {
            parts.write(&folder, Durability::Rebuildable).inspect_err(|_| discard(&folder))?;
        }
        let parts = parts.unwrap_or_default();
        Ok(Self { id, plan, folder, parts, lock: None, request: None, is_new: true })
    }

    /// Takes the session's lease and opens its journal for writing. A new session that cannot be had leaves nothing behind.
    pub(super) fn take(&self, owner: Owner) -> Result<(FileJournal, Opened), AppError> {
        let taken = self.taken(owner);
        if taken.is_err() && self.is_new {
            discard(&self.folder);
        }
        taken
    }

    fn taken(&self, owner: Owner) -> Result<(FileJournal, Opened), AppError> {
        if !self.is_new {
            // Before a torn end is cut: what is wrong is left as it was found.
            check_journal(&self.folder).inspect_err(|error| mark::refused(&self.folder, error))?;
            // The views may be whole where the journal is known not to be: then they are the last copy.
            mark::review(&self.folder)?;
        }
        let taken = FileJournal::open(&self.folder, owner)?;
        self.write_lock()?;
        if let Some(request) = &self.request {
            request.keep(&self.folder).map_err(StoreError::from)?;
        }
        Ok(taken)
    }

    /// Waits until what a new session was created with is durable.
    pub(super) async fn settle(folder: SessionFolder) -> Result<(), AppError> {
        let settle = move || {
            [folder.mount_plan(), folder.prompt()].into_iter().try_for_each(|path| {
                match File::open(&path).and_then(|file| file.sync_all()) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        Err(FileError::at("sync", &path)(error))
                    }
                    _ => Ok(()),
                }
            })
        };
        let settled = tokio::task::spawn_blocking(settle).await;
        let settled = settled.map_err(|error| AppError::CutOff { message: error.to_string() })?;
        Ok(settled.map_err(StoreError::from)?)
    }

    /// A session that exists; another plan or prompt takes the place of the old one once its lease is taken.
    pub(super) fn find(
        store: &SessionStore,
        id: SessionId,
        plan: Option<MountPlan>,
        parts: Option<PromptParts>,
    ) -> Result<Self, AppError> {
        let folder = store.open(&id)?;
        let plan = plan.map_or_else(|| store.plan(&folder), Ok)?;
        let parts = match parts {
            Some(parts) => parts,
            None => kept_parts(store, &id, &folder)?,
        };
        Ok(Self { id, plan, folder, parts, lock: None, request: None, is_new: false })
    }

    /// With the lock that the session was opened with, if there was one.
    pub(super) fn under_its_lock(self) -> Result<Self, AppError> {
        let path = self.folder.lock();
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(self),
            text => text.map_err(FileError::at("read", &path)).map_err(StoreError::from)?,
        };
        let lock = BundleLock::parse(&text).map_err(|source| AppError::Lock { path, source })?;
        Ok(Self { lock: Some(Arc::new(lock)), ..self })
    }

    /// Keeps the lock with the session; an old one that no longer holds goes.
    pub(super) fn write_lock(&self) -> Result<(), AppError> {
        let path = self.folder.lock();
        let Some(lock) = &self.lock else {
            return match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(StoreError::from(FileError::at("remove", &path)(error)).into())
                }
                _ => Ok(()),
            };
        };
        let text = lock.to_text().map_err(|source| AppError::Lock { path: path.clone(), source })?;
        Ok(write_atomic(&path, text.as_bytes(), Durability::Synced).map_err(StoreError::from)?)
    }
}

/// What the prompt of a session is made from. Only one that came from a plan file need not have any.
fn kept_parts(
    store: &SessionStore,
    id: &SessionId,
    folder: &SessionFolder,
) -> Result<PromptParts, PromptError> {
    if let Some(parts) = PromptParts::read(folder)? {
        return Ok(parts);
    }
    // Metadata that cannot be read is made again from the journal, and told where that cannot be.
    let origin = store.metadata(id).ok().and_then(|about| about.bundle);
    match origin.is_some_and(|origin| origin.kind != OriginKind::Plan) {
        true => Err(PromptError::Missing { path: folder.prompt() }),
        false => Ok(PromptParts::default()),
    }
}
