//! Sub-sessions: `session.spawn` runs an agent in a session of its own, `session.resume` goes on with one.
//!
//! A child gets a plan of its own (`spawn/inherit.rs`, `spawn/preferences.rs`), a folder, a journal and a prompt. It is
//! cancelled with its parent, and what it spends counts there too: that is the kernel's. How deep and how many is decided by
//! the ledger and by whoever calls.

use std::sync::{Arc, OnceLock, Weak};

use amplifier_bundle::mention::Speaker;
use amplifier_core::contracts::{CapabilityCall, CapabilityError};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::session::Session;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::record::RecordBody;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::journal::RecordReader;
use crate::open::{self, AppError, OpenSession, RecordTap, Surroundings};
use crate::profiles;
use crate::prompt::{self, PromptParts, SystemPrompt};
use crate::store::SessionStore;

mod ending;
pub mod inherit;
pub mod preferences;

use ending::Ending;
use inherit::Inheritance;
use preferences::Preference;

/// What a session needs to have children. The session's owner keeps it; the session itself only looks.
pub(crate) struct Nest {
    pub(crate) session: Session,
    pub(crate) store: SessionStore,
    pub(crate) surroundings: Surroundings,
    pub(crate) prompt: Arc<SystemPrompt>,
    /// How deep the session is below the first.
    pub(crate) depth: u64,
    /// Who looks on, and may want to look on at children too.
    pub(crate) tap: Option<Arc<dyn RecordTap>>,
}

/// The way from a session's capabilities to its nest, which exists only once the session is open.
#[derive(Default)]
pub(crate) struct Door(OnceLock<Weak<Nest>>);

impl Door {
    pub(crate) fn lead_to(&self, nest: &Arc<Nest>) {
        self.0.get_or_init(|| Arc::downgrade(nest));
    }

    pub(crate) fn nest(&self) -> Result<Arc<Nest>, SpawnError> {
        self.0.get().and_then(Weak::upgrade).ok_or(SpawnError::NotOpen)
    }
}

/// Why a sub-session gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    #[error("the session is not open")]
    NotOpen,
    #[error("the request cannot be read: {0}")]
    Request(#[from] serde_json::Error),
    #[error("agent `{name}` is not known; known are {}", amplifier_bundle::notice::quoted(known.iter().map(String::as_str)))]
    UnknownAgent { name: String, known: Vec<String> },
    #[error("the plan for agent `{agent}` cannot be read")]
    Plan {
        agent: String,
        #[source]
        source: amplifier_protocol::mount_plan::PlanError,
    },
    #[error("session `{id}` was not started by this one")]
    NotOurs { id: SessionId },
    #[error(transparent)]
    Open(#[from] AppError),
    #[error("sub-session `{id}` gave no answer: {message}")]
    Turn { id: SessionId, message: String },
}

/// What `session.spawn` is asked. Keys that are not known here are for other applications.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SpawnRequest {
    pub agent_name: String,
    /// What the plan says about the agent; looked up by name when it is left out.
    pub agent_config: Option<Map<String, Value>>,
    pub agent_configs: Map<String, Value>,
    pub instruction: String,
    pub sub_session_id: Option<SessionId>,
    pub depth: Option<u64>,
    pub self_delegation_depth: Option<u64>,
    pub tool_inheritance: Inheritance,
    pub hook_inheritance: Inheritance,
    pub orchestrator_config: Option<Map<String, Value>>,
    pub provider_preferences: Vec<Preference>,
    pub session_metadata: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct ResumeRequest {
    sub_session_id: SessionId,
    instruction: String,
}

impl Nest {
    async fn spawn(&self, mut request: SpawnRequest) -> Result<Value, SpawnError> {
        let parent = self.session.coordinator();
        let agent = self.agent(&request)?;
        let name = request.agent_name.clone();
        let plan = inherit::child_plan(parent.plan(), &agent, &request);
        let mut plan = plan.map_err(|source| SpawnError::Plan { agent: name.clone(), source })?;
        if request.provider_preferences.is_empty() {
            request.provider_preferences = preferences::of_agent(&agent)?;
        }
        preferences::apply(&mut plan, &request.provider_preferences, parent).await;
        let id = request.sub_session_id.clone().unwrap_or_else(|| parent.session_id().child());
        let parts = self.prompt_of(&agent);
        let depth = request.depth.or(request.self_delegation_depth).unwrap_or(self.depth + 1);
        let child = open::open_child(self, id, open::ChildPlan::New(Box::new(plan)), parts, depth).await?;
        answer(child, request.instruction).await
    }

    async fn resume(&self, request: ResumeRequest) -> Result<Value, SpawnError> {
        let id = request.sub_session_id;
        self.check_ours(&id)?;
        let folder = self.store.open(&id).map_err(AppError::from)?;
        let parts = PromptParts::read(&folder).map_err(AppError::from)?.unwrap_or_default();
        let child = open::open_child(self, id, open::ChildPlan::Kept, parts, self.depth + 1).await?;
        answer(child, request.instruction).await
    }

    /// What is known about an agent. `self` is the session once more.
    fn agent(&self, request: &SpawnRequest) -> Result<Map<String, Value>, SpawnError> {
        let plan: &MountPlan = self.session.coordinator().plan();
        let name = request.agent_name.as_str();
        let known = || request.agent_configs.get(name).or_else(|| plan.agents.get(name))?.as_object();
        match request.agent_config.as_ref().or_else(known) {
            Some(agent) => Ok(profiles::unfolded(agent)),
            None if name == "self" => Ok(Map::new()),
            None => Err(SpawnError::UnknownAgent {
                name: name.to_owned(),
                known: plan.agents.keys().cloned().collect(),
            }),
        }
    }

    /// An agent with words of its own has its own prompt; one without is this session once more.
    fn prompt_of(&self, agent: &Map<String, Value>) -> PromptParts {
        match profiles::instruction(agent) {
            Some(instruction) => self.prompt.parts().for_agent(instruction.to_owned()),
            None => self.prompt.parts().clone(),
        }
    }

    /// A session that somebody else started is none of ours to go on with.
    fn check_ours(&self, id: &SessionId) -> Result<(), SpawnError> {
        let folder = self.store.open(id).map_err(AppError::from)?;
        let mut records = RecordReader::open(&folder).map_err(AppError::from)?;
        let first = records.next().transpose().map_err(AppError::from)?;
        match first.map(|record| record.body) {
            Some(RecordBody::Opened { parent_id: Some(parent), .. }) if parent == *self.session.id() => {
                Ok(())
            }
            _ => Err(SpawnError::NotOurs { id: id.clone() }),
        }
    }
}

/// Asks a child and closes it. Its end does not depend on whoever waits: when nobody does any more, it is stopped.
async fn answer(child: OpenSession, instruction: String) -> Result<Value, SpawnError> {
    let id = child.session.id().clone();
    let _stop = StopWhenLeft(child.session.clone());
    let task = tokio::spawn(Coordinator::at_this_depth(async move {
        let (asked, failed) = child.expand(instruction, Speaker::Instruction).await;
        for failed in failed.iter().filter(|failed| prompt::is_worth_telling(failed)) {
            child.show(prompt::describe(failed)).await;
        }
        let ending = Ending::watch(&child.session);
        let result = child.session.execute(asked).await;
        let (turns, cost) = (child.session.status().turns, child.cost());
        let (status, metadata) = ending.told();
        child.session.cleanup().await;
        if let Err(error) = child.update_views().await {
            // The journal has everything; the views are made again when they are wanted.
            child.show(error.to_string()).await;
        }
        result.map(|output| {
            json!({
                "output": output,
                "session_id": child.session.id(),
                "status": status,
                "turn_count": turns,
                "cost_usd": cost,
                "metadata": metadata,
            })
        })
    }));
    let turn = |message: String| SpawnError::Turn { id: id.clone(), message };
    match task.await {
        Ok(answer) => answer.map_err(|error| turn(amplifier_core::error::chain(&error))),
        Err(error) => Err(turn(error.to_string())),
    }
}

/// Stops a child when whoever asked for it goes away.
struct StopWhenLeft(Session);

impl Drop for StopWhenLeft {
    fn drop(&mut self) {
        // A session that has ended does not mind.
        self.0.coordinator().cancel().request_immediate();
    }
}

/// `session.spawn`.
pub(crate) struct SpawnCall(pub(crate) Arc<Door>);

/// `session.resume`.
pub(crate) struct ResumeCall(pub(crate) Arc<Door>);

pub(crate) fn failed(name: &str, error: &SpawnError) -> CapabilityError {
    CapabilityError::Failed { name: name.to_owned(), message: amplifier_core::error::chain(error) }
}

#[async_trait]
impl CapabilityCall for SpawnCall {
    async fn call(&self, arguments: Value) -> Result<Value, CapabilityError> {
        let spawned = async {
            let request = serde_json::from_value(arguments)?;
            self.0.nest()?.spawn(request).await
        };
        spawned.await.map_err(|error| failed("session.spawn", &error))
    }
}

#[async_trait]
impl CapabilityCall for ResumeCall {
    async fn call(&self, arguments: Value) -> Result<Value, CapabilityError> {
        let resumed = async {
            let request = serde_json::from_value(arguments)?;
            self.0.nest()?.resume(request).await
        };
        resumed.await.map_err(|error| failed("session.resume", &error))
    }
}
