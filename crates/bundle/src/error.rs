//! Why a bundle cannot be had.

use std::path::PathBuf;

use crate::home::Escape;
use crate::notice::{Notice, Severity};
use crate::origin::Place;
use crate::yaml::YamlError;

/// Why a bundle cannot be had.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// No source knows the reference.
    #[error("`{reference}` is not to be had")]
    NotFound {
        /// What was asked for.
        reference: String,
        /// Why not.
        #[source]
        source: FetchError,
    },
    /// A folder that holds no bundle.
    #[error("`{}` holds neither `bundle.md` nor `bundle.yaml`", .0.display())]
    NoBundleFile(PathBuf),
    /// A file that is no bundle by its name.
    #[error("`{}` is no bundle: its name ends neither in `.md` nor in `.yaml` or `.yml`", .0.display())]
    UnknownFormat(PathBuf),
    /// A file that could not be read.
    #[error("`{}` cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: ReadError,
    },
    /// A file that is not text.
    #[error("`{}` is not UTF-8 text: byte {offset} in line {line} does not fit", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The first byte that does not fit, counted from 0.
        offset: usize,
        /// Its line.
        line: usize,
    },
    /// A file whose YAML is broken.
    #[error(transparent)]
    Yaml(#[from] YamlError),
    /// Files with mistakes, or in strict mode with warnings.
    #[error("{}", first_of(.0))]
    Invalid(Vec<Notice>),
    /// A path that leads out of its root.
    #[error(transparent)]
    Escape(#[from] Escape),
    /// A reference to a namespace that nothing provides.
    #[error("no bundle called `{namespace}` is loaded or registered, so `{reference}` means nothing")]
    UnknownNamespace {
        /// The namespace.
        namespace: String,
        /// The whole reference.
        reference: String,
    },
    /// A namespace is there, the path in it is not.
    #[error("`{reference}` is not there; tried {}", crate::notice::quoted(tried.iter().map(String::as_str)))]
    NothingThere {
        /// The reference.
        reference: String,
        /// The paths that were tried.
        tried: Vec<String>,
    },
    /// An include that cannot be had, and the way to it.
    #[error("{place}: include `{reference}` of {} cannot be loaded", chain.join(" → "))]
    Include {
        /// Where it is written.
        place: Place,
        /// What it names.
        reference: String,
        /// The files from the one asked for to the one that includes it.
        chain: Vec<String>,
        /// Why not.
        #[source]
        source: Box<BundleError>,
    },
    /// An include that leads back to a file that is being loaded.
    #[error("{place}: the includes form a circle: {}", chain.join(" → "))]
    Cycle {
        /// Where the last include is written.
        place: Place,
        /// The files of the circle.
        chain: Vec<String>,
    },
    /// A bound was passed.
    #[error("{what} exceeds the limit of {limit}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
}

/// Why a source has nothing for a reference. The text comes from whoever fetches.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FetchError {
    /// What was tried and what came of it.
    pub message: String,
    /// What the user can do about it.
    pub hint: Option<String>,
}

impl FetchError {
    /// An error with this text.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// The same with advice.
    #[must_use]
    pub fn with_hint(self, hint: Option<&str>) -> Self {
        Self { hint: hint.map(str::to_owned), ..self }
    }
}

/// Why a file on this machine was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is not there.
    #[error("it does not exist")]
    Missing,
    /// We may not.
    #[error("permission denied")]
    Denied,
    /// It is larger than we read.
    #[error("it is {size} bytes long; at most {limit} are read")]
    TooLarge {
        /// Its size.
        size: u64,
        /// The bound.
        limit: u64,
    },
    /// It is a folder, a device or a pipe.
    #[error("it is not a regular file")]
    NotAFile,
    /// The system said no.
    #[error("{0}")]
    Io(String),
}

impl BundleError {
    /// Where in a text the cause lies, for messages that show the line.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Yaml(error) => Some(&error.place),
            Self::Invalid(notices) => worst(notices).and_then(|notice| notice.place.as_ref()),
            Self::Include { source, place, .. } => source.place().or(Some(place)),
            Self::Cycle { place, .. } => Some(place),
            _ => None,
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Invalid(notices) => worst(notices).and_then(|notice| notice.hint.clone()),
            Self::Include { source, .. } => source.hint(),
            Self::NotFound { source, .. } => source.hint.clone(),
            Self::UnknownNamespace { namespace, .. } => {
                Some(format!("include the bundle whose name is `{namespace}`, or register it"))
            }
            Self::NotText { .. } => Some("save the file as UTF-8".into()),
            _ => None,
        }
    }
}

fn worst(notices: &[Notice]) -> Option<&Notice> {
    notices.iter().find(|notice| notice.severity == Severity::Error).or_else(|| notices.first())
}

fn first_of(notices: &[Notice]) -> String {
    let Some(first) = worst(notices) else { return "the bundle is not valid".into() };
    match notices.len() {
        0 | 1 => first.to_string(),
        more => format!("{first} (and {} more)", more - 1),
    }
}
