//! `hooks-todo-reminder`: shows the model its todo list at the end of each request, and says when it was left alone.
//!
//! The list is `tool-todo`'s; without one there is nothing to remind of, and nothing is said.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler, Module, Mounted};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::event::{Event, ProviderRequest, ToolPost};
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::reminder::{Place, Voice, one_line, remind};
use crate::table::BuiltIn;
use crate::tools::todo::list::{self, Status, Todo};

const NAME: &str = "hooks-todo-reminder";
/// The most entries that are shown.
const SHOWN: usize = 50;
/// The longest line of an entry, in characters.
const LINE: usize = 120;

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// In whose name the reminder is said.
    inject_role: Voice,
    /// Where the hook stands among the others; lower runs first.
    priority: i32,
    /// After how many other tool calls the list counts as left alone.
    recent_tool_threshold: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { inject_role: Voice::User, priority: 10, recent_tool_threshold: 3 }
    }
}

struct Reminder {
    config: Config,
    coordinator: Coordinator,
    // Tool calls since the list was last touched.
    since_touched: AtomicUsize,
}

#[async_trait]
impl HookHandler for Reminder {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        match event.name.as_str() {
            ToolPost::NAME => self.notice(event),
            ProviderRequest::NAME => {
                let todos = list::read(&self.coordinator);
                if !todos.is_empty() {
                    let voice = self.config.inject_role;
                    return Ok(remind(NAME, &self.told(&todos), voice, Place::Behind));
                }
            }
            _ => {}
        }
        Ok(HookResult::proceed())
    }
}

impl Reminder {
    fn notice(&self, event: &HookEvent) {
        match event.data.get("tool_name").and_then(Value::as_str) {
            Some(list::TOOL) => self.since_touched.store(0, Ordering::Relaxed),
            Some(_) => {
                let more = |calls: usize| Some(calls.saturating_add(1));
                // Cannot fail: the closure always gives a value.
                self.since_touched.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok();
            }
            None => {}
        }
    }

    fn told(&self, todos: &[Todo]) -> String {
        let mut text =
            String::from("The todo list of this session, for you; do not speak of this reminder.\n");
        let open = todos.iter().any(|todo| todo.status != Status::Completed);
        if open && self.since_touched.load(Ordering::Relaxed) >= self.config.recent_tool_threshold {
            text.push_str(
                "It has not been touched for a while: bring it up to date with the `todo` tool if it still fits the \
                 work, or clear it.\n",
            );
        }
        for todo in todos.iter().take(SHOWN) {
            text.push_str(&line(todo));
        }
        if let Some(more) = todos.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            text.push_str(&format!("… and {more} more\n"));
        }
        text
    }
}

fn line(todo: &Todo) -> String {
    let (mark, text) = match todo.status {
        Status::Completed => ('✓', &todo.content),
        Status::InProgress => ('→', &todo.active_form),
        Status::Pending => ('☐', &todo.content),
    };
    format!("{mark} {}\n", one_line(text, LINE))
}

/// The module, as the table lists it.
pub(crate) struct TodoReminder;

#[async_trait]
impl Module for TodoReminder {
    fn id(&self) -> ModuleId {
        ModuleId::fixed(NAME)
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Hook
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        let priority = config.priority;
        let coordinator = cx.coordinator.clone();
        let reminder = Arc::new(Reminder { config, coordinator, since_touched: AtomicUsize::new(0) });
        for pattern in [EventPattern::event::<ToolPost>(), EventPattern::event::<ProviderRequest>()] {
            cx.on(HookSpec::new(pattern, NAME).priority(priority), reminder.clone());
        }
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for TodoReminder {
    fn info(&self) -> ModuleInfo {
        self.about("Reminds the model of its list of steps when it left it alone.").config::<Config>()
    }
}
