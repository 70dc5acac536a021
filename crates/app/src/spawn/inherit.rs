//! The plan of a sub-session: what its parent has, less what the rules take away, plus what the agent brings. Pure.
//!
//! Three voices may take away, and each of them counts: the plan's `spawn` section, what it says there about one agent
//! (`spawn.agents.<name>`), and the agent itself; then the caller. Names are module ids, or tool names where `tool-` is left
//! out. What an agent lists itself, it always has. Nothing of the parent's plan is shared: a child cannot change it.

use amplifier_protocol::mount_plan::{MountPlan, PlanError, PlanForm};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::SpawnRequest;

/// What is handed on of one kind: only these, or all but these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Inheritance {
    #[serde(alias = "inherit_tools", alias = "inherit_hooks", alias = "inherit_providers")]
    pub inherit: Option<Vec<String>>,
    #[serde(alias = "exclude_tools", alias = "exclude_hooks", alias = "exclude_providers")]
    pub exclude: Option<Vec<String>>,
}

/// The lists of a plan, the word rules use for each, and the prefix of its ids.
const KINDS: [(&str, &str, &str); 3] =
    [("tools", "tools", "tool-"), ("hooks", "hooks", "hooks-"), ("providers", "providers", "provider-")];

impl Inheritance {
    /// What a mapping says about one kind: `inherit_tools`, `exclude_tools`.
    fn read(rules: &Map<String, Value>, word: &str) -> Self {
        let names = |key: String| {
            let names = rules.get(&key)?.as_array()?;
            Some(names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        };
        Self { inherit: names(format!("inherit_{word}")), exclude: names(format!("exclude_{word}")) }
    }

    fn keeps(&self, module: &str, prefix: &str) -> bool {
        let means = |name: &String| name == module || module.strip_prefix(prefix) == Some(name.as_str());
        let wanted = self.inherit.as_ref().is_none_or(|names| names.iter().any(means));
        wanted && !self.exclude.as_ref().is_some_and(|names| names.iter().any(means))
    }
}

/// The plan of an agent's session.
pub fn child_plan(
    parent: &MountPlan,
    agent: &Map<String, Value>,
    request: &SpawnRequest,
) -> Result<MountPlan, PlanError> {
    let Value::Object(mut plan) = parent.write(PlanForm::Nested) else {
        return MountPlan::read(&Value::Null);
    };
    let nothing = Map::new();
    let spawn = parent.unknown.get("spawn").and_then(Value::as_object).unwrap_or(&nothing);
    let about = spawn.get("agents").and_then(|agents| agents.get(&request.agent_name));
    let about = about.and_then(Value::as_object).unwrap_or(&nothing);
    for (list, word, prefix) in KINDS {
        // A list in the `spawn` section is what agents get instead of the session's own.
        for rules in [spawn, about] {
            if let Some(entries) = rules.get(list).and_then(Value::as_array) {
                plan.insert(list.to_owned(), entries.iter().map(as_entry).collect());
            }
        }
        let caller = match word {
            "tools" => request.tool_inheritance.clone(),
            "hooks" => request.hook_inheritance.clone(),
            _ => Inheritance::default(),
        };
        let voices = [
            Inheritance::read(spawn, word),
            Inheritance::read(about, word),
            Inheritance::read(agent, word),
            caller,
        ];
        if let Some(Value::Array(entries)) = plan.get_mut(list) {
            entries.retain(|entry| {
                let module = entry.get("module").and_then(Value::as_str).unwrap_or_default();
                voices.iter().all(|voice| voice.keeps(module, prefix))
            });
        }
        if let Some(own) = agent.get(list).and_then(Value::as_array) {
            merge_modules(&mut plan, list, own);
        }
    }
    session(&mut plan, agent, request, &[spawn, about]);
    agents(&mut plan, agent);
    MountPlan::read(&Value::Object(plan))
}

/// The session section: the caller's word about the loop, then limits, then the agent's own section.
fn session(
    plan: &mut Map<String, Value>,
    agent: &Map<String, Value>,
    request: &SpawnRequest,
    rules: &[&Map<String, Value>],
) {
    let Some(Value::Object(session)) = plan.get_mut("session") else { return };
    if let (Some(config), Some(Value::Object(orchestrator))) =
        (&request.orchestrator_config, session.get_mut("orchestrator"))
    {
        let over = json!({ "config": config });
        deep_merge(orchestrator, over.as_object().unwrap_or(&Map::new()));
    }
    for limits in rules.iter().filter_map(|rules| rules.get("limits")?.as_object()) {
        let over = json!({ "limits": limits });
        deep_merge(session, over.as_object().unwrap_or(&Map::new()));
    }
    if let Some(own) = agent.get("session").and_then(Value::as_object) {
        let mut own = own.clone();
        for slot in ["orchestrator", "context"] {
            let Some(entry) = own.get_mut(slot) else { continue };
            *entry = as_entry(entry);
            // Another module has no use for the config of the one it replaces.
            let same = session.get(slot).and_then(|old| old.get("module")) == entry.get("module");
            if !same && entry.get("module").is_some() {
                session.remove(slot);
            }
        }
        deep_merge(session, &own);
    }
    let over = json!({ "metadata": request.session_metadata });
    deep_merge(session, over.as_object().unwrap_or(&Map::new()));
}

/// Which agents the agent may call itself.
fn agents(plan: &mut Map<String, Value>, agent: &Map<String, Value>) {
    let Some(Value::Object(known)) = plan.get_mut("agents") else { return };
    match agent.get("agents") {
        Some(Value::String(word)) if word == "none" => known.clear(),
        Some(Value::Array(names)) => known.retain(|name, _| names.iter().any(|wanted| wanted == name)),
        _ => {}
    }
}

/// A module that is written as its id alone.
fn as_entry(entry: &Value) -> Value {
    match entry {
        Value::String(module) => json!({ "module": module }),
        entry => entry.clone(),
    }
}

/// Adds modules to a list; one that is there, by its instance or its id, is merged.
fn merge_modules(plan: &mut Map<String, Value>, list: &str, own: &[Value]) {
    let entries = plan.entry(list).or_insert_with(|| json!([]));
    let Value::Array(entries) = entries else { return };
    for entry in own.iter().map(as_entry) {
        let Value::Object(mut entry) = entry else { continue };
        if list == "providers"
            && let Some(id) = entry.remove("id")
        {
            entry.entry("instance_id").or_insert(id);
        }
        let key =
            |entry: &Map<String, Value>| (entry.get("module").cloned(), entry.get("instance_id").cloned());
        let there =
            entries.iter_mut().filter_map(Value::as_object_mut).find(|there| key(there) == key(&entry));
        match there {
            Some(there) => deep_merge(there, &entry),
            None => entries.push(Value::Object(entry)),
        }
    }
}

/// Mappings are merged, everything else is replaced.
pub(super) fn deep_merge(base: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(Value::Object(base)), Value::Object(over)) => deep_merge(base, over),
            (Some(slot), value) => *slot = value.clone(),
            (None, value) => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
#[path = "inherit_tests.rs"]
mod tests;
