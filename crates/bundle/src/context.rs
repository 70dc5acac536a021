//! The context files of a composed bundle: from what is written to files that are there.

use std::path::PathBuf;

use crate::compose::{Composed, ContextFile};
use crate::fetch::{Files, PathKind};
use crate::home::{Escape, normalize};
use crate::include::Namespace;
use crate::node::Mark;
use crate::notice::{Code, Notice};
use crate::origin::Place;

/// A context file that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextPath {
    /// The key it is known by, such as `foundation:context/rules.md`.
    pub key: String,
    /// Its path, links resolved.
    pub path: PathBuf,
    /// Where it is named.
    pub place: Place,
}

/// Finds the context files of a bundle, in declared order; those that are missing are told.
pub fn resolve(files: &impl Files, composed: &mut Composed) -> Vec<ContextPath> {
    let mut found = Vec::new();
    for (key, file) in &composed.context {
        if file.mark == Mark::Delete {
            continue;
        }
        match resolve_one(files, file, &composed.namespaces) {
            Ok(path) => found.push(ContextPath { key: key.clone(), path, place: file.path.place.clone() }),
            Err(notice) => composed.notices.push(notice),
        }
    }
    found
}

fn resolve_one(files: &impl Files, file: &ContextFile, namespaces: &[Namespace]) -> Result<PathBuf, Notice> {
    let written = &file.path;
    let (dir, root, rest) = match written.text.split_once(':') {
        Some((name, rest)) => {
            let known = file.own.iter().chain(namespaces).find(|known| known.name == name);
            let Some(known) = known else {
                let message = format!("context file `{}`: no bundle called `{name}` is loaded", written.text);
                return Err(Notice::warning(Code::MissingContext, &written.place, message));
            };
            (&known.dir, &known.dir, rest)
        }
        None => (&file.home.dir, &file.home.root, written.text.as_str()),
    };
    let path = normalize(&dir.join(rest.trim_start_matches('/')));
    let escape = || {
        let escape = Escape { path: written.text.clone(), root: root.clone() };
        Notice::warning(Code::Escape, &written.place, format!("context file is not read: {escape}"))
    };
    if !path.starts_with(root) {
        return Err(escape());
    }
    if files.kind(&path) != PathKind::File {
        let message = format!("context file `{}` is not there; tried `{}`", written.text, path.display());
        return Err(Notice::warning(Code::MissingContext, &written.place, message));
    }
    let real = files.real_path(&path).map_err(|error| {
        let message = format!("context file `{}`: {error}", written.text);
        Notice::warning(Code::MissingContext, &written.place, message)
    })?;
    let is_inside = real.starts_with(root) || files.real_path(root).is_ok_and(|root| real.starts_with(root));
    if is_inside { Ok(real) } else { Err(escape()) }
}
