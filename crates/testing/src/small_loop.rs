//! The smallest loop that keeps the whole contract, written against [`Kernel`] alone: it runs here and over a wire.
//!
//! It is the measure the orchestrator suite is tested with. It runs tools one after the other and streams nothing.

use std::sync::Arc;

use amplifier_core::contracts::{DeltaSink, Orchestrator, Prompt, RequestBudget, TurnCx, TurnError};
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::event::{
    ErrorInfo, Event, ExecutionEnd, ExecutionStart, OrchestratorComplete, PromptComplete, PromptSubmit,
    ProviderError, ProviderRequest, ProviderResponse, ToolError, ToolPost, ToolPre, TurnStatus,
};
use amplifier_protocol::hook::{HookAction, HookResult, Injection};
use amplifier_protocol::ids::EventName;
use amplifier_protocol::message::{Content, Message, Role};
use amplifier_protocol::text::shorten;
use amplifier_protocol::tool::{ToolCall, ToolResult};
use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::kernel::{Inventory, Kernel, KernelLoop, LocalKernel, ToolNotRun};

/// Asks the model, runs the tools it calls, asks again, until it calls none.
pub struct SmallLoop;

#[async_trait]
impl Orchestrator for SmallLoop {
    async fn execute(&self, prompt: Prompt, cx: &TurnCx) -> Result<String, TurnError> {
        self.run(prompt, &LocalKernel(cx.clone())).await
    }
}

#[async_trait]
impl KernelLoop for SmallLoop {
    async fn run(&self, prompt: Prompt, kernel: &dyn Kernel) -> Result<String, TurnError> {
        let mut turn = Turn { kernel, rounds: 0, submitted: false, started: false };
        let end = turn.play(prompt).await;
        let (answer, status) = match end {
            Ok((text, status)) => (Ok(text), status),
            Err(error) => {
                let status = match &error {
                    TurnError::Cancelled => TurnStatus::Cancelled,
                    TurnError::Limit(_) => TurnStatus::LimitReached,
                    _ if kernel.cancel().is_cancelled() => TurnStatus::Cancelled,
                    _ => TurnStatus::Error,
                };
                (Err(error), status)
            }
        };
        turn.close(answer.as_deref().unwrap_or_default(), status).await?;
        answer
    }
}

struct Turn<'a> {
    kernel: &'a dyn Kernel,
    rounds: u64,
    submitted: bool,
    started: bool,
}

/// An event after its hooks: what they made of it, and what they want.
struct Heard<E> {
    event: E,
    result: HookResult,
}

impl<E> Heard<E> {
    fn denied(&self) -> Option<String> {
        match &self.result.action {
            HookAction::Deny { reason } => Some(reason.clone()),
            _ => None,
        }
    }
}

impl Turn<'_> {
    async fn play(&mut self, prompt: Prompt) -> Result<(String, TurnStatus), TurnError> {
        let text = match prompt {
            Prompt::Text(text) => {
                self.submitted = true;
                let heard = self.emit(PromptSubmit { prompt: text }).await?;
                if let Some(reason) = heard.denied() {
                    return Ok((format!("Operation denied: {reason}"), TurnStatus::Denied));
                }
                let text = heard.event.prompt;
                self.kernel.context().add_message(Arc::new(Message::user(text.clone()))).await?;
                text
            }
            Prompt::Continue => String::new(),
        };
        self.started = true;
        self.emit(ExecutionStart { prompt: text }).await?;
        let inventory = self.kernel.mounted().await?;
        loop {
            if self.kernel.cancel().is_cancelled() {
                return Err(TurnError::Cancelled);
            }
            let response = match self.ask(&inventory).await? {
                Ok(response) => response,
                Err(reason) => return Ok((format!("Operation denied: {reason}"), TurnStatus::Denied)),
            };
            let calls = response.calls();
            let text = response.visible_text();
            self.kernel.context().add_message(Arc::new(to_message(response, &calls))).await?;
            if calls.is_empty() {
                let status = if text.is_empty() { TurnStatus::Incomplete } else { TurnStatus::Success };
                return Ok((text, status));
            }
            self.rounds += 1;
            self.run_tools(calls).await?;
        }
    }

    /// One model call; the inner error is a hook's refusal.
    async fn ask(&self, inventory: &Inventory) -> Result<Result<ChatResponse, String>, TurnError> {
        let none = || TurnError::Broken { message: "no provider is mounted".to_owned() };
        let provider = inventory.providers.first().ok_or_else(none)?.clone();
        let asking =
            ProviderRequest { provider: provider.clone(), iteration: self.rounds + 1, ..Default::default() };
        let heard = self.emit(asking).await?;
        if let Some(reason) = heard.denied() {
            return Ok(Err(reason));
        }
        let mut messages = self.kernel.context().messages_for_request(RequestBudget::default()).await?;
        messages.extend(ephemeral(&heard.result).map(Arc::new));
        let mut request = ChatRequest::new(messages);
        request.tools = Some(inventory.tools.clone()).filter(|tools| !tools.is_empty());
        match self.kernel.complete(&provider, request, DeltaSink::default()).await {
            Ok(response) => {
                let tool_calls = u64::try_from(response.calls().len()).unwrap_or(u64::MAX);
                let usage = response.usage.clone();
                let finish_reason = response.finish_reason.clone();
                self.emit(ProviderResponse { provider, response: None, usage, tool_calls, finish_reason })
                    .await?;
                Ok(Ok(response))
            }
            Err(TurnError::Model(error)) => {
                let info = ErrorInfo { kind: error.kind.name().to_owned(), msg: error.message.clone() };
                let (retryable, status_code) = (Some(error.retryable), error.status_code);
                let request_id = error.request_id.clone();
                self.emit(ProviderError { provider, error: info, retryable, status_code, request_id })
                    .await?;
                Err(TurnError::Model(error))
            }
            Err(other) => Err(other),
        }
    }

    /// Runs every call and stores every result, whatever happens on the way. What hooks want to tell is stored after the
    /// last result: nothing may stand between calls and results.
    async fn run_tools(&self, calls: Vec<ToolCall>) -> Result<(), TurnError> {
        let mut held = Vec::new();
        let mut over = None;
        for call in calls {
            let content: Content = match &over {
                Some(error) => format!("Not run: {error}").into(),
                None => match self.run_tool(&call, &mut held).await {
                    Ok(result) => result.to_model_content(),
                    Err(ToolNotRun::Answerable { message }) => message.into(),
                    Err(ToolNotRun::Turn(error)) => {
                        let text = format!("Not run to its end: {error}");
                        over = Some(error);
                        text.into()
                    }
                },
            };
            self.kernel.context().add_message(Arc::new(Message::tool_result(&call, content))).await?;
        }
        for (event, result) in held {
            self.apply(event, result).await;
        }
        over.map_or(Ok(()), Err)
    }

    async fn run_tool(
        &self,
        call: &ToolCall,
        held: &mut Vec<(EventName, HookResult)>,
    ) -> Result<ToolResult, ToolNotRun> {
        let pre = ToolPre {
            tool_name: call.name.clone(),
            tool_input: call.arguments.clone(),
            tool_call_id: Some(call.id.clone()),
            parallel_group_id: None,
        };
        let mut heard = self.dispatch(pre).await?;
        // A question must be put before the tool runs; everything else can wait for the results.
        if matches!(heard.result.action, HookAction::AskUser(_)) {
            heard.result = self.apply(EventName::of::<ToolPre>(), heard.result).await;
        } else {
            held.push((EventName::of::<ToolPre>(), heard.result.clone()));
        }
        if let Some(reason) = heard.denied() {
            return Err(ToolNotRun::Answerable { message: format!("Denied by hook: {reason}") });
        }
        let input = heard.event.tool_input;
        let changed = ToolCall { arguments: input.clone(), ..call.clone() };
        let result = match self.kernel.execute_tool(changed).await {
            Ok(result) => result,
            Err(error) => {
                let error_info = ErrorInfo { kind: "ToolError".to_owned(), msg: error.to_string() };
                let (tool_name, tool_call_id) = (call.name.clone(), Some(call.id.clone()));
                let event = ToolError { tool_name, error: error_info, tool_call_id, parallel_group_id: None };
                let heard = self.dispatch(event).await?;
                held.push((EventName::of::<ToolError>(), heard.result));
                return Err(error);
            }
        };
        let as_json = serde_json::to_value(&result).unwrap_or(Value::Null);
        let post = ToolPost {
            tool_name: call.name.clone(),
            tool_input: input,
            result: as_json.clone(),
            tool_result: as_json,
            tool_call_id: Some(call.id.clone()),
            parallel_group_id: None,
        };
        let heard = self.dispatch(post).await?;
        held.push((EventName::of::<ToolPost>(), heard.result));
        Ok(serde_json::from_value(heard.event.result).unwrap_or(result))
    }

    /// Says that the turn is over: once, on every way out.
    async fn close(&self, answer: &str, status: TurnStatus) -> Result<(), TurnError> {
        if self.started {
            let response = answer.to_owned();
            self.emit(ExecutionEnd { response, status: status.into() }).await?;
        }
        if self.submitted {
            let length = u64::try_from(answer.chars().count()).unwrap_or(u64::MAX);
            let response_preview = shorten(answer, 200).to_string();
            self.emit(PromptComplete { response_preview, length, status: Some(status) }).await?;
        }
        let orchestrator = "loop-small".to_owned();
        self.emit(OrchestratorComplete { orchestrator, turn_count: self.rounds, status }).await?;
        Ok(())
    }

    /// Passes an event through the hooks and applies what they say.
    async fn emit<E: Event>(&self, event: E) -> Result<Heard<E>, TurnError> {
        let Heard { event, result } = self.dispatch(event).await?;
        Ok(Heard { event, result: self.apply(EventName::of::<E>(), result).await })
    }

    /// Passes an event through the hooks; what they say is not yet applied.
    async fn dispatch<E: Event>(&self, event: E) -> Result<Heard<E>, TurnError> {
        let unwritable = |error: serde_json::Error| TurnError::Broken { message: error.to_string() };
        let data: Map<String, Value> =
            serde_json::to_value(&event).and_then(serde_json::from_value).map_err(unwritable)?;
        let mut result = self.kernel.emit(EventName::of::<E>(), data).await?;
        let changed = result.data.clone().map(|data| serde_json::from_value(Value::Object(data)));
        let event = match changed {
            None => event,
            Some(Ok(changed)) => changed,
            // Going on with the old data would pass by the hook that wanted other data.
            Some(Err(error)) => {
                let reason = format!("a hook changed `{}` into something unreadable: {error}", E::NAME);
                result.action = HookAction::Deny { reason };
                event
            }
        };
        Ok(Heard { event, result })
    }

    async fn apply(&self, event: EventName, result: HookResult) -> HookResult {
        let kept = result.clone();
        match self.kernel.process_hook_result(result, event, "small-loop").await {
            Ok(left) => left,
            // What was too large was reported by the kernel; the turn goes on without it.
            Err(_) => HookResult { action: HookAction::Continue, ..kept },
        }
    }
}

/// What a hook wants the model to see once.
fn ephemeral(result: &HookResult) -> Option<Message> {
    match &result.action {
        HookAction::InjectContext(Injection { text, role, ephemeral: true, .. }) => {
            Some(Message::text((*role).into(), text.clone()))
        }
        _ => None,
    }
}

fn to_message(response: ChatResponse, calls: &[ToolCall]) -> Message {
    let mut message = Message::new(Role::Assistant, Content::Blocks(response.content));
    message.tool_calls = calls.to_vec();
    message.metadata = response.metadata.unwrap_or_default();
    message
}
