//! Looks at a profile without fetching or writing anything: its texts, its references, and whether it is compiled.

use std::path::Path;

use amplifier_bundle::notice::Notice;

use crate::chain::Profile;
use crate::compile::{is_current, is_in_place};
use crate::error::ProfileError;
use crate::lock_file::ProfileLock;
use crate::profiles::Profiles;
use crate::reference::{self, Reference};
use crate::share::{ProfileId, ShareName};

/// What a look at a profile found.
#[derive(Debug)]
pub struct Check {
    pub profile: Profile,
    pub references: Vec<Reference>,
    pub state: State,
}

/// How a profile stands to the folders beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Never compiled, or its lock cannot be read.
    NotCompiled,
    /// Compiled from something else than what is there now; a line for each difference.
    Stale(Vec<String>),
    /// All is as the lock says.
    Current,
}

/// A profile as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileSummary {
    pub id: ProfileId,
    pub version: String,
    pub description: String,
    pub extends: Option<String>,
    /// Whether there is a lock; `check` says whether it still holds.
    pub is_compiled: bool,
    /// Why its text cannot be read.
    pub problem: Option<String>,
}

impl Check {
    /// What is worth telling about its texts.
    pub fn notices(&self) -> &[Notice] {
        &self.profile.notices
    }
}

impl Profiles {
    /// Looks at a profile.
    pub fn check(&self, id: &ProfileId) -> Result<Check, ProfileError> {
        let profile = self.load(id)?;
        let references = reference::list(&self.share, &profile)?;
        let state = match ProfileLock::read(&profile.dir) {
            None => State::NotCompiled,
            Some(lock) => {
                let differences = self.differences(&profile, &references, &lock);
                if differences.is_empty() { State::Current } else { State::Stale(differences) }
            }
        };
        Ok(Check { profile, references, state })
    }

    /// Every profile of every collection, sorted; a broken one is listed with its problem.
    pub fn list(&self) -> Result<Vec<ProfileSummary>, ProfileError> {
        let mut found = Vec::new();
        for collection in self.share.collections()? {
            found.extend(self.list_collection(&collection)?);
        }
        Ok(found)
    }

    fn list_collection(&self, collection: &ShareName) -> Result<Vec<ProfileSummary>, ProfileError> {
        let ids = self.share.profiles(collection)?.into_iter();
        Ok(ids.map(|id| self.summary(id)).collect())
    }

    fn summary(&self, id: ProfileId) -> ProfileSummary {
        let is_compiled = ProfileLock::read(&self.share.profile_dir(&id)).is_some();
        let mut summary = ProfileSummary {
            id,
            version: String::new(),
            description: String::new(),
            extends: None,
            is_compiled,
            problem: None,
        };
        match self.load(&summary.id) {
            Ok(profile) => {
                if let Some(head) = profile.head() {
                    let text = |text: &Option<amplifier_bundle::bundle::Text>| {
                        text.as_ref().map(|text| text.text.clone()).unwrap_or_default()
                    };
                    summary.version = text(&head.version);
                    summary.description = text(&head.description);
                }
                summary.extends = profile.own().and_then(|file| file.extends()).map(|text| text.text);
            }
            Err(error) => summary.problem = Some(error.chain()),
        }
        summary
    }

    fn differences(&self, profile: &Profile, references: &[Reference], lock: &ProfileLock) -> Vec<String> {
        let mut found = Vec::new();
        if !is_current(profile, lock) {
            found.push("its text, or that of a profile it extends, was edited".to_owned());
        }
        for reference in references {
            let name = &reference.name;
            let target = reference.target(&profile.dir);
            match lock.resources.find(reference.slot, name) {
                None => found.push(format!("`{name}` is new")),
                Some(locked) if locked.reference != reference.shown => {
                    found.push(format!(
                        "`{name}` came from `{}`, now `{}`",
                        locked.reference, reference.shown
                    ));
                }
                Some(_) if !target.exists() => {
                    found.push(format!("`{}` is missing", shown(&target, profile)))
                }
                Some(locked) if !is_in_place(&target, locked, &self.fetcher) => {
                    found.push(format!("`{}` is not what was locked", shown(&target, profile)));
                }
                Some(_) => {}
            }
        }
        if lock.resources.count() > references.len() {
            found.push("the lock names things that are no longer used".to_owned());
        }
        found
    }
}

fn shown(path: &Path, profile: &Profile) -> String {
    path.strip_prefix(&profile.dir).unwrap_or(path).display().to_string()
}
