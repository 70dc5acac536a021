//! One bundle file, typed. `bundle:`, `meta:` and `profile:` heads are one type: an agent is a bundle with another head.
//!
//! It is what one file says, before includes and composition. Sections are checked and normalised here (null is empty,
//! relative module sources are made absolute), so that what follows meets no surprise.

mod agents;
mod context;
mod head;
mod modules;
mod read;

use std::sync::Arc;

use indexmap::IndexMap;

pub use self::agents::{Access, Roster, RosterEntry};
pub use self::context::{ContextEntry, ContextFiles, ContextForm};
pub use self::head::{HEADS, Head, HeadKind};
pub use self::modules::{MODULE_KEYS, Module, Modules};
pub use self::read::{BUNDLE_KEYS, SESSION_KEYS, SPAWN_KEYS, read, split_file};
use crate::home::Home;
use crate::node::{Mapping, Node};
use crate::origin::Place;

/// What one file says.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    /// Who it is.
    pub head: Head,
    /// What it builds on, in order.
    pub includes: Vec<Include>,
    /// The session section, a mapping.
    pub session: Option<Node>,
    /// Model providers.
    pub providers: Modules,
    /// Tools.
    pub tools: Modules,
    /// Hooks.
    pub hooks: Modules,
    /// Its agents.
    pub agents: Roster,
    /// Which agents a session of this agent may call; only agents say so.
    pub access: Option<(Access, Place)>,
    /// Files for the system prompt.
    pub context: ContextFiles,
    /// What agents inherit, a mapping.
    pub spawn: Option<Node>,
    /// The system prompt: the Markdown body.
    pub instruction: Option<Text>,
    /// What an agent says about its models: `model_role`, `provider_preferences`.
    pub models: IndexMap<String, Node>,
    /// Keys nobody reads, kept.
    pub unknown: Mapping,
    /// Where the file lives.
    pub home: Arc<Home>,
}

/// A text and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The text.
    pub text: String,
    /// Its place.
    pub place: Place,
}

/// An include as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Include {
    /// What it names: an address, a path, `namespace:path` or a registered name.
    pub reference: String,
    /// Its place.
    pub place: Place,
}
