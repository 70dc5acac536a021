//! Which module an entry with a `source` means: the one in this program when there is one, else what the source holds.
//!
//! Existing bundles name sources for the standard modules too; they start without fetching them. `native: false` on an
//! entry asks for the one from its source.

use std::collections::BTreeSet;
use std::sync::Arc;

use amplifier_core::contracts::{Module, ModuleSource, ModuleSourceResolver, Resolved, SourceError};
use amplifier_core::loader::ModuleFinder;
use amplifier_modules::MODULES;
use amplifier_modules::table::BuiltIns;
use amplifier_profile::Share;
use amplifier_profile::resolver::DaemonModuleSourceResolver;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::mount_plan::{MountPlan, PlanForm};
use amplifier_sources::resolver::SourceResolver;
use async_trait::async_trait;
use serde_json::Value;

use crate::paths::Home;

/// An entry of a plan that says where its module comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced {
    pub module: String,
    pub source: String,
    /// Whether the module in this program is used although a source is named.
    pub native: bool,
}

/// Every entry with a source: of the session, the lists, and the same of each agent.
pub fn sourced(plan: &Value) -> Vec<Sourced> {
    let mut found = Vec::new();
    let mut section = |owner: &Value| {
        let session =
            ["orchestrator", "context"].into_iter().filter_map(|slot| owner.get("session")?.get(slot));
        let lists =
            ["providers", "tools", "hooks"].into_iter().filter_map(|list| owner.get(list)?.as_array());
        for entry in session.chain(lists.flatten()) {
            found.extend(sourced_entry(entry));
        }
    };
    section(plan);
    plan.get("agents").and_then(Value::as_object).into_iter().flatten().for_each(|(_, agent)| section(agent));
    let mut seen = BTreeSet::new();
    found.retain(|entry: &Sourced| seen.insert((entry.module.clone(), entry.source.clone())));
    found
}

fn sourced_entry(entry: &Value) -> Option<Sourced> {
    let module = entry.get("module")?.as_str()?.to_owned();
    let source = entry.get("source")?.as_str()?.to_owned();
    let wanted = entry.get("native").and_then(Value::as_bool).unwrap_or(true);
    let native = wanted && MODULES.iter().any(|known| known.id().as_str() == module);
    Some(Sourced { module, source, native })
}

/// The resolver a plan needs; none when nothing in it names a source, so that the usual places are looked in.
///
/// What looks like a hint is one where the profile is there, else a path.
pub fn for_plan(
    plan: &MountPlan,
    sources: SourceResolver,
    home: &Home,
) -> Option<Arc<dyn ModuleSourceResolver>> {
    let sourced = sourced(&plan.write(PlanForm::Nested));
    if sourced.is_empty() {
        return None;
    }
    let from_source = sourced.into_iter().filter(|entry| !entry.native).map(|entry| entry.module).collect();
    let sources = Arc::new(sources.then(Arc::new(Native)));
    let sources = DaemonModuleSourceResolver::new(Share::new(home.share())).then(sources);
    Some(Arc::new(NativeFirst { from_source, sources }))
}

struct NativeFirst {
    /// Modules that come from their source whatever is in this program.
    from_source: BTreeSet<String>,
    sources: DaemonModuleSourceResolver,
}

#[async_trait]
impl ModuleSourceResolver for NativeFirst {
    async fn resolve(
        &self,
        id: &ModuleId,
        hint: Option<&Value>,
    ) -> Result<Arc<dyn ModuleSource>, SourceError> {
        if !self.from_source.contains(id.as_str())
            && let Ok(native) = Native.resolve(id, hint).await
        {
            return Ok(native);
        }
        self.sources.resolve(id, hint).await
    }
}

/// The modules of this program.
struct Native;

struct NativeModule(Arc<dyn Module>);

#[async_trait]
impl ModuleSourceResolver for Native {
    async fn resolve(
        &self,
        id: &ModuleId,
        _hint: Option<&Value>,
    ) -> Result<Arc<dyn ModuleSource>, SourceError> {
        match BuiltIns.find(id).await {
            Ok(Some(module)) => Ok(Arc::new(NativeModule(module))),
            _ => Err(SourceError::NotFound { id: id.clone(), tried: vec![BuiltIns.name().to_owned()] }),
        }
    }
}

#[async_trait]
impl ModuleSource for NativeModule {
    async fn resolve(&self) -> Result<Resolved, SourceError> {
        Ok(Resolved::Native(Arc::clone(&self.0)))
    }
}
