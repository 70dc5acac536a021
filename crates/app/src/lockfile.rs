//! `bundle.lock` beside a bundle: made from everything that was fetched for it, and compared with a newer one.

use std::path::{Component, Path, PathBuf};

use amplifier_sources::fetch::Identity;
use amplifier_sources::lock::{BundleLock, LockedSource};

use crate::files::{Durability, FileError, READ, write_atomic};
use crate::prepare::{BundleFault, PreparedBundle};

/// What the file is called.
pub const LOCK_FILE: &str = "bundle.lock";

/// The lock in a folder, if there is one.
pub fn read(folder: &Path) -> Result<Option<BundleLock>, BundleFault> {
    let path = folder.join(LOCK_FILE);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(FileError::at(READ, &path))?,
    };
    BundleLock::parse(&text).map(Some).map_err(|source| BundleFault::Lock { path, source })
}

/// The lock of a bundle as it was just prepared: each source it took, and each file beside its own folder.
pub async fn closure(bundle: &PreparedBundle) -> Result<BundleLock, BundleFault> {
    let own = folder_of(bundle).ok();
    let mut lock = BundleLock::default();
    for (uri, fetched) in bundle.library.fetched() {
        // The bundle's own folder is its author's to change, and it holds the lock itself; so does what holds the folder.
        let is_own =
            own.as_ref().is_some_and(|own| fetched.path.starts_with(own) || own.starts_with(&fetched.path));
        if fetched.identity == Identity::Local && is_own {
            continue;
        }
        lock.insert(&uri, bundle.library.fetcher().locked(&fetched).await?);
    }
    for (name, hash) in own.map(|own| bundle.neighbours(&own)).unwrap_or_default() {
        if let Ok(hash) = format!("sha256:{hash}").parse() {
            lock.sources.insert(name, LockedSource::new(None, hash));
        }
    }
    Ok(lock)
}

/// Writes the lock beside the bundle; gives the file.
pub fn write(bundle: &PreparedBundle, lock: &BundleLock) -> Result<PathBuf, BundleFault> {
    let path = folder_of(bundle)?.join(LOCK_FILE);
    let text = lock.to_text().map_err(|source| BundleFault::Lock { path: path.clone(), source })?;
    write_atomic(&path, text.as_bytes(), Durability::Synced)?;
    Ok(path)
}

/// The folder of a bundle that lies on this machine.
pub fn folder_of(bundle: &PreparedBundle) -> Result<PathBuf, BundleFault> {
    let is_local = bundle.loaded.graph.files.first().is_some_and(|file| file.bundle.home.is_local());
    let own = bundle.own.clone().filter(|_| is_local);
    own.ok_or_else(|| BundleFault::NoFolder { reference: bundle.reference.clone() })
}

/// A path as seen from a folder.
pub(crate) fn relative(path: &Path, from: &Path) -> String {
    let (path, from): (Vec<_>, Vec<_>) = (path.components().collect(), from.components().collect());
    let common = path.iter().zip(&from).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n(Component::ParentDir, from.len() - common);
    let parts = up.chain(path.into_iter().skip(common));
    parts.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_seen_from_a_folder() {
        assert_eq!(relative(Path::new("/a/b/c.md"), Path::new("/a/x/y")), "../../b/c.md");
        assert_eq!(relative(Path::new("/a/b/c.md"), Path::new("/a/b")), "c.md");
    }
}
