//! The shapes of bundle and agent files as types that give JSON Schemas, for editors. Files are read by `bundle/`, which
//! forgives more and says more; a test keeps the keys of both the same.

pub mod profile;

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;
use serde_json::Value;

pub use profile::profile_schema;

/// A bundle: parts of a session that can be composed with others. In a `.md` file this is the head between `---` lines and
/// the text below it is the instruction; a `.yaml` file is all of it.
#[derive(JsonSchema, Serialize)]
#[schemars(title = "Amplifier bundle")]
pub struct BundleFile {
    /// Who the bundle is.
    bundle: Option<BundleHead>,
    /// Bundles this one builds on, in order; this file comes last and wins.
    includes: Option<Vec<IncludeEntry>>,
    /// The two modules without which there is no session, and the session's own settings. Merged deeply.
    session: Option<SessionSection>,
    /// Model providers; the first is the default one. Merged by `id` or `module`.
    providers: Option<Vec<ModuleEntry>>,
    /// Tools the model may call. Merged by `id` or `module`.
    tools: Option<Vec<ModuleEntry>>,
    /// Hooks that watch and steer. Merged by `id` or `module`.
    hooks: Option<Vec<ModuleEntry>>,
    /// Agents the session may delegate to.
    agents: Option<AgentsSection>,
    /// Files whose text goes into the system prompt.
    context: Option<ContextSection>,
    /// What agents inherit from the session that calls them. Merged deeply.
    spawn: Option<SpawnSection>,
    /// Hints for whoever shows the session.
    ui: Option<BTreeMap<String, Value>>,
}

/// An agent: a bundle with `meta:` instead of `bundle:`; the text below the head is its system prompt.
#[derive(JsonSchema, Serialize)]
#[schemars(title = "Amplifier agent")]
pub struct AgentFile {
    /// Who the agent is.
    meta: Option<AgentHead>,
    /// Bundles the agent builds on when it is loaded by itself.
    includes: Option<Vec<IncludeEntry>>,
    /// What its session changes.
    session: Option<SessionSection>,
    /// Model providers of its own.
    providers: Option<Vec<ModuleEntry>>,
    /// Tools of its own.
    tools: Option<Vec<ModuleEntry>>,
    /// Hooks of its own.
    hooks: Option<Vec<ModuleEntry>>,
    /// Which agents it may call: `all`, `none`, or a list of names.
    agents: Option<AgentAccess>,
    /// Files for its prompt when it is loaded by itself.
    context: Option<ContextSection>,
    /// What its own agents inherit when it is loaded by itself.
    spawn: Option<SpawnSection>,
    /// The role its model plays, or several in order of preference.
    model_role: Option<OneOrMore>,
    /// Models it prefers, in order.
    provider_preferences: Option<Vec<ProviderPreference>>,
}

/// Who a bundle is.
#[derive(JsonSchema, Serialize)]
pub struct BundleHead {
    /// The name; also the namespace of its files.
    name: Option<String>,
    /// The version.
    version: Option<String>,
    /// What it is for.
    description: Option<String>,
    /// A label for people; never in a plan.
    display_name: Option<String>,
    /// The folder its namespace stands for, from the file's own folder.
    namespace_root: Option<String>,
}

/// Who an agent is. Further keys are handed on with it.
#[derive(JsonSchema, Serialize)]
pub struct AgentHead {
    /// The name.
    name: Option<String>,
    /// What the delegating model reads to choose it.
    description: Option<String>,
    /// The version.
    version: Option<String>,
    /// A label for people.
    display_name: Option<String>,
    /// As at the top level.
    model_role: Option<OneOrMore>,
}

/// A bundle to build on: an address, a path from this file, `namespace:path`, or a registered name.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum IncludeEntry {
    /// The reference alone.
    Reference(String),
    /// The reference under a key.
    Keyed {
        /// The reference.
        bundle: String,
    },
}

/// One module to mount. Further keys are handed on with it.
#[derive(JsonSchema, Serialize)]
pub struct ModuleEntry {
    /// Which module.
    module: Option<String>,
    /// Where it comes from; `./` and `../` start at this file.
    source: Option<Value>,
    /// What it is configured with.
    config: Option<BTreeMap<String, Value>>,
    /// A name for this instance, when one module is mounted twice; entries are merged by it.
    id: Option<String>,
    /// The name under which a provider is mounted.
    instance_id: Option<String>,
    /// `false` asks for the implementation at `source` even where a native one exists.
    native: Option<bool>,
}

/// The session section.
#[derive(JsonSchema, Serialize)]
pub struct SessionSection {
    /// The module that runs the loop.
    orchestrator: Option<ModuleSlot>,
    /// Where the orchestrator comes from, when it is named by its id alone.
    orchestrator_source: Option<String>,
    /// The module that keeps the conversation.
    context: Option<ModuleSlot>,
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
    /// Whether modules speak of their doings.
    debug: Option<bool>,
    /// Spending limits.
    limits: Option<BTreeMap<String, Value>>,
    /// Deadlines of calls.
    deadlines: Option<BTreeMap<String, Value>>,
    /// Settings of the application.
    settings: Option<BTreeMap<String, Value>>,
}

/// A module by its id, or with its source and config.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum ModuleSlot {
    /// The id.
    Id(String),
    /// The whole entry.
    Entry(ModuleEntry),
}

/// Agents by name, and names whose files are in `agents/`.
#[derive(JsonSchema, Serialize)]
pub struct AgentsSection {
    /// Names of agents: `name` for `agents/name.md` beside this file, `namespace:name` for one of another bundle.
    include: Option<Vec<String>>,
    /// Agents defined here.
    #[serde(flatten)]
    defined: BTreeMap<String, Value>,
}

/// Which agents a session may call.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum AgentAccess {
    /// All of them, or none.
    Word(AccessWord),
    /// These.
    Names(Vec<String>),
}

/// All or none.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessWord {
    /// Every agent of the parent.
    All,
    /// No agent.
    None,
}

/// Files for the system prompt.
#[derive(JsonSchema, Serialize)]
pub struct ContextSection {
    /// Paths from this file, or `namespace:path`.
    include: Option<Vec<String>>,
    /// Files with a name of their own.
    #[serde(flatten)]
    named: BTreeMap<String, String>,
}

/// What agents inherit.
#[derive(JsonSchema, Serialize)]
pub struct SpawnSection {
    /// The tools of every agent, instead of those of the session.
    tools: Option<Value>,
    /// Tools that agents do not inherit, by module id.
    exclude_tools: Option<Vec<String>>,
    /// The only tools that agents inherit, by module id.
    inherit_tools: Option<Vec<String>>,
    /// The hooks of every agent, instead of those of the session.
    hooks: Option<Value>,
    /// Hooks that agents do not inherit, by module id.
    exclude_hooks: Option<Vec<String>>,
    /// The only hooks that agents inherit, by module id.
    inherit_hooks: Option<Vec<String>>,
}

/// A model an agent would like.
#[derive(JsonSchema, Serialize)]
pub struct ProviderPreference {
    /// The provider: a module id with or without `provider-`, or an instance.
    provider: String,
    /// The model; `*` and `?` match.
    model: String,
    /// Further settings of the provider.
    config: Option<BTreeMap<String, Value>>,
}

/// One word, or several in order of preference.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum OneOrMore {
    /// One.
    One(String),
    /// Several.
    More(Vec<String>),
}

/// The schema of bundle files.
pub fn bundle_schema() -> Schema {
    schema_for!(BundleFile)
}

/// The schema of agent files.
pub fn agent_schema() -> Schema {
    schema_for!(AgentFile)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::bundle::{BUNDLE_KEYS, MODULE_KEYS, SESSION_KEYS, SPAWN_KEYS};

    fn keys(schema: &Value) -> BTreeSet<String> {
        schema["properties"].as_object().unwrap().keys().cloned().collect()
    }

    fn set(words: &[&str]) -> BTreeSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn schemas_have_the_keys_that_are_read() {
        let (bundle, agent) = (bundle_schema().to_value(), agent_schema().to_value());
        let both: BTreeSet<_> = keys(&bundle).union(&keys(&agent)).cloned().collect();
        // Profiles and modes have schemas of their own.
        let read: BTreeSet<_> = set(&BUNDLE_KEYS).difference(&set(&["profile", "mode"])).cloned().collect();
        assert_eq!(both, read);
        assert_eq!(keys(&bundle["$defs"]["ModuleEntry"]), set(&MODULE_KEYS));
        assert_eq!(keys(&bundle["$defs"]["SessionSection"]), set(&SESSION_KEYS));
        assert_eq!(keys(&bundle["$defs"]["SpawnSection"]), set(&SPAWN_KEYS));
        let head = crate::bundle::HEADS.iter().find(|head| head.0 == "bundle").unwrap().2;
        assert_eq!(keys(&bundle["$defs"]["BundleHead"]), set(head));
        let head = crate::bundle::HEADS.iter().find(|head| head.0 == "meta").unwrap().2;
        assert_eq!(keys(&agent["$defs"]["AgentHead"]), set(head));
    }
}
