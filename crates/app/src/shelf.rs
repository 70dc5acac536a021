//! The bundles inside the program, and local files and those together as one file system.
//!
//! A built-in bundle has a path like every other file, below a folder that exists nowhere, so that messages can name the
//! file and the line. Nothing of it is ever written to disk.

use std::path::{Path, PathBuf};

use amplifier_bundle::disk::Disk;
use amplifier_bundle::error::ReadError;
use amplifier_bundle::fetch::{Files, PathKind, Stamp};

/// What addresses of built-in bundles begin with.
pub const SCHEME: &str = "builtin://";
/// The folder the built-in bundles seem to lie in.
pub const ROOT: &str = "/(built-in)";
/// The bundle of a session for which nobody named one.
pub const DEFAULT: &str = "foundation";

/// Every built-in bundle with its description, by name.
pub const BUNDLES: [(&str, &str); 2] = [
    ("foundation", "Agents, the standard tools and hooks, and instructions for work in a folder."),
    ("minimal", "A conversation with a model, without tools."),
];

/// Every file of them, by its path below [`ROOT`].
const FILES: &[(&str, &str)] = &[
    ("foundation/bundle.md", include_str!("../bundles/foundation/bundle.md")),
    ("foundation/behaviors/safety.yaml", include_str!("../bundles/foundation/behaviors/safety.yaml")),
    ("foundation/behaviors/tools.yaml", include_str!("../bundles/foundation/behaviors/tools.yaml")),
    (
        "foundation/context/ways-of-working.md",
        include_str!("../bundles/foundation/context/ways-of-working.md"),
    ),
    ("foundation/agents/explorer.md", include_str!("../bundles/foundation/agents/explorer.md")),
    ("foundation/agents/architect.md", include_str!("../bundles/foundation/agents/architect.md")),
    ("foundation/agents/reviewer.md", include_str!("../bundles/foundation/agents/reviewer.md")),
    ("foundation/agents/tester.md", include_str!("../bundles/foundation/agents/tester.md")),
    ("minimal/bundle.md", include_str!("../bundles/minimal/bundle.md")),
];

/// Whether a bundle of this name is built in.
pub fn has(name: &str) -> bool {
    BUNDLES.iter().any(|(known, _)| *known == name)
}

/// Where a built-in bundle seems to lie.
pub fn folder(name: &str) -> PathBuf {
    Path::new(ROOT).join(name)
}

/// Local files and built-in ones.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shelf;

impl Shelf {
    fn disk() -> Disk {
        Disk::default()
    }
}

/// The path below the built-in folder, when it is one.
fn built_in(path: &Path) -> Option<String> {
    let below = path.strip_prefix(ROOT).ok()?;
    Some(below.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/"))
}

fn text(below: &str) -> Option<&'static str> {
    FILES.iter().find(|(path, _)| *path == below).map(|(_, text)| *text)
}

fn kind(below: &str) -> PathKind {
    if text(below).is_some() {
        return PathKind::File;
    }
    let inside =
        |path: &str| below.is_empty() || path.strip_prefix(below).is_some_and(|rest| rest.starts_with('/'));
    if FILES.iter().any(|(path, _)| inside(path)) { PathKind::Folder } else { PathKind::Missing }
}

impl Files for Shelf {
    fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
        let Some(below) = built_in(path) else { return Self::disk().read(path, limit) };
        match (text(&below), kind(&below)) {
            (Some(text), _) if text.len() as u64 > limit => {
                Err(ReadError::TooLarge { size: text.len() as u64, limit })
            }
            (Some(text), _) => Ok(text.as_bytes().to_vec()),
            (None, PathKind::Folder) => Err(ReadError::NotAFile),
            (None, _) => Err(ReadError::Missing),
        }
    }

    fn kind(&self, path: &Path) -> PathKind {
        built_in(path).map_or_else(|| Self::disk().kind(path), |below| kind(&below))
    }

    fn list(&self, path: &Path) -> Result<Vec<(String, PathKind)>, ReadError> {
        let Some(below) = built_in(path) else { return Self::disk().list(path) };
        let prefix = if below.is_empty() { String::new() } else { format!("{below}/") };
        let mut names: Vec<String> = FILES
            .iter()
            .filter_map(|(path, _)| path.strip_prefix(&prefix)?.split('/').next())
            .map(str::to_owned)
            .collect();
        names.sort();
        names.dedup();
        if names.is_empty() {
            return Err(ReadError::Missing);
        }
        Ok(names.into_iter().map(|name| (name.clone(), kind(&format!("{prefix}{name}")))).collect())
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
        match built_in(path) {
            None => Self::disk().real_path(path),
            Some(below) if kind(&below) == PathKind::Missing => Err(ReadError::Missing),
            Some(_) => Ok(path.to_path_buf()),
        }
    }

    fn stamp(&self, path: &Path) -> Option<Stamp> {
        let Some(below) = built_in(path) else { return Self::disk().stamp(path) };
        // It never changes; any time will do.
        let modified = Some(std::time::SystemTime::UNIX_EPOCH);
        text(&below).map(|text| Stamp { length: text.len() as u64, modified })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_files_look_like_files() {
        let shelf = Shelf;
        let bundle = folder("foundation").join("bundle.md");
        assert_eq!(shelf.kind(&bundle), PathKind::File);
        assert_eq!(shelf.kind(&folder("foundation")), PathKind::Folder);
        assert_eq!(shelf.kind(&folder("found")), PathKind::Missing);
        assert!(shelf.read(&bundle, 1 << 20).is_ok_and(|bytes| bytes.starts_with(b"---")));
        assert_eq!(shelf.read(&bundle, 1).unwrap_err().to_string().split(' ').next(), Some("it"));
        let agents = shelf.list(&folder("foundation").join("agents")).unwrap();
        assert_eq!(agents.len(), 4);
        assert!(
            BUNDLES.iter().all(|(name, _)| shelf.kind(&folder(name).join("bundle.md")) == PathKind::File)
        );
    }
}
