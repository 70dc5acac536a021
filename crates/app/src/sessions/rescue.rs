//! What can be done about a session whose files are damaged: which of its turns are still whole, and what helps. It reads and
//! mends nothing by itself.

use std::path::Path;

use amplifier_protocol::event::{Event, OrchestratorComplete};

use crate::journal::{BlobError, JournalFileError, LeaseError, Peeker};
use crate::paths::SessionFolder;
use crate::store::StoreError;

/// What helps where the store refused; nothing where only general advice does.
pub(crate) fn cure_of_store(error: &StoreError) -> Option<String> {
    match error {
        StoreError::Behind { journal, .. } => Some(format!(
            "put a copy of `events.jsonl` back, or {}; what was said last stands in `transcript.jsonl` beside it",
            way_out(journal, u64::MAX)
        )),
        StoreError::File(error) => error.cure().map(str::to_owned),
        StoreError::Journal(error) => cure(error),
        _ => None,
    }
}

/// What helps where a journal refused; nothing where only general advice does.
pub(crate) fn cure(error: &JournalFileError) -> Option<String> {
    let (path, line) = match error {
        JournalFileError::Blob { source: BlobError::File(error), .. } if error.cure().is_some() => {
            return error.cure().map(str::to_owned);
        }
        JournalFileError::Damaged { path, line, .. }
        | JournalFileError::LineTooLong { path, line, .. }
        | JournalFileError::Record { path, line, .. }
        | JournalFileError::Blob { path, line, .. } => (path, *line),
        JournalFileError::File(error) | JournalFileError::Lease(LeaseError::File(error)) => {
            return error.cure().map(str::to_owned);
        }
        _ => return None,
    };
    let way_out = way_out(path, line);
    Some(format!(
        "something else changed the file, and it is left as it is: put a copy of it back, or {way_out}"
    ))
}

/// How to go on with what is whole before a record.
fn way_out(journal: &Path, before: u64) -> String {
    let folder = journal.parent().unwrap_or(journal);
    let id = folder.file_name().unwrap_or_default().to_string_lossy();
    match last_whole_turn(&SessionFolder::new(folder), before) {
        Some(turn) => {
            format!("`amplifier session fork {id} --at {turn}` goes on with what is whole, up to turn {turn}")
        }
        None => "begin anew: not one of its turns is whole".to_owned(),
    }
}

/// The last turn that ended before a record and before any damage.
fn last_whole_turn(folder: &SessionFolder, before: u64) -> Option<u64> {
    let mut peeker = Peeker::open(folder).ok()?;
    let mut whole = None;
    // What cannot be read is where the search ends; why is what is being told.
    while let Ok(Some(peek)) = peeker.next_line() {
        if peek.seq >= before {
            break;
        }
        if peek.event() == Some(OrchestratorComplete::NAME) {
            whole = Some(peek.turn);
        }
    }
    whole
}
