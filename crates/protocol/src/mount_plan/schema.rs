//! The shape of a mount plan as types that give a JSON Schema, for editors: both dialects, mixed or pure. Plans are read by
//! `read.rs` and judged by the kernel's validator, which say more; a test keeps the keys the same.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;
use serde_json::Value;

/// A mount plan: what a session is made of. Modules of the session are objects, or ids with their source and config
/// beside them.
#[derive(JsonSchema, Serialize)]
#[schemars(title = "Amplifier mount plan")]
pub struct PlanFile {
    /// The two modules without which there is no session, and the session's own settings.
    session: SessionPart,
    /// The config of an orchestrator that `session` names by its id alone.
    orchestrator: Option<Beside>,
    /// The config of a context that `session` names by its id alone.
    context: Option<Beside>,
    /// Model providers; the first is the default one.
    providers: Option<Vec<ProviderEntry>>,
    /// Tools the model may call.
    tools: Option<Vec<PlanEntry>>,
    /// Hooks that watch and steer.
    hooks: Option<Vec<PlanEntry>>,
    /// Agents by name.
    agents: Option<BTreeMap<String, Value>>,
    /// What agents inherit from the session that calls them.
    spawn: Option<BTreeMap<String, Value>>,
}

/// The session section.
#[derive(JsonSchema, Serialize)]
pub struct SessionPart {
    /// The module that runs the loop.
    orchestrator: Slot,
    /// Where the orchestrator comes from, when it is named by its id alone.
    orchestrator_source: Option<String>,
    /// The module that keeps the conversation.
    context: Slot,
    /// Where the context comes from, when it is named by its id alone.
    context_source: Option<String>,
    /// How many tokens hooks may inject in one turn; null lifts the bound.
    injection_budget_per_turn: Option<u64>,
    /// How many bytes one injection may hold; null lifts the bound.
    injection_size_limit: Option<u64>,
    /// Handed through to the events of the session.
    metadata: Option<BTreeMap<String, Value>>,
    /// Whether session events carry the redacted plan.
    raw: Option<bool>,
    /// Spending limits.
    limits: Option<BTreeMap<String, Value>>,
    /// Deadlines of calls.
    deadlines: Option<BTreeMap<String, Value>>,
}

/// A module by its id, or with its source and config.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum Slot {
    /// The id.
    Id(String),
    /// The whole entry.
    Entry(PlanEntry),
}

/// One module to mount. Further keys are kept.
#[derive(JsonSchema, Serialize)]
pub struct PlanEntry {
    /// Which module.
    module: String,
    /// Where it comes from: a string, or an object that a resolver understands.
    source: Option<Value>,
    /// What it is configured with.
    config: Option<BTreeMap<String, Value>>,
    /// The name under which this instance is mounted.
    instance_id: Option<String>,
    /// `false` asks for the implementation at `source` even where a native one exists.
    native: Option<bool>,
}

/// One provider to mount. Further keys are kept.
#[derive(JsonSchema, Serialize)]
pub struct ProviderEntry {
    /// The entry.
    #[serde(flatten)]
    entry: PlanEntry,
    /// Another spelling of `instance_id`.
    id: Option<String>,
}

/// What stands beside a module that is named by its id alone.
#[derive(JsonSchema, Serialize)]
pub struct Beside {
    /// What it is configured with.
    config: Option<BTreeMap<String, Value>>,
}

/// The schema of mount plans.
pub fn plan_schema() -> Schema {
    schema_for!(PlanFile)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::mount_plan::{MODULE_KEYS, PLAN_KEYS, SESSION_KEYS};

    #[test]
    fn the_schema_has_the_keys_that_are_read() {
        let schema = plan_schema().to_value();
        let keys = |schema: &Value| -> BTreeSet<String> {
            schema["properties"].as_object().unwrap().keys().cloned().collect()
        };
        let set =
            |words: &[&str]| -> BTreeSet<String> { words.iter().map(|word| (*word).to_owned()).collect() };
        assert_eq!(keys(&schema), set(&PLAN_KEYS));
        assert_eq!(keys(&schema["$defs"]["SessionPart"]), set(&SESSION_KEYS));
        assert_eq!(keys(&schema["$defs"]["PlanEntry"]), set(&MODULE_KEYS));
    }
}
