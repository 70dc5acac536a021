//! Why a collection or a profile cannot be had. Every error names the thing, the place in its text, and the cause.

use std::io;
use std::path::{Path, PathBuf};

use amplifier_bundle::error::{BundleError, ReadError};
use amplifier_bundle::origin::Place;
use amplifier_bundle::yaml::YamlError;
use amplifier_sources::error::FetchError;
use amplifier_sources::tree::TreeError;
use amplifier_sources::uri::UriError;

use crate::copy::CopyError;
use crate::reference::Slot;

/// Why a collection or a profile cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    #[error("Invalid profile_id format: {id}. Expected format: collection/profile (e.g., 'foundation/base')")]
    Id { id: String },
    #[error("`{name}` is no name of a collection or profile")]
    Name { name: String },
    /// The registry is not YAML.
    #[error(transparent)]
    RegistryText(#[from] YamlError),
    #[error("{place}: {message}")]
    Registry { place: Place, message: String },
    #[error("`{}` cannot be read", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: ReadError,
    },
    #[error("Collection already exists: {name}")]
    CollectionExists { name: String },
    #[error("the address `{uri}` holds a credential, which would be written to a file")]
    Credential { uri: String },
    #[error("there is no collection `{name}`")]
    NoCollection { name: String },
    #[error("the collection `local` holds the profiles you write yourself; it has no source")]
    LocalCollection,
    #[error("the source of collection `{collection}` cannot be had")]
    Collection {
        collection: String,
        #[source]
        source: FetchError,
    },
    #[error("two profiles of collection `{collection}` are called `{name}`: `{}` and `{}`", one.display(), two.display())]
    SameName { collection: String, name: String, one: PathBuf, two: PathBuf },
    #[error("collection `{collection}` holds more than {limit} files")]
    TooManyFiles { collection: String, limit: usize },
    /// The text of a profile has mistakes.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error("{place}: {rejection}")]
    Rejected { place: Place, rejection: Rejection },
    #[error("there is no profile `{id}`")]
    NoProfile { id: String },
    #[error("Profile cache directory not found: {}. The profile `{id}` must be compiled/cached first.", path.display())]
    NotCompiled { id: String, path: PathBuf },
    #[error("{place}: the profile `{base}` that `{id}` extends is not there")]
    NoBase { place: Place, base: String, id: String },
    #[error("{place}: profiles extend each other in a circle: {}", chain.join(" → "))]
    Cycle { place: Place, chain: Vec<String> },
    #[error("{place}: `{text}` is no reference")]
    ReferenceText {
        place: Place,
        text: String,
        #[source]
        source: UriError,
    },
    #[error("{place}: {what}")]
    ReferenceForm { place: Place, what: String },
    #[error("{place}: the {slot} reference `{reference}` of `{name}` cannot be resolved")]
    Reference {
        place: Place,
        slot: Slot,
        name: String,
        reference: String,
        #[source]
        source: FetchError,
    },
    #[error("{place}: `{name}` has two sources: `{first}` and `{second}`")]
    TwoSources { place: Place, name: String, first: String, second: String },
    #[error("{place}: Context ref must be a directory: `{reference}` is a file")]
    ContextNotFolder { place: Place, reference: String },
    #[error("{place}: the agent `{name}` is one file of text; `{reference}` is {found}")]
    AgentNotText { place: Place, name: String, reference: String, found: &'static str },
    #[error(
        "{place}: `{reference}` holds no module `{id}`: expected the folder `{expected}` in it{}",
        found_instead(found)
    )]
    NoPackage { place: Place, id: String, reference: String, expected: String, found: Vec<String> },
    #[error("{place}: `{reference}` cannot be copied")]
    Copy {
        place: Place,
        reference: String,
        #[source]
        source: CopyError,
    },
    #[error("`{}` has no content hash", path.display())]
    Hash {
        path: PathBuf,
        #[source]
        source: TreeError,
    },
    /// Waiting for another process, or giving up on it.
    #[error(transparent)]
    Guard(FetchError),
    #[error("the work on `{what}` was cancelled")]
    Cancelled { what: String },
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was attempted, as a verb.
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("a worker ended early: {message}")]
    Worker { message: String },
}

/// Why a file is no profile we read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    #[error("the file has no front matter")]
    NoFrontMatter,
    #[error("the front matter has no closing `---`")]
    Unclosed,
    #[error("the front matter has no `profile` section")]
    NoProfileSection,
    #[error("`profile.schema_version` is missing")]
    NoSchemaVersion,
    #[error("`profile.schema_version` {0} is not supported; 2 is")]
    SchemaVersion(String),
    #[error("`profile.name` is missing")]
    NoName,
    #[error("`profile.name` is `{0}`, which is no name of a folder")]
    BadName(String),
    #[error("`profile.version` is missing")]
    NoVersion,
    #[error("`session.{0}` is missing")]
    NoSlot(&'static str),
}

impl Rejection {
    /// What the author can do about it.
    fn hint(&self) -> &'static str {
        match self {
            Self::NoFrontMatter | Self::NoProfileSection => {
                "begin the file with `---`, `profile:` with name, version and schema_version, and `---`"
            }
            Self::Unclosed => "add a line `---` after the YAML",
            Self::NoSchemaVersion | Self::SchemaVersion(_) => "write `schema_version: 2` below `profile:`",
            Self::NoName | Self::BadName(_) => {
                "write `name:` below `profile:`, in letters, digits, `-`, `_` and `.`"
            }
            Self::NoVersion => "write `version: 1.0.0` below `profile:`",
            Self::NoSlot(_) => "name the module, here or in the profile that this one extends",
        }
    }
}

impl ProfileError {
    /// Turns an I/O error into one that names the attempt and the place.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// Where in a text the cause lies, for messages that show the line.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::RegistryText(error) => Some(&error.place),
            Self::Bundle(error) => error.place(),
            Self::Registry { place, .. }
            | Self::Rejected { place, .. }
            | Self::NoBase { place, .. }
            | Self::Cycle { place, .. }
            | Self::ReferenceText { place, .. }
            | Self::ReferenceForm { place, .. }
            | Self::Reference { place, .. }
            | Self::TwoSources { place, .. }
            | Self::ContextNotFolder { place, .. }
            | Self::AgentNotText { place, .. }
            | Self::NoPackage { place, .. }
            | Self::Copy { place, .. } => Some(place),
            _ => None,
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Bundle(error) => return error.hint(),
            Self::Rejected { rejection, .. } => rejection.hint(),
            Self::Reference { source, .. } | Self::Collection { source, .. } | Self::Guard(source) => {
                return source.hint().map(str::to_owned);
            }
            Self::Id { .. } => "`amplifier profile list` shows the profiles there are",
            Self::Name { .. } => "use letters, digits, `-`, `_` and `.`, and begin with a letter or digit",
            Self::Read { .. } => "make the file readable for you, save it as UTF-8, or move it away",
            Self::RegistryText(_) | Self::Registry { .. } => {
                "mend the file in an editor, or move it away; `amplifier collection add` writes a new one"
            }
            Self::NoCollection { .. } => "`amplifier collection list` shows those there are",
            Self::Credential { .. } => "leave it out; git's own credential helpers are asked for it",
            Self::CollectionExists { .. } => "remove it first, or choose another name",
            Self::NoProfile { .. } | Self::NoBase { .. } => {
                "`amplifier profile list` shows those there are; `amplifier collection sync` brings new ones"
            }
            Self::NotCompiled { id, .. } => return Some(format!("run `amplifier profile compile {id}`")),
            Self::TwoSources { .. } => "a profile has one folder for each module: choose one of the sources",
            Self::SameName { .. } => "give one of them another `profile.name`",
            Self::NoPackage { .. } => {
                "point `source` at the folder that holds the package, with `#subdirectory=`"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    /// The error and its causes in one line, for places that keep a text.
    pub fn chain(&self) -> String {
        amplifier_core::error::chain(self)
    }
}

fn found_instead(found: &[String]) -> String {
    if found.is_empty() { String::new() } else { format!(", found {}", found.join(", ")) }
}
