//! Going back to the end of an earlier turn. The journal gets a record that says so and one that replaces the conversation;
//! nothing is deleted, so one can go forward again, or fork from any turn. Files are another matter: `hooks-backup` may have
//! copies of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use amplifier_protocol::event::SessionRewound;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};
use amplifier_protocol::record::RecordBody;
use serde_json::Value;

use super::describe::{event, own, refresh, write};
use super::turns::{Cut, messages_at, turns};
use super::{SessionError, Turn};
use crate::backups::{self, BackupsError, Entry, PutBack, Standing};
use crate::journal::Repair;
use crate::open::OpenSession;
use crate::paths::SessionFolder;
use crate::store::SessionStore;

/// The module that keeps copies of files.
const KEEPER: &str = "hooks-backup";

/// What going back did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewound {
    /// The turn that is now the last one of the conversation.
    pub to: u64,
    /// The turn it was before; going to it undoes this.
    pub from: u64,
    /// How many messages the conversation has now.
    pub messages: usize,
    /// Whether it went back, and not forward or aside to a turn that did not count any more.
    pub back: bool,
    /// Why the views do not show it yet. The journal has it, and they are made again from it.
    pub stale: Option<String>,
    /// The torn end of the journal that was cut first.
    pub repair: Option<Repair>,
}

/// Takes the conversation of a session that nobody has back to the end of a turn.
pub fn rewind(store: &SessionStore, id: &SessionId, to: u64) -> Result<Rewound, SessionError> {
    let folder = store.open_whole(id)?;
    let (journal, repair) = own(&folder, id, "amplifier session rewind")?;
    let known = turns(&folder)?;
    let messages = messages_at(&folder, Cut::at(&folder, id, to)?)?;
    let rewound = told(&known, to, messages.len());
    let end = Cut::at_end(&folder, id)?;
    write(&journal, end, &[event(&SessionRewound { to }), RecordBody::Messages(messages)])?;
    let stale = refresh(store, &folder)?.stale;
    Ok(Rewound { stale, repair, ..rewound })
}

impl OpenSession {
    /// Takes the conversation of this open session back to the end of a turn. Call it between turns.
    pub async fn rewind(&self, to: u64) -> Result<Rewound, SessionError> {
        let (coordinator, id) = (self.session.coordinator(), self.session.id().clone());
        coordinator.sync_journal().await?;
        let folder = self.folder.clone();
        let read = move || read_back(&folder, &id, to);
        let gone =
            || SessionError::NoJournal { id: self.session.id().clone(), journal: self.folder.events() };
        // Only a runtime that is going down, and the session with it, gives no answer.
        let (known, messages) = tokio::task::spawn_blocking(read).await.map_err(|_| gone())??;
        let rewound = told(&known, to, messages.len());
        let context = coordinator.context().ok_or_else(gone)?;
        coordinator.emit(SessionRewound { to }).await;
        context.set_messages(messages).await?;
        coordinator.sync_journal().await?;
        Ok(rewound)
    }
}

fn read_back(
    folder: &SessionFolder,
    id: &SessionId,
    to: u64,
) -> Result<(Vec<Turn>, amplifier_protocol::message::Messages), SessionError> {
    Ok((turns(folder)?, messages_at(folder, Cut::at(folder, id, to)?)?))
}

fn told(turns: &[Turn], to: u64, messages: usize) -> Rewound {
    let from = turns.iter().rev().find(|turn| turn.counts).map_or(0, |turn| turn.number);
    let back = to == 0 || turns.iter().any(|turn| turn.number == to && turn.counts);
    Rewound { to, from, messages, back, stale: None, repair: None }
}

/// What became of the files.
#[derive(Debug, Default)]
pub struct FilesBack {
    /// Where copies were looked for.
    pub dir: PathBuf,
    /// The files that are as they were, and the copy of what stood there.
    pub back: Vec<(PathBuf, PutBack)>,
    /// How many already were.
    pub same: usize,
    /// Those that could not be put back, and why.
    pub failed: Vec<(PathBuf, BackupsError)>,
}

/// The copies that a session keeps of files, and where they are from.
#[derive(Debug)]
pub struct Copies {
    id: SessionId,
    dir: PathBuf,
    working_dir: PathBuf,
    entries: Vec<Entry>,
}

/// The copies that `hooks-backup` kept for a session: what goes back needs them, so whoever wants files back looks first.
pub fn copies(store: &SessionStore, id: &SessionId) -> Result<Copies, SessionError> {
    let folder = store.open(id)?;
    let plan = store.plan(&folder)?;
    let working_dir = store.metadata(id)?.working_dir.unwrap_or_default();
    let dir = working_dir.join(backup_dir(&plan));
    let kept = match backups::list(&dir, Some(id)) {
        Ok(kept) => kept,
        // One whose tools changed no file has no folder for copies either.
        Err(BackupsError::None { .. } | BackupsError::NoneOfSession { .. }) if keeper(&plan).is_some() => {
            Vec::new()
        }
        Err(BackupsError::None { .. } | BackupsError::NoneOfSession { .. }) => {
            return Err(SessionError::NoCopies { id: id.clone() });
        }
        Err(error) => return Err(error.into()),
    };
    let entries = kept.into_iter().flat_map(|session| session.entries).collect();
    Ok(Copies { id: id.clone(), dir, working_dir, entries })
}

/// Puts files back as they were at the end of a turn that counts, from the copies that were kept in later ones. Only files
/// that tools of the session changed have copies.
pub fn files_back(store: &SessionStore, copies: Copies, to: u64) -> FilesBack {
    let Copies { id, dir, working_dir, entries } = copies;
    let mut done = FilesBack { dir, ..FilesBack::default() };
    // The first change after the turn tells what a file was at its end.
    let mut first: BTreeMap<PathBuf, u64> = BTreeMap::new();
    for entry in entries.into_iter().filter(|entry| entry.turn > to) {
        first.entry(entry.path).or_insert(entry.number);
    }
    for (path, number) in first {
        let restored = backups::find(&done.dir, Some(&id), number).and_then(|found| match found.now {
            Standing::Same => Ok(None),
            _ => backups::restore(&done.dir, &found, &working_dir, Some(store.home())).map(Some),
        });
        match restored {
            Ok(Some(put_back)) => done.back.push((path, put_back)),
            Ok(None) => done.same += 1,
            Err(error) => done.failed.push((path, error)),
        }
    }
    done
}

/// Where a plan has copies of files kept, relative to the working folder.
pub(super) fn backup_dir(plan: &MountPlan) -> String {
    let dir = keeper(plan).and_then(|hook| hook.config.get("backup_dir")).and_then(Value::as_str);
    dir.unwrap_or(backups::USUAL_DIR).to_owned()
}

fn keeper(plan: &MountPlan) -> Option<&ModuleSpec> {
    plan.hooks.iter().find(|hook| hook.module.as_str() == KEEPER)
}
