//! What a plan says about calls, and what of it fits one.

use std::path::{Component, Path, PathBuf};

use amplifier_protocol::tool::Effects;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::command;
use crate::hooks::place::real_path;
use crate::hooks::wildcard::fits;

/// What happens to a call; the later beats the earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    /// It goes on.
    #[serde(alias = "auto_approve", alias = "continue")]
    Allow,
    /// The person decides.
    Ask,
    /// It is refused.
    #[serde(alias = "auto_deny")]
    Deny,
}

/// What a tool can declare to touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Effect {
    /// Files or other local state are looked at.
    Reads,
    /// Files or other local state are changed.
    Writes,
    /// Programs are started.
    Executes,
    /// Other machines are talked to.
    Network,
}

/// A rule. It fits a call when everything it names fits; one that names nothing fits nothing.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct Rule {
    /// The tool's name, with `*` and `?`.
    #[serde(default)]
    tool: Option<String>,
    /// Something the tool declares to touch.
    #[serde(default)]
    effect: Option<Effect>,
    /// The command, word by word; a star at the end stands for any further words: `git status*`.
    #[serde(default, alias = "pattern")]
    command: Option<String>,
    /// The path the call names, with `*` and `?`.
    #[serde(default)]
    path: Option<String>,
    /// What happens: `allow`, `ask` or `deny`.
    action: Action,
}

/// What happens where no rule fits.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Defaults {
    /// For tools that look at local state.
    reads: Action,
    /// For tools that change local state.
    writes: Action,
    /// For tools that start programs.
    executes: Action,
    /// For tools that talk to other machines.
    network: Action,
}

impl Default for Defaults {
    fn default() -> Self {
        Self { reads: Action::Allow, writes: Action::Ask, executes: Action::Ask, network: Action::Ask }
    }
}

/// A call, as rules look at it.
pub(super) struct Call<'a> {
    pub(super) tool: &'a str,
    pub(super) input: &'a Value,
    pub(super) effects: Effects,
    /// What its relative paths are relative to.
    pub(super) base: Option<&'a Path>,
    /// The paths it names.
    pub(super) paths: Vec<String>,
}

impl Call<'_> {
    /// A path as it was written and made whole, `.` and `..` resolved by name, absolute and relative to the base.
    fn written(&self, path: &str) -> Vec<String> {
        let mut whole = PathBuf::new();
        for part in self.base.unwrap_or(Path::new("")).join(path).components() {
            match part {
                Component::ParentDir => drop(whole.pop()),
                Component::CurDir => {}
                part => whole.push(part),
            }
        }
        let climbs = path.split(['/', '\\']).any(|part| part == "..");
        let raw = (!climbs).then(|| path.to_owned());
        raw.into_iter().chain(spellings(&whole, self.base)).collect()
    }

    /// Where a path really leads, links followed.
    fn real(&self, path: &str) -> Vec<String> {
        let Some(base) = self.base else { return self.written(path) };
        spellings(&real_path(&base.join(path)), Some(&real_path(base)))
    }

    /// The command, for tools that start programs and take one.
    pub(super) fn command(&self) -> Option<&str> {
        let command = self.input.get("command").and_then(Value::as_str);
        command.filter(|_| self.effects.executes)
    }
}

fn spellings(whole: &Path, base: Option<&Path>) -> Vec<String> {
    let relative = base.and_then(|base| whole.strip_prefix(base).ok());
    relative.into_iter().chain([whole]).map(|path| path.to_string_lossy().into_owned()).collect()
}

impl Rule {
    pub(super) fn allowing_command(pattern: &str) -> Self {
        let command = Some(pattern.to_owned());
        Self { tool: None, effect: None, command, path: None, action: Action::Allow }
    }

    pub(super) fn action(&self) -> Action {
        self.action
    }

    pub(super) fn fits(&self, call: &Call<'_>) -> bool {
        let names_something =
            self.tool.is_some() || self.effect.is_some() || self.command.is_some() || self.path.is_some();
        let by_tool = self.tool.as_ref().is_none_or(|pattern| fits(pattern, call.tool));
        let by_effect = self.effect.is_none_or(|effect| effect.is_of(call.effects));
        names_something && by_tool && by_effect && self.fits_command(call) && self.fits_path(call)
    }

    /// To allow, the command must be plain and fit as a whole; to refuse or ask, any part of it is enough.
    fn fits_command(&self, call: &Call<'_>) -> bool {
        let Some(pattern) = &self.command else { return true };
        let Some(command) = call.command() else { return false };
        match self.action {
            Action::Allow => command::is_plainly(command, pattern),
            Action::Ask | Action::Deny => command::may_hold(command, pattern),
        }
    }

    /// To allow, every path must fit as it is written and where it really leads; to refuse or ask, one spelling of one
    /// path is enough.
    fn fits_path(&self, call: &Call<'_>) -> bool {
        let Some(pattern) = &self.path else { return true };
        let any = |spellings: &[String]| spellings.iter().any(|spelling| fits(pattern, spelling));
        match self.action {
            Action::Allow => {
                let is_allowed = |path: &String| any(&call.written(path)) && any(&call.real(path));
                !call.paths.is_empty() && call.paths.iter().all(is_allowed)
            }
            Action::Ask | Action::Deny => {
                call.paths.iter().any(|path| any(&call.written(path)) || any(&call.real(path)))
            }
        }
    }
}

impl Effect {
    fn is_of(self, effects: Effects) -> bool {
        match self {
            Self::Reads => effects.reads,
            Self::Writes => effects.writes,
            Self::Executes => effects.executes,
            Self::Network => effects.network,
        }
    }
}

impl Defaults {
    /// The strictest of what the tool touches.
    pub(super) fn action(&self, effects: Effects) -> Action {
        let writes = effects.writes || effects.class.changes_the_world();
        [
            (effects.reads, self.reads),
            (writes, self.writes),
            (effects.executes, self.executes),
            (effects.network, self.network),
        ]
        .into_iter()
        .filter_map(|(touches, action)| touches.then_some(action))
        .max()
        .unwrap_or(Action::Allow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rule(value: Value) -> Rule {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_rule_fits_when_everything_it_names_fits() {
        let written = |path: &str, wanted: Value| {
            let input = json!({ "file_path": path });
            let base = Some(Path::new("/nowhere/work"));
            let paths = vec![path.to_owned()];
            rule(wanted).fits(&Call {
                tool: "write_file",
                input: &input,
                effects: Effects::WRITES,
                base,
                paths,
            })
        };
        let sources = || json!({"tool": "write_*", "path": "src/*", "action": "allow"});
        assert!(written("src/a.rs", sources()) && written("./src/a.rs", sources()));
        assert!(written("/nowhere/work/src/a.rs", sources()));
        assert!(!written("src/../../etc/passwd", sources()) && !written("src/../a", sources()));
        assert!(!written("a", json!({"tool": "write_*", "effect": "network", "action": "deny"})));
        assert!(!written("a", json!({"action": "allow"})), "a rule that names nothing fits nothing");
        for path in ["/nowhere/secret/a", "../secret/a", "x/../../secret/a"] {
            assert!(written(path, json!({"path": "/nowhere/secret/*", "action": "deny"})), "{path}");
        }
        assert!(!written("../other", json!({"path": "/nowhere/secret/*", "action": "deny"})));
    }

    #[test]
    fn the_strictest_effect_decides() {
        let defaults = Defaults { network: Action::Deny, ..Defaults::default() };
        assert_eq!(defaults.action(Effects::PURE), Action::Allow);
        assert_eq!(defaults.action(Effects::READS), Action::Allow);
        assert_eq!(defaults.action(Effects::WRITES), Action::Ask);
        assert_eq!(defaults.action(Effects::UNKNOWN), Action::Deny);
        let quiet = Effects { writes: false, ..Effects::WRITES };
        assert_eq!(defaults.action(quiet), Action::Ask, "a class that changes the world is a write");
    }
}
