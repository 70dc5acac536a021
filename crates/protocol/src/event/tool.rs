//! Events around a tool call, and of what tools read and write.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ErrorInfo, Event, LOOP, TOOL};
use crate::tool::{ToolCall, ToolResult};

/// A tool is being chosen for a call. Handlers propose with their data: `tool_name` for another tool, with `tool_input` where
/// that takes another input; `decision: deny` with a `reason` for none. No action of theirs has any effect here.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ToolSelecting {
    /// The tool the model called.
    pub tool_name: String,
    /// The input the model gave.
    #[serde(default)]
    pub tool_input: Value,
    /// The tools there are.
    #[serde(default)]
    pub available_tools: Vec<String>,
    /// The call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl Event for ToolSelecting {
    const NAME: &'static str = "tool:selecting";
    const EMITTER: &'static str = LOOP;
}

/// A tool was chosen for a call. Hooks may deny it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ToolSelected {
    /// The tool that will run.
    pub tool_name: String,
    /// The input it will get.
    #[serde(default)]
    pub tool_input: Value,
    /// Who chose it: `llm` or `scheduler`.
    pub source: String,
    /// The tool the model called.
    pub original_tool: String,
    /// The call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl Event for ToolSelected {
    const NAME: &'static str = "tool:selected";
    const EMITTER: &'static str = LOOP;
}

/// A tool is about to run. Hooks may deny it, change its input, or ask.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ToolPre {
    /// The tool.
    pub tool_name: String,
    /// Its input; what a hook puts here is what the tool gets.
    #[serde(default)]
    pub tool_input: Value,
    /// The call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Joins calls that run side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_group_id: Option<String>,
}

impl Event for ToolPre {
    const NAME: &'static str = "tool:pre";
    const EMITTER: &'static str = LOOP;
}

/// A tool ran. What a hook puts into `result` is what the model sees.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ToolPost {
    /// The tool.
    pub tool_name: String,
    /// The input it ran with.
    #[serde(default)]
    pub tool_input: Value,
    /// What it gave: `{success, output, error}`.
    #[serde(default)]
    pub result: Value,
    /// The same as `result`, under the older name.
    #[serde(default)]
    pub tool_result: Value,
    /// The call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Joins calls that run side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_group_id: Option<String>,
}

impl ToolPost {
    /// What is told of a call and its result, `told`.
    pub fn of(call: &ToolCall, told: &Value, group: Option<&str>) -> Self {
        Self {
            tool_name: call.name.clone(),
            tool_input: call.arguments.clone(),
            result: told.clone(),
            tool_result: told.clone(),
            tool_call_id: Some(call.id.clone()),
            parallel_group_id: group.map(str::to_owned),
        }
    }

    /// The result that hooks put in the place of `told`. Hooks of old know it by its older name, and what has not the shape
    /// of a result is the output of one.
    pub fn changed_result(self, told: &Value) -> ToolResult {
        let changed = if self.result == *told { self.tool_result } else { self.result };
        let is_result = changed.get("output").is_some() || changed.get("success").is_some();
        let read = if is_result { ToolResult::deserialize(&changed).ok() } else { None };
        read.unwrap_or_else(|| ToolResult::success(changed))
    }
}

impl Event for ToolPost {
    const NAME: &'static str = "tool:post";
    const EMITTER: &'static str = LOOP;
}

/// A tool could not be run, or broke.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolError {
    /// The tool.
    pub tool_name: String,
    /// What went wrong.
    pub error: ErrorInfo,
    /// The call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Joins calls that run side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_group_id: Option<String>,
}

impl Event for ToolError {
    const NAME: &'static str = "tool:error";
    const EMITTER: &'static str = LOOP;
}

/// A tool wrote a file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactWrite {
    /// The file.
    pub path: String,
    /// How many bytes it has now.
    pub bytes: u64,
}

impl Event for ArtifactWrite {
    const NAME: &'static str = "artifact:write";
    const EMITTER: &'static str = TOOL;
}

/// A tool read a file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactRead {
    /// The file.
    pub path: String,
    /// How many bytes it has.
    pub bytes: u64,
}

impl Event for ArtifactRead {
    const NAME: &'static str = "artifact:read";
    const EMITTER: &'static str = TOOL;
}
