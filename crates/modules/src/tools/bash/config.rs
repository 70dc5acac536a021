//! What a plan may configure.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::policy::Profile;
use super::sandbox::Level;

/// The most output of one stream that anybody may ask for.
const MOST_OUTPUT: usize = 10 * 1024 * 1024;

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Config {
    /// Where commands begin, and the workspace they belong to; without it the session's own, `session.working_dir`.
    pub(super) working_dir: Option<String>,
    /// Seconds a command may take when the call does not say.
    pub(super) timeout: u64,
    /// The most seconds a call may ask for.
    pub(super) max_timeout: u64,
    /// When a person is asked before a command runs: `risky` (what the profile is unsure about), `true` or `always`
    /// (every command), `false` or `never` (what would be asked runs; what is denied stays denied).
    pub(super) require_approval: Approval,
    /// What runs, what is asked about and what is refused: `strict`, `standard`, `permissive` or `unrestricted`.
    pub(super) safety_profile: Profile,
    /// Commands that need no asking, `*` standing for anything, such as `git push *`. Each simple command is matched by
    /// itself, without its redirects and the variables before it. In `strict` they lift questions, in the other profiles
    /// also refusals, never the worst ones. A `*` opens no keys and no place outside the working directory: write such
    /// commands out. No pattern covers programs of a directory that is not trusted.
    pub(super) allowed_commands: Vec<String>,
    /// Commands that are refused in every profile: whole with `*`, or words that stand in a command one after the other.
    pub(super) denied_commands: Vec<String>,
    /// More of both, as other bundles write it.
    pub(super) safety_overrides: Overrides,
    /// The most bytes of each output stream that are shown; of longer ones the beginning and the end.
    pub(super) max_output_bytes: usize,
    /// How many commands may run side by side.
    pub(super) max_concurrent: Option<usize>,
    /// How many background jobs may run at a time.
    pub(super) max_background: usize,
    /// Variables to set for commands.
    pub(super) env: BTreeMap<String, String>,
    /// Variables of this process to pass on beside the harmless ones; `MY_*` passes all that begin so and are no secrets.
    pub(super) pass_env: Vec<String>,
    /// The fence of the operating system: `off`, `workspace-write` or `read-only`. Off unless asked for, because machines
    /// differ.
    pub(super) sandbox: Level,
    /// Whether to run nothing when the sandbox is not to be had.
    pub(super) sandbox_required: bool,
}

/// Commands to let through and to refuse.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Overrides {
    /// As `allowed_commands`.
    pub(super) allow: Vec<String>,
    /// As `denied_commands`.
    pub(super) block: Vec<String>,
}

/// When a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Approval {
    /// Before every command.
    Always,
    /// Before commands the profile is unsure about.
    #[default]
    Risky,
    /// Not at all.
    Never,
}

impl<'de> Deserialize<'de> for Approval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Plain(bool),
            Word(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Plain(true) => Ok(Self::Always),
            Written::Plain(false) => Ok(Self::Never),
            Written::Word(word) => match word.as_str() {
                "always" => Ok(Self::Always),
                "risky" => Ok(Self::Risky),
                "never" => Ok(Self::Never),
                other => Err(serde::de::Error::custom(format!(
                    "`require_approval` is `always`, `risky`, `never`, true or false, not `{other}`"
                ))),
            },
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            working_dir: None,
            timeout: 30,
            max_timeout: 3_600,
            require_approval: Approval::default(),
            safety_profile: Profile::default(),
            allowed_commands: Vec::new(),
            denied_commands: Vec::new(),
            safety_overrides: Overrides::default(),
            max_output_bytes: 100_000,
            max_concurrent: None,
            max_background: 8,
            env: BTreeMap::new(),
            pass_env: Vec::new(),
            sandbox: Level::default(),
            sandbox_required: true,
        }
    }
}

impl Config {
    /// What no type can say.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.timeout == 0 || self.timeout > self.max_timeout {
            return Err(format!(
                "`timeout` is {}; it must lie between 1 and `max_timeout` ({})",
                self.timeout, self.max_timeout
            ));
        }
        if !(1_000..=MOST_OUTPUT).contains(&self.max_output_bytes) {
            return Err(format!("`max_output_bytes` must lie between 1000 and {MOST_OUTPUT}"));
        }
        if self.max_concurrent == Some(0) {
            return Err("`max_concurrent` is 0, so nothing could run".to_owned());
        }
        Ok(())
    }
}
