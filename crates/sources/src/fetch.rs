//! The front door: a source becomes a path on this machine, fetched once and kept.
//!
//! What a name stood for is remembered: a branch that was fetched is used again without asking, until a refresh is asked
//! for. A pinned commit that cannot be had is an error, never something near it.

mod download;
mod repository;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use amplifier_core::cancel::{CancelLevel, CancelToken};
use amplifier_core::clock::Clock;
use sha2::{Digest, Sha256};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::cache::{Cache, Store};
use crate::error::{Drift, FetchError};
pub use crate::file::Base;
use crate::file::{self, Place};
use crate::git::{CommitId, Git};
use crate::limits::Limits;
use crate::lock::LockedSource;
use crate::progress::{Progress, Report, Silent, Stage};
use crate::tree::{ContentHash, Listing};
use crate::uri::SourceUri;

/// Whether what is in the cache will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Freshness {
    /// What was fetched before is used; only what is missing is fetched.
    #[default]
    Reuse,
    /// Names are asked again; what they stand for now is fetched if it is missing.
    Refresh,
    /// Nothing is fetched or asked.
    Offline,
}

/// What one fetch is made with.
#[derive(Clone)]
pub struct FetchContext {
    pub base: Base,
    pub freshness: Freshness,
    pub progress: Arc<dyn Progress>,
    /// Any level of it stops the fetch, with every process it started.
    pub cancel: CancelToken,
}

impl FetchContext {
    /// Paths relative to the base, what is cached will do, nobody listens and nobody cancels.
    pub fn new(base: Base) -> Self {
        Self { base, freshness: Freshness::Reuse, progress: Arc::new(Silent), cancel: CancelToken::new() }
    }

    pub(crate) fn tell(&self, source: &str, stage: Stage) {
        self.progress.report(&Report { source: source.to_owned(), stage });
    }
}

/// What a source became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// What was asked for: a folder, or a file.
    pub path: PathBuf,
    /// The whole it is a part of: the repository, the archive, the download, or the bundle's folder on this machine.
    pub root: PathBuf,
    pub identity: Identity,
}

/// What exactly was got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// A place on this machine, which may change at any time.
    Local,
    /// A commit, and the hash of its files.
    Commit { commit: CommitId, content_hash: ContentHash },
    /// A download or an archive, by the hash of what it held.
    Content { content_hash: ContentHash },
}

/// Fetches sources into a cache.
pub struct Fetcher {
    cache: Cache,
    git: Git,
    limits: Limits,
    clock: Arc<dyn Clock>,
    client: OnceLock<reqwest::Client>,
    places: Semaphore,
}

impl Fetcher {
    pub fn new(cache: Cache, git: Git, clock: Arc<dyn Clock>) -> Self {
        let limits = Limits::default();
        let places = Semaphore::new(limits.at_once);
        Self { cache, git, limits, clock, client: OnceLock::new(), places }
    }

    /// Other bounds than the usual ones.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        let places = Semaphore::new(limits.at_once.max(1));
        Self { limits, places, ..self }
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Gets a source. Names have to be turned into places before.
    pub async fn fetch(&self, uri: &SourceUri, cx: &FetchContext) -> Result<Fetched, FetchError> {
        match uri {
            SourceUri::File(uri) => {
                let (uri, base) = (uri.clone(), cx.base.clone());
                let Place { path, root } = blocking(move || file::locate(&uri, &base)).await?;
                Ok(Fetched { path, root, identity: Identity::Local })
            }
            SourceUri::Git(git) => {
                let (commit, root) = self.repository(git, cx).await?;
                let content_hash = self.recorded_hash(Store::Git, commit.as_str(), &root).await?;
                part_of(root, uri, Identity::Commit { commit, content_hash })
            }
            SourceUri::Http(http) => {
                let (root, content_hash) = self.download(http, cx).await?;
                file_of(root, uri, Identity::Content { content_hash })
            }
            SourceUri::Zip(zip) => {
                let (root, content_hash) = self.archive(zip, cx).await?;
                part_of(root, uri, Identity::Content { content_hash })
            }
            SourceUri::Namespaced { .. } | SourceUri::Named { .. } => {
                Err(FetchError::NotALocation { uri: uri.to_string() })
            }
        }
    }

    /// Gets a source exactly as a lock has it: the locked commit instead of the ref, and content that is read again and
    /// compared. Anything else is drift.
    pub async fn fetch_locked(
        &self,
        uri: &SourceUri,
        locked: &LockedSource,
        cx: &FetchContext,
    ) -> Result<Fetched, FetchError> {
        let fetched = match (uri, &locked.commit) {
            (SourceUri::Git(git), Some(commit)) => {
                self.fetch(&SourceUri::Git(git.at(commit.as_str())), cx).await?
            }
            (SourceUri::Http(_) | SourceUri::Zip(_), _) => self.fetch_content(uri, locked, cx).await?,
            _ => self.fetch(uri, cx).await?,
        };
        let found = self.content_hash(&fetched).await?;
        if found == locked.content_hash {
            return Ok(fetched);
        }
        // A commit has one content, and a download is kept under the hash of what it was.
        let key = match &fetched.identity {
            Identity::Commit { commit, .. } => Some(commit.as_str()),
            Identity::Content { content_hash } => {
                Some(content_hash.hex()).filter(|_| *content_hash == locked.content_hash)
            }
            Identity::Local => None,
        };
        let locked = locked.content_hash.clone();
        let what = match key {
            Some(key) => Drift::Cache { key: key.to_owned(), locked, found },
            None => Drift::Content { locked, found },
        };
        Err(FetchError::Drift { uri: uri.to_string(), what })
    }

    /// The hash of what was got, read again: of the whole for what is in the cache, of the path for this machine's files.
    pub async fn content_hash(&self, fetched: &Fetched) -> Result<ContentHash, FetchError> {
        let path = match fetched.identity {
            Identity::Local => fetched.path.clone(),
            Identity::Commit { .. } | Identity::Content { .. } => fetched.root.clone(),
        };
        self.hash_of(&path).await
    }

    /// What a lock has to say about something that was got. What is in the cache must still be what was fetched.
    pub async fn locked(&self, fetched: &Fetched) -> Result<LockedSource, FetchError> {
        let found = self.content_hash(fetched).await?;
        let (commit, recorded) = match &fetched.identity {
            Identity::Commit { commit, content_hash } => (Some(commit.as_str()), Some(content_hash)),
            Identity::Content { content_hash } => (None, Some(content_hash)),
            Identity::Local => (None, None),
        };
        if let Some(expected) = recorded.filter(|recorded| **recorded != found) {
            let key = commit.unwrap_or_else(|| expected.hex()).to_owned();
            return Err(FetchError::CacheChanged { key, expected: expected.clone(), found });
        }
        Ok(LockedSource::new(commit.map(str::to_owned), found))
    }

    /// The locked content, from the cache when it is there under any name.
    async fn fetch_content(
        &self,
        uri: &SourceUri,
        locked: &LockedSource,
        cx: &FetchContext,
    ) -> Result<Fetched, FetchError> {
        let Some(root) = self.cache.find(Store::Fsspec, locked.content_hash.hex()) else {
            // What a remembered name leads to is not what was locked; only the other side can still have it.
            let fresh = match cx.freshness {
                Freshness::Offline => return Err(FetchError::NotCached { uri: uri.to_string() }),
                Freshness::Reuse | Freshness::Refresh => {
                    FetchContext { freshness: Freshness::Refresh, ..cx.clone() }
                }
            };
            return self.fetch(uri, &fresh).await;
        };
        let identity = Identity::Content { content_hash: locked.content_hash.clone() };
        match uri {
            SourceUri::Http(_) => file_of(root, uri, identity),
            _ => part_of(root, uri, identity),
        }
    }

    /// Waits for the right to start programs and talk to others. It is asked for last, with every lock already held, so
    /// that whoever has it waits for nobody.
    async fn place(&self, shown: &str, cx: &FetchContext) -> Result<SemaphorePermit<'_>, FetchError> {
        tokio::select! {
            place = self.places.acquire() => {
                place.map_err(|error| FetchError::Worker { message: error.to_string() })
            }
            () = cx.cancel.cancelled(CancelLevel::Graceful) => {
                Err(FetchError::Cancelled { uri: shown.to_owned() })
            }
        }
    }

    async fn recorded_hash(&self, store: Store, key: &str, root: &Path) -> Result<ContentHash, FetchError> {
        match self.cache.record(store, key)? {
            Some(record) => Ok(record.content_hash),
            None => self.hash_of(root).await,
        }
    }

    async fn hash_of(&self, path: &Path) -> Result<ContentHash, FetchError> {
        let (path, limits) = (path.to_owned(), self.limits.clone());
        blocking(move || {
            let listing = Listing::read(&path, &limits);
            let uri = || path.display().to_string();
            listing.map(|listing| listing.hash()).map_err(|source| FetchError::Tree { uri: uri(), source })
        })
        .await
    }
}

fn part_of(root: PathBuf, uri: &SourceUri, identity: Identity) -> Result<Fetched, FetchError> {
    let root = resolved(root)?;
    let path = match uri.subdirectory() {
        Some(part) => file::within(&root, part, &uri.to_string())?,
        None => root.clone(),
    };
    Ok(Fetched { path, root, identity })
}

/// A download, which is one file.
fn file_of(root: PathBuf, uri: &SourceUri, identity: Identity) -> Result<Fetched, FetchError> {
    if let Some(part) = uri.subdirectory() {
        let (uri, subdirectory) = (uri.to_string(), part.to_string());
        return Err(FetchError::SubdirectoryMissing { uri, subdirectory });
    }
    let root = resolved(root)?;
    Ok(Fetched { path: only_file(&root)?, root, identity })
}

/// Links in the way to the cache resolved, since parts of it are found that way too.
fn resolved(root: PathBuf) -> Result<PathBuf, FetchError> {
    root.canonicalize().map_err(FetchError::at("look for", &root))
}

/// The one file of a download.
fn only_file(root: &Path) -> Result<PathBuf, FetchError> {
    let mut entries = std::fs::read_dir(root).map_err(FetchError::at("read", root))?;
    match entries.next() {
        Some(entry) => Ok(entry.map_err(FetchError::at("read", root))?.path()),
        None => Err(FetchError::Missing { path: root.to_owned() }),
    }
}

/// The name under which the cache remembers something.
fn name_key(name: &str) -> String {
    crate::tree::hex(&Sha256::digest(name)).chars().take(32).collect()
}

/// Work with the disk, away from the threads that must not wait.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FetchError> + Send + 'static,
) -> Result<T, FetchError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(FetchError::Worker { message: error.to_string() }),
    }
}
