//! Places on this machine: from what was written to a path that exists, inside the borders it is given. It copies nothing.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::error::FetchError;
use crate::uri::{FileUri, Subpath};

/// Files that make a folder the root of a bundle.
const ROOT_FILES: [&str; 2] = ["bundle.md", "bundle.yaml"];

/// What relative paths are relative to, and where paths may lead.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Base {
    /// The folder of the file that names the source.
    pub folder: PathBuf,
    /// What `~` means.
    pub home: Option<PathBuf>,
    /// The folder that no path of this machine may leave, links resolved: for what was written by strangers.
    pub confined_to: Option<PathBuf>,
}

impl Base {
    /// Paths are relative to a folder and may lead anywhere.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), ..Self::default() }
    }
}

/// A place, and the whole it is a part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) root: PathBuf,
}

/// Finds the file or folder that is meant.
pub(crate) fn locate(uri: &FileUri, base: &Base) -> Result<Place, FetchError> {
    let written = absolute(&uri.path, base)?;
    let whole = match written.canonicalize() {
        Ok(path) => path,
        Err(error) if is_missing(&error) => return Err(FetchError::Missing { path: written }),
        Err(error) => return Err(FetchError::at("look for", &written)(error)),
    };
    let place = match &uri.fragment.subdirectory {
        Some(part) => Place { path: within(&whole, part, &uri.to_string())?, root: whole },
        None => Place { root: root_of(&whole), path: whole },
    };
    if let Some(border) = &base.confined_to {
        let border = border.canonicalize().map_err(FetchError::at("look for", border))?;
        if !place.path.starts_with(&border) {
            return Err(FetchError::Escapes { path: place.path, root: border });
        }
    }
    Ok(place)
}

/// The path that is meant, before anything is looked at.
pub(crate) fn absolute(path: &str, base: &Base) -> Result<PathBuf, FetchError> {
    let bytes = path.as_bytes();
    let drive = matches!(bytes, [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    let windows = drive || path.starts_with(r"\\") || path.starts_with(r".\") || path.starts_with(r"..\");
    if windows && cfg!(not(windows)) {
        return Err(FetchError::ForeignPath { path: path.to_owned() });
    }
    let path = match (path.strip_prefix('~'), &base.home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => base.folder.join(path),
    };
    Ok(path)
}

/// A part of a folder that stays in it, links resolved.
pub(crate) fn within(root: &Path, part: &Subpath, source: &str) -> Result<PathBuf, FetchError> {
    let root = root.canonicalize().map_err(FetchError::at("look for", root))?;
    let path = match root.join(part.as_str()).canonicalize() {
        Ok(path) => path,
        Err(error) if is_missing(&error) => {
            return Err(FetchError::SubdirectoryMissing {
                uri: source.to_owned(),
                subdirectory: part.to_string(),
            });
        }
        Err(error) => return Err(FetchError::at("look for", &root.join(part.as_str()))(error)),
    };
    if path.starts_with(&root) { Ok(path) } else { Err(FetchError::Escapes { path, root }) }
}

/// The nearest folder above, or the folder itself, that is the root of a bundle; else the folder.
fn root_of(path: &Path) -> PathBuf {
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    let is_root = |folder: &&Path| ROOT_FILES.iter().any(|name| folder.join(name).is_file());
    folder.ancestors().find(is_root).unwrap_or(folder).to_owned()
}

/// The path without `.` and `..`, without looking at the disk.
pub(crate) fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                cleaned.pop();
            }
            component => cleaned.push(component),
        }
    }
    cleaned
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
