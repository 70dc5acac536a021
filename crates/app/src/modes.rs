//! Modes of working that a person switches between turns: `normal`, and `plan`, in which nothing is changed and nothing is
//! run. The switch holds for one session; sub-sessions are not started in `plan`, because nobody would watch over them.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_core::session::Session;
use amplifier_protocol::event::{Event, ProviderRequest, ToolPre};
use amplifier_protocol::hook::{HookAction, HookResult, Injection, InjectionRole};
use amplifier_protocol::tool::Effects;
use async_trait::async_trait;

const NAME: &str = "mode";
/// Before everything that asks the person: what is refused here needs no question.
const PRIORITY: i32 = -100;

const REMINDER: &str = "<system-reminder source=\"mode\">Plan mode is on: look and think, but change nothing and run \
    nothing. Tools that write or run something are refused. Say what you would do, step by step, and let the person \
    decide.</system-reminder>";

/// How a session works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// With all its tools.
    #[default]
    Normal,
    /// Only looking.
    Plan,
}

impl Mode {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Plan => "plan",
        }
    }
}

/// Why a word is no mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no mode `{name}`; known are `normal` and `plan`")]
pub struct UnknownMode {
    name: String,
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        [Self::Normal, Self::Plan]
            .into_iter()
            .find(|mode| mode.as_str() == name)
            .ok_or_else(|| UnknownMode { name: name.to_owned() })
    }
}

/// The switch. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct ModeSwitch {
    plan: Arc<AtomicBool>,
}

impl ModeSwitch {
    /// Lets the switch act on a session.
    pub fn guard(&self, session: &Session) {
        let coordinator = session.coordinator().clone();
        let guard = Arc::new(Guard { switch: self.clone(), coordinator });
        let hooks = session.coordinator().hooks();
        let at = |pattern| HookSpec::new(pattern, NAME).priority(PRIORITY);
        hooks.on(at(EventPattern::event::<ToolPre>()).closed(), guard.clone());
        hooks.on(at(EventPattern::event::<ProviderRequest>()), guard);
    }

    /// Works in this mode from now on.
    pub fn set(&self, mode: Mode) {
        self.plan.store(mode == Mode::Plan, Ordering::Release);
    }

    /// The mode that is on.
    pub fn mode(&self) -> Mode {
        if self.plan.load(Ordering::Acquire) { Mode::Plan } else { Mode::Normal }
    }
}

struct Guard {
    switch: ModeSwitch,
    coordinator: Coordinator,
}

#[async_trait]
impl HookHandler for Guard {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        if self.switch.mode() == Mode::Normal {
            return Ok(HookResult::proceed());
        }
        if event.name.as_str() == ProviderRequest::NAME {
            let (text, role) = (REMINDER.to_owned(), InjectionRole::User);
            let injection = Injection { text, role, ephemeral: true, append_to_last_tool_result: false };
            return Ok(HookAction::InjectContext(injection).into());
        }
        let call: ToolPre =
            event.read().map_err(|error| HookFailure::new(format!("unreadable call: {error}")))?;
        let effects = self.coordinator.tool(&call.tool_name).map_or(Effects::UNKNOWN, |tool| tool.effects());
        if !effects.writes && !effects.executes {
            return Ok(HookResult::proceed());
        }
        let reason = format!("`{}` could change or run something, and plan mode is on", call.tool_name);
        Ok(HookResult::deny(reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_known_by_its_name_and_the_switch_is_shared() {
        let switch = ModeSwitch::default();
        let other = switch.clone();
        other.set("plan".parse().unwrap());
        assert_eq!(switch.mode(), Mode::Plan);
        assert_eq!(
            "fast".parse::<Mode>().unwrap_err().to_string(),
            "there is no mode `fast`; known are `normal` and `plan`"
        );
    }
}
