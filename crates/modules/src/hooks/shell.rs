//! `hooks-shell`: runs the person's own commands on events, in the convention that other agents use too.
//!
//! A command gets the event as JSON on its standard input. Exit code 0 goes on, and JSON on standard output may decide,
//! change or add (`shell/answer.rs`); 2 refuses with what stands on standard error; anything else is a warning. Commands
//! come from the plan (`shell/config.rs`) and from `hooks.json` files (`shell/file.rs`); `shell/run.rs` runs them. In place
//! of a command may stand a question for the model (`shell/ask.rs`). Each is a handler of its own (`shell/handler.rs`), so
//! the kernel joins what they say. Those of the plan come before those of files, all in the order they are written.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::contracts::{Module, Mounted};
use amplifier_core::hooks::HookSpec;
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use serde_json::Value;

mod answer;
mod ask;
mod config;
mod file;
mod handler;
mod run;

use self::ask::Question;
use self::config::{Command, Config, OnFailure, matcher, patterns};
use self::handler::{Handler, Work};
use self::run::Program;
use super::place;
use crate::table::BuiltIn;
use crate::workspace::{CAPABILITY, Workspace};

/// The longest a command may be given, in seconds.
const LONGEST: f64 = 600.0;

/// The module, as the table lists it.
pub(crate) struct Shell;

#[async_trait]
impl Module for Shell {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("hooks-shell")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Hook
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        if !config.enabled {
            return Ok(Mounted::Skipped { reason: "`enabled` is false".to_owned() });
        }
        let Some(folder) = place::working_dir(&cx.coordinator).filter(|folder| folder.is_absolute()) else {
            let reason = "commands need a working folder and the session has none".to_owned();
            return Ok(Mounted::Skipped { reason });
        };
        for command in &config.hooks {
            register(command, None, &folder, &config, cx).map_err(|error| place::refused(cx, error))?;
        }
        if config.load_files {
            let hooks_dir = place::resolve(&config.hooks_dir, cx)?;
            let workspace = Workspace::of(&cx.coordinator);
            let found = tokio::task::spawn_blocking(move || file::read_all(&hooks_dir, &workspace)).await;
            let found = found.map_err(|error| place::refused(cx, error.to_string()))?;
            found.warnings.into_iter().for_each(|warning| cx.warn(warning));
            for (file_folder, command) in found.commands {
                if let Err(error) = register(&command, Some(&file_folder), &folder, &config, cx) {
                    cx.warn(format!("a command of `{}` is left out: {error}", file_folder.display()));
                }
            }
        }
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for Shell {
    fn info(&self) -> ModuleInfo {
        self.about(
            "Runs commands of the user, or asks the model, on events; the answer decides how it goes on.",
        )
        .config::<Config>()
        .uses("session.working_dir")
        .uses("user.home_dir")
        .uses(CAPABILITY)
    }
}

fn register(
    command: &Command,
    hooks_dir: Option<&PathBuf>,
    folder: &PathBuf,
    config: &Config,
    cx: &MountCx,
) -> Result<(), String> {
    let text = match (&command.command, &command.prompt) {
        (Some(text), None) | (None, Some(text)) => text,
        _ => return Err(format!("a hook on `{}` needs either `command` or `prompt`", command.event)),
    };
    let short = answer::short(text);
    if !(command.timeout.is_finite() && command.timeout > 0.0 && command.timeout <= LONGEST) {
        return Err(format!("`timeout` of `{short}` must be above 0 and at most {LONGEST}"));
    }
    let timeout = Duration::from_secs_f64(command.timeout);
    let matcher = matcher(command)?;
    let session = cx.coordinator.session_id().to_string();
    let environment = run::environment(&config.pass_env, folder, hooks_dir, &session);
    for pattern in patterns(&command.event)? {
        let (work, name) = if command.prompt.is_some() {
            ask::check(&pattern)?;
            (Work::Ask(Question { prompt: text.clone(), timeout }), format!("question `{short}`"))
        } else {
            let program = Program {
                command: text.clone(),
                folder: folder.clone(),
                environment: environment.clone(),
                timeout,
                max_output_bytes: config.max_output_bytes,
            };
            (Work::Run(program), format!("command `{short}`"))
        };
        let handler = Handler {
            work,
            folder: folder.clone(),
            name,
            matcher: matcher.clone(),
            on_failure: command.on_failure,
            coordinator: cx.coordinator.clone(),
        };
        let mut spec = HookSpec::new(pattern, format!("hooks-shell: {short}"));
        // The command's own time comes first, so that it is stopped and reported here.
        spec.timeout = Some(timeout + Duration::from_secs(5));
        let spec = spec.priority(config.priority);
        cx.on(if command.on_failure == OnFailure::Deny { spec.closed() } else { spec }, Arc::new(handler));
    }
    Ok(())
}
