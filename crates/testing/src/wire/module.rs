//! The module contract over a wire: `module.describe`, `module.mount`, `module.ready`, `module.unmount`, and `part.call`
//! for what a mount left. This is the near side; the far one is in `module/far.rs`.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::contracts::{Module, Mounted, TaskFailure, TurnCx};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::hooks::{FailurePolicy, HookSpec};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::frame::RpcError;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::ModuleKind;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::callbacks::Callbacks;
use super::line::Line;
use super::peer::{Peer, Watch};
use super::serve::own_error;
use super::{context, hook, orchestrator, provider, tool};
use crate::guest::GuestModule;
use crate::kernel::LocalKernel;

mod far;

/// A module at the other end of a wire. One wire carries all its mounts, what they left, and what they call back.
pub async fn module(module: Arc<dyn GuestModule>) -> Result<Arc<dyn Module>, RpcError> {
    let callbacks = Arc::new(Callbacks::default());
    let peer = Peer::connect(callbacks.clone(), far::served(module));
    let description = peer.call("module.describe", &(), Watch::default()).await?;
    Ok(Arc::new(Proxy { peer, callbacks, description }))
}

#[derive(Serialize, Deserialize)]
struct Description {
    id: ModuleId,
    kind: ModuleKind,
}

#[derive(Serialize, Deserialize)]
struct Mount {
    turn: u64,
    config: Value,
}

/// What came of a mount.
#[derive(Serialize, Deserialize)]
struct Joined {
    mount: u64,
    mounted: Mounted,
    parts: Vec<Part>,
    warnings: Vec<String>,
}

/// What a mount left, each under a number that `part.call` takes.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Part {
    Orchestrator { part: u64 },
    Context { part: u64 },
    Provider { part: u64 },
    Tool { part: u64 },
    Hook { part: u64, registered: Registered },
}

/// How a handler is registered.
#[derive(Serialize, Deserialize)]
struct Registered {
    pattern: String,
    name: String,
    priority: i32,
    /// Seconds.
    timeout: Option<f64>,
    on_failure: FailurePolicy,
}

impl From<HookSpec> for Registered {
    fn from(spec: HookSpec) -> Self {
        let HookSpec { pattern, name, priority, timeout, on_failure } = spec;
        let timeout = timeout.as_ref().map(Duration::as_secs_f64);
        Self { pattern: pattern.to_string(), name, priority, timeout, on_failure }
    }
}

impl Registered {
    fn spec(self) -> Result<HookSpec, String> {
        let Self { pattern, name, priority, timeout, on_failure } = self;
        let pattern = pattern.parse().map_err(|error| format!("`{pattern}`: {error}"))?;
        let timeout = timeout.map(Duration::try_from_secs_f64).transpose();
        let timeout = timeout.map_err(|error| format!("the time of `{name}`: {error}"))?;
        Ok(HookSpec { pattern, name, priority, timeout, on_failure })
    }
}

/// A mount, and a number to call back with where there is something to call back.
#[derive(Serialize, Deserialize)]
struct OfMount {
    mount: u64,
    turn: Option<u64>,
}

struct Proxy {
    peer: Arc<Peer>,
    callbacks: Arc<Callbacks>,
    description: Description,
}

#[async_trait]
impl Module for Proxy {
    fn id(&self) -> ModuleId {
        self.description.id.clone()
    }

    fn kind(&self) -> ModuleKind {
        self.description.kind
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let failed = |message: String| LoadError::Mount { id: cx.module().clone(), message };
        let open = self.callbacks.open(kernel(&cx.coordinator));
        let asked = Mount { turn: open.turn, config };
        let answer = self.peer.call("module.mount", &asked, Watch::default()).await;
        let joined: Joined =
            answer.map_err(|error| failed(own_error(error, TaskFailure::new).to_string()))?;
        // First, so that it runs last, and also when a part cannot be had.
        self.leave_with(cx, joined.mount);
        for warning in joined.warnings {
            cx.warn(warning);
        }
        for part in joined.parts {
            self.take(part, cx).await.map_err(failed)?;
        }
        Ok(joined.mounted)
    }
}

impl Proxy {
    /// Lets the other end hear when all are mounted, and when the session ends.
    fn leave_with(&self, cx: &MountCx, mount: u64) {
        let peer = Arc::clone(&self.peer);
        cx.register_cleanup(move || async move {
            let asked = OfMount { mount, turn: None };
            let answer = peer.call("module.unmount", &asked, Watch::default()).await;
            answer.map_err(|error| own_error(error, TaskFailure::new))
        });
        let (peer, callbacks) = (Arc::clone(&self.peer), Arc::clone(&self.callbacks));
        cx.on_session_ready(move |coordinator: Coordinator| async move {
            let open = callbacks.open(kernel(&coordinator));
            let asked = OfMount { mount, turn: Some(open.turn) };
            let answer = peer.call("module.ready", &asked, Watch::default()).await;
            answer.map_err(|error| own_error(error, TaskFailure::new))
        });
    }

    async fn take(&self, part: Part, cx: &MountCx) -> Result<(), String> {
        let told = |error: RpcError| error.to_string();
        let line = |part| Line::to_part(&self.peer, part);
        match part {
            Part::Orchestrator { part } => {
                cx.mount_orchestrator(orchestrator::at(line(part), Arc::clone(&self.callbacks)));
            }
            Part::Context { part } => cx.mount_context(context::at(line(part))),
            Part::Provider { part } => cx.mount_provider(provider::at(line(part)).await.map_err(told)?),
            Part::Tool { part } => cx.mount_tool(tool::at(line(part)).await.map_err(told)?),
            Part::Hook { part, registered } => {
                cx.on(registered.spec()?, hook::at(line(part)));
            }
        }
        Ok(())
    }
}

/// The callbacks outside a turn: they belong to the one that comes or runs.
fn kernel(coordinator: &Coordinator) -> LocalKernel {
    LocalKernel(TurnCx { coordinator: coordinator.clone(), turn: coordinator.turn() })
}
