//! From a mention to a path that exists and lies where it may.

use std::path::{Path, PathBuf};

use super::{Mention, MentionFault, MentionKind, Roots, Speaker};
use crate::error::ReadError;
use crate::fetch::{Files, PathKind};
use crate::home::normalize;

/// Where a mention led.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resolved {
    /// The path, links resolved.
    pub(super) path: PathBuf,
    pub(super) kind: MentionKind,
    /// What mentions inside that file may not leave.
    pub(super) root: PathBuf,
}

/// Resolves a mention; of its two spellings the one that exists counts.
pub(super) fn resolve(
    files: &impl Files,
    roots: &Roots,
    mention: &Mention,
    speaker: &Speaker,
) -> Result<Resolved, MentionFault> {
    let spellings = [mention.whole.as_deref(), Some(mention.body.as_str())];
    let mut fault = MentionFault::NotFound;
    for spelling in spellings.into_iter().flatten() {
        match resolve_spelling(files, roots, spelling, speaker) {
            Ok(resolved) => return Ok(resolved),
            Err(found) => fault = found,
        }
    }
    Err(fault)
}

fn resolve_spelling(
    files: &impl Files,
    roots: &Roots,
    body: &str,
    speaker: &Speaker,
) -> Result<Resolved, MentionFault> {
    if let Some((name, path)) = body.split_once(':') {
        return in_namespace(files, roots, name, path);
    }
    if body.starts_with('~') {
        return at_home(files, roots, body, speaker);
    }
    // A file speaks of its neighbours first, then of the project.
    let mut escape = None;
    if let Speaker::File { dir, root } = speaker {
        match inside(files, roots, &dir.join(body), std::slice::from_ref(root)) {
            Ok((path, root)) => return Ok(Resolved { path, kind: MentionKind::Path, root }),
            Err(MentionFault::Escape(root)) => escape = Some(root),
            Err(_) => {}
        }
    }
    let mut reach = vec![roots.base.clone()];
    if *speaker == Speaker::Person {
        reach.extend(roots.allowed.iter().cloned());
    }
    match inside(files, roots, &roots.base.join(body), &reach) {
        Ok((path, root)) => Ok(Resolved { path, kind: MentionKind::Path, root }),
        Err(MentionFault::NotFound) => Err(escape.map_or(MentionFault::NotFound, MentionFault::Escape)),
        Err(fault) => Err(fault),
    }
}

fn in_namespace(files: &impl Files, roots: &Roots, name: &str, path: &str) -> Result<Resolved, MentionFault> {
    let Some((_, dir)) = roots.namespaces.iter().find(|(known, _)| known == name) else {
        return Err(MentionFault::UnknownNamespace(name.to_owned()));
    };
    let resolved = |(path, root): (PathBuf, PathBuf)| Resolved { path, kind: MentionKind::Namespace, root };
    let key = format!("{name}:{path}");
    if let Some((_, named)) = roots.named.iter().find(|(known, _)| *known == key) {
        return Ok(Resolved { path: named.clone(), kind: MentionKind::Namespace, root: dir.clone() });
    }
    let path = path.trim_start_matches('/');
    let reach = std::slice::from_ref(dir);
    match inside(files, roots, &dir.join(path), reach) {
        Err(MentionFault::NotFound) => match path.strip_prefix("context/") {
            // The folder of a profile's context is the context: the segment may name it once more.
            Some(below) => inside(files, roots, &dir.join(below), reach).map(resolved),
            None => Err(MentionFault::NotFound),
        },
        other => other.map(resolved),
    }
}

fn at_home(
    files: &impl Files,
    roots: &Roots,
    body: &str,
    speaker: &Speaker,
) -> Result<Resolved, MentionFault> {
    let below = match body.strip_prefix('~') {
        Some("") => "",
        // The homes of other people are not ours to look into.
        Some(rest) => rest.strip_prefix('/').ok_or(MentionFault::NotFound)?,
        None => body,
    };
    let Some(home) = &roots.home else { return Err(MentionFault::NotFound) };
    let mut reach = vec![roots.base.clone()];
    match speaker {
        Speaker::Person => reach.extend(roots.allowed.iter().cloned()),
        Speaker::File { root, .. } => reach.push(root.clone()),
        Speaker::Instruction => {}
    }
    let (path, root) = inside(files, roots, &home.join(below), &reach)?;
    Ok(Resolved { path, kind: MentionKind::Home, root })
}

/// The real path of what stands at `path`, or at `path.md`, if one of the roots holds it.
fn inside(
    files: &impl Files,
    roots: &Roots,
    path: &Path,
    reach: &[PathBuf],
) -> Result<(PathBuf, PathBuf), MentionFault> {
    let path = normalize(path);
    let first = reach.first().cloned().unwrap_or_default();
    if !reach.iter().any(|root| path.starts_with(root)) {
        // Not even looked at: whether something exists out there is nobody's business.
        return Err(MentionFault::Escape(first));
    }
    let mut with_suffix = path.clone().into_os_string();
    with_suffix.push(".md");
    let with_suffix = PathBuf::from(with_suffix);
    let found = [path, with_suffix]
        .into_iter()
        .find(|candidate| matches!(files.kind(candidate), PathKind::File | PathKind::Folder));
    let Some(found) = found else { return Err(MentionFault::NotFound) };
    let real = files.real_path(&found).map_err(fault)?;
    if let Some(untrusted) = &roots.untrusted {
        let is_below = [untrusted, &roots.base].into_iter().any(|folder| found.starts_with(folder));
        if is_below && !real.starts_with(untrusted) {
            return Err(MentionFault::Escape(untrusted.clone()));
        }
    }
    for root in reach {
        let real_root = files.real_path(root).unwrap_or_else(|_| root.clone());
        if real.starts_with(&real_root) {
            return Ok((real, real_root));
        }
    }
    Err(MentionFault::Escape(first))
}

/// A read error as a reason for a mention.
pub(super) fn fault(error: ReadError) -> MentionFault {
    match error {
        ReadError::Missing => MentionFault::NotFound,
        ReadError::Denied => MentionFault::Denied,
        ReadError::TooLarge { size, limit } => MentionFault::TooLarge { size, limit },
        ReadError::NotAFile => MentionFault::NotText,
        ReadError::Io(text) => MentionFault::Io(text),
    }
}
