//! The provider that a session asks, and the one a person asks for by name, put before those of a plan.

use std::sync::Arc;

use amplifier_core::contracts::Provider;
use amplifier_core::coordinator::Coordinator;
use amplifier_core::loader::near_misses;
use amplifier_core::report::{LoadEntry, LoadOutcome};
use amplifier_core::session::Session;
use amplifier_modules::asked_provider;
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};
use serde_json::{Value, json};

use crate::catalog;
use crate::connect;
use crate::spawn::preferences::find;

/// What a provider counts as that tells no priority; the lowest is asked first.
const USUAL_PRIORITY: i64 = 100;

/// There is no such provider: not in the plan, not in the settings, not in this program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no provider `{name}`{}", suggestion(near))]
pub struct UnknownProvider {
    /// What was asked for.
    pub name: String,
    /// What is called nearly so.
    pub near: Vec<String>,
}

impl UnknownProvider {
    /// What the person can do about it.
    pub fn hint(&self) -> &'static str {
        "`amplifier provider list` shows all of them, and which can be used here"
    }
}

fn suggestion(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}

/// The provider that a turn of this session asks, with the name it is mounted under: chosen as the loops choose it.
pub fn asked(coordinator: &Coordinator) -> Option<(String, Arc<dyn Provider>)> {
    let config = &coordinator.plan().session.orchestrator.config;
    asked_provider(coordinator, config.get("default_provider").and_then(Value::as_str))
}

/// What became of the providers of a plan, in its order.
pub(crate) fn loaded(session: &Session) -> impl Iterator<Item = &LoadEntry> {
    session.report().modules.iter().filter(|entry| entry.kind == ModuleKind::Provider)
}

/// Which entry of the plan brought the provider that is mounted under this name.
pub(crate) fn place_of(session: &Session, name: &str) -> Option<usize> {
    let brought = |entry: &LoadEntry| match &entry.outcome {
        LoadOutcome::Mounted { names } => names.iter().any(|mounted| mounted == name),
        LoadOutcome::Skipped { .. } | LoadOutcome::Failed { .. } => false,
    };
    loaded(session).position(brought)
}

/// Makes a provider the first of a plan and the one that is asked: the entry that has the name, else a new one of the
/// built-in module.
pub fn prefer(plan: &mut MountPlan, name: &str) -> Result<(), UnknownProvider> {
    prefer_among(plan, name, &[])
}

/// The same; entries that stand elsewhere, such as in the settings, come before the bare module.
pub fn prefer_among(
    plan: &mut MountPlan,
    name: &str,
    elsewhere: &[ModuleSpec],
) -> Result<(), UnknownProvider> {
    let entry = match (find(&plan.providers, name), find(elsewhere, name)) {
        (Some(at), _) => Some(plan.providers.remove(at)),
        (None, Some(at)) => elsewhere.get(at).cloned(),
        (None, None) => connect::provider(name).ok().map(|info| ModuleSpec::new(info.id)),
    };
    let Some(mut entry) = entry else { return Err(unknown(name, plan, elsewhere)) };
    let priority = |entry: &ModuleSpec| entry.config.get("priority").and_then(Value::as_i64);
    let before = plan.providers.iter().map(|other| priority(other).unwrap_or(USUAL_PRIORITY)).min();
    if let Some(before) = before.filter(|before| priority(&entry).unwrap_or(USUAL_PRIORITY) > *before) {
        entry.config.insert("priority".to_owned(), json!(before));
    }
    // A loop that names its provider would not look at the order.
    if let Some(named) = plan.session.orchestrator.config.get_mut("default_provider") {
        *named = json!(entry.instance_id.as_deref().unwrap_or(entry.module.as_str()));
    }
    plan.providers.insert(0, entry);
    Ok(())
}

fn unknown(name: &str, plan: &MountPlan, elsewhere: &[ModuleSpec]) -> UnknownProvider {
    let built_in = catalog::of_kind(ModuleKind::Provider).into_iter();
    let built_in = built_in.map(|info| connect::short(&info.id).to_owned());
    let named =
        plan.providers.iter().chain(elsewhere).map(|entry| {
            entry.instance_id.clone().unwrap_or_else(|| connect::short(&entry.module).to_owned())
        });
    let mut known: Vec<String> = built_in.chain(named).collect();
    known.sort_unstable();
    known.dedup();
    UnknownProvider { name: name.to_owned(), near: near_misses(connect::bare(name), &known) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_one_asked_for_is_the_first_with_its_own_config() {
        let mut plan = MountPlan::read(&json!({
            "session": {"orchestrator": "loop-basic", "context": "context-simple"},
            "providers": [{"module": "provider-a"}, {"module": "provider-b", "config": {"x": 1}}],
        }))
        .unwrap();
        prefer(&mut plan, "b").unwrap();
        prefer(&mut plan, "mock").unwrap();
        let ids: Vec<_> = plan.providers.iter().map(|entry| entry.module.as_str()).collect();
        assert_eq!(ids, ["provider-mock", "provider-b", "provider-a"]);
        assert_eq!(plan.providers.get(1).and_then(|entry| entry.config.get("x")), Some(&json!(1)));
        assert!(prefer(&mut plan, "no good/name").is_err());
        let error = prefer(&mut plan, "antropic").unwrap_err();
        assert_eq!(error.to_string(), "there is no provider `antropic`; did you mean `anthropic`?");
        let mut elsewhere = ModuleSpec::new("provider-mock".parse().unwrap());
        elsewhere.instance_id = Some("mine".to_owned());
        prefer_among(&mut plan, "mine", std::slice::from_ref(&elsewhere)).unwrap();
        assert_eq!(plan.providers.first(), Some(&elsewhere));
    }

    #[test]
    fn the_one_asked_for_is_asked_whatever_priorities_and_the_loop_say() {
        let mut plan = MountPlan::read(&json!({
            "session": {
                "orchestrator": {"module": "loop-basic", "config": {"default_provider": "a"}},
                "context": "context-simple"
            },
            "providers": [{"module": "provider-a", "config": {"priority": 5}}, {"module": "provider-b"}],
        }))
        .unwrap();
        prefer(&mut plan, "b").unwrap();
        let first = plan.providers.first().unwrap();
        assert_eq!((first.module.as_str(), first.config.get("priority")), ("provider-b", Some(&json!(5))));
        assert_eq!(plan.session.orchestrator.config.get("default_provider"), Some(&json!("provider-b")));
    }
}
