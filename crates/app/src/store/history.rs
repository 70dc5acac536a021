//! What a session that goes on begins with. The transcript holds the conversation as it was when the views were last brought
//! up to date, and the metadata what was spent, so only the records after that are read from the journal. Where the views
//! are not what was written, the whole journal is.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

use amplifier_core::history::{History, Replay};
use amplifier_protocol::message::{Message, Messages};

use super::StoreError;
use super::metadata::{self, Progress};
use super::views::usable;
use crate::journal::{Peeker, RecordReader};
use crate::paths::SessionFolder;

/// The history of a session, and how it was read.
pub struct ReadHistory {
    pub history: History,
    pub views: ViewsUse,
}

/// What the views were good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewsUse {
    /// They led to the history.
    Led,
    /// They are right, but the journal says something in its own spelling, or they are missing.
    Unfit,
    /// The transcript is not what was written.
    Damaged,
}

/// Reads the history of a session. Only the holder of its lease gets all of it.
pub fn read_history(folder: &SessionFolder) -> Result<ReadHistory, StoreError> {
    let views = match from_views(folder)? {
        Ok(history) => return Ok(ReadHistory { history, views: ViewsUse::Led }),
        Err(views) => views,
    };
    let mut replay = Replay::default();
    for record in RecordReader::open(folder)? {
        replay.push(&record?);
    }
    Ok(ReadHistory { history: replay.finish(), views })
}

fn from_views(folder: &SessionFolder) -> Result<Result<History, ViewsUse>, StoreError> {
    let Some(metadata) = usable(folder)?.filter(|metadata| !metadata.views.respelled) else {
        return Ok(Err(ViewsUse::Unfit));
    };
    let views = metadata.views;
    let Some(messages) = transcript(folder, views) else { return Ok(Err(ViewsUse::Damaged)) };
    let mut replay = Replay::after(History {
        messages,
        last_sequence: views.seq,
        last_turn: metadata.turns,
        spent: views.spent,
        plan_hash: Some(metadata.plan_hash),
        ..History::default()
    });
    let mut peeker = Peeker::from_seq(folder, views.last_word.max(1))?;
    while let Some(peek) = peeker.next_line()? {
        if peek.seq > views.seq {
            replay.push(&peek.record()?);
        } else if matches!(peek.kind(), "call_started" | "call_finished") {
            replay.recall(&peek.record()?);
        }
    }
    Ok(Ok(replay.finish()))
}

/// What the conversation was at a record, from the transcript alone: for whoever cannot read all of the journal. Nothing where
/// the transcript is not what was written, or spells something in another way than the journal.
pub(crate) fn transcript_of(folder: &SessionFolder) -> Option<(u64, Messages)> {
    let views = metadata::read(folder).ok()?.views;
    let is_ours = (metadata::TRANSCRIPT_VERSION..=metadata::PROGRESS_VERSION).contains(&views.version);
    let is_told = is_ours && views.seq > 0 && !views.respelled;
    Some((views.seq, is_told.then(|| transcript(folder, views))??))
}

/// The messages of the transcript, if it is what was written.
fn transcript(folder: &SessionFolder, views: Progress) -> Option<Messages> {
    let mut reader = BufReader::with_capacity(256 * 1024, File::open(folder.transcript()).ok()?);
    let (mut crc, mut left) = (crc32fast::Hasher::new(), views.transcript_bytes);
    let mut messages = Messages::new();
    let mut line = Vec::new();
    while left > 0 {
        line.clear();
        let bytes = reader.read_until(b'\n', &mut line).ok()? as u64;
        left = left.checked_sub(bytes).filter(|_| bytes > 0)?;
        crc.update(&line);
        messages.push(Arc::new(serde_json::from_slice::<Message>(&line).ok()?));
    }
    (crc.finalize() == views.transcript_crc).then_some(messages)
}
