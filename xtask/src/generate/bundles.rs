//! The JSON Schemas of bundle, agent, profile and plan files, for editors.

use amplifier_bundle::schema::{agent_schema, bundle_schema, profile_schema};
use amplifier_protocol::mount_plan::plan_schema;

use crate::output::TaskError;

/// The schema of bundle files.
pub(super) fn bundle() -> Result<String, TaskError> {
    text("bundle", &bundle_schema())
}

/// The schema of agent files.
pub(super) fn agent() -> Result<String, TaskError> {
    text("agent", &agent_schema())
}

/// The schema of profile files.
pub(super) fn profile() -> Result<String, TaskError> {
    text("profile", &profile_schema())
}

/// The schema of mount plans.
pub(super) fn plan() -> Result<String, TaskError> {
    text("mount plan", &plan_schema())
}

pub(super) fn text(name: &str, schema: &impl serde::Serialize) -> Result<String, TaskError> {
    let text = serde_json::to_string_pretty(schema)
        .map_err(|source| TaskError::Schema { name: name.to_owned(), source })?;
    Ok(format!("{text}\n"))
}
