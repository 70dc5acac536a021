//! `hooks-approval`: decides which tool calls go on, which are asked about and which are refused.
//!
//! It judges by what a tool declares to touch and by rules (`approval/rules.rs`), and never asks by itself: it answers
//! `ask_user`, so that the kernel asks, waits and reports. A broken gate is a closed gate. What "Allow always" means is
//! kept by `approval/memory.rs`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_core::contracts::{Capability, HookEvent, HookFailure, HookHandler, Module, Mounted};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_core::redact::redact_text;
use amplifier_protocol::event::{ApprovalGranted, ToolPre};
use amplifier_protocol::hook::{
    ApprovalDecision, ApprovalDefault, ApprovalOption, DEFAULT_APPROVAL_TIMEOUT, HookAction, HookResult,
    LONGEST_APPROVAL_TIMEOUT, MessageLevel, Question,
};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use amplifier_protocol::tool::Effects;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

mod command;
mod memory;
mod question;
mod rules;

use self::memory::{Expected, Grant, Memory};
use self::rules::{Action, Call, Defaults, Rule};
use super::{call_paths, place};
use crate::table::BuiltIn;
use crate::workspace;

/// Under this name the application takes out the keys that it knows.
const KEYS_CAPABILITY: &str = "secrets.hide";

/// What "Allow always" means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Remember {
    /// It is not offered.
    Once,
    /// Until the session ends.
    Session,
    /// For good: it is written to `remember_file`.
    Always,
}

/// What is said about one tool.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct ToolPolicy {
    /// True asks about every call, false lets every call go on that no rule denies.
    require_approval: Option<bool>,
}

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// Rules by tool, effect, command and path. Of those that fit, deny beats ask and ask beats allow.
    rules: Vec<Rule>,
    /// What happens where no rule fits, by what the tool declares to touch.
    defaults: Defaults,
    /// What is said about single tools, by name.
    tools: BTreeMap<String, ToolPolicy>,
    /// What "Allow always" means: `once` (not offered), `session` or `always`.
    remember: Remember,
    /// Where `remember: always` keeps what was allowed. Keep it where the session's tools cannot write.
    remember_file: Option<String>,
    /// How long a question waits, in seconds. Silence is a no.
    default_timeout: Option<f64>,
    /// Known from other implementations, where it could turn silence into a yes. Here silence is a no.
    default_action: Option<String>,
    /// Whether only rules, `tools` and the session's `require_approval_tools` count, and no defaults.
    policy_driven_only: bool,
    /// The place among the hooks; lower runs first.
    priority: i32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rules: ["ls*", "pwd", "echo*"].into_iter().map(Rule::allowing_command).collect(),
            defaults: Defaults::default(),
            tools: BTreeMap::new(),
            remember: Remember::Session,
            remember_file: None,
            default_timeout: None,
            default_action: None,
            policy_driven_only: false,
            priority: -10,
        }
    }
}

struct Gate {
    config: Config,
    coordinator: Coordinator,
    memory: Memory,
    remember_file: Option<PathBuf>,
}

impl Gate {
    fn judge(&self, call: &Call<'_>) -> Action {
        let by_rules = self.config.rules.iter().filter(|rule| rule.fits(call)).map(Rule::action).max();
        if by_rules == Some(Action::Deny) || self.writes_to_the_memory(call) {
            return Action::Deny;
        }
        if self.memory.knows(&Grant::of(call)) {
            return Action::Allow;
        }
        let wanted = self.coordinator.with_state(|state| {
            let tools = state.get("require_approval_tools").and_then(Value::as_array);
            tools.is_some_and(|tools| tools.iter().any(|tool| tool.as_str() == Some(call.tool)))
        });
        let by_tool = self.config.tools.get(call.tool).and_then(|policy| policy.require_approval);
        match (by_rules, by_tool) {
            _ if wanted => Action::Ask,
            (Some(Action::Ask), _) | (_, Some(true)) => Action::Ask,
            (Some(action), _) => action,
            (None, Some(false)) => Action::Allow,
            (None, None) if self.config.policy_driven_only => Action::Allow,
            (None, None) => self.config.defaults.action(call.effects),
        }
    }

    /// Who may write the file of what is allowed may allow himself everything.
    fn writes_to_the_memory(&self, call: &Call<'_>) -> bool {
        let Some(file) = &self.remember_file else { return false };
        let base = call.base.unwrap_or(Path::new(""));
        let file = place::real_path(file);
        call.effects.writes && call.paths.iter().any(|path| place::real_path(&base.join(path)) == file)
    }

    fn ask(&self, call: &Call<'_>) -> HookResult {
        let offers_always = self.config.remember != Remember::Once;
        let options = if offers_always { ApprovalOption::usual() } else { ApprovalOption::once() };
        let mut prompt = question::prompt(call);
        if offers_always {
            prompt.push_str(&question::scope(call));
            self.memory.expect(prompt.clone(), Expected::of(call));
        }
        HookAction::AskUser(Question {
            prompt,
            options,
            timeout: self.config.default_timeout.unwrap_or(DEFAULT_APPROVAL_TIMEOUT),
            default: ApprovalDefault::Deny,
            call: None,
        })
        .into()
    }
}

impl Gate {
    /// What relative paths of a tool are relative to: its own `working_dir`, else the session's.
    fn base(&self, tool: &str) -> Option<PathBuf> {
        let of_session = place::working_dir(&self.coordinator);
        let module = self.coordinator.tool_module(tool);
        let own = module.as_ref().and_then(|module| module.config.get("working_dir")?.as_str());
        match (of_session, own) {
            (Some(session), Some(own)) => Some(session.join(own)),
            (session, own) => session.or(own.map(PathBuf::from)),
        }
    }

    /// The paths that a call names, with `~` and mentions as tools read them.
    async fn paths(&self, call: &ToolPre) -> Vec<String> {
        let mut paths = Vec::new();
        for path in call_paths::named(&call.tool_name, &call.tool_input) {
            let home = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
            let read = match home {
                Some(rest) => {
                    let home = self.coordinator.capability_text("user.home_dir");
                    home.map(|home| Path::new(&home).join(rest.trim_start_matches('/')).display().to_string())
                }
                None if path.starts_with('@') => {
                    let mention = json!({ "mention": path });
                    let answer = self.coordinator.call_capability("mention_resolver", mention).await;
                    answer.ok().and_then(|path| path.as_str().map(str::to_owned))
                }
                None => None,
            };
            paths.push(read.unwrap_or_else(|| path.to_owned()));
        }
        paths
    }

    /// Remembers a grant, in the session at once and in the file before this returns.
    async fn remember(&self, meant: Expected) -> Result<(), String> {
        self.memory.learn(&meant.grant);
        let input = match meant.input {
            Some(input) => Some(self.without_secrets(input).await?),
            None => None,
        };
        self.memory.keep(meant.grant, input).await
    }

    async fn without_secrets(&self, input: String) -> Result<String, String> {
        let input = match self.coordinator.capability(KEYS_CAPABILITY) {
            Some(Capability::Call(hide)) => {
                let hidden = hide.call(Value::String(input)).await.map_err(|error| error.to_string())?;
                hidden.as_str().unwrap_or_default().to_owned()
            }
            _ => input,
        };
        Ok(redact_text(&input).into_owned())
    }
}

#[async_trait]
impl HookHandler for Gate {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        let call: ToolPre =
            event.read().map_err(|error| HookFailure::new(format!("unreadable call: {error}")))?;
        let tool = self.coordinator.tool(&call.tool_name);
        // A tool nobody mounted is taken for one that could do anything: the gate does not guess who will run it.
        let effects = tool.map_or(Effects::UNKNOWN, |tool| tool.effects());
        let base = self.base(&call.tool_name);
        let paths = self.paths(&call).await;
        let base = base.as_deref();
        let call = Call { tool: &call.tool_name, input: &call.tool_input, effects, base, paths };
        Ok(match self.judge(&call) {
            Action::Allow => HookResult::proceed(),
            // What cannot be shown whole cannot be agreed to.
            Action::Ask if question::is_too_long(&call) => HookResult::deny(question::too_long(&call)),
            Action::Ask => self.ask(&call),
            Action::Deny => HookResult::deny(question::refusal(&call)),
        })
    }
}

/// Hears what was answered, for "Allow always".
struct Listener(Arc<Gate>);

#[async_trait]
impl HookHandler for Listener {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        let granted: ApprovalGranted = event.read().map_err(|error| HookFailure::new(error.to_string()))?;
        let Some(meant) = granted.action.as_deref().and_then(|prompt| self.0.memory.take_expected(prompt))
        else {
            return Ok(HookResult::proceed());
        };
        if granted.decision != Some(ApprovalDecision::AllowAlways) {
            return Ok(HookResult::proceed());
        }
        match self.0.remember(meant).await {
            Ok(()) => Ok(HookResult::proceed()),
            Err(error) => {
                let told = format!("allowed for this session only: {error}");
                Ok(HookResult::proceed().showing(told, MessageLevel::Warning))
            }
        }
    }
}

/// The module, as the table lists it.
pub(crate) struct Approval;

#[async_trait]
impl Module for Approval {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("hooks-approval")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Hook
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        if config.default_action.as_deref().is_some_and(|action| action != "deny") {
            cx.warn("`default_action` other than `deny` is ignored: a question nobody answers is a no");
        }
        let is_time = |seconds: f64| seconds > 0.0 && seconds <= LONGEST_APPROVAL_TIMEOUT;
        if let Some(seconds) = config.default_timeout.filter(|seconds| !is_time(*seconds)) {
            cx.warn(format!(
                "`default_timeout` must be more than 0 and at most {LONGEST_APPROVAL_TIMEOUT} seconds, not {seconds}; \
                 questions wait {DEFAULT_APPROVAL_TIMEOUT} seconds"
            ));
        }
        let remember_file = match (&config.remember_file, config.remember) {
            (Some(file), Remember::Always) => Some(place::resolve(file, cx)?),
            (None, Remember::Always) => {
                return Err(place::refused(cx, "`remember: always` needs `remember_file`"));
            }
            _ => None,
        };
        let workspace = workspace::Workspace::of(&cx.coordinator);
        let remember_file = remember_file.filter(|file| {
            let is_own = !workspace.is_untrusted(file);
            if !is_own {
                let file = file.display();
                cx.warn(format!("answers of `{file}` are not used or kept: its directory is not trusted"));
            }
            is_own
        });
        let memory = Memory::open(remember_file.clone()).await.map_err(|error| place::refused(cx, error))?;
        let priority = config.priority;
        let gate = Arc::new(Gate { config, coordinator: cx.coordinator.clone(), memory, remember_file });
        let spec =
            HookSpec::new(EventPattern::event::<ToolPre>(), "hooks-approval").priority(priority).closed();
        cx.on(spec, gate.clone());
        let heard = HookSpec::new(EventPattern::event::<ApprovalGranted>(), "hooks-approval-memory");
        cx.on(heard.priority(priority), Arc::new(Listener(gate)));
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for Approval {
    fn info(&self) -> ModuleInfo {
        self.about("Allows, asks about or denies tool calls by rules, declared effects and parsed commands.")
            .config::<Config>()
            .uses(KEYS_CAPABILITY)
            .uses("mention_resolver")
            .uses("session.working_dir")
            .uses("user.home_dir")
            .uses(workspace::CAPABILITY)
    }
}
