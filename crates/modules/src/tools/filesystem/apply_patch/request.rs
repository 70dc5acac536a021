//! What a call of `apply_patch` holds. The model is shown one form; either is taken, since models remember the other.

use std::borrow::Cow;

use amplifier_core::contracts::ToolFailure;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::parse::{self, Operation};
use super::{Form, diff_form};
use crate::tools::filesystem::changing::Changes;
use crate::tools::filesystem::desk::{Desk, Plan};

const NAME: &str = "apply_patch";

/// Changes files by a patch. Either everything in it is done or nothing.
///
/// The patch begins with `*** Begin Patch` and ends with `*** End Patch`. Between them stand sections:
/// `*** Add File: path` followed by the lines of the new file, each after a `+`;
/// `*** Delete File: path`;
/// `*** Update File: path`, optionally `*** Move to: new path`, then hunks. A hunk begins with `@@`, optionally followed by
/// a line of the file that stands before it (such as a function head); its lines begin with a blank (kept), `-` (removed)
/// or `+` (added). Give three lines of context around a change. `*** End of File` after a hunk ties it to the end.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct PatchForm {
    /// The whole patch.
    patch: String,
}

/// Makes, changes or deletes one file by a diff.
///
/// The diff of `create_file` is the lines of the new file, each after a `+`. That of `update_file` is hunks: each begins with
/// `@@`, optionally followed by a line of the file that stands before it (such as a function head); its lines begin with
/// a blank (kept), `-` (removed) or `+` (added). Give three lines of context around a change. `delete_file` needs no diff.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct DiffForm {
    /// What to do.
    r#type: OperationType,
    /// The file: absolute or relative to the working folder.
    path: String,
    /// What differs.
    #[schemars(default)]
    diff: String,
}

#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum OperationType {
    #[serde(rename = "create_file")]
    Create,
    #[serde(rename = "update_file")]
    Update,
    #[serde(rename = "delete_file")]
    Delete,
}

/// Either form.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    #[serde(default, alias = "input", skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    r#type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

impl Request {
    async fn plan(&self, desk: &Desk) -> Result<Plan, ToolFailure> {
        let written = self.patch.as_ref().or(self.diff.as_ref());
        desk.check_size(written.map_or(0, String::len))?;
        let (operations, form) = self.operations()?;
        super::plan(operations, form, desk).await
    }

    fn operations(&self) -> Result<(Vec<Operation>, Form), ToolFailure> {
        let invalid = |message: String| ToolFailure::new(message).of_kind("InvalidInput");
        match (&self.patch, &self.r#type, &self.path, &self.diff) {
            (Some(patch), None, None, None) => {
                let operations = parse::parse(patch);
                let operations =
                    operations.map_err(|error| invalid(format!("Patch parse error: {error}")))?;
                Ok((operations, Form::Patch))
            }
            (None, Some(kind), Some(path), diff) => {
                let operation = diff_form::read(kind, path, diff.as_deref());
                let operation = operation.map_err(|error| invalid(error.to_string()))?;
                Ok((vec![operation], Form::Diff))
            }
            _ => Err(invalid("give either `patch` alone, or `type` and `path`, with `diff`".to_owned())),
        }
    }
}

/// The tool for models that are shown the patch.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub(in crate::tools::filesystem) struct ByPatch(Request);

impl ByPatch {
    /// What it asks for, file by file; nothing where it cannot be read.
    pub(in crate::tools::filesystem) fn operations(&self) -> Option<Vec<Operation>> {
        self.0.operations().ok().map(|(operations, _)| operations)
    }
}

/// The tool for models that are shown the operation with its diff.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub(in crate::tools::filesystem) struct ByDiff(Request);

impl JsonSchema for ByPatch {
    fn schema_name() -> Cow<'static, str> {
        PatchForm::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        PatchForm::json_schema(generator)
    }
}

impl JsonSchema for ByDiff {
    fn schema_name() -> Cow<'static, str> {
        DiffForm::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        DiffForm::json_schema(generator)
    }
}

impl Changes for ByPatch {
    const NAME: &'static str = NAME;

    async fn plan(&self, desk: &Desk) -> Result<Plan, ToolFailure> {
        self.0.plan(desk).await
    }
}

impl Changes for ByDiff {
    const NAME: &'static str = NAME;

    async fn plan(&self, desk: &Desk) -> Result<Plan, ToolFailure> {
        self.0.plan(desk).await
    }
}
