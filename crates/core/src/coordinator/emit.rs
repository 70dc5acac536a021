//! Events on their way out: recorded, passed through hooks, and what the hooks said applied, once.

use std::future::Future;
use std::time::Duration;

use amplifier_protocol::event::{
    CallStalled, Event, HookDenied, HookFailed, PolicyViolation, UserNotification,
};
use amplifier_protocol::hook::{AskedCall, AskedModule, HookAction, HookResult, Injection};
use amplifier_protocol::ids::{EventName, ModuleId};
use amplifier_protocol::record::RecordBody;
use amplifier_protocol::tool::Effects;
use serde_json::{Map, Value};

use super::Coordinator;
use super::injections::{InjectionRefused, Keep};
use crate::contracts::{DisplayMessage, EventStamp, HookEvent};
use crate::hooks::{Decision, Outcome, Sourced, Watch};
use crate::redact::redacted;
use crate::sync::lock;
use crate::watch::within;

/// How deep events may cause events before the kernel stops them: a hook that answers an event by emitting it again.
const MAX_DEPTH: u8 = 16;
/// How many outcomes a hosted loop may leave unapplied before the oldest is let go.
const MAX_PENDING: usize = 1_024;
/// The key under which a hosted loop hands an outcome back.
const DISPATCH_ID: &str = "dispatch_id";

tokio::task_local! {
    static DEPTH: u8;
}

/// What came of an event, with everything the hooks wanted already done.
#[derive(Debug, Clone, PartialEq)]
pub struct Emitted<E> {
    /// The event, as hooks changed it.
    pub event: E,
    /// Whether what it announced may happen; questions have been asked.
    pub decision: Decision,
    /// Whether a hook changed the event.
    pub modified: bool,
    /// What the next request shall hold at its end and no message shall keep.
    pub ephemeral: Vec<Sourced<Injection>>,
    /// What shall be stored once the caller can; empty unless the event was emitted with [`Coordinator::emit_holding`].
    pub held: Vec<Sourced<Injection>>,
}

impl<E> Emitted<E> {
    fn untouched(event: E) -> Self {
        Self { event, decision: Decision::Proceed, modified: false, ephemeral: Vec::new(), held: Vec::new() }
    }

    /// The reason, when it was denied.
    pub fn denied(&self) -> Option<&str> {
        match &self.decision {
            Decision::Deny { reason, .. } => Some(reason),
            Decision::Proceed => None,
        }
    }
}

pub(super) struct Applied {
    decision: Decision,
    ephemeral: Vec<Sourced<Injection>>,
    held: Vec<Sourced<Injection>>,
    refused: Vec<InjectionRefused>,
}

/// Whose no it was.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refuser {
    /// The hook's own.
    Hook,
    /// That of whom the hook had asked.
    Asked,
}

impl Coordinator {
    /// Whether an event of this name goes anywhere: to a handler or into the journal. Emitters of large or frequent
    /// events ask first, so that what nobody wants is not built.
    pub fn listens(&self, event: &str) -> bool {
        self.0.recorder.is_kept() || self.0.hooks.has(event)
    }

    /// Emits an event and does what the hooks say: shows, asks, stores. What is left to the caller is in the result.
    pub async fn emit<E: Event>(&self, event: E) -> Emitted<E> {
        self.emit_with(event, Keep::Store).await
    }

    /// Like [`Coordinator::emit`], but leaves lasting injections to the caller, who stores them with
    /// [`Coordinator::store_injections`]: between a call and its result nothing may stand.
    pub async fn emit_holding<E: Event>(&self, event: E) -> Emitted<E> {
        self.emit_with(event, Keep::Hold).await
    }

    async fn emit_with<E: Event>(&self, event: E, keep: Keep) -> Emitted<E> {
        if !self.listens(E::NAME) {
            return Emitted::untouched(event);
        }
        let name = EventName::of::<E>();
        let outcome = self.dispatch(name.clone(), to_map(&event)).await;
        if is_silent(&outcome) {
            return Emitted::untouched(event);
        }
        let (modified, data) = (outcome.modified, outcome.data.clone());
        // Boxed: seldom needed, and much larger than the way past it.
        let applied = Box::pin(self.apply(outcome, &name, keep)).await;
        let (event, decision) = match modified.then(|| serde_json::from_value(Value::Object(data))) {
            None => (event, applied.decision),
            Some(Ok(changed)) => (changed, applied.decision),
            // A hook wanted other data and what it gave cannot be read: going on with the old would ignore a gate.
            Some(Err(error)) => {
                let reason = format!("a hook changed `{name}` into something that cannot be read: {error}");
                let decision = Decision::Deny { reason, hook: "kernel".to_owned() };
                self.note_denial(&decision, &name, &to_map(&event), Refuser::Hook);
                (event, decision)
            }
        };
        Emitted { event, decision, modified, ephemeral: applied.ephemeral, held: applied.held }
    }

    /// Emits an event by name, for modules that define their own without a type.
    pub async fn emit_named(&self, name: EventName, data: Map<String, Value>) -> Emitted<Map<String, Value>> {
        let outcome = self.dispatch(name.clone(), data).await;
        if is_silent(&outcome) {
            return Emitted::untouched(outcome.data);
        }
        // A copy: whoever is asked reads in the data what the question is about.
        let (modified, event) = (outcome.modified, outcome.data.clone());
        let applied = Box::pin(self.apply(outcome, &name, Keep::Store)).await;
        let Applied { decision, ephemeral, held, .. } = applied;
        Emitted { event, decision, modified, ephemeral, held }
    }

    /// Asks every handler of an event for data and gathers it. No action has any effect.
    pub async fn emit_and_collect(
        &self,
        name: EventName,
        data: Map<String, Value>,
        timeout: Duration,
    ) -> Vec<Map<String, Value>> {
        let event = self.stamped(name, data);
        self.0.hooks.collect(event, timeout).await
    }

    /// The bare dispatch for loops that apply by themselves: nothing is applied until the result comes back through
    /// [`Coordinator::process_hook_result`].
    pub async fn dispatch_for_remote(&self, name: EventName, data: Map<String, Value>) -> HookResult {
        let outcome = self.dispatch(name, data).await;
        let mut result = outcome.to_result();
        if !is_silent(&outcome) {
            // Never a number again: a result that comes back twice must not meet another's outcome.
            let id = self.next_number();
            let mut pending = lock(&self.0.pending);
            if pending.len() >= MAX_PENDING {
                pending.shift_remove_index(0);
            }
            pending.insert(id, outcome);
            result.extra.insert(DISPATCH_ID.to_owned(), Value::from(id));
        }
        result
    }

    /// Applies one result for a loop that dispatches by itself, and says what is left of it.
    ///
    /// A result that came from [`Coordinator::dispatch_for_remote`] brings back everything its handlers said; handing it
    /// in twice applies it once. A result the loop made itself is applied as it is.
    pub async fn process_hook_result(
        &self,
        mut result: HookResult,
        event: &EventName,
        hook_name: &str,
    ) -> Result<HookResult, InjectionRefused> {
        let outcome = match result.extra.shift_remove(DISPATCH_ID).and_then(|id| id.as_u64()) {
            Some(id) => match lock(&self.0.pending).shift_remove(&id) {
                Some(outcome) => outcome,
                None => return Ok(result),
            },
            None => Outcome::of(hook_name, result.clone()),
        };
        let asked = !outcome.questions.is_empty();
        let applied = Box::pin(self.apply(outcome, event, Keep::Store)).await;
        if let Some(refused) = applied.refused.into_iter().find(InjectionRefused::is_too_large) {
            return Err(refused);
        }
        // What lasts is stored and what was refused is gone: only the passing words are left for the next request.
        let passing = Outcome { injections: applied.ephemeral, ..Outcome::default() }.merged_injection();
        Ok(match (asked, applied.decision, passing) {
            (true, Decision::Deny { reason, .. }, _) => HookResult::deny(reason),
            (false, Decision::Deny { .. }, _) => result,
            (true, Decision::Proceed, None) => {
                HookResult { data: result.data, ..HookAction::Continue.into() }
            }
            (true, Decision::Proceed, Some(passing)) => {
                HookResult { data: result.data, ..HookAction::InjectContext(passing).into() }
            }
            (false, Decision::Proceed, Some(passing)) => {
                HookResult { action: HookAction::InjectContext(passing), ..result }
            }
            (false, Decision::Proceed, None) => match result.action {
                HookAction::InjectContext(Injection { ephemeral: true, .. }) => {
                    HookResult { action: HookAction::Continue, ..result }
                }
                _ => result,
            },
        })
    }

    /// Records an event and passes it through its handlers. Applies nothing.
    pub(super) async fn dispatch(&self, name: EventName, data: Map<String, Value>) -> Outcome {
        let heard = self.0.hooks.has(name.as_str());
        let event = self.stamped(name, data);
        if !heard {
            return Outcome { data: event.data, ..Outcome::default() };
        }
        let depth = DEPTH.try_with(|depth| *depth).unwrap_or(0);
        if depth >= MAX_DEPTH {
            return Outcome::too_deep(event.data, &event.name, MAX_DEPTH);
        }
        // Noted and not told to hooks: the one that hangs may hear this event too.
        let told = |stalled: CallStalled| self.note(|| stalled);
        let watch = Watch { stall: self.deadlines().stall, told: &told };
        DEPTH.scope(depth + 1, self.0.hooks.dispatch_watched(event, &watch)).await
    }

    fn stamped(&self, name: EventName, data: Map<String, Value>) -> HookEvent {
        let turn = self.turn();
        let (sequence, timestamp) = self.0.recorder.record(turn, || RecordBody::Event {
            name: name.clone(),
            data: redacted(Value::Object(data.clone())),
        });
        let (session_id, parent_id) = (self.0.session_id.clone(), self.0.parent_id.clone());
        HookEvent { name, data, stamp: EventStamp { session_id, parent_id, turn, sequence, timestamp } }
    }

    async fn apply(&self, outcome: Outcome, event: &EventName, keep: Keep) -> Applied {
        for failure in outcome.failures {
            let policy = failure.policy.as_str().to_owned();
            let failed =
                HookFailed { hook: failure.hook, event: event.to_string(), error: failure.error, policy };
            if event.as_str() != HookFailed::NAME {
                self.report(failed).await;
            }
        }
        self.show(outcome.messages).await;
        let (mut decision, mut refuser) = (outcome.decision, Refuser::Hook);
        if decision == Decision::Proceed && !outcome.questions.is_empty() {
            decision = self.ask_all(outcome.questions, self.asked_call(&outcome.data)).await;
            refuser = Refuser::Asked;
        }
        self.note_denial(&decision, event, &outcome.data, refuser);
        let mut applied = Applied { decision, ephemeral: Vec::new(), held: Vec::new(), refused: Vec::new() };
        for injection in outcome.injections {
            match self.admit_injection(injection, event) {
                Err(refused) => {
                    self.report(refused.violation()).await;
                    applied.refused.push(refused);
                }
                Ok(injection) if injection.item.ephemeral => applied.ephemeral.push(injection),
                Ok(injection) if keep == Keep::Hold => applied.held.push(injection),
                Ok(injection) => self.store_injection(injection, event).await,
            }
        }
        applied
    }

    /// Keeps in the journal who refused what; nothing where it may happen.
    fn note_denial(
        &self,
        decision: &Decision,
        event: &EventName,
        data: &Map<String, Value>,
        refuser: Refuser,
    ) {
        let Decision::Deny { reason, hook } = decision else { return };
        let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
        self.note(|| HookDenied {
            hook: hook.clone(),
            event: event.to_string(),
            reason: reason.clone(),
            asked: refuser == Refuser::Asked,
            tool_name: text("tool_name"),
            tool_input: data.get("tool_input").cloned(),
            tool_call_id: text("tool_call_id"),
        });
    }

    /// The tool call that an event is about, for whoever is asked.
    fn asked_call(&self, data: &Map<String, Value>) -> Option<AskedCall> {
        let tool_name = data.get("tool_name").and_then(Value::as_str)?.to_owned();
        let tool_input = data.get("tool_input").cloned().unwrap_or_default();
        let mounted = self.mounted_tool(&tool_name);
        let effects = mounted.as_ref().map_or(Effects::UNKNOWN, |mounted| mounted.effects);
        let module = mounted.map(|mounted| Box::new(self.configured(mounted.tool.owner)));
        Some(AskedCall { tool_name, tool_input, effects, module })
    }

    /// A tool's module with what the plan says about it.
    fn configured(&self, id: ModuleId) -> AskedModule {
        let spec = self.plan().tools.iter().find(|spec| spec.module == id);
        let (source, config) =
            spec.map(|spec| (spec.source.clone(), spec.config.clone())).unwrap_or_default();
        AskedModule { id, source, config }
    }

    /// The module that a mounted tool is of, with what the plan says about it.
    pub fn tool_module(&self, name: &str) -> Option<AskedModule> {
        Some(self.configured(self.mounted_tool(name)?.tool.owner))
    }

    /// Tells hooks and journal about something the kernel saw. Only messages of the answers have an effect, so a report
    /// cannot cause a report.
    pub(crate) async fn report<E: Event>(&self, event: E) {
        if !self.listens(E::NAME) {
            return;
        }
        let outcome = self.dispatch(EventName::of::<E>(), to_map(&event)).await;
        self.show(outcome.messages).await;
    }

    /// Reports that something was refused.
    pub(crate) async fn report_refusal(&self, policy: &str, source: &str, message: String) {
        let (policy, source) = (policy.to_owned(), source.to_owned());
        self.report(PolicyViolation { policy, source, message, details: Map::new() }).await;
    }

    /// Keeps an event in the journal alone: for what is told about hooks, which must not have them called again.
    pub(super) fn note<E: Event>(&self, event: impl FnOnce() -> E) {
        self.record(|| RecordBody::Event {
            name: EventName::of::<E>(),
            data: redacted(Value::Object(to_map(&event()))),
        });
    }

    /// Runs a future as deep inside handlers as the caller is, in whatever task: events it causes are counted on.
    pub fn at_this_depth<F: Future>(future: F) -> impl Future<Output = F::Output> {
        DEPTH.scope(DEPTH.try_with(|depth| *depth).unwrap_or(0), future)
    }

    async fn show(&self, messages: Vec<Sourced<amplifier_protocol::hook::UserMessage>>) {
        if messages.is_empty() {
            return;
        }
        let display = self.display_system();
        for Sourced { hook, item } in messages {
            let source = format!("hook:{}", item.source.unwrap_or(hook));
            let message = DisplayMessage { message: item.text, level: item.level, source };
            // A display that hangs or breaks costs its screen this message: nothing in a turn may depend on being watched.
            let shown = match &display {
                Some(display) => {
                    within(self.deadlines().hook, display.show_message(message.clone())).await.is_ok()
                }
                None => false,
            };
            if !shown {
                self.note(|| UserNotification {
                    message: message.message,
                    level: Some(message.level.as_str().to_owned()),
                    source: Some(message.source),
                });
            }
        }
    }
}

/// Whether there is nothing to apply.
fn is_silent(outcome: &Outcome) -> bool {
    !outcome.modified
        && !outcome.is_denied()
        && outcome.questions.is_empty()
        && outcome.injections.is_empty()
        && outcome.messages.is_empty()
        && outcome.failures.is_empty()
}

fn to_map<E: Event>(event: &E) -> Map<String, Value> {
    match serde_json::to_value(event) {
        Ok(Value::Object(map)) => map,
        Ok(other) => Map::from_iter([("value".to_owned(), other)]),
        Err(error) => Map::from_iter([("unwritable".to_owned(), Value::String(error.to_string()))]),
    }
}
