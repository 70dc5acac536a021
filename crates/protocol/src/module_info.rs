//! The kinds of modules and what a module says about itself.

use std::fmt;

use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{EVENTS, Event};
use crate::ids::ModuleId;

/// What a module is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModuleKind {
    /// Runs the turn.
    Orchestrator,
    /// Keeps the conversation.
    Context,
    /// Talks to a model.
    Provider,
    /// Does something for the model.
    Tool,
    /// Watches and controls.
    Hook,
    /// Finds modules.
    Resolver,
}

impl ModuleKind {
    /// The five kinds of the mount plan, in mounting order.
    pub const PLAN_ORDER: [Self; 5] =
        [Self::Orchestrator, Self::Context, Self::Provider, Self::Tool, Self::Hook];

    /// Where modules of this kind are mounted.
    pub fn mount_point(self) -> &'static str {
        match self {
            Self::Orchestrator => "orchestrator",
            Self::Context => "context",
            Self::Provider => "providers",
            Self::Tool => "tools",
            Self::Hook => "hooks",
            Self::Resolver => "module-source-resolver",
        }
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Orchestrator => "orchestrator",
            Self::Context => "context",
            Self::Provider => "provider",
            Self::Tool => "tool",
            Self::Hook => "hook",
            Self::Resolver => "resolver",
        }
    }

    /// The kind an id tells by its first part (`tool-…`), else by a word inside it; `None` when it tells nothing.
    pub fn of_id(id: &ModuleId) -> Option<Self> {
        let id = id.as_str().to_lowercase();
        let leading = match id.split('-').next().unwrap_or_default() {
            "orchestrator" | "loop" => Some(Self::Orchestrator),
            "provider" => Some(Self::Provider),
            "tool" => Some(Self::Tool),
            "hooks" | "hook" => Some(Self::Hook),
            "context" => Some(Self::Context),
            _ => None,
        };
        const WORDS: [(&str, ModuleKind); 6] = [
            ("orchestrat", ModuleKind::Orchestrator),
            ("loop", ModuleKind::Orchestrator),
            ("provider", ModuleKind::Provider),
            ("tool", ModuleKind::Tool),
            ("hook", ModuleKind::Hook),
            ("context", ModuleKind::Context),
        ];
        leading.or_else(|| WORDS.iter().find(|(word, _)| id.contains(word)).map(|(_, kind)| *kind))
    }
}

impl fmt::Display for ModuleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a module says about itself.
///
/// ```
/// # use amplifier_protocol::event::ArtifactRead;
/// # use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
/// /// What a plan may configure.
/// #[derive(serde::Deserialize, schemars::JsonSchema, Default)]
/// #[serde(default)]
/// struct Config {
///     /// The most lines to read.
///     max_lines: usize,
/// }
/// let id = "tool-peek".parse()?;
/// let info = ModuleInfo::new(id, ModuleKind::Tool, "0.1.0", "Reads the first lines of a file.")
///     .config::<Config>()
///     .emits::<ArtifactRead>()
///     .uses("session.working_dir");
/// assert_eq!(info.mount_point, "tools");
/// # Ok::<(), amplifier_protocol::ids::NameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModuleInfo {
    /// Its id.
    pub id: ModuleId,
    /// Its name for people; the id where it has no other.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it is for.
    #[serde(rename = "type")]
    pub kind: ModuleKind,
    /// Where it is mounted.
    pub mount_point: String,
    /// One line about it.
    pub description: String,
    /// JSON Schema of its config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Value>,
    /// The events it emits itself, beside what the kernel says about every module.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventInfo>,
    /// Capabilities it uses where another module or the application offers them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<String>,
    /// Capabilities it offers to others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gives: Vec<String>,
}

/// An event, as the module that emits it tells of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventInfo {
    /// Its name on the wire.
    pub name: String,
    /// What it means.
    pub description: String,
    /// JSON Schema of its data, for an event that is not one of the agreed ones: those are described in one place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

impl ModuleInfo {
    /// The least a module must tell: who it is, what it is for, and one line about it.
    pub fn new(
        id: ModuleId,
        kind: ModuleKind,
        version: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        Self {
            name: id.to_string(),
            id,
            version: version.into(),
            kind,
            mount_point: kind.mount_point().to_owned(),
            description: description.into(),
            config_schema: None,
            events: Vec::new(),
            uses: Vec::new(),
            gives: Vec::new(),
        }
    }

    /// What may be configured, from the type that the config is read into. Its doc comments become the descriptions. The
    /// defaults come from its `Default` when it is `#[serde(default)]` and the type of the field can be serialized.
    #[must_use]
    pub fn config<C: JsonSchema>(mut self) -> Self {
        self.config_schema = Some(bare(schema_for!(C)));
        self
    }

    /// It emits this event too.
    #[must_use]
    pub fn emits<E: Event>(mut self) -> Self {
        let schema = bare(schema_for!(E));
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        let agreed = EVENTS.iter().any(|event| event.name == E::NAME);
        let schema = (!agreed).then_some(schema);
        self.events.push(EventInfo { name: E::NAME.to_owned(), description, schema });
        self
    }

    /// It uses this capability too.
    #[must_use]
    pub fn uses(mut self, capability: impl Into<String>) -> Self {
        self.uses.push(capability.into());
        self
    }

    /// It offers this capability too.
    #[must_use]
    pub fn gives(mut self, capability: impl Into<String>) -> Self {
        self.gives.push(capability.into());
        self
    }
}

/// A schema without what only names it: the name of a type means nothing to its reader.
fn bare(mut schema: Schema) -> Value {
    schema.remove("$schema");
    schema.remove("title");
    schema.to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_part_of_an_id_beats_a_word_inside_it() {
        let kind = |id: &str| ModuleKind::of_id(&id.parse().unwrap());
        assert_eq!(kind("hooks-loop-guard"), Some(ModuleKind::Hook));
        assert_eq!(kind("context-provider-x"), Some(ModuleKind::Context));
        assert_eq!(kind("my-tool"), Some(ModuleKind::Tool));
        assert_eq!(kind("my-custom-thing"), None);
    }
}
