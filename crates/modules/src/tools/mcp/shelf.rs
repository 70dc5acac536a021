//! What stands in the session for what servers offer: which names they have, which tools are mounted now.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_core::contracts::Tool;
use amplifier_core::coordinator::{Coordinator, MountPoint};
use amplifier_core::loader::MountCx;
use amplifier_protocol::ids::ModuleId;

use super::names::tool_name;
use super::offered::{self, Face};
use super::server::Server;
use super::wire::Offer;

/// The tools of all servers of a session.
pub(super) struct Shelf {
    coordinator: Coordinator,
    module: ModuleId,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Until the module is mounted, tools wait here to be mounted with it.
    live: bool,
    tools: Vec<Standing>,
}

struct Standing {
    server: String,
    face: Face,
    tool: Arc<dyn Tool>,
    name: String,
}

/// What a look at a server's offer changed.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) all: Vec<String>,
    pub(super) added: Vec<String>,
    pub(super) removed: Vec<String>,
}

impl Shelf {
    pub(super) fn new(coordinator: Coordinator, module: ModuleId) -> Self {
        Self { coordinator, module, inner: Mutex::default() }
    }

    /// Makes the session's tools of a server what it offers now. What did not change is left alone, so that a model's
    /// prompt cache survives.
    pub(super) fn put(&self, server: &Arc<Server>, offer: &Arc<Offer>) -> Changes {
        let mut changes = Changes::default();
        let faces = offered::faces(server, offer);
        let mut inner = self.lock();
        let (kept, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut inner.tools)
            .into_iter()
            .partition(|standing| standing.server != server.name() || faces.contains(&standing.face));
        inner.tools = kept;
        for standing in gone {
            if inner.live {
                // Cannot fail: the place is for many and the name is given.
                drop(self.coordinator.unmount(&MountPoint::Tools, Some(&standing.name)));
            }
            changes.removed.push(standing.name);
        }
        for face in faces {
            let known = inner.tools.iter().find(|known| known.server == server.name() && known.face == face);
            if let Some(known) = known {
                changes.all.push(known.name.clone());
                continue;
            }
            let taken = |name: &str| {
                inner.tools.iter().any(|known| known.name == name) || self.coordinator.tool(name).is_some()
            };
            let name = tool_name(server.name(), face.plain_name(), taken);
            let tool = offered::tool(name.clone(), &face, server);
            if inner.live {
                self.coordinator.mount_tool(self.module.clone(), Arc::clone(&tool));
            }
            inner.tools.push(Standing { server: server.name().to_owned(), face, tool, name: name.clone() });
            changes.all.push(name.clone());
            changes.added.push(name);
        }
        // A tool that only looks different now is the same tool.
        let again: Vec<_> =
            changes.removed.iter().filter(|name| changes.added.contains(name)).cloned().collect();
        changes.added.retain(|name| !again.contains(name));
        changes.removed.retain(|name| !again.contains(name));
        changes
    }

    /// Mounts what has come so far with the module; what comes later mounts itself.
    pub(super) fn go_live(&self, cx: &MountCx, order: &[String]) {
        let mut inner = self.lock();
        // The plan's order, not the order in which servers happened to be ready.
        inner.tools.sort_by_key(|standing| order.iter().position(|name| *name == standing.server));
        for standing in &inner.tools {
            cx.mount_tool(Arc::clone(&standing.tool));
        }
        inner.live = true;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
