//! A history that keeps no keys: what is typed is kept on the disk, and the keys that the program knows are not.

use std::sync::{Arc, Mutex, PoisonError};

use amplifier_app::journal::Secrets;
use reedline::{History, HistoryItem, HistoryItemId, HistorySessionId, Result, SearchQuery};

/// What a history may not hold: the keys of every session that the chat was in.
#[derive(Clone, Default)]
pub struct Unsaid(Arc<Mutex<Vec<Secrets>>>);

impl Unsaid {
    pub fn add(&self, secrets: Secrets) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(secrets);
    }

    fn hide_in(&self, mut item: HistoryItem) -> HistoryItem {
        for secrets in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            item.command_line = secrets.hidden(&item.command_line).into_owned();
        }
        item
    }
}

/// A history, and what it may not hold.
pub struct Discreet<H> {
    pub inner: H,
    pub unsaid: Unsaid,
}

impl<H: History> History for Discreet<H> {
    fn save(&mut self, item: HistoryItem) -> Result<HistoryItem> {
        self.inner.save(self.unsaid.hide_in(item))
    }

    fn load(&self, id: HistoryItemId) -> Result<HistoryItem> {
        self.inner.load(id)
    }

    fn count(&self, query: SearchQuery) -> Result<i64> {
        self.inner.count(query)
    }

    fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>> {
        self.inner.search(query)
    }

    fn update(&mut self, id: HistoryItemId, updater: &dyn Fn(HistoryItem) -> HistoryItem) -> Result<()> {
        self.inner.update(id, &|item| self.unsaid.hide_in(updater(item)))
    }

    fn clear(&mut self) -> Result<()> {
        self.inner.clear()
    }

    fn delete(&mut self, id: HistoryItemId) -> Result<()> {
        self.inner.delete(id)
    }

    fn sync(&mut self) -> std::io::Result<()> {
        self.inner.sync()
    }

    fn session(&self) -> Option<HistorySessionId> {
        self.inner.session()
    }
}
