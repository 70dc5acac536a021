//! What a command's output means for the event.

use amplifier_core::contracts::HookEvent;
use amplifier_protocol::hook::{
    HookAction, HookResult, Injection, InjectionRole, MessageLevel, Question, UserMessage,
};
use amplifier_protocol::text::{sanitize, shorten};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// How many characters of a reason are passed on.
const REASON: usize = 4_000;

/// The JSON a command may print. All of it is optional; what is not named here is ignored.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Said {
    decision: Option<String>,
    reason: Option<String>,
    #[serde(rename = "continue")]
    goes_on: Option<bool>,
    stop_reason: Option<String>,
    context_injection: Option<String>,
    additional_context: Option<String>,
    new_content: Option<Value>,
    updated_input: Option<Value>,
    system_message: Option<String>,
    suppress_output: bool,
    /// Keys that replace those of the event.
    modify: Option<Map<String, Value>>,
    hook_specific_output: Option<Specific>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Specific {
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Value>,
    additional_context: Option<String>,
}

/// What the standard output of a command that ended well means.
pub(super) fn read(stdout: &str, event: &HookEvent) -> HookResult {
    let text = stdout.trim();
    if text.is_empty() {
        return HookResult::proceed();
    }
    match serde_json::from_str::<Value>(text) {
        // The kernel's own form, for those who know it.
        Ok(value) if value.get("action").is_some() => {
            serde_json::from_value(value).unwrap_or_else(|error| unread(&error))
        }
        Ok(value @ Value::Object(_)) => match serde_json::from_value::<Said>(value) {
            Ok(said) => said.into_result(event),
            Err(error) => unread(&error),
        },
        // Plain words are for the model where the convention says so, and for nobody elsewhere.
        _ if matches!(event.name.as_str(), "prompt:submit" | "session:start" | "session:resume") => {
            inject(text)
        }
        _ => HookResult::proceed(),
    }
}

/// An answer in a known form with the wrong content: what it wanted to forbid is not known, so nothing goes on.
fn unread(error: &serde_json::Error) -> HookResult {
    HookResult::deny(format!("the answer of a command cannot be read: {error}"))
}

/// The reason on standard error, or what to say instead.
pub(super) fn reason(stderr: &str, otherwise: &str) -> String {
    let said = sanitize(stderr.trim()).into_owned();
    if said.is_empty() {
        format!("refused by `{}`", short(otherwise))
    } else {
        shorten(&said, REASON).into_owned()
    }
}

/// A command as it is named in messages.
pub(super) fn short(command: &str) -> String {
    let line: String = sanitize(command).split_whitespace().collect::<Vec<_>>().join(" ");
    shorten(&line, 60).into_owned()
}

impl Said {
    fn into_result(mut self, event: &HookEvent) -> HookResult {
        let specific = self.hook_specific_output.take().unwrap_or_default();
        let reason = self.reason.take().or(specific.permission_decision_reason.clone());
        let said = |otherwise: &str| reason.clone().unwrap_or_else(|| otherwise.to_owned());
        let decision = specific.permission_decision.as_deref().or(self.decision.as_deref());
        let action = match decision {
            Some("block" | "deny") => HookAction::Deny { reason: said("refused by a command") },
            _ if self.goes_on == Some(false) => {
                let stop = self.stop_reason.take();
                HookAction::Deny { reason: stop.unwrap_or_else(|| said("stopped by a command")) }
            }
            Some("ask") => {
                HookAction::AskUser(Question { prompt: said("Allow this operation?"), ..Question::default() })
            }
            _ => self.softer(event, &specific),
        };
        let message = self.system_message.take().filter(|text| !text.is_empty());
        let message = message.map(|text| UserMessage { text, level: MessageLevel::Info, source: None });
        let data = match &action {
            HookAction::Modify => self.changed(event, &specific),
            _ => None,
        };
        let suppress_output = self.suppress_output;
        // What a command gave as its reason is in the action already, as the denial or the question.
        HookResult { action, data, message, reason: None, suppress_output, extra: Map::new() }
    }

    fn softer(&self, event: &HookEvent, specific: &Specific) -> HookAction {
        if self.changed(event, specific).is_some() {
            return HookAction::Modify;
        }
        let context = [&self.context_injection, &self.additional_context, &specific.additional_context];
        match context.into_iter().flatten().find(|text| !text.is_empty()) {
            Some(text) => inject(text).action,
            None => HookAction::Continue,
        }
    }

    /// The event's data with what the command wants changed; nothing when it wants nothing.
    fn changed(&self, event: &HookEvent, specific: &Specific) -> Option<Map<String, Value>> {
        let mut data = event.data.clone();
        data.extend(self.modify.clone().unwrap_or_default());
        if let Some(input) = specific.updated_input.as_ref().or(self.updated_input.as_ref()) {
            data.insert("tool_input".to_owned(), input.clone());
        }
        if let Some(content) = &self.new_content {
            put_content(&mut data, event.name.as_str(), content);
        }
        (data != event.data).then_some(data)
    }
}

/// Where the content of an event stands.
fn put_content(data: &mut Map<String, Value>, event: &str, content: &Value) {
    match event {
        "prompt:submit" => drop(data.insert("prompt".to_owned(), content.clone())),
        "tool:pre" => {
            if let Some(Value::Object(input)) = data.get_mut("tool_input") {
                input.insert("content".to_owned(), content.clone());
            }
        }
        "tool:post" => {
            let mut result =
                data.get("result").filter(|result| result.is_object()).cloned().unwrap_or(json!({}));
            if let Some(result) = result.as_object_mut() {
                result.insert("output".to_owned(), content.clone());
            }
            data.insert("result".to_owned(), result);
        }
        _ => drop(data.insert("modified_content".to_owned(), content.clone())),
    }
}

fn inject(text: &str) -> HookResult {
    HookAction::InjectContext(Injection {
        text: text.to_owned(),
        role: InjectionRole::default(),
        ephemeral: false,
        append_to_last_tool_result: false,
    })
    .into()
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
