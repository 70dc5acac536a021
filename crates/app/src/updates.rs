//! What has newer commits than what is here: bundles with their modules, collections, and the modules of their profiles.
//! It only asks; nothing is fetched or written. Bringing them here is `bundles.rs`'s and the `profile` crate's.

use std::sync::Arc;

use amplifier_profile::news::Moved;
use amplifier_profile::steps::Silent;
use amplifier_sources::fetch::Freshness;
use serde::Serialize;

use crate::bundles::{self, Change};
use crate::credentials;
use crate::library::Access;
use crate::prepare::BundleFault;
use crate::profiles::{self, ProfileError};

/// What was asked about one bundle or collection.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct News {
    pub kind: Kind,
    pub name: String,
    /// What would move.
    pub changes: Vec<Change>,
    /// Sources of which nobody can say without fetching them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Why it cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What can be done about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What brings it here.
    pub command: String,
}

/// What it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    #[default]
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
    Bundle(#[from] BundleFault),
    #[error(transparent)]
    Profile(#[from] Box<ProfileError>),
}

impl UpdatesError {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Bundle(fault) => fault.hint(),
            Self::Profile(error) => error.hint(),
        }
    }
}

/// Asks about every registered bundle, the one in use, and every collection. One that cannot be told costs nobody else.
pub async fn look(access: &Access) -> Result<Vec<News>, UpdatesError> {
    let mut news = Vec::new();
    let still = Access { freshness: Freshness::Offline, ..access.clone() };
    for reference in bundles::watched(access)? {
        let checked = bundles::check(&reference, &still).await;
        let name = credentials::shown(&reference);
        let command = format!("amplifier bundle update {name}");
        let mut about = News { kind: Kind::Bundle, name, command, ..News::default() };
        match checked {
            Ok(update) => (about.changes, about.unknown) = (update.changes, update.unknown),
            Err(fault) => {
                (about.problem, about.hint) = (Some(amplifier_core::error::chain(&fault)), fault.hint());
            }
        }
        news.push(about);
    }
    let cx = profiles::context(access, Arc::new(Silent));
    for found in profiles::profiles(access).news(&cx).await.map_err(Box::new)? {
        let name = found.collection.to_string();
        let command = format!("amplifier collection sync {name} --refresh");
        let hint = found.problem.as_ref().and_then(|error| error.hint());
        let problem = found.problem.map(|error| error.chain());
        let moved =
            |moved: Moved| Change { source: moved.source, from: Some(moved.from), to: Some(moved.to) };
        let changes = found.moved.into_iter().map(moved).collect();
        let unknown = found.unknown;
        news.push(News { kind: Kind::Collection, name, changes, unknown, problem, hint, command });
    }
    Ok(news)
}
