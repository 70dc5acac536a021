//! Keeps `transcript.jsonl` and `metadata.json` up with the journal: what is new is added, what is wrong is made again.
//!
//! Views are made of what is durable, so they are never ahead of the journal. Where they are, records were taken from it,
//! and the views may be the last copy of them: nothing is written then. Blocks on the disk; call it where blocking is
//! fine. Only the holder of the session's lease may change views.

use std::path::PathBuf;

use amplifier_protocol::record::Record;

use super::StoreError;
use super::fold;
use super::metadata::{self, Metadata, PROGRESS_VERSION, Progress};
use super::transcript::{Transcript, scrap};
use crate::files::Durability;
use crate::journal::{self, JournalFileError, RecordReader};
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
    update(folder, Taken::All).map(|(views, _)| views)
}

/// Does the same, and gives what the views say of the session now; nothing where its journal holds nothing yet.
pub(crate) fn updated(folder: &SessionFolder) -> Result<Option<Metadata>, StoreError> {
    update(folder, Taken::All).map(|(_, metadata)| metadata)
}

/// Brings the views up to a record that is known to be durable, without waiting for the disk.
pub(crate) fn update_views_to(folder: &SessionFolder, seq: u64) -> Result<Views, StoreError> {
    update(folder, Taken::UpTo(seq)).map(|(views, _)| views)
}

/// Which records are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// All, after waiting for the disk: a power failure must not leave views of records that it took.
    All,
    /// Those up to this one, which are durable.
    UpTo(u64),
}

impl Taken {
    fn includes(self, record: &Result<Record, JournalFileError>) -> bool {
        match (self, record) {
            (Self::UpTo(last), Ok(record)) => record.seq <= last,
            _ => true,
        }
    }
}

/// How the views were brought up to date, and what they say now.
type Updated = (Views, Option<Metadata>);

fn update(folder: &SessionFolder, taken: Taken) -> Result<Updated, StoreError> {
    match known(folder)? {
        Known::Usable { metadata, since } => add(folder, *metadata, since, taken),
        Known::Unusable { old } => rebuild(folder, old, taken),
    }
    .map_err(scrap(folder))
}

fn add(
    folder: &SessionFolder,
    known: Metadata,
    since: RecordReader,
    taken: Taken,
) -> Result<Updated, StoreError> {
    let from = known.views;
    let mut metadata = Some(known);
    let mut records = since.take_while(|record| taken.includes(record)).peekable();
    let length = std::fs::metadata(folder.transcript()).map_or(0, |transcript| transcript.len());
    // Who only reads needs no room on the disk.
    if records.peek().is_none() && length == from.transcript_bytes {
        return Ok((Views::Updated, metadata));
    }
    let mut transcript = Transcript::open(folder, from)?;
    for record in records {
        transcript.apply(fold::apply(&mut metadata, record?))?;
    }
    Ok((Views::Updated, finish(folder, transcript, metadata, taken)?))
}

/// Makes the views anew from the whole journal.
pub fn rebuild_views(folder: &SessionFolder) -> Result<Views, StoreError> {
    let old = match known(folder)? {
        Known::Unusable { old } => old,
        Known::Usable { .. } => Old::Written,
    };
    rebuild(folder, old, Taken::All).map(|(views, _)| views).map_err(scrap(folder))
}

fn rebuild(folder: &SessionFolder, old: Old, taken: Taken) -> Result<Updated, StoreError> {
    let records = match RecordReader::open(folder) {
        Ok(records) => records,
        Err(JournalFileError::File(error)) if error.is_missing() => return Ok((Views::Empty, None)),
        Err(error) => return Err(error.into()),
    };
    let mut transcript = Transcript::anew(folder)?;
    let mut metadata = None;
    for record in records.take_while(|record| taken.includes(record)) {
        transcript.apply(fold::apply(&mut metadata, record?))?;
    }
    if metadata.is_none() {
        transcript.drop_anew()?;
        return Ok((Views::Empty, None));
    }
    if old == Old::Written {
        transcript.keep_longer()?;
    }
    Ok((Views::Rebuilt, finish(folder, transcript, metadata, taken)?))
}

/// What lists show of a session, from the view where it can be read, else from the journal. Writes nothing, so it needs no
/// lease.
pub fn metadata_of(folder: &SessionFolder) -> Result<Metadata, StoreError> {
    match metadata::read(folder) {
        Ok(metadata) => Ok(metadata),
        Err(_) => metadata_now(folder),
    }
}

/// What a session is now: what the view knows, and the records since. Writes nothing, so it needs no lease.
pub fn metadata_now(folder: &SessionFolder) -> Result<Metadata, StoreError> {
    folded(folder)?.ok_or_else(|| StoreError::Empty { journal: folder.events() })
}

/// Adds what a record makes of a session. Those before the one that opens it say nothing.
pub(crate) fn take_in(metadata: &mut Option<Metadata>, record: Record) {
    fold::apply(metadata, record);
}

fn folded(folder: &SessionFolder) -> Result<Option<Metadata>, StoreError> {
    let (mut metadata, records) = match known(folder)? {
        Known::Usable { metadata, since } => (Some(*metadata), since),
        Known::Unusable { .. } => (None, RecordReader::open(folder)?),
    };
    for record in records {
        fold::apply(&mut metadata, record?);
    }
    Ok(metadata)
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

/// Errors when the journal has lost records that the views were made of. Call it before anything of a session that exists
/// is changed or shown. Writes nothing, so it needs no lease.
pub fn check_journal(folder: &SessionFolder) -> Result<(), StoreError> {
    known(folder).map(drop)
}

/// What the views know.
enum Known {
    /// They can be added to: readable, and not ahead of the transcript. With the records that they do not know.
    Usable { metadata: Box<Metadata>, since: RecordReader },
    /// They have to be made anew.
    Unusable { old: Old },
}

/// What an old transcript is worth.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Old {
    /// It was written, and what it holds may be nowhere else.
    Written,
    /// The last update began to replace it and did not end, so it may rightly hold more than the journal gives.
    Replaced,
}

/// The metadata that can be added to.
pub(super) fn usable(folder: &SessionFolder) -> Result<Option<Metadata>, StoreError> {
    Ok(match known(folder)? {
        Known::Usable { metadata, .. } => Some(*metadata),
        Known::Unusable { .. } => None,
    })
}

fn known(folder: &SessionFolder) -> Result<Known, StoreError> {
    let length = |path: PathBuf| std::fs::metadata(path).ok().map(|file| file.len());
    let transcript = length(folder.transcript());
    // Read before the journal: whoever writes them now writes the journal first.
    let metadata = metadata::read(folder).ok();
    let old = if metadata.is_some() { Old::Replaced } else { Old::Written };
    let seq = metadata.as_ref().map_or(0, |metadata| metadata.views.seq);
    let Some(metadata) = metadata.filter(|_| seq > 0) else {
        let is_empty = length(folder.events()).is_none_or(|bytes| bytes == 0);
        if is_empty && transcript.is_some_and(|bytes| bytes > 0) {
            return Err(behind(folder, 0, None));
        }
        return Ok(Known::Unusable { old });
    };
    let reach = journal::reach(folder, seq)?;
    // A torn line was one record, which its finder keeps beside and tells of.
    let is_torn = reach.last + 1 == seq && (reach.torn_bytes > 0 || journal::was_cut(folder, seq));
    if reach.last < seq && !is_torn {
        return Err(behind(folder, reach.last, Some(seq)));
    }
    let Progress { version, transcript_bytes, .. } = metadata.views;
    let is_whole = transcript.is_some_and(|bytes| bytes >= transcript_bytes);
    let can_be_added_to = version == PROGRESS_VERSION && reach.last == seq && is_whole;
    Ok(match reach.behind.filter(|_| can_be_added_to) {
        Some(since) => Known::Usable { metadata: Box::new(metadata), since },
        None => Known::Unusable { old: Old::Written },
    })
}

fn behind(folder: &SessionFolder, ends: u64, known: Option<u64>) -> StoreError {
    let journal = folder.events();
    StoreError::Behind { ends: journal.exists().then_some(ends), journal, known }
}

fn finish(
    folder: &SessionFolder,
    transcript: Transcript,
    metadata: Option<Metadata>,
    taken: Taken,
) -> Result<Option<Metadata>, StoreError> {
    let Some(mut metadata) = metadata else { return Ok(None) };
    if taken == Taken::All {
        journal::settle(folder)?;
    }
    let written = transcript.close()?;
    let Progress { seq, spent, last_word, straight, .. } = metadata.views;
    metadata.views = Progress { version: PROGRESS_VERSION, seq, spent, last_word, straight, ..written };
    // Not synced: metadata that a power failure took is made again from the journal.
    metadata::write(folder, &metadata, Durability::Rebuildable)?;
    Ok(Some(metadata))
}
