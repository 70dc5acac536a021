//! `state/sessions.idx`: what lists show of all sessions in one file, so that a list of ten thousand costs one read of a
//! folder and one of a file. A view: it can be deleted, and is made again from the sessions.
//!
//! One JSON object a line; the last line about a session counts. A session is marked as open when a process takes it and
//! as closed when that process is done, so a session that was killed is known by its mark and looked at more closely.
//! Lines are added under a lock. Whoever cannot have the lock soon goes without: the mark of the opening tells.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::time::Duration;

use amplifier_protocol::ids::SessionId;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::files::{Durability, FileError, create_private_dir, private, write_atomic};
use crate::paths::Home;
use crate::store::Metadata;

/// How long a writer waits for another: this often, this long each.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(5);
/// More lines than this that say nothing any more are worth making the file anew.
const WASTE: usize = 256;

/// The index of a home.
pub(crate) struct Index<'a> {
    home: &'a Home,
}

/// One line.
#[derive(Debug, Serialize, Deserialize)]
struct Line<'a> {
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
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    parent: Option<Cow<'a, str>>,
    /// The metadata, read only when it is shown. Absent on the mark of an opening.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    about: Option<&'a RawValue>,
}

/// What the index knows of one session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known<'a> {
    pub(crate) open: bool,
    pub(crate) at: i64,
    pub(crate) dir: Option<Cow<'a, str>>,
    pub(crate) parent: Option<Cow<'a, str>>,
    about: Option<&'a RawValue>,
}

impl Known<'_> {
    /// The metadata; nothing when it is not there or was written by another version.
    pub(crate) fn metadata(&self) -> Option<Metadata> {
        serde_json::from_str(self.about?.get()).ok()
    }

    /// Whether it can be shown as it is.
    pub(crate) fn is_settled(&self) -> bool {
        !self.open && self.about.is_some()
    }
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
            Self::Opened(id) => {
                let id = Cow::Borrowed(id.as_str());
                let mark = Line { id, open: true, at: 0, dir: None, parent: None, about: None };
                return serde_json::to_string(&mark).ok();
            }
            Self::Open(metadata) => (metadata, true),
            Self::Closed(metadata) => (metadata, false),
        };
        let about = serde_json::value::to_raw_value(metadata).ok()?;
        let line = Line {
            id: Cow::Borrowed(metadata.session_id.as_str()),
            open,
            at: metadata.updated.as_micros(),
            dir: metadata.working_dir.as_ref().map(|dir| dir.to_string_lossy()),
            parent: metadata.parent_id.as_ref().map(|parent| Cow::Borrowed(parent.as_str())),
            about: Some(&about),
        };
        serde_json::to_string(&line).ok()
    }
}

impl<'a> Index<'a> {
    pub(crate) fn of(home: &'a Home) -> Self {
        Self { home }
    }

    /// The text of the file; empty when there is none or it cannot be read.
    pub(crate) fn text(&self) -> String {
        match std::fs::read(self.home.session_index()) {
            // What is no text was not written by us; its lines are passed over like other broken ones.
            Ok(bytes) => String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
            Err(_) => String::new(),
        }
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
        let text = self.text();
        let (known, _) = read(&text);
        let kept = sessions.iter().filter_map(|id| {
            let known = known.get(id.as_str())?;
            let line = Line {
                id: Cow::Borrowed(id.as_str()),
                open: known.open,
                at: known.at,
                dir: known.dir.clone(),
                parent: known.parent.clone(),
                about: known.about,
            };
            serde_json::to_string(&line).ok()
        });
        let text = kept.fold(String::new(), |text, line| text + &line + "\n");
        drop(write_atomic(&self.home.session_index(), text.as_bytes(), Durability::Rebuildable));
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

/// What a text says about each session, and how many lines it has. Lines that cannot be read are passed over.
pub(crate) fn read(text: &str) -> (HashMap<Cow<'_, str>, Known<'_>>, usize) {
    let mut known: HashMap<Cow<'_, str>, Known<'_>> = HashMap::with_capacity(text.len() / 512);
    let mut lines = 0;
    for line in text.split('\n') {
        let Ok(line) = serde_json::from_str::<Line<'_>>(line) else { continue };
        lines += 1;
        let Line { id, open, at, dir, parent, about } = line;
        match about {
            Some(_) => drop(known.insert(id, Known { open, at, dir, parent, about })),
            None => known.entry(id).or_default().open = open,
        }
    }
    (known, lines)
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
