//! Why there is no bundle, or no plan from it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use amplifier_bundle::error::BundleError;
use amplifier_bundle::origin::Place;
use amplifier_protocol::run::RunPlace;
use amplifier_sources::error::FetchError;
use amplifier_sources::lock::LockError;

use crate::files::{FileError, NOT_READABLE};
use crate::registry::RegistryError;
use crate::spelling;

/// Why a bundle is not ready.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleFault {
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Load(#[from] Box<BundleError>),
    /// A bundle that settings lay over every other.
    #[error("{place}: the bundle `{reference}` of `bundle.app` cannot be used")]
    App {
        reference: String,
        place: Place,
        #[source]
        source: Box<BundleError>,
    },
    /// Modules cannot be had, and all of them must be.
    #[error("{} of {of} modules cannot be had:\n  {}", problems.len(), problems.join("\n  "))]
    Modules { of: usize, problems: Vec<String> },
    /// It says too little, or something wrong, to make a session.
    #[error("bundle `{bundle}` makes no session:\n  {}", problems.join("\n  "))]
    Incomplete { bundle: String, problems: Vec<String>, lacks_session: bool },
    /// Something is not what the lock says.
    #[error("`{}` does not allow this:\n  {}", lock.display(), problems.join("\n  "))]
    Drift {
        lock: PathBuf,
        problems: Vec<String>,
        /// The entries of the cache whose content is not what was locked.
        changed: BTreeSet<String>,
    },
    /// What the lock names cannot be fetched.
    #[error("`{}` names sources that cannot be fetched:\n  {}", lock.display(), problems.join("\n  "))]
    Unavailable { lock: PathBuf, problems: Vec<String> },
    #[error("`{}` cannot be used", path.display())]
    Lock {
        path: PathBuf,
        #[source]
        source: LockError,
    },
    /// A lock lies beside a bundle, and this one is not in a folder of this machine.
    #[error("`{reference}` is not in a folder of this machine, so no lock can be written beside it")]
    NoFolder { reference: String },
    #[error(transparent)]
    Source(#[from] FetchError),
    #[error(transparent)]
    File(#[from] FileError),
}

/// What to do about entries of the cache that were changed.
fn clear<'a>(keys: impl IntoIterator<Item = &'a String>) -> String {
    let clear: Vec<_> = keys.into_iter().map(|key| format!("`amplifier cache clear {key}`")).collect();
    format!(
        "a commit never changes: {} removes what is here, and the next use fetches it again; if that differs too, the lock was edited",
        clear.join(" and ")
    )
}

impl BundleFault {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Registry(error) => error.hint().map(str::to_owned),
            Self::Load(error) => match &**error {
                BundleError::NotFound { source, .. } if source.hint.is_some() => source.hint.clone(),
                BundleError::NothingThere { .. }
                | BundleError::NotFound { .. }
                | BundleError::UnknownNamespace { .. } => Some(
                    "name a folder, a file, an address or a registered bundle (`amplifier bundle list`)"
                        .to_owned(),
                ),
                error => error.hint().or_else(|| mend(error)),
            },
            Self::Incomplete { lacks_session: true, .. } => Some(
                "include `foundation` or `minimal`, or add `session:` with `orchestrator` and `context`"
                    .to_owned(),
            ),
            Self::Drift { changed, .. } if !changed.is_empty() => Some(clear(changed)),
            Self::Source(FetchError::CacheChanged { key, .. }) => Some(clear([key])),
            Self::Drift { .. } => Some(
                "look at what changed; `amplifier bundle update` shows it and writes a new lock".to_owned(),
            ),
            Self::Unavailable { .. } => Some(
                "check the network and the addresses; `amplifier bundle update` chooses newer commits"
                    .to_owned(),
            ),
            Self::NoFolder { .. } => {
                Some("write a bundle of your own that includes it, and lock that one".to_owned())
            }
            Self::Source(error) => error.hint().map(str::to_owned),
            Self::App { source, .. } => {
                let cure = source.hint().or_else(|| mend(source));
                Some(cure.unwrap_or_else(|| {
                    "put it there, or take it out of `bundle.app` in that file".to_owned()
                }))
            }
            Self::Lock { .. } => Some("`amplifier bundle lock` writes it anew".to_owned()),
            Self::File(error) => Some(error.cure().unwrap_or(NOT_READABLE).to_owned()),
            Self::Modules { .. } => Some("without `--strict` the rest is used".to_owned()),
            Self::Incomplete { .. } => {
                Some("`amplifier bundle validate REF` lists everything that is amiss".to_owned())
            }
        }
    }

    /// Where in a file the cause lies.
    pub fn place(&self) -> Option<RunPlace> {
        match self {
            Self::Load(error) => error.place().map(RunPlace::from),
            Self::App { source, place, .. } => Some(source.place().unwrap_or(place).into()),
            _ => None,
        }
    }

    /// Whether nothing is known by the name that was asked for.
    pub fn is_unknown(&self) -> bool {
        let Self::Load(error) = self else { return false };
        matches!(
            **error,
            BundleError::NotFound { .. }
                | BundleError::NothingThere { .. }
                | BundleError::UnknownNamespace { .. }
        )
    }

    /// Whether the machine failed, and not what was asked for.
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Source(_) => true,
            Self::File(error) => !error.is_reading(),
            Self::Registry(error) => error.is_failure(),
            _ => false,
        }
    }
}

/// What to do about a file that is not what it should be.
fn mend(error: &BundleError) -> Option<String> {
    Some(match error {
        BundleError::Yaml(error) => {
            let file = &error.place.file;
            // What was fetched is mended where it comes from.
            match file.path.display().to_string() == file.name {
                true => format!(
                    "mend the YAML at that place; `amplifier bundle validate {}` checks it",
                    spelling::quoted(&file.path)
                ),
                false => "the YAML at that place must be mended where it comes from".to_owned(),
            }
        }
        BundleError::NoBundleFile(_) => "name the file itself, or put a `bundle.md` there".to_owned(),
        BundleError::UnknownFormat(_) => {
            "a bundle is Markdown or YAML; a mount plan in JSON is given with `--plan`".to_owned()
        }
        BundleError::Read { .. } => "check the path, and that you may read it".to_owned(),
        BundleError::Cycle { .. } => "take one of these includes out".to_owned(),
        BundleError::Include { source, .. } => return source.hint().or_else(|| mend(source)),
        _ => return None,
    })
}
