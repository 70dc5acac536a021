//! One command or one question, waiting for its event: whether it is meant, what it gets, what its answer means.

use std::path::PathBuf;

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler};
use amplifier_core::coordinator::Coordinator;
use amplifier_protocol::event::{Event, SessionEnd};
use amplifier_protocol::hook::{HookResult, MessageLevel};
use async_trait::async_trait;
use regex::Regex;
use serde_json::{Value, json};

use super::answer;
use super::ask::{Decision, Question};
use super::config::{OnFailure, common_name};
use super::run::{Program, Ran};

/// What a handler does.
pub(super) enum Work {
    Run(Program),
    Ask(Question),
}

/// A command or a question that is ready.
pub(super) struct Handler {
    pub(super) work: Work,
    pub(super) folder: PathBuf,
    /// How it is named in messages.
    pub(super) name: String,
    pub(super) matcher: Option<Regex>,
    pub(super) on_failure: OnFailure,
    pub(super) coordinator: Coordinator,
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
        let mut input = event.payload();
        input.insert("event".to_owned(), json!(name));
        input.insert("hook_event_name".to_owned(), json!(common_name(name)));
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
            OnFailure::Warn => HookResult::proceed().showing(told, MessageLevel::Warning),
        })
    }
}
