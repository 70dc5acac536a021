//! The provider a person asks for by name, put before those of a plan.

use amplifier_protocol::ids::NameError;
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};

use crate::spawn::preferences::find;

/// Makes a provider the first of a plan: the entry that has the name, else a new one of that module.
pub fn prefer(plan: &mut MountPlan, name: &str) -> Result<(), NameError> {
    let entry = match find(&plan.providers, name) {
        Some(at) => plan.providers.remove(at),
        None if name.starts_with("provider-") => ModuleSpec::new(name.parse()?),
        None => ModuleSpec::new(format!("provider-{name}").parse()?),
    };
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
}
