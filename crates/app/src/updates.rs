//! What has newer commits than what is here: bundles with their modules, collections, and the modules of their profiles.
//! It only asks; nothing is fetched or written. Bringing them here is `bundles.rs`'s and the `profile` crate's.

use std::sync::Arc;

use amplifier_profile::steps::Silent;
use amplifier_sources::fetch::Freshness;
use serde::Serialize;

use crate::bundles;
use crate::library::Access;
use crate::profiles::{self, ProfileError};
use crate::registry::{Registry, RegistryError};

/// What was asked about one bundle or collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct News {
    pub kind: Kind,
    pub name: String,
    /// What would move, one line each.
    pub changes: Vec<String>,
    /// Sources of which nobody can say without fetching them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Why it cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What brings it here.
    pub command: String,
}

/// What it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Bundle,
    Collection,
}

impl Kind {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bundle => "bundle",
            Self::Collection => "collection",
        }
    }
}

/// Why nothing could be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpdatesError {
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Profile(#[from] Box<ProfileError>),
}

impl UpdatesError {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Registry(error) => error.hint().map(str::to_owned),
            Self::Profile(error) => error.hint(),
        }
    }
}

/// Asks about every registered bundle and every collection. One that cannot be told costs nobody else.
pub async fn look(access: &Access) -> Result<Vec<News>, UpdatesError> {
    let mut news = Vec::new();
    let still = Access { freshness: Freshness::Offline, ..access.clone() };
    for name in Registry::new(&access.home).read()?.bundles.into_keys() {
        let (changes, unknown, problem) = match bundles::check(&name, &still).await {
            Ok(update) => (update.changes, update.unknown, None),
            Err(fault) => (Vec::new(), Vec::new(), Some(amplifier_core::error::chain(&fault))),
        };
        let command = format!("amplifier bundle update {name}");
        news.push(News { kind: Kind::Bundle, name, changes, unknown, problem, command });
    }
    let cx = profiles::context(access, Arc::new(Silent));
    for found in profiles::profiles(access).news(&cx).await.map_err(Box::new)? {
        let name = found.collection.to_string();
        let command = format!("amplifier collection sync {name} --refresh");
        let problem = found.problem.map(|error| error.chain());
        let changes = found.moved.iter().map(ToString::to_string).collect();
        news.push(News { kind: Kind::Collection, name, changes, unknown: found.unknown, problem, command });
    }
    Ok(news)
}
