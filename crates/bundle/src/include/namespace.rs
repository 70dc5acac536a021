//! Namespaces: the name of a bundle, the folder it stands for, and the root bundle that a nested one lies under.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{BUNDLE_FILES, Loader};
use crate::bundle::{self, Bundle};
use crate::fetch::{Fetch, PathKind};
use crate::home::Home;
use crate::notice::{Code, Notice};

/// A name that stands for a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// The name, from `bundle.name`.
    pub name: String,
    /// The folder: paths of the namespace start here and stay here.
    pub dir: PathBuf,
    /// The bundle file it comes from.
    pub home: Arc<Home>,
}

impl<F: Fetch> Loader<'_, F> {
    /// The namespaces a file brings: its own, then that of the root bundle above it.
    pub(super) fn namespaces(&mut self, bundle: &Bundle, notices: &mut Vec<Notice>) -> Vec<Namespace> {
        let mut found = Vec::new();
        if let Some(name) = bundle.head.name() {
            let dir = own_dir(bundle, notices);
            found.push(Namespace { name: name.to_owned(), dir, home: Arc::clone(&bundle.home) });
        }
        match self.root_above(&bundle.home) {
            // A nested bundle that shares its root's name shares its folder too.
            Some(root) if found.iter().any(|own| own.name == root.name) => found = vec![root],
            Some(root) => found.push(root),
            None => {}
        }
        found
    }

    /// The bundle at the top of the tree a file lies in, unless it is the file itself.
    fn root_above(&mut self, home: &Arc<Home>) -> Option<Namespace> {
        let is_bundle_file =
            |path: &Path| path.file_name().is_some_and(|name| BUNDLE_FILES.iter().any(|file| name == *file));
        let start = if is_bundle_file(&home.file) { home.dir.parent()? } else { home.dir.as_path() };
        let folders = start.ancestors().take_while(|folder| folder.starts_with(&home.root));
        let files = folders.flat_map(|folder| BUNDLE_FILES.map(|name| folder.join(name)));
        let file = files.into_iter().find(|file| self.fetch.kind(file) == PathKind::File)?;
        if let Some(known) = self.roots.get(&file) {
            return known.clone();
        }
        let namespace = self.read_root(&file, home);
        self.roots.insert(file, namespace.clone());
        namespace
    }

    fn read_root(&self, file: &Path, below: &Home) -> Option<Namespace> {
        if let Some(index) = self.by_path.get(file) {
            let loaded = self.files.get(*index)?;
            return loaded.namespaces.iter().find(|own| own.home == loaded.bundle.home).cloned();
        }
        let limits = &self.options.limits;
        let home = Arc::new(Home::new(file.to_path_buf(), below.root.clone(), below.source.clone()));
        // Its mistakes are told when it is loaded itself; here only its name is of interest.
        let bytes = self.fetch.read(file, limits.file_bytes).ok()?;
        let (bundle, _) = bundle::read(bytes, &home, &limits.yaml).ok()?;
        let name = bundle.head.name()?.to_owned();
        let dir = own_dir(&bundle, &mut Vec::new());
        Some(Namespace { name, dir, home })
    }
}

fn own_dir(bundle: &Bundle, notices: &mut Vec<Notice>) -> PathBuf {
    let Some(root) = &bundle.head.namespace_root else { return bundle.home.dir.clone() };
    match bundle.home.join(&root.text) {
        Ok(dir) => dir,
        Err(escape) => {
            let message = format!("`namespace_root` has no effect: {escape}");
            notices.push(Notice::warning(Code::Escape, &root.place, message));
            bundle.home.dir.clone()
        }
    }
}
