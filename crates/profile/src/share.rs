//! The folder `share/` and the names in it. It knows where things are, not what they hold.
//!
//! ```text
//! share/collections.yaml                         the registry
//! share/profiles/<collection>/<profile>/         profile.md, profile.lock, and what the profile is made of
//! share/profiles/<collection>/.collection.json   where the profiles of the collection were taken from
//! share/.locks/                                  one writer at a time
//! ```

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::ProfileError;

/// The collection whose profiles are written by hand, in place.
pub const LOCAL: &str = "local";

/// The folder `share/` of a home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    root: PathBuf,
}

/// The name of a collection or of a profile: one folder, never a way out of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShareName(String);

/// A profile of a collection, written `collection/profile`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProfileId {
    pub collection: ShareName,
    pub profile: ShareName,
}

impl Share {
    /// The folder, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn collections_file(&self) -> PathBuf {
        self.root.join("collections.yaml")
    }

    pub fn collection_dir(&self, collection: &ShareName) -> PathBuf {
        self.root.join("profiles").join(collection.as_str())
    }

    pub fn profile_dir(&self, id: &ProfileId) -> PathBuf {
        self.collection_dir(&id.collection).join(id.profile.as_str())
    }

    /// The text of a profile: `profile.md`, or `<profile>.md` where an older program wrote it.
    pub fn profile_file(&self, id: &ProfileId) -> PathBuf {
        let dir = self.profile_dir(id);
        let file = dir.join("profile.md");
        let older = dir.join(format!("{}.md", id.profile));
        if !file.exists() && older.is_file() { older } else { file }
    }

    /// The names of the collections that have profiles here, sorted.
    pub fn collections(&self) -> Result<Vec<ShareName>, ProfileError> {
        let mut names = folders(&self.root.join("profiles"))?;
        names.retain(|name| self.profiles(name).is_ok_and(|profiles| !profiles.is_empty()));
        Ok(names)
    }

    /// The profiles of a collection that were extracted, sorted.
    pub fn profiles(&self, collection: &ShareName) -> Result<Vec<ProfileId>, ProfileError> {
        let ids = folders(&self.collection_dir(collection))?.into_iter();
        let ids = ids.map(|profile| ProfileId { collection: collection.clone(), profile });
        Ok(ids.filter(|id| self.profile_file(id).is_file()).collect())
    }

    pub(crate) fn lock_path(&self, name: &str) -> PathBuf {
        self.root.join(".locks").join(format!("{name}.lock"))
    }
}

fn folders(dir: &Path) -> Result<Vec<ShareName>, ProfileError> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(ProfileError::io("read", dir))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(ProfileError::io("read", dir))?;
        if entry.path().is_dir() {
            // What is not a name of ours was not made here.
            names.extend(entry.file_name().to_str().and_then(|name| name.parse::<ShareName>().ok()));
        }
    }
    names.sort();
    Ok(names)
}

impl ShareName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ShareName {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, ProfileError> {
        const LONGEST: usize = 100;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins && text.len() <= LONGEST && text.chars().all(fits) {
            return Ok(Self(text.to_owned()));
        }
        Err(ProfileError::Name { name: text.to_owned() })
    }
}

impl fmt::Display for ShareName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ProfileId {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, ProfileError> {
        let parts: Vec<_> = text.split('/').collect();
        let [collection, profile] = parts.as_slice() else {
            return Err(ProfileError::Id { id: text.to_owned() });
        };
        if collection.is_empty() || profile.is_empty() {
            return Err(ProfileError::Id { id: text.to_owned() });
        }
        Ok(Self { collection: collection.parse()?, profile: profile.parse()? })
    }
}

impl fmt::Display for ProfileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.collection, self.profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_two_names_and_nothing_else() {
        assert_eq!("foundation/base".parse::<ProfileId>().unwrap().to_string(), "foundation/base");
        for wrong in ["foundation", "", "/", "a/", "/b", "a/b/c"] {
            let said = wrong.parse::<ProfileId>().unwrap_err().to_string();
            let expected = "Expected format: collection/profile (e.g., 'foundation/base')";
            assert_eq!(said, format!("Invalid profile_id format: {wrong}. {expected}"));
        }
        for hostile in ["../x", "a/..", "a/.hidden", "a/b\\c", "a b/c"] {
            assert!(hostile.parse::<ProfileId>().is_err(), "{hostile}");
        }
    }
}
