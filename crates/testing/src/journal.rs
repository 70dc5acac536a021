//! A journal in memory that can be made to fail.

use std::sync::Mutex;

use amplifier_core::journal::{Journal, JournalError};
use amplifier_protocol::record::Record;
use async_trait::async_trait;

use crate::sync::lock;

/// Keeps records in a list and knows which of them were synced.
#[derive(Default)]
pub struct MemoryJournal(Mutex<State>);

#[derive(Default)]
struct State {
    records: Vec<Record>,
    synced: usize,
    syncs: usize,
    failing_append: Option<String>,
    failing_sync: Option<String>,
}

impl MemoryJournal {
    /// An empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every record, in order.
    pub fn records(&self) -> Vec<Record> {
        lock(&self.0).records.clone()
    }

    /// The records that would survive a crash now.
    pub fn durable(&self) -> Vec<Record> {
        let state = lock(&self.0);
        state.records.iter().take(state.synced).cloned().collect()
    }

    /// How often it was synced.
    pub fn sync_count(&self) -> usize {
        lock(&self.0).syncs
    }

    /// Lets every append fail from now on.
    pub fn fail_appends(&self, message: impl Into<String>) {
        lock(&self.0).failing_append = Some(message.into());
    }

    /// Lets every sync fail from now on.
    pub fn fail_syncs(&self, message: impl Into<String>) {
        lock(&self.0).failing_sync = Some(message.into());
    }

    /// Works again.
    pub fn heal(&self) {
        let mut state = lock(&self.0);
        (state.failing_append, state.failing_sync) = (None, None);
    }
}

fn check(failing: &Option<String>) -> Result<(), JournalError> {
    failing.clone().map_or(Ok(()), |message| Err(JournalError { message }))
}

#[async_trait]
impl Journal for MemoryJournal {
    fn append(&self, record: &Record) -> Result<(), JournalError> {
        let mut state = lock(&self.0);
        check(&state.failing_append)?;
        state.records.push(record.clone());
        Ok(())
    }

    async fn sync(&self) -> Result<(), JournalError> {
        let mut state = lock(&self.0);
        check(&state.failing_sync)?;
        state.syncs += 1;
        state.synced = state.records.len();
        Ok(())
    }
}
