//! The far side of the module contract: keeps what mounts left and passes calls on to it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use amplifier_core::contracts::{Cleanup, TaskFailure};
use amplifier_protocol::frame::{RpcError, code};
use async_trait::async_trait;

use super::{Description, Joined, Mount, OfMount, Part};
use crate::guest::{GuestModule, GuestReady, Left};
use crate::sync::lock;
use crate::wire::client::Client;
use crate::wire::line::{PartCall, TO_PART};
use crate::wire::serve::{Answer, Incoming, Serve, outcome, raw};
use crate::wire::{context, hook, orchestrator, provider, tool};

/// Serves a module.
pub(super) fn served(module: Arc<dyn GuestModule>) -> Arc<dyn Serve> {
    Arc::new(Server { module, parts: Mutex::default(), mounts: Mutex::default(), last: AtomicU64::new(0) })
}

struct Server {
    module: Arc<dyn GuestModule>,
    parts: Mutex<HashMap<u64, Arc<dyn Serve>>>,
    mounts: Mutex<HashMap<u64, Kept>>,
    last: AtomicU64,
}

/// What a mount left and nobody calls by itself.
#[derive(Default)]
struct Kept {
    parts: Vec<u64>,
    ready: Option<Box<dyn GuestReady>>,
    cleanup: Option<Box<dyn Cleanup>>,
}

#[async_trait]
impl Serve for Server {
    async fn serve(&self, call: Incoming) -> Answer {
        match call.method.as_str() {
            "module.describe" => raw(&Description { id: self.module.id(), kind: self.module.kind() }),
            "module.mount" => self.mount(&call).await,
            "module.ready" => self.ready(&call).await,
            "module.unmount" => self.unmount(&call).await,
            TO_PART => self.pass_on(call).await,
            _ => call.unknown(),
        }
    }
}

impl Server {
    fn number(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    async fn mount(&self, call: &Incoming) -> Answer {
        let Mount { turn, config } = call.read()?;
        let client = Client::new(Arc::clone(&call.peer), turn, call.cancel.clone());
        let mut left = Left::default();
        let mounted = self.module.mount(config, &client, &mut left).await;
        outcome(mounted.map(|mounted| {
            let mount = self.number();
            let warnings = std::mem::take(&mut left.warnings);
            Joined { mount, mounted, parts: self.keep(mount, left), warnings }
        }))
    }

    fn keep(&self, mount: u64, left: Left) -> Vec<Part> {
        let mut kept = Kept { ready: left.ready, cleanup: left.cleanup, ..Kept::default() };
        let mut keep = |server: Arc<dyn Serve>| {
            let part = self.number();
            lock(&self.parts).insert(part, server);
            kept.parts.push(part);
            part
        };
        let mut parts = Vec::new();
        if let Some(item) = left.orchestrator {
            parts.push(Part::Orchestrator { part: keep(orchestrator::served(item)) });
        }
        if let Some(item) = left.context {
            parts.push(Part::Context { part: keep(context::served(item)) });
        }
        for item in left.providers {
            parts.push(Part::Provider { part: keep(provider::served(item)) });
        }
        for item in left.tools {
            parts.push(Part::Tool { part: keep(tool::served(item)) });
        }
        for (spec, item) in left.hooks {
            parts.push(Part::Hook { part: keep(hook::served(item)), registered: spec.into() });
        }
        lock(&self.mounts).insert(mount, kept);
        parts
    }

    async fn ready(&self, call: &Incoming) -> Answer {
        let OfMount { mount, turn } = call.read()?;
        let ready = lock(&self.mounts).get_mut(&mount).and_then(|kept| kept.ready.take());
        let client = Client::new(Arc::clone(&call.peer), turn.unwrap_or_default(), call.cancel.clone());
        match ready {
            Some(ready) => outcome(ready.run(&client).await),
            None => raw(&()),
        }
    }

    async fn unmount(&self, call: &Incoming) -> Answer {
        let OfMount { mount, .. } = call.read()?;
        let unknown = || RpcError::new(code::INVALID_PARAMS, format!("nothing is mounted as {mount}"));
        let kept = lock(&self.mounts).remove(&mount).ok_or_else(unknown)?;
        for part in kept.parts {
            lock(&self.parts).remove(&part);
        }
        match kept.cleanup {
            Some(cleanup) => outcome::<(), TaskFailure>(cleanup.run().await),
            None => raw(&()),
        }
    }

    async fn pass_on(&self, call: Incoming) -> Answer {
        let PartCall { part, method, params } = call.read()?;
        let unknown = || RpcError::new(code::INVALID_PARAMS, format!("nothing is left as part {part}"));
        let server = lock(&self.parts).get(&part).cloned().ok_or_else(unknown)?;
        server.serve(Incoming { method, params, ..call }).await
    }
}
