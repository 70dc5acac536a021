//! A turn set up for a check, and what came of it.

use std::sync::Arc;

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler, Orchestrator, Tool, TurnError};
use amplifier_core::hooks::HookSpec;
use amplifier_core::session::ExecuteError;
use amplifier_protocol::chat::ChatRequest;
use amplifier_protocol::event::{OrchestratorComplete, PromptComplete, TurnStatus};
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::message::{Messages, Role};
use amplifier_protocol::tool::ToolCall;
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::conformance::context::paired;
use crate::conformance::report::{Seen, ensure};
use crate::sync::parsed;
use crate::{Exhausted, MockContextManager, ScriptedProvider, Step, TestSession, TestSessionBuilder};

/// A turn that is being set up.
pub(super) struct Stage {
    builder: TestSessionBuilder,
    provider: ScriptedProvider,
}

/// A turn that was played.
pub(super) struct Played {
    pub(super) answer: Result<String, TurnError>,
    pub(super) session: TestSession,
    pub(super) provider: Arc<ScriptedProvider>,
    context: Arc<MockContextManager>,
}

impl Stage {
    pub(super) fn new(script: impl IntoIterator<Item = impl Into<Step>>) -> Self {
        Self { builder: TestSession::builder(), provider: ScriptedProvider::new(script) }
    }

    /// A model that gives its last answer for ever.
    pub(super) fn endless(mut self) -> Self {
        self.provider = self.provider.when_exhausted(Exhausted::Last);
        self
    }

    pub(super) fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.builder = self.builder.tool(tool);
        self
    }

    /// A hook that answers one event always alike.
    pub(super) fn hook(mut self, event: &str, result: HookResult) -> Self {
        let spec = HookSpec::new(parsed(event), "test-hook");
        self.builder = self.builder.hook(spec, Arc::new(Always(result)));
        self
    }

    pub(super) fn limits(mut self, limits: Value) -> Self {
        self.builder = self.builder.limits(limits);
        self
    }

    pub(super) async fn play(
        self,
        orchestrator: Arc<dyn Orchestrator>,
        prompt: &str,
    ) -> Result<Played, String> {
        let (provider, context) = (Arc::new(self.provider), Arc::new(MockContextManager::new()));
        let builder = self.builder.orchestrator(orchestrator).context(context.clone());
        let opened = builder.provider(provider.clone()).open().await;
        let session = opened.map_err(|error| format!("the session did not open: {error}"))?;
        let mut played = Played { answer: Ok(String::new()), session, provider, context };
        played.again(prompt).await?;
        Ok(played)
    }
}

impl Played {
    /// Plays another turn of the same session.
    pub(super) async fn again(&mut self, prompt: &str) -> Seen {
        self.answer = match self.session.execute(prompt).await {
            Ok(text) => Ok(text),
            Err(ExecuteError::Turn(error)) => Err(error),
            Err(other) => return Err(format!("the session refused: {other}")),
        };
        Ok(())
    }

    pub(super) fn messages(&self) -> Messages {
        self.context.messages()
    }

    pub(super) fn answered(&self, expected: &str) -> Seen {
        ensure(self.answer.as_deref() == Ok(expected), || format!("the answer is {:?}", self.answer))
    }

    pub(super) fn asked_times(&self, expected: usize) -> Seen {
        let asked = self.provider.request_count();
        ensure(asked == expected, || format!("the model was asked {asked} times, not {expected}"))
    }

    pub(super) fn request(&self, number: usize) -> Result<ChatRequest, String> {
        let request = self.provider.requests().into_iter().nth(number);
        request.ok_or_else(|| format!("the model was not asked {} times", number + 1))
    }

    /// What a tool's message says, by call id, as the next request shows it.
    pub(super) fn result_in_request(&self, number: usize, call_id: &str) -> Result<String, String> {
        let request = self.request(number)?;
        let found = request.messages.iter().find(|m| m.tool_call_id.as_deref() == Some(call_id));
        let text = found.map(|message| message.content.visible_text().into_owned());
        text.ok_or_else(|| format!("the request has no result of call `{call_id}`"))
    }

    /// Every stored call has its result right after it, and these calls are there.
    pub(super) fn paired(&self, call_ids: &[&str]) -> Seen {
        let messages = self.messages();
        paired(&messages)?;
        for id in call_ids {
            let answered = |m: &Arc<_>| result_of(m) == Some(*id);
            ensure(messages.iter().any(answered), || format!("call `{id}` has no result"))?;
        }
        Ok(())
    }

    /// The turn ended once, with one of these.
    pub(super) fn ended(&self, statuses: &[TurnStatus]) -> Seen {
        let recorder = self.session.recorder();
        let turns: Vec<_> = recorder.of::<OrchestratorComplete>().into_iter().map(|end| end.status).collect();
        ensure(turns.len() == 1, || format!("{} orchestrator:complete: {turns:?}", turns.len()))?;
        ensure(turns.iter().all(|status| statuses.contains(status)), || {
            format!("orchestrator:complete says {turns:?}, not {statuses:?}")
        })?;
        let (begun, done) = (recorder.count("prompt:submit"), recorder.of::<PromptComplete>());
        ensure(begun == 1 && done.len() == 1, || {
            format!("{begun} prompt:submit and {} prompt:complete", done.len())
        })?;
        let told = done.iter().filter_map(|end| end.status).all(|status| statuses.contains(&status));
        ensure(told, || format!("prompt:complete says {done:?}"))?;
        let (starts, ends) = (recorder.count("execution:start"), recorder.count("execution:end"));
        ensure(starts == ends, || format!("{starts} execution:start and {ends} execution:end"))
    }
}

fn result_of(message: &amplifier_protocol::message::Message) -> Option<&str> {
    message.tool_call_id.as_deref().filter(|_| message.role == Role::Tool)
}

struct Always(HookResult);

#[async_trait]
impl HookHandler for Always {
    async fn handle(&self, _event: &HookEvent) -> Result<HookResult, HookFailure> {
        Ok(self.0.clone())
    }
}

/// An answer of the model that calls one tool as `c1`, `c2` and so on.
pub(super) fn calls(tools: &[&str]) -> Step {
    let numbered = tools.iter().enumerate();
    Step::call(numbered.map(|(n, tool)| ToolCall::new(format!("c{}", n + 1), *tool, json!({"n": n + 1}))))
}
