//! What opening a journal does before anything is written: find the end, check the way there, repair a torn last line.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use amplifier_protocol::record::RecordBody;

use super::blobs::Blobs;
use super::error::{Damage, JournalFileError};
use super::index::{self, Entry, Spacing};
use super::line::Frame;
use super::lines::{Lines, RecordReader, Step};
use crate::files::{FileError, private};
use crate::paths::SessionFolder;

/// A torn last line was cut. Nothing is gone: its bytes are in `saved`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The journal.
    pub path: PathBuf,
    /// The line that was cut, counted from 1.
    pub line: u64,
    /// How many bytes were cut.
    pub bytes: u64,
    /// Where they are now, at the end of the file.
    pub saved: PathBuf,
}

/// What a full check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub records: u64,
    /// The length of a torn last line, which the next opening will cut.
    pub torn_bytes: u64,
}

/// Where writing goes on.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) last_seq: u64,
    pub(super) len: u64,
    pub(super) spacing: Spacing,
    pub(super) repair: Option<Repair>,
}

/// Reads every line and every large value of a journal. Changes nothing; needs no lease.
pub fn verify(folder: &SessionFolder) -> Result<Verified, JournalFileError> {
    let mut lines = Lines::from_start(folder)?;
    let blobs = Blobs::new(folder.blobs());
    loop {
        match lines.step()? {
            Step::End { torn } => {
                return Ok(Verified { records: lines.place().seq - 1, torn_bytes: torn });
            }
            Step::Line(frame) => {
                let record = lines.record(frame, &blobs)?;
                if record.seq == 1 && !matches!(record.body, RecordBody::Opened { .. }) {
                    let path = lines.path().to_owned();
                    return Err(JournalFileError::Damaged { path, line: 1, damage: Damage::NotOpened });
                }
            }
        }
    }
}

/// How far a journal goes.
pub(crate) struct Reach {
    /// The last whole record that was looked for or found; 0 when there is none.
    pub last: u64,
    /// The length of a torn last line, where the end was come to.
    pub torn_bytes: u64,
    /// The records behind the one that was looked for, where that was found.
    pub behind: Option<RecordReader>,
}

/// Whether a journal goes as far as the record `seq`, or else where it ends. Changes nothing; needs no lease.
pub(crate) fn reach(folder: &SessionFolder, seq: u64) -> Result<Reach, JournalFileError> {
    let mut lines = match Lines::near(folder, seq) {
        Err(JournalFileError::File(error)) if error.is_missing() => {
            return Ok(Reach { last: 0, torn_bytes: 0, behind: None });
        }
        lines => lines?,
    };
    loop {
        match lines.step()? {
            Step::Line(frame) if frame.seq < seq => {}
            Step::Line(Frame { seq: last, .. }) => {
                let behind = Some(RecordReader::over(lines, folder, last + 1));
                return Ok(Reach { last, torn_bytes: 0, behind });
            }
            Step::End { torn } => {
                return Ok(Reach { last: lines.place().seq - 1, torn_bytes: torn, behind: None });
            }
        }
    }
}

/// Whether the record `seq` is what was last cut from the end of a journal: its bytes are kept, and it was told.
pub(crate) fn was_cut(folder: &SessionFolder, seq: u64) -> bool {
    // A file that is not there or cannot be read keeps nothing.
    let Ok(kept) = std::fs::read(folder.torn()) else { return false };
    let last = kept.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    last.split(|byte| *byte == b' ').next() == Some(seq.to_string().as_bytes())
}

/// Waits until what stands in a journal is durable, whoever wrote it.
pub(crate) fn settle(folder: &SessionFolder) -> Result<(), FileError> {
    let path = folder.events();
    File::open(&path).and_then(|file| file.sync_data()).map_err(FileError::at("sync", &path))
}

/// Finds the end of a journal from its last index entry, or from the start, and cuts a torn line.
pub(super) fn recover(folder: &SessionFolder) -> Result<Recovered, JournalFileError> {
    let mut lines = Lines::near(folder, u64::MAX)?;
    let begun = lines.place();
    let mut spacing = if begun.offset == 0 { Spacing::new() } else { Spacing::after(begun) };
    let mut entries = Vec::new();
    let torn = loop {
        let place = lines.place();
        match lines.step()? {
            Step::End { torn } => break torn,
            Step::Line(_) if spacing.takes(place) => entries.push(place),
            Step::Line(_) => {}
        }
    };
    let end = lines.place();
    let repair = match torn {
        0 => None,
        bytes => Some(cut(folder, end, bytes)?),
    };
    if begun.offset == 0 {
        // No entry could be believed. Whatever the file holds is replaced, so that none is believed later either.
        if !entries.is_empty() || folder.index().exists() {
            index::rebuild(&folder.index(), &entries)?;
        }
    } else {
        for entry in entries {
            index::add(&folder.index(), entry)?;
        }
    }
    Ok(Recovered { last_seq: end.seq - 1, len: end.offset, spacing, repair })
}

/// Copies a torn line to where it is kept, durably, and only then cuts it.
fn cut(folder: &SessionFolder, end: Entry, bytes: u64) -> Result<Repair, JournalFileError> {
    let (path, saved) = (folder.events(), folder.torn());
    let mut journal = private().read(true).write(true).open(&path).map_err(FileError::at("repair", &path))?;
    let mut keep = private().append(true).create(true).open(&saved).map_err(FileError::at("open", &saved))?;
    copy_tail(&mut journal, &mut keep, end, bytes).map_err(FileError::at("write", &saved))?;
    journal.set_len(end.offset).and_then(|()| journal.sync_all()).map_err(FileError::at("repair", &path))?;
    Ok(Repair { path, line: end.seq, bytes, saved })
}

/// The number of the record stands before its bytes: they themselves may be too few to tell it.
fn copy_tail(from: &mut File, to: &mut File, end: Entry, bytes: u64) -> io::Result<()> {
    from.seek(SeekFrom::Start(end.offset))?;
    write!(to, "{} ", end.seq)?;
    io::copy(&mut from.take(bytes), to)?;
    to.write_all(b"\n")?;
    to.sync_all()
}
