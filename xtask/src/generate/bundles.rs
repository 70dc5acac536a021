//! The JSON Schemas of bundle and agent files, for editors.

use amplifier_bundle::schema::{agent_schema, bundle_schema};

use crate::output::TaskError;

/// The schema of bundle files.
pub(super) fn bundle() -> Result<String, TaskError> {
    text("bundle", &bundle_schema())
}

/// The schema of agent files.
pub(super) fn agent() -> Result<String, TaskError> {
    text("agent", &agent_schema())
}

pub(super) fn text(name: &str, schema: &impl serde::Serialize) -> Result<String, TaskError> {
    let text = serde_json::to_string_pretty(schema)
        .map_err(|source| TaskError::Schema { name: name.to_owned(), source })?;
    Ok(format!("{text}\n"))
}
