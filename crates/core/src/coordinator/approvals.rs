//! The approval desk: one question at a time, equal questions once, silence and failure mean the default.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use amplifier_protocol::event::{ApprovalDenied, ApprovalGranted, ApprovalRequired};
use amplifier_protocol::hook::{ApprovalDecision, ApprovalDefault, AskedCall, Question};
use amplifier_protocol::text::shorten;
use serde_json::json;
use tokio::sync::{Semaphore, watch};

use super::Coordinator;
use crate::cancel::CancelLevel;
use crate::contracts::ApprovalError;
use crate::hooks::{Decision, Sourced};
use crate::sync::lock;

pub(super) struct Desk {
    // One person, one question at a time.
    queue: Semaphore,
    open: Mutex<HashMap<String, watch::Receiver<Option<Verdict>>>>,
    always: Mutex<HashSet<String>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Verdict {
    Granted { answer: String, decision: ApprovalDecision },
    Denied { reason: String },
}

impl Desk {
    pub(super) fn new() -> Self {
        Self { queue: Semaphore::new(1), open: Mutex::default(), always: Mutex::default() }
    }
}

/// Takes an open question off the desk however its asker ends.
struct OpenQuestion<'a> {
    desk: &'a Desk,
    key: &'a str,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        lock(&self.desk.open).remove(self.key);
    }
}

impl Coordinator {
    /// Puts every question in turn; the first refusal ends it.
    pub(super) async fn ask_all(
        &self,
        questions: Vec<Sourced<Question>>,
        call: Option<AskedCall>,
    ) -> Decision {
        for Sourced { hook, item } in questions {
            let item = Question { call: call.clone(), ..item };
            if let Verdict::Denied { reason } = self.ask(&item).await {
                return Decision::Deny { reason, hook };
            }
        }
        Decision::Proceed
    }

    async fn ask(&self, question: &Question) -> Verdict {
        let key = same_question(question);
        let desk = &self.0.desk;
        loop {
            if lock(&desk.always).contains(&key) {
                let answer = "allowed always before".to_owned();
                return Verdict::Granted { answer, decision: ApprovalDecision::AllowAlways };
            }
            let (sender, joined) = {
                let mut open = lock(&desk.open);
                match open.get(&key) {
                    Some(asked) => (None, asked.clone()),
                    None => {
                        let (sender, receiver) = watch::channel(None);
                        open.insert(key.clone(), receiver.clone());
                        (Some(sender), receiver)
                    }
                }
            };
            let Some(sender) = sender else {
                let mut joined = joined;
                match joined.wait_for(Option::is_some).await {
                    Ok(verdict) => match &*verdict {
                        Some(verdict) => return verdict.clone(),
                        None => continue,
                    },
                    // Whoever asked was cancelled before an answer came: ask ourselves.
                    Err(_) => continue,
                }
            };
            let taken_off = OpenQuestion { desk, key: &key };
            let verdict = self.put(question).await;
            if matches!(&verdict, Verdict::Granted { decision: ApprovalDecision::AllowAlways, .. }) {
                lock(&desk.always).insert(key.clone());
            }
            sender.send_replace(Some(verdict.clone()));
            drop(taken_off);
            return verdict;
        }
    }

    async fn put(&self, question: &Question) -> Verdict {
        let tool_name = question.call.as_ref().map(|call| call.tool_name.clone());
        let action = Some(question.prompt.clone());
        let risk_level = question.call.as_ref().map(|call| call.effects.risk_level().to_owned());
        let asked = question.prompt.clone();
        self.report(ApprovalRequired { tool_name: tool_name.clone(), action: asked, risk_level }).await;
        let verdict = tokio::select! {
            biased;
            // Already a graceful one: who is asked about what would begin has nothing running to wait for.
            () = self.cancel().cancelled(CancelLevel::Graceful) => Verdict::denied("cancelled before an answer"),
            verdict = self.answer(question) => verdict,
        };
        match verdict.clone() {
            Verdict::Granted { answer: reason, decision } => {
                self.report(ApprovalGranted { tool_name, reason, decision: Some(decision), action }).await;
            }
            Verdict::Denied { reason } => self.report(ApprovalDenied { tool_name, reason, action }).await,
        }
        verdict
    }

    async fn answer(&self, question: &Question) -> Verdict {
        let Ok(_turn) = self.0.desk.queue.acquire().await else {
            return Verdict::denied("the approval desk is closed");
        };
        let Some(approval) = self.approval_system() else {
            return Verdict::denied("No approval system available");
        };
        let patience = question.patience();
        let asked = approval.request_approval(question.clone());
        let answer = match self.wait_for("approval", "approval.request", patience, asked).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(ApprovalError::Timeout)) | Err(crate::watch::Fault::Late { .. }) => {
                return match question.default {
                    ApprovalDefault::Allow => {
                        let answer = "Approval timeout - allowed by default".to_owned();
                        Verdict::Granted { answer, decision: ApprovalDecision::AllowOnce }
                    }
                    ApprovalDefault::Deny => Verdict::denied("Approval timeout - denied by default"),
                };
            }
            Ok(Err(error)) => return Verdict::denied(&format!("no approval: {error}")),
            Err(fault) => return Verdict::denied(&format!("no approval: the approval system {fault}")),
        };
        match question.decision(&answer) {
            ApprovalDecision::Deny => {
                Verdict::denied(&format!("User denied: {}", shorten(&question.prompt, 200)))
            }
            decision => Verdict::Granted { answer, decision },
        }
    }
}

/// What two questions must share to be one. The call belongs to it, for a prompt may be the same for every call; so does
/// what silence means, or a question that fails closed could be answered by one that does not.
fn same_question(question: &Question) -> String {
    let call = question.call.as_ref().map(|call| (&call.tool_name, &call.tool_input));
    json!([question.prompt, question.options, question.default, call]).to_string()
}

impl Verdict {
    fn denied(reason: &str) -> Self {
        Self::Denied { reason: reason.to_owned() }
    }
}
