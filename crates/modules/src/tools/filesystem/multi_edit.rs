//! `multi_edit`: several edits of one file, all of them or none.

use amplifier_core::contracts::ToolFailure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::changing::Changes;
use super::desk::{After, Change, Desk, Knowledge, Plan};
use super::diff;
use super::edit::Edit;

/// The most edits of one call.
const EDITS: usize = 1_000;

/// Makes several replacements in one file, one after the other; each works on what the one before left.
///
/// Either all of them are made or none. The rules for each are those of edit_file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MultiEdit {
    /// The file: absolute, relative to the working folder, or `@bundle:path`.
    pub(super) file_path: String,
    /// The replacements, in order.
    pub(super) edits: Vec<Edit>,
}

impl Changes for MultiEdit {
    const NAME: &'static str = "multi_edit";

    async fn plan(&self, desk: &Desk) -> Result<Plan, ToolFailure> {
        let count = self.edits.len();
        if count == 0 || count > EDITS {
            let message = format!("edits must hold 1 to {EDITS} replacements, found {count}");
            return Err(ToolFailure::new(message).of_kind("InvalidInput"));
        }
        let current = desk.current(&self.file_path).await?;
        let old = current.text()?;
        desk.check_seen(&current, Knowledge::Quoted)?;
        let (mut new, mut replacements) = (old.to_owned(), 0);
        for (at, edit) in self.edits.iter().enumerate() {
            let (edited, made) = edit.apply(&new).map_err(|misfit| {
                let mut failure = edit.failure(&misfit, &self.file_path);
                failure.message =
                    format!("edit {} of {count}: {}; no edit was made", at + 1, failure.message);
                failure
            })?;
            desk.check_size(edited.len())?;
            (new, replacements) = (edited, replacements + made);
        }
        let answer = json!({
            "file_path": current.shown(),
            "edits_made": count,
            "replacements_made": replacements,
            "bytes_written": new.len(),
            "diff": diff::unified(&self.file_path, old, &new),
        });
        let changes = vec![Change { current, after: After::Bytes(new.into_bytes()) }];
        Ok(Plan { changes, answer, applied: Vec::new() })
    }
}
