//! What this crate asks of the world: local files, and sources brought to this machine.
//!
//! `app` fills [`Fetch`] with the `sources` crate; [`crate::disk::Disk`] is enough where everything is local. Reading is
//! bounded by whoever asks.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{FetchError, ReadError};
use crate::home::Source;

/// What stands at a path, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A device, a pipe or a socket: nothing we read.
    Other,
    /// Nothing, or nothing we may see.
    Missing,
}

/// Enough about a file to know that it was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Its length.
    pub length: u64,
    /// When it was last written, where the system knows.
    pub modified: Option<SystemTime>,
}

/// Files of this machine.
///
/// Calls are short: callers bound what they read, and implementers never wait for the network here.
pub trait Files: Send + Sync {
    /// The bytes of a regular file that is no longer than `limit`.
    ///
    /// # Errors
    /// [`ReadError`] says why not; a longer file is never read in part.
    fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, ReadError>;

    /// What stands at a path.
    fn kind(&self, path: &Path) -> PathKind;

    /// The names in a folder with what they are, in any order.
    ///
    /// # Errors
    /// [`ReadError`] says why not.
    fn list(&self, path: &Path) -> Result<Vec<(String, PathKind)>, ReadError>;

    /// The path with every link resolved.
    ///
    /// # Errors
    /// [`ReadError`] when nothing is there.
    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError>;

    /// The state of a file, to see later whether it changed.
    fn stamp(&self, path: &Path) -> Option<Stamp>;
}

/// Sources that may have to be fetched.
///
/// Calls for different references run at the same time. Dropping the future cancels the fetch.
pub trait Fetch: Files {
    /// The address to use instead of a reference: a registered name, or an override that settings ask for.
    ///
    /// Asked first for everything that is included, and for every namespace no loaded bundle has.
    fn redirect(&self, reference: &str) -> Option<String>;

    /// Brings what an address names to this machine, once: the same address again costs nothing.
    fn fetch(&self, address: &str) -> impl Future<Output = Result<Fetched, FetchError>> + Send;
}

/// What a fetch brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// What was asked for: a file or a folder.
    pub path: PathBuf,
    /// The root of the tree it lies in; its files may not reach beyond it.
    pub root: PathBuf,
    /// Where it comes from.
    pub source: Source,
}
