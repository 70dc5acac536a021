//! A history that keeps no keys: what is typed is kept on the disk, and the keys that the program knows are not.

use amplifier_app::journal::Secrets;
use reedline::{History, HistoryItem, HistoryItemId, HistorySessionId, Result, SearchQuery};

/// A history, and what it may not hold.
pub struct Discreet<H> {
    inner: H,
    secrets: Secrets,
}

impl<H: History> Discreet<H> {
    pub fn new(inner: H, secrets: Secrets) -> Self {
        Self { inner, secrets }
    }

    fn hidden(&self, mut item: HistoryItem) -> HistoryItem {
        item.command_line = self.secrets.hidden(&item.command_line).into_owned();
        item
    }
}

impl<H: History> History for Discreet<H> {
    fn save(&mut self, item: HistoryItem) -> Result<HistoryItem> {
        let item = self.hidden(item);
        self.inner.save(item)
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
        let secrets = self.secrets.clone();
        self.inner.update(id, &|item| {
            let mut item = updater(item);
            item.command_line = secrets.hidden(&item.command_line).into_owned();
            item
        })
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
