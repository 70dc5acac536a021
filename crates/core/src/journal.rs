//! The journal port: where every event and message passes in sequence, and what makes them durable before an effect.
//!
//! The kernel keeps the order; a journal keeps the records. Without one nothing is written and nothing waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use amplifier_protocol::record::{Record, RecordBody};
use amplifier_protocol::time::Timestamp;
use async_trait::async_trait;

use crate::clock::Clock;
use crate::sync::lock;

/// Keeps the records of one session.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Takes a record. Records come in sequence, one at a time; this must not wait for a disk.
    fn append(&self, record: &Record) -> Result<(), JournalError>;

    /// Returns when everything that was appended before the call is durable.
    async fn sync(&self) -> Result<(), JournalError>;
}

/// Why a record could not be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the journal could not be written: {message}")]
pub struct JournalError {
    /// What happened, naming the place.
    pub message: String,
}

/// Gives records their numbers and times and hands them to the journal in that order.
pub(crate) struct Recorder {
    journal: Option<Arc<dyn Journal>>,
    clock: Arc<dyn Clock>,
    sequence: AtomicU64,
    // Held while a number is taken and the record handed over, so that the journal's order is the numbers' order.
    order: Mutex<Option<JournalError>>,
}

impl Recorder {
    pub(crate) fn new(journal: Option<Arc<dyn Journal>>, clock: Arc<dyn Clock>, last_sequence: u64) -> Self {
        Self { journal, clock, sequence: AtomicU64::new(last_sequence), order: Mutex::new(None) }
    }

    /// Whether records go anywhere, so that callers need not build them for nothing.
    pub(crate) fn is_kept(&self) -> bool {
        self.journal.is_some()
    }

    /// Numbers and keeps one record. A failure is remembered and reported by the next [`Recorder::sync`], which stands
    /// before every effect.
    pub(crate) fn record(&self, turn: u64, body: impl FnOnce() -> RecordBody) -> (u64, Timestamp) {
        let Some(journal) = &self.journal else {
            return (self.sequence.fetch_add(1, Ordering::Relaxed) + 1, self.clock.now());
        };
        let body = body();
        let mut failed = lock(&self.order);
        let (seq, ts) = (self.sequence.fetch_add(1, Ordering::Relaxed) + 1, self.clock.now());
        if failed.is_none() {
            *failed = journal.append(&Record { seq, ts, turn, body }).err();
        }
        (seq, ts)
    }

    /// Makes everything recorded so far durable.
    pub(crate) async fn sync(&self) -> Result<(), JournalError> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let failed = lock(&self.order).clone();
        match failed {
            Some(error) => Err(error),
            None => journal.sync().await,
        }
    }

    /// The number of the last record.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence.load(Ordering::Relaxed)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
