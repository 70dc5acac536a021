//! `state/sessions.idx`: what lists show of all sessions in one file, so that a list of ten thousand costs one read of a
//! folder and one of a file. A view: it can be deleted, and is made again from the sessions.
//!
//! A line is what sorts and filters, separated by blanks: the id, when it was last used, flags (`-` or letters), the folder
//! as JSON; and behind it the metadata, which is read only of what is shown. Who is used later has the later time, also when
//! the clock of the machine was set back meanwhile: the latest one stands in the file of the lock, and the next is later.
//! The last line about a session counts. A session is marked as open when a process takes it and as closed when that
//! process is done, so a session that was killed is known by its mark and looked at more closely. Lines are added under a
//! lock. Whoever cannot have the lock soon goes without: the mark of the opening tells.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::time::Duration;

use amplifier_protocol::ids::SessionId;

use crate::files::{Durability, FileError, create_private_dir, lock_within, private, write_atomic};
use crate::paths::Home;
use crate::store::Metadata;

mod known;

pub(crate) use known::{Contents, Known};

/// How long a writer waits for another.
const PATIENCE: Duration = Duration::from_millis(500);
/// More lines than this that say nothing any more are worth making the file anew.
const WASTE: usize = 256;

/// The index of a home.
pub(crate) struct Index<'a> {
    home: &'a Home,
}

/// The flag of a session that a process had when the line was written.
const OPEN: u8 = b'o';
/// The flag of a session that another started as part of its work.
const CHILD: u8 = b'c';
/// The flag of a session in which nobody has said anything; the length of its journal then stands instead of the time.
const EMPTY: u8 = b'e';

/// Something to tell the index.
pub(crate) enum Note<'a> {
    /// A process took this session.
    Opened(&'a SessionId),
    /// What it is now, while its process goes on.
    Open(&'a Metadata),
    /// What it is, and its process is done.
    Closed(&'a Metadata),
    /// What it is, as somebody found it who did not use it, and when it was last used.
    Found(&'a Metadata, i64),
    /// Nobody said anything in it, and its journal is so long.
    Empty(&'a SessionId, u64),
}

impl<'a> Note<'a> {
    pub(crate) fn closed(metadata: &'a Metadata) -> Self {
        Self::Closed(metadata)
    }

    /// Whether another process noted as much or more of the session after it was looked at.
    fn is_late(&self, now: &Contents) -> bool {
        let Self::Found(metadata, _) = self else { return false };
        let known = now.get(metadata.session_id.as_str()).filter(|(_, known)| known.is_settled());
        let noted = known.and_then(|(_, known)| now.metadata(known)).filter(Metadata::is_current);
        noted.is_some_and(|noted| noted.views.seq >= metadata.views.seq)
    }

    /// All of its line that can be told without the lock.
    fn line(&self) -> Option<Line> {
        let mark =
            |id: &SessionId, when, flag| Line { id: id.clone(), when, rest: char::from(flag).to_string() };
        let (metadata, when, open) = match self {
            Self::Opened(id) => return Some(mark(id, When::Used(0), OPEN)),
            Self::Empty(id, bytes) => return Some(mark(id, When::Bytes(i64::try_from(*bytes).ok()?), EMPTY)),
            Self::Open(metadata) => (metadata, When::Used(metadata.updated.as_micros()), char::from(OPEN)),
            Self::Closed(metadata) => (metadata, When::Used(metadata.updated.as_micros()), '-'),
            Self::Found(metadata, at) => (metadata, When::Found(*at), '-'),
        };
        let child = if metadata.parent_id.is_some() { char::from(CHILD).to_string() } else { String::new() };
        let dir =
            serde_json::to_string(&metadata.working_dir.as_ref().map(|dir| dir.to_string_lossy())).ok()?;
        let rest = format!("{open}{child} {dir} {}", serde_json::to_string(metadata).ok()?);
        Some(Line { id: metadata.session_id.clone(), when, rest })
    }
}

/// What became of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noted {
    Done,
    /// Others hold the lock: nothing was written.
    Busy,
}

/// A line that waits for its time.
struct Line {
    id: SessionId,
    when: When,
    rest: String,
}

/// What stands in a line as the time.
enum When {
    /// A use that the clock says was then.
    Used(i64),
    /// A use of which somebody found out later.
    Found(i64),
    /// No time: the length of a journal.
    Bytes(i64),
}

impl Line {
    fn is_use(&self) -> bool {
        matches!(self.when, When::Used(_))
    }

    fn text(&self, uses: &mut Uses) -> String {
        let at = match self.when {
            When::Used(at) => uses.next(at),
            When::Found(at) => uses.heed(at),
            When::Bytes(length) => length,
        };
        format!("{} {at} {}\n", self.id, self.rest)
    }
}

/// When a session was last used, as far as the machine's clock can be believed: never before the use that came before.
#[derive(Default)]
struct Uses {
    latest: i64,
}

impl Uses {
    /// What the file of the lock says; nothing where it says nothing.
    fn read(lock: &mut File) -> Self {
        let mut text = [0; 32];
        let read = lock.read(&mut text).ok().and_then(|length| text.get(..length));
        let text = read.and_then(|text| std::str::from_utf8(text).ok());
        Self { latest: text.and_then(|text| text.trim().parse().ok()).unwrap_or_default() }
    }

    /// The time of a use that the clock says was then.
    fn next(&mut self, at: i64) -> i64 {
        self.latest = at.max(self.latest.saturating_add(1));
        self.latest
    }

    /// The time of a use that was found out later: the next one comes after it, also where it lies ahead because the clock once
    /// did, and what was kept here is gone.
    fn heed(&mut self, at: i64) -> i64 {
        self.latest = self.latest.max(at);
        at
    }

    /// Keeps it for the next one: always as many digits, so that no end of an older one is left.
    fn write(&self, lock: &mut File) -> std::io::Result<()> {
        lock.seek(SeekFrom::Start(0))?;
        lock.write_all(format!("{:020}\n", self.latest).as_bytes())
    }
}

/// A line that has nothing but a flag to say.
fn mark(id: &SessionId, at: i64, flag: u8) -> String {
    format!("{id} {at} {}", char::from(flag))
}

impl<'a> Index<'a> {
    pub(crate) fn of(home: &'a Home) -> Self {
        Self { home }
    }

    /// What the file says; nothing when there is none or it cannot be read.
    pub(crate) fn contents(&self) -> Contents {
        Contents::of(&self.home.session_index())
    }

    /// Notes the new state of a session that was not marked as open. An index that cannot be written would keep showing the old
    /// state, so it is removed.
    pub(crate) fn note_change(&self, metadata: &Metadata) {
        if self.note(&[Note::Closed(metadata)]) == Noted::Busy {
            drop(self.withdraw());
        }
    }

    /// Adds lines. A failure costs a list a closer look and is no reason to fail.
    pub(crate) fn note(&self, notes: &[Note<'_>]) -> Noted {
        // Others wait for the lock: what needs it not is done before.
        let lines: Vec<_> = notes.iter().filter_map(|note| Some((note, note.line()?))).collect();
        if lines.is_empty() {
            return Noted::Done;
        }
        let is_used = lines.iter().any(|(_, line)| line.is_use());
        let mut lock = match self.lock() {
            Ok(Some(lock)) => lock,
            Ok(None) => return Noted::Busy,
            Err(_) if is_used => {
                drop(self.withdraw());
                return Noted::Done;
            }
            Err(_) => return Noted::Done,
        };
        let mut uses = Uses::read(&mut lock);
        let before = uses.latest;
        let is_found = lines.iter().any(|(note, _)| matches!(note, Note::Found(..)));
        let now = is_found.then(|| self.contents());
        let is_new = |note: &Note<'_>| now.as_ref().is_none_or(|now| !note.is_late(now));
        let lines = lines.iter().filter(|(note, _)| is_new(note));
        let mut text: String = lines.map(|(_, line)| line.text(&mut uses)).collect();
        let path = self.home.session_index();
        let appended = private().read(true).append(true).create(true).open(&path).and_then(|mut file| {
            if !ends_with_line_feed(&mut file)? {
                text.insert(0, '\n');
            }
            file.write_all(text.as_bytes())
        });
        let kept = appended.and_then(|()| if uses.latest == before { Ok(()) } else { uses.write(&mut lock) });
        if is_used && kept.is_err_and(|error| error.kind() != std::io::ErrorKind::StorageFull) {
            drop(self.withdraw());
        }
        drop(lock.unlock());
        Noted::Done
    }

    /// Whether so many lines for so many sessions are worth a [`Self::tidy`].
    pub(crate) fn is_wasteful(lines: usize, sessions: usize) -> bool {
        lines > sessions * 2 + WASTE
    }

    /// Takes out what it says of sessions other than these. That they were there is nobody's business any more.
    pub(crate) fn forget_others(&self, sessions: &[SessionId]) -> Result<(), FileError> {
        let kept: HashSet<&str> = sessions.iter().map(SessionId::as_str).collect();
        match self.contents().ids().all(|id| kept.contains(id)) {
            true => Ok(()),
            false => self.tidy(sessions).or_else(|_| self.withdraw()),
        }
    }

    /// Takes the file away where it cannot be written: what it does not know any more is worse than none. The next list makes it
    /// again from the sessions.
    fn withdraw(&self) -> Result<(), FileError> {
        let path = self.home.session_index();
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(FileError::at("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Makes the file anew, with what it knows of these sessions.
    pub(crate) fn tidy(&self, sessions: &[SessionId]) -> Result<(), FileError> {
        let path = self.home.session_index();
        let busy = || FileError::at("lock", &path)(std::io::ErrorKind::TimedOut.into());
        let lock = self.lock()?.ok_or_else(busy)?;
        // Read again: somebody may have added something before the lock was ours.
        let contents = self.contents();
        let mut text = Vec::new();
        for id in sessions {
            let Some((_, known)) = contents.get(id.as_str()) else { continue };
            // The line may be older than the last mark.
            let mark = known.mark().map(|(at, flag)| mark(id, at, flag).into_bytes());
            for line in contents.line(known).into_iter().chain(mark) {
                text.extend(line.trim_ascii_end());
                text.push(b'\n');
            }
        }
        let written = write_atomic(&path, &text, Durability::Rebuildable);
        drop(lock.unlock());
        written
    }

    fn lock(&self) -> Result<Option<File>, FileError> {
        let path = self.home.session_index_lock();
        let open = || private().read(true).write(true).create(true).truncate(false).open(&path);
        let file = match (open(), path.parent()) {
            // Only the first session of a home finds no folder.
            (Err(error), Some(dir)) if error.kind() == std::io::ErrorKind::NotFound => {
                create_private_dir(dir)?;
                open()
            }
            (opened, _) => opened,
        };
        let file = file.map_err(FileError::at("open", &path))?;
        Ok(lock_within(&file, &path, PATIENCE)?.then_some(file))
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
