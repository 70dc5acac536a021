//! The provider a person asks for by name, put before those of a plan.

use amplifier_protocol::ids::NameError;
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};
use serde_json::{Value, json};

use crate::spawn::preferences::find;

/// What a provider counts as that tells no priority; the lowest is asked first.
const USUAL_PRIORITY: i64 = 100;

/// Makes a provider the first of a plan and the one that is asked: the entry that has the name, else a new one of that module.
pub fn prefer(plan: &mut MountPlan, name: &str) -> Result<(), NameError> {
    let mut entry = match find(&plan.providers, name) {
        Some(at) => plan.providers.remove(at),
        None if name.starts_with("provider-") => ModuleSpec::new(name.parse()?),
        None => ModuleSpec::new(format!("provider-{name}").parse()?),
    };
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
