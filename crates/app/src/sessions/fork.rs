//! A fork: another session that begins with the same turns. It gets a copy of the journal up to its end, so it can be
//! resumed, rewound, replayed and exported like the one it came from; neither knows of the other's turns after that.
//!
//! It is made in a folder that is no session yet and gets its name when it is whole, so a kill leaves no half of one.

use std::path::Path;

use amplifier_core::clock::Clock;
use amplifier_protocol::event::{ForkPoint, SessionDescribed};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::record::{Record, RecordBody};

use super::describe::{checked_name, event, own, write};
use super::index::{Index, Note};
use super::turns::Cut;
use super::{SessionError, mark};
use crate::clock::SystemClock;
use crate::credentials::Credentials;
use crate::files::{COPY, FileError, create_private_dir, sync_dir};
use crate::journal::{Lease, RecordReader, copy_beginning, verify};
use crate::paths::SessionFolder;
use crate::store::{Metadata, SessionStore, StoreError, check_journal, update_views};

/// How the folder of a session that is not whole yet begins. No id begins with a dot.
pub(super) const UNFINISHED: &str = ".new-";

/// What to fork.
#[derive(Debug, Clone, Default)]
pub struct ForkRequest {
    /// The last turn the fork shares; all of them when left out.
    pub at: Option<u64>,
    /// What the person calls it.
    pub name: Option<String>,
}

/// A fork that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forked {
    pub id: SessionId,
    /// The last turn it shares.
    pub turn: u64,
    pub metadata: Metadata,
}

/// Names a fork that is made.
pub(super) struct Making<'a> {
    pub(super) source: SessionFolder,
    /// The session it comes from.
    pub(super) id: &'a SessionId,
    pub(super) new: SessionId,
    pub(super) name: Option<String>,
}

impl<'a> Making<'a> {
    pub(super) fn of(
        store: &SessionStore,
        id: &'a SessionId,
        name: Option<&str>,
    ) -> Result<Self, SessionError> {
        let name = name.map(checked_name).transpose()?;
        let new = SessionId::generate(SystemClock::default().now());
        Ok(Self { source: store.open(id)?, id, new, name })
    }

    /// Makes the session with what `fill` puts into its folder, which tells the last turn it shares.
    pub(super) fn make(
        &self,
        store: &SessionStore,
        fill: impl FnOnce(&SessionFolder) -> Result<u64, SessionError>,
    ) -> Result<Forked, SessionError> {
        let (home, new) = (store.home(), &self.new);
        create_private_dir(&home.sessions())?;
        let unfinished = SessionFolder::new(home.sessions().join(format!("{UNFINISHED}{new}")));
        create_private_dir(unfinished.dir())?;
        let made = self.fill(&unfinished, fill).and_then(|turn| {
            keep_no_secret(store, &unfinished)?;
            let target = home.session(new);
            std::fs::rename(unfinished.dir(), target.dir()).map_err(FileError::at("name", target.dir()))?;
            sync_dir(&home.sessions())?;
            Ok(turn)
        });
        let turn = made.inspect_err(|_| {
            // The first error is the one worth telling; a folder that stays is swept up by the next cleanup.
            std::fs::remove_dir_all(unfinished.dir()).ok();
        })?;
        let metadata = store.metadata(new)?;
        Index::of(home).note(&[Note::closed(&metadata)]);
        Ok(Forked { id: new.clone(), turn, metadata })
    }

    fn fill(
        &self,
        target: &SessionFolder,
        fill: impl FnOnce(&SessionFolder) -> Result<u64, SessionError>,
    ) -> Result<u64, SessionError> {
        let source = &self.source;
        copy_if_there(&source.mount_plan(), &target.mount_plan())?;
        copy_if_there(&source.prompt(), &target.prompt())?;
        copy_if_there(&source.lock(), &target.lock())?;
        copy_if_there(&source.consent(), &target.consent())?;
        let turn = fill(target)?;
        update_views(target)?;
        Ok(turn)
    }

    /// The first record of the fork: opened under its own id, at the head of a tree of its own.
    pub(super) fn first_record(&self, plan_hash: String) -> Record {
        let body = RecordBody::Opened { session_id: self.new.clone(), parent_id: None, plan_hash };
        Record { seq: 1, ts: SystemClock::default().now(), turn: 0, body }
    }

    /// What the fork is told to be.
    pub(super) fn described(&self, turn: u64) -> RecordBody {
        event(&self.description(turn))
    }

    /// The same with what the views know of the session it comes from: the records that said so may be lost, and a session
    /// that does not know its folder is in no list of it. It stands in for that session, so it has its name.
    pub(super) fn described_as_known(&self, turn: u64, known: Option<Metadata>) -> RecordBody {
        let description = self.description(turn);
        let Some(Metadata { working_dir, bundle, name, .. }) = known else { return event(&description) };
        event(&SessionDescribed {
            working_dir: working_dir.map(|dir| dir.to_string_lossy().into_owned()),
            bundle,
            name: description.name.or(name),
            ..description
        })
    }

    fn description(&self, turn: u64) -> SessionDescribed {
        let forked_from = Some(ForkPoint { session: self.id.clone(), turn });
        SessionDescribed { name: self.name.clone(), forked_from, ..SessionDescribed::default() }
    }
}

/// Makes a session that begins like another one. The other may be in use; what it is doing just now is left out.
pub fn fork(store: &SessionStore, id: &SessionId, request: &ForkRequest) -> Result<Forked, SessionError> {
    let making = Making::of(store, id, request.name.as_deref())?;
    let source = &making.source;
    let cut = cut_of(source, id, request.at).map_err(|error| match check_journal(source) {
        // That records are lost says more than that the turn is not there.
        Err(lost) if matches!(error, SessionError::NoTurn { .. } | SessionError::NoJournal { .. }) => {
            lost.into()
        }
        _ => error,
    });
    let cut = cut.inspect_err(|error| drop(mark::refused_by(source, error)))?;
    making
        .make(store, |target| {
            copy_beginning(source, target, &making.first_record(plan_hash(source, id)?), cut.seq)?;
            let (journal, _) = own(target, &making.new, "amplifier session fork")?;
            write(&journal, cut, &[making.described(cut.turn)])?;
            Ok(cut.turn)
        })
        .map_err(|error| match error {
            // What is wrong with the copy is wrong with what was copied, and that is what somebody can look at.
            SessionError::Journal(_) | SessionError::Store(StoreError::Journal(_)) => {
                verify(source).map_or_else(SessionError::from, |_| error)
            }
            error => error,
        })
        .inspect_err(|error| drop(mark::refused_by(source, error)))
}

fn cut_of(source: &SessionFolder, id: &SessionId, at: Option<u64>) -> Result<Cut, SessionError> {
    if let Some(turn) = at {
        // Who names a turn wants what is whole up to it, whatever became of the rest.
        return Cut::at(source, id, turn);
    }
    check_journal(source)?;
    let end = Cut::at_end(source, id)?;
    let running = !end.ended && Lease::holder(&source.lease()).is_ok_and(|owner| owner.is_some());
    match running {
        // Numbers have no gaps, and a turn that runs has one before it, if only the time before the first.
        true => Cut::at(source, id, end.turn.saturating_sub(1)),
        false => Ok(end),
    }
}

/// A plan that was kept before secrets were hidden is not handed on with them.
fn keep_no_secret(store: &SessionStore, folder: &SessionFolder) -> Result<(), SessionError> {
    // What cannot be read is told by whoever resumes it.
    let Ok(plan) = store.plan(folder) else { return Ok(()) };
    let hidden = Credentials::default().hide_plan(plan.clone());
    if hidden != plan {
        store.write_plan(folder, &hidden)?;
    }
    Ok(())
}

/// The hash of the plan that a session was begun with.
fn plan_hash(source: &SessionFolder, id: &SessionId) -> Result<String, SessionError> {
    let first = RecordReader::open(source)?.next().transpose()?;
    match first.map(|record| record.body) {
        Some(RecordBody::Opened { plan_hash, .. }) => Ok(plan_hash),
        _ => Err(SessionError::NoJournal { id: id.clone(), journal: source.events() }),
    }
}

fn copy_if_there(from: &Path, to: &Path) -> Result<(), FileError> {
    match std::fs::copy(from, to) {
        Ok(_) => std::fs::File::open(to).and_then(|file| file.sync_all()).map_err(FileError::at("sync", to)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(FileError::at(COPY, from)(error)),
    }
}
