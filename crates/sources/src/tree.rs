//! The content hash of a folder, and the list it is made from.
//!
//! The hash is SHA-256 over `amplifier-tree-v1\n` and then, for every file and link in the byte order of their paths,
//! `<kind> <sha256 of the content, in hex> <path>\0`. The kind is `file`, `exec` (the owner may execute it) or `link` (whose
//! content is the text it points to); paths are relative, with `/`. Folders count only through what they hold. Whatever
//! is called `.git` is left out. A single file is hashed as a folder that holds only it. Times, owners and other mode bits do
//! not count, so the same commit has the same hash on every machine.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::limits::Limits;

/// How deep folders may be nested.
const DEEPEST: usize = 128;

/// `sha256:` and 64 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContentHash(String);

/// What a folder holds: each path with the kind and hash of its content.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    files: BTreeMap<String, String>,
    bytes: u64,
}

/// Whether what was read must survive a power failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Everything is on the disk when the listing is there.
    Synced,
    /// It is only read.
    AsIs,
}

/// Why a folder has no hash.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    #[error("cannot read `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` is neither file, folder nor link", path.display())]
    Kind { path: PathBuf },
    #[error("the name `{}` is not UTF-8", path.display())]
    Name { path: PathBuf },
    #[error("it holds more than {limit} files")]
    Files { limit: u64 },
    #[error("it holds more than {limit} bytes")]
    Bytes { limit: u64 },
    #[error("its folders are nested deeper than {DEEPEST}")]
    Depth,
}

/// A text that is no hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no content hash; one is `sha256:` and 64 hex digits")]
pub struct HashFormError(String);

impl ContentHash {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The 64 digits.
    pub fn hex(&self) -> &str {
        self.0.strip_prefix("sha256:").unwrap_or(&self.0)
    }
}

impl FromStr for ContentHash {
    type Err = HashFormError;

    fn from_str(text: &str) -> Result<Self, HashFormError> {
        let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        match text.strip_prefix("sha256:") {
            Some(hex) if hex.len() == 64 && hex.bytes().all(digit) => Ok(Self(text.to_owned())),
            _ => Err(HashFormError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for ContentHash {
    type Error = HashFormError;

    fn try_from(text: String) -> Result<Self, HashFormError> {
        text.parse()
    }
}

impl From<ContentHash> for String {
    fn from(hash: ContentHash) -> Self {
        hash.0
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Listing {
    /// Reads a folder, or a single file.
    pub fn read(path: &Path, limits: &Limits) -> Result<Self, TreeError> {
        Self::read_with(path, limits, Durability::AsIs)
    }

    pub(crate) fn read_with(path: &Path, limits: &Limits, durability: Durability) -> Result<Self, TreeError> {
        let mut walk = Walk { listing: Self::default(), limits, durability };
        let at = |source| TreeError::Read { path: path.to_owned(), source };
        let metadata = std::fs::symlink_metadata(path).map_err(at)?;
        if durability == Durability::Synced {
            sync_at_once(path).map_err(at)?;
        }
        if metadata.is_dir() {
            walk.folder(path, "", 0)?;
        } else {
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| TreeError::Name { path: path.to_owned() })?;
            walk.entry(path, name, &metadata)?;
        }
        Ok(walk.listing)
    }

    /// The hash of all of it.
    pub fn hash(&self) -> ContentHash {
        let mut hasher = Sha256::new_with_prefix("amplifier-tree-v1\n");
        for (path, content) in &self.files {
            hasher.update(content);
            hasher.update(" ");
            hasher.update(path);
            hasher.update([0]);
        }
        ContentHash(format!("sha256:{}", hex(&hasher.finalize())))
    }

    /// Each path with the kind and hash of its content.
    pub fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What another listing has that this one has not, and the other way round, one line each.
    pub fn changes(recorded: &BTreeMap<String, String>, found: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        for (path, content) in recorded {
            match found.files.get(path) {
                None => changes.push(format!("`{path}` is missing")),
                Some(now) if now != content => changes.push(format!("`{path}` is changed")),
                Some(_) => {}
            }
        }
        let added = found.files.keys().filter(|path| !recorded.contains_key(*path));
        changes.extend(added.map(|path| format!("`{path}` is new")));
        changes
    }
}

struct Walk<'a> {
    listing: Listing,
    limits: &'a Limits,
    durability: Durability,
}

/// Makes all that was written durable with one call, where the system has one: a thousand single syncs take seconds.
#[cfg(target_os = "linux")]
fn sync_at_once(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(path)?)?)
}

#[cfg(not(target_os = "linux"))]
fn sync_at_once(_path: &Path) -> io::Result<()> {
    Ok(())
}

impl Walk<'_> {
    fn syncs_each(&self) -> bool {
        self.durability == Durability::Synced && cfg!(all(unix, not(target_os = "linux")))
    }

    fn folder(&mut self, dir: &Path, prefix: &str, depth: usize) -> Result<(), TreeError> {
        if depth > DEEPEST {
            return Err(TreeError::Depth);
        }
        let at = |source| TreeError::Read { path: dir.to_owned(), source };
        for entry in std::fs::read_dir(dir).map_err(at)? {
            let entry = entry.map_err(at)?;
            let path = entry.path();
            let name = entry.file_name();
            let name = name.to_str().ok_or_else(|| TreeError::Name { path: path.clone() })?;
            if name == ".git" {
                continue;
            }
            let metadata = entry.metadata().map_err(at)?;
            let name = format!("{prefix}{name}");
            if metadata.is_dir() {
                self.folder(&path, &format!("{name}/"), depth + 1)?;
            } else {
                self.entry(&path, &name, &metadata)?;
            }
        }
        if self.syncs_each() {
            File::open(dir).and_then(|dir| dir.sync_all()).map_err(at)?;
        }
        Ok(())
    }

    fn entry(&mut self, path: &Path, name: &str, metadata: &std::fs::Metadata) -> Result<(), TreeError> {
        let at = |source| TreeError::Read { path: path.to_owned(), source };
        if self.listing.files.len() as u64 >= self.limits.tree_files {
            return Err(TreeError::Files { limit: self.limits.tree_files });
        }
        let content = if metadata.is_symlink() {
            let target = std::fs::read_link(path).map_err(at)?;
            format!("link {}", hex(&Sha256::digest(target.as_os_str().as_encoded_bytes())))
        } else if metadata.is_file() {
            let kind = if is_executable(metadata) { "exec" } else { "file" };
            format!("{kind} {}", self.file(path)?)
        } else {
            return Err(TreeError::Kind { path: path.to_owned() });
        };
        self.listing.files.insert(name.to_owned(), content);
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<String, TreeError> {
        let at = |source| TreeError::Read { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(at)?;
        if self.syncs_each() {
            file.sync_data().map_err(at)?;
        }
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = file.read(&mut buffer).map_err(at)?;
            if count == 0 {
                return Ok(hex(&hasher.finalize()));
            }
            self.listing.bytes += count as u64;
            if self.listing.bytes > self.limits.tree_bytes {
                return Err(TreeError::Bytes { limit: self.limits.tree_bytes });
            }
            hasher.update(buffer.get(..count).unwrap_or_default());
        }
    }
}

#[cfg(unix)]
fn is_executable(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_metadata: &std::fs::Metadata) -> bool {
    false
}

/// The hash of the bytes of one file, without the name of the file or of the hash.
pub(crate) fn hash_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hasher.finalize())),
            count => hasher.update(buffer.get(..count).unwrap_or_default()),
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        write!(text, "{byte:02x}").ok();
        text
    })
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
