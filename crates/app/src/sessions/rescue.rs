//! What can be done about a session whose files are damaged: which of its turns are still whole, and what helps. It reads and
//! mends nothing by itself.

use std::io::ErrorKind;
use std::path::Path;

use amplifier_protocol::event::{Event, OrchestratorComplete};

use super::turns::turns_around;
use crate::files::{A_FOLDER, ENTER, FileError};
use crate::journal::{BlobError, JournalFileError, LeaseError, Peeker};
use crate::paths::SessionFolder;
use crate::spelling::quoted;
use crate::store::StoreError;

/// What helps where the store refused; nothing where only general advice does.
pub(crate) fn cure_of_store(error: &StoreError) -> Option<String> {
    match error {
        StoreError::Behind { journal, .. } => {
            Some(format!("put a copy of `events.jsonl` back, or {}", way_out(journal, u64::MAX)))
        }
        StoreError::File(error) => cure_of_file(error),
        StoreError::Journal(error) => cure(error),
        _ => None,
    }
}

/// What helps where a file of a session could not be used; nothing where only general advice does.
pub(crate) fn cure_of_file(error: &FileError) -> Option<String> {
    let folder = match error.action {
        ENTER => Some(error.path.as_path()),
        _ => error.path.parent(),
    };
    let is_closed = |folder: &&Path| {
        std::fs::metadata(folder.join(".")).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
    };
    match folder.filter(is_closed) {
        Some(folder) => Some(opened_by(folder)),
        None => error.cure().map(str::to_owned),
    }
}

/// Who can open the folder of a session that may not be entered. A command that was run as root leaves such ones.
#[cfg(unix)]
fn opened_by(folder: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let (me, path) = (rustix::process::geteuid().as_raw(), quoted(folder));
    match std::fs::metadata(folder).map(|about| about.uid()) {
        Ok(owner) if owner != me => {
            format!(
                "it belongs to user {owner}, this is user {me}: `chown -R {me} {path}`, by root, makes it yours"
            )
        }
        _ => format!("`chmod u+rwx {path}` opens it for you"),
    }
}

#[cfg(not(unix))]
fn opened_by(folder: &Path) -> String {
    format!("`{}` has to be opened for you by whoever it belongs to", quoted(folder))
}

/// What helps where a journal refused; nothing where only general advice does.
pub(crate) fn cure(error: &JournalFileError) -> Option<String> {
    let (path, before, what) = match error {
        JournalFileError::Blob { path, line, source: BlobError::File(error) } if error.is_folder() => {
            return Some(format!("{A_FOLDER}; or {}", way_out(path, *line)));
        }
        JournalFileError::Blob { source: BlobError::File(error), .. } if error.cure().is_some() => {
            return cure_of_file(error);
        }
        JournalFileError::Blob { path, line, .. } => (path, *line, "the files in `blobs/`"),
        JournalFileError::Damaged { path, line, .. }
        | JournalFileError::LineTooLong { path, line, .. }
        | JournalFileError::Record { path, line, .. } => (path, *line, "the file"),
        JournalFileError::File(error) | JournalFileError::Lease(LeaseError::File(error)) => {
            return cure_of_file(error);
        }
        _ => return None,
    };
    Some(format!(
        "something else changed {what}, and all is left as it is: put a copy back, or {}",
        way_out(path, before)
    ))
}

/// The line of a journal that is damaged, or where it ends too early; nothing where it is not the journal that is wrong.
pub(super) fn line_of(error: &StoreError) -> Option<u64> {
    match error {
        StoreError::Behind { ends, .. } => Some(ends.unwrap_or(0) + 1),
        StoreError::Journal(error) => line_of_journal(error),
        _ => None,
    }
}

pub(super) fn line_of_journal(error: &JournalFileError) -> Option<u64> {
    match error {
        JournalFileError::Damaged { line, .. }
        | JournalFileError::LineTooLong { line, .. }
        | JournalFileError::Record { line, .. }
        | JournalFileError::Blob { line, .. } => Some(*line),
        _ => None,
    }
}

/// How to go on with what can be read, and with what comes before a record.
fn way_out(journal: &Path, before: u64) -> String {
    let folder = SessionFolder::new(journal.parent().unwrap_or(journal));
    let id = folder.dir().file_name().unwrap_or_default().to_string_lossy();
    // What cannot be read is what is being told.
    let turns = turns_around(&folder).map(|(turns, _)| turns).unwrap_or_default();
    let transcript = folder.transcript();
    if turns.is_empty() {
        let has_words = std::fs::metadata(&transcript).is_ok_and(|transcript| transcript.len() > 0);
        return match has_words {
            true => format!("begin anew: what was said stands in `{}`", transcript.display()),
            false => "begin anew: nothing of it can be read".to_owned(),
        };
    }
    let salvage = format!("`amplifier session fork {id} --salvage` goes on with all that can be read");
    let whole: Vec<u64> = turns.iter().filter(|turn| turn.is_whole()).map(|turn| turn.number).collect();
    let whole = are_whole(&whole);
    match last_whole_turn(&folder, before) {
        Some(turn) => format!(
            "{salvage} ({whole}), `amplifier session fork {id} --at {turn}` with what comes before the damage"
        ),
        None => format!("{salvage} ({whole})"),
    }
}

/// Which turns are whole, neighbours together: a session may have hundreds.
fn are_whole(turns: &[u64]) -> String {
    let ranges = turns.chunk_by(|one, next| one + 1 == *next).filter_map(|turns| {
        Some(match (turns.first()?, turns.last()?) {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first} to {last}"),
        })
    });
    match (turns, ranges.collect::<Vec<_>>().as_slice()) {
        ([_], [turn]) => format!("turn {turn} is whole"),
        (_, [turns]) => format!("turns {turns} are whole"),
        (_, [first @ .., last]) => format!("turns {} and {last} are whole", first.join(", ")),
        (_, []) => "no turn is whole".to_owned(),
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

#[cfg(test)]
mod tests {
    use super::are_whole;

    #[test]
    fn turns_that_are_whole_are_told_in_few_words() {
        assert_eq!(are_whole(&[]), "no turn is whole");
        assert_eq!(are_whole(&[3]), "turn 3 is whole");
        assert_eq!(are_whole(&[2, 3]), "turns 2 to 3 are whole");
        assert_eq!(are_whole(&[1, 3]), "turns 1 and 3 are whole");
        assert_eq!(are_whole(&[1, 2, 3, 5, 8, 9]), "turns 1 to 3, 5 and 8 to 9 are whole");
    }
}
