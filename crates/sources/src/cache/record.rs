//! The small files beside the entries: what an entry is, what it held, what a name stood for. Credentials never get here.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use amplifier_protocol::time::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::FetchError;
use crate::tree::{ContentHash, Listing};

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EntryRecord {
    /// Where it came from first, without credentials.
    pub source: String,
    pub content_hash: ContentHash,
    pub files: u64,
    pub bytes: u64,
    pub fetched_at: Timestamp,
}

/// What a name, such as a branch or an address, stood for when it was last asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NameRecord {
    /// The name, without credentials.
    pub source: String,
    /// The key of the entry.
    pub key: String,
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub validators: Validators,
    pub resolved_at: Timestamp,
}

/// What lets a server, or a look at a file, say that nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Validators {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// The hash of an archive's bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
}

impl Validators {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl EntryRecord {
    pub(crate) fn of(listing: &Listing, source: String, fetched_at: Timestamp) -> Self {
        Self {
            source,
            content_hash: listing.hash(),
            files: listing.files().len() as u64,
            bytes: listing.bytes(),
            fetched_at,
        }
    }

    pub(super) fn read(path: &Path) -> Result<Option<Self>, FetchError> {
        read(path)
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), FetchError> {
        write(path, self)
    }
}

impl NameRecord {
    /// A record that cannot be understood is none: the name is asked again.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, FetchError> {
        read(path)
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), FetchError> {
        write(path, self)
    }
}

pub(super) fn read_files(path: &Path) -> Result<Option<BTreeMap<String, String>>, FetchError> {
    read(path)
}

pub(super) fn write_files(path: &Path, listing: &Listing) -> Result<(), FetchError> {
    write(path, listing.files())
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, FetchError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FetchError::at("read", path)(error)),
    }
}

/// Whole or not at all: a reader sees the old text or the new one.
fn write(path: &Path, value: &impl Serialize) -> Result<(), FetchError> {
    let at = || FetchError::in_cache("write", path);
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| at()(error.into()))?;
    text.push(b'\n');
    let mut builder = tempfile::Builder::new();
    // As readable as the entry it describes: a cache may be prepared by one user and used by another.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    let mut file = builder.prefix(".new-").tempfile_in(folder).map_err(at())?;
    io::Write::write_all(&mut file, &text).and_then(|()| file.as_file().sync_data()).map_err(at())?;
    file.persist(path).map_err(|error| at()(error.error))?;
    Ok(())
}
