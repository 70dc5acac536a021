//! `state/sessions.idx`: what lists show of all sessions in one file, so that a list of ten thousand costs one read of a
//! folder and one of a file. A view: it can be deleted, and is made again from the sessions.
//!
//! A line is a JSON object with what sorts and filters, and behind it the metadata, which is read only for what is shown.
//! The last line about a session counts. A session is marked as open when a process takes it and as closed when that
//! process is done, so a session that was killed is known by its mark and looked at more closely. Lines are added under a
//! lock. Whoever cannot have the lock soon goes without: the mark of the opening tells.

use std::borrow::Cow;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::time::Duration;

use amplifier_protocol::ids::SessionId;
use serde::{Deserialize, Serialize};

use crate::files::{Durability, FileError, create_private_dir, private, write_atomic};
use crate::paths::Home;
use crate::store::Metadata;

mod known;

pub(crate) use known::{Contents, Known};

/// How long a writer waits for another: this often, this long each.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(5);
/// More lines than this that say nothing any more are worth making the file anew.
const WASTE: usize = 256;

/// The index of a home.
pub(crate) struct Index<'a> {
    home: &'a Home,
}

/// The beginning of a line. Nothing follows it on the mark of an opening, the metadata on all others.
#[derive(Debug, Serialize, Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    /// Whether a process had the session when this was written.
    #[serde(default)]
    open: bool,
    /// When something last happened in it, in microseconds.
    #[serde(default)]
    at: i64,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    dir: Option<Cow<'a, str>>,
    /// Whether another session started it as part of its work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    child: bool,
}

/// Something to tell the index.
pub(crate) enum Note<'a> {
    /// A process took this session.
    Opened(&'a SessionId),
    /// What it is now, while its process goes on.
    Open(&'a Metadata),
    /// What it is, and its process is done.
    Closed(&'a Metadata),
}

impl<'a> Note<'a> {
    pub(crate) fn closed(metadata: &'a Metadata) -> Self {
        Self::Closed(metadata)
    }

    fn line(&self) -> Option<String> {
        let (metadata, open) = match self {
            Self::Opened(id) => return mark(id, true),
            Self::Open(metadata) => (metadata, true),
            Self::Closed(metadata) => (metadata, false),
        };
        let head = Head {
            id: Cow::Borrowed(metadata.session_id.as_str()),
            open,
            at: metadata.updated.as_micros(),
            dir: metadata.working_dir.as_ref().map(|dir| dir.to_string_lossy()),
            child: metadata.parent_id.is_some(),
        };
        Some(serde_json::to_string(&head).ok()? + &serde_json::to_string(metadata).ok()?)
    }
}

fn mark(id: &SessionId, open: bool) -> Option<String> {
    let id = Cow::Borrowed(id.as_str());
    serde_json::to_string(&Head { id, open, at: 0, dir: None, child: false }).ok()
}

impl<'a> Index<'a> {
    pub(crate) fn of(home: &'a Home) -> Self {
        Self { home }
    }

    /// What the file says; nothing when there is none or it cannot be read.
    pub(crate) fn contents(&self) -> Contents {
        Contents::of(&self.home.session_index())
    }

    /// Adds lines. A failure costs a list a closer look and is no reason to fail.
    pub(crate) fn note(&self, notes: &[Note<'_>]) {
        let mut lines: String = notes.iter().filter_map(Note::line).fold(String::new(), |mut lines, line| {
            lines.push_str(&line);
            lines.push('\n');
            lines
        });
        if lines.is_empty() {
            return;
        }
        let Ok(Some(lock)) = self.lock() else { return };
        let path = self.home.session_index();
        let appended = private().read(true).append(true).create(true).open(&path).and_then(|mut file| {
            if !ends_with_line_feed(&mut file)? {
                lines.insert(0, '\n');
            }
            file.write_all(lines.as_bytes())
        });
        drop(appended);
        drop(lock.unlock());
    }

    /// Makes the file anew, without lines that say nothing any more, when there are many of them.
    pub(crate) fn tidy(&self, lines: usize, sessions: &[SessionId]) {
        if lines <= sessions.len() * 2 + WASTE {
            return;
        }
        let Ok(Some(lock)) = self.lock() else { return };
        // Read again: somebody may have added something before the lock was ours.
        let contents = self.contents();
        let mut text = Vec::new();
        for id in sessions {
            let Some(known) = contents.get(id) else { continue };
            let line = contents.line(known);
            // The line may be older than the last mark.
            let mark = known.open.then(|| mark(id, true)).flatten().map(String::into_bytes);
            for line in line.into_iter().chain(mark) {
                text.extend(line);
                text.push(b'\n');
            }
        }
        drop(write_atomic(&self.home.session_index(), &text, Durability::Rebuildable));
        drop(lock.unlock());
    }

    fn lock(&self) -> Result<Option<File>, FileError> {
        let path = self.home.session_index_lock();
        if let Some(dir) = path.parent() {
            create_private_dir(dir)?;
        }
        let file = private().append(true).create(true).open(&path).map_err(FileError::at("open", &path))?;
        for _ in 0..ATTEMPTS {
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(source)) => return Err(FileError::at("lock", &path)(source)),
            }
        }
        Ok(None)
    }
}

fn ends_with_line_feed(file: &mut File) -> std::io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
