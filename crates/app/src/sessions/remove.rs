//! Deleting sessions, with the sub-sessions they started. Not while somebody has one of them.
//!
//! A folder loses its name before its files, so a kill leaves no half of a session: what is left is no session any more and
//! is swept up the next time.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use amplifier_core::clock::Clock;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::time::Timestamp;
use indexmap::IndexSet;

use super::SessionError;
use super::find::is_below;
use super::fork::UNFINISHED;
use super::index::Index;
use super::list::{Listed, Listing, Scope, Unread, list};
use super::rewind::backup_dir;
use crate::backups;
use crate::clock::{SystemClock, can_be_right};
use crate::files::{FileError, age, sweep_temps, sync_dir};
use crate::journal::{JournalFileError, Lease, Owner};
use crate::paths::SessionFolder;
use crate::store::{Metadata, SessionStore};

/// How the folder of a session that is being deleted begins.
const GONE: &str = ".gone-";
/// What was left by somebody is left alone this long: it may be at work.
const SWEEP_AFTER: Duration = Duration::from_secs(3600);

const MICROS_OF_A_DAY: i64 = 86_400_000_000;

/// What was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removal {
    pub sessions: Vec<SessionId>,
    pub bytes: u64,
}

/// Each of these sessions with the sub-sessions below it, however deep. Parents come before their children.
pub fn families(store: &SessionStore, roots: &[SessionId]) -> Result<Vec<Vec<SessionId>>, SessionError> {
    let Listing { sessions, unread, .. } = list(store, &Scope::all().with_children())?;
    let mut below: HashMap<&SessionId, Vec<&SessionId>> = HashMap::new();
    for Metadata { session_id, parent_id, .. } in sessions.iter().map(|listed| &listed.metadata) {
        if let Some(parent) = parent_id {
            below.entry(parent).or_default().push(session_id);
        }
    }
    let family = |root: &SessionId| {
        // What cannot be read does not tell its parent, but its id begins with the parent's.
        let unread = unread.iter().map(|(id, _)| id).filter(|id| *id != root && is_below(id, root));
        // Each once: files that somebody changed may say that sessions descend from each other.
        let mut found = IndexSet::from([root]);
        let mut at = 0;
        while let Some(parent) = found.get_index(at).copied() {
            found.extend(below.get(parent).into_iter().flatten().copied());
            at += 1;
        }
        found.extend(unread);
        found.into_iter().cloned().collect()
    };
    Ok(roots.iter().map(family).collect())
}

/// Deletes these sessions, parents before children, all of them or none: one that somebody has stops it before anything is
/// gone.
pub fn delete(store: &SessionStore, ids: &[SessionId]) -> Result<Removal, SessionError> {
    let removed = remove(store, ids)?;
    forget(store)?;
    Ok(removed)
}

/// Deletes families of sessions. One that cannot be deleted stays whole, and the others are gone.
pub fn delete_each(
    store: &SessionStore,
    families: &[Vec<SessionId>],
) -> Result<Vec<Result<Removal, SessionError>>, SessionError> {
    let removed = families.iter().map(|family| remove(store, family)).collect();
    forget(store)?;
    Ok(removed)
}

/// Takes what was known of sessions that are gone out of the index.
fn forget(store: &SessionStore) -> Result<(), SessionError> {
    Ok(Index::of(store.home()).forget_others(&store.ids()?)?)
}

fn remove(store: &SessionStore, ids: &[SessionId]) -> Result<Removal, SessionError> {
    let now = SystemClock::default().now();
    let mut leases = Vec::new();
    for id in ids {
        let folder = store.open(id)?;
        let owner = Owner::this_process("amplifier session delete", now);
        let lease = Lease::acquire(&folder.lease(), owner).map_err(JournalFileError::from);
        leases.push(lease.map_err(SessionError::about(id))?);
    }
    let sessions = store.home().sessions();
    let mut removal = Removal::default();
    let mut gone = Vec::new();
    // Children first, so that none is ever without its parent.
    for id in ids.iter().rev() {
        let (from, to) = (sessions.join(id.as_str()), sessions.join(format!("{GONE}{id}")));
        removal.bytes += size_of(&from);
        std::fs::rename(&from, &to).map_err(FileError::at("delete", &from))?;
        removal.sessions.push(id.clone());
        gone.push(to);
    }
    sync_dir(&sessions)?;
    for folder in gone {
        std::fs::remove_dir_all(&folder).map_err(FileError::at("delete", &folder))?;
    }
    drop(leases);
    Ok(removal)
}

/// Where copies of files that a session changed are kept. They are the project's and stay when the session goes.
pub fn copies_of(store: &SessionStore, id: &SessionId) -> Option<PathBuf> {
    let plan = store.plan(&store.open(id).ok()?).ok()?;
    let working_dir = store.metadata(id).ok()?.working_dir?;
    let kept = backups::session_folder(&working_dir.join(backup_dir(&plan)), id);
    kept.is_dir().then_some(kept)
}

/// Sessions that are old enough to go.
#[derive(Debug, Default)]
pub struct Old {
    pub sessions: Vec<Listed>,
    /// Sessions that would be, or may be, had the clock not been wrong when they were used. They stay.
    pub undated: Vec<Listed>,
    /// Sessions of which it is not known how old they are.
    pub unread: Vec<Unread>,
}

/// The sessions of a scope in which nothing happened for this many days and which nobody has. Sub-sessions go with their
/// parents; one whose parent is gone stands for itself. What the index knows of the last use counts, which does not go back
/// with the clock; where it knows nothing, or lies ahead, a time that cannot be right says nothing of a session's age.
pub fn older_than(store: &SessionStore, scope: &Scope, days: u32) -> Result<Old, SessionError> {
    let now = SystemClock::default().now().as_micros();
    let since = Timestamp::from_micros(now.saturating_sub(i64::from(days).saturating_mul(MICROS_OF_A_DAY)));
    let Listing { sessions: all, unread, .. } = list(store, &Scope::all().with_children())?;
    let ids: HashSet<SessionId> = all.iter().map(|listed| listed.metadata.session_id.clone()).collect();
    let has_parent =
        |listed: &Listed| listed.metadata.parent_id.as_ref().is_some_and(|parent| ids.contains(parent));
    let is_old = |listed: &Listed| listed.owner.is_none() && (listed.used < since || !listed.is_dated());
    let is_meant = |listed: &Listed| scope.is_here(listed.metadata.working_dir.as_deref());
    let meant = all.into_iter().filter(|listed| is_meant(listed) && !has_parent(listed) && is_old(listed));
    let (sessions, undated) =
        meant.partition(|listed| listed.is_dated() && can_be_right(listed.metadata.updated));
    Ok(Old { sessions, undated, unread })
}

/// Removes what killed processes left behind, sessions without a word among it; gives how many folders.
pub fn sweep(store: &SessionStore) -> Result<usize, SessionError> {
    let sessions = store.home().sessions();
    let entries = match std::fs::read_dir(&sessions) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        entries => entries.map_err(FileError::at("list", &sessions))?,
    };
    let mut swept = 0;
    for entry in entries {
        let entry = entry.map_err(FileError::at("list", &sessions))?;
        let name = entry.file_name();
        let left = name.to_str().is_some_and(|name| name.starts_with(UNFINISHED) || name.starts_with(GONE));
        if left && age(&entry.path()).is_some_and(|age| age > SWEEP_AFTER) {
            std::fs::remove_dir_all(entry.path()).map_err(FileError::at("delete", &entry.path()))?;
            swept += 1;
        }
    }
    for id in store.ids()? {
        let folder = store.home().session(&id);
        if is_left_empty(&folder) {
            match remove(store, &[id]) {
                Ok(_) => swept += 1,
                // Somebody is about to say the first word.
                Err(SessionError::InUse { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    // A process that was killed may have had no time for it.
    forget(store)?;
    store.home().sessions().parent().into_iter().for_each(sweep_temps);
    Ok(swept)
}

/// Whether a session has an empty journal or none, no views of another, and was left alone for a while.
fn is_left_empty(folder: &SessionFolder) -> bool {
    let place = match std::fs::metadata(folder.events()) {
        Ok(journal) if journal.len() > 0 => return false,
        Ok(_) => folder.events(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => folder.dir().to_owned(),
        Err(_) => return false,
    };
    let has_views = folder.metadata().exists() || folder.transcript().exists();
    !has_views && age(&place).is_some_and(|age| age > SWEEP_AFTER)
}

/// How many bytes the files below a folder have. What cannot be read counts nothing.
pub fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(about) if about.is_dir() => size_of(&entry.path()),
            Ok(about) => about.len(),
            Err(_) => 0,
        })
        .sum()
}
