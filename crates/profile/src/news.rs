//! Which collections and which modules of their profiles have newer commits than what is here. Asks; fetches and writes
//! nothing.

use std::collections::BTreeMap;
use std::fmt;

use amplifier_sources::error::FetchError;
use amplifier_sources::fetch::{Base, FetchContext, Fetcher};
use amplifier_sources::uri::SourceUri;

use crate::collections::Collections;
use crate::error::ProfileError;
use crate::lock_file::{LockedResource, ProfileLock};
use crate::origin::CollectionRecord;
use crate::profiles::{ProfileContext, Profiles};
use crate::share::{Share, ShareName};

/// What is new about one collection.
#[derive(Debug)]
pub struct CollectionNews {
    pub collection: ShareName,
    /// What would move.
    pub moved: Vec<Moved>,
    /// Sources of which nobody can say without fetching them.
    pub unknown: Vec<String>,
    /// Why it cannot be told.
    pub problem: Option<ProfileError>,
}

/// A branch or a tag that stands for another commit now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub source: String,
    pub from: String,
    pub to: String,
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` moves from {} to {}", self.source, self.from, self.to)
    }
}

/// What the repositories said, so that each is asked once for each of its refs.
type Answers = BTreeMap<String, String>;

impl Profiles {
    /// Asks about every collection of the registry, in its order. One that cannot be told costs nobody else.
    pub async fn news(&self, cx: &ProfileContext) -> Result<Vec<CollectionNews>, ProfileError> {
        let registry = Collections::read(&self.share)?;
        let mut answers = Answers::new();
        let mut news = Vec::with_capacity(registry.entries.len());
        for (name, entry) in &registry.entries {
            cx.check(name)?;
            let base = Base { home: self.user_home.clone(), ..Base::at(self.share.root()) };
            let mut inquiry = Inquiry {
                fetcher: &self.fetcher,
                cx: cx.fetching(base),
                answers: &mut answers,
                moved: Vec::new(),
                unknown: Vec::new(),
            };
            let asked = inquiry.collection(&self.share, name, entry.source.as_deref()).await;
            let Inquiry { moved, unknown, .. } = inquiry;
            news.push(CollectionNews { collection: name.clone(), moved, unknown, problem: asked.err() });
        }
        Ok(news)
    }
}

struct Inquiry<'a> {
    fetcher: &'a Fetcher,
    cx: FetchContext,
    answers: &'a mut Answers,
    moved: Vec<Moved>,
    unknown: Vec<String>,
}

impl Inquiry<'_> {
    async fn collection(
        &mut self,
        share: &Share,
        name: &ShareName,
        source: Option<&str>,
    ) -> Result<(), ProfileError> {
        let failed = |source| ProfileError::Collection { collection: name.to_string(), source };
        if let (Some(source), Some(record)) = (source, CollectionRecord::read(share, name)) {
            self.ask(source, record.commit.as_deref()).await.map_err(failed)?;
        }
        for id in share.profiles(name)? {
            let Some(lock) = ProfileLock::read(&share.profile_dir(&id)) else { continue };
            for LockedResource { reference, commit, .. } in lock.resources.all() {
                self.ask(reference, commit.as_deref()).await.map_err(failed)?;
            }
        }
        Ok(())
    }

    async fn ask(&mut self, source: &str, commit: Option<&str>) -> Result<(), FetchError> {
        // A text that is no source was told when it was compiled.
        let Ok(uri) = source.parse::<SourceUri>() else { return Ok(()) };
        let (SourceUri::Git(git), Some(from)) = (&uri, commit) else {
            if uri.is_remote() {
                note(&mut self.unknown, uri.to_string());
            }
            return Ok(());
        };
        let name = git.whole().to_string();
        if !self.answers.contains_key(&name) {
            let latest = self.fetcher.latest_commit(git, &self.cx).await?;
            self.answers.insert(name.clone(), latest.to_string());
        }
        if let Some(to) = self.answers.get(&name).filter(|to| to.as_str() != from) {
            let (from, to) = (from.to_owned(), to.clone());
            note(&mut self.moved, Moved { source: name, from, to });
        }
        Ok(())
    }
}

/// Adds what is not there yet.
fn note<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}
