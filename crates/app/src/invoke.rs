//! Calling one tool of an open session by hand, the way a loop would: hooks hear of it, gates may refuse it, limits and
//! deadlines hold, and it is in the journal. What to call it with is read in `invoke/input.rs`.

use amplifier_core::coordinator::{CallError, Coordinator};
use amplifier_core::ledger::LimitReached;
use amplifier_core::loader::near_misses;
use amplifier_protocol::event::{ErrorInfo, ToolError, ToolPost, ToolPre};
use amplifier_protocol::tool::{ToolCall, ToolResult, ToolSpec};
use serde_json::{Value, json};

mod input;

pub use input::InputError;

use crate::files::FileError;
use crate::open::OpenSession;
use crate::store::StoreError;

/// The id of the one call.
const CALL: &str = "by-hand";

/// Why a tool was not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvokeError {
    /// No tool of the session has that name.
    #[error("there is no tool `{name}` in this session{}", did_you_mean(near))]
    Unknown { name: String, near: Vec<String> },
    /// The input does not fit the tool.
    #[error("{source}")]
    Input {
        name: String,
        #[source]
        source: InputError,
    },
    /// A hook or a person said no.
    #[error("`{name}` was refused: {reason}")]
    Denied { name: String, reason: String },
    /// A limit stands against it.
    #[error(transparent)]
    Limit(LimitReached),
    /// It was cancelled.
    #[error("`{name}` was cancelled")]
    Cancelled { name: String },
    /// The call broke off.
    #[error("`{name}` broke off")]
    Call {
        name: String,
        #[source]
        source: CallError,
    },
}

impl InvokeError {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { .. } => Some("`amplifier tool list` shows the tools of the same plan".to_owned()),
            Self::Input { name, .. } => Some(format!("`amplifier tool info {name}` shows what it takes")),
            Self::Denied { .. } => {
                Some("`--approve all` answers what gates ask; what a rule denies stays denied".to_owned())
            }
            _ => None,
        }
    }
}

fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}

/// The tool of a session by name.
pub fn find(opened: &OpenSession, name: &str) -> Result<ToolSpec, InvokeError> {
    let specs = opened.session.coordinator().tool_specs();
    match specs.iter().find(|spec| spec.name == name) {
        Some(spec) => Ok(ToolSpec::clone(spec)),
        None => {
            let known: Vec<_> = specs.iter().map(|spec| spec.name.clone()).collect();
            Err(InvokeError::Unknown { name: name.to_owned(), near: near_misses(name, &known) })
        }
    }
}

/// What to call a tool with: `NAME=VALUE` words on top of a JSON object.
pub fn read_input(tool: &ToolSpec, json: Option<&str>, words: &[String]) -> Result<Value, InvokeError> {
    input::read_input(tool, json, words).map_err(unfit(&tool.name))
}

fn unfit(name: &str) -> impl FnOnce(InputError) -> InvokeError {
    move |source| InvokeError::Input { name: name.to_owned(), source }
}

/// Calls a tool. What the tool itself reports, good or bad, is the result.
pub async fn invoke(opened: &OpenSession, name: &str, input: Value) -> Result<ToolResult, InvokeError> {
    let at = opened.session.coordinator();
    let spec = find(opened, name)?;
    input::check(&spec, &input).map_err(unfit(name))?;
    let pre = ToolPre {
        tool_name: name.to_owned(),
        tool_input: input,
        tool_call_id: Some(CALL.to_owned()),
        parallel_group_id: None,
    };
    let asked = at.emit(pre).await;
    if let Some(reason) = asked.denied() {
        return Err(InvokeError::Denied { name: name.to_owned(), reason: reason.to_owned() });
    }
    let call = ToolCall::new(CALL, name, asked.event.tool_input);
    match at.call_tool(&call).await {
        Ok(result) => heard(at, &call, result).await,
        Err(error) => Err(failed(at, &call, error).await),
    }
}

/// The result as hooks leave it.
async fn heard(at: &Coordinator, call: &ToolCall, result: ToolResult) -> Result<ToolResult, InvokeError> {
    let told = json!(result);
    let post = ToolPost::of(call, &told, None);
    let heard = at.emit(post).await;
    if let Some(reason) = heard.denied() {
        return Err(InvokeError::Denied { name: call.name.clone(), reason: reason.to_owned() });
    }
    Ok(if heard.modified { heard.event.changed_result(&told) } else { result })
}

async fn failed(at: &Coordinator, call: &ToolCall, error: CallError) -> InvokeError {
    let name = call.name.clone();
    let (kind, error) = match error {
        CallError::Cancelled => return InvokeError::Cancelled { name },
        CallError::Limit(limit) => ("LimitReached", InvokeError::Limit(limit)),
        source @ CallError::Journal(_) => ("JournalError", InvokeError::Call { name, source }),
        source => ("RuntimeError", InvokeError::Call { name, source }),
    };
    let told = ToolError {
        tool_name: call.name.clone(),
        error: ErrorInfo { kind: kind.to_owned(), msg: amplifier_core::error::chain(&error) },
        tool_call_id: Some(call.id.clone()),
        parallel_group_id: None,
    };
    at.emit(told).await;
    error
}

/// Removes the session of a call that nobody will go on with. One that has sub-sessions stays: they belong to it.
pub fn forget(opened: &OpenSession) -> Result<(), StoreError> {
    if opened.session.coordinator().ledger().statement().total.spawns > 0 {
        return Ok(());
    }
    let folder = opened.folder.dir();
    Ok(std::fs::remove_dir_all(folder).map_err(FileError::at("remove", folder))?)
}
