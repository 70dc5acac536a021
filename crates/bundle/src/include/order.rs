//! The order of composition: depth first, in declared order, each file once; an include that leads back is cut.

use super::{Edge, Graph, LoadedFile, Loader, Namespace, label};
use crate::error::BundleError;
use crate::notice::{Code, Notice, Strictness};
use crate::origin::Place;

/// How far a file is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done,
}

/// Makes the graph out of what was loaded.
pub(super) fn finish<F>(loader: Loader<'_, F>) -> Result<Graph, BundleError> {
    let strictness = loader.options.strictness;
    let (mut files, mut notices) = (loader.files, loader.notices);
    let order = order(&mut files, &mut notices, strictness)?;
    let namespaces = collect_namespaces(&files, &order, &mut notices);
    Ok(Graph { files, order, namespaces, notices })
}

/// Walks with a stack of its own, so that a long chain costs no call stack.
fn order(
    files: &mut [LoadedFile],
    notices: &mut Vec<Notice>,
    strictness: Strictness,
) -> Result<Vec<usize>, BundleError> {
    let mut state = vec![State::New; files.len()];
    let mut order = Vec::with_capacity(files.len());
    let mut stack = vec![(0_usize, 0_usize)];
    while let Some((file, edge)) = stack.last().copied() {
        set(&mut state, file, State::Open);
        let next = files.get(file).and_then(|found| found.edges.get(edge)).cloned();
        if let Some(last) = stack.last_mut() {
            last.1 += 1;
        }
        match next {
            None => {
                set(&mut state, file, State::Done);
                order.push(file);
                stack.pop();
            }
            Some(Edge::To(to)) => match state.get(to) {
                Some(State::New) => stack.push((to, 0)),
                Some(State::Open) => {
                    let chain =
                        stack.iter().map(|(file, _)| *file).skip_while(|file| *file != to).chain([to]);
                    let chain: Vec<_> = chain.filter_map(|file| files.get(file)).map(label).collect();
                    notices.push(circle(files, (file, edge), to, chain, strictness)?);
                    if let Some(slot) = files.get_mut(file).and_then(|found| found.edges.get_mut(edge)) {
                        *slot = Edge::Cycle(to);
                    }
                }
                _ => {}
            },
            Some(Edge::Cycle(_) | Edge::Failed) => {}
        }
    }
    Ok(order)
}

/// A nested bundle may include the root it lies under, which includes it: that circle is harmless and only noted.
fn circle(
    files: &[LoadedFile],
    (from, edge): (usize, usize),
    to: usize,
    chain: Vec<String>,
    strictness: Strictness,
) -> Result<Notice, BundleError> {
    let (Some(from), Some(to)) = (files.get(from), files.get(to)) else {
        return Err(BundleError::Limit { what: "the number of files", limit: files.len() });
    };
    let place = from.bundle.includes.get(edge).map(|include| include.place.clone());
    let place = place.unwrap_or_else(|| nowhere(from));
    let own_root =
        from.namespaces.iter().any(|own| own.home == to.bundle.home) && from.bundle.home != to.bundle.home;
    let message = format!("circular include skipped: {}", chain.join(" → "));
    if own_root {
        return Ok(Notice::note(Code::Cycle, &place, message));
    }
    match strictness {
        Strictness::Strict => Err(BundleError::Cycle { place, chain }),
        Strictness::Lenient => Ok(Notice::warning(Code::Cycle, &place, message)),
    }
}

fn nowhere(file: &LoadedFile) -> Place {
    Place::start(&std::sync::Arc::new(crate::origin::SourceFile::new(&file.bundle.home.file, "")))
}

/// Of two namespaces with one name the first in the order of composition counts; that there are two is told.
fn collect_namespaces(files: &[LoadedFile], order: &[usize], notices: &mut Vec<Notice>) -> Vec<Namespace> {
    let mut found: Vec<Namespace> = Vec::new();
    for own in order.iter().filter_map(|file| files.get(*file)).flat_map(|file| &file.namespaces) {
        let same = |other: &&Namespace| other.name == own.name;
        match found.iter().find(same) {
            None => found.push(own.clone()),
            Some(first) if first.dir == own.dir => {}
            Some(first) => {
                let message = format!(
                    "two bundles are called `{}`: `{}` and `{}`; the name stands for the first",
                    own.name,
                    first.home.file.display(),
                    own.home.file.display()
                );
                let name = files.iter().find(|file| file.bundle.home == own.home);
                let place =
                    name.and_then(|file| file.bundle.head.name.as_ref()).map(|name| name.place.clone());
                let severity = crate::notice::Severity::Note;
                let notice = Notice { severity, code: Code::NamespaceClash, place, message, hint: None };
                if !notices.contains(&notice) {
                    notices.push(notice);
                }
            }
        }
    }
    found
}

fn set(state: &mut [State], file: usize, to: State) {
    if let Some(slot) = state.get_mut(file) {
        *slot = to;
    }
}
