//! From a reference to a file: what the words of an include mean, and which file they lead to.

use std::path::{Path, PathBuf};

use amplifier_protocol::address::hide;

use super::Namespace;
use crate::disk::local_root;
use crate::error::{BundleError, ReadError};
use crate::fetch::{Fetch, PathKind};
use crate::home::{Escape, Home, Source, is_relative, normalize};

/// What a folder is looked through for, in order.
pub const BUNDLE_FILES: [&str; 2] = ["bundle.md", "bundle.yaml"];

/// What a reference means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// Something that has to be fetched.
    Address(String),
    /// A path on this machine.
    Path {
        reference: String,
        path: PathBuf,
        /// The tree of whoever refers to it.
        root: PathBuf,
        source: Source,
        /// What it may not leave, links resolved.
        within: Option<PathBuf>,
    },
    /// A path in a namespace that is not known yet; an empty path is its bundle.
    Namespace { namespace: String },
}

/// A file that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Located {
    /// Its path, links resolved: the identity of the file.
    pub(super) file: PathBuf,
    pub(super) root: PathBuf,
    pub(super) source: Source,
}

/// Says what a reference written in a file means.
pub(super) fn target(
    fetch: &impl Fetch,
    home: &Home,
    reference: &str,
    known: impl Fn(&str) -> Option<Namespace>,
) -> Result<Target, BundleError> {
    let reference = reference.strip_prefix('@').unwrap_or(reference);
    // A name that a loaded bundle has is that bundle, whatever is registered under it.
    if let Some(namespace) = known(reference) {
        return Ok(namespace_path(&namespace, "", reference));
    }
    if !is_plain_name(reference)
        && let Some(address) = fetch.redirect(reference)
    {
        // The user said so, not the file: the file's limits are not the user's.
        return target_of_address(&Home::local("/-", "/"), &address);
    }
    if is_address(reference) || is_path(reference) {
        return target_of_address(home, reference);
    }
    let (name, path) = match reference.split_once(':') {
        Some(parts) => parts,
        None => {
            let beside = path_target(home, reference)?;
            if let Target::Path { path, .. } = &beside
                && find(fetch, path).0.is_some()
            {
                return Ok(beside);
            }
            reference.split_once('/').unwrap_or((reference, ""))
        }
    };
    match known(name) {
        Some(namespace) => Ok(namespace_path(&namespace, path, reference)),
        None => Ok(Target::Namespace { namespace: name.to_owned() }),
    }
}

/// Says what an address or a path means.
pub(super) fn target_of_address(home: &Home, reference: &str) -> Result<Target, BundleError> {
    if !is_address(reference) {
        return path_target(home, reference);
    }
    home.check_address(reference)?;
    Ok(Target::Address(reference.to_owned()))
}

fn path_target(home: &Home, reference: &str) -> Result<Target, BundleError> {
    let path = home.join(reference)?;
    let within = (!home.is_local()).then(|| home.root.clone());
    let (root, source) = (home.root.clone(), home.source.clone());
    Ok(Target::Path { reference: reference.to_owned(), path, root, source, within })
}

fn namespace_path(namespace: &Namespace, path: &str, reference: &str) -> Target {
    let home = &namespace.home;
    let path = match path.trim_start_matches('/') {
        "" => home.file.clone(),
        path => normalize(&namespace.dir.join(path)),
    };
    Target::Path {
        reference: reference.to_owned(),
        path,
        root: home.root.clone(),
        source: home.source.clone(),
        within: Some(namespace.dir.clone()),
    }
}

/// Goes to a target; what must be fetched is fetched.
pub(super) async fn reach(fetch: &impl Fetch, target: Target) -> Result<Located, BundleError> {
    match target {
        Target::Address(address) => {
            let fetched = fetch
                .fetch(&address)
                .await
                .map_err(|source| BundleError::NotFound { reference: hide(&address).into_owned(), source })?;
            let file = existing(fetch, &fetched.path, &address)?;
            let root = fetch.real_path(&fetched.root).unwrap_or(fetched.root);
            confine(&file, &root, &address)?;
            Ok(Located { file, root, source: fetched.source })
        }
        Target::Path { reference, path, root, source, within } => {
            if let Some(within) = &within {
                // Looked at before the file system is asked: what lies outside is not even there.
                confine(&path, within, &reference)?;
            }
            let file = existing(fetch, &path, &reference)?;
            if let Some(within) = within.filter(|within| !file.starts_with(within)) {
                let within = fetch.real_path(&within).unwrap_or(within);
                confine(&file, &within, &reference)?;
            }
            // The roots of loaded files have no links in them, so this nearly always holds at once.
            if file.starts_with(&root) {
                return Ok(Located { file, root, source });
            }
            let real_root = fetch.real_path(&root).unwrap_or(root);
            let root = if file.starts_with(&real_root) { real_root } else { local_root(fetch, &file) };
            Ok(Located { file, root, source })
        }
        Target::Namespace { namespace } => {
            let reference = namespace.clone();
            Err(BundleError::UnknownNamespace { namespace, reference })
        }
    }
}

fn confine(path: &Path, within: &Path, reference: &str) -> Result<(), BundleError> {
    if path.starts_with(within) {
        return Ok(());
    }
    Err(Escape { path: hide(reference).into_owned(), root: within.to_path_buf() }.into())
}

fn existing(fetch: &impl Fetch, path: &Path, reference: &str) -> Result<PathBuf, BundleError> {
    let (found, tried) = find(fetch, path);
    match found {
        Some(file) => fetch.real_path(&file).map_err(|source| BundleError::Read { path: file, source }),
        None if fetch.kind(path) == PathKind::Folder => Err(BundleError::NoBundleFile(path.to_path_buf())),
        None if fetch.kind(path) == PathKind::Other => {
            Err(BundleError::Read { path: path.to_path_buf(), source: ReadError::NotAFile })
        }
        None => Err(BundleError::NothingThere { reference: hide(reference).into_owned(), tried }),
    }
}

/// The bundle file that a path stands for: itself, itself with a suffix, or the bundle in a folder.
fn find(fetch: &impl Fetch, path: &Path) -> (Option<PathBuf>, Vec<String>) {
    let mut tried = Vec::new();
    let mut is_file = |candidate: PathBuf| {
        tried.push(candidate.display().to_string());
        (fetch.kind(&candidate) == PathKind::File).then_some(candidate)
    };
    let mut found = is_file(path.to_path_buf());
    for suffix in [".yaml", ".yml", ".md"] {
        // Appended, not replaced: `a.b` may mean `a.b.yaml`.
        let mut with_suffix = path.as_os_str().to_owned();
        with_suffix.push(suffix);
        found = found.or_else(|| is_file(PathBuf::from(with_suffix)));
    }
    for name in BUNDLE_FILES {
        found = found.or_else(|| is_file(path.join(name)));
    }
    (found, tried)
}

/// Whether a reference has to be fetched.
fn is_address(reference: &str) -> bool {
    reference.contains("://")
        || reference.starts_with("git+")
        || reference.starts_with("zip+")
        || reference.starts_with("~/")
}

fn is_path(reference: &str) -> bool {
    let drive =
        matches!(reference.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    reference.starts_with('/') || reference.starts_with('\\') || is_relative(reference) || drive
}

/// Whether a reference leads through the name of a bundle.
pub(super) fn names_a_namespace(reference: &str) -> bool {
    !is_address(reference) && !is_path(reference)
}

fn is_plain_name(reference: &str) -> bool {
    !reference.contains([':', '/', '\\'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_told_apart() {
        for address in ["git+https://h/r", "file:///x", "https://h/b.md", "zip+file:///a.zip", "~/x"] {
            assert!(is_address(address), "{address}");
        }
        for path in ["/x", "./x", "../x", "C:/x", r"C:\x", r"\\server\share"] {
            assert!(is_path(path) && !is_address(path), "{path}");
        }
        for name in ["foundation", "a:b", "a/b", ".hidden", "c:x"] {
            assert!(!is_path(name) && !is_address(name), "{name}");
        }
    }
}
