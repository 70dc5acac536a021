//! The journal of a session on disk: `events.jsonl`, one line a record, and what surrounds it.
//!
//! [`FileJournal`] is the one writer, [`RecordReader`] and [`Follower`] are for anybody. The format, by example:
//! `docs/reference/journal.md`. What the records mean is not decided here; views of them are in `store`.

mod around;
mod blobs;
mod copy;
mod error;
mod fold;
mod follower;
mod index;
mod lease;
mod line;
mod lines;
mod peek;
mod pieces;
mod recover;
mod secrets;
mod sink;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use amplifier_core::journal::{Journal, JournalError};
use amplifier_protocol::record::{Record, RecordBody};
use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::watch;

pub use around::{Around, Fault, Gap, Passage};
pub use copy::copy_beginning;
pub use error::{BlobError, Damage, JournalFileError};
pub use follower::Follower;
pub use lease::{Lease, LeaseError, Owner, last_owner};
pub use lines::{MAX_LINE, RecordReader};
pub use peek::{Peek, Peeker};
pub use recover::{Repair, Verified, verify};
pub(crate) use recover::{reach, settle, was_cut};
pub use secrets::Secrets;
pub(crate) use secrets::{HIDE, HIDE_EVENT, HideInEvents, HideSecrets};

use crate::files::{FileError, create_private_dir, private, sweep_temps};
use crate::paths::SessionFolder;
use error::refusal;
use index::Entry;
use pieces::Pieces;
use sink::{Batch, Sink};

/// Beyond this, lines are handed to the operating system without waiting for a sync.
const SPILL_BYTES: usize = 256 * 1024;
/// Beyond this, `append` waits for the disk: memory is bounded, whatever a module floods us with.
const FULL_BYTES: usize = 16 * 1024 * 1024;

/// The one writer of a session's journal. Dropping it writes what still waits and gives up the lease.
///
/// `append` fills a buffer; `sync` writes and syncs it on a thread for blocking work. Callers that come while a sync
/// runs share the next one. After the first error of the disk every call fails with that error: what a disk kept of a
/// failed write is unknown until the journal is opened again.
pub struct FileJournal {
    shared: Arc<Shared>,
    secrets: Secrets,
    pieces: Pieces,
}

/// How far a journal is durable, as long as it is open.
#[derive(Clone)]
pub(crate) struct DurableMark {
    shared: Weak<Shared>,
}

impl DurableMark {
    /// The last record that survives a power failure; nothing once the journal is closed.
    pub(crate) fn seq(&self) -> Option<u64> {
        Some(lock(&self.shared.upgrade()?.state).durable_seq)
    }
}

/// What opening found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The last record in the journal; 0 when it is new.
    pub last_seq: u64,
    /// Which holder of the lease this is.
    pub generation: u64,
    /// The torn last line that was cut, if there was one.
    pub repair: Option<Repair>,
}

struct Shared {
    state: Mutex<State>,
    // Held while lines are taken from the state and written, so that their order in the file is their order here.
    // Taken before `state` where both are needed.
    sink: Mutex<Sink>,
    rounds: watch::Sender<u64>,
}

struct State {
    waiting: Batch,
    last_seq: u64,
    durable_seq: u64,
    syncing: bool,
    failed: Option<JournalError>,
}

impl FileJournal {
    /// Takes the lease, repairs a torn end and opens the journal for writing, making folder and file where needed.
    ///
    /// Reads only the part after the last index entry. Blocks; call it where blocking is fine.
    pub fn open(folder: &SessionFolder, owner: Owner) -> Result<(Self, Opened), JournalFileError> {
        create_private_dir(folder.dir())?;
        let lease = Lease::acquire(&folder.lease(), owner)?;
        sweep_temps(folder.dir());
        let path = folder.events();
        let file = private().append(true).create(true).open(&path).map_err(FileError::at("open", &path))?;
        let recovered = recover::recover(folder)?;
        let opened =
            Opened { last_seq: recovered.last_seq, generation: lease.generation(), repair: recovered.repair };
        let sink = Sink {
            folder: folder.clone(),
            file,
            lease,
            blobs: blobs::Blobs::new(folder.blobs()),
            end: Entry { seq: recovered.last_seq + 1, offset: recovered.len },
            spacing: recovered.spacing,
            entries: Vec::new(),
            // What a killed writer left, lines and names, may be in memory only; the first sync makes it durable too.
            unsynced: recovered.len > 0,
            unnamed: true,
        };
        let shared = Arc::new(Shared::new(sink, recovered.last_seq));
        Ok((Self { shared, secrets: Secrets::default(), pieces: Pieces::default() }, opened))
    }

    /// The same journal, which writes none of these values down.
    #[must_use]
    pub fn hiding(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// Whoever wants to know how far the journal is durable, without keeping it open.
    pub(crate) fn mark(&self) -> DurableMark {
        DurableMark { shared: Arc::downgrade(&self.shared) }
    }

    /// The body of an event without what is part of a key; nothing where it stays as it is.
    fn without_pieces(&self, body: &RecordBody) -> Option<RecordBody> {
        let RecordBody::Event { name, data } = body else { return None };
        let text = self.pieces.hide(name.as_str(), data, &self.secrets)?;
        let mut data = data.clone();
        data.as_object_mut()?.insert("text".to_owned(), Value::from(text));
        Some(RecordBody::Event { name: name.clone(), data })
    }

    /// Writes what waits and makes it durable. Blocks; call it where blocking is fine.
    pub fn sync_now(&self) -> Result<(), JournalError> {
        self.shared.flush(Until::Durable)
    }
}

impl FileJournal {
    /// Writes a record without the keys that are known, and shows it as it is written.
    pub(crate) fn append_shown(
        &self,
        record: &Record,
        show: impl FnOnce(&Record),
    ) -> Result<(), JournalError> {
        let whole = self.without_pieces(&record.body);
        let said = whole.as_ref().unwrap_or(&record.body);
        let body = line::body_text(said).map_err(|error| refusal(&error))?;
        let hidden = self.secrets.hide(said, &body).map_err(|error| refusal(&error))?;
        let (body, said) = match hidden {
            Some((text, hidden)) => (text, Some(hidden)),
            None => (body, whole),
        };
        self.write(record, body)?;
        match said {
            Some(body) => show(&Record { body, ..record.clone() }),
            None => show(record),
        }
        Ok(())
    }

    fn write(&self, record: &Record, body: String) -> Result<(), JournalError> {
        let (body, blobs) = fold::fold(body);
        let line = line::write(record, &body);
        let waiting = {
            let mut state = lock(&self.shared.state);
            state.accept(record)?;
            let batch = &mut state.waiting;
            batch.lines.extend_from_slice(line.as_bytes());
            batch.count += 1;
            for blob in blobs {
                if batch.blobs.iter().all(|known| known.hash != blob.hash) {
                    batch.blob_bytes += blob.bytes.len();
                    batch.blobs.push(blob);
                }
            }
            batch.bytes()
        };
        self.shared.spill(waiting)
    }
}

#[async_trait]
impl Journal for FileJournal {
    fn append(&self, record: &Record) -> Result<(), JournalError> {
        self.append_shown(record, |_| {})
    }

    async fn sync(&self) -> Result<(), JournalError> {
        let target = lock(&self.shared.state).last_seq;
        let mut rounds = self.shared.rounds.subscribe();
        loop {
            rounds.borrow_and_update();
            match self.shared.next_step(target) {
                SyncStep::Done(result) => return result,
                SyncStep::Lead => run_blocking(Round { shared: Arc::clone(&self.shared) }),
                SyncStep::Wait => {}
            }
            // The sender lives in `shared`, which we hold, so this only ends with a finished round.
            if rounds.changed().await.is_err() {
                return Err(JournalError { message: "the journal was closed".to_owned() });
            }
        }
    }
}

/// One write and sync for all who wait. Ending it, even without having run, wakes them.
struct Round {
    shared: Arc<Shared>,
}

impl Drop for Round {
    fn drop(&mut self) {
        lock(&self.shared.state).syncing = false;
        self.shared.rounds.send_modify(|round| *round = round.wrapping_add(1));
    }
}

fn run_blocking(round: Round) {
    let run = move || {
        // The result is in the state, where every waiter reads it.
        round.shared.flush(Until::Durable).ok();
    };
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(run)),
        Err(_) => run(),
    }
}

enum SyncStep {
    Done(Result<(), JournalError>),
    Lead,
    Wait,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Written,
    Durable,
}

impl State {
    fn accept(&mut self, record: &Record) -> Result<(), JournalError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let expected = self.last_seq + 1;
        if record.seq != expected {
            return Err(refusal(&Damage::Sequence { expected, found: record.seq }));
        }
        if record.seq == 1 && !matches!(record.body, RecordBody::Opened { .. }) {
            return Err(refusal(&Damage::NotOpened));
        }
        self.last_seq = expected;
        Ok(())
    }
}

impl Shared {
    fn new(sink: Sink, last_seq: u64) -> Self {
        let durable_seq = if sink.unsynced { 0 } else { last_seq };
        let state = State { waiting: Batch::default(), last_seq, durable_seq, syncing: false, failed: None };
        Self { state: Mutex::new(state), sink: Mutex::new(sink), rounds: watch::Sender::new(0) }
    }

    fn next_step(&self, target: u64) -> SyncStep {
        let mut state = lock(&self.state);
        if let Some(error) = &state.failed {
            SyncStep::Done(Err(error.clone()))
        } else if state.durable_seq >= target {
            SyncStep::Done(Ok(()))
        } else if std::mem::replace(&mut state.syncing, true) {
            SyncStep::Wait
        } else {
            SyncStep::Lead
        }
    }

    /// Keeps the buffer bounded. Lines without large values go to the operating system at once; large values wait for
    /// the next sync, because they must be durable before their line is written, unless memory is full.
    fn spill(&self, waiting: usize) -> Result<(), JournalError> {
        if waiting <= SPILL_BYTES {
            return Ok(());
        }
        if waiting > FULL_BYTES {
            return self.flush(Until::Written);
        }
        // A sync that runs now holds the sink; appending does not wait for it.
        match self.sink.try_lock() {
            Ok(sink) if lock(&self.state).waiting.blobs.is_empty() => self.flush_into(sink, Until::Written),
            Ok(_) | Err(TryLockError::WouldBlock) => Ok(()),
            Err(TryLockError::Poisoned(sink)) => self.flush_into(sink.into_inner(), Until::Written),
        }
    }

    fn flush(&self, until: Until) -> Result<(), JournalError> {
        self.flush_into(lock(&self.sink), until)
    }

    fn flush_into(&self, mut sink: MutexGuard<'_, Sink>, until: Until) -> Result<(), JournalError> {
        let batch = {
            let mut state = lock(&self.state);
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            std::mem::take(&mut state.waiting)
        };
        let done = sink.write(&batch).and_then(|()| match until {
            Until::Durable => sink.sync().map(Some),
            Until::Written => Ok(None),
        });
        let mut state = lock(&self.state);
        match done {
            Ok(durable) => {
                state.durable_seq = durable.unwrap_or(state.durable_seq);
                Ok(())
            }
            Err(error) => Err(state.failed.insert(refusal(&error)).clone()),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // An orderly end without a sync loses nothing short of a power failure. Nobody is left to tell of an error.
        self.flush(Until::Written).ok();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What these guard is valid after each assignment, so a panic elsewhere is no reason to stop writing.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "journal/journal_tests.rs"]
mod tests;
