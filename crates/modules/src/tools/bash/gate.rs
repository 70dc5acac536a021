//! The gate: before a command the policy is unsure about, a person is asked, with the exact command.
//!
//! Asking happens on the way to the tool, so the gate notes what it asked about, and the tool runs no such command
//! without a note: neither one that a later hook put in its place, nor one of a loop that asks nobody.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler};
use amplifier_protocol::event::{Event, ToolPre};
use amplifier_protocol::hook::{ApprovalOption, HookAction, HookResult, Question};
use amplifier_protocol::text::visible;
use async_trait::async_trait;
use serde_json::Value;

use super::bench::Bench;
use super::config::Approval;
use super::policy::{Judgement, Verdict};

/// Older notes are forgotten; their commands are asked about again.
const MOST: usize = 256;

/// The commands that a person was asked about and that have not run yet.
#[derive(Default)]
pub(super) struct Asked(Mutex<VecDeque<String>>);

impl Asked {
    fn note(&self, command: &str) {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.len() >= MOST {
            asked.pop_front();
        }
        asked.push_back(command.to_owned());
    }

    /// Takes one note of the command, if there is one.
    pub(super) fn take(&self, command: &str) -> bool {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match asked.iter().position(|known| known == command) {
            Some(at) => asked.remove(at).is_some(),
            None => false,
        }
    }
}

/// Whether a judged command needs a person.
pub(super) fn needs_asking(judged: &Judgement, approval: Approval) -> bool {
    match (judged.verdict, approval) {
        (Verdict::Deny, _) | (_, Approval::Never) => false,
        (Verdict::Ask, _) | (_, Approval::Always) => true,
        (Verdict::Allow, Approval::Risky) => false,
    }
}

pub(super) struct Gate {
    bench: Arc<Bench>,
}

impl Gate {
    pub(super) fn new(bench: Arc<Bench>) -> Self {
        Self { bench }
    }
}

#[async_trait]
impl HookHandler for Gate {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        if event.name.as_str() != ToolPre::NAME || event.data.get("tool_name") != Some(&Value::from("bash")) {
            return Ok(HookResult::proceed());
        }
        // What is no command is refused by the tool, which says it better.
        let input = event.data.get("tool_input");
        let Some(command) = input.and_then(|input| input.get("command")).and_then(Value::as_str) else {
            return Ok(HookResult::proceed());
        };
        let judged = self.bench.judge(command);
        if !needs_asking(&judged, self.bench.config.require_approval) {
            return Ok(HookResult::proceed());
        }
        self.bench.asked.note(command);
        let mut prompt = format!("Run this command?\n\n{command}\n");
        if let Ok(folder) = self.bench.folder() {
            prompt.push_str(&format!("\nin {}", folder.display()));
        }
        for reason in judged.reasons() {
            prompt.push_str(&format!("\n- {reason}"));
        }
        let prompt = visible(&prompt).into_owned();
        let options = ApprovalOption::usual();
        Ok(HookAction::AskUser(Question { prompt, options, ..Question::default() }).into())
    }
}
