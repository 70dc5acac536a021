//! Git sources and the cache: which commit, is it there, one fetch at a time.
//!
//! A fetch holds the lock of the name it was asked for, then the lock of the commit, always in that order.

use std::path::PathBuf;

use super::{FetchContext, Fetcher, Freshness, blocking, name_key};
use crate::cache::{EntryRecord, KeyLock, NameRecord, Store};
use crate::error::FetchError;
use crate::git::{CommitId, Remote};
use crate::progress::Stage;
use crate::tree::{Durability, Listing};
use crate::uri::GitUri;

impl Fetcher {
    /// The commit that a git source stands for on the other side, now.
    pub async fn latest_commit(&self, uri: &GitUri, cx: &FetchContext) -> Result<CommitId, FetchError> {
        match uri.pinned() {
            Some(commit) => Ok(commit),
            None => {
                let _place = self.place(&uri.to_string(), cx).await?;
                Remote::new(&self.git, uri, &self.limits, cx).resolve(&self.cache).await
            }
        }
    }

    /// The commit that a git source stood for when it was last fetched, if it is in the cache.
    pub fn cached_commit(&self, uri: &GitUri, cx: &FetchContext) -> Result<Option<CommitId>, FetchError> {
        if let Some(commit) = uri.pinned() {
            return Ok(self.cache.find(Store::Git, commit.as_str()).map(|_| commit));
        }
        let name = name_key(&Remote::new(&self.git, uri, &self.limits, cx).name());
        Ok(self.cache.name(Store::Git, &name)?.and_then(|(record, _)| CommitId::parse(&record.key)))
    }

    /// The commit, and the folder with its files.
    pub(super) async fn repository(
        &self,
        uri: &GitUri,
        cx: &FetchContext,
    ) -> Result<(CommitId, PathBuf), FetchError> {
        let whole = uri.whole();
        let shown = whole.to_string();
        let remote = Remote::new(&self.git, &whole, &self.limits, cx);
        if let Some(commit) = uri.pinned() {
            let path = self.commit(&remote, &commit, &shown, cx).await?;
            return Ok((commit, path));
        }
        let name = name_key(&remote.name());
        if cx.freshness != Freshness::Refresh
            && let Some(known) = self.known(&name)?
        {
            return Ok(known);
        }
        if cx.freshness == Freshness::Offline {
            return Err(FetchError::NotCached { uri: shown });
        }
        self.cache.prepare(Store::Git)?;
        let lock = self.cache.lock_path(Store::Git, &name);
        let _lock = KeyLock::acquire(&lock, self.limits.lock_wait, &shown, cx).await?;
        // Whoever held the lock may have done the work.
        if cx.freshness == Freshness::Reuse
            && let Some(known) = self.known(&name)?
        {
            return Ok(known);
        }
        let place = self.place(&shown, cx).await?;
        let commit = remote.resolve(&self.cache).await?;
        // Given back before the lock of the commit is asked for.
        drop(place);
        let path = self.commit(&remote, &commit, &shown, cx).await?;
        let record = NameRecord {
            source: shown,
            key: commit.as_str().to_owned(),
            validators: crate::cache::Validators::default(),
            resolved_at: self.clock.now(),
        };
        self.cache.remember(Store::Git, &name, &record)?;
        Ok((commit, path))
    }

    fn known(&self, name: &str) -> Result<Option<(CommitId, PathBuf)>, FetchError> {
        let found = self.cache.name(Store::Git, name)?;
        Ok(found.and_then(|(record, path)| Some((CommitId::parse(&record.key)?, path))))
    }

    /// The files of a commit, fetched if they are not there.
    async fn commit(
        &self,
        remote: &Remote<'_>,
        commit: &CommitId,
        shown: &str,
        cx: &FetchContext,
    ) -> Result<PathBuf, FetchError> {
        let key = commit.as_str();
        if let Some(path) = self.cache.find(Store::Git, key) {
            return Ok(path);
        }
        if cx.freshness == Freshness::Offline {
            return Err(FetchError::NotCached { uri: shown.to_owned() });
        }
        self.cache.prepare(Store::Git)?;
        let lock = self.cache.lock_path(Store::Git, key);
        let _lock = KeyLock::acquire(&lock, self.limits.lock_wait, shown, cx).await?;
        if let Some(path) = self.cache.find(Store::Git, key) {
            return Ok(path);
        }
        let _place = self.place(shown, cx).await?;
        let scratch = self.cache.scratch(Store::Git)?;
        let tree = remote.check_out(commit, scratch.path()).await?;
        let (cache, limits, key) = (self.cache.clone(), self.limits.clone(), key.to_owned());
        let (source, fetched_at) = (shown.to_owned(), self.clock.now());
        let path = blocking(move || {
            let listing = Listing::read_with(&tree, &limits, Durability::Synced)
                .map_err(|error| FetchError::Tree { uri: source.clone(), source: error })?;
            let record = EntryRecord::of(&listing, source, fetched_at);
            cache.publish((Store::Git, &key), &tree, (&record, &listing))
        })
        .await?;
        cx.tell(shown, Stage::Done);
        Ok(path)
    }
}
