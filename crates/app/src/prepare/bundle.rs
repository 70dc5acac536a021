//! From a reference to a bundle that is ready: loaded, composed, its modules on this machine. Sessions opened from it need
//! no network. Opening them is `open.rs`'s.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_bundle::bundle::Head;
use amplifier_bundle::compose::Composed;
use amplifier_bundle::error::BundleError;
use amplifier_bundle::home::Source;
use amplifier_bundle::include::{LoadOptions, Required};
use amplifier_bundle::load::{LoadedBundle, load_layer, load_with};
use amplifier_bundle::notice::{Notice, Strictness};
use amplifier_core::contracts::ModuleSourceResolver;
use amplifier_core::validate::MountPlanValidator;
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_sources::fetch::{FetchContext, Freshness};
use amplifier_sources::lock::BundleLock;
use amplifier_sources::resolver::SourceResolver;
use amplifier_sources::uri::SourceUri;
use futures_util::stream::{self, StreamExt};

use super::fault::BundleFault;
use super::modules;
use crate::credentials::{self, Credentials};
use crate::library::{Access, Library};
use crate::lockfile::{self, LOCK_FILE};
use crate::prompt::PromptParts;
use crate::registry::Registry;
use crate::resolver::{self, Sourced};
use crate::settings::Target;
use crate::shelf;

/// How many modules are fetched at the same time.
const FETCHES: usize = 8;

/// Whether a `bundle.lock` beside the bundle counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Locking {
    /// What it says is what is used; anything else is refused.
    #[default]
    Obeyed,
    /// It is not looked at: a new one is being made.
    Ignored,
}

/// What it means that a source cannot be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unavailable {
    /// An include that is not there, and under a lock a module, is an error: what it forbids must not vanish.
    #[default]
    Refused,
    /// It is listed, for looking offline at what there is.
    Listed,
}

/// How to prepare.
#[derive(Debug, Clone, Copy, Default)]
pub struct PrepareOptions {
    pub strictness: Strictness,
    pub locking: Locking,
    pub unavailable: Unavailable,
    /// Whether settings are laid over it.
    pub target: Target,
}

/// A bundle that is ready to become sessions.
pub struct PreparedBundle {
    /// How it was asked for.
    pub reference: String,
    /// What became of its text.
    pub loaded: LoadedBundle,
    /// How many modules come from a source and not from this program.
    pub fetched: usize,
    /// Modules whose source could not be had; a session will say so in its load report.
    pub missing: Vec<String>,
    /// The folder of a bundle on this machine, where its lock is or would be.
    pub own: Option<PathBuf>,
    /// The lock that was obeyed.
    pub locked: Option<PathBuf>,
    pub library: Library,
}

/// The bundle for which nobody was asked: that of the settings, else the one the registry has in use, else the built-in one.
pub fn current(access: &Access) -> Result<String, BundleFault> {
    if let Some((bundle, _)) = access.settings.bundle() {
        return Ok(bundle.to_owned());
    }
    let registered = Registry::new(&access.home).read()?;
    Ok(registered.active.unwrap_or_else(|| shelf::DEFAULT.to_owned()))
}

/// Prepares a bundle by registered name, path or address.
pub async fn prepare_bundle(
    reference: &str,
    access: &Access,
    options: PrepareOptions,
) -> Result<PreparedBundle, BundleFault> {
    let mut names = Registry::new(&access.home).read()?.names();
    names.extend(access.settings.bundle_names());
    let mut library = Library::new(access, names.clone());
    // A name that is registered is meant, whatever lies in the folder under the same name.
    let asked = library.address_of(reference).unwrap_or_else(|| as_path(reference, &access.base));
    let own = own_folder(&library, &asked, &access.base).await;
    let mut locked = None;
    if options.locking == Locking::Obeyed
        && let Some(own) = &own
        && let Some(lock) = lockfile::read(own)?
    {
        locked = Some(own.join(LOCK_FILE));
        library = library.under_lock(Arc::new(lock), own.clone(), asked.clone());
    }
    let PrepareOptions { target, unavailable, .. } = options;
    let required = match (unavailable, options.locking) {
        (Unavailable::Listed, _) => Required::Paths,
        (Unavailable::Refused, Locking::Ignored) => Required::All,
        (Unavailable::Refused, Locking::Obeyed) if locked.is_some() => Required::All,
        (Unavailable::Refused, Locking::Obeyed) => Required::Sources,
    };
    let options = LoadOptions { strictness: options.strictness, required, ..LoadOptions::default() };
    let layers = match target {
        Target::Bundle => Vec::new(),
        // What the person lays over every bundle is not part of this one, and none of its lock's business.
        Target::Session => app_layers(&Library::new(access, names), access, &options).await?,
    };
    let loaded = load_with(&library, &asked, &access.base, &options, layers).await;
    let mut loaded = match (loaded, &locked) {
        (Err(_), Some(lock)) if !library.refused().is_empty() => {
            let (problems, changed) = (library.refused(), library.changed());
            return Err(BundleFault::Drift { lock: lock.clone(), problems, changed });
        }
        (loaded, _) => loaded.map_err(Box::new)?,
    };
    if target == Target::Session {
        access.settings.apply(&mut loaded.plan);
    }
    let credentials = hide_credentials(&mut loaded, options.strictness, access)?;
    let (fetched, missing) = bring_modules(&library, &loaded, &credentials).await;
    let reference = credentials::shown(reference);
    let prepared = PreparedBundle { reference, loaded, fetched, missing, own, locked, library };
    prepared.refuse_drift()?;
    let is_strict = options.strictness == Strictness::Strict;
    if (is_strict || required == Required::All) && !prepared.missing.is_empty() {
        let (of, problems) = (prepared.fetched, prepared.missing);
        return Err(match prepared.locked.filter(|_| !is_strict) {
            Some(lock) => BundleFault::Unavailable { lock, problems },
            None => BundleFault::Modules { of, problems },
        });
    }
    Ok(prepared)
}

/// From here on nothing that is shown or kept holds a credential.
fn hide_credentials(
    loaded: &mut LoadedBundle,
    strictness: Strictness,
    access: &Access,
) -> Result<Credentials, BundleFault> {
    let mut credentials = Credentials::default();
    let mut notices = credentials.hide_draft(&mut loaded.plan);
    notices.retain(|notice| !access.settings.tells(notice));
    access.environment.learn(credentials.plain());
    notices.extend(credentials::of_includes(&loaded.graph));
    if notices.iter().any(|notice| notice.stops(strictness)) {
        return Err(Box::new(BundleError::Invalid(notices)).into());
    }
    loaded.composed.notices.append(&mut notices);
    Ok(credentials)
}

/// The bundles that settings lay over every other.
async fn app_layers(
    library: &Library,
    access: &Access,
    options: &LoadOptions,
) -> Result<Vec<Composed>, BundleFault> {
    let mut layers = Vec::new();
    for (reference, place) in access.settings.app_bundles() {
        let asked = library.address_of(&reference).unwrap_or_else(|| as_path(&reference, &access.base));
        let layer = load_layer(library, &asked, &access.base, options).await;
        layers.push(layer.map_err(|source| BundleFault::App {
            reference: credentials::shown(&reference),
            place,
            source: Box::new(source),
        })?);
    }
    Ok(layers)
}

/// A name that something in the folder has is a path.
fn as_path(reference: &str, base: &Path) -> String {
    match reference.parse() {
        Ok(SourceUri::Named { .. }) if base.join(reference).exists() => format!("./{reference}"),
        _ => reference.to_owned(),
    }
}

/// The folder a bundle lies in.
async fn own_folder(library: &Library, asked: &str, base: &Path) -> Option<PathBuf> {
    if asked.starts_with(shelf::SCHEME) {
        return None;
    }
    let path = match asked.parse::<SourceUri>().ok()? {
        SourceUri::Namespaced { .. } => return None,
        SourceUri::Named { .. } => base.join(asked),
        // A path that needs its suffix is no source yet.
        SourceUri::File(file) if file.fragment == Default::default() => {
            let expanded = file
                .path
                .strip_prefix("~/")
                .and_then(|rest| Some(library.context().base.home.as_ref()?.join(rest)));
            expanded.unwrap_or_else(|| base.join(&file.path))
        }
        // What cannot be had is told by the load itself.
        _ => library.bring(asked).await.ok()?.1.path,
    };
    let folder = if path.is_dir() { path } else { path.parent()?.to_path_buf() };
    folder.canonicalize().ok()
}

/// Fetches the modules that are not in this program; gives how many they are, and what could not be had.
async fn bring_modules(
    library: &Library,
    loaded: &LoadedBundle,
    credentials: &Credentials,
) -> (usize, Vec<String>) {
    let mut wanted = resolver::sourced(&loaded.plan.to_json());
    wanted.retain(|entry| !entry.native && is_location(&entry.source));
    let count = wanted.len();
    let problems = stream::iter(wanted.into_iter().map(|Sourced { module, source, .. }| async move {
        let brought = match credentials.written().get(&source) {
            Some(written) => library.bring_uri(&source, written.clone()).await,
            None => library.bring(&source).await,
        };
        let error = brought.err()?;
        let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        Some(format!("module `{module}`: {}{hint}", error.chain()))
    }));
    (count, problems.buffered(FETCHES).filter_map(|problem| async { problem }).collect().await)
}

/// Whether a source is a place; a name is looked up when the module is wanted.
fn is_location(source: &str) -> bool {
    !matches!(source.parse(), Ok(SourceUri::Named { .. } | SourceUri::Namespaced { .. }))
}

impl PreparedBundle {
    /// Who the bundle itself says it is, whatever it builds on.
    pub fn head(&self) -> &Head {
        let root = self.loaded.graph.files.first();
        root.map_or(&self.loaded.composed.head, |file| &file.bundle.head)
    }

    /// What the bundle calls itself, else how it was asked for.
    pub fn name(&self) -> &str {
        self.head().name().unwrap_or(&self.reference)
    }

    /// What is worth telling, of all files and steps.
    pub fn notices(&self) -> &[Notice] {
        self.loaded.notices()
    }

    /// The modules that nobody has, in the words of a session that does not find them.
    pub fn unknown_modules(&self) -> Vec<String> {
        modules::unknown(&self.loaded.plan)
    }

    /// The mount plan, if the bundle says enough to make a session.
    pub fn plan(&self) -> Result<MountPlan, BundleFault> {
        let draft = &self.loaded.plan;
        let json = draft.to_json();
        let validation = MountPlanValidator::validate(&json);
        let mut problems: Vec<_> = validation
            .errors()
            .map(|check| match draft.place_of(&check.pointer) {
                Some(place) => format!("{place}: {}", check.message),
                None => check.message.clone(),
            })
            .collect();
        if problems.is_empty() {
            match MountPlan::read(&json) {
                Ok(plan) => return Ok(plan),
                Err(error) => {
                    let place = draft.place_of(&error.pointer);
                    let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
                    problems.push(format!("{place}{error}: {}", error.cause));
                }
            }
        }
        let lacks_session =
            json.pointer("/session/orchestrator").is_none() || json.pointer("/session/context").is_none();
        Err(BundleFault::Incomplete { bundle: self.name().to_owned(), problems, lacks_session })
    }

    /// What the system prompt of its sessions is made from.
    pub fn prompt(&self) -> PromptParts {
        PromptParts::of(&self.loaded, &self.reference)
    }

    /// Where the modules of its sessions come from: what was fetched, nothing new.
    pub fn resolver(&self, plan: &MountPlan) -> Option<Arc<dyn ModuleSourceResolver>> {
        let cx = FetchContext { freshness: Freshness::Offline, ..self.library.context().clone() };
        let mut sources = SourceResolver::new(Arc::clone(self.library.fetcher()), cx);
        if let Some(lock) = self.library.lock() {
            sources = sources.with_lock(Arc::clone(lock));
        }
        resolver::for_plan(plan, sources, self.library.home())
    }

    /// What exactly its sources are, when it is locked; a session that is opened from it keeps that.
    pub fn lock(&self) -> Option<Arc<BundleLock>> {
        self.library.lock().cloned()
    }

    /// The files of this machine that are part of the bundle and lie outside of its folder, with their hashes.
    pub(crate) fn neighbours(&self, own: &Path) -> Vec<(String, String)> {
        let fetched: Vec<_> = self.library.fetched().into_iter().map(|(_, fetched)| fetched.path).collect();
        let files = self.loaded.graph.files.iter().filter(|file| {
            let home = &file.bundle.home;
            home.source == Source::Local
                && !home.file.starts_with(own)
                && !home.file.starts_with(shelf::ROOT)
                && !fetched.iter().any(|path| home.file.starts_with(path))
        });
        files.map(|file| (lockfile::relative(&file.bundle.home.file, own), file.hash.clone())).collect()
    }

    /// Under a lock nothing may differ, however lenient the load was.
    fn refuse_drift(&self) -> Result<(), BundleFault> {
        let (Some(lock), Some(path), Some(own)) = (self.library.lock(), &self.locked, &self.own) else {
            return Ok(());
        };
        let mut problems = self.library.refused();
        problems
            .extend(self.neighbours(own).into_iter().filter_map(|(name, hash)| differs(lock, &name, &hash)));
        if problems.is_empty() {
            return Ok(());
        }
        Err(BundleFault::Drift { lock: path.clone(), problems, changed: self.library.changed() })
    }
}

fn differs(lock: &BundleLock, name: &str, hash: &str) -> Option<String> {
    match lock.sources.get(name) {
        None => Some(format!("`{name}` is not in the lock")),
        Some(locked) if locked.content_hash.hex() == hash => None,
        Some(locked) => Some(format!(
            "`{name}` is not what was locked: its content is sha256:{hash}, the lock says {}",
            locked.content_hash
        )),
    }
}

/// Everything that is wrong with the files of a bundle, when that is why it cannot be loaded.
pub fn complaints(error: &BundleError) -> &[Notice] {
    match error {
        BundleError::Invalid(notices) => notices,
        _ => &[],
    }
}

/// The places a [`BundleError`] speaks of, with the line and a caret, for people.
pub fn rendered(error: &BundleError) -> Vec<String> {
    match error {
        BundleError::Invalid(notices) => notices.iter().map(Notice::render).collect(),
        BundleError::Include { source, place, .. } => match rendered(source) {
            below if below.is_empty() => place.excerpt().into_iter().collect(),
            below => below,
        },
        error => error.place().and_then(|place| place.excerpt()).into_iter().collect(),
    }
}
