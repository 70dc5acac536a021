//! Sources as the kernel wants them: a module id and the plan's `source` become a folder.
//!
//! What a plan's `source` means here: a URI or path of [`crate::uri`]; a name is looked up among the registered ones. An entry
//! without a `source` is looked for by its id: among the registered names, then as a folder `amplifier-module-<id>` or `<id>` in
//! the search folders, then wherever the resolver that follows looks. What is in a folder is not judged here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::contracts::{ModuleSource, ModuleSourceResolver, Resolved, SourceError};
use amplifier_protocol::ids::ModuleId;
use async_trait::async_trait;
use serde_json::Value;

use crate::cache::InUse;
use crate::error::FetchError;
use crate::fetch::{FetchContext, Fetcher};
use crate::lock::BundleLock;
use crate::uri::SourceUri;

/// Resolves modules with a [`Fetcher`].
pub struct SourceResolver {
    fetcher: Arc<Fetcher>,
    cx: FetchContext,
    names: BTreeMap<String, SourceUri>,
    /// Addresses with their credentials, by how they are shown.
    written: BTreeMap<String, SourceUri>,
    folders: Vec<PathBuf>,
    lock: Option<Arc<BundleLock>>,
    next: Option<Arc<dyn ModuleSourceResolver>>,
    in_use: Arc<Uses>,
}

/// What was given out of the cache, which is not cleared while the resolver lives.
type Uses = Mutex<Vec<InUse>>;

/// A module that is fetched when it is asked for.
struct FetchedModule {
    id: ModuleId,
    uri: SourceUri,
    fetcher: Arc<Fetcher>,
    cx: FetchContext,
    lock: Option<Arc<BundleLock>>,
    in_use: Arc<Uses>,
}

/// A module in a folder that is there.
struct FolderModule(PathBuf);

impl SourceResolver {
    pub fn new(fetcher: Arc<Fetcher>, cx: FetchContext) -> Self {
        let (names, written) = (BTreeMap::new(), BTreeMap::new());
        let (folders, in_use) = (Vec::new(), Arc::default());
        Self { fetcher, cx, names, written, folders, lock: None, next: None, in_use }
    }

    /// Names that stand for sources.
    #[must_use]
    pub fn with_names(self, names: BTreeMap<String, SourceUri>) -> Self {
        Self { names, ..self }
    }

    /// Addresses as they were written, credentials included, by how they are shown: a plan has only what is shown.
    #[must_use]
    pub fn with_written(self, written: BTreeMap<String, SourceUri>) -> Self {
        Self { written, ..self }
    }

    /// Folders in which modules lie as `amplifier-module-<id>` or `<id>`.
    #[must_use]
    pub fn with_folders(self, folders: Vec<PathBuf>) -> Self {
        Self { folders, ..self }
    }

    /// Everything that is fetched must be what the lock says.
    #[must_use]
    pub fn with_lock(self, lock: Arc<BundleLock>) -> Self {
        Self { lock: Some(lock), ..self }
    }

    /// Who is asked about modules that nobody here knows, such as the built-in table.
    #[must_use]
    pub fn then(self, next: Arc<dyn ModuleSourceResolver>) -> Self {
        Self { next: Some(next), ..self }
    }

    fn fetched(&self, id: &ModuleId, uri: SourceUri) -> Arc<dyn ModuleSource> {
        let uri = self.written.get(&uri.to_string()).cloned().unwrap_or(uri);
        let (fetcher, cx) = (Arc::clone(&self.fetcher), self.cx.clone());
        let (lock, in_use) = (self.lock.clone(), Arc::clone(&self.in_use));
        Arc::new(FetchedModule { id: id.clone(), uri, fetcher, cx, lock, in_use })
    }

    /// What is known about a name; else where it was looked for.
    fn named(&self, id: &ModuleId, name: &str) -> Result<Arc<dyn ModuleSource>, Vec<String>> {
        if let Some(uri) = self.names.get(name) {
            return Ok(self.fetched(id, uri.clone()));
        }
        let mut tried = vec![format!("registered name `{name}`")];
        for folder in &self.folders {
            let found = [format!("amplifier-module-{name}"), name.to_owned()]
                .into_iter()
                .map(|name| folder.join(name))
                .find(|path| path.is_dir());
            match found {
                Some(path) => return Ok(Arc::new(FolderModule(path))),
                None => tried.push(format!("folder `amplifier-module-{name}` in `{}`", folder.display())),
            }
        }
        Err(tried)
    }
}

#[async_trait]
impl ModuleSourceResolver for SourceResolver {
    async fn resolve(
        &self,
        id: &ModuleId,
        hint: Option<&Value>,
    ) -> Result<Arc<dyn ModuleSource>, SourceError> {
        let refuse = |source_hint: String, message: String| {
            Err(SourceError::Unavailable { id: id.clone(), source_hint, message })
        };
        let name = match hint {
            None | Some(Value::Null) => id.as_str().to_owned(),
            Some(Value::String(text)) => match text.parse::<SourceUri>() {
                // The text itself may hold a credential, so only what is wrong with it is told.
                Err(error) => return refuse("source".to_owned(), error.to_string()),
                Ok(SourceUri::Named { name, subpath: None }) => name,
                Ok(uri @ SourceUri::Named { .. }) => {
                    let path = format!("./{uri}").parse::<SourceUri>();
                    return match path {
                        Ok(path) => Ok(self.fetched(id, path)),
                        Err(error) => refuse(uri.to_string(), error.to_string()),
                    };
                }
                Ok(uri @ SourceUri::Namespaced { .. }) => {
                    let message =
                        "a `namespace:path` is no module source; the bundle that names it has to resolve it";
                    return refuse(uri.to_string(), message.to_owned());
                }
                Ok(uri) => return Ok(self.fetched(id, uri)),
            },
            Some(_) => {
                return refuse("source".to_owned(), "a source is a text; this one is none".to_owned());
            }
        };
        let mut tried = match self.named(id, &name) {
            Ok(source) => return Ok(source),
            Err(tried) => tried,
        };
        match &self.next {
            Some(next) => next.resolve(id, hint).await.map_err(|error| match error {
                SourceError::NotFound { id, tried: further } => {
                    tried.extend(further);
                    SourceError::NotFound { id, tried }
                }
                error => error,
            }),
            None => Err(SourceError::NotFound { id: id.clone(), tried }),
        }
    }
}

#[async_trait]
impl ModuleSource for FetchedModule {
    async fn resolve(&self) -> Result<Resolved, SourceError> {
        let unavailable = |message: String| SourceError::Unavailable {
            id: self.id.clone(),
            source_hint: self.uri.to_string(),
            message,
        };
        let fetch = async {
            match &self.lock {
                Some(lock) => self.fetcher.fetch_locked(&self.uri, lock.find(&self.uri)?, &self.cx).await,
                None => self.fetcher.fetch(&self.uri, &self.cx).await,
            }
        };
        let told = |error: FetchError| match error.hint() {
            Some(hint) => format!("{} ({hint})", error.chain()),
            None => error.chain(),
        };
        let fetched = fetch.await.map_err(|error| unavailable(told(error)))?;
        let held = self.fetcher.cache().hold(&fetched.path);
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner).extend(held);
        if fetched.path.is_dir() {
            Ok(Resolved::Folder(fetched.path))
        } else {
            Err(unavailable("it is a file; a module is a folder".to_owned()))
        }
    }
}

#[async_trait]
impl ModuleSource for FolderModule {
    async fn resolve(&self) -> Result<Resolved, SourceError> {
        Ok(Resolved::Folder(self.0.clone()))
    }
}
