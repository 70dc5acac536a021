//! Downloads and archives and the cache: kept by what they held, remembered by where they came from.

use std::path::{Path, PathBuf};

use url::Url;

use super::{FetchContext, Fetcher, Freshness, blocking, name_key};
use crate::cache::{EntryRecord, KeyLock, NameRecord, Store, Validators};
use crate::error::FetchError;
use crate::http::{self, Answer};
use crate::limits::Limits;
use crate::progress::Stage;
use crate::tree::{ContentHash, Durability, Listing, hash_file};
use crate::uri::{Archive, HttpUri, SourceUri, ZipUri};
use crate::zip::{self, ArchiveError, Watch};

/// Where content comes from.
enum Origin<'a> {
    File(&'a Url),
    RemoteArchive(&'a Url),
    LocalArchive { path: PathBuf, hash: String },
}

/// A finished tree, or that the old one is still right.
enum Made {
    Unchanged,
    Tree { folder: PathBuf, validators: Validators },
}

impl Fetcher {
    pub(super) async fn download(
        &self,
        uri: &HttpUri,
        cx: &FetchContext,
    ) -> Result<(PathBuf, ContentHash), FetchError> {
        let shown = SourceUri::Http(uri.clone()).to_string();
        let url = uri.url();
        self.content(&http::normal(&url), &shown, Origin::File(&url), cx).await
    }

    pub(super) async fn archive(
        &self,
        uri: &ZipUri,
        cx: &FetchContext,
    ) -> Result<(PathBuf, ContentHash), FetchError> {
        let shown = SourceUri::Zip(uri.whole()).to_string();
        let url;
        let (name, origin) = match &uri.archive {
            Archive::Http(http) => {
                url = http.url();
                (format!("zip+{}", http::normal(&url)), Origin::RemoteArchive(&url))
            }
            Archive::File(path) => {
                let path = crate::file::absolute(path, &cx.base)?;
                let hash = self.hash_archive(&path, cx).await?;
                (format!("zip+file://{}", path.display()), Origin::LocalArchive { path, hash })
            }
        };
        self.content(&name, &shown, origin, cx).await
    }

    async fn content(
        &self,
        name: &str,
        shown: &str,
        origin: Origin<'_>,
        cx: &FetchContext,
    ) -> Result<(PathBuf, ContentHash), FetchError> {
        let name = name_key(name);
        if let Some(known) = self.known_content(&name, &origin, cx)? {
            return Ok(known);
        }
        let local = matches!(origin, Origin::LocalArchive { .. });
        if cx.freshness == Freshness::Offline && !local {
            return Err(FetchError::NotCached { uri: shown.to_owned() });
        }
        self.cache.prepare(Store::Fsspec)?;
        let lock = self.cache.lock_path(Store::Fsspec, &name);
        let _lock = KeyLock::acquire(&lock, self.limits.lock_wait, shown, cx).await?;
        if let Some(known) = self.known_content(&name, &origin, cx)? {
            return Ok(known);
        }
        let old = self.cache.name(Store::Fsspec, &name)?;
        let known = old.as_ref().map(|(record, _)| record.validators.clone()).unwrap_or_default();
        let _place = self.place(shown, cx).await?;
        let scratch = self.cache.scratch(Store::Fsspec)?;
        let made = self.make(&origin, &known, (scratch.path(), shown), cx).await?;
        let (path, content_hash, validators) = match (made, old) {
            (Made::Unchanged, Some((record, path))) => {
                let hash = self.recorded_hash(Store::Fsspec, &record.key, &path).await?;
                (path, hash, known)
            }
            (Made::Unchanged, None) => {
                return Err(FetchError::HttpStatus { uri: shown.to_owned(), status: 304 });
            }
            (Made::Tree { folder, validators }, _) => {
                let (path, hash) = self.keep(folder, shown).await?;
                (path, hash, validators)
            }
        };
        let key = content_hash.hex().to_owned();
        let record = NameRecord { source: shown.to_owned(), key, validators, resolved_at: self.clock.now() };
        self.cache.remember(Store::Fsspec, &name, &record)?;
        cx.tell(shown, Stage::Done);
        Ok((path, content_hash))
    }

    /// What is in the cache and will do.
    fn known_content(
        &self,
        name: &str,
        origin: &Origin<'_>,
        cx: &FetchContext,
    ) -> Result<Option<(PathBuf, ContentHash)>, FetchError> {
        let Some((record, path)) = self.cache.name(Store::Fsspec, name)? else { return Ok(None) };
        let usable = match origin {
            // An archive on this machine is looked at each time; no freshness makes an old one right.
            Origin::LocalArchive { hash, .. } => record.validators.archive.as_ref() == Some(hash),
            _ => cx.freshness != Freshness::Refresh,
        };
        let hash = format!("sha256:{}", record.key).parse().ok();
        Ok(hash.filter(|_| usable).map(|hash| (path, hash)))
    }

    async fn make(
        &self,
        origin: &Origin<'_>,
        known: &Validators,
        (scratch, shown): (&Path, &str),
        cx: &FetchContext,
    ) -> Result<Made, FetchError> {
        let folder = scratch.join("tree");
        match origin {
            Origin::File(url) => {
                std::fs::create_dir(&folder).map_err(FetchError::in_cache("create", &folder))?;
                let place = (folder.as_path(), &self.limits);
                Ok(match http::download(self.client(shown)?, (url, shown), known, place, cx).await? {
                    Answer::Unchanged => Made::Unchanged,
                    Answer::File { validators, .. } => Made::Tree { folder, validators },
                })
            }
            Origin::RemoteArchive(url) => {
                let place = (scratch, &self.limits);
                match http::download(self.client(shown)?, (url, shown), known, place, cx).await? {
                    Answer::Unchanged => Ok(Made::Unchanged),
                    Answer::File { path, validators } => {
                        let folder = self.unpack(path, folder, shown, cx).await?;
                        Ok(Made::Tree { folder, validators })
                    }
                }
            }
            Origin::LocalArchive { path, hash } => {
                let folder = self.unpack(path.clone(), folder, shown, cx).await?;
                let validators = Validators { archive: Some(hash.clone()), ..Validators::default() };
                Ok(Made::Tree { folder, validators })
            }
        }
    }

    async fn unpack(
        &self,
        archive: PathBuf,
        folder: PathBuf,
        shown: &str,
        cx: &FetchContext,
    ) -> Result<PathBuf, FetchError> {
        let (limits, cx, uri) = (self.limits.clone(), cx.clone(), shown.to_owned());
        blocking(move || {
            let watch = Unpack { cx: &cx, shown: &uri };
            match zip::extract(&archive, &folder, &limits, &watch) {
                Ok(()) => Ok(folder),
                Err(ArchiveError::Cancelled) => Err(FetchError::Cancelled { uri }),
                Err(source) => Err(FetchError::Archive { uri, source }),
            }
        })
        .await
    }

    /// Puts a finished tree under the hash of what it holds.
    async fn keep(&self, folder: PathBuf, shown: &str) -> Result<(PathBuf, ContentHash), FetchError> {
        let (cache, limits) = (self.cache.clone(), self.limits.clone());
        let (uri, fetched_at) = (shown.to_owned(), self.clock.now());
        blocking(move || {
            let listing = Listing::read_with(&folder, &limits, Durability::Synced)
                .map_err(|source| FetchError::Tree { uri: uri.clone(), source })?;
            let record = EntryRecord::of(&listing, uri, fetched_at);
            let hash = record.content_hash.clone();
            let path = cache.publish((Store::Fsspec, hash.hex()), &folder, (&record, &listing))?;
            Ok((path, hash))
        })
        .await
    }

    async fn hash_archive(&self, path: &Path, cx: &FetchContext) -> Result<String, FetchError> {
        let (path, limits, border) = (path.to_owned(), self.limits.clone(), cx.base.confined_to.clone());
        blocking(move || hash_archive(&path, border.as_deref(), &limits)).await
    }

    fn client(&self, shown: &str) -> Result<&reqwest::Client, FetchError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = http::client(&self.limits);
        let made = made.map_err(|source| FetchError::Http { uri: shown.to_owned(), source })?;
        Ok(self.client.get_or_init(|| made))
    }
}

fn hash_archive(path: &Path, border: Option<&Path>, limits: &Limits) -> Result<String, FetchError> {
    let whole = path.canonicalize().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => FetchError::Missing { path: path.to_owned() },
        _ => FetchError::at("look for", path)(error),
    })?;
    if let Some(border) = border {
        let border = border.canonicalize().map_err(FetchError::at("look for", border))?;
        if !whole.starts_with(&border) {
            return Err(FetchError::Escapes { path: whole, root: border });
        }
    }
    let size = std::fs::metadata(&whole).map_err(FetchError::at("open", path))?.len();
    if size > limits.download_bytes {
        return Err(FetchError::TooLarge { uri: path.display().to_string(), limit: limits.download_bytes });
    }
    hash_file(&whole).map_err(FetchError::at("read", path))
}

struct Unpack<'a> {
    cx: &'a FetchContext,
    shown: &'a str,
}

impl Watch for Unpack<'_> {
    fn is_cancelled(&self) -> bool {
        self.cx.cancel.is_cancelled()
    }

    fn unpacked(&self, files: u64) {
        if files.is_power_of_two() {
            self.cx.tell(self.shown, Stage::Extracting { files });
        }
    }
}
