//! Unpacking archives that strangers made: bounded in every direction, and nothing lands outside the folder.
//!
//! Links are refused: they have no use in a bundle and many against one. Whatever is called `.git` is left out, as it is
//! from every tree. Sizes are counted while they are read; what an archive says about itself is not believed.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use ::zip::ZipArchive;
use ::zip::result::ZipError;

use crate::limits::Limits;

/// Archives up to this size may be as well compressed as they like.
const RATIO_FLOOR: u64 = 8 * 1024 * 1024;
const DEEPEST: usize = 64;
const LONGEST_NAME: usize = 1024;

/// Why an archive is not unpacked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    #[error("it is no readable zip archive")]
    Format(#[source] ZipError),
    #[error("entry `{name}` {why}")]
    Entry { name: String, why: &'static str },
    #[error("it holds more than {limit} files")]
    Files { limit: u64 },
    #[error("it holds more than {limit} bytes")]
    Bytes { limit: u64 },
    #[error("it unpacks to more than {ratio} times its size")]
    Ratio { ratio: u64 },
    #[error("entry `{name}` cannot be read")]
    Read {
        name: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot write `{}`", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("unpacking was cancelled")]
    Cancelled,
}

/// What unpacking asks and tells while it goes.
pub(crate) trait Watch {
    fn is_cancelled(&self) -> bool;
    fn unpacked(&self, files: u64);
}

/// Unpacks an archive into a folder, which is made.
pub(crate) fn extract(
    archive: &Path,
    into: &Path,
    limits: &Limits,
    watch: &impl Watch,
) -> Result<(), ArchiveError> {
    let file = File::open(archive).map_err(|source| read_error(archive, source))?;
    let size = file.metadata().map_err(|source| read_error(archive, source))?.len();
    let mut zip = ZipArchive::new(file).map_err(ArchiveError::Format)?;
    if zip.len() as u64 > limits.tree_files {
        return Err(ArchiveError::Files { limit: limits.tree_files });
    }
    std::fs::create_dir_all(into).map_err(|source| write_error(into, source))?;
    let ratio = limits.archive_ratio;
    let most = limits.tree_bytes.min(size.saturating_mul(ratio).max(RATIO_FLOOR));
    let mut unpacking = Unpacking { left: most, limits, most, watch };
    for index in 0..zip.len() {
        let mut entry = zip.by_index(index).map_err(ArchiveError::Format)?;
        let name = entry.name().map_err(ArchiveError::Format)?.into_owned();
        let refuse = |why| Err(ArchiveError::Entry { name: name.clone(), why });
        if entry.is_symlink() {
            return refuse("is a link");
        }
        // Other kinds of things a unix archive can hold, such as devices.
        let kind = entry.unix_mode().map_or(0, |mode| mode & 0o170_000);
        if !matches!(kind, 0 | 0o100_000 | 0o040_000) {
            return refuse("is neither file nor folder");
        }
        let Some(path) = entry_path(&name)? else { continue };
        let path = into.join(path);
        if entry.is_dir() {
            std::fs::create_dir_all(&path).map_err(|source| write_error(&path, source))?;
            continue;
        }
        let executable = entry.unix_mode().is_some_and(|mode| mode & 0o100 != 0);
        unpacking.file(&mut entry, &name, &path)?;
        if executable {
            make_executable(&path).map_err(|source| write_error(&path, source))?;
        }
        watch.unpacked(index as u64 + 1);
    }
    Ok(())
}

struct Unpacking<'a, W> {
    left: u64,
    most: u64,
    limits: &'a Limits,
    watch: &'a W,
}

impl<W: Watch> Unpacking<'_, W> {
    fn file(&mut self, from: &mut impl Read, name: &str, path: &Path) -> Result<(), ArchiveError> {
        let at = |source| write_error(path, source);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(at)?;
        }
        // Never over something that is there: two entries of one name are a trick.
        let mut file = File::create_new(path).map_err(at)?;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            if self.watch.is_cancelled() {
                return Err(ArchiveError::Cancelled);
            }
            let read = from.read(&mut buffer);
            let count = read.map_err(|source| ArchiveError::Read { name: name.to_owned(), source })?;
            if count == 0 {
                return Ok(());
            }
            self.left = self.left.checked_sub(count as u64).ok_or_else(|| self.too_much())?;
            file.write_all(buffer.get(..count).unwrap_or_default()).map_err(at)?;
        }
    }

    fn too_much(&self) -> ArchiveError {
        if self.most == self.limits.tree_bytes {
            ArchiveError::Bytes { limit: self.most }
        } else {
            ArchiveError::Ratio { ratio: self.limits.archive_ratio }
        }
    }
}

/// Where an entry goes, below the folder; `None` for what is left out.
fn entry_path(name: &str) -> Result<Option<PathBuf>, ArchiveError> {
    let refuse = |why| Err(ArchiveError::Entry { name: shortened(name), why });
    if name.len() > LONGEST_NAME {
        return refuse("has too long a name");
    }
    if name.contains('\\') || name.chars().any(char::is_control) {
        return refuse("holds a character that no path here may hold");
    }
    if name.starts_with('/') || matches!(name.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
    {
        return refuse("is absolute");
    }
    let parts: Vec<_> = name.trim_end_matches('/').split('/').collect();
    if parts.len() > DEEPEST {
        return refuse("is nested too deep");
    }
    if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
        return refuse("leaves the archive");
    }
    Ok((!parts.contains(&".git")).then(|| parts.iter().collect()))
}

fn shortened(name: &str) -> String {
    name.chars().take(80).filter(|c| !c.is_control()).collect()
}

fn read_error(path: &Path, source: io::Error) -> ArchiveError {
    ArchiveError::Read { name: path.display().to_string(), source }
}

fn write_error(path: &Path, source: io::Error) -> ArchiveError {
    ArchiveError::Write { path: path.to_owned(), source }
}

#[cfg(unix)]
fn make_executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut permissions = std::fs::metadata(path)?.permissions();
    permissions.set_mode(permissions.mode() | 0o111);
    std::fs::set_permissions(path, permissions)
}

#[cfg(not(unix))]
fn make_executable(_path: &Path) -> io::Result<()> {
    Ok(())
}
