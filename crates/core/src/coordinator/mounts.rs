//! What is mounted where. Order is the plan's: "the first provider" is the first in the plan.

use std::sync::Arc;

use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::tool::{Effects, ToolSpec};
use indexmap::IndexMap;
use serde_json::{Value, json};

use super::Coordinator;
use super::context::Recorded;
use crate::contracts::{ContextManager, ModuleSourceResolver, Orchestrator, Provider, Tool};
use crate::sync::{read, write};

#[derive(Default)]
pub(crate) struct Mounts {
    pub(super) orchestrator: Option<Mounted<dyn Orchestrator>>,
    pub(super) context: Option<Mounted<dyn ContextManager>>,
    pub(super) providers: IndexMap<String, Mounted<dyn Provider>>,
    pub(super) tools: IndexMap<String, MountedTool>,
    pub(super) resolver: Option<Arc<dyn ModuleSourceResolver>>,
}

impl Mounts {
    pub(super) fn shrink(&mut self) {
        self.providers.shrink_to_fit();
        self.tools.shrink_to_fit();
    }
}

pub(crate) struct Mounted<T: ?Sized> {
    pub(super) owner: ModuleId,
    pub(super) item: Arc<T>,
}

impl<T: ?Sized> Clone for Mounted<T> {
    fn clone(&self) -> Self {
        Self { owner: self.owner.clone(), item: Arc::clone(&self.item) }
    }
}

#[derive(Clone)]
pub(crate) struct MountedTool {
    pub(super) tool: Mounted<dyn Tool>,
    pub(super) spec: Arc<ToolSpec>,
    pub(super) effects: Effects,
}

/// What was at a place before something else was mounted there.
pub(crate) enum Replaced {
    Orchestrator(Mounted<dyn Orchestrator>),
    Context(Mounted<dyn ContextManager>),
    Resolver(Arc<dyn ModuleSourceResolver>),
    Provider(String, Mounted<dyn Provider>),
    Tool(MountedTool),
}

/// A place where modules are mounted, as the specification names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountPoint {
    /// The one orchestrator.
    Orchestrator,
    /// The one context.
    Context,
    /// The one resolver.
    Resolver,
    /// Providers by name.
    Providers,
    /// Tools by name.
    Tools,
}

/// Why something cannot be mounted or found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// No such place.
    #[error("Unknown mount point: {point}")]
    UnknownPoint {
        /// What was asked for.
        point: String,
    },
    /// Hooks are not mounted.
    #[error("Hooks should be registered with the hook registry, not mounted")]
    Hooks,
    /// A place for many needs a name.
    #[error("Name required for {point}")]
    NameRequired {
        /// The place.
        point: &'static str,
    },
}

impl MountPoint {
    /// Reads a place. `session` with the name `orchestrator` or `context` means those.
    pub fn parse(point: &str, name: Option<&str>) -> Result<Self, MountError> {
        match (point, name) {
            ("orchestrator", _) | ("session", Some("orchestrator")) => Ok(Self::Orchestrator),
            ("context", _) | ("session", Some("context")) => Ok(Self::Context),
            ("module-source-resolver", _) => Ok(Self::Resolver),
            ("providers", _) => Ok(Self::Providers),
            ("tools", _) => Ok(Self::Tools),
            ("hooks", _) => Err(MountError::Hooks),
            _ => Err(MountError::UnknownPoint { point: point.to_owned() }),
        }
    }
}

impl Coordinator {
    /// Mounts the orchestrator, replacing another.
    pub fn mount_orchestrator(&self, owner: ModuleId, item: Arc<dyn Orchestrator>) {
        drop(self.replace_orchestrator(owner, item));
    }

    /// Mounts the context, replacing another.
    pub fn mount_context(&self, owner: ModuleId, item: Arc<dyn ContextManager>) {
        drop(self.replace_context(owner, item));
    }

    /// Mounts a provider under a name, replacing another of that name.
    pub fn mount_provider(&self, owner: ModuleId, name: &str, item: Arc<dyn Provider>) {
        drop(self.replace_provider(owner, name, item));
    }

    /// Mounts a tool under the name of its spec, replacing another of that name.
    pub fn mount_tool(&self, owner: ModuleId, item: Arc<dyn Tool>) {
        let spec = Arc::new(item.spec());
        drop(self.replace_tool(owner, spec, item));
    }

    pub(crate) fn replace_orchestrator(
        &self,
        owner: ModuleId,
        item: Arc<dyn Orchestrator>,
    ) -> Option<Replaced> {
        write(&self.0.mounts).orchestrator.replace(Mounted { owner, item }).map(Replaced::Orchestrator)
    }

    pub(crate) fn replace_context(&self, owner: ModuleId, item: Arc<dyn ContextManager>) -> Option<Replaced> {
        write(&self.0.mounts).context.replace(Mounted { owner, item }).map(Replaced::Context)
    }

    pub(crate) fn replace_provider(
        &self,
        owner: ModuleId,
        name: &str,
        item: Arc<dyn Provider>,
    ) -> Option<Replaced> {
        let old = write(&self.0.mounts).providers.insert(name.to_owned(), Mounted { owner, item });
        old.map(|old| Replaced::Provider(name.to_owned(), old))
    }

    /// The spec was read already: a tool makes its spec once.
    pub(crate) fn replace_tool(
        &self,
        owner: ModuleId,
        spec: Arc<ToolSpec>,
        item: Arc<dyn Tool>,
    ) -> Option<Replaced> {
        let (name, effects) = (spec.name.clone(), item.effects());
        let entry = MountedTool { tool: Mounted { owner, item }, spec, effects };
        write(&self.0.mounts).tools.insert(name, entry).map(Replaced::Tool)
    }

    /// Puts back what a mount that failed had replaced, where it stood.
    pub(crate) fn restore(&self, replaced: Replaced) {
        let mut mounts = write(&self.0.mounts);
        let new = match replaced {
            Replaced::Orchestrator(old) => mounts.orchestrator.replace(old).map(Replaced::Orchestrator),
            Replaced::Context(old) => mounts.context.replace(old).map(Replaced::Context),
            Replaced::Resolver(old) => mounts.resolver.replace(old).map(Replaced::Resolver),
            Replaced::Provider(name, old) => {
                mounts.providers.insert(name.clone(), old).map(|new| Replaced::Provider(name, new))
            }
            Replaced::Tool(old) => mounts.tools.insert(old.spec.name.clone(), old).map(Replaced::Tool),
        };
        drop(mounts);
        drop(new);
    }

    /// Mounts who decides where modules come from.
    pub fn mount_resolver(&self, resolver: Arc<dyn ModuleSourceResolver>) {
        let old = write(&self.0.mounts).resolver.replace(resolver);
        drop(old);
    }

    /// Unmounts what is at a place; a name that is not there is no matter.
    pub fn unmount(&self, point: &MountPoint, name: Option<&str>) -> Result<(), MountError> {
        let named = |point| name.ok_or(MountError::NameRequired { point });
        let mut mounts = write(&self.0.mounts);
        let old = match point {
            MountPoint::Orchestrator => mounts.orchestrator.take().map(Replaced::Orchestrator),
            MountPoint::Context => mounts.context.take().map(Replaced::Context),
            MountPoint::Resolver => mounts.resolver.take().map(Replaced::Resolver),
            MountPoint::Providers => {
                let name = named("providers")?;
                mounts.providers.shift_remove(name).map(|old| Replaced::Provider(name.to_owned(), old))
            }
            MountPoint::Tools => mounts.tools.shift_remove(named("tools")?).map(Replaced::Tool),
        };
        drop(mounts);
        // Outside the lock: a module that is dropped here may come back to the coordinator.
        drop(old);
        Ok(())
    }

    /// The names mounted at a place, in mounting order; a single place has its own name when it is filled.
    #[doc(alias = "get_mounted")]
    pub fn mounted(&self, point: &MountPoint) -> Vec<String> {
        let mounts = read(&self.0.mounts);
        let single = |filled: bool, name: &str| if filled { vec![name.to_owned()] } else { Vec::new() };
        match point {
            MountPoint::Orchestrator => single(mounts.orchestrator.is_some(), "orchestrator"),
            MountPoint::Context => single(mounts.context.is_some(), "context"),
            MountPoint::Resolver => single(mounts.resolver.is_some(), "module-source-resolver"),
            MountPoint::Providers => mounts.providers.keys().cloned().collect(),
            MountPoint::Tools => mounts.tools.keys().cloned().collect(),
        }
    }

    /// The orchestrator, if one is mounted.
    pub fn orchestrator(&self) -> Option<Arc<dyn Orchestrator>> {
        read(&self.0.mounts).orchestrator.as_ref().map(|mounted| Arc::clone(&mounted.item))
    }

    /// The context, if one is mounted. What goes through it is recorded and cannot hang the session.
    pub fn context(&self) -> Option<Arc<dyn ContextManager>> {
        let mounted = read(&self.0.mounts).context.clone()?;
        Some(Arc::new(Recorded { coordinator: self.clone(), mounted }))
    }

    /// Puts something between the mounted context and everybody who uses it, such as a system prompt that is made anew
    /// for each request. Its owner stays; without a context nothing happens.
    pub fn wrap_context(&self, wrap: impl FnOnce(Arc<dyn ContextManager>) -> Arc<dyn ContextManager>) {
        // Wrapped outside the lock: the wrapper may come back to the coordinator.
        let Some(mounted) = read(&self.0.mounts).context.clone() else { return };
        let wrapped = wrap(Arc::clone(&mounted.item));
        drop(self.replace_context(mounted.owner, wrapped));
    }

    /// The context itself, for the kernel's own bookkeeping.
    pub(crate) fn bare_context(&self) -> Option<Arc<dyn ContextManager>> {
        read(&self.0.mounts).context.as_ref().map(|mounted| Arc::clone(&mounted.item))
    }

    /// A provider by name.
    pub fn provider(&self, name: &str) -> Option<Arc<dyn Provider>> {
        read(&self.0.mounts).providers.get(name).map(|mounted| Arc::clone(&mounted.item))
    }

    /// All providers with their names, in plan order.
    pub fn providers(&self) -> Vec<(String, Arc<dyn Provider>)> {
        let mounts = read(&self.0.mounts);
        mounts.providers.iter().map(|(name, mounted)| (name.clone(), Arc::clone(&mounted.item))).collect()
    }

    /// A tool by name.
    pub fn tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        read(&self.0.mounts).tools.get(name).map(|mounted| Arc::clone(&mounted.tool.item))
    }

    /// What every tool offers, in plan order.
    pub fn tool_specs(&self) -> Vec<Arc<ToolSpec>> {
        read(&self.0.mounts).tools.values().map(|mounted| Arc::clone(&mounted.spec)).collect()
    }

    /// Who decides where modules come from, if somebody does.
    pub fn resolver(&self) -> Option<Arc<dyn ModuleSourceResolver>> {
        read(&self.0.mounts).resolver.clone()
    }

    pub(super) fn mounted_tool(&self, name: &str) -> Option<MountedTool> {
        read(&self.0.mounts).tools.get(name).cloned()
    }

    pub(super) fn mounted_provider(&self, name: &str) -> Option<Mounted<dyn Provider>> {
        read(&self.0.mounts).providers.get(name).cloned()
    }

    /// What the session holds, for displays and diagnostics.
    #[doc(alias = "to_dict")]
    pub fn describe(&self) -> Value {
        json!({
            "tools": self.mounted(&MountPoint::Tools),
            "providers": self.mounted(&MountPoint::Providers),
            "has_orchestrator": self.orchestrator().is_some(),
            "has_context": self.bare_context().is_some(),
            "capabilities": self.capability_names(),
            "has_approval_provider": self.approval_system().is_some(),
            "has_display_service": self.display_system().is_some(),
        })
    }
}
