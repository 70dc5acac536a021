//! A person who answers from a script.

use std::collections::VecDeque;
use std::sync::Mutex;

use amplifier_core::contracts::{ApprovalError, ApprovalSystem};
use amplifier_protocol::hook::{ApprovalDecision, Question};
use async_trait::async_trait;

use crate::sync::lock;

/// Gives its answers in turn, then the same one always.
pub struct ScriptedApproval {
    answers: Mutex<VecDeque<Result<String, ApprovalError>>>,
    then: Then,
    questions: Mutex<Vec<Question>>,
}

enum Then {
    Decide(ApprovalDecision),
    Silence,
}

impl ScriptedApproval {
    /// Gives these answers, then denies.
    pub fn new(answers: impl IntoIterator<Item = Result<String, ApprovalError>>) -> Self {
        let answers = Mutex::new(answers.into_iter().collect());
        Self { answers, then: Then::Decide(ApprovalDecision::Deny), questions: Mutex::default() }
    }

    /// Says yes to everything.
    pub fn allowing() -> Self {
        Self { then: Then::Decide(ApprovalDecision::AllowOnce), ..Self::new([]) }
    }

    /// Says no to everything.
    pub fn denying() -> Self {
        Self::new([])
    }

    /// Never answers.
    pub fn silent() -> Self {
        Self { then: Then::Silence, ..Self::new([]) }
    }

    /// Everything that was asked, in order.
    pub fn questions(&self) -> Vec<Question> {
        lock(&self.questions).clone()
    }
}

#[async_trait]
impl ApprovalSystem for ScriptedApproval {
    async fn request_approval(&self, question: Question) -> Result<String, ApprovalError> {
        let scripted = lock(&self.answers).pop_front();
        lock(&self.questions).push(question.clone());
        match (scripted, &self.then) {
            (Some(answer), _) => answer,
            (None, Then::Decide(decision)) => {
                let option = question.option(*decision).ok_or_else(|| ApprovalError::Unavailable {
                    message: format!("no option of `{}` means {decision:?}", question.prompt),
                })?;
                Ok(option.text.clone())
            }
            (None, Then::Silence) => std::future::pending().await,
        }
    }
}
