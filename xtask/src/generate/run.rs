//! The JSON Schemas of what commands print for programs: `amplifier run --output jsonl`, and any that failed with
//! `--output json`.

use super::bundles::text;
use crate::output::TaskError;

/// The schema of one line.
pub(super) fn lines() -> Result<String, TaskError> {
    text("run-jsonl", &amplifier_protocol::run::line_schema())
}

/// The schema of a failure.
pub(super) fn failure() -> Result<String, TaskError> {
    text("failure", &amplifier_protocol::run::failure_schema())
}
