//! What is told about a session after the fact: its name. One record in its journal, written by whoever has its lease.

use amplifier_core::clock::Clock;
use amplifier_core::journal::Journal;
use amplifier_core::redact::redacted;
use amplifier_protocol::event::{Event, SessionDescribed};
use amplifier_protocol::ids::{EventName, SessionId};
use amplifier_protocol::record::{Record, RecordBody};
use serde::Serialize;

use super::{Cut, SessionError, has_journal, index, mark};
use crate::clock::SystemClock;
use crate::journal::{FileJournal, Owner, Repair};
use crate::paths::SessionFolder;
use crate::store::{Metadata, SessionStore, StoreError, metadata_now, metadata_of, update_views, updated};

/// The longest name, in characters.
pub const MAX_NAME_CHARS: usize = 80;

/// A name of a session as it is kept: one line, not empty, not too long.
pub fn checked_name(name: &str) -> Result<String, SessionError> {
    let line = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let refuse = |reason| Err(SessionError::Name { name: name.to_owned(), reason });
    if line.is_empty() {
        return refuse("it is empty");
    }
    if line.chars().any(char::is_control) {
        return refuse("it holds control characters");
    }
    if line.chars().count() > MAX_NAME_CHARS {
        return refuse("it is longer than 80 characters");
    }
    Ok(line)
}

/// A session that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    pub metadata: Metadata,
    /// Why its views do not show it yet. The journal has it, and they are made again from it.
    pub stale: Option<String>,
    /// The torn end of its journal that was cut first.
    pub repair: Option<Repair>,
}

impl Renamed {
    /// What people know it by now.
    pub fn label(&self) -> &str {
        self.metadata.label()
    }
}

/// Gives a session a name. Refused while somebody else has it.
pub fn rename(store: &SessionStore, id: &SessionId, name: &str) -> Result<Renamed, SessionError> {
    let name = Some(checked_name(name)?);
    let folder = store.open_whole(id)?;
    let told = SessionDescribed { name, ..SessionDescribed::default() };
    let (journal, repair) = own(&folder, id, "amplifier session rename")?;
    let end = Cut::at_end(&folder, id)?;
    write(&journal, end, &[event(&told)])?;
    Ok(Renamed { repair, ..refresh(store, &folder)? })
}

/// Takes the session's lease and opens its journal for writing. Tells what had to be cut from its end.
pub(super) fn own(
    folder: &SessionFolder,
    id: &SessionId,
    program: &str,
) -> Result<(FileJournal, Option<Repair>), SessionError> {
    if !has_journal(folder)? {
        return Err(SessionError::NoJournal { id: id.clone(), journal: folder.events() });
    }
    mark::review(folder)?;
    let owner = Owner::this_process(program, SystemClock::default().now());
    let (journal, opened) = FileJournal::open(folder, owner).map_err(SessionError::about(id))?;
    // Before anything is added, so that no view knows a record that was torn.
    match update_views(folder) {
        // A full disk: views that lag are brought up later.
        Err(StoreError::File(_)) if !are_ahead(folder, opened.last_seq) => {}
        updated => updated.map(|_| ())?,
    }
    Ok((journal, opened.repair))
}

/// Whether views know a record that was torn. Nothing may be added then: they would take the next of its number for it.
fn are_ahead(folder: &SessionFolder, last_seq: u64) -> bool {
    metadata_of(folder).is_ok_and(|metadata| metadata.views.seq > last_seq)
}

/// The record of an event, without secrets, as the kernel would make it.
pub(super) fn event<E: Event + Serialize>(event: &E) -> RecordBody {
    let data = serde_json::to_value(event).unwrap_or_default();
    RecordBody::Event { name: EventName::of::<E>(), data: redacted(data) }
}

/// Adds records after the end of a journal, all durable when it returns.
pub(super) fn write(journal: &FileJournal, end: Cut, bodies: &[RecordBody]) -> Result<(), SessionError> {
    let clock = SystemClock::default();
    for (seq, body) in (end.seq + 1..).zip(bodies) {
        journal.append(&Record { seq, ts: clock.now(), turn: end.turn, body: body.clone() })?;
    }
    Ok(journal.sync_now()?)
}

/// Brings the views of a session up to its journal and tells the index. Only the holder of the lease may call it. What the
/// disk has no room for is told and is no failure: the journal has it.
pub(super) fn refresh(store: &SessionStore, folder: &SessionFolder) -> Result<Renamed, SessionError> {
    let (updated, stale) = match updated(folder) {
        Ok(metadata) => (metadata, None),
        Err(StoreError::File(error)) => (None, Some(format!("{error}: {}", error.source))),
        Err(error) => return Err(error.into()),
    };
    let metadata = updated.map_or_else(|| metadata_now(folder), Ok)?;
    index::Index::of(store.home()).note_change(&metadata);
    Ok(Renamed { metadata, stale, repair: None })
}
