//! `tool-todo`: a list of what is to be done, kept by the model for itself. It mounts `todo`.
//!
//! The list lives with the session, where other modules read it (`todo/list.rs`); it is no file. A resumed session finds
//! it again in its conversation: the last call that set the list.

use std::sync::Arc;

use amplifier_core::contracts::{Module, Mounted, TaskFailure, ToolCx, ToolFailure, Typed, TypedTool};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use amplifier_protocol::tool::Effects;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) mod list;

use crate::table::BuiltIn;
use list::{Status, Todo};

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// The most entries a list may have.
    max_todos: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_todos: 200 }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
// For the schema: the word itself is read as text, so that a wrong one gets an answer that names the right ones.
enum Action {
    Create,
    Update,
    List,
}

/// Keeps a list of the steps of a task with several parts, so that none is forgotten and the person can follow.
///
/// `create` and `update` replace the whole list: always send every entry, with one `in_progress` at a time, and mark an
/// entry `completed` as soon as it is done. `list` shows the list. An empty `todos` clears it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// What to do.
    #[schemars(with = "Action")]
    action: String,
    /// The whole list, for `create` and `update`.
    #[serde(default)]
    #[schemars(with = "Vec<Todo>")]
    todos: Option<Value>,
}

/// What became of the list.
#[derive(Debug, Serialize, PartialEq)]
#[serde(tag = "status", rename_all = "snake_case")]
enum Output {
    Created { count: usize, todos: Vec<Todo> },
    Updated { count: usize, pending: usize, in_progress: usize, completed: usize },
    Listed { count: usize, todos: Vec<Todo> },
}

struct TodoTool {
    config: Config,
    coordinator: Coordinator,
}

impl TypedTool for TodoTool {
    const NAME: &'static str = list::TOOL;
    // It changes what the session remembers and nothing outside it; a cut-off call leaves the list as it was.
    const EFFECTS: Effects = Effects::PURE;
    type Input = Input;
    type Output = Output;

    async fn run(&self, input: Input, _cx: &ToolCx) -> Result<Output, ToolFailure> {
        let action = input.action.as_str();
        match action {
            "create" | "update" => {
                let todos = self.read(action, input.todos)?;
                list::keep(&self.coordinator, &todos);
                let (count, of) =
                    (todos.len(), |status| todos.iter().filter(|todo| todo.status == status).count());
                Ok(match action {
                    "create" => Output::Created { count, todos },
                    _ => Output::Updated {
                        count,
                        pending: of(Status::Pending),
                        in_progress: of(Status::InProgress),
                        completed: of(Status::Completed),
                    },
                })
            }
            "list" => {
                let todos = list::read(&self.coordinator);
                Ok(Output::Listed { count: todos.len(), todos })
            }
            other => Err(invalid(format!("Unknown action: {other}. Valid actions: create, update, list"))),
        }
    }
}

impl TodoTool {
    fn read(&self, action: &str, todos: Option<Value>) -> Result<Vec<Todo>, ToolFailure> {
        let Some(todos) = todos.filter(|todos| !todos.is_null()) else {
            let message =
                format!("`todos` is required for `{action}`: send the whole list; an empty one clears it");
            return Err(invalid(message));
        };
        let todos = list::parse(todos).map_err(invalid)?;
        let most = self.config.max_todos;
        if todos.len() > most {
            return Err(invalid(format!(
                "{} todos are too many; at most {most} are kept: join small steps into one",
                todos.len()
            )));
        }
        Ok(todos)
    }
}

fn invalid(message: String) -> ToolFailure {
    ToolFailure::new(message).of_kind("InvalidInput")
}

/// The module, as the table lists it.
pub(crate) struct TodoModule;

#[async_trait]
impl Module for TodoModule {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("tool-todo")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Tool
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config = cx.read_config(config)?;
        cx.mount_tool(Arc::new(Typed(TodoTool { config, coordinator: cx.coordinator.clone() })));
        cx.on_session_ready(async |coordinator: Coordinator| {
            let Some(context) = coordinator.context() else { return Ok(()) };
            let messages = context.messages().await.map_err(|error| TaskFailure::new(error.to_string()))?;
            if let Some(todos) = list::last_in(&messages) {
                list::keep(&coordinator, &todos);
            }
            Ok(())
        });
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for TodoModule {
    fn info(&self) -> ModuleInfo {
        self.about("Keeps the list of steps of the task at hand.").config::<Config>()
    }
}
