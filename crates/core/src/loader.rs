//! From an entry of the plan to a mounted module: find it, give it its config, let it join, write down what came of it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::mount_plan::ModuleSpec;
use async_trait::async_trait;
use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::contracts::{
    Cleanup, ContextManager, HookHandler, Module, Mounted, Orchestrator, Provider, Ready, Resolved,
    SourceError, TaskFailure, Tool,
};
use crate::coordinator::{Coordinator, MountPoint, Replaced};
use crate::error::chain;
use crate::hooks::{HandlerId, HookSpec};
use crate::redact::names_a_secret;
use crate::report::{LoadEntry, LoadOutcome};
use crate::sync::lock;
use crate::watch::{catching, within};

mod pool;

use pool::Pool;

/// Why a module of the mount plan did not come up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Nobody knew the id.
    #[error("Module '{id}' not found; tried {}{}", tried.join(", "), suggestion(near))]
    NotFound {
        /// The module.
        id: ModuleId,
        /// Where it was looked for.
        tried: Vec<String>,
        /// Ids that are close.
        near: Vec<String>,
    },
    /// The resolver or the source gave nothing.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A folder was found and nothing here can run what is in it.
    #[error("module `{id}` was found in `{}` but failed to load: {message}", folder.display())]
    Folder {
        /// The module.
        id: ModuleId,
        /// The folder.
        folder: PathBuf,
        /// Why.
        message: String,
    },
    /// The module is of another kind than the section of the plan it stands in.
    #[error("module `{id}` is a {found}, but the plan lists it as a {expected}")]
    Kind {
        /// The module.
        id: ModuleId,
        /// What the plan says.
        expected: ModuleKind,
        /// What it is.
        found: ModuleKind,
    },
    /// The config does not fit the module.
    #[error("module `{id}` rejected its config{}", at_key(key))]
    Config {
        /// The module.
        id: ModuleId,
        /// The key that does not fit; empty where it is the whole.
        key: String,
        /// What does not fit.
        #[source]
        source: serde_json::Error,
    },
    /// The config refers to something that is not there.
    #[error("config of module `{id}` cannot be filled in")]
    Expand {
        /// The module.
        id: ModuleId,
        /// What is missing.
        #[source]
        source: ExpandError,
    },
    /// The module itself failed.
    #[error("module `{id}` failed to mount: {message}")]
    Mount {
        /// The module.
        id: ModuleId,
        /// What it said, or what its panic or silence was.
        message: String,
    },
    /// The module said it was ready and left nothing of its kind.
    #[error("module `{id}` mounted no {kind}")]
    Nothing {
        /// The module.
        id: ModuleId,
        /// What it should have mounted.
        kind: ModuleKind,
    },
}

/// Reads a value and tells the keys that its type does not know.
fn noting<T: DeserializeOwned>(
    value: &Value,
    unknown: &mut dyn FnMut(String),
) -> Result<T, serde_json::Error> {
    serde_ignored::deserialize(value, |path| unknown(path.to_string()))
}

fn at_key(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!(" at `{key}`") }
}

fn suggestion(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}

/// Names close to a wrong one, the closest first, at most three.
pub fn near_misses(wrong: &str, known: &[String]) -> Vec<String> {
    // Measures that favour a common beginning would find every `tool-…` near every other.
    let likeness = |name: &str| strsim::normalized_damerau_levenshtein(wrong, name);
    let mut near: Vec<_> = known.iter().map(|name| (likeness(name), name)).collect();
    near.retain(|(likeness, _)| *likeness >= 0.7);
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    near.into_iter().take(3).map(|(_, name)| format!("`{name}`")).collect()
}

/// A place where modules are looked for when no resolver is mounted, such as the built-in table.
#[async_trait]
pub trait ModuleFinder: Send + Sync {
    /// What it is called in "tried …".
    fn name(&self) -> &str;

    /// The ids it knows, for "did you mean".
    fn known(&self) -> Vec<String>;

    /// The module, if it has it.
    async fn find(&self, id: &ModuleId) -> Result<Option<Arc<dyn Module>>, LoadError>;
}

/// Turns a folder that a source resolved to into a module, such as one that runs in another process.
#[async_trait]
pub trait FolderOpener: Send + Sync {
    /// The module in the folder.
    async fn open(&self, id: &ModuleId, folder: &Path) -> Result<Arc<dyn Module>, LoadError>;
}

/// Fills `${VAR}` and its like into a config, in memory, at mount time only.
pub trait ConfigExpander: Send + Sync {
    /// The config with every reference filled in.
    fn expand(&self, config: Value) -> Result<Value, ExpandError>;
}

/// A reference that cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{reference}` at `{pointer}` is not set; {}", advice(pointer))]
pub struct ExpandError {
    /// What is not there.
    pub reference: String,
    /// Where it is used, as a JSON pointer into the config.
    pub pointer: String,
}

/// A secret has no default that makes sense.
fn advice(pointer: &str) -> &'static str {
    match pointer.rsplit('/').next() {
        Some(key) if names_a_secret(key) => "set the variable",
        _ => "set the variable or give a default with `${NAME:-default}`",
    }
}

/// Where modules are looked for.
#[derive(Clone, Default)]
pub struct Loader {
    // With their names, which every entry of every load report shares.
    finders: Vec<(Arc<str>, Arc<dyn ModuleFinder>)>,
    opener: Option<Arc<dyn FolderOpener>>,
    expander: Option<Arc<dyn ConfigExpander>>,
    pool: Arc<Pool>,
}

impl Loader {
    /// A loader that knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks here too, after the places added before.
    #[must_use]
    pub fn finder(mut self, finder: Arc<dyn ModuleFinder>) -> Self {
        self.finders.push((Arc::from(finder.name()), finder));
        self
    }

    /// Opens folders with this.
    #[must_use]
    pub fn opener(mut self, opener: Arc<dyn FolderOpener>) -> Self {
        self.opener = Some(opener);
        self
    }

    /// Fills configs in with this.
    #[must_use]
    pub fn expander(mut self, expander: Arc<dyn ConfigExpander>) -> Self {
        self.expander = Some(expander);
        self
    }

    /// Mounts one entry of the plan and says what came of it. The error is there for the caller that cannot go on.
    pub(crate) async fn mount(
        &self,
        spec: &ModuleSpec,
        kind: ModuleKind,
        coordinator: &Coordinator,
    ) -> (LoadEntry, Option<LoadError>) {
        let began = coordinator.now();
        let mut cx = MountCx::new(coordinator.clone(), spec);
        cx.pool = Some(Arc::clone(&self.pool));
        let mut found_in = None;
        let result = self.find_and_mount(spec, kind, &cx, &mut found_in).await;
        let notes = std::mem::take(&mut *lock(&cx.notes));
        let (outcome, error) = match result {
            Ok(Mounted::Ready) => {
                (LoadOutcome::Mounted { names: self.pool.names(&spec.module, notes.names) }, None)
            }
            Ok(Mounted::Skipped { reason }) => (LoadOutcome::Skipped { reason }, None),
            Err(error) => (LoadOutcome::Failed { error: chain(&error) }, Some(error)),
        };
        let entry = LoadEntry {
            module: spec.module.clone(),
            kind,
            instance_id: spec.instance_id.clone(),
            found_in,
            outcome,
            warnings: notes.warnings,
            took_micros: 0,
        };
        (entry.took(coordinator.now().since(began)), error)
    }

    async fn find_and_mount(
        &self,
        spec: &ModuleSpec,
        kind: ModuleKind,
        cx: &MountCx,
        found_in: &mut Option<Arc<str>>,
    ) -> Result<Mounted, LoadError> {
        let id = &spec.module;
        let deadline = cx.coordinator.deadlines().mount;
        let late =
            |fault: crate::watch::Fault| LoadError::Mount { id: id.clone(), message: fault.to_string() };
        let found = cx.coordinator.wait_for(id.as_str(), "find", deadline, self.find(spec, &cx.coordinator));
        let (module, place) = found.await.map_err(late)??;
        *found_in = Some(place);
        let found = catching(async { module.kind() }).await.map_err(late)?;
        if found != kind {
            return Err(LoadError::Kind { id: id.clone(), expected: kind, found });
        }
        let mut config = Value::Object(spec.config.clone());
        if let Some(expander) = &self.expander {
            config =
                expander.expand(config).map_err(|source| LoadError::Expand { id: id.clone(), source })?;
        }
        let (mark, ready_mark) = (cx.coordinator.cleanup_mark(), cx.coordinator.ready_mark());
        let mounting = cx.coordinator.wait_for(id.as_str(), "mount", deadline, module.mount(config, cx));
        let mounted = mounting.await.map_err(late).and_then(|mounted| mounted);
        let mounted = match mounted {
            Ok(Mounted::Ready) if kind != ModuleKind::Hook && lock(&cx.notes).names.is_empty() => {
                Err(LoadError::Nothing { id: id.clone(), kind })
            }
            other => other,
        };
        if !matches!(mounted, Ok(Mounted::Ready)) {
            // A module that failed or declined half-way leaves nothing behind.
            cx.forget();
            cx.coordinator.forget_ready(ready_mark);
            run_cleanups(&cx.coordinator, mark).await;
        }
        mounted
    }

    /// The resolver decides, if one is mounted; else the finders, in order.
    async fn find(
        &self,
        spec: &ModuleSpec,
        at: &Coordinator,
    ) -> Result<(Arc<dyn Module>, Arc<str>), LoadError> {
        let id = &spec.module;
        if let Some(resolver) = at.resolver() {
            let source = resolver.resolve(id, spec.source.as_ref()).await.map_err(|e| self.told_near(e))?;
            return match source.resolve().await.map_err(|e| self.told_near(e))? {
                Resolved::Native(module) => Ok((module, Arc::from("resolver (native)"))),
                Resolved::Folder(folder) => {
                    let Some(opener) = &self.opener else {
                        let message =
                            "this program was built without a way to run modules from folders".to_owned();
                        return Err(LoadError::Folder { id: id.clone(), folder, message });
                    };
                    let module = opener.open(id, &folder).await?;
                    Ok((module, Arc::from(folder.display().to_string())))
                }
            };
        }
        let (mut tried, mut known) = (Vec::new(), Vec::new());
        for (name, finder) in &self.finders {
            if let Some(module) = finder.find(id).await? {
                return Ok((module, Arc::clone(name)));
            }
            tried.push(name.to_string());
            known.extend(finder.known());
        }
        if tried.is_empty() {
            tried.push("nowhere: no place to look was given".to_owned());
        }
        Err(LoadError::NotFound { id: id.clone(), tried, near: near_misses(id.as_str(), &known) })
    }
}

impl Loader {
    /// A resolver decides alone, but a name that nobody knows is as misspelt as without one: whoever wrote it is told which
    /// names are close.
    fn told_near(&self, error: SourceError) -> LoadError {
        match error {
            SourceError::NotFound { id, tried } => {
                let known: Vec<_> = self.finders.iter().flat_map(|(_, finder)| finder.known()).collect();
                let near = near_misses(id.as_str(), &known);
                LoadError::NotFound { id, tried, near }
            }
            other => LoadError::Source(other),
        }
    }
}

/// Runs the cleanups registered since a mark, last first, each within its deadline; returns what went wrong.
pub(crate) async fn run_cleanups(coordinator: &Coordinator, mark: usize) -> Vec<String> {
    let mut failed = Vec::new();
    for (owner, cleanup) in coordinator.take_cleanups(mark) {
        match within(coordinator.deadlines().cleanup, cleanup.run()).await {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => failed.push(format!("`{owner}`: {failure}")),
            Err(fault) => failed.push(format!("`{owner}`: {fault}")),
        }
    }
    failed
}

/// What a module mounts itself with. Everything goes through here, so that it can be undone.
pub struct MountCx {
    /// The session's hub.
    pub coordinator: Coordinator,
    module: ModuleId,
    instance_id: Option<String>,
    pool: Option<Arc<Pool>>,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    names: Vec<String>,
    warnings: Vec<String>,
    undo: Vec<Undo>,
}

/// What a mount put where, and what stood there before.
struct Undo {
    point: MountPoint,
    name: String,
    old: Option<Replaced>,
}

impl MountCx {
    /// A mount of an entry of a plan.
    pub fn new(coordinator: Coordinator, spec: &ModuleSpec) -> Self {
        let (module, instance_id) = (spec.module.clone(), spec.instance_id.clone());
        Self { coordinator, module, instance_id, pool: None, notes: Mutex::default() }
    }

    /// The module that is being mounted.
    pub fn module(&self) -> &ModuleId {
        &self.module
    }

    /// Notes something that should be looked at although the module came up.
    pub fn warn(&self, warning: impl Into<String>) {
        lock(&self.notes).warnings.push(warning.into());
    }

    /// What was noted so far.
    pub fn warnings(&self) -> Vec<String> {
        lock(&self.notes).warnings.clone()
    }

    /// Reads a part of the config into its type and tells which keys the type does not know. What does not fit is named.
    pub fn read_part<T: DeserializeOwned>(
        &self,
        part: Value,
        mut unknown: impl FnMut(String),
    ) -> Result<T, LoadError> {
        noting(&part, &mut unknown).map_err(|source: serde_json::Error| {
            // A wrapper that follows the path would make the code of every config twice as large; an error may cost time.
            let message = source.to_string();
            let is_wrong = |key: &str, value: &Value| {
                let alone = Value::Object(Map::from_iter([(key.to_owned(), value.clone())]));
                noting::<T>(&alone, &mut |_| {}).is_err_and(|error| error.to_string() == message)
            };
            let entries = part.as_object().into_iter().flatten();
            let wrong =
                entries.filter(|(key, value)| is_wrong(key, value)).map(|(key, _)| key.clone()).next();
            LoadError::Config { id: self.module.clone(), key: wrong.unwrap_or_default(), source }
        })
    }

    /// Reads the config into its type. A key the type does not know is a warning that names the nearest one it does.
    pub fn read_config<T: DeserializeOwned + JsonSchema>(&self, config: Value) -> Result<T, LoadError> {
        let mut unknown = Vec::new();
        let config = self.read_part(config, |path| unknown.push(path))?;
        if !unknown.is_empty() {
            let schema = schema_for!(T).to_value();
            let keys = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            let known: Vec<_> = keys.map(|(key, _)| key.clone()).collect();
            for key in unknown {
                self.warn(format!(
                    "unknown config key `{key}` is ignored{}",
                    suggestion(&near_misses(&key, &known))
                ));
            }
        }
        Ok(config)
    }

    /// Mounts the orchestrator.
    pub fn mount_orchestrator(&self, orchestrator: Arc<dyn Orchestrator>) {
        let old = self.coordinator.replace_orchestrator(self.module.clone(), orchestrator);
        self.note("orchestrator", MountPoint::Orchestrator, old);
    }

    /// Mounts the context.
    pub fn mount_context(&self, context: Arc<dyn ContextManager>) {
        let old = self.coordinator.replace_context(self.module.clone(), context);
        self.note("context", MountPoint::Context, old);
    }

    /// Mounts a provider: under the plan's `instance_id`, else under its own name.
    pub fn mount_provider(&self, provider: Arc<dyn Provider>) {
        let name = self.instance_id.clone().unwrap_or_else(|| provider.name().to_owned());
        if self.coordinator.provider(&name).is_some() {
            self.warn(format!("provider `{name}` of another module is replaced"));
        }
        let old = self.coordinator.replace_provider(self.module.clone(), &name, provider);
        self.note(&name, MountPoint::Providers, old);
    }

    /// Mounts a tool under the name of its spec.
    pub fn mount_tool(&self, tool: Arc<dyn Tool>) {
        let spec = match &self.pool {
            Some(pool) => pool.spec(tool.spec()),
            None => Arc::new(tool.spec()),
        };
        let name = spec.name.clone();
        if self.coordinator.tool(&name).is_some() {
            self.warn(format!("tool `{name}` of another module is replaced"));
        }
        let old = self.coordinator.replace_tool(self.module.clone(), spec, tool);
        self.note(&name, MountPoint::Tools, old);
    }

    /// Registers a hook handler; it is removed when the session ends.
    pub fn on(&self, spec: HookSpec, handler: Arc<dyn HookHandler>) -> HandlerId {
        lock(&self.notes).names.push(spec.name.clone());
        let id = self.coordinator.hooks().on(spec, handler);
        let coordinator = self.coordinator.clone();
        self.register_cleanup(move || async move {
            coordinator.hooks().unregister(id);
            Ok::<(), TaskFailure>(())
        });
        id
    }

    /// Undoes something when the session ends or this mount fails.
    pub fn register_cleanup(&self, cleanup: impl Cleanup + 'static) {
        self.coordinator.push_cleanup(self.module.clone(), Box::new(cleanup));
    }

    /// Does something once every module is mounted.
    pub fn on_session_ready(&self, ready: impl Ready + 'static) {
        self.coordinator.push_ready(self.module.clone(), Box::new(ready));
    }

    fn note(&self, name: &str, point: MountPoint, old: Option<Replaced>) {
        let mut notes = lock(&self.notes);
        notes.names.push(name.to_owned());
        notes.undo.push(Undo { point, name: name.to_owned(), old });
    }

    /// Takes back everything this mount put into the session, and puts back what it took the place of.
    fn forget(&self) {
        let undo = std::mem::take(&mut lock(&self.notes).undo);
        for Undo { point, name, old } in undo.into_iter().rev() {
            match old {
                Some(old) => self.coordinator.restore(old),
                // Cannot fail: every place for many comes with its name.
                None => drop(self.coordinator.unmount(&point, Some(&name))),
            }
        }
    }
}
