//! What was not allowed, as records tell it and in the words people are told it with.

use amplifier_core::redact::redact;
use amplifier_protocol::event::{
    ContextPreCompact, Event, HookDenied, PromptSubmit, ProviderRequest, ToolPost, ToolPre, ToolSelected,
    ToolSelecting,
};
use amplifier_protocol::text::{shorten, visible};
use serde::Deserialize;
use serde_json::Value;

/// How much of a call or a reason is told, in characters.
const TOLD: usize = 160;

/// Events that announce something which does not happen when they are denied. Of all others a denial changes nothing.
const GATES: [&str; 9] = [
    ToolPre::NAME,
    ToolPost::NAME,
    ToolSelecting::NAME,
    ToolSelected::NAME,
    PromptSubmit::NAME,
    ProviderRequest::NAME,
    ContextPreCompact::NAME,
    "task:agent_spawned",
    "task:agent_resumed",
];

/// Something that did not happen because a hook, or whom it asked, was against it.
pub struct Denial(pub HookDenied);

impl Denial {
    /// Reads the data of a `hook:denied`; nothing where the denial kept nothing from happening.
    pub fn read(data: &Value) -> Option<Self> {
        let denied = HookDenied::deserialize(data).ok()?;
        (denied.asked || GATES.contains(&denied.event.as_str())).then_some(Self(denied))
    }

    /// What the person is told; nothing where they know: who was asked knows, and a turn that was denied as a whole ends with
    /// the reason.
    pub fn told(&self) -> Option<String> {
        let HookDenied { hook, event, reason, asked, tool_name, tool_input, .. } = &self.0;
        if *asked || [PromptSubmit::NAME, ProviderRequest::NAME].contains(&event.as_str()) {
            return None;
        }
        let what = match tool_name {
            Some(name) => call(name, tool_input.as_ref().unwrap_or(&Value::Null)),
            None => format!("`{event}`"),
        };
        let what = if event == ToolPost::NAME { format!("the result of: {what}") } else { what };
        Some(format!("not allowed: {what}; `{hook}`: {}", one_line(reason)))
    }
}

/// A tool call in one line, without its secrets. A command is shown as it would run.
pub fn call(tool: &str, input: &Value) -> String {
    let (tool, input) = (visible(tool), redact(input));
    match input.get("command").and_then(Value::as_str) {
        Some(command) => format!("Run with `{tool}`: {}", one_line(command)),
        None => format!("Run `{tool}` with {}", one_line(&input.to_string())),
    }
}

/// A text as one line that is not too long: ends of lines are spelled out, so that a command stays what it is.
pub(crate) fn one_line(text: &str) -> String {
    let line = text.trim().replace('\n', "\\n");
    shorten(&visible(&line), TOLD).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(more: &Value) -> Option<Option<String>> {
        let mut data = json!({"hook": "gate", "event": "tool:pre", "reason": "not\nnow", "asked": false,
            "tool_name": "bash", "tool_input": {"command": "git push\nls"}});
        for (key, value) in more.as_object().unwrap() {
            data[key] = value.clone();
        }
        Denial::read(&data).map(|denial| denial.told())
    }

    #[test]
    fn a_call_is_told_whole_and_in_one_line() {
        let said = told(&json!({})).unwrap().unwrap();
        assert_eq!(said, "not allowed: Run with `bash`: git push\\nls; `gate`: not\\nnow");
        let long = told(&json!({"tool_input": {"command": "x".repeat(500)}})).unwrap().unwrap();
        assert!(long.contains("xxx...[truncated]; `gate`"), "{long}");
    }

    #[test]
    fn what_the_person_knows_or_what_changed_nothing_is_not_told() {
        assert_eq!(told(&json!({"asked": true})), Some(None));
        assert_eq!(told(&json!({"event": "prompt:submit"})), Some(None));
        assert_eq!(told(&json!({"event": "prompt:complete"})), None);
    }
}
