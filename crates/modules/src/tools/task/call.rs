//! Starting and continuing an agent: what is checked before, what is sent to the application, what is made of its answer.
//!
//! `session.spawn` gets `{agent_name, agent_config, instruction, parent_session_id, sub_session_id, depth,
//! max_recursion_depth, tool_inheritance, hook_inheritance, orchestrator_config, provider_preferences,
//! session_metadata}`, `session.resume` gets `{sub_session_id, instruction, parent_session_id}`. Both answer text or
//! `{output | response, session_id?, status?, turn_count?, cost_usd?}`.

use std::time::Duration;

use amplifier_core::contracts::{Capability, CapabilityError, ToolCx, ToolFailure};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::spend::Amounts;
use serde_json::{Map, Value, json};

use super::events::{AgentCompleted, AgentResumed, AgentSpawned};
use super::handover;
use super::{Input, Output, Task, invalid};

/// How deep this session is below the first; the application says so.
const DEPTH: &str = "self_delegation_depth";
/// Where the session remembers the sessions it started, beside those whose id tells.
const STARTED: &str = "task_sessions";
/// How many tasks the session handed out.
const COUNT: &str = "task_count";
/// What is passed on of an answer.
const MORE: [&str; 3] = ["status", "turn_count", "cost_usd"];

impl Task {
    pub(super) async fn spawn(&self, agent: &str, input: &Input, cx: &ToolCx) -> Result<Output, ToolFailure> {
        let about = self.agent(agent)?;
        self.check_room()?;
        let instruction = self.instruction(input).await?;
        let parent = self.coordinator.session_id().clone();
        let sub_session_id = sub_session_id(&parent, agent);
        let announced = AgentSpawned {
            agent: agent.to_owned(),
            sub_session_id: sub_session_id.to_string(),
            parent_session_id: parent.clone(),
            tool_call_id: cx.call_id.clone(),
        };
        if let Some(reason) = self.coordinator.emit(announced).await.denied() {
            return Err(ToolFailure::new(format!("Denied by hook: {reason}")).of_kind("Denied"));
        }
        self.coordinator.with_state(|state| {
            let count = state.get(COUNT).and_then(Value::as_u64).unwrap_or_default();
            state.insert(COUNT.to_owned(), Value::from(count + 1));
        });
        let config = &self.config;
        let arguments = json!({
            "agent_name": agent,
            "agent_config": about,
            "instruction": instruction,
            "parent_session_id": parent,
            "sub_session_id": sub_session_id,
            "depth": self.depth() + 1,
            "max_recursion_depth": config.max_recursion_depth,
            "tool_inheritance": inheritance("tools", &config.exclude_tools, config.inherit_tools.as_ref()),
            "hook_inheritance": inheritance("hooks", &config.exclude_hooks, config.inherit_hooks.as_ref()),
            "orchestrator_config": self.coordinator.plan().session.orchestrator.config,
            "provider_preferences": input.provider_preferences,
            "session_metadata": {"agent_name": agent, "tool_call_id": cx.call_id},
        });
        let answer = self.ask("session.spawn", arguments).await;
        self.conclude(Some(agent), sub_session_id.as_str(), answer, "Delegation failed").await
    }

    pub(super) async fn resume(&self, session: &str, input: &Input) -> Result<Output, ToolFailure> {
        let parent = self.coordinator.session_id().clone();
        let is_ours = session.parse::<SessionId>().is_ok() && self.started(session);
        if !is_ours {
            let message = format!(
                "Session '{session}' not found. May have expired or never existed. Only sessions that `task` started \
                 here can be gone on with."
            );
            return Err(ToolFailure::new(message).of_kind("NotFound"));
        }
        self.offered("session.resume")?;
        let announced = AgentResumed { session_id: session.to_owned(), parent_session_id: parent.clone() };
        if let Some(reason) = self.coordinator.emit(announced).await.denied() {
            return Err(ToolFailure::new(format!("Denied by hook: {reason}")).of_kind("Denied"));
        }
        let arguments = json!({
            "sub_session_id": session, "instruction": input.instruction, "parent_session_id": parent
        });
        let answer = self.ask("session.resume", arguments).await;
        self.conclude(None, session, answer, "Resume failed").await
    }

    /// What is said about an agent.
    fn agent(&self, name: &str) -> Result<Map<String, Value>, ToolFailure> {
        if let Some(about) = self.agents.get(name) {
            return Ok(about.clone());
        }
        let names: Vec<_> = self.agents.keys().map(String::as_str).collect();
        Err(ToolFailure::new(format!("Agent '{name}' not found. Available: [{}]", names.join(", ")))
            .of_kind("NotFound"))
    }

    /// Whether there is a way to start an agent, and room for one, before anything is announced.
    fn check_room(&self) -> Result<(), ToolFailure> {
        self.offered("session.spawn")?;
        let (depth, deepest) = (self.depth(), self.config.max_recursion_depth);
        let refused = |message: String| ToolFailure::new(message).of_kind("LimitReached");
        if depth >= deepest {
            return Err(refused(format!(
                "this session is {depth} deep and `max_recursion_depth` is {deepest}: do the task here instead of \
                 handing it on"
            )));
        }
        let count = self.coordinator.with_state(|state| state.get(COUNT).and_then(Value::as_u64));
        if count.unwrap_or_default() >= self.config.max_tasks {
            let most = self.config.max_tasks;
            return Err(refused(format!("{most} tasks were handed out (`max_tasks`); do the rest here")));
        }
        // Asked for and given back at once: the ledger says now, in its own words, what it would refuse later.
        let one = Amounts { spawns: 1, steps: 1, ..Amounts::default() };
        match self.coordinator.ledger().reserve("tool-task", one) {
            Ok(room) => {
                room.release();
                Ok(())
            }
            Err(limit) => Err(refused(format!("Delegation failed: {limit}; do the task here"))),
        }
    }

    fn offered(&self, name: &str) -> Result<(), ToolFailure> {
        match self.coordinator.capability(name) {
            Some(Capability::Call(_)) => Ok(()),
            _ => Err(ToolFailure::new(format!(
                "agents cannot be run here: the application offers no `{name}`; do the task yourself"
            ))
            .of_kind("Unavailable")),
        }
    }

    async fn ask(&self, name: &str, arguments: Value) -> Result<Value, CapabilityError> {
        let asked = self.coordinator.call_capability(name, arguments);
        let Some(limit) = self.config.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        else {
            return asked.await;
        };
        tokio::time::timeout(limit, asked).await.unwrap_or_else(|_| {
            let seconds = limit.as_secs_f64();
            let message = format!(
                "no answer within {seconds} s (`timeout` of `tool-task`); give the agent a smaller task"
            );
            Err(CapabilityError::Failed { name: name.to_owned(), message })
        })
    }

    fn depth(&self) -> u64 {
        match self.coordinator.capability(DEPTH) {
            Some(Capability::Value(depth)) => depth.as_u64().unwrap_or_default(),
            // Nobody says: a child is at least one deep.
            _ => u64::from(self.coordinator.parent_id().is_some()),
        }
    }

    /// Whether a session was started by this one: its id says so, or it was noted.
    fn started(&self, session: &str) -> bool {
        let parent = self.coordinator.session_id().as_str();
        let below = session.strip_prefix(parent).is_some_and(|rest| rest.starts_with('-'));
        below
            || self.coordinator.with_state(|state| {
                let started = state.get(STARTED).and_then(Value::as_array);
                started.is_some_and(|started| started.iter().any(|known| known == session))
            })
    }

    async fn instruction(&self, input: &Input) -> Result<String, ToolFailure> {
        let Some(context) = self.coordinator.context() else { return Ok(input.instruction.clone()) };
        if input.inherit_context == handover::Handover::None {
            return Ok(input.instruction.clone());
        }
        let messages = context.messages().await.map_err(|error| {
            invalid(format!("the conversation cannot be handed over ({error}); use `inherit_context: none`"))
        })?;
        let turns = input.inherit_context_turns.min(self.config.max_context_turns);
        let most = self.config.max_context_chars;
        Ok(handover::with_context(&messages, input.inherit_context, turns, most, &input.instruction))
    }

    /// Says how it ended and makes an answer of it.
    async fn conclude(
        &self,
        agent: Option<&str>,
        session: &str,
        answer: Result<Value, CapabilityError>,
        failed: &str,
    ) -> Result<Output, ToolFailure> {
        let answer = answer.and_then(|answer| read(answer, session));
        let error = answer.as_ref().err().map(|error| match error {
            CapabilityError::Failed { message, .. } => message.clone(),
            other => other.to_string(),
        });
        let sub_session_id = answer.as_ref().map_or(session, |(_, id, _)| id.as_str()).to_owned();
        let completed = AgentCompleted {
            agent: agent.map(str::to_owned),
            sub_session_id: sub_session_id.clone(),
            parent_session_id: self.coordinator.session_id().clone(),
            success: answer.is_ok(),
            error: error.clone(),
        };
        self.coordinator.emit(completed).await;
        let Ok((text, _, more)) = answer else {
            let message = format!("{failed}: {}", error.unwrap_or_default());
            return Err(ToolFailure::new(message).of_kind("DelegationFailed"));
        };
        self.remember(&sub_session_id);
        let (response, left_out_chars) = handover::shortened(text, self.config.max_response_chars);
        Ok(Output {
            response,
            session_id: sub_session_id,
            agent: agent.map(str::to_owned),
            left_out_chars,
            more,
        })
    }

    fn remember(&self, session: &str) {
        if self.started(session) {
            return;
        }
        self.coordinator.with_state(|state| {
            let known = state.entry(STARTED).or_insert_with(|| json!([]));
            if let Value::Array(known) = known {
                known.push(json!(session));
            }
        });
    }
}

/// `<parent>-<random>_<agent>`: it sorts with its parent, and its agent can be read off, in lower case, words joined by `-`.
fn sub_session_id(parent: &SessionId, agent: &str) -> SessionId {
    let words = agent.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let tidy = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    let short: String = tidy.chars().take(64).collect();
    let agent = match short.trim_end_matches('-') {
        "" => "agent",
        agent => agent,
    };
    let child = parent.child();
    // Too long a name for a folder: then without the agent.
    format!("{child}_{agent}").parse().unwrap_or(child)
}

fn inheritance(what: &str, exclude: &[String], inherit: Option<&Vec<String>>) -> Value {
    let mut rules = Map::new();
    if !exclude.is_empty() {
        rules.insert(format!("exclude_{what}"), json!(exclude));
    }
    if let Some(inherit) = inherit {
        rules.insert(format!("inherit_{what}"), json!(inherit));
    }
    Value::Object(rules)
}

/// The text, the session and the rest of an application's answer.
fn read(answer: Value, session: &str) -> Result<(String, String, Map<String, Value>), CapabilityError> {
    let mut answer = match answer {
        Value::String(text) => return Ok((text, session.to_owned(), Map::new())),
        Value::Object(answer) => answer,
        other => {
            let (name, message) = ("session.spawn".to_owned(), format!("an answer nobody can read: {other}"));
            return Err(CapabilityError::Failed { name, message });
        }
    };
    let mut text = |key: &str| match answer.shift_remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let said = text("output").or_else(|| text("response")).unwrap_or_default();
    let session = text("session_id").unwrap_or_else(|| session.to_owned());
    answer.retain(|key, value| MORE.contains(&key.as_str()) && !value.is_null());
    Ok((said, session, answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_safe_whatever_the_agent_is_called() {
        let parent: SessionId = "p".parse().unwrap();
        for (agent, name) in [
            ("My/Agent ..:x", "_my-agent-x"),
            ("Foo:Bar/Baz.qux__x", "_foo-bar-baz-qux-x"),
            ("--a--", "_a"),
            ("…", "_agent"),
        ] {
            let id = sub_session_id(&parent, agent);
            assert!(id.as_str().starts_with("p-") && id.as_str().ends_with(name), "{id}");
        }
        let long: SessionId = "p".repeat(250).parse().unwrap();
        assert!(!sub_session_id(&long, "agent").as_str().contains('_'));
    }

    #[test]
    fn both_shapes_of_an_answer_are_read() {
        assert_eq!(read(json!("hi"), "s").unwrap().0, "hi");
        let (text, session, more) =
            read(json!({"output": "o", "session_id": "t", "status": "ok", "x": 1}), "s").unwrap();
        assert_eq!((text.as_str(), session.as_str(), more.len()), ("o", "t", 1));
        assert!(read(json!(7), "s").is_err());
    }
}
