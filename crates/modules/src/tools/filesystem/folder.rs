//! What a folder holds, read through the opened folder and bounded.

use std::io::Result;
use std::path::Path;

use crate::files::names::{is_text, told};
use crate::files::place::{Folders, open_folder};

/// The most entries that are looked at.
const ENTRIES: usize = 100_000;

/// One entry of a folder. Folders sort first, then names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    /// As it is told.
    pub(super) name: String,
    /// Whether that opens it.
    pub(super) is_text: bool,
    /// Of a file.
    pub(super) bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Folder,
    File,
    Link,
    Other,
}

/// The entries of a folder whose links were followed before, sorted, and whether there are more.
pub(super) fn entries(real: &Path) -> Result<(Vec<Entry>, bool)> {
    let folder = open_folder(real, Folders::Expected)?;
    let mut entries = Vec::new();
    for entry in folder.entries()? {
        if entries.len() >= ENTRIES {
            entries.sort();
            return Ok((entries, true));
        }
        let entry = entry?;
        // What vanished since is left out.
        let Ok(about) = entry.metadata() else { continue };
        let kind = match about.file_type() {
            kind if kind.is_dir() => Kind::Folder,
            kind if kind.is_file() => Kind::File,
            kind if kind.is_symlink() => Kind::Link,
            _ => Kind::Other,
        };
        let bytes = about.is_file().then(|| about.len());
        let name = entry.file_name();
        entries.push(Entry { kind, name: told(&name), is_text: is_text(&name), bytes });
    }
    entries.sort();
    Ok((entries, false))
}
