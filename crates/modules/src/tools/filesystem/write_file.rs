//! `write_file`: puts a whole text into a file.

use amplifier_core::contracts::ToolFailure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::changing::Changes;
use super::desk::{After, Before, Change, Current, Desk, Knowledge, Plan};
use super::diff;
use super::endings::Ending;

/// Writes a file: makes it, with the folders it needs, or replaces what is in it.
///
/// A file that exists must have been read with read_file in this session before. To change a part of a file use edit_file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteFile {
    /// The file: absolute, relative to the working folder, or `@bundle:path`.
    pub(super) file_path: String,
    /// Everything that shall be in it.
    pub(super) content: String,
}

impl Changes for WriteFile {
    const NAME: &'static str = "write_file";

    async fn plan(&self, desk: &Desk) -> Result<Plan, ToolFailure> {
        desk.check_size(self.content.len())?;
        let current = desk.current(&self.file_path).await?;
        desk.check_seen(&current, Knowledge::Blind)?;
        let (content, diff) = self.fitted(&current);
        let mut answer = json!({ "file_path": current.shown(), "bytes": content.len() });
        if let (Some(answer), Some(diff)) = (answer.as_object_mut(), diff) {
            answer.insert("diff".to_owned(), diff.into());
        }
        let changes = vec![Change { current, after: After::Bytes(content.into_bytes()) }];
        Ok(Plan { changes, answer, applied: Vec::new() })
    }
}

impl WriteFile {
    /// The content with the line endings of the file it replaces, and what changes.
    fn fitted(&self, current: &Current) -> (String, Option<String>) {
        let Before::File { bytes, .. } = &current.before else { return (self.content.clone(), None) };
        let Ok(old) = std::str::from_utf8(bytes) else { return (self.content.clone(), None) };
        // read_file shows no carriage returns, so a model cannot know of them; one that writes them means them.
        let windows = old.contains('\n') && Ending::CrLf.is_everywhere_in(old);
        let content = match windows && !self.content.contains('\r') {
            true => Ending::CrLf.write(&self.content),
            false => self.content.clone(),
        };
        let diff = diff::unified(&self.file_path, old, &content);
        (content, Some(diff))
    }
}
