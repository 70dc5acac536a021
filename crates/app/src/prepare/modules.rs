//! Whether the modules that a plan names are there, as far as that can be told without fetching or running anything.
//!
//! What comes from a source is not looked at: to fetch it is for whoever runs the plan. A session finds the same modules
//! (`resolver.rs`) and says the same words about those that it does not find.

use amplifier_bundle::plan::PlanDraft;
use amplifier_core::loader::{LoadError, ModuleFinder, near_misses};
use amplifier_core::validate::{Check, Severity};
use amplifier_modules::table::BuiltIns;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::locate::join;
use serde_json::Value;

use crate::{catalog, failure};

/// How the names of checks end that looked at nothing.
pub(super) const NOT_LOOKED_AT: &str = "_module_not_looked_at";

/// A failed check for each module that nobody has, and one to know of for each that was not looked at.
pub(super) fn checks(plan: &Value) -> Vec<Check> {
    let mut checks = Vec::new();
    look_at(plan, "", "", &mut checks);
    for (name, agent) in plan.get("agents").and_then(Value::as_object).into_iter().flatten() {
        look_at(agent, &format!("agents.{name}."), &join("/agents", name), &mut checks);
    }
    checks
}

/// The modules of a draft that nobody has, each with its place.
pub(crate) fn unknown(draft: &PlanDraft) -> Vec<String> {
    let failed = checks(&draft.to_json()).into_iter().filter(|check| !check.passed);
    let told = failed.map(|check| match draft.place_of(&check.pointer) {
        Some(place) => format!("{place}: {}", check.message),
        None => check.message,
    });
    told.collect()
}

/// The entries of a plan, or of what an agent has instead of it.
fn look_at(owner: &Value, path: &str, pointer: &str, checks: &mut Vec<Check>) {
    let session = owner.get("session");
    for slot in ["orchestrator", "context"] {
        let Some(entry) = session.and_then(|session| session.get(slot)) else { continue };
        let beside = session.and_then(|session| session.get(format!("{slot}_source")));
        let named = format!("{path}session.{slot}");
        checks.extend(look(entry, beside, &named, &format!("{pointer}/session/{slot}")));
    }
    for list in ["providers", "tools", "hooks"] {
        let entries = owner.get(list).and_then(Value::as_array).into_iter().flatten();
        for (index, entry) in entries.enumerate() {
            let named = format!("{path}{list}[{index}]");
            checks.extend(look(entry, None, &named, &format!("{pointer}/{list}/{index}")));
        }
    }
}

/// One entry; what is no entry at all is told by the checks of the structure.
fn look(entry: &Value, beside: Option<&Value>, path: &str, pointer: &str) -> Option<Check> {
    let (module, pointer) = match entry {
        Value::String(module) => (module.as_str(), pointer.to_owned()),
        entry => (entry.get("module")?.as_str()?, join(pointer, "module")),
    };
    let id: ModuleId = module.parse().ok()?;
    let source = entry.get("source").or(beside).filter(|source| !source.is_null());
    let prefers_native = entry.get("native").and_then(Value::as_bool).unwrap_or(true);
    let is_built_in = catalog::module(module).is_some();
    match source {
        Some(_) if prefers_native && is_built_in => None,
        Some(source) => {
            let source =
                source.as_str().map_or_else(|| "its source".to_owned(), |source| format!("`{source}`"));
            let message = format!("module `{id}` comes from {source}, which was not looked at");
            let (name, severity) = (format!("{path}{NOT_LOOKED_AT}"), Severity::Info);
            Some(Check { name, passed: true, message, severity, pointer })
        }
        None if is_built_in || catalog::is_alias(module) => None,
        None => {
            let (tried, near) = (vec![BuiltIns.name().to_owned()], near_misses(module, &BuiltIns.known()));
            let missing = LoadError::NotFound { id, tried, near };
            let message = format!("{missing} ({})", failure::OTHER_MODULES);
            let (name, severity) = (format!("{path}_module_found"), Severity::Error);
            Some(Check { name, passed: false, message, severity, pointer })
        }
    }
}
