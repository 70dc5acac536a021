//! Resolves every reference of a profile into folders beside it, and writes `profile.lock`.
//!
//! What the lock has and what lies in place is not fetched again; a branch moves only when a refresh is asked for. All
//! references are resolved first and built beside the folder in use, which is then replaced in one step: a failure or a
//! kill leaves the old one as it was, and what was fetched stays in the cache for the next try.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_bundle::notice::Notice;
use amplifier_protocol::ids::ModuleId;
use amplifier_sources::fetch::{Fetched, Fetcher, Freshness, Identity};
use amplifier_sources::tree::{ContentHash, Listing};
use amplifier_sources::uri::SourceUri;
use futures_util::stream::{self, StreamExt};

use crate::chain::Profile;
use crate::copy::{Copier, Package, find_package};
use crate::error::ProfileError;
use crate::lock_file::{
    LOCK_FILE, LOCK_VERSION, LockedBase, LockedResource, LockedResources, ProfileLock, stamp,
};
use crate::mount_type::MountType;
use crate::profiles::{ProfileContext, Profiles, blocking};
use crate::reference::{self, Reference, Slot};
use crate::share::ProfileId;
use crate::staging::Staging;
use crate::steps::Step;

/// How many references of one profile are resolved at the same time.
const AT_ONCE: usize = 8;

/// Folders that are there even when they are empty.
const ALWAYS: [MountType; 3] = [MountType::Providers, MountType::Tools, MountType::Hooks];

/// A compiled profile.
#[derive(Debug)]
pub struct Compiled {
    pub id: ProfileId,
    pub outcome: Outcome,
    pub lock: ProfileLock,
    /// What is worth telling about its texts.
    pub notices: Vec<Notice>,
}

/// What compiling did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was as the lock says; nothing was fetched or written.
    Unchanged,
    /// The folder is new. The names are those of the references that were resolved again.
    Built { resolved: Vec<String> },
}

impl Profiles {
    /// Compiles a profile. Two at once, in any processes, wait for each other.
    pub async fn compile(&self, id: &ProfileId, cx: &ProfileContext) -> Result<Compiled, ProfileError> {
        let _guard = self.guard(id.collection.as_str(), cx).await?;
        let profile = self.load(id)?;
        let references = reference::list(&self.share, &profile)?;
        let old = ProfileLock::read(&profile.dir);
        let now = stamp(self.clock.now());
        let parts = self.resolve(&profile, references, old.as_ref(), cx).await?;
        let fetcher = Arc::clone(&self.fetcher);
        let compiled = blocking(move || Build { profile, parts, old, now, fetcher }.run()).await?;
        cx.tell(match compiled.outcome {
            Outcome::Unchanged => Step::Unchanged { id: id.clone() },
            Outcome::Built { .. } => Step::Compiled { id: id.clone() },
        });
        Ok(compiled)
    }

    /// Resolves every reference that has to be; the first failure in the order of the text is told.
    async fn resolve(
        &self,
        profile: &Profile,
        references: Vec<Reference>,
        old: Option<&ProfileLock>,
        cx: &ProfileContext,
    ) -> Result<Vec<Part>, ProfileError> {
        let of = references.len();
        let work = references.into_iter().enumerate().map(|(index, reference)| async move {
            cx.check(&profile.id)?;
            let locked = old.and_then(|lock| lock.resources.find(reference.slot, &reference.name));
            let locked = locked.filter(|locked| locked.reference == reference.shown).cloned();
            let moves = cx.freshness == Freshness::Refresh && is_movable(&reference.uri);
            if let Some(locked) = &locked
                && !moves
                && reference.uri.is_remote()
                && is_in_place(&reference.target(&profile.dir), locked, &self.fetcher)
            {
                return Ok(Part { reference, locked: Some(locked.clone()), found: Found::InPlace });
            }
            let (id, number, shown) = (profile.id.clone(), index + 1, reference.shown.clone());
            cx.tell(Step::Resolving { id, reference: shown, number, of });
            let commit = locked.as_ref().filter(|_| !moves).and_then(|locked| locked.commit.as_deref());
            let uri = match (&reference.uri, commit) {
                (SourceUri::Git(uri), Some(commit)) => SourceUri::Git(uri.at(commit)),
                (uri, _) => uri.clone(),
            };
            let mut fetching = cx.fetching(reference.base.clone());
            fetching.base.home.clone_from(&self.user_home);
            match self.fetcher.fetch(&uri, &fetching).await {
                Ok(fetched) => Ok(Part { reference, locked, found: Found::Fetched(fetched) }),
                Err(source) => {
                    let Reference { slot, name, shown, place, .. } = reference;
                    Err(ProfileError::Reference { place, slot, name, reference: shown, source })
                }
            }
        });
        // All of them are waited for, so that the same mistake gives the same message every time.
        let parts: Vec<Result<Part, ProfileError>> = stream::iter(work).buffered(AT_ONCE).collect().await;
        parts.into_iter().collect()
    }
}

/// Whether an address may stand for something else tomorrow.
fn is_movable(uri: &SourceUri) -> bool {
    match uri {
        SourceUri::Git(uri) => uri.pinned().is_none(),
        _ => true,
    }
}

/// Whether what lies in the folder is what the lock says.
pub(crate) fn is_in_place(target: &Path, locked: &LockedResource, fetcher: &Fetcher) -> bool {
    locked.content_hash.is_some() && content_hash(target, fetcher).ok() == locked.content_hash
}

fn content_hash(path: &Path, fetcher: &Fetcher) -> Result<ContentHash, ProfileError> {
    let listing = Listing::read(path, fetcher.limits());
    let listing = listing.map_err(|source| ProfileError::Hash { path: path.to_owned(), source })?;
    Ok(listing.hash())
}

/// A reference and what came of it.
struct Part {
    reference: Reference,
    /// What the old lock says, if the reference is the same.
    locked: Option<LockedResource>,
    found: Found,
}

enum Found {
    /// In the folder of the profile, as the lock says.
    InPlace,
    /// On this machine or in the cache.
    Fetched(Fetched),
}

/// The second half: from parts to a folder.
struct Build {
    profile: Profile,
    parts: Vec<Part>,
    old: Option<ProfileLock>,
    now: String,
    fetcher: Arc<Fetcher>,
}

impl Build {
    fn run(self) -> Result<Compiled, ProfileError> {
        if self.parts.iter().all(|part| matches!(part.found, Found::InPlace))
            && let Some(lock) = self.current(None)
        {
            return Ok(self.done(Outcome::Unchanged, lock));
        }
        let staging = Staging::begin(&self.profile.dir)?;
        for mount in ALWAYS {
            let folder = staging.path().join(mount.as_str());
            std::fs::create_dir_all(&folder).map_err(ProfileError::io("create", &folder))?;
        }
        let mut resources = LockedResources::default();
        let mut resolved = Vec::new();
        for part in &self.parts {
            let (locked, is_new) = self.part(part, staging.path())?;
            if is_new {
                resolved.push(part.reference.name.clone());
            }
            resources.add(&part.reference, locked);
        }
        if let Some(lock) = self.current(Some(&resources)) {
            return Ok(self.done(Outcome::Unchanged, lock));
        }
        let lock = self.lock(resources);
        let text = self.profile.own().map(|file| file.bytes.clone()).unwrap_or_default();
        let lock_path = staging.path().join(LOCK_FILE);
        let lock_text =
            lock.to_text().map_err(|error| ProfileError::io("write", &lock_path)(error.into()))?;
        for (path, bytes) in
            [(staging.path().join("profile.md"), text.as_slice()), (lock_path, lock_text.as_bytes())]
        {
            crate::staging::write_atomically(&path, bytes)?;
        }
        staging.finish(&text)?;
        Ok(self.done(Outcome::Built { resolved }, lock))
    }

    fn done(self, outcome: Outcome, lock: ProfileLock) -> Compiled {
        Compiled { id: self.profile.id, outcome, lock, notices: self.profile.notices }
    }

    /// The old lock, if all it says still holds: of the texts, and of what was resolved now.
    fn current(&self, now: Option<&LockedResources>) -> Option<ProfileLock> {
        let lock = self.old.as_ref()?;
        let same_texts = is_current(&self.profile, lock);
        let same_things = match now {
            None => lock.resources.count() == self.parts.len(),
            Some(now) => {
                *now == lock.resources
                    && self.parts.iter().all(|part| {
                        let target = part.reference.target(&self.profile.dir);
                        part.locked.as_ref().is_some_and(|locked| is_in_place(&target, locked, &self.fetcher))
                    })
            }
        };
        let folders = ALWAYS.iter().all(|mount| self.profile.dir.join(mount.as_str()).is_dir());
        (same_texts && same_things && folders).then(|| lock.clone())
    }

    /// Puts one part in the new folder; says what to lock, and whether it differs from what was locked.
    fn part(&self, part: &Part, dir: &Path) -> Result<(LockedResource, bool), ProfileError> {
        let target = part.reference.target(dir);
        self.copy(part, &target)?;
        let content_hash = Some(content_hash(&target, &self.fetcher)?);
        let commit = match &part.found {
            Found::InPlace => part.locked.as_ref().and_then(|locked| locked.commit.clone()),
            Found::Fetched(fetched) => match &fetched.identity {
                Identity::Commit { commit, .. } => Some(commit.as_str().to_owned()),
                Identity::Local | Identity::Content { .. } => None,
            },
        };
        if let Some(locked) = &part.locked
            && (&locked.commit, &locked.content_hash) == (&commit, &content_hash)
        {
            return Ok((locked.clone(), false));
        }
        let (reference, resolved_at) = (part.reference.shown.clone(), self.now.clone());
        Ok((LockedResource { name: None, reference, commit, content_hash, resolved_at }, true))
    }

    fn copy(&self, part: &Part, target: &Path) -> Result<(), ProfileError> {
        let reference = &part.reference;
        let (path, root) = match &part.found {
            Found::InPlace => {
                let path = reference.target(&self.profile.dir);
                (path.clone(), path)
            }
            Found::Fetched(fetched) => (fetched.path.clone(), fetched.root.clone()),
        };
        let (place, shown) = (reference.place.clone(), reference.shown.clone());
        let mut copier = Copier::new(&root, self.fetcher.limits());
        let copied = match (reference.slot, &part.found) {
            (Slot::Agent, _) => {
                is_text(&path, reference)?;
                copier.file(&path, target)
            }
            (_, Found::InPlace) => copier.folder(&path, target),
            (Slot::Context, Found::Fetched(_)) if !path.is_dir() => {
                return Err(ProfileError::ContextNotFolder { place, reference: shown });
            }
            (Slot::Context, Found::Fetched(_)) => copier.folder(&path, target),
            (Slot::Module(_), Found::Fetched(_)) => {
                let package = package(&path, reference)?;
                copier.module(&path, &package, target)
            }
        };
        copied.map_err(|source| ProfileError::Copy { place, reference: shown, source })
    }

    fn lock(&self, resources: LockedResources) -> ProfileLock {
        ProfileLock {
            generated_at: self.now.clone(),
            profile_hash: self.profile.own().map(|file| file.hash.clone()).unwrap_or_default(),
            resources,
            extends: bases(&self.profile),
            lock_version: LOCK_VERSION,
        }
    }
}

/// Whether the texts of a profile are those its lock was made from.
pub(crate) fn is_current(profile: &Profile, lock: &ProfileLock) -> bool {
    profile.own().is_some_and(|file| file.hash == lock.profile_hash) && bases(profile) == lock.extends
}

/// The profiles below, nearest first.
fn bases(profile: &Profile) -> Vec<LockedBase> {
    let below = profile.layers.iter().rev().skip(1);
    below.map(|(id, file)| LockedBase { profile: id.to_string(), hash: file.hash.clone() }).collect()
}

fn package(path: &Path, reference: &Reference) -> Result<Package, ProfileError> {
    let expected =
        reference.name.parse::<ModuleId>().map(|id| id.package()).unwrap_or_else(|_| reference.name.clone());
    let package = if path.is_dir() {
        find_package(path, &expected).map_err(ProfileError::io("read", path))?
    } else {
        Package::Missing { found: vec!["a file".to_owned()] }
    };
    match package {
        Package::Missing { found } => Err(ProfileError::NoPackage {
            place: reference.place.clone(),
            id: reference.name.clone(),
            reference: reference.shown.clone(),
            expected,
            found,
        }),
        found => Ok(found),
    }
}

fn is_text(path: &PathBuf, reference: &Reference) -> Result<(), ProfileError> {
    let found = if path.is_dir() {
        "a folder"
    } else {
        let bytes = std::fs::read(path).map_err(ProfileError::io("read", path))?;
        match std::str::from_utf8(&bytes) {
            Ok(_) => return Ok(()),
            Err(_) => "no UTF-8 text",
        }
    };
    let Reference { name, shown, place, .. } = reference;
    let (place, name, reference) = (place.clone(), name.clone(), shown.clone());
    Err(ProfileError::AgentNotText { place, name, reference, found })
}
