//! `hooks-shell`: runs the person's own commands on events, in the convention that other agents use too.
//!
//! A command gets the event as JSON on its standard input. Exit code 0 goes on, and JSON on standard output may decide,
//! change or add (`shell/answer.rs`); 2 refuses with what stands on standard error; anything else is a warning. Commands
//! come from the plan and from `hooks.json` files (`shell/file.rs`); `shell/run.rs` runs them. In place of a command may
//! stand a question for the model (`shell/ask.rs`). Each is a handler of its own, so the kernel joins what they say. Those
//! of the plan come before those of files, all in the order they are written.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler, Module, Mounted};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::event::{Event, SessionEnd};
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

mod answer;
mod ask;
mod file;
mod run;

use self::ask::{Decision, Question};
use self::run::{Program, Ran};
use super::place;
use crate::table::BuiltIn;

/// The longest a command may be given, in seconds.
const LONGEST: f64 = 600.0;
const USUAL: f64 = 30.0;

/// The events that the convention has names of its own for.
const NAMES: [(&str, &str); 11] = [
    ("PreToolUse", "tool:pre"),
    ("PostToolUse", "tool:post"),
    ("UserPromptSubmit", "prompt:submit"),
    ("SessionStart", "session:start"),
    ("SessionStart", "session:resume"),
    ("SessionEnd", "session:end"),
    ("Stop", "prompt:complete"),
    ("SubagentStop", "delegate:agent_completed"),
    ("PreCompact", "context:pre_compact"),
    ("PermissionRequest", "approval:required"),
    ("Notification", "user:notification"),
];

/// What a command that breaks or takes too long means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OnFailure {
    /// The event goes on, with a warning.
    #[default]
    Warn,
    /// The event is refused.
    Deny,
}

/// One command, or one question.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct Command {
    /// When it runs: an event (`tool:pre`), a pattern (`tool:*`), or a name of the convention (`PreToolUse`).
    event: String,
    /// Which tools it is for, as a regular expression over the whole name; absent, empty or `*` means all.
    #[serde(default)]
    matcher: Option<String>,
    /// What `sh` runs, in the working folder.
    #[serde(default)]
    command: Option<String>,
    /// What the session's first model is asked in place of a command; `$ARGUMENTS` in it stands for the event. It
    /// answers whether the event goes on.
    #[serde(default)]
    prompt: Option<String>,
    /// How long it may take, in seconds.
    #[serde(default = "usual_timeout")]
    timeout: f64,
    /// What it means when the command breaks or takes too long: `warn` or `deny`.
    #[serde(default)]
    on_failure: OnFailure,
}

fn usual_timeout() -> f64 {
    USUAL
}

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// Whether anything runs at all.
    enabled: bool,
    /// The commands.
    hooks: Vec<Command>,
    /// A folder whose `hooks.json`, and those of its folders, are read too; relative to the working folder.
    hooks_dir: String,
    /// Whether those files are read.
    load_files: bool,
    /// Variables that commands get beside the harmless ones, by name.
    pass_env: Vec<String>,
    /// How many bytes of each output are read.
    max_output_bytes: usize,
    /// The place among the hooks; lower runs first.
    priority: i32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: true,
            hooks: Vec::new(),
            hooks_dir: ".amplifier/hooks".to_owned(),
            load_files: true,
            pass_env: Vec::new(),
            max_output_bytes: 64 * 1024,
            priority: 20,
        }
    }
}

/// What a handler does.
enum Work {
    Run(Program),
    Ask(Question),
}

/// A command or a question that is ready.
struct Handler {
    work: Work,
    folder: PathBuf,
    /// How it is named in messages.
    name: String,
    matcher: Option<Regex>,
    on_failure: OnFailure,
    coordinator: Coordinator,
}

impl Handler {
    fn is_for(&self, event: &HookEvent) -> bool {
        let Some(matcher) = &self.matcher else { return true };
        let text = |key: &str| event.data.get(key).and_then(Value::as_str);
        let usual_trigger = match event.name.as_str() {
            "session:start" => Some("startup"),
            "session:resume" => Some("resume"),
            _ => None,
        };
        let subject = text("tool_name").or_else(|| text("trigger")).or(usual_trigger);
        subject.is_some_and(|subject| matcher.is_match(subject))
    }

    fn input(&self, event: &HookEvent) -> Value {
        let name = event.name.as_str();
        let common = NAMES.iter().find(|(_, ours)| *ours == name).map_or(name, |(common, _)| common);
        let mut input = event.payload();
        input.insert("event".to_owned(), json!(name));
        input.insert("hook_event_name".to_owned(), json!(common));
        input.insert("cwd".to_owned(), json!(self.folder.display().to_string()));
        if let Some(result) = event.data.get("result") {
            input.insert("tool_response".to_owned(), result.clone());
        }
        Value::Object(input)
    }
}

#[async_trait]
impl HookHandler for Handler {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        if !self.is_for(event) {
            return Ok(HookResult::proceed());
        }
        let input = self.input(event).to_string();
        match &self.work {
            Work::Run(program) => self.run(program, input, event).await,
            Work::Ask(question) => match question.ask(&input, &self.coordinator).await {
                Decision::GoesOn => Ok(HookResult::proceed()),
                Decision::Refused(reason) => Ok(HookResult::deny(reason)),
                Decision::Cancelled => Ok(cancelled(event)),
                Decision::Broken(what) => self.broken(what),
            },
        }
    }
}

/// Nothing new begins after a cancel; what was done already is still told.
fn cancelled(event: &HookEvent) -> HookResult {
    match event.name.as_str() {
        "tool:pre" | "prompt:submit" | "provider:request" => HookResult::deny("cancelled"),
        _ => HookResult::proceed(),
    }
}

impl Handler {
    async fn run(
        &self,
        program: &Program,
        input: String,
        event: &HookEvent,
    ) -> Result<HookResult, HookFailure> {
        // At the end of a session everything else has been told to stop; its last commands may still run.
        let is_last = event.name.as_str() == SessionEnd::NAME;
        let cancel = Some(self.coordinator.cancel()).filter(|_| !is_last);
        match program.run(input, cancel).await {
            Ran::Ended { code: 0, stdout, .. } => Ok(answer::read(&stdout, event)),
            Ran::Ended { code: 2, stderr, .. } => {
                Ok(HookResult::deny(answer::reason(&stderr, &program.command)))
            }
            Ran::Ended { code, stderr, .. } => {
                let said = answer::reason(&stderr, "without a word");
                self.broken(format!("ended with code {code}: {said}"))
            }
            Ran::Late => {
                self.broken(format!("took longer than {} s and was stopped", program.timeout.as_secs_f64()))
            }
            Ran::Cancelled => Ok(cancelled(event)),
            Ran::Broken(error) => self.broken(format!("could not be run: {error}")),
        }
    }

    fn broken(&self, what: String) -> Result<HookResult, HookFailure> {
        let told = format!("{} {what}", self.name);
        Ok(match self.on_failure {
            OnFailure::Deny => HookResult::deny(told),
            OnFailure::Warn => {
                HookResult::proceed().showing(told, amplifier_protocol::hook::MessageLevel::Warning)
            }
        })
    }
}

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
            let found = tokio::task::spawn_blocking(move || file::read_all(&hooks_dir)).await;
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

fn matcher(command: &Command) -> Result<Option<Regex>, String> {
    let text = command.matcher.as_deref().map(str::trim).filter(|text| !text.is_empty() && *text != "*");
    let Some(text) = text else { return Ok(None) };
    let whole =
        RegexBuilder::new(&format!("^(?:{text})$")).case_insensitive(true).size_limit(1 << 20).build();
    whole.map(Some).map_err(|error| format!("matcher `{text}` cannot be read: {error}"))
}

fn patterns(event: &str) -> Result<Vec<EventPattern>, String> {
    let common = NAMES.iter().filter(|(common, _)| *common == event).map(|(_, ours)| *ours);
    let mut names: Vec<&str> = common.collect();
    if names.is_empty() {
        names.push(event);
    }
    names.into_iter().map(|name| name.parse::<EventPattern>().map_err(|error| error.to_string())).collect()
}
