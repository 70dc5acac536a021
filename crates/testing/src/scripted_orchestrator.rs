//! A loop without a model: it answers from a script and keeps the conversation.

use std::sync::{Arc, Mutex};

use amplifier_core::contracts::{ContextError, Orchestrator, Prompt, TurnCx, TurnError};
use amplifier_protocol::message::{Message, Role};
use async_trait::async_trait;

use crate::sync::lock;

/// Gives its answers in turn, then `DONE`. Adds what was asked and answered to the context; emits nothing.
#[derive(Default)]
pub struct ScriptedOrchestrator {
    responses: Vec<String>,
    prompts: Mutex<Vec<Prompt>>,
}

impl ScriptedOrchestrator {
    /// A loop that gives these answers.
    pub fn new(responses: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let responses = responses.into_iter().map(Into::into).collect();
        Self { responses, prompts: Mutex::default() }
    }

    /// Everything it was asked, in order.
    pub fn prompts(&self) -> Vec<Prompt> {
        lock(&self.prompts).clone()
    }
}

#[async_trait]
impl Orchestrator for ScriptedOrchestrator {
    async fn execute(&self, prompt: Prompt, cx: &TurnCx) -> Result<String, TurnError> {
        let asked = match &prompt {
            Prompt::Text(text) => Some(Message::user(text.clone())),
            Prompt::Continue => None,
        };
        let number = {
            let mut prompts = lock(&self.prompts);
            prompts.push(prompt);
            prompts.len() - 1
        };
        let answer = self.responses.get(number).cloned().unwrap_or_else(|| "DONE".to_owned());
        let no_context = || ContextError::NoAnswer { message: "no context is mounted".to_owned() };
        let context = cx.coordinator.context().ok_or_else(no_context)?;
        let said = Message::text(Role::Assistant, answer.clone());
        for message in asked.into_iter().chain([said]) {
            context.add_message(Arc::new(message)).await?;
        }
        Ok(answer)
    }
}
