//! Keeps `transcript.jsonl` and `metadata.json` up with the journal: what is new is added, what is wrong is made again.
//!
//! The transcript is synced before the metadata that counts its bytes is replaced, so the count is never ahead of it.
//! Blocks on the disk; call it where blocking is fine. Only the holder of the session's lease may call it.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::PathBuf;

use amplifier_protocol::message::Message;
use amplifier_protocol::run::RunUsage;

use super::StoreError;
use super::fold::{self, Change};
use super::metadata::{self, Metadata, PROGRESS_VERSION, Progress};
use crate::files::{Durability, FileError, private};
use crate::journal::{JournalFileError, RecordReader};
use crate::paths::SessionFolder;

/// How the views were brought up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Views {
    /// The records after the last update were added.
    Updated,
    /// They were missing, behind in a way that cannot be added to, or damaged, and were made anew.
    Rebuilt,
    /// The journal holds nothing yet.
    Empty,
}

/// Brings the views up to date from the records since the last update. Call it when a turn has ended.
///
/// It reads the file: sync the journal first, or records that still wait in its buffer come with the next update.
pub fn update_views(folder: &SessionFolder) -> Result<Views, StoreError> {
    let Some(known) = usable(folder) else { return rebuild_views(folder) };
    let from = known.views;
    let mut transcript = Transcript::open(folder, from)?;
    let mut metadata = Some(known);
    for record in RecordReader::from_seq(folder, from.seq + 1)? {
        transcript.apply(fold::apply(&mut metadata, record?))?;
    }
    finish(folder, transcript, metadata)?;
    Ok(Views::Updated)
}

/// Makes the views anew from the whole journal.
pub fn rebuild_views(folder: &SessionFolder) -> Result<Views, StoreError> {
    let records = match RecordReader::open(folder) {
        Ok(records) => records,
        Err(JournalFileError::File(error)) if error.is_missing() => return Ok(Views::Empty),
        Err(error) => return Err(error.into()),
    };
    metadata::forget_progress(folder)?;
    let mut transcript = Transcript::open(folder, Progress::default())?;
    let mut metadata = None;
    for record in records {
        transcript.apply(fold::apply(&mut metadata, record?))?;
    }
    match finish(folder, transcript, metadata)? {
        true => Ok(Views::Rebuilt),
        false => Ok(Views::Empty),
    }
}

/// What lists show of a session, from the view where it can be read, else from the journal. Writes nothing, so it needs no
/// lease.
pub fn metadata_of(folder: &SessionFolder) -> Result<Metadata, StoreError> {
    if let Ok(metadata) = metadata::read(folder) {
        return Ok(metadata);
    }
    let mut metadata = None;
    for record in RecordReader::open(folder)? {
        fold::apply(&mut metadata, record?);
    }
    metadata.ok_or_else(|| StoreError::Empty { journal: folder.events() })
}

/// Tokens of every model call of a session, whichever process made it: what the view knows, and the records since. Writes
/// nothing.
pub fn usage_of_all(folder: &SessionFolder) -> Result<RunUsage, StoreError> {
    let mut metadata = usable(folder);
    let from = metadata.as_ref().map_or(1, |known| known.views.seq + 1);
    for record in RecordReader::from_seq(folder, from)? {
        fold::apply(&mut metadata, record?);
    }
    Ok(metadata.map(|metadata| metadata.views.usage).unwrap_or_default())
}

/// Whether there are views that are not what was written. Views that are missing, or only behind, are not damaged.
pub fn are_damaged(folder: &SessionFolder) -> bool {
    match metadata::read(folder) {
        Ok(metadata) => {
            let length = std::fs::metadata(folder.transcript()).map_or(0, |transcript| transcript.len());
            metadata.views.seq > 0 && length < metadata.views.transcript_bytes
        }
        Err(StoreError::File(error)) => !error.is_missing(),
        Err(_) => true,
    }
}

/// The metadata that can be added to: readable, and not ahead of the transcript or of the journal.
pub(super) fn usable(folder: &SessionFolder) -> Option<Metadata> {
    let metadata = metadata::read(folder).ok()?;
    let transcript = std::fs::metadata(folder.transcript()).ok()?;
    let Progress { version, seq, transcript_bytes, .. } = metadata.views;
    if version != PROGRESS_VERSION || seq == 0 || transcript.len() < transcript_bytes {
        return None;
    }
    // The journal must still have the last record we took, or it is another journal.
    let mut last = RecordReader::from_seq(folder, seq).ok()?;
    matches!(last.next(), Some(Ok(record)) if record.seq == seq).then_some(metadata)
}

fn finish(
    folder: &SessionFolder,
    transcript: Transcript,
    metadata: Option<Metadata>,
) -> Result<bool, StoreError> {
    let written = transcript.close()?;
    let Some(mut metadata) = metadata else { return Ok(false) };
    let Progress { seq, spent, usage, last_word, .. } = metadata.views;
    metadata.views = Progress { version: PROGRESS_VERSION, seq, spent, usage, last_word, ..written };
    // Not synced: metadata that a power failure took is made again from the journal.
    metadata::write(folder, &metadata, Durability::Rebuildable)?;
    Ok(true)
}

/// The transcript, open at its end.
struct Transcript {
    folder: SessionFolder,
    path: PathBuf,
    file: BufWriter<File>,
    /// What the transcript is now; the rest of it is the metadata's.
    written: Progress,
    crc: crc32fast::Hasher,
}

impl Transcript {
    /// Opens it and cuts what an update that did not end has written after what is known.
    fn open(folder: &SessionFolder, known: Progress) -> Result<Self, StoreError> {
        let path = folder.transcript();
        let mut file = private()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(FileError::at("open", &path))?;
        cut(&mut file, known.transcript_bytes).map_err(FileError::at("write", &path))?;
        let crc = crc32fast::Hasher::new_with_initial_len(known.transcript_crc, known.transcript_bytes);
        let file = BufWriter::new(file);
        Ok(Self { folder: folder.clone(), path, file, written: known, crc })
    }

    fn apply(&mut self, change: Change) -> Result<(), StoreError> {
        match change {
            Change::None => Ok(()),
            Change::Added(message) => self.add(&message),
            Change::Replaced(messages) => {
                metadata::forget_progress(&self.folder)?;
                self.clear().map_err(FileError::at("write", &self.path))?;
                messages.iter().try_for_each(|message| self.add(message))
            }
        }
    }

    fn add(&mut self, message: &Message) -> Result<(), StoreError> {
        let mut line = serde_json::to_string(message)
            .map_err(|source| StoreError::Json { path: self.path.clone(), source })?;
        // A raw line feed can only stand between the tokens of a foreign block, where a blank means the same.
        if line.contains(['\n', '\r']) {
            line = line.replace(['\n', '\r'], " ");
            self.written.respelled = true;
        }
        line.push('\n');
        self.written.transcript_bytes += line.len() as u64;
        self.crc.update(line.as_bytes());
        Ok(self.file.write_all(line.as_bytes()).map_err(FileError::at("write", &self.path))?)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.file.flush()?;
        (self.written, self.crc) = (Progress::default(), crc32fast::Hasher::new());
        cut(self.file.get_mut(), 0)
    }

    /// Writes what is left of it and tells what it is. Not synced: one that a power failure took does not fit its checksum
    /// any more and is made again from the journal.
    fn close(mut self) -> Result<Progress, StoreError> {
        self.file.flush().map_err(FileError::at("write", &self.path))?;
        Ok(Progress { transcript_crc: self.crc.finalize(), ..self.written })
    }
}

fn cut(file: &mut File, bytes: u64) -> io::Result<()> {
    if file.metadata()?.len() != bytes {
        file.set_len(bytes)?;
    }
    file.seek(SeekFrom::Start(bytes)).map(|_| ())
}
