//! The mount plan: what a session is made of, in one typed form.
//!
//! Two dialects are read and written, mixed or pure: the string form (`session.orchestrator: "loop-basic"` with
//! `orchestrator_source` and top-level `orchestrator.config`) and the nested form (`{module, source, config}`).
//! This file does not judge a plan beyond what it must know to type it: the numbered checks are the kernel's
//! validator. It expands no `${VAR}`: references stay as they were written.
//!
//! Reading lives in `read.rs`, writing in `write.rs`; a plan that was read and written again means the same.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::ids::{ModuleId, NameError};

mod read;
pub mod schema;
mod write;

pub use schema::plan_schema;

#[cfg(test)]
#[path = "mount_plan_tests.rs"]
mod tests;

/// Tokens that hooks may inject in one turn when the plan does not say.
pub const DEFAULT_INJECTION_BUDGET_PER_TURN: u64 = 10_000;

/// Bytes that one injection may hold when the plan does not say.
pub const DEFAULT_INJECTION_SIZE_LIMIT: u64 = 10_240;

/// Top-level keys of a mount plan, both dialects. `spawn` is kept for the application, which reads it when a session is
/// asked for a child.
pub const PLAN_KEYS: [&str; 8] =
    ["session", "orchestrator", "context", "providers", "tools", "hooks", "agents", "spawn"];

/// Keys of the `session` section, both dialects.
pub const SESSION_KEYS: [&str; 10] = [
    "orchestrator",
    "orchestrator_source",
    "context",
    "context_source",
    "injection_budget_per_turn",
    "injection_size_limit",
    "metadata",
    "raw",
    "limits",
    "deadlines",
];

/// Keys of a module entry.
pub const MODULE_KEYS: [&str; 5] = ["module", "source", "config", "instance_id", "native"];

/// Everything a session is assembled from, in the order in which it is mounted.
#[derive(Debug, Clone, PartialEq)]
pub struct MountPlan {
    /// The two modules without which there is no session, and the session's own settings.
    pub session: SessionSection,
    /// Model providers; the first is the default one.
    pub providers: Vec<ModuleSpec>,
    /// Tools the model may call.
    pub tools: Vec<ModuleSpec>,
    /// Hooks that watch and steer.
    pub hooks: Vec<ModuleSpec>,
    /// Agents by name: data of the application layer, which the kernel hands on without looking.
    pub agents: Map<String, Value>,
    /// Top-level keys we do not know, and string-form sections that a nested slot shadows.
    ///
    /// Never holds `session`, `providers`, `tools`, `hooks` or `agents`.
    pub unknown: Map<String, Value>,
}

/// The `session` section of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSection {
    /// The module that runs the loop.
    pub orchestrator: ModuleSpec,
    /// The module that keeps the conversation.
    pub context: ModuleSpec,
    /// How many tokens hooks may inject in one turn.
    pub injection_budget_per_turn: Budget,
    /// How many bytes one injection may hold.
    pub injection_size_limit: Budget,
    /// Handed through to the events of the session.
    pub metadata: Map<String, Value>,
    /// Whether session events carry the (redacted) plan.
    pub raw: bool,
    /// Spending limits of the session, as written.
    pub limits: Map<String, Value>,
    /// Deadlines of calls, as written.
    pub deadlines: Map<String, Value>,
    /// Keys of the section we do not know, and `*_source` keys that a nested slot shadows.
    pub unknown: Map<String, Value>,
}

/// One module to mount.
#[derive(Debug, Clone, PartialEq)]
pub struct ModuleSpec {
    /// Which module.
    pub module: ModuleId,
    /// Where it comes from: an opaque hint for the resolver, a string or an object.
    pub source: Option<Value>,
    /// What the module is configured with; the module alone knows its shape.
    pub config: Map<String, Value>,
    /// The name this instance is mounted under, for several providers of one module.
    pub instance_id: Option<String>,
    /// `false` asks for the implementation at `source` even where a native one exists.
    pub native: Option<bool>,
    /// Keys of the entry we do not know.
    pub unknown: Map<String, Value>,
}

/// A bound that may be left to the default or lifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Budget {
    /// The plan says nothing.
    #[default]
    Default,
    /// The plan says `null`: no bound.
    Unlimited,
    /// The plan names the bound.
    Limited(u64),
}

impl Budget {
    /// The bound that applies, given the default; `None` means unbounded.
    pub fn resolve(self, default: u64) -> Option<u64> {
        match self {
            Self::Default => Some(default),
            Self::Unlimited => None,
            Self::Limited(bound) => Some(bound),
        }
    }
}

/// In which dialect a plan is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlanForm {
    /// Modules of the session are objects: `{module, source, config}`.
    #[default]
    Nested,
    /// Modules of the session are strings, their sources and configs stand in keys of their own.
    ///
    /// A slot that the string form cannot carry without loss is written nested; readers take mixtures.
    Strings,
}

/// Why a JSON value is not a mount plan: the place and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("mount plan is not readable at {}", place(.pointer))]
pub struct PlanError {
    /// JSON pointer to the place, empty for the whole plan.
    pub pointer: String,
    /// What is wrong there.
    #[source]
    pub cause: PlanFault,
}

/// What is wrong at one place of a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanFault {
    /// A value that must be there is absent, null or empty.
    #[error("{what} is missing")]
    Missing {
        /// What should be there.
        what: &'static str,
    },
    /// The value has a type that does not belong there.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// What belongs there.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// The text is no module id.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl MountPlan {
    /// The smallest plan: a loop and a memory, nothing else.
    pub fn new(orchestrator: ModuleId, context: ModuleId) -> Self {
        Self {
            session: SessionSection::new(orchestrator, context),
            providers: Vec::new(),
            tools: Vec::new(),
            hooks: Vec::new(),
            agents: Map::new(),
            unknown: Map::new(),
        }
    }
}

impl SessionSection {
    /// A section with its two modules and every setting at its default.
    pub fn new(orchestrator: ModuleId, context: ModuleId) -> Self {
        Self {
            orchestrator: ModuleSpec::new(orchestrator),
            context: ModuleSpec::new(context),
            injection_budget_per_turn: Budget::Default,
            injection_size_limit: Budget::Default,
            metadata: Map::new(),
            raw: false,
            limits: Map::new(),
            deadlines: Map::new(),
            unknown: Map::new(),
        }
    }
}

impl ModuleSpec {
    /// An entry that names a module and nothing else.
    pub fn new(module: ModuleId) -> Self {
        Self {
            module,
            source: None,
            config: Map::new(),
            instance_id: None,
            native: None,
            unknown: Map::new(),
        }
    }
}

/// The word for the type of a JSON value, as used in messages.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

impl<'de> Deserialize<'de> for MountPlan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        // A serde error is one line of text, so the cause is written into it.
        Self::read(&value).map_err(|error| serde::de::Error::custom(format!("{error}: {}", error.cause)))
    }
}

impl Serialize for MountPlan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(PlanForm::Nested).serialize(serializer)
    }
}

fn place(pointer: &str) -> String {
    if pointer.is_empty() { "its root".to_owned() } else { format!("`{pointer}`") }
}
