//! `edit_file`: one text for another in a file.

use amplifier_core::contracts::ToolFailure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::changing::Changes;
use super::desk::{After, Change, Desk, Knowledge, Plan};
use super::diff;
use super::edit::Edit;

/// Replaces a text in a file by another.
///
/// `old_string` must stand in the file exactly once, so give enough of its surroundings, or set `replace_all`. Line
/// endings of the file are kept. A file that changed since it was read must be read again first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditFile {
    /// The file: absolute, relative to the working folder, or `@bundle:path`.
    pub(super) file_path: String,
    /// The text to replace, exactly as it stands in the file, white space included. Line numbers are not part of it.
    pub(super) old_string: String,
    /// What to put in its place.
    pub(super) new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    pub(super) replace_all: bool,
}

impl EditFile {
    pub(super) fn edit(&self) -> Edit {
        Edit {
            old_string: self.old_string.clone(),
            new_string: self.new_string.clone(),
            replace_all: self.replace_all,
        }
    }
}

impl Changes for EditFile {
    const NAME: &'static str = "edit_file";

    async fn plan(&self, desk: &Desk) -> Result<Plan, ToolFailure> {
        let edit = self.edit();
        if self.file_path.trim().is_empty() {
            return Err(ToolFailure::new("file_path is required").of_kind("InvalidInput"));
        }
        let misfit = |misfit| edit.failure(&misfit, &self.file_path);
        edit.check().map_err(misfit)?;
        let current = desk.current(&self.file_path).await?;
        let old = current.text()?;
        desk.check_seen(&current, Knowledge::Quoted)?;
        let (new, replacements) = edit.apply(old).map_err(misfit)?;
        desk.check_size(new.len())?;
        let answer = json!({
            "file_path": current.shown(),
            "replacements_made": replacements,
            "bytes_written": new.len(),
            "diff": diff::unified(&self.file_path, old, &new),
        });
        let changes = vec![Change { current, after: After::Bytes(new.into_bytes()) }];
        Ok(Plan { changes, answer, applied: Vec::new() })
    }
}
