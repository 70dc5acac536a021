//! Brings collections up to date: the registry is read anew, each collection fetched, its profiles extracted, then compiled.
//! One that fails does not stop the others.

use amplifier_core::cancel::CancelToken;
use amplifier_sources::fetch::{Base, Freshness};
use amplifier_sources::uri::SourceUri;

use crate::collections::{CollectionEntry, Collections};
use crate::error::ProfileError;
use crate::extract::{self, Extracted, Replaced, Skipped};
use crate::origin::{CollectionRecord, Tree};
use crate::profiles::{ProfileContext, Profiles, blocking};
use crate::share::{ProfileId, ShareName};
use crate::steps::Step;

/// What came of one collection.
#[derive(Debug)]
pub struct SyncReport {
    pub collection: ShareName,
    pub status: SyncStatus,
    /// Its profiles in `share/`.
    pub profiles: Vec<ProfileId>,
    /// Profiles that were left out, and why.
    pub skipped: Vec<Skipped>,
    /// Profiles that are no longer there.
    pub removed: Vec<ProfileId>,
    /// Profiles that could not be compiled, and why.
    pub failed: Vec<Failed>,
}

/// A profile that could not be compiled.
#[derive(Debug)]
pub struct Failed {
    pub id: ProfileId,
    pub error: ProfileError,
    /// What is there of it now.
    pub text: TextLeft,
}

/// The text of a profile that could not be compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextLeft {
    /// The one that could not be compiled.
    New,
    /// The one from before, which could.
    Kept,
}

/// What a sync did with a collection.
#[derive(Debug)]
pub enum SyncStatus {
    /// Fetched for the first time, or read from this machine.
    Synced,
    /// Fetched again, since that was asked for.
    Updated,
    /// Nothing to do: it is there, or it has no source.
    Skipped,
    /// It could not be had.
    Error(ProfileError),
}

/// What happens with the profiles of a collection that was synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compilation {
    /// They are compiled.
    #[default]
    Compile,
    /// They are left as they are.
    Leave,
}

impl SyncStatus {
    /// The word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Synced => "synced",
            Self::Updated => "updated",
            Self::Skipped => "skipped",
            Self::Error(_) => "error",
        }
    }
}

impl SyncReport {
    /// One line about the profiles that could not be compiled; `None` when all could.
    pub fn warning(&self) -> Option<String> {
        let names: Vec<_> = self.failed.iter().map(|failed| failed.id.profile.as_str()).collect();
        (!names.is_empty()).then(|| format!("Some profiles failed to compile: {}", names.join(", ")))
    }
}

impl Profiles {
    /// Syncs every collection of the registry, in its order.
    pub async fn sync(
        &self,
        compilation: Compilation,
        cx: &ProfileContext,
    ) -> Result<Vec<SyncReport>, ProfileError> {
        let registry = Collections::read(&self.share)?;
        let mut reports = Vec::with_capacity(registry.entries.len());
        for (name, entry) in &registry.entries {
            cx.check(name)?;
            reports.push(self.sync_entry(name, entry, compilation, cx).await);
        }
        Ok(reports)
    }

    /// Syncs one collection.
    pub async fn sync_one(
        &self,
        name: &ShareName,
        compilation: Compilation,
        cx: &ProfileContext,
    ) -> Result<SyncReport, ProfileError> {
        let registry = Collections::read(&self.share)?;
        match registry.entries.get(name) {
            Some(entry) => Ok(self.sync_entry(name, entry, compilation, cx).await),
            None => Err(ProfileError::NoCollection { name: name.to_string() }),
        }
    }

    async fn sync_entry(
        &self,
        name: &ShareName,
        entry: &CollectionEntry,
        compilation: Compilation,
        cx: &ProfileContext,
    ) -> SyncReport {
        cx.tell(Step::Collection { name: name.clone() });
        let (status, extracted) = match self.bring(name, entry, cx).await {
            Ok((status, extracted)) => (status, extracted),
            Err(error) => (SyncStatus::Error(error), Extracted::default()),
        };
        let mut report = SyncReport {
            collection: name.clone(),
            status,
            profiles: extracted.profiles,
            skipped: extracted.skipped,
            removed: extracted.removed,
            failed: Vec::new(),
        };
        let is_new = matches!(report.status, SyncStatus::Synced | SyncStatus::Updated);
        if is_new && compilation == Compilation::Compile {
            for id in &report.profiles {
                if let Err(error) = self.compile(id, cx).await {
                    cx.tell(Step::Failed { id: id.clone(), message: error.chain() });
                    let replaced = extracted.replaced.iter().find(|replaced| replaced.id == *id);
                    let text = match replaced {
                        Some(replaced) => self.keep(replaced, cx).await,
                        None => TextLeft::New,
                    };
                    report.failed.push(Failed { id: id.clone(), error, text });
                }
            }
        }
        report
    }

    /// Puts a text back that could be compiled, where the new one cannot: what worked shall go on working.
    async fn keep(&self, replaced: &Replaced, cx: &ProfileContext) -> TextLeft {
        // Also after an interrupt: who stops it has not asked for a text that does not work.
        let undoing = ProfileContext { cancel: CancelToken::new(), ..cx.clone() };
        let put_back = match self.guard(replaced.id.collection.as_str(), &undoing).await {
            Ok(_guard) => replaced.put_back(&self.share),
            Err(error) => Err(error),
        };
        match put_back {
            Ok(true) => TextLeft::Kept,
            Ok(false) => TextLeft::New,
            Err(error) => {
                cx.tell(Step::Failed { id: replaced.id.clone(), message: error.chain() });
                TextLeft::New
            }
        }
    }

    /// Fetches a collection and puts its profiles in place.
    async fn bring(
        &self,
        name: &ShareName,
        entry: &CollectionEntry,
        cx: &ProfileContext,
    ) -> Result<(SyncStatus, Extracted), ProfileError> {
        let there = || self.share.profiles(name);
        let Some(source) = &entry.source else {
            return Ok((SyncStatus::Skipped, Extracted { profiles: there()?, ..Extracted::default() }));
        };
        let failed = |source| ProfileError::Collection { collection: name.to_string(), source };
        let uri: SourceUri = source.parse().map_err(|error| ProfileError::ReferenceText {
            place: entry.place.clone(),
            text: name.to_string(),
            source: error,
        })?;
        let _guard = self.guard(name.as_str(), cx).await?;
        let before =
            CollectionRecord::read(&self.share, name).filter(|record| record.source == uri.to_string());
        if let Some(before) = &before
            && !matches!(before.tree, Tree::Local(_))
            && cx.freshness != Freshness::Refresh
            && self.is_whole(name, before)
        {
            return Ok((SyncStatus::Skipped, Extracted { profiles: there()?, ..Extracted::default() }));
        }
        let base = Base { home: self.user_home.clone(), ..Base::at(self.share.root()) };
        let fetched = self.fetcher.fetch(&uri, &cx.fetching(base)).await.map_err(failed)?;
        let record = CollectionRecord::new(&uri, &fetched);
        let is_local = matches!(record.tree, Tree::Local(_));
        let (share, collection) = (self.share.clone(), name.clone());
        let extracted = blocking(move || {
            let tree = if is_local { fetched.path.clone() } else { fetched.root.clone() };
            extract::extract(&share, &collection, (&fetched.path, &tree), record)
        })
        .await?;
        cx.tell(Step::Extracted { name: name.clone(), profiles: extracted.profiles.len() });
        let updated = before.is_some() && !is_local && cx.freshness == Freshness::Refresh;
        Ok((if updated { SyncStatus::Updated } else { SyncStatus::Synced }, extracted))
    }

    /// Whether every profile that was extracted is still there.
    fn is_whole(&self, name: &ShareName, record: &CollectionRecord) -> bool {
        let dir = self.share.collection_dir(name);
        record.profiles.keys().all(|profile| dir.join(profile).join("profile.md").is_file())
    }
}
