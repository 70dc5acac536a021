//! The backups of one session: copies by their hash, and an index that says what was where before which call.
//!
//! ```text
//! <backup_dir>/<session id>/index.jsonl      a line for each file before each change
//!                           objects/<sha256> what it held
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use amplifier_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::hooks::place::{private_dir, private_file, real_path, write_atomic};

const INDEX: &str = "index.jsonl";
const OBJECTS: &str = "objects";
const VERSION: u32 = 1;

/// A backup could not be made or read.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{}`", path.display())]
pub struct BackupError {
    /// What was attempted, as a verb.
    pub action: &'static str,
    /// Where.
    pub path: PathBuf,
    /// Why it failed.
    #[source]
    pub source: io::Error,
}

impl BackupError {
    pub(super) fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { action, path: path.to_owned(), source }
    }
}

/// What the backups of a session may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A larger file is not copied.
    pub max_file_bytes: u64,
    /// All copies together.
    pub max_total_bytes: u64,
    /// How many changes are kept.
    pub max_entries: usize,
}

/// Why and when a file is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// When.
    pub time: Timestamp,
    /// In which turn.
    pub turn: u64,
    /// Which tool is about to change it.
    pub tool_name: String,
    /// In which call.
    pub tool_call_id: Option<String>,
}

/// What a file was before a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The version of the format.
    pub v: u32,
    /// Names the entry within its session.
    pub number: u64,
    /// When it was made.
    pub time: Timestamp,
    /// In which turn.
    pub turn: u64,
    /// Which tool was about to change the file.
    pub tool_name: String,
    /// In which call.
    pub tool_call_id: Option<String>,
    /// The file, with links followed.
    pub path: PathBuf,
    /// The hash of what it held; nothing when there was no file.
    pub sha256: Option<String>,
    /// How many bytes it had.
    pub bytes: u64,
    /// Its permissions, where the system has them.
    pub mode: Option<u32>,
}

/// What became of a wish to keep a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// It is kept, under this number.
    Entry(u64),
    /// It is not, for this reason.
    Skipped {
        /// The reason, naming the file.
        reason: String,
    },
}

/// The backups of one session. Blocking: use it away from the turn.
pub struct Backups {
    folder: PathBuf,
    limits: Limits,
    entries: Vec<Entry>,
}

impl Backups {
    /// Opens the backups in a session's folder, or begins them. A torn last line is dropped.
    pub fn open(folder: &Path, limits: Limits) -> Result<Self, BackupError> {
        let text = read_index(folder)?;
        let backups = Self { folder: folder.to_owned(), limits, entries: entries(&text) };
        if !text.is_empty() && !text.ends_with('\n') {
            backups.write_index()?;
        }
        Ok(backups)
    }

    /// What is kept in a session's folder, oldest first. Nothing there is changed, so a running session may go on.
    pub fn look(folder: &Path) -> Result<Vec<Entry>, BackupError> {
        Ok(entries(&read_index(folder)?))
    }

    /// What is kept, oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Keeps what a file holds now, if it lies in one of the roots after links are followed.
    pub fn keep(&mut self, path: &Path, roots: &[PathBuf], about: &About) -> Result<Kept, BackupError> {
        let skip = |why: String| Ok(Kept::Skipped { reason: format!("`{}` {why}", path.display()) });
        let real = real_path(path);
        if !is_inside(&real, roots) {
            return skip("lies outside the folders that are backed up".to_owned());
        }
        let found = match std::fs::metadata(&real) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.note(real, Copied::default(), about);
            }
            Err(error) => return Err(BackupError::at("look at", &real)(error)),
        };
        if !found.is_file() {
            return skip("is not a regular file".to_owned());
        }
        let most = self.limits.max_file_bytes.min(self.limits.max_total_bytes);
        if found.len() > most {
            return skip(format!("is larger than {most} bytes"));
        }
        match self.copy(&real, most)? {
            Some(copied) => self.note(real, copied, about),
            None => skip(format!("grew beyond {most} bytes while it was copied")),
        }
    }

    /// Copies a file under its hash; nothing when it is larger than it may be.
    fn copy(&self, path: &Path, most: u64) -> Result<Option<Copied>, BackupError> {
        let objects = self.folder.join(OBJECTS);
        private_dir(&objects).map_err(BackupError::at("create folder", &objects))?;
        let file = File::open(path).map_err(BackupError::at("open", path))?;
        let found = file.metadata().map_err(BackupError::at("look at", path))?;
        let mut content = Vec::new();
        // One byte more than allowed tells a file that grew from one that fits.
        file.take(most.saturating_add(1)).read_to_end(&mut content).map_err(BackupError::at("read", path))?;
        let bytes = u64::try_from(content.len()).unwrap_or(u64::MAX);
        if bytes > most {
            return Ok(None);
        }
        let sha256 = hash(&content);
        let object = objects.join(&sha256);
        if !object.is_file() {
            write_atomic(&object, &content).map_err(BackupError::at("write", &object))?;
        }
        Ok(Some(Copied { sha256: Some(sha256), bytes, mode: mode_of(&found) }))
    }

    fn note(&mut self, path: PathBuf, copied: Copied, about: &About) -> Result<Kept, BackupError> {
        let number = self.entries.last().map_or(1, |last| last.number + 1);
        let entry = Entry {
            v: VERSION,
            number,
            time: about.time,
            turn: about.turn,
            tool_name: about.tool_name.clone(),
            tool_call_id: about.tool_call_id.clone(),
            path,
            sha256: copied.sha256,
            bytes: copied.bytes,
            mode: copied.mode,
        };
        private_dir(&self.folder).map_err(BackupError::at("create folder", &self.folder))?;
        let index = self.folder.join(INDEX);
        let write = || -> io::Result<()> {
            let mut file = private_file().append(true).create(true).open(&index)?;
            file.write_all(line(&entry)?.as_bytes())?;
            file.sync_data()
        };
        write().map_err(BackupError::at("write", &index))?;
        self.entries.push(entry);
        self.forget_oldest()?;
        Ok(Kept::Entry(number))
    }

    /// Lets the oldest entries go until the limits hold again, with some room, so that this is seldom done.
    fn forget_oldest(&mut self) -> Result<(), BackupError> {
        let Limits { max_total_bytes, max_entries, .. } = self.limits;
        if self.entries.len() <= max_entries && self.total_bytes() <= max_total_bytes {
            return Ok(());
        }
        let (aim_entries, aim_bytes) =
            (max_entries - max_entries / 10, max_total_bytes - max_total_bytes / 10);
        // The newest stays, whatever the limits: it is what the running call may need.
        while self.entries.len() > 1 && (self.entries.len() > aim_entries || self.total_bytes() > aim_bytes) {
            self.entries.remove(0);
        }
        self.write_used()
    }

    /// Lets go of what calls of a turn did not change: what was kept stands there now, or was kept again by the next call.
    pub(super) fn forget_unchanged(&mut self, turn: u64) -> Result<(), BackupError> {
        let mut after: BTreeMap<PathBuf, Option<String>> = BTreeMap::new();
        let mut unchanged = BTreeSet::new();
        for entry in self.entries.iter().rev() {
            let is_call = entry.turn == turn && entry.tool_call_id.is_some();
            let is_same = is_call
                && match after.get(&entry.path) {
                    Some(after) => *after == entry.sha256,
                    None => stands(entry),
                };
            if is_same {
                unchanged.insert(entry.number);
            }
            after.insert(entry.path.clone(), entry.sha256.clone());
        }
        if unchanged.is_empty() {
            return Ok(());
        }
        self.entries.retain(|entry| !unchanged.contains(&entry.number));
        self.write_used()
    }

    /// Writes the index anew and removes copies that nothing in it needs.
    fn write_used(&self) -> Result<(), BackupError> {
        self.write_index()?;
        let used: BTreeSet<_> = self.entries.iter().filter_map(|entry| entry.sha256.as_deref()).collect();
        let objects = self.folder.join(OBJECTS);
        let found = match std::fs::read_dir(&objects) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found.map_err(BackupError::at("read folder", &objects))?,
        };
        for object in found {
            let object = object.map_err(BackupError::at("read folder", &objects))?;
            if !used.contains(object.file_name().to_string_lossy().as_ref()) {
                std::fs::remove_file(object.path()).map_err(BackupError::at("remove", &object.path()))?;
            }
        }
        Ok(())
    }

    fn total_bytes(&self) -> u64 {
        let mut seen = BTreeSet::new();
        let copies = self.entries.iter().filter(|entry| entry.sha256.is_some() && seen.insert(&entry.sha256));
        copies.map(|entry| entry.bytes).sum()
    }

    fn write_index(&self) -> Result<(), BackupError> {
        let index = self.folder.join(INDEX);
        let lines: io::Result<String> = self.entries.iter().map(line).collect();
        lines
            .and_then(|lines| write_atomic(&index, lines.as_bytes()))
            .map_err(BackupError::at("write", &index))
    }

    pub(super) fn object(&self, sha256: &str) -> PathBuf {
        self.folder.join(OBJECTS).join(sha256)
    }
}

/// Whether what was kept is what stands there now. What cannot be read may have been changed.
fn stands(entry: &Entry) -> bool {
    match (std::fs::metadata(&entry.path), &entry.sha256) {
        (Err(error), None) => error.kind() == io::ErrorKind::NotFound,
        // Only a file of the same size is worth reading.
        (Ok(found), Some(sha256)) if found.is_file() && found.len() == entry.bytes => {
            std::fs::read(&entry.path).is_ok_and(|content| hash(&content) == *sha256)
        }
        _ => false,
    }
}

#[derive(Default)]
struct Copied {
    sha256: Option<String>,
    bytes: u64,
    mode: Option<u32>,
}

fn read_index(folder: &Path) -> Result<String, BackupError> {
    let index = folder.join(INDEX);
    match std::fs::read_to_string(&index) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(BackupError::at("read", &index)),
    }
}

fn entries(text: &str) -> Vec<Entry> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn line(entry: &Entry) -> io::Result<String> {
    Ok(serde_json::to_string(entry)? + "\n")
}

pub(super) fn hash(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a path lies in one of the roots. One that climbs is taken to lie outside.
pub(super) fn is_inside(real: &Path, roots: &[PathBuf]) -> bool {
    let climbs = real.components().any(|part| part == std::path::Component::ParentDir);
    let inside = |root: &PathBuf| root.canonicalize().is_ok_and(|root| real.starts_with(root));
    !climbs && roots.iter().any(inside)
}

#[cfg(unix)]
fn mode_of(found: &std::fs::Metadata) -> Option<u32> {
    Some(std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o7777)
}

#[cfg(not(unix))]
fn mode_of(_found: &std::fs::Metadata) -> Option<u32> {
    None
}

/// Removes the folders of the oldest other sessions beyond the newest few. Only folders that hold an index are ours.
pub(super) fn forget_old_sessions(folder: &Path, keep: usize) -> Result<(), BackupError> {
    let Some(parent) = folder.parent() else { return Ok(()) };
    let Ok(sessions) = std::fs::read_dir(parent) else { return Ok(()) };
    let mut others = Vec::new();
    for session in sessions.flatten() {
        let changed = std::fs::metadata(session.path().join(INDEX)).and_then(|found| found.modified());
        if let (Ok(changed), true) = (changed, session.path() != folder) {
            others.push((changed, session.path()));
        }
    }
    others.sort();
    let too_many = others.len().saturating_sub(keep.saturating_sub(1));
    for (_, path) in others.into_iter().take(too_many) {
        std::fs::remove_dir_all(&path).map_err(BackupError::at("remove", &path))?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
