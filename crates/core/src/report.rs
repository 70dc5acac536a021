//! The load report: what came up, what did not, and why. Every session has one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::ModuleKind;
use serde::{Deserialize, Serialize};

/// What became of every module of a plan, in mounting order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LoadReport {
    /// One entry for each module of the plan.
    pub modules: Vec<LoadEntry>,
}

/// What became of one module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadEntry {
    /// The module.
    pub module: ModuleId,
    /// What it is.
    pub kind: ModuleKind,
    /// The name of this instance, where the plan gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// Where it came from, when it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_in: Option<Arc<str>>,
    /// What became of it.
    pub outcome: LoadOutcome,
    /// What should be looked at although it came up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// How long it took, in microseconds.
    pub took_micros: u64,
}

/// What became of a module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum LoadOutcome {
    /// It is in the session.
    Mounted {
        /// The names it can be reached by.
        names: Arc<[String]>,
    },
    /// It declined.
    Skipped {
        /// Why.
        reason: String,
    },
    /// It did not come up.
    Failed {
        /// Why, with every cause.
        error: String,
    },
}

impl LoadReport {
    /// The modules that did not come up.
    pub fn failed(&self) -> impl Iterator<Item = &LoadEntry> {
        self.modules.iter().filter(|entry| matches!(entry.outcome, LoadOutcome::Failed { .. }))
    }

    /// Whether every module is in the session and nothing needs to be looked at.
    pub fn is_clean(&self) -> bool {
        self.modules
            .iter()
            .all(|entry| matches!(entry.outcome, LoadOutcome::Mounted { .. }) && entry.warnings.is_empty())
    }

    /// Notes something about a module that came up.
    pub(crate) fn warn(&mut self, module: &ModuleId, warning: String) {
        if let Some(entry) = self.modules.iter_mut().rfind(|entry| entry.module == *module) {
            entry.warnings.push(warning);
        }
    }

    pub(crate) fn add(&mut self, entry: LoadEntry) {
        self.modules.push(entry);
    }
}

impl LoadEntry {
    pub(crate) fn took(mut self, took: Duration) -> Self {
        self.took_micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self
    }
}

impl fmt::Display for LoadEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, module) = (self.kind, &self.module);
        match &self.outcome {
            LoadOutcome::Mounted { .. } => write!(f, "{kind} `{module}` is mounted")?,
            LoadOutcome::Skipped { reason } => write!(f, "{kind} `{module}` was not mounted: {reason}")?,
            LoadOutcome::Failed { error } => write!(f, "{kind} `{module}` did not load: {error}")?,
        }
        self.warnings.iter().try_for_each(|warning| write!(f, "; {warning}"))
    }
}
