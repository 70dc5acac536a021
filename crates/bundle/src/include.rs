//! Loads a bundle and everything it builds on: includes in declared order, relative to the file that declares them.
//!
//! The result is a [`Graph`]: each file once, however often it is included, with the cycles marked. What comes from
//! elsewhere comes through [`Fetch`], many at a time, and the result never depends on which answer came first. Merging
//! is `compose.rs`.

mod locate;
mod namespace;
mod order;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_protocol::address::hide;
use futures_util::stream::{self, StreamExt};
use sha2::{Digest, Sha256};

pub use self::locate::BUNDLE_FILES;
use self::locate::{Located, Target};
pub use self::namespace::Namespace;
use crate::bundle::{self, Bundle, Include};
use crate::error::BundleError;
use crate::fetch::Fetch;
use crate::home::Home;
use crate::notice::{Code, Notice, Strictness};
use crate::yaml::YamlLimits;

/// How to load.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoadOptions {
    /// Whether warnings stop it.
    pub strictness: Strictness,
    /// Which includes must be there in a lenient load.
    pub required: Required,
    /// What it may take.
    pub limits: LoadLimits,
}

/// Which includes stop a lenient load when they cannot be loaded. Others are skipped with a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Required {
    /// Paths in a namespace that is there.
    #[default]
    Paths,
    /// Those, and everything that must be fetched: a layer that forbids something must not vanish with the network.
    Sources,
    /// Every one: the bundle is locked, or a lock is being made.
    All,
}

/// Bounds of one load.
#[derive(Debug, Clone, Copy)]
pub struct LoadLimits {
    /// Files in all.
    pub files: usize,
    /// Include entries in all.
    pub includes: usize,
    /// Files from the one asked for to the last one included.
    pub depth: usize,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
    /// Values merged in all: far above what honest bundles need, far below what hurts.
    pub values: usize,
    /// Fetches at the same time.
    pub parallel: usize,
    /// Bounds of one file's YAML.
    pub yaml: YamlLimits,
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self {
            files: 1_000,
            includes: 5_000,
            depth: 64,
            file_bytes: 8 << 20,
            total_bytes: 64 << 20,
            values: 2_000_000,
            parallel: 16,
            yaml: YamlLimits::default(),
        }
    }
}

/// A bundle and everything it builds on.
#[derive(Debug)]
pub struct Graph {
    /// Each file once; the first is the one that was asked for.
    pub files: Vec<LoadedFile>,
    /// The files in the order in which they can be composed: what is included comes before what includes it.
    pub order: Vec<usize>,
    /// Every namespace, in the order of composition; of two with one name the first counts.
    pub namespaces: Vec<Namespace>,
    /// What is worth telling, of all files.
    pub notices: Vec<Notice>,
}

/// One file of a graph.
#[derive(Debug)]
pub struct LoadedFile {
    /// What it says.
    pub bundle: Bundle,
    /// How it was named by whoever asked for it first.
    pub reference: String,
    /// The hash of its bytes, SHA-256 in hex.
    pub hash: String,
    /// What its includes led to, one for each entry of `bundle.includes`.
    pub edges: Vec<Edge>,
    /// The namespaces it brings: its own name, and that of the root it lies under.
    pub namespaces: Vec<Namespace>,
    /// Who asked for it first.
    parent: Option<usize>,
    depth: usize,
}

/// What an include led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edge {
    /// A file of the graph.
    To(usize),
    /// A file that is being loaded already: skipped.
    Cycle(usize),
    /// Nothing; a notice says why.
    Failed,
}

/// Loads a bundle by address, path or registered name; relative paths start at `base`.
///
/// # Errors
/// [`BundleError`] when the bundle itself cannot be had, a bound is passed, or in strict mode an include fails or leads
/// back. Notices are the caller's to judge.
pub async fn load<F: Fetch>(
    fetch: &F,
    reference: &str,
    base: &Path,
    options: &LoadOptions,
) -> Result<Graph, BundleError> {
    let mut loader = Loader {
        fetch,
        options,
        files: Vec::new(),
        by_path: HashMap::new(),
        roots: HashMap::new(),
        registered: HashMap::new(),
        notices: Vec::new(),
        entries: 0,
        bytes: 0,
    };
    loader.run(reference, base).await?;
    order::finish(loader)
}

struct Loader<'l, F> {
    fetch: &'l F,
    options: &'l LoadOptions,
    files: Vec<LoadedFile>,
    by_path: HashMap<PathBuf, usize>,
    /// The bundle at the root of a tree, by its file: read once per root, not once per file below it.
    roots: HashMap<PathBuf, Option<Namespace>>,
    /// Registered names that were asked for, and what they stand for.
    registered: HashMap<String, Option<Namespace>>,
    notices: Vec<Notice>,
    entries: usize,
    bytes: u64,
}

/// An include that waits for its turn.
struct Request {
    from: usize,
    index: usize,
    include: Include,
}

impl<F: Fetch> Loader<'_, F> {
    async fn run(&mut self, reference: &str, base: &Path) -> Result<(), BundleError> {
        // The reference stands in no file; it is read as if it stood in one in the base folder, whose tree is its own.
        let home = Home::local(base.join("-"), base.join("-"));
        let mut target = locate::target(self.fetch, &home, reference, |_| None)?;
        if let Target::Namespace { namespace, .. } = &target {
            let namespace = namespace.clone();
            self.ask_registry(&namespace).await;
            target = locate::target(self.fetch, &home, reference, |name| self.registered.get(name)?.clone())?;
            if let Target::Namespace { .. } = target {
                return Err(BundleError::UnknownNamespace { namespace, reference: reference.to_owned() });
            }
        }
        let located = locate::reach(self.fetch, target).await?;
        let root = self.open(located, reference, None)?;
        let mut pending = self.requests_of(root)?;
        while !pending.is_empty() {
            pending = self.wave(pending).await?;
        }
        Ok(())
    }

    /// Loads what a batch of includes names; gives those that must wait and the includes of what is new.
    async fn wave(&mut self, batch: Vec<Request>) -> Result<Vec<Request>, BundleError> {
        let mut ready = Vec::new();
        let mut waiting = Vec::new();
        for request in batch {
            match self.target(&request) {
                // A namespace may come with what is loaded in this wave.
                Ok(Target::Namespace { namespace, .. }) => waiting.push((request, namespace)),
                other => ready.push((request, other)),
            }
        }
        if ready.is_empty() {
            return self.ask_for(waiting).await;
        }
        let fetch = self.fetch;
        let reached: Vec<_> = stream::iter(ready.into_iter().map(|(request, target)| async move {
            let located = match target {
                Ok(target) => locate::reach(fetch, target).await,
                Err(error) => Err(error),
            };
            (request, located)
        }))
        // Many at a time, but in the order in which they were asked for.
        .buffered(self.options.limits.parallel.max(1))
        .collect()
        .await;
        let mut next: Vec<_> = waiting.into_iter().map(|(request, _)| request).collect();
        for (request, located) in reached {
            let opened = located
                .and_then(|located| self.open(located, &request.include.reference, Some(request.from)));
            match opened {
                Ok(opened) => {
                    self.set_edge(&request, Edge::To(opened.file));
                    next.append(&mut self.requests_of(opened)?);
                }
                Err(error) => self.fail(&request, error)?,
            }
        }
        Ok(next)
    }

    /// Nothing that is loaded brings these namespaces: registered names are asked, once each; who is then still
    /// without an answer has none.
    async fn ask_for(&mut self, waiting: Vec<(Request, String)>) -> Result<Vec<Request>, BundleError> {
        let mut next = Vec::new();
        for (request, namespace) in waiting {
            if !self.registered.contains_key(&namespace)
                && let Some(error) = self.ask_registry(&namespace).await
                && self.options.required != Required::Paths
            {
                self.fail(&request, error)?;
            } else if self.registered.get(&namespace).is_some_and(Option::is_some) {
                next.push(request);
            } else {
                let reference = request.include.reference.clone();
                self.fail(&request, BundleError::UnknownNamespace { namespace, reference })?;
            }
        }
        Ok(next)
    }

    /// Gives why a registered bundle cannot be loaded.
    async fn ask_registry(&mut self, name: &str) -> Option<BundleError> {
        let (mut found, mut failed) = (None, None);
        if let Some(address) = self.fetch.redirect(name) {
            found = match self.registered_bundle(name, &address).await {
                Ok(namespace) => Some(namespace),
                Err(error) => {
                    let message =
                        format!("the registered bundle `{name}` is not to be had: {}", chain_of(&error));
                    let (code, severity) = (Code::IncludeFailed, crate::notice::Severity::Warning);
                    self.notices.push(Notice { severity, code, place: None, message, hint: None });
                    failed = Some(error);
                    None
                }
            };
        }
        self.registered.insert(name.to_owned(), found);
        failed
    }

    async fn registered_bundle(&self, name: &str, address: &str) -> Result<Namespace, BundleError> {
        let home = Home::local("/-", "/");
        let target = locate::target_of_address(&home, address)?;
        let located = locate::reach(self.fetch, target).await?;
        let home = Arc::new(Home::new(located.file, located.root, located.source));
        Ok(Namespace { name: name.to_owned(), dir: home.dir.clone(), home })
    }

    fn target(&self, request: &Request) -> Result<Target, BundleError> {
        let Some(file) = self.files.get(request.from) else {
            return Err(BundleError::Limit { what: "the number of files", limit: self.files.len() });
        };
        locate::target(self.fetch, &file.bundle.home, &request.include.reference, |name| {
            // A file's own namespaces are those of its own source, whatever else has the same name.
            let own = file.namespaces.iter();
            let others = self.files.iter().flat_map(|file| &file.namespaces);
            let registered = self.registered.get(name).and_then(Option::as_ref);
            own.chain(others).find(|namespace| namespace.name == name).or(registered).cloned()
        })
    }

    /// Reads a file that is not yet part of the graph.
    fn open(
        &mut self,
        located: Located,
        reference: &str,
        parent: Option<usize>,
    ) -> Result<Opened, BundleError> {
        if let Some(file) = self.by_path.get(&located.file) {
            return Ok(Opened { file: *file, is_new: false });
        }
        let limits = &self.options.limits;
        let depth = parent.and_then(|parent| self.files.get(parent)).map_or(0, |parent| parent.depth + 1);
        bound("the depth of includes", depth, limits.depth)?;
        bound("the number of bundle files", self.files.len() + 1, limits.files)?;
        let home = Arc::new(Home::new(located.file, located.root, located.source));
        let bytes = self
            .fetch
            .read(&home.file, limits.file_bytes)
            .map_err(|source| BundleError::Read { path: home.file.clone(), source })?;
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if self.bytes > limits.total_bytes {
            let limit = usize::try_from(limits.total_bytes).unwrap_or(usize::MAX);
            return Err(BundleError::Limit { what: "the size of all bundle files", limit });
        }
        let hash = hex(&Sha256::digest(&bytes));
        let (bundle, mut notices) = bundle::read(bytes, &home, &limits.yaml)?;
        let edges = vec![Edge::Failed; bundle.includes.len()];
        let namespaces = self.namespaces(&bundle, &mut notices);
        self.notices.append(&mut notices);
        let file = self.files.len();
        self.by_path.insert(home.file.clone(), file);
        let reference = reference.to_owned();
        self.files.push(LoadedFile { bundle, reference, hash, edges, namespaces, parent, depth });
        Ok(Opened { file, is_new: true })
    }

    fn requests_of(&mut self, opened: Opened) -> Result<Vec<Request>, BundleError> {
        let Some(file) = self.files.get(opened.file).filter(|_| opened.is_new) else { return Ok(Vec::new()) };
        let includes = &file.bundle.includes;
        self.entries += includes.len();
        bound("the number of includes", self.entries, self.options.limits.includes)?;
        let request = |(index, include): (usize, &Include)| Request {
            from: opened.file,
            index,
            include: include.clone(),
        };
        Ok(includes.iter().enumerate().map(request).collect())
    }

    fn set_edge(&mut self, request: &Request, edge: Edge) {
        let edges = self.files.get_mut(request.from).map(|file| &mut file.edges);
        if let Some(slot) = edges.and_then(|edges| edges.get_mut(request.index)) {
            *slot = edge;
        }
    }

    /// An include that cannot be loaded is an error where it is required and in strict mode, else a warning with the way to it.
    fn fail(&mut self, request: &Request, error: BundleError) -> Result<(), BundleError> {
        let Include { reference, place } = request.include.clone();
        let reference = hide(&reference).into_owned();
        let chain = self.chain(request.from);
        let fatal = match error {
            _ if self.options.required == Required::All => true,
            BundleError::NothingThere { .. } => locate::names_a_namespace(&request.include.reference),
            BundleError::NotFound { .. } => self.options.required == Required::Sources,
            BundleError::Limit { .. } => true,
            _ => false,
        };
        if fatal || self.options.strictness == Strictness::Strict {
            return Err(BundleError::Include { place, reference, chain, source: Box::new(error) });
        }
        let message = format!(
            "include `{reference}` of {} cannot be loaded and is skipped: {}",
            chain.join(" → "),
            chain_of(&error)
        );
        let mut notice = Notice::warning(Code::IncludeFailed, &place, message);
        notice.hint = error.hint();
        self.notices.push(notice);
        Ok(())
    }

    /// The files from the one that was asked for to this one.
    fn chain(&self, file: usize) -> Vec<String> {
        let mut chain = Vec::new();
        let mut at = Some(file);
        while let Some(found) = at.and_then(|at| self.files.get(at)) {
            chain.push(label(found));
            at = found.parent;
        }
        chain.reverse();
        chain
    }
}

/// A file of the graph, and whether it was just added.
#[derive(Clone, Copy)]
struct Opened {
    file: usize,
    is_new: bool,
}

/// How messages call a file: by its name, else by its path.
pub(crate) fn label(file: &LoadedFile) -> String {
    let path = file.bundle.home.file.display();
    file.bundle.head.name().map_or_else(|| format!("`{path}`"), |name| format!("`{name}` ({path})"))
}

fn bound(what: &'static str, found: usize, limit: usize) -> Result<(), BundleError> {
    if found > limit { Err(BundleError::Limit { what, limit }) } else { Ok(()) }
}

/// An error and its causes in one line.
fn chain_of(error: &BundleError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(found) = cause {
        text.push_str(": ");
        text.push_str(&found.to_string());
        cause = found.source();
    }
    text
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing into a string cannot fail.
        if write!(text, "{byte:02x}").is_err() {
            break;
        }
    }
    text
}
