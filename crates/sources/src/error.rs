//! Why something could not be had. Every error names the source without its credentials, the attempt and the cause.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::tree::{ContentHash, TreeError};
use crate::uri::UriError;
use crate::zip::ArchiveError;

/// Why a source gave nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    #[error(transparent)]
    Uri(#[from] UriError),
    /// A name or a `namespace:path`; whoever keeps the names has to be asked first.
    #[error("`{uri}` is a name, not a place to fetch from")]
    NotALocation { uri: String },
    #[error("`{}` does not exist", path.display())]
    Missing { path: PathBuf },
    #[error("`{path}` is a path of another operating system")]
    ForeignPath { path: String },
    #[error("Subdirectory '{subdirectory}' not found in repository `{uri}`")]
    SubdirectoryMissing { uri: String, subdirectory: String },
    #[error("`{}` leaves `{}`, to which it is confined", path.display(), root.display())]
    Escapes { path: PathBuf, root: PathBuf },
    #[error("`{uri}` has no branch or tag `{reference}`")]
    RefNotFound { uri: String, reference: String },
    #[error("commit `{commit}` cannot be had from `{uri}`{}", said(message))]
    CommitNotFound { uri: String, commit: String, message: String },
    #[error("commit `{prefix}` of `{uri}` is ambiguous; write more of it")]
    AmbiguousCommit { uri: String, prefix: String },
    #[error("git cannot {action} `{uri}`{}", said(message))]
    Git { uri: String, action: &'static str, message: String },
    #[error("`{}` cannot be started", program.display())]
    GitMissing {
        program: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{uri}` took longer than {} s to {action}", after.as_secs())]
    TimedOut { uri: String, action: &'static str, after: Duration },
    #[error("fetching `{uri}` was cancelled")]
    Cancelled { uri: String },
    #[error("`{uri}` is not in the cache, and nothing may be fetched now")]
    NotCached { uri: String },
    #[error("`{uri}` answered with status {status}")]
    HttpStatus { uri: String, status: u16 },
    #[error("`{uri}` cannot be reached: {cause}")]
    Unreachable { uri: String, cause: String },
    #[error("`{uri}` could not be downloaded")]
    Http {
        uri: String,
        #[source]
        source: reqwest::Error,
    },
    #[error("`{uri}` redirects {why}")]
    Redirect { uri: String, why: String },
    #[error("`{uri}` is larger than {limit} bytes")]
    TooLarge { uri: String, limit: u64 },
    #[error("the archive `{uri}` cannot be unpacked")]
    Archive {
        uri: String,
        #[source]
        source: ArchiveError,
    },
    #[error("what `{uri}` holds cannot be kept")]
    Tree {
        uri: String,
        #[source]
        source: TreeError,
    },
    #[error("`{uri}` is not what was locked: {what}")]
    Drift { uri: String, what: Drift },
    /// A commit or a download has other content than when it was fetched or locked.
    #[error("`{key}` in the cache was changed: its content is {found}, not {expected}")]
    CacheChanged { key: String, expected: ContentHash, found: ContentHash },
    #[error("{} holds the lock `{}` for more than {} s", holder.as_deref().unwrap_or("another process"), path.display(), waited.as_secs())]
    Busy { path: PathBuf, holder: Option<String>, waited: Duration },
    #[error("the cache folder `{}` cannot be written to", path.display())]
    CacheNotWritable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// What was attempted, as a verb.
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("a worker of the fetch ended early: {message}")]
    Worker { message: String },
}

/// How a source differs from its lock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Drift {
    #[error("its content is {found}, the lock says {locked}")]
    Content { locked: ContentHash, found: ContentHash },
    /// The locked commit or download itself, which cannot change where it comes from.
    #[error("its content is {found}, the lock says {locked}; `{key}` in the cache was changed")]
    Cache { key: String, locked: ContentHash, found: ContentHash },
    #[error("the lock does not name it")]
    NotLocked,
}

impl FetchError {
    /// Turns an I/O error into one that names the attempt and the place.
    pub(crate) fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }

    /// The same, in the cache: a folder that may not be written to is told as that.
    pub(crate) fn in_cache(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::CacheNotWritable { path, source }
            }
            _ => Self::File { action, path, source },
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Git { .. } => Some(
                "check the address, the network and what `git ls-remote` says; credentials come from git's own helpers",
            ),
            Self::Unreachable { .. } | Self::Http { .. } | Self::TimedOut { .. } => Some(
                "check the address and the network, and try again; what was fetched once is used without them",
            ),
            Self::HttpStatus { .. } => {
                Some("check the address: the server is there and does not give it out")
            }
            Self::GitMissing { .. } => Some("install git, or use sources that do not need it"),
            Self::NotALocation { .. } => {
                Some("write a folder as `./NAME`, a repository as `git+https://HOST/OWNER/NAME@BRANCH`")
            }
            Self::Missing { .. } => Some("check the path"),
            Self::NotCached { .. } => Some("fetch it once with the network on"),
            Self::CacheNotWritable { .. } => {
                Some("make the folder writable, or move the home with AMPLIFIER_HOME")
            }
            Self::CommitNotFound { .. } => {
                Some("the commit may have been removed by a forced push; choose another and lock again")
            }
            Self::Drift { .. } => Some("look at the change, then update the lock"),
            Self::CacheChanged { .. } => {
                Some("remove the entry with `amplifier cache clear`; it is fetched again when it is wanted")
            }
            Self::Busy { .. } => Some("wait for the other process, or end it"),
            _ => None,
        }
    }

    /// The error and its causes in one line, for places that keep a text.
    pub fn chain(&self) -> String {
        amplifier_core::error::chain(self)
    }
}

fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}
