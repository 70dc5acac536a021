//! `damaged.json` in a session's folder: that its journal was found to be damaged, and where. Whoever comes upon the damage
//! writes it, and who reads the journal and finds it whole removes it; lists show it, since they read no journal. What
//! cannot be written costs a list a word and is no reason to fail.

use amplifier_core::error::chain;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::reading::Damaged;
use super::{SessionError, rescue};
use crate::files::{Durability, write_atomic};
use crate::journal::verify;
use crate::paths::SessionFolder;
use crate::store::{StoreError, check_journal};

/// How many places are written down.
const PLACES: usize = 20;

/// A damaged place as it is written down and as programs are told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedPlace {
    /// Nothing where it is no line that is wrong: the file may not be readable at all.
    pub line: Option<u64>,
    pub cause: String,
}

/// What programs are told of damage.
pub fn damaged_json(damaged: &[Damaged]) -> Value {
    damaged.iter().map(|one| json!(DamagedPlace { line: Some(one.line), cause: chain(&one.error) })).collect()
}

/// What is known to be wrong with a session; nothing where nothing is.
pub(super) fn of(folder: &SessionFolder) -> Vec<DamagedPlace> {
    // A mark is a view: one that cannot be read says nothing.
    std::fs::read(folder.damage())
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default()
}

/// Writes down what a reading found. One that found nothing need not have read everything.
pub fn note(folder: &SessionFolder, damaged: &[Damaged]) {
    match damaged {
        [] => drop(review(folder)),
        damaged => write(folder, &damaged_json(damaged.get(..PLACES).unwrap_or(damaged))),
    }
}

/// Writes down why a session was refused, if its journal is why.
pub(crate) fn refused(folder: &SessionFolder, error: &StoreError) {
    write_cause(folder, rescue::line_of(error), error);
}

/// The same, for whoever did something else with it than to open it.
pub(super) fn refused_by(folder: &SessionFolder, error: &SessionError) -> DamagedPlace {
    let line = match error {
        SessionError::Store(error) => rescue::line_of(error),
        SessionError::Journal(error) => rescue::line_of_journal(error),
        _ => None,
    };
    write_cause(folder, line, error)
}

fn write_cause(
    folder: &SessionFolder,
    line: Option<u64>,
    error: &(dyn std::error::Error + 'static),
) -> DamagedPlace {
    let place = DamagedPlace { line, cause: chain(error) };
    if line.is_some() {
        write(folder, &json!([place]));
    }
    place
}

/// Looks again at a session that was found to be damaged: a copy may have been put back.
pub(crate) fn review(folder: &SessionFolder) -> Result<(), StoreError> {
    if folder.damage().exists() {
        check_journal(folder)?;
        verify(folder)?;
        std::fs::remove_file(folder.damage()).ok();
    }
    Ok(())
}

fn write(folder: &SessionFolder, places: &Value) {
    let text = format!("{places:#}\n");
    let is_known = std::fs::read(folder.damage()).is_ok_and(|known| known == text.as_bytes());
    if !is_known {
        write_atomic(&folder.damage(), text.as_bytes(), Durability::Rebuildable).ok();
    }
}
