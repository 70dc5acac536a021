//! Copies what a reference brought into the folder of a profile: modules by their package, agents as a file, contexts whole.
//!
//! Links stay inside what was fetched; what is only a by-product (`.git`, `__pycache__`, …) is left behind.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use amplifier_sources::limits::Limits;

/// Names that are never copied.
const LEFT_BEHIND: [&str; 4] = [".git", "__pycache__", ".venv", "node_modules"];

/// What a Python package needs beside it to be installed.
const PACKAGE_FILES: [&str; 2] = ["pyproject.toml", "requirements.txt"];

/// The file by which a folder says itself how it is run.
const MANIFEST: &str = "amplifier.toml";

/// The beginning of every package's name.
const PACKAGE: &str = "amplifier_module_";

/// How deep folders may be nested.
const DEEPEST: usize = 64;

/// Why something was not copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    #[error("cannot {action} `{}`", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the link `{}` leads out of `{}`, or nowhere", path.display(), root.display())]
    Link { path: PathBuf, root: PathBuf },
    #[error("`{}` is neither file, folder nor link", path.display())]
    Kind { path: PathBuf },
    #[error("it holds more than {limit} files")]
    Files { limit: u64 },
    #[error("it holds more than {limit} bytes")]
    Bytes { limit: u64 },
    #[error("its folders are nested deeper than {DEEPEST}")]
    Depth,
}

/// Where the package of a module was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Package {
    /// The whole folder is the module: it says so itself.
    Whole,
    /// A Python package, and the folder its project files lie in.
    Python { package: PathBuf, project: Option<PathBuf> },
    /// Nothing that fits, and the packages that are there.
    Missing { found: Vec<String> },
}

/// Looks for the package `expected` in what a reference brought.
pub(crate) fn find_package(folder: &Path, expected: &str) -> io::Result<Package> {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if name.starts_with(PACKAGE) {
        return Ok(Package::Python { package: folder.to_owned(), project: None });
    }
    if folder.join(MANIFEST).is_file() {
        return Ok(Package::Whole);
    }
    let project = Some(folder.to_owned());
    let places = [folder.to_owned(), folder.join("src")];
    if let Some(package) = places.iter().map(|place| place.join(expected)).find(|path| path.is_dir()) {
        return Ok(Package::Python { package, project });
    }
    let mut found = Vec::new();
    for place in places.iter().filter(|place| place.is_dir()) {
        for entry in fs::read_dir(place)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(PACKAGE) && path.is_dir() {
                found.push(path);
            }
        }
    }
    found.sort();
    // A repository with one package leaves no doubt; with several, only the right name does.
    match found.as_slice() {
        [only] => Ok(Package::Python { package: only.clone(), project }),
        _ => {
            let names = found.iter().filter_map(|path| path.file_name());
            Ok(Package::Missing {
                found: names.map(|name| format!("`{}`", name.to_string_lossy())).collect(),
            })
        }
    }
}

/// A copy in progress, with the bounds it keeps.
pub(crate) struct Copier<'l> {
    /// What links may not leave.
    root: PathBuf,
    limits: &'l Limits,
    files: u64,
    bytes: u64,
}

impl<'l> Copier<'l> {
    /// A copier of things that lie in `root`.
    pub(crate) fn new(root: &Path, limits: &'l Limits) -> Self {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        Self { root, limits, files: 0, bytes: 0 }
    }

    /// Copies a module into `to`: its package, or all of it.
    pub(crate) fn module(&mut self, folder: &Path, package: &Package, to: &Path) -> Result<(), CopyError> {
        match package {
            Package::Whole => self.folder(folder, to),
            Package::Python { package, project } => {
                let name = package.file_name().unwrap_or_default();
                self.folder(package, &to.join(name))?;
                for name in PACKAGE_FILES {
                    let Some(file) = project.as_ref().map(|project| project.join(name)) else { continue };
                    if file.is_file() {
                        self.entry(&file, &to.join(name), &file, 0)?;
                    }
                }
                Ok(())
            }
            Package::Missing { .. } => Ok(()),
        }
    }

    /// Copies a folder with all it holds.
    pub(crate) fn folder(&mut self, from: &Path, to: &Path) -> Result<(), CopyError> {
        self.tree(from, to, from, 0)
    }

    /// Copies one file.
    pub(crate) fn file(&mut self, from: &Path, to: &Path) -> Result<(), CopyError> {
        self.entry(from, to, from, 0)
    }

    fn tree(&mut self, from: &Path, to: &Path, top: &Path, depth: usize) -> Result<(), CopyError> {
        if depth > DEEPEST {
            return Err(CopyError::Depth);
        }
        fs::create_dir_all(to).map_err(at("create", to))?;
        for entry in fs::read_dir(from).map_err(at("read", from))? {
            let entry = entry.map_err(at("read", from))?;
            let name = entry.file_name();
            let text = name.to_string_lossy();
            if LEFT_BEHIND.contains(&text.as_ref()) || text.ends_with(".pyc") {
                continue;
            }
            self.entry(&entry.path(), &to.join(&name), top, depth + 1)?;
        }
        Ok(())
    }

    fn entry(&mut self, from: &Path, to: &Path, top: &Path, depth: usize) -> Result<(), CopyError> {
        let about = fs::symlink_metadata(from).map_err(at("look at", from))?;
        if about.is_symlink() {
            return self.link(from, to, top);
        }
        if about.is_dir() {
            return self.tree(from, to, top, depth);
        }
        if !about.is_file() {
            return Err(CopyError::Kind { path: from.to_owned() });
        }
        self.count(about.len())?;
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(at("create", parent))?;
        }
        fs::copy(from, to).map_err(at("copy", from))?;
        Ok(())
    }

    /// A link within what is copied stays a link; one to a file elsewhere in what was fetched becomes that file.
    fn link(&mut self, from: &Path, to: &Path, top: &Path) -> Result<(), CopyError> {
        let refused = || CopyError::Link { path: from.to_owned(), root: self.root.clone() };
        let written = fs::read_link(from).map_err(at("read the link", from))?;
        let real = from.canonicalize().map_err(|_| refused())?;
        let top = top.canonicalize().map_err(at("look for", top))?;
        let relative =
            written.components().all(|part| !matches!(part, Component::RootDir | Component::Prefix(_)));
        if relative && real.starts_with(&top) && real != top {
            self.count(0)?;
            return make_link(&written, to).map_err(at("link", to));
        }
        if !real.starts_with(&self.root) || !real.is_file() {
            return Err(refused());
        }
        self.count(real.metadata().map_err(at("look at", &real))?.len())?;
        fs::copy(&real, to).map_err(at("copy", &real))?;
        Ok(())
    }

    fn count(&mut self, bytes: u64) -> Result<(), CopyError> {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.files > self.limits.tree_files {
            return Err(CopyError::Files { limit: self.limits.tree_files });
        }
        if self.bytes > self.limits.tree_bytes {
            return Err(CopyError::Bytes { limit: self.limits.tree_bytes });
        }
        Ok(())
    }
}

#[cfg(unix)]
fn make_link(target: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, at)
}

#[cfg(not(unix))]
fn make_link(target: &Path, at: &Path) -> io::Result<()> {
    let file = at.parent().unwrap_or(at).join(target);
    fs::copy(file, at).map(|_| ())
}

fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CopyError + use<> {
    let path = path.to_owned();
    move |source| CopyError::Io { action, path, source }
}
