//! The kinds of modules and what a module says about itself.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModuleInfo {
    /// Its id.
    pub id: ModuleId,
    /// Its name for people.
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
