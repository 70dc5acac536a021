//! Writes a plan to the disk: every file whole, and all of them or none.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use amplifier_core::contracts::ToolFailure;
use serde_json::Value;

use super::desk::{After, Before, Change};
use super::stamps::{Stamp, hash};
use crate::files::place::{Folders, Place};

/// Makes all changes, in order. When one cannot be made, those before it are taken back. Returns what is there now.
pub(super) fn commit(changes: Vec<Change>) -> Result<Vec<(PathBuf, Option<Stamp>)>, ToolFailure> {
    let mut made: Vec<(PathBuf, Option<Stamp>)> = Vec::new();
    for (done, change) in changes.iter().enumerate() {
        match make(&change.current.real, &change.after) {
            Ok(stamp) => made.push((change.current.real.clone(), stamp)),
            Err(error) => {
                let mut failure = failure(change, &error);
                let left: Vec<_> = changes.iter().take(done).rev().filter_map(take_back).collect();
                if !left.is_empty() {
                    failure.message = format!(
                        "{}; and these changes, made before it, could not be taken back: {}",
                        failure.message,
                        left.join(", ")
                    );
                }
                return Err(failure);
            }
        }
    }
    Ok(made)
}

fn make(real: &Path, after: &After) -> Result<Option<Stamp>, Error> {
    match after {
        After::Gone => {
            Place::reach(real, Folders::Expected)?.remove()?;
            Ok(None)
        }
        After::Bytes(bytes) => {
            let place = Place::reach(real, Folders::Made)?;
            place.replace(bytes)?;
            Ok(Some(Stamp::new(&place.open()?.metadata()?, Some(hash(bytes)))))
        }
    }
}

/// Undoes a change. Returns the path when that is not possible.
fn take_back(change: &Change) -> Option<String> {
    let real = &change.current.real;
    let undone = match (&change.current.before, &change.after) {
        (Before::File { bytes, .. }, _) => {
            Place::reach(real, Folders::Made).and_then(|place| place.replace(bytes))
        }
        (Before::Absent, After::Bytes(_)) => {
            Place::reach(real, Folders::Expected).and_then(|place| place.remove())
        }
        (Before::Absent, After::Gone) => Ok(()),
        (Before::Large { .. } | Before::Folder | Before::Special, _) => {
            Err(Error::from(ErrorKind::Unsupported))
        }
    };
    undone.is_err().then(|| change.current.shown())
}

/// What the model reads when the system says no.
fn failure(change: &Change, error: &Error) -> ToolFailure {
    let number = match error.kind() {
        ErrorKind::IsADirectory => Some(21),
        _ => error.raw_os_error(),
    };
    let reason = error.to_string();
    // The number is told once, and first.
    let reason = reason.split(" (os error").next().unwrap_or(&reason);
    let code = number.map(|number| format!("[Errno {number}] ")).unwrap_or_default();
    let message = format!("OS error writing file: {code}{reason}: '{}'", change.current.shown());
    let mut failure = ToolFailure::new(message).of_kind("OSError");
    if let Some(number) = number {
        failure.details.insert("errno".to_owned(), Value::from(number));
    }
    failure
}
