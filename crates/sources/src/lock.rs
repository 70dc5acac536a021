//! `bundle.lock`: what every source of a bundle was, so that it can be got again exactly, or refused.
//!
//! The file is JSON, its sources sorted, so that two people who lock the same thing write the same bytes. Sources are
//! named as they are shown, without credentials. Keys that are not known here are kept.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Drift, FetchError};
use crate::tree::ContentHash;
use crate::uri::SourceUri;

/// The form of the file that is written here.
pub const LOCK_VERSION: u32 = 1;

/// The closure of a bundle's sources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BundleLock {
    pub lock_version: u32,
    /// By the source as it is shown.
    pub sources: BTreeMap<String, LockedSource>,
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// What one source was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LockedSource {
    /// For git: the commit the ref stood for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Of the whole repository, download or archive; for places on the author's machine, of that place.
    pub content_hash: ContentHash,
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// One difference between two locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Added { source: String, now: String },
    Removed { source: String },
    Moved { source: String, from: String, to: String },
}

/// Why a text is no lock.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    #[error("the lock cannot be read")]
    Syntax(#[from] serde_json::Error),
    #[error("the lock has version {found}, known is {LOCK_VERSION}; a newer program wrote it")]
    Version { found: u32 },
}

impl Default for BundleLock {
    fn default() -> Self {
        Self { lock_version: LOCK_VERSION, sources: BTreeMap::new(), unknown: Map::new() }
    }
}

impl BundleLock {
    pub fn parse(text: &str) -> Result<Self, LockError> {
        // The version first: a later form may not fit this one at all.
        let value: Value = serde_json::from_str(text)?;
        let version =
            value.get("lock_version").and_then(Value::as_u64).and_then(|found| u32::try_from(found).ok());
        match version {
            Some(found) if found > LOCK_VERSION => Err(LockError::Version { found }),
            _ => Ok(serde_json::from_value(value)?),
        }
    }

    /// The text of the file: the same bytes for the same lock.
    pub fn to_text(&self) -> Result<String, LockError> {
        Ok(format!("{}\n", serde_json::to_string_pretty(self)?))
    }

    pub fn insert(&mut self, uri: &SourceUri, locked: LockedSource) {
        self.sources.insert(uri.to_string(), locked);
    }

    /// What the lock says about a source. A source it does not name is drift.
    pub fn find(&self, uri: &SourceUri) -> Result<&LockedSource, FetchError> {
        let shown = uri.to_string();
        let drift = || FetchError::Drift { uri: shown.clone(), what: Drift::NotLocked };
        self.sources.get(&shown).ok_or_else(drift)
    }

    /// Passes a newer lock unless it has a commit with other content than this one: a commit never changes, so its files in
    /// the cache did.
    pub fn check_commits(&self, newer: &Self) -> Result<(), FetchError> {
        for new in newer.sources.values() {
            let Some(key) = &new.commit else { continue };
            let same = self.sources.values().find(|old| old.commit.as_ref() == Some(key));
            if let Some(old) = same.filter(|old| old.content_hash != new.content_hash) {
                let (expected, found) = (old.content_hash.clone(), new.content_hash.clone());
                return Err(FetchError::CacheChanged { key: key.clone(), expected, found });
            }
        }
        Ok(())
    }

    /// What a newer lock changes, source by source.
    pub fn changes(&self, newer: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (source, old) in &self.sources {
            match newer.sources.get(source) {
                None => changes.push(Change::Removed { source: source.clone() }),
                Some(new) if (&new.commit, &new.content_hash) != (&old.commit, &old.content_hash) => {
                    changes.push(Change::Moved { source: source.clone(), from: old.name(), to: new.name() });
                }
                Some(_) => {}
            }
        }
        for (source, new) in newer.sources.iter().filter(|(source, _)| !self.sources.contains_key(*source)) {
            changes.push(Change::Added { source: source.clone(), now: new.name() });
        }
        changes
    }
}

impl LockedSource {
    pub fn new(commit: Option<String>, content_hash: ContentHash) -> Self {
        Self { commit, content_hash, unknown: Map::new() }
    }

    fn name(&self) -> String {
        self.commit.clone().unwrap_or_else(|| self.content_hash.to_string())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { source, now } => write!(f, "`{source}` is new, at {now}"),
            Self::Removed { source } => write!(f, "`{source}` is no longer used"),
            Self::Moved { source, from, to } => write!(f, "`{source}` moves from {from} to {to}"),
        }
    }
}
