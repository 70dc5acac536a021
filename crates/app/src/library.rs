//! Where bundles come from: the `bundle` crate's questions answered with `sources`, registered names and the bundles
//! inside the program. It decides no composition and opens no session.
//!
//! Everything that was fetched is remembered with what exactly it was, so that a lock can be written from it; under a lock
//! nothing else is given out, and what differs is remembered as a refusal that no lenient mode forgives.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_bundle::error::{FetchError, ReadError};
use amplifier_bundle::fetch::{Fetch, Fetched, Files, PathKind, Stamp};
use amplifier_bundle::home::Source;
use amplifier_core::cancel::CancelToken;
use amplifier_core::clock::Clock;
use amplifier_sources::cache::Cache;
use amplifier_sources::error::{Drift, FetchError as SourceFetchError};
use amplifier_sources::fetch::{Base, FetchContext, Fetched as SourceFetched, Fetcher, Freshness, Identity};
use amplifier_sources::git::Git;
use amplifier_sources::lock::BundleLock;
use amplifier_sources::progress::{Progress, Silent};
use amplifier_sources::uri::SourceUri;

use crate::clock::SystemClock;
use crate::env::{self, Environment};
use crate::paths::Home;
use crate::settings::{ProjectSettings, Settings, SettingsError, SettingsFiles};
use crate::shelf::{self, Shelf};
use crate::trust::{Mode, Trust};

/// What a library is made with.
#[derive(Clone)]
pub struct Access {
    /// Where the cache and the registered names are.
    pub home: Home,
    /// Where git's variables and `~` come from.
    pub environment: Environment,
    /// What relative paths are relative to.
    pub base: PathBuf,
    /// What the person has set; nothing unless somebody read it.
    pub settings: Arc<Settings>,
    /// What the user trusts.
    pub trust: Arc<Trust>,
    /// Whether what is in the cache will do.
    pub freshness: Freshness,
    /// Hears how fetches go.
    pub progress: Arc<dyn Progress>,
    /// Stops fetches.
    pub cancel: CancelToken,
}

impl Access {
    /// Paths relative to a folder, what is cached will do, nobody listens.
    pub fn new(home: Home, environment: Environment, base: impl Into<PathBuf>) -> Self {
        Self {
            home,
            environment: environment.with_plain(),
            base: base.into(),
            settings: Arc::default(),
            trust: Arc::default(),
            freshness: Freshness::default(),
            progress: Arc::new(Silent),
            cancel: CancelToken::new(),
        }
    }

    /// Where what the person sets is kept, for this home and for the project that the folder is in.
    pub fn settings_files(&self) -> SettingsFiles {
        SettingsFiles::find(&self.home, &self.environment, &self.base)
    }

    /// With what the person has set, for this home and for the project that the folder is in. Keys that stand there in plain
    /// text are known to the environment afterwards.
    pub fn with_settings(self) -> Result<Self, SettingsError> {
        self.with_settings_trusting(Mode::Recorded)
    }

    /// The same, with trust in everything where the user said so.
    pub fn with_settings_trusting(mut self, mode: Mode) -> Result<Self, SettingsError> {
        let (trust, settings) = load_settings(&self.home, &self.environment, &self.base, mode)?;
        self.trust = Arc::new(trust);
        self.environment.learn(&settings.plain());
        self.settings = Arc::new(settings);
        Ok(self)
    }
}

/// The settings that count in a directory, and what the user trusts there.
pub fn load_settings(
    home: &Home,
    environment: &Environment,
    directory: &Path,
    mode: Mode,
) -> Result<(Trust, Settings), SettingsError> {
    let files = SettingsFiles::find(home, environment, directory);
    let trust = Trust::of_project(home, &files, mode)?;
    let project = match trust.trusts_project() {
        true => ProjectSettings::Trusted,
        false => ProjectSettings::Untrusted,
    };
    let settings = Settings::load(&files, environment, project)?;
    Ok((trust, settings))
}

/// Bundles and modules by reference.
pub struct Library {
    home: Home,
    fetcher: Arc<Fetcher>,
    cx: FetchContext,
    names: BTreeMap<String, String>,
    lock: Option<Arc<BundleLock>>,
    /// The folder of the bundle itself, whose own files are not locked, and the address it was asked for by.
    own: Option<(PathBuf, String)>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    fetched: BTreeMap<String, (SourceUri, SourceFetched)>,
    refused: Vec<String>,
    changed: BTreeSet<String>,
    absent: Vec<String>,
}

/// The fetcher of a home.
pub fn fetcher(home: &Home, environment: &Environment) -> Fetcher {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    Fetcher::new(Cache::new(home.cache()), Git::new(environment.all()), clock)
}

impl Library {
    /// A library with these registered names.
    pub fn new(access: &Access, names: BTreeMap<String, String>) -> Self {
        let base = Base {
            folder: access.base.clone(),
            home: access.environment.get(env::HOME).map(PathBuf::from),
            confined_to: None,
        };
        let cx = FetchContext {
            base,
            freshness: access.freshness,
            progress: Arc::clone(&access.progress),
            cancel: access.cancel.clone(),
        };
        Self {
            home: access.home.clone(),
            fetcher: Arc::new(fetcher(&access.home, &access.environment)),
            cx,
            names,
            lock: None,
            own: None,
            seen: Mutex::default(),
        }
    }

    /// Everything that is fetched must be what the lock says, except what lies in the bundle's own folder.
    #[must_use]
    pub fn under_lock(mut self, lock: Arc<BundleLock>, own: PathBuf, address: String) -> Self {
        (self.lock, self.own) = (Some(lock), Some((own, address)));
        self
    }

    pub fn home(&self) -> &Home {
        &self.home
    }

    pub fn fetcher(&self) -> &Arc<Fetcher> {
        &self.fetcher
    }

    pub fn context(&self) -> &FetchContext {
        &self.cx
    }

    pub fn lock(&self) -> Option<&Arc<BundleLock>> {
        self.lock.as_ref()
    }

    /// Where a registered or built-in name leads.
    pub fn address_of(&self, name: &str) -> Option<String> {
        let registered = self.names.get(name).cloned();
        registered.or_else(|| shelf::has(name).then(|| format!("{}{name}", shelf::SCHEME)))
    }

    /// What was fetched so far, by address.
    pub fn fetched(&self) -> Vec<(SourceUri, SourceFetched)> {
        self.seen().fetched.values().cloned().collect()
    }

    /// What the lock did not allow.
    pub fn refused(&self) -> Vec<String> {
        self.seen().refused.clone()
    }

    /// The entries of the cache whose content is not what was locked.
    pub fn changed(&self) -> BTreeSet<String> {
        self.seen().changed.clone()
    }

    /// What was asked for offline and is not here.
    pub fn absent(&self) -> Vec<String> {
        self.seen().absent.clone()
    }

    /// Brings a source to this machine, as the lock says when there is one.
    pub async fn bring(&self, address: &str) -> Result<(SourceUri, SourceFetched), SourceFetchError> {
        self.bring_uri(address, address.parse()?).await
    }

    /// The same for an address whose credentials are not in its text.
    pub(crate) async fn bring_uri(
        &self,
        address: &str,
        uri: SourceUri,
    ) -> Result<(SourceUri, SourceFetched), SourceFetchError> {
        let result = match &self.lock {
            Some(lock) if !self.is_own(address, &uri) => match lock.find(&uri) {
                Ok(locked) => self.fetcher.fetch_locked(&uri, locked, &self.cx).await,
                Err(error) => Err(error),
            },
            _ => self.fetcher.fetch(&uri, &self.cx).await,
        };
        match result {
            Ok(fetched) => {
                self.seen().fetched.insert(uri.to_string(), (uri.clone(), fetched.clone()));
                Ok((uri, fetched))
            }
            Err(error) => {
                match &error {
                    SourceFetchError::Drift { what, .. } => {
                        let mut seen = self.seen();
                        seen.refused.push(error.to_string());
                        if let Drift::Cache { key, .. } = what {
                            seen.changed.insert(key.clone());
                        }
                    }
                    SourceFetchError::NotCached { uri } => self.seen().absent.push(uri.clone()),
                    _ => {}
                }
                Err(error)
            }
        }
    }

    /// Whether a source is the bundle itself, or a place in its folder.
    fn is_own(&self, address: &str, uri: &SourceUri) -> bool {
        let Some((own, root)) = &self.own else { return false };
        let SourceUri::File(file) = uri else { return root == address };
        let path = match (file.path.strip_prefix("~/"), &self.cx.base.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.cx.base.folder.join(&file.path),
        };
        path.canonicalize().is_ok_and(|path| path.starts_with(own) || own.starts_with(&path))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files for Library {
    fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
        Shelf.read(path, limit)
    }

    fn kind(&self, path: &Path) -> PathKind {
        Shelf.kind(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<(String, PathKind)>, ReadError> {
        Shelf.list(path)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
        Shelf.real_path(path)
    }

    fn stamp(&self, path: &Path) -> Option<Stamp> {
        Shelf.stamp(path)
    }
}

impl Fetch for Library {
    fn redirect(&self, reference: &str) -> Option<String> {
        self.address_of(reference)
    }

    async fn fetch(&self, address: &str) -> Result<Fetched, FetchError> {
        if let Some(name) = address.strip_prefix(shelf::SCHEME) {
            if !shelf::has(name) {
                return Err(FetchError::new(format!("no bundle called `{name}` is built in")));
            }
            let path = shelf::folder(name);
            let source = Source::Fetched { uri: address.to_owned(), pinned: None };
            return Ok(Fetched { root: path.clone(), path, source });
        }
        let told = |error: SourceFetchError| {
            // What is no address may be meant as one, or as a name.
            let hint = error.hint().filter(|_| !matches!(error, SourceFetchError::NotALocation { .. }));
            FetchError::new(error.chain()).with_hint(hint)
        };
        let (uri, fetched) = self.bring(address).await.map_err(told)?;
        let source = source_of(&uri, &fetched.identity);
        Ok(Fetched { path: fetched.path, root: fetched.root, source })
    }
}

/// Where a fetched tree comes from, without credentials: those come from git's own helpers when it is fetched again.
fn source_of(uri: &SourceUri, identity: &Identity) -> Source {
    match (uri, identity) {
        (_, Identity::Local) => Source::Local,
        (SourceUri::Git(git), Identity::Commit { commit, .. }) => Source::Fetched {
            uri: git.whole().to_string(),
            pinned: Some(format!("git+{}@{commit}", git.address())),
        },
        (SourceUri::Zip(zip), _) => {
            let whole = SourceUri::Zip(zip.whole()).to_string();
            Source::Fetched { uri: whole.clone(), pinned: Some(whole) }
        }
        (uri, _) => Source::Fetched { uri: uri.to_string(), pinned: None },
    }
}
