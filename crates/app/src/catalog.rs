//! What the built-in modules are: a list, and everything about one. It opens no session that anybody talks to and
//! writes nothing; how it looks on a screen is the front end's business.

use std::sync::Arc;

use amplifier_core::clock::Clock;
use amplifier_core::loader::{Loader, near_misses};
use amplifier_core::report::LoadOutcome;
use amplifier_core::session::{Session, SessionBuilder};
use amplifier_modules::MODULES;
use amplifier_modules::table::{ALIASES, BuiltIns};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};
use amplifier_protocol::tool::{Effects, ToolSpec};
use serde::{Deserialize, Serialize};

mod keys;

pub use keys::{Key, keys};

use crate::clock::SystemClock;

/// Everything about a module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModuleDetails {
    /// What it says about itself.
    #[serde(flatten)]
    pub info: ModuleInfo,
    /// Other names that plans know it by.
    pub aliases: Vec<String>,
    /// The other name it was asked for by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_as: Option<String>,
    /// The keys of its config, nested ones with their whole name.
    pub config: Vec<Key>,
    /// The tools it brings with its usual config.
    pub tools: Vec<ToolDetails>,
    /// Why the tools of a tool module cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_unknown: Option<String>,
}

/// A tool of a module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDetails {
    /// As the model sees it.
    #[serde(flatten)]
    pub spec: ToolSpec,
    /// What it touches.
    pub effects: Effects,
    /// The keys of its input.
    pub input: Vec<Key>,
}

/// There is no such module.
#[derive(Debug, thiserror::Error)]
#[error("there is no built-in module `{id}`{}", suggestion(near))]
pub struct UnknownModule {
    /// What was asked for.
    pub id: String,
    /// What is called nearly so.
    pub near: Vec<String>,
}

fn suggestion(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}

/// A built-in module by its id. The others do not tell about themselves, which takes longer than finding it.
pub fn module(id: &str) -> Option<ModuleInfo> {
    MODULES.iter().find(|module| module.id().as_str() == id).map(|module| module.info())
}

/// The built-in modules of a kind, by id.
pub fn of_kind(kind: ModuleKind) -> Vec<ModuleInfo> {
    let modules = MODULES.iter().filter(|module| module.kind() == kind);
    let mut modules: Vec<_> = modules.map(|module| module.info()).collect();
    modules.sort_by(|a, b| a.id.cmp(&b.id));
    modules
}

/// Every built-in module, by kind in the order they are mounted, then by id.
pub fn modules() -> Vec<ModuleInfo> {
    let mut modules: Vec<_> = MODULES.iter().map(|module| module.info()).collect();
    let place = |kind: ModuleKind| ModuleKind::PLAN_ORDER.iter().position(|other| *other == kind);
    modules.sort_by(|a, b| place(a.kind).cmp(&place(b.kind)).then_with(|| a.id.cmp(&b.id)));
    modules
}

/// Other names that plans know a module by.
pub fn aliases(id: &ModuleId) -> Vec<String> {
    let of_it = ALIASES.iter().filter(|(_, name)| *name == id.as_str());
    of_it.map(|(alias, _)| (*alias).to_owned()).collect()
}

/// Whether plans know a module by this other name.
pub(crate) fn is_alias(name: &str) -> bool {
    ALIASES.iter().any(|(alias, _)| *alias == name)
}

/// Everything about one module, by its id or another name of it. A tool module is mounted on a session that lives as long as the question.
pub async fn details(id: &str) -> Result<ModuleDetails, UnknownModule> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == id);
    let name = alias.map_or(id, |(_, name)| name);
    let Some(module) = MODULES.iter().find(|module| module.id().as_str() == name) else {
        return Err(unknown(id));
    };
    let info = module.info();
    let config = info.config_schema.as_ref().map(keys).unwrap_or_default();
    let (tools, tools_unknown) = match info.kind {
        ModuleKind::Tool => match tools(&info.id).await {
            Ok(tools) => (tools, None),
            Err(reason) => (Vec::new(), Some(reason)),
        },
        // Others have none, and mounting a hook or a provider may touch files or want a key.
        _ => (Vec::new(), None),
    };
    let (aliases, asked_as) = (aliases(&info.id), alias.map(|(alias, _)| (*alias).to_owned()));
    Ok(ModuleDetails { info, aliases, asked_as, config, tools, tools_unknown })
}

/// That there is no such module, and what is called nearly so.
pub(crate) fn unknown(id: &str) -> UnknownModule {
    let known: Vec<_> = MODULES.iter().map(|module| module.id().to_string()).collect();
    UnknownModule { id: id.to_owned(), near: near(id, &known) }
}

/// What is called nearly so, also when the part before the dash was left out.
fn near(id: &str, known: &[String]) -> Vec<String> {
    let near = near_misses(id, known);
    if !near.is_empty() {
        return near;
    }
    let rest = |name: &String| name.split_once('-').is_some_and(|(_, rest)| rest == id);
    known.iter().filter(|name| rest(name)).map(|name| format!("`{name}`")).collect()
}

async fn tools(id: &ModuleId) -> Result<Vec<ToolDetails>, String> {
    let (orchestrator, context) = (ModuleId::fixed("loop-basic"), ModuleId::fixed("context-simple"));
    let mut plan = MountPlan::new(orchestrator, context);
    plan.tools.push(ModuleSpec::new(id.clone()));
    let loader = Loader::new().finder(Arc::new(BuiltIns));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let session = SessionBuilder::new(plan, Arc::new(loader), clock).open().await;
    let session = session.map_err(|error| amplifier_core::error::chain(&error))?;
    let found = mounted_tools(&session, id);
    let failed = session.cleanup().await.failed.join("; ");
    if failed.is_empty() { found } else { Err(failed) }
}

fn mounted_tools(session: &Session, id: &ModuleId) -> Result<Vec<ToolDetails>, String> {
    let entry = session.report().modules.iter().find(|entry| entry.module == *id);
    match entry.map(|entry| &entry.outcome) {
        Some(LoadOutcome::Mounted { .. }) => {}
        Some(LoadOutcome::Skipped { reason }) => return Err(reason.clone()),
        Some(LoadOutcome::Failed { error }) => return Err(error.clone()),
        None => return Err("it was not mounted".to_owned()),
    }
    let at = session.coordinator();
    let details = |spec: Arc<ToolSpec>| {
        let effects = at.tool(&spec.name)?.effects();
        Some(ToolDetails { input: keys(&spec.parameters), effects, spec: ToolSpec::clone(&spec) })
    };
    Ok(at.tool_specs().into_iter().filter_map(details).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_module_can_be_told_about_and_every_tool_module_has_its_tools() {
        for info in modules() {
            let details = details(info.id.as_str()).await.unwrap();
            let has_tools = !details.tools.is_empty() || details.tools_unknown.is_some();
            assert_eq!(has_tools, info.kind == ModuleKind::Tool, "{}", info.id);
            assert_eq!(details.info, info);
        }
        let bash = details("tool-bash").await.unwrap();
        let names: Vec<_> = bash.tools.iter().map(|tool| tool.spec.name.as_str()).collect();
        assert_eq!(names, ["bash", "bash_output", "bash_kill"]);
        assert!(bash.tools.first().is_some_and(|tool| tool.effects.executes));
    }

    #[tokio::test]
    async fn a_wrong_id_leads_to_the_right_one() {
        let near = async |id: &str| details(id).await.unwrap_err().near;
        assert_eq!(near("tool-filesytem").await, ["`tool-filesystem`"]);
        assert_eq!(near("bash").await, ["`tool-bash`"]);
        assert!(near("xyz").await.is_empty());
        let said = details("tool-bsh").await.unwrap_err().to_string();
        assert!(
            said.starts_with("there is no built-in module `tool-bsh`; did you mean `tool-bash`"),
            "{said}"
        );
    }

    #[tokio::test]
    async fn another_name_leads_to_the_module_and_is_told() {
        for (alias, id) in ALIASES {
            let details = details(alias).await.unwrap();
            assert_eq!((details.info.id.as_str(), details.asked_as.as_deref()), (*id, Some(*alias)));
            assert!(details.aliases.iter().any(|name| name == alias), "{alias}");
        }
        assert_eq!(details("hooks-shell").await.unwrap().asked_as, None);
    }

    #[test]
    fn the_list_goes_by_kind_and_then_by_id() {
        let modules = modules();
        assert_eq!(modules.len(), MODULES.len());
        assert_eq!(modules.first().map(|info| info.id.as_str()), Some("loop-basic"));
        assert_eq!(modules.last().map(|info| info.kind), Some(ModuleKind::Hook));
    }
}
