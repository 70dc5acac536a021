//! Where a document that somebody asked for goes: a file of theirs, which is replaced only when they say so. A pipe or a device
//! is written through. What the document is made of is the caller's business.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::files::{Durability, FileError, NO_ROOM, write_atomic};

/// What becomes of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    Kept,
    Replaced,
}

/// A place that can be written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    path: PathBuf,
    way: Way,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Whole or not at all: what stands there is not lost to something that fails.
    Replaced,
    /// As it is: a pipe, a device.
    Through,
}

/// Why something cannot be written there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// A file is there.
    #[error("`{}` is there already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// It is no file.
    #[error("`{}` is a folder", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// There is nothing to write in.
    #[error("there is no folder `{}`", folder.display())]
    NoFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// A link to nothing.
    #[error("`{}` is a link that leads nowhere", path.display())]
    DeadLink {
        /// The link.
        path: PathBuf,
    },
    #[error(transparent)]
    File(#[from] FileError),
}

impl OutputError {
    /// What the person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Exists { .. } => "give another name, or say `--force` behind it to replace it",
            Self::Folder { .. } => "name a file in it",
            Self::NoFolder { .. } => "make it first, or name a file elsewhere",
            Self::DeadLink { .. } => "remove it, or name a file elsewhere",
            Self::File(error) if error.cure() == Some(NO_ROOM) => NO_ROOM,
            Self::File(_) => "name a file in a folder that is there and that you may write to",
        }
    }
}

impl Output {
    /// The place at a path, if it can be written to.
    pub fn at(path: &Path, existing: Existing) -> Result<Self, OutputError> {
        let path = path.to_path_buf();
        let names_folder = path.as_os_str().to_string_lossy().ends_with(std::path::is_separator);
        match std::fs::metadata(&path) {
            Ok(found) if found.is_dir() => return Err(OutputError::Folder { path }),
            Ok(found) if !found.is_file() => return Ok(Self { path, way: Way::Through }),
            Ok(_) if existing == Existing::Kept => return Err(OutputError::Exists { path }),
            // A file behind a link is replaced, and the link stays.
            Ok(_) => {
                let path = path.canonicalize().unwrap_or(path);
                return Ok(Self { path, way: Way::Replaced });
            }
            Err(_) if names_folder => return Err(OutputError::NoFolder { folder: path }),
            Err(_) if path.is_symlink() => return Err(OutputError::DeadLink { path }),
            Err(_) => {}
        }
        match path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
            Some(folder) => Err(OutputError::NoFolder { folder: folder.to_path_buf() }),
            None => Ok(Self { path, way: Way::Replaced }),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the whole document.
    pub fn write(&self, document: &[u8]) -> Result<(), OutputError> {
        match self.way {
            Way::Replaced => Ok(write_atomic(&self.path, document, Durability::Synced)?),
            Way::Through => {
                let opened = OpenOptions::new().write(true).open(&self.path);
                let written = opened.and_then(|mut file| file.write_all(document));
                Ok(written.map_err(FileError::at("write", &self.path))?)
            }
        }
    }
}
