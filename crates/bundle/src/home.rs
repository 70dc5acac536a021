//! Where a bundle file lives: its folder, the root it may not leave, and the source it came from.
//!
//! Paths are compared here, never opened; links are resolved by whoever reads files (`fetch.rs`).

use std::path::{Component, Path, PathBuf};

use amplifier_protocol::address::hide;

/// The surroundings of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// The file itself.
    pub file: PathBuf,
    /// The folder that relative paths start from.
    pub dir: PathBuf,
    /// What the file's paths may not leave when it was fetched.
    pub root: PathBuf,
    /// Where it comes from.
    pub source: Source,
}

/// Where a tree of files comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// This machine: its author is the user, and paths may lead anywhere.
    Local,
    /// Somewhere else: its files see nothing of this machine but what was fetched.
    Fetched {
        /// The address of the whole tree, as it was asked for.
        uri: String,
        /// The same address with its reference replaced by what it was found to be, such as a commit; relative module
        /// sources become addresses below it, so that a plan means the same on every machine. `None`: paths are used.
        pinned: Option<String>,
    },
}

/// A path that leads out of its root.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` leads out of `{}`", root.display())]
pub struct Escape {
    /// The path as written.
    pub path: String,
    /// What it must stay in.
    pub root: PathBuf,
}

impl Home {
    /// The surroundings of a local file.
    pub fn local(file: impl Into<PathBuf>, root: impl Into<PathBuf>) -> Self {
        Self::new(file.into(), root.into(), Source::Local)
    }

    /// The surroundings of a file of any source.
    pub fn new(file: PathBuf, root: PathBuf, source: Source) -> Self {
        let dir = file.parent().map(Path::to_path_buf).unwrap_or_default();
        Self { file, dir, root, source }
    }

    /// Whether paths of this file may lead out of its root.
    pub fn is_local(&self) -> bool {
        self.source == Source::Local
    }

    /// A path written in this file, from its folder.
    ///
    /// # Errors
    /// [`Escape`] when the file was fetched and the path leaves what was fetched.
    pub fn join(&self, path: &str) -> Result<PathBuf, Escape> {
        let joined = normalize(&self.dir.join(path));
        if self.is_local() || joined.starts_with(&self.root) {
            return Ok(joined);
        }
        Err(Escape { path: path.to_owned(), root: self.root.clone() })
    }

    /// Passes an address that a file may name: what was fetched must not read this machine by spelling its paths differently.
    ///
    /// # Errors
    /// [`Escape`] when the file was fetched and the address is a path of this machine.
    pub fn check_address(&self, address: &str) -> Result<(), Escape> {
        let Source::Fetched { uri, .. } = &self.source else { return Ok(()) };
        let is_path = names_path(address) || address.split(['/', '\\']).any(|part| part == "..");
        // A repository of this machine may name another one.
        if !is_path && (is_remote(address) || !is_remote(uri)) {
            return Ok(());
        }
        Err(Escape { path: hide(address).into_owned(), root: self.root.clone() })
    }

    /// A module source written in this file: `./x` and `../x` become an absolute path, or an address below the pinned
    /// one; everything else stays as it is.
    ///
    /// # Errors
    /// As [`Home::join`].
    pub fn rebase(&self, source: &str) -> Result<Option<String>, Escape> {
        if !is_relative(source) {
            self.check_address(source)?;
            return Ok(None);
        }
        let path = self.join(source)?;
        if let Source::Fetched { pinned: Some(pinned), .. } = &self.source
            && let Ok(below) = path.strip_prefix(&self.root)
        {
            let below = below.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>();
            return Ok(Some(if below.is_empty() {
                pinned.clone()
            } else {
                format!("{pinned}#subdirectory={}", below.join("/"))
            }));
        }
        Ok(Some(path.to_string_lossy().into_owned()))
    }
}

/// Whether an address leads away from this machine.
pub(crate) fn is_remote(address: &str) -> bool {
    !names_path(address) && !["git+file:", "zip+file:"].iter().any(|local| begins(address, local))
}

/// Whether an address is a path of this machine, in one of its spellings.
fn names_path(address: &str) -> bool {
    ["file:", "~", "/", "\\"].iter().any(|local| begins(address, local))
}

/// As sources are read: blanks around them and the case of a scheme do not matter.
fn begins(address: &str, prefix: &str) -> bool {
    let head = address.trim_start().get(..prefix.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(prefix))
}

/// Whether a reference is a path from the folder of the file it stands in.
pub fn is_relative(reference: &str) -> bool {
    matches!(reference, "." | "..") || reference.starts_with("./") || reference.starts_with("../")
}

/// A path without `.` and `..`; above the root there is nothing.
pub fn normalize(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !result.pop() {
                    result.push("/");
                }
            }
            other => result.push(other),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_source_becomes_an_absolute_path() {
        let home = Home::local("/b/c/bundle.md", "/b/c");
        assert_eq!(home.rebase("../m"), Ok(Some("/b/m".into())));
        assert_eq!(home.rebase("./m/./n"), Ok(Some("/b/c/m/n".into())));
        for kept in ["git+https://h/r@main", "/abs", "name", ".hidden", "~/x"] {
            assert_eq!(home.rebase(kept), Ok(None), "{kept}");
        }
    }

    #[test]
    fn a_fetched_source_becomes_an_address_and_stays_inside() {
        let pinned = Some("git+https://h/o/r@abc".to_owned());
        let source = Source::Fetched { uri: "git+https://h/o/r@main".into(), pinned };
        let home = Home::new("/cache/abc/behaviors/x.yaml".into(), "/cache/abc".into(), source);
        assert_eq!(
            home.rebase("../modules/m"),
            Ok(Some("git+https://h/o/r@abc#subdirectory=modules/m".into()))
        );
        assert_eq!(home.rebase(".."), Ok(Some("git+https://h/o/r@abc".into())));
        for out in [
            "../../etc",
            "/etc",
            "~/x",
            "file:///etc",
            " FILE:///etc",
            "git+file:///r",
            "Zip+File:///a.zip",
            "a/../../x",
        ] {
            assert!(home.rebase(out).is_err(), "{out}");
        }
        for kept in ["git+https://h/r@main", "https://h/a.zip", "name", "tool-x/sub"] {
            assert_eq!(home.rebase(kept), Ok(None), "{kept}");
        }
        assert!(home.join("/etc/passwd").is_err());
    }
}
