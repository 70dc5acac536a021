//! The JSON Schema of what `amplifier run --output jsonl` prints, for programs that read it.

use super::bundles::text;
use crate::output::TaskError;

/// The schema of one line.
pub(super) fn lines() -> Result<String, TaskError> {
    text("run-jsonl", &amplifier_protocol::run::line_schema())
}
