//! What may be configured, and the events by their two names.

use amplifier_core::hooks::EventPattern;
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const USUAL: f64 = 30.0;

/// The events that the convention has names of its own for.
pub(super) const NAMES: [(&str, &str); 11] = [
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
    pub(super) event: String,
    /// Which tools it is for, as a regular expression over the whole name; absent, empty or `*` means all.
    #[serde(default)]
    pub(super) matcher: Option<String>,
    /// What `sh` runs, in the working folder.
    #[serde(default)]
    pub(super) command: Option<String>,
    /// What the session's first model is asked in place of a command; `$ARGUMENTS` in it stands for the event. It
    /// answers whether the event goes on.
    #[serde(default)]
    pub(super) prompt: Option<String>,
    /// How long it may take, in seconds.
    #[serde(default = "usual_timeout")]
    pub(super) timeout: f64,
    /// What it means when the command breaks or takes too long: `warn` or `deny`.
    #[serde(default)]
    pub(super) on_failure: OnFailure,
}

fn usual_timeout() -> f64 {
    USUAL
}

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Config {
    /// Whether anything runs at all.
    pub(super) enabled: bool,
    /// The commands.
    pub(super) hooks: Vec<Command>,
    /// A folder whose `hooks.json`, and those of its folders, are read too; relative to the working folder.
    pub(super) hooks_dir: String,
    /// Whether those files are read.
    pub(super) load_files: bool,
    /// Variables that commands get beside the harmless ones, by name.
    pub(super) pass_env: Vec<String>,
    /// How many bytes of each output are read.
    pub(super) max_output_bytes: usize,
    /// The place among the hooks; lower runs first.
    pub(super) priority: i32,
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

/// What the convention calls one of our events; its own name when there is none.
pub(super) fn common_name(ours: &str) -> &str {
    NAMES.iter().find(|(_, name)| *name == ours).map_or(ours, |(common, _)| common)
}

/// Which tools a command is for; `None` means all.
pub(super) fn matcher(command: &Command) -> Result<Option<Regex>, String> {
    let text = command.matcher.as_deref().map(str::trim).filter(|text| !text.is_empty() && *text != "*");
    let Some(text) = text else { return Ok(None) };
    let whole =
        RegexBuilder::new(&format!("^(?:{text})$")).case_insensitive(true).size_limit(1 << 20).build();
    whole.map(Some).map_err(|error| format!("matcher `{text}` cannot be read: {error}"))
}

/// The events a name stands for.
pub(super) fn patterns(event: &str) -> Result<Vec<EventPattern>, String> {
    let common = NAMES.iter().filter(|(common, _)| *common == event).map(|(_, ours)| *ours);
    let mut names: Vec<&str> = common.collect();
    if names.is_empty() {
        names.push(event);
    }
    names.into_iter().map(|name| name.parse::<EventPattern>().map_err(|error| error.to_string())).collect()
}
