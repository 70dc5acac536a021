//! Calls into the world: models and tools. Each has a limit, a deadline, an owner, a record and a way to cancel.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::event::CallStalled;
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::record::{CallOutcome, RecordBody};
use amplifier_protocol::spend::{Amounts, Unit};
use amplifier_protocol::time::Timestamp;
use amplifier_protocol::tool::{EffectClass, ToolCall, ToolResult};
use amplifier_protocol::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::Coordinator;
use crate::cancel::{CancelLevel, CancelToken};
use crate::contracts::{DeltaSink, Provider, ProviderCx, Pulse, ToolCx, TurnError};
use crate::error::panic_text;
use crate::estimate::estimate_tokens;
use crate::journal::JournalError;
use crate::ledger::{Admission, CallBound, LimitReached, Reservation};
use crate::loader::near_misses;
use crate::sync::lock;

/// A call that runs now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// The module that is waited for.
    pub owner: String,
    /// What was called.
    pub operation: String,
    /// Since when.
    pub since: Timestamp,
}

/// Why a call gave no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No such tool.
    #[error("Tool '{name}' not found{}", did_you_mean(near))]
    UnknownTool {
        /// The name.
        name: String,
        /// Names that are close.
        near: Vec<String>,
    },
    /// No such provider.
    #[error("provider `{name}` is not mounted{}", did_you_mean(near))]
    UnknownProvider {
        /// The name.
        name: String,
        /// Names that are close.
        near: Vec<String>,
    },
    /// A limit stands against it.
    #[error(transparent)]
    Limit(#[from] LimitReached),
    /// The turn was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// What is about to happen could not be written down, so it did not happen.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The model call failed.
    #[error(transparent)]
    Model(#[from] LlmError),
    /// The module panicked or did not answer in time.
    #[error("`{owner}` {message}")]
    Broken {
        /// The module.
        owner: String,
        /// What happened.
        message: String,
    },
}

fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) }
}

impl From<CallError> for TurnError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Limit(limit) => Self::Limit(limit),
            CallError::Cancelled => Self::Cancelled,
            CallError::Journal(error) => Self::Journal { message: error.message },
            CallError::Model(error) => Self::Model(error),
            other => Self::Broken { message: other.to_string() },
        }
    }
}

/// What is called, for watch and records.
pub(super) struct Watched<'a> {
    pub(super) owner: &'a str,
    pub(super) operation: &'a str,
    pub(super) deadline: Duration,
    pub(super) pulse: Pulse,
}

impl Coordinator {
    /// The calls that run now, oldest first.
    pub fn in_flight(&self) -> Vec<InFlight> {
        lock(&self.0.in_flight).clone()
    }

    /// Runs one tool call. What the tool itself reports, good or bad, is the result; an error means that the tool was
    /// not run to its end.
    pub async fn call_tool(&self, call: &ToolCall) -> Result<ToolResult, CallError> {
        let Some(mounted) = self.mounted_tool(&call.name) else {
            let known = self.mounted(&super::MountPoint::Tools);
            return Err(CallError::UnknownTool {
                name: call.name.clone(),
                near: near_misses(&call.name, &known),
            });
        };
        if self.cancel().is_cancelled() {
            return Err(CallError::Cancelled);
        }
        let owner = mounted.tool.owner.as_str();
        let one = Amounts { tool_calls: 1, ..Amounts::default() };
        let reserved = self.ledger().reserve(owner, one)?;
        let effect = mounted.effects.class;
        let announced = self.announce(&call.id, owner, &call.name, effect, || call.arguments.clone()).await;
        let reserved = begun(reserved, announced)?;
        self.update_status(|status| status.tool_invocations += 1);
        let running = RunningTool::start(self.cancel(), call);

        let cx = ToolCx { call_id: call.id.clone(), cancel: self.cancel().clone(), pulse: Pulse::default() };
        let watched = Watched {
            owner,
            operation: &call.name,
            deadline: self.deadlines().tool,
            pulse: cx.pulse.clone(),
        };
        let (tool, input) = (Arc::clone(&mounted.tool.item), call.arguments.clone());
        let answer = self.watch(watched, async move { tool.execute(input, &cx).await }).await;

        drop(running);
        reserved.settle(one);
        let answer = answer.map(|answer| match answer {
            Ok(output) => ToolResult::success(output),
            Err(failure) => ToolResult::from(failure),
        });
        let succeeded = answer.as_ref().is_ok_and(|result| result.success);
        self.update_status(|status| match succeeded {
            true => status.tool_successes += 1,
            false => status.tool_failures += 1,
        });
        self.finish(&call.id, answer.as_ref().map(|result| json!(result)));
        answer
    }

    /// Makes one model call. The pieces of the answer go to `deltas` as they come.
    pub async fn call_provider(
        &self,
        name: &str,
        request: ChatRequest,
        deltas: DeltaSink,
    ) -> Result<ChatResponse, CallError> {
        let Some(mounted) = self.mounted_provider(name) else {
            let known = self.mounted(&super::MountPoint::Providers);
            return Err(CallError::UnknownProvider {
                name: name.to_owned(),
                near: near_misses(name, &known),
            });
        };
        if self.cancel().is_cancelled() {
            return Err(CallError::Cancelled);
        }
        let owner = mounted.owner.as_str();
        let reserved = self.admit_call(owner, &*mounted.item, &request).await?;
        let request_id = format!("{}-{}", self.session_id(), self.next_number());
        let effect = EffectClass::Idempotent;
        let announced = self.announce(&request_id, owner, "provider.complete", effect, || Value::Null).await;
        let announced = match announced {
            Ok(()) if self.has_parent() => Box::pin(self.sync_above()).await,
            other => other,
        };
        let reserved = begun(reserved, announced)?;

        let cx = ProviderCx {
            request_id: request_id.clone(),
            cancel: self.cancel().clone(),
            deltas,
            pulse: Pulse::default(),
        };
        let deadline = request.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let watched = Watched {
            owner,
            operation: "provider.complete",
            deadline: deadline.unwrap_or(self.deadlines().provider),
            pulse: cx.pulse.clone(),
        };
        let provider = Arc::clone(&mounted.item);
        let answer = self.watch(watched, async move { provider.complete(request, &cx).await }).await;
        let answer = match answer {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                Err(CallError::Model(LlmError { request_id: Some(request_id.clone()), ..error }))
            }
            Err(CallError::Broken { owner, message }) => {
                let late = LlmError::new(LlmErrorKind::Timeout, format!("`{owner}` {message}"));
                let (provider, request_id) = (Some(name.to_owned()), Some(request_id.clone()));
                Err(CallError::Model(LlmError { provider, request_id, ..late }))
            }
            Err(other) => Err(other),
        };
        // What a failed call cost is unknown; its step was taken.
        let usage = answer.as_ref().ok().and_then(|response| response.usage.as_ref());
        reserved.settle(Amounts::of_model_call(usage));
        self.count(usage);
        self.finish(&request_id, answer.as_ref().map(|response| json!({"usage": response.usage})));
        self.tell_spending();
        answer
    }

    /// Adds what a model call consumed to the status. A provider may report any number.
    fn count(&self, usage: Option<&Usage>) {
        self.update_status(|status| {
            let (input, output) = usage.map_or((0, 0), |usage| (usage.input_tokens, usage.output_tokens));
            status.total_input_tokens = status.total_input_tokens.saturating_add(input);
            status.total_output_tokens = status.total_output_tokens.saturating_add(output);
            if let Some(cost) = usage.and_then(|usage| usage.cost_usd) {
                status.cost_usd = Some(status.cost_usd.unwrap_or_default() + cost);
            }
        });
    }

    /// Holds back what a model call may take, as soon as there is room for it.
    async fn admit_call(
        &self,
        owner: &str,
        provider: &dyn Provider,
        request: &ChatRequest,
    ) -> Result<Reservation, CallError> {
        let expected = self.expected_spend(request);
        let is_limited = self.ledger().limits(Unit::Tokens) || self.ledger().limits(Unit::CostNanos);
        let bound = if is_limited { provider.bound(request) } else { CallBound::default() };
        match self.ledger().admit(owner, expected, bound)? {
            Admission::Now(reserved) => Ok(reserved),
            // Boxed: seldom needed, and every call would carry its size.
            Admission::Later(_) => Box::pin(self.wait_for_room(owner, expected, bound)).await,
        }
    }

    /// Waits while other calls of the tree run that could pass a limit together with this one.
    async fn wait_for_room(
        &self,
        owner: &str,
        expected: Amounts,
        bound: CallBound,
    ) -> Result<Reservation, CallError> {
        // Whoever is waited for has met its own deadline by then, unless it waits for this call.
        let patience = self.deadlines().provider;
        tokio::select! {
            biased;
            () = self.cancel().cancelled(CancelLevel::Graceful) => Err(CallError::Cancelled),
            admitted = self.ledger().admit_later(owner, expected, bound, patience) => Ok(admitted?),
        }
    }

    /// What a model call will spend at most, as far as anybody limits it.
    fn expected_spend(&self, request: &ChatRequest) -> Amounts {
        let mut amounts = Amounts { steps: 1, ..Amounts::default() };
        if self.ledger().limits(Unit::Tokens) {
            let sent: u64 = request.messages.iter().map(|m| estimate_tokens(&m.content.visible_text())).sum();
            amounts.tokens = sent.saturating_add(request.max_output_tokens.unwrap_or(0));
        }
        amounts
    }

    /// Writes down that a call is about to begin, and makes that durable when the call changes the world.
    async fn announce(
        &self,
        call_id: &str,
        owner: &str,
        operation: &str,
        effect: EffectClass,
        input: impl FnOnce() -> Value,
    ) -> Result<(), JournalError> {
        self.record(|| RecordBody::CallStarted {
            call_id: call_id.to_owned(),
            owner: owner.to_owned(),
            operation: operation.to_owned(),
            effect,
            input: input(),
        });
        if effect.changes_the_world() { self.sync_journal().await } else { Ok(()) }
    }

    fn finish(&self, call_id: &str, answer: Result<Value, &CallError>) {
        self.record(|| RecordBody::CallFinished {
            call_id: call_id.to_owned(),
            outcome: match answer {
                Ok(result) => CallOutcome::Answered { result },
                Err(error) => CallOutcome::Failed { error: error.to_string() },
            },
        });
    }

    /// Runs a call in a task of its own, so that not even one that blocks its thread can hang the session, and waits
    /// for it: until it answers, its deadline passes without a sign of life, or an immediate cancel and a short grace.
    pub(super) async fn watch<T: Send + 'static>(
        &self,
        call: Watched<'_>,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, CallError> {
        let deadline = self.ledger().wall_time_left().map_or(call.deadline, |left| left.min(call.deadline));
        let mut task = pin!(Task(tokio::spawn(Self::at_this_depth(future))));
        let entered = self.enter(call.owner, call.operation);
        let broken = |message: String| CallError::Broken { owner: call.owner.to_owned(), message };
        let answered = |answer: Result<T, tokio::task::JoinError>| {
            answer.map_err(|error| match error.try_into_panic() {
                Ok(panic) => broken(format!("panicked: {}", panic_text(&*panic))),
                Err(_) => CallError::Cancelled,
            })
        };
        let stall = self.deadlines().stall;
        let (mut beats, mut quiet, mut reported) = (call.pulse.count(), Duration::ZERO, false);
        loop {
            let next = if reported || stall >= deadline { deadline } else { stall };
            tokio::select! {
                biased;
                answer = task.as_mut() => return answered(answer),
                () = self.cancel().cancelled(CancelLevel::Immediate) => break,
                () = tokio::time::sleep(next.saturating_sub(quiet)) => {}
            }
            quiet = next;
            let now = call.pulse.count();
            if now != beats {
                (beats, quiet, reported) = (now, Duration::ZERO, false);
            } else if quiet >= deadline {
                self.ledger().out_of_time(call.owner)?;
                return Err(broken(format!("gave no sign of life for {:.1} s", deadline.as_secs_f64())));
            } else {
                reported = true;
                let (owner, operation) = (call.owner.to_owned(), call.operation.to_owned());
                let (waited_ms, deadline_ms) = (millis(quiet), millis(deadline));
                let stalled = CallStalled { owner, operation, waited_ms, deadline_ms };
                // Boxed: seldom needed, and every call would carry its size.
                Box::pin(self.report(stalled)).await;
            }
        }
        drop(entered);
        match tokio::time::timeout(self.deadlines().cancel_grace, task).await {
            Ok(answer) => answered(answer),
            Err(_) => Err(CallError::Cancelled),
        }
    }

    pub(super) fn enter(&self, owner: &str, operation: &str) -> Entered<'_> {
        let since = self.0.recorder.now();
        let entry = InFlight { owner: owner.to_owned(), operation: operation.to_owned(), since };
        lock(&self.0.in_flight).push(entry.clone());
        Entered { coordinator: self, entry }
    }
}

/// A call that could not be announced did not begin, so nothing of what was held back for it is spent.
fn begun(reserved: Reservation, announced: Result<(), JournalError>) -> Result<Reservation, JournalError> {
    match announced {
        Ok(()) => Ok(reserved),
        Err(error) => {
            reserved.release();
            Err(error)
        }
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Says that a tool runs, until it ends or whoever waits for it goes away.
struct RunningTool<'a> {
    cancel: &'a CancelToken,
    call_id: &'a str,
}

impl<'a> RunningTool<'a> {
    fn start(cancel: &'a CancelToken, call: &'a ToolCall) -> Self {
        cancel.register_tool_start(&call.id, &call.name);
        Self { cancel, call_id: &call.id }
    }
}

impl Drop for RunningTool<'_> {
    fn drop(&mut self) {
        self.cancel.register_tool_complete(self.call_id);
    }
}

/// Takes a call off the list however it ends.
pub(super) struct Entered<'a> {
    coordinator: &'a Coordinator,
    entry: InFlight,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut in_flight = lock(&self.coordinator.0.in_flight);
        if let Some(at) = in_flight.iter().position(|known| *known == self.entry) {
            in_flight.remove(at);
        }
    }
}

/// A task that ends with whoever waits for it.
struct Task<T>(JoinHandle<T>);

impl<T> Future for Task<T> {
    type Output = Result<T, tokio::task::JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
