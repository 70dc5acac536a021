//! Events of a session's life and of its modules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{APP, Event, KERNEL};
use crate::ids::{ModuleId, SessionId};
use crate::module_info::ModuleKind;
use crate::spend::Amounts;
use crate::status::{SessionState, SessionStatus};

/// A session runs its first turn. Emitted once in a session's life.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionStart {
    /// The session.
    pub session_id: SessionId,
    /// Its parent, for a child.
    pub parent_id: Option<SessionId>,
    /// What the plan says under `session.metadata`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The plan with secrets redacted, when the plan asks for it with `session.raw`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

impl Event for SessionStart {
    const NAME: &'static str = "session:start";
    const EMITTER: &'static str = KERNEL;
}

/// A session that was opened again runs its first turn since. Emitted instead of `session:start`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionResume {
    /// The session.
    pub session_id: SessionId,
    /// Its parent, for a child.
    pub parent_id: Option<SessionId>,
    /// What the plan says under `session.metadata`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The plan with secrets redacted, when the plan asks for it with `session.raw`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

impl Event for SessionResume {
    const NAME: &'static str = "session:resume";
    const EMITTER: &'static str = KERNEL;
}

/// A child session is open, its modules are ready.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionFork {
    /// The parent.
    pub parent: SessionId,
    /// The child.
    pub session_id: SessionId,
    /// What the plan says under `session.metadata`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The plan with secrets redacted, when the plan asks for it with `session.raw`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

impl Event for SessionFork {
    const NAME: &'static str = "session:fork";
    const EMITTER: &'static str = KERNEL;
}

/// A session is about to be cleaned up. Emitted once, while its modules still stand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionEnd {
    /// The session.
    pub session_id: SessionId,
    /// How its last turn stood.
    pub status: SessionState,
    /// What it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<SessionStatus>,
}

impl Event for SessionEnd {
    const NAME: &'static str = "session:end";
    const EMITTER: &'static str = KERNEL;
}

/// A module's ready callback failed; the session goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModuleReadyFailed {
    /// The module.
    pub module_id: ModuleId,
    /// What happened.
    pub error: String,
}

impl Event for ModuleReadyFailed {
    const NAME: &'static str = "module:on_session_ready_failed";
    const EMITTER: &'static str = KERNEL;
}

/// A provider, tool or hook did not come up; the session goes on without it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModuleLoadFailed {
    /// The module.
    pub module_id: ModuleId,
    /// What it would have been.
    pub module_type: ModuleKind,
    /// What happened, with every cause.
    pub error: String,
}

impl Event for ModuleLoadFailed {
    const NAME: &'static str = "module:load_failed";
    const EMITTER: &'static str = KERNEL;
}

/// Something the person should know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserNotification {
    /// The text.
    pub message: String,
    /// `info`, `warning` or `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Who says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl Event for UserNotification {
    const NAME: &'static str = "user:notification";
    const EMITTER: &'static str = APP;
}

/// What the application knows about a session beside its plan. A key that is absent stays as it was told before.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionDescribed {
    /// The folder it was started in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// What it was started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<SessionOrigin>,
    /// What the person calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it branched off another session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkPoint>,
}

impl Event for SessionDescribed {
    const NAME: &'static str = "session:described";
    const EMITTER: &'static str = APP;
}

/// What a session was started from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionOrigin {
    /// Which kind of thing.
    pub kind: OriginKind,
    /// Its reference, id or path, without credentials.
    pub reference: String,
    /// The hash of the plan as the origin gave it, before the person's choices were put in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_hash: Option<String>,
}

/// Which kind of thing a session was started from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OriginKind {
    /// A bundle.
    Bundle,
    /// A profile of a collection.
    Profile,
    /// A mount plan in a file.
    Plan,
}

/// Where a session branched off another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkPoint {
    /// The other session.
    pub session: SessionId,
    /// The last turn they share.
    pub turn: u64,
}

/// The conversation goes back to the end of an earlier turn. The next record that replaces the messages does it; nothing
/// is deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionRewound {
    /// The last turn that counts; 0 is the time before the first.
    pub to: u64,
}

impl Event for SessionRewound {
    const NAME: &'static str = "session:rewound";
    const EMITTER: &'static str = APP;
}

/// A child spent something. It stands in the journal of every session above, so that a limit on all of them together
/// outlives a restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionChildSpent {
    /// The child.
    pub child: SessionId,
    /// What it and its own children spent since this was last told.
    pub spent: Amounts,
}

impl Event for SessionChildSpent {
    const NAME: &'static str = "session:child_spent";
    const EMITTER: &'static str = KERNEL;
}
