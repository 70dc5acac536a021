//! The file system of this machine as [`Files`] and, for local addresses only, as [`Fetch`]. It never goes elsewhere:
//! remote addresses are refused.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use amplifier_protocol::text::spelled;

use crate::error::{FetchError, ReadError};
use crate::fetch::{Fetch, Fetched, Files, PathKind, Stamp};
use crate::home::{Source, normalize};

/// Local files, and names that stand for local addresses.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    /// Registered names and what they stand for.
    pub registered: BTreeMap<String, String>,
}

impl Files for Disk {
    fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
        let about = fs::metadata(path).map_err(reason)?;
        // Opening a pipe would wait for a writer.
        if !about.is_file() {
            return Err(ReadError::NotAFile);
        }
        if about.len() > limit {
            return Err(ReadError::TooLarge { size: about.len(), limit });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(about.len()).unwrap_or(0));
        let read =
            File::open(path).and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes));
        let size = read.map_err(reason)?;
        match u64::try_from(size) {
            Ok(size) if size > limit => Err(ReadError::TooLarge { size, limit }),
            _ => Ok(bytes),
        }
    }

    fn kind(&self, path: &Path) -> PathKind {
        match fs::metadata(path) {
            Ok(about) if about.is_file() => PathKind::File,
            Ok(about) if about.is_dir() => PathKind::Folder,
            Ok(_) => PathKind::Other,
            Err(_) => PathKind::Missing,
        }
    }

    fn list(&self, path: &Path) -> Result<Vec<(String, PathKind)>, ReadError> {
        let mut names = Vec::new();
        for entry in fs::read_dir(path).map_err(reason)? {
            let entry = entry.map_err(reason)?;
            names
                .push((spelled(entry.file_name().as_encoded_bytes()).into_owned(), self.kind(&entry.path())));
        }
        Ok(names)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
        fs::canonicalize(path).map_err(reason)
    }

    fn stamp(&self, path: &Path) -> Option<Stamp> {
        let about = fs::metadata(path).ok()?;
        Some(Stamp { length: about.len(), modified: about.modified().ok() })
    }
}

impl Fetch for Disk {
    fn redirect(&self, reference: &str) -> Option<String> {
        self.registered.get(reference).cloned()
    }

    async fn fetch(&self, address: &str) -> Result<Fetched, FetchError> {
        let Some(rest) = address.strip_prefix("file://") else {
            return Err(FetchError::new(format!("only local files are read here, and `{address}` is none")));
        };
        let (path, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let below = fragment.split('&').find_map(|part| part.strip_prefix("subdirectory="));
        let base = normalize(Path::new(path));
        if !base.is_absolute() {
            return Err(FetchError::new(format!("`{address}` names no absolute path")));
        }
        let asked = below.map_or_else(|| base.clone(), |below| normalize(&base.join(below)));
        if !asked.starts_with(&base) {
            return Err(FetchError::new(format!("`{address}` leads out of its own folder")));
        }
        let path = self
            .real_path(&asked)
            .map_err(|error| FetchError::new(format!("`{}`: {error}", asked.display())))?;
        let root = match below {
            Some(_) => self.real_path(&base).unwrap_or(base),
            None => local_root(self, &path),
        };
        Ok(Fetched { path, root, source: Source::Local })
    }
}

/// The root of a local file or folder: the nearest folder above that holds a bundle, else its own folder.
pub fn local_root(files: &impl Files, path: &Path) -> PathBuf {
    let own = match files.kind(path) {
        PathKind::Folder => path,
        _ => path.parent().unwrap_or(path),
    };
    let holds_bundle = |dir: &&Path| {
        crate::include::BUNDLE_FILES.iter().any(|name| files.kind(&dir.join(name)) == PathKind::File)
    };
    own.ancestors().find(holds_bundle).unwrap_or(own).to_path_buf()
}

fn reason(error: std::io::Error) -> ReadError {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => ReadError::Missing,
        ErrorKind::PermissionDenied => ReadError::Denied,
        _ => ReadError::Io(error.to_string()),
    }
}
