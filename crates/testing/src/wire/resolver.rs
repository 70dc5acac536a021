//! The module source contract over a wire: `resolver.resolve` gives a number, `source.resolve` takes it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use amplifier_core::contracts::{ModuleSource, ModuleSourceResolver, Resolved, SourceError};
use amplifier_protocol::frame::{RpcError, code};
use amplifier_protocol::ids::ModuleId;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::peer::{Peer, Watch};
use super::serve::{Answer, Incoming, Nothing, Serve, outcome, own_error};
use crate::sync::lock;

/// The same resolver, at the other end of a wire. A module that lives in the other program cannot cross it.
pub fn resolver(resolver: Arc<dyn ModuleSourceResolver>) -> Arc<dyn ModuleSourceResolver> {
    let server = Server { resolver, sources: Mutex::default(), next: AtomicU64::new(1) };
    Arc::new(Proxy(Peer::connect(Arc::new(Nothing), Arc::new(server))))
}

#[derive(Serialize, Deserialize)]
struct Resolve {
    module_id: ModuleId,
    hint: Option<Value>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Source {
    source: u64,
    module_id: ModuleId,
}

#[derive(Serialize, Deserialize)]
struct Place {
    folder: PathBuf,
}

struct Proxy(Arc<Peer>);

struct RemoteSource {
    peer: Arc<Peer>,
    source: Source,
}

fn own(error: RpcError, id: &ModuleId, hint: Option<&Value>) -> SourceError {
    let source_hint = hint.map(ToString::to_string).unwrap_or_default();
    own_error(error, |message| SourceError::Unavailable { id: id.clone(), source_hint, message })
}

#[async_trait]
impl ModuleSourceResolver for Proxy {
    async fn resolve(
        &self,
        module_id: &ModuleId,
        hint: Option<&Value>,
    ) -> Result<Arc<dyn ModuleSource>, SourceError> {
        let params = Resolve { module_id: module_id.clone(), hint: hint.cloned() };
        let answer = self.0.call("resolver.resolve", &params, Watch::default()).await;
        let source = answer.map_err(|error| own(error, module_id, hint))?;
        Ok(Arc::new(RemoteSource { peer: Arc::clone(&self.0), source }))
    }
}

#[async_trait]
impl ModuleSource for RemoteSource {
    async fn resolve(&self) -> Result<Resolved, SourceError> {
        let answer = self.peer.call("source.resolve", &self.source, Watch::default()).await;
        let Place { folder } = answer.map_err(|error| own(error, &self.source.module_id, None))?;
        Ok(Resolved::Folder(folder))
    }
}

struct Server {
    resolver: Arc<dyn ModuleSourceResolver>,
    sources: Mutex<HashMap<u64, Arc<dyn ModuleSource>>>,
    next: AtomicU64,
}

impl Server {
    async fn resolve(&self, params: Resolve) -> Result<Source, SourceError> {
        let Resolve { module_id, hint } = params;
        let found = self.resolver.resolve(&module_id, hint.as_ref()).await?;
        let source = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.sources).insert(source, found);
        Ok(Source { source, module_id })
    }

    async fn place(&self, asked: Source) -> Result<Result<Place, SourceError>, RpcError> {
        let known = lock(&self.sources).get(&asked.source).cloned();
        let unknown = || RpcError::new(code::INVALID_PARAMS, format!("no source `{}`", asked.source));
        Ok(match known.ok_or_else(unknown)?.resolve().await {
            Ok(Resolved::Folder(folder)) => Ok(Place { folder }),
            Ok(Resolved::Native(module)) => Err(SourceError::Unavailable {
                id: module.id(),
                source_hint: String::new(),
                message: "it is part of the other program".to_owned(),
            }),
            Err(error) => Err(error),
        })
    }
}

#[async_trait]
impl Serve for Server {
    async fn serve(&self, call: Incoming) -> Answer {
        match call.method.as_str() {
            "resolver.resolve" => outcome(self.resolve(call.read()?).await),
            "source.resolve" => outcome(self.place(call.read()?).await?),
            _ => call.unknown(),
        }
    }
}
