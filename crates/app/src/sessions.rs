//! What people do with sessions beside talking in them: find, list, fork, rewind, export, search, rename, delete.
//!
//! Everything here reads the journal, adds records to it, or makes and removes whole folders; nothing is changed in place.
//! Opening a session is `open.rs`'s business; the folders and their views are `store.rs`'s.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use amplifier_core::contracts::ContextError;
use amplifier_core::journal::JournalError;
use amplifier_protocol::ids::{NameError, SessionId};

use crate::backups::BackupsError;
use crate::files::{FileError, NO_ROOM, READ};
use crate::journal::{JournalFileError, LeaseError, Owner};
use crate::open::NOT_WRITABLE;
use crate::paths::SessionFolder;
use crate::spelling;
use crate::store::StoreError;

mod describe;
pub mod drift;
pub mod export;
mod find;
mod fork;
pub(crate) mod index;
mod kept;
mod list;
pub(crate) mod mark;
mod place;
mod reading;
pub mod recent;
mod remove;
pub(crate) mod rescue;
mod rewind;
mod salvage;
pub mod search;
pub mod story;
mod turns;

pub use describe::{MAX_NAME_CHARS, Renamed, checked_name, rename};
pub use find::resolve;
pub use fork::{ForkRequest, Forked, fork};
pub use list::{Children, Listed, Listing, Scope, Tree, Unread, list, look, look_around, tree};
pub use mark::{DamagedPlace, damaged_json, note as note_damaged};
pub use place::Place;
pub use reading::{Damaged, join as join_damaged};
pub use remove::{Old, Removal, copies_of, delete, delete_each, families, older_than, size_of, sweep};
pub use rewind::{Copies, FilesBack, Rewound, copies, files_back, rewind};
pub use salvage::{Salvaged, salvage};
pub(crate) use turns::Cut;
pub use turns::{Tally, Turn, last_turns, tally, turns, turns_around};

/// What helps whoever named a session that is not there.
const EVERY_SESSION: &str =
    "`amplifier session list --all` shows the last used sessions of this home, `--limit N` more of them";

/// Why something could not be done with a session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// No id begins like this.
    #[error("no session begins with `{text}`")]
    Unknown {
        /// What was asked for.
        text: String,
        /// The ids that come closest.
        near: Vec<SessionId>,
    },
    /// Several ids begin like this.
    #[error("{} sessions begin with `{text}`", candidates.len())]
    Ambiguous {
        /// What was asked for.
        text: String,
        /// The sessions, newest first.
        candidates: Vec<SessionId>,
    },
    /// The text can be no id.
    #[error(transparent)]
    Id(#[from] NameError),
    /// No session was started there.
    #[error("no session was started in {place}")]
    NoneHere {
        /// Where.
        place: Place,
    },
    /// The session has no such turn.
    #[error("session `{id}` has no turn {turn}; its last one is {last}")]
    NoTurn {
        /// The session.
        id: SessionId,
        /// What was asked for.
        turn: u64,
        /// The last there is.
        last: u64,
    },
    /// The text can be no name of a session.
    #[error("`{name}` is no name for a session: {reason}")]
    Name {
        /// The text.
        name: String,
        /// Why.
        reason: &'static str,
    },
    /// Nobody kept copies of files.
    #[error("no copies of files were kept for session `{id}`")]
    NoCopies {
        /// The session.
        id: SessionId,
    },
    /// The copies of files cannot be read.
    #[error(transparent)]
    Backups(#[from] BackupsError),
    /// Somebody else has the session.
    #[error("session `{id}` is in use by {owner}")]
    InUse {
        /// The session.
        id: SessionId,
        /// Who.
        owner: Owner,
    },
    /// The journal of the session is not there.
    #[error("there is no journal in `{}`", journal.display())]
    NoJournal {
        /// The session.
        id: SessionId,
        /// Where it should be.
        journal: PathBuf,
    },
    /// Its journal holds nothing: somebody has just begun it, or was killed before the first word.
    #[error("nothing was said in session `{id}`")]
    Empty {
        /// The session.
        id: SessionId,
    },
    /// What an export is written to refused.
    #[error("the export could not be written")]
    Write(#[source] std::io::Error),
    /// The context of an open session refused.
    #[error(transparent)]
    Context(#[from] ContextError),
    #[error(transparent)]
    Record(#[from] JournalError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Journal(#[from] JournalFileError),
    #[error(transparent)]
    File(#[from] FileError),
}

impl SessionError {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<String> {
        let cure = match self {
            Self::File(error) => rescue::cure_of_file(error),
            Self::Backups(error) => error.hint().map(str::to_owned),
            Self::Store(error) => rescue::cure_of_store(error),
            Self::Journal(error) => rescue::cure(error),
            Self::Write(error) if error.kind() == std::io::ErrorKind::StorageFull => Some(NO_ROOM.to_owned()),
            _ => None,
        };
        cure.or_else(|| self.advice())
    }

    fn advice(&self) -> Option<String> {
        Some(match self {
            Self::Unknown { near, .. } if near.is_empty() => EVERY_SESSION.to_owned(),
            Self::Unknown { near, .. } => format!("the nearest are {}", quoted(near)),
            Self::Ambiguous { .. } => "give more of the id".to_owned(),
            Self::Id(_) => {
                "`amplifier session list` shows the ids; the beginning of one is enough".to_owned()
            }
            Self::NoneHere { .. } => "`amplifier session list --all` shows those of other folders".to_owned(),
            Self::NoTurn { id, .. } => format!("`amplifier session show {id}` lists its turns"),
            Self::Empty { .. } => {
                "there is nothing to show or to go on with; `amplifier session cleanup` removes \
                 what was left so"
                    .to_owned()
            }
            // A folder of sessions may hold a file that somebody put there; it is not ours to delete.
            Self::NoJournal { journal, .. } if journal.parent().is_some_and(Path::is_file) => {
                let file = journal.parent().unwrap_or(journal);
                format!("it is a file and no session: `rm {}` removes it", spelling::quoted(file))
            }
            Self::NoJournal { id, .. } => {
                format!("put a copy of it back, or `amplifier session delete {id}` removes what is left")
            }
            Self::InUse { .. } => "end it there first; it can still be listed, shown and exported".to_owned(),
            Self::NoCopies { .. } => {
                "without `--files` the conversation goes back and files stay as they are; in a plan, `hooks-backup` keeps copies"
                    .to_owned()
            }
            Self::Name { .. } => "a name is one line of text, at most 80 characters".to_owned(),
            Self::Store(StoreError::NotFound { .. }) => EVERY_SESSION.to_owned(),
            Self::File(_)
            | Self::Store(StoreError::File(_))
            | Self::Journal(JournalFileError::File(_) | JournalFileError::Lease(LeaseError::File(_))) => {
                NOT_WRITABLE.to_owned()
            }
            _ => return None,
        })
    }

    /// Whether it was asked in a wrong way, and nothing is wrong with the session.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Unknown { .. }
                | Self::Ambiguous { .. }
                | Self::Id(_)
                | Self::NoneHere { .. }
                | Self::NoTurn { .. }
                | Self::NoCopies { .. }
                | Self::Name { .. }
        )
    }

    /// Names the session of a lease that somebody else has.
    pub(crate) fn about(id: &SessionId) -> impl FnOnce(JournalFileError) -> Self {
        let id = id.clone();
        move |error| match error {
            JournalFileError::Lease(LeaseError::Held { owner: Some(owner), .. }) => Self::InUse { id, owner },
            error => error.into(),
        }
    }
}

/// Whether there is a journal. Of a folder that may not be entered nobody can tell.
fn has_journal(folder: &SessionFolder) -> Result<bool, FileError> {
    let path = folder.events();
    match path.try_exists() {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(FileError::at(READ, &path)(error)),
        found => Ok(found.unwrap_or(false)),
    }
}

fn quoted(ids: &[SessionId]) -> String {
    let quoted: Vec<_> = ids.iter().map(|id| format!("`{id}`")).collect();
    quoted.join(", ")
}
