//! Registering bundles and bringing them up to date. Preparing one is `prepare/bundle.rs`'s, the file of names
//! `registry.rs`'s.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use amplifier_core::clock::Clock;
use amplifier_core::loader::near_misses;
use amplifier_protocol::address::HIDDEN;
use amplifier_sources::error::FetchError;
use amplifier_sources::fetch::{Freshness, Identity};
use amplifier_sources::uri::SourceUri;
use serde::Serialize;
use serde_json::Map;

use crate::clock::SystemClock;
use crate::credentials;
use crate::library::Access;
use crate::lockfile::{self, LOCK_FILE};
use crate::prepare::{
    BundleFault, Locking, PrepareOptions, PreparedBundle, Unavailable, current, prepare_bundle,
};
use crate::registry::{Entry as RegistryEntry, Registry, RegistryError};
use crate::shelf;

/// Registers a bundle under the name it has, or under another one. It is loaded first: a name that leads nowhere helps
/// nobody.
pub async fn add(
    source: &str,
    name: Option<&str>,
    access: &Access,
) -> Result<(String, PreparedBundle), BundleFault> {
    let uri = absolute(source, access)?;
    let bundle = prepare_bundle(&uri, access, PrepareOptions::default()).await?;
    let own = bundle.head().name().map(str::to_owned);
    let Some(name) = name.map(str::to_owned).or(own) else {
        return Err(RegistryError::Nameless { uri: credentials::shown(source) }.into());
    };
    Registry::new(&access.home).add(&name, entry(uri, &bundle))?;
    Ok((name, bundle))
}

/// Names of bundles that are called nearly as what somebody asked for.
pub fn near(name: &str, access: &Access) -> Vec<String> {
    // A registry that cannot be read is told by whoever needs it; here it only helps to guess.
    let registered =
        Registry::new(&access.home).read().map(|registered| registered.bundles).unwrap_or_default();
    let built_in = shelf::BUNDLES.iter().map(|(name, _)| (*name).to_owned());
    let mut known: Vec<String> = registered.into_keys().chain(built_in).collect();
    known.extend(access.settings.bundle_names().into_keys());
    known.sort_unstable();
    known.dedup();
    // What was typed is no guess.
    known.retain(|known| known != name);
    near_misses(name, &known)
}

/// An address that means the same in every folder.
fn absolute(source: &str, access: &Access) -> Result<String, BundleFault> {
    let uri: SourceUri = source.parse().map_err(FetchError::from)?;
    let written = uri.to_string();
    // What was shown without its credential leads nowhere by itself.
    if uri.holds_credentials() || (uri.is_remote() && written.contains(HIDDEN)) {
        return Err(RegistryError::Credential { uri: written }.into());
    }
    let local = match &uri {
        SourceUri::File(file) if file.path.starts_with('~') => return Ok(written),
        SourceUri::File(file) if file.fragment == Default::default() => access.base.join(&file.path),
        SourceUri::Named { .. } => access.base.join(source),
        _ => return Ok(written),
    };
    match local.canonicalize() {
        Ok(path) => match path.to_str() {
            None => Err(RegistryError::NotText { path }.into()),
            // A fragment cannot be told from the name of such a file.
            Some(text) if text.contains('#') => Ok(text.to_owned()),
            Some(text) => Ok(format!("file://{text}")),
        },
        Err(_) => Ok(written),
    }
}

fn entry(uri: String, bundle: &PreparedBundle) -> RegistryEntry {
    let head = bundle.head();
    RegistryEntry {
        uri,
        name: head.name().map(str::to_owned),
        version: head.version.as_ref().map(|version| version.text.clone()),
        description: head.description.as_ref().map(|description| description.text.clone()),
        loaded_at: Some(SystemClock::default().now()),
        unknown: Map::new(),
    }
}

/// A source that is another one now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    pub source: String,
    /// What it was; nothing when it is new.
    pub from: Option<String>,
    /// What it is; nothing when it is gone.
    pub to: Option<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, from, to } = self;
        match (from, to) {
            (Some(from), Some(to)) => write!(f, "`{source}` moves from {from} to {to}"),
            (None, Some(to)) => write!(f, "`{source}` is new, at {to}"),
            (_, None) => write!(f, "`{source}` is no longer used"),
        }
    }
}

impl From<amplifier_sources::lock::Change> for Change {
    fn from(change: amplifier_sources::lock::Change) -> Self {
        use amplifier_sources::lock::Change as Locked;
        match change {
            Locked::Added { source, now } => Self { source, from: None, to: Some(now) },
            Locked::Removed { source } => Self { source, from: None, to: None },
            Locked::Moved { source, from, to } => Self { source, from: Some(from), to: Some(to) },
        }
    }
}

/// The bundles that can have news: the registered ones, and the one in use where it is another and not built in.
pub fn watched(access: &Access) -> Result<Vec<String>, BundleFault> {
    let registered = Registry::new(&access.home).read()?;
    let mut names: Vec<String> = registered.bundles.into_keys().collect();
    let current = current(access)?;
    if !names.contains(&current) && !shelf::has(&current) {
        names.push(current);
    }
    Ok(names)
}

/// What an update found and did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Update {
    pub bundle: String,
    /// What is different now.
    pub changes: Vec<Change>,
    /// Sources of which nobody can say without fetching them.
    pub unknown: Vec<String>,
    /// The lock that belongs to the bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<PathBuf>,
}

/// Looks, in the whole closure of a bundle, for branches and tags that moved since they were fetched or locked. Changes
/// nothing here; what was never fetched is, unless the access is offline: then it is told as unknown.
pub async fn check(reference: &str, access: &Access) -> Result<Update, BundleFault> {
    let unavailable = match access.freshness {
        Freshness::Offline => Unavailable::Listed,
        Freshness::Reuse | Freshness::Refresh => Unavailable::Refused,
    };
    let bundle =
        prepare_bundle(reference, access, PrepareOptions { unavailable, ..PrepareOptions::default() })
            .await?;
    let mut update = Update {
        bundle: credentials::shown(reference),
        changes: Vec::new(),
        unknown: Vec::new(),
        lock: bundle.locked.clone(),
    };
    let library = &bundle.library;
    // Many modules may come from one repository, which is asked once.
    let mut asked = BTreeMap::new();
    for (uri, fetched) in library.fetched() {
        match (&uri, &fetched.identity) {
            (SourceUri::Git(git), Identity::Commit { commit, .. }) => {
                let latest = match asked.entry(git.whole().to_string()) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => {
                        new.insert(library.fetcher().latest_commit(git, library.context()).await?)
                    }
                };
                if latest != commit {
                    let (source, from) = (uri.to_string(), Some(commit.to_string()));
                    update.changes.push(Change { source, from, to: Some(latest.to_string()) });
                }
            }
            (_, Identity::Local) => {}
            _ => update.unknown.push(uri.to_string()),
        }
    }
    update.unknown.extend(library.absent());
    Ok(update)
}

/// An update that was fetched and is not written down yet.
pub struct Pending {
    pub update: Update,
    bundle: PreparedBundle,
    lock: amplifier_sources::lock::BundleLock,
}

/// Fetches what is new in the whole closure of a bundle and says what changed. The lock is written by
/// [`Pending::write`], after somebody has seen it.
pub async fn update(reference: &str, access: &Access) -> Result<Pending, BundleFault> {
    let options = PrepareOptions { locking: Locking::Ignored, ..PrepareOptions::default() };
    let before = prepare_bundle(reference, access, options).await?;
    let locked = match lockfile::folder_of(&before) {
        Ok(folder) => lockfile::read(&folder)?.map(|lock| (folder.join(LOCK_FILE), lock)),
        Err(_) => None,
    };
    let old = match &locked {
        Some((_, lock)) => lock.clone(),
        None => lockfile::closure(&before).await?,
    };
    let fresh = Access { freshness: Freshness::Refresh, ..access.clone() };
    let bundle = prepare_bundle(reference, &fresh, options).await?;
    let lock = lockfile::closure(&bundle).await?;
    if let Some((path, old)) = &locked {
        old.check_commits(&lock).map_err(changed(path))?;
    }
    let update = Update {
        bundle: credentials::shown(reference),
        changes: old.changes(&lock).into_iter().map(Change::from).collect(),
        unknown: Vec::new(),
        lock: locked.map(|(path, _)| path),
    };
    Ok(Pending { update, bundle, lock })
}

impl Pending {
    /// Writes the lock, if the bundle has one, and what the registry says about the bundle.
    pub fn write(&self, access: &Access) -> Result<(), BundleFault> {
        if self.update.lock.is_some() && !self.update.changes.is_empty() {
            lockfile::write(&self.bundle, &self.lock)?;
        }
        let registry = Registry::new(&access.home);
        if let Some(old) = registry.read()?.bundles.remove(&self.update.bundle) {
            let unknown = old.unknown.clone();
            registry
                .refresh(&self.update.bundle, RegistryEntry { unknown, ..entry(old.uri, &self.bundle) })?;
        }
        Ok(())
    }
}

/// Locks a bundle as it stands: what it would run with now.
pub async fn lock(reference: &str, access: &Access) -> Result<(PathBuf, usize), BundleFault> {
    let options = PrepareOptions { locking: Locking::Ignored, ..PrepareOptions::default() };
    let bundle = prepare_bundle(reference, access, options).await?;
    let folder = lockfile::folder_of(&bundle)?;
    let lock = lockfile::closure(&bundle).await?;
    // One that cannot be read is written again.
    if let Ok(Some(old)) = lockfile::read(&folder) {
        old.check_commits(&lock).map_err(changed(&folder.join(LOCK_FILE)))?;
    }
    Ok((lockfile::write(&bundle, &lock)?, lock.sources.len()))
}

/// A commit that is not what the lock says.
fn changed(lock: &Path) -> impl FnOnce(FetchError) -> BundleFault {
    let lock = lock.to_owned();
    move |error| match &error {
        FetchError::CacheChanged { key, .. } => {
            let (changed, problems) = (BTreeSet::from([key.clone()]), vec![error.to_string()]);
            BundleFault::Drift { lock, problems, changed }
        }
        _ => error.into(),
    }
}
