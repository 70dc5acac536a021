//! `profile.lock`: what every reference of a compiled profile was, so that a change is seen and nothing is fetched twice.

use std::path::Path;

use amplifier_protocol::time::Timestamp;
use amplifier_sources::tree::ContentHash;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::mount_type::MountType;
use crate::reference::{Reference, Slot};

/// The name of the file.
pub const LOCK_FILE: &str = "profile.lock";

/// The form of the file that is written here.
pub const LOCK_VERSION: u32 = 1;

/// What a profile was compiled from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileLock {
    /// UTC, to the second.
    pub generated_at: String,
    /// SHA-256 of `profile.md`, in hex.
    pub profile_hash: String,
    pub resources: LockedResources,
    /// The profiles below, nearest first: an edit there is an edit here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extends: Vec<LockedBase>,
    #[serde(default)]
    pub lock_version: u32,
}

/// Everything that was brought, by kind.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LockedResources {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestrator: Option<LockedResource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<LockedResource>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<LockedResource>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<LockedResource>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<LockedResource>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub agents: IndexMap<String, LockedResource>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub contexts: IndexMap<String, LockedResource>,
}

/// One thing that was brought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedResource {
    /// The id of a module; agents and contexts are named by their key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// As the profile has it, made absolute, without credentials.
    #[serde(rename = "ref")]
    pub reference: String,
    /// For git: the commit it stood for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Of what lies in the folder of the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<ContentHash>,
    pub resolved_at: String,
}

/// A profile of the chain below.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedBase {
    pub profile: String,
    pub hash: String,
}

impl ProfileLock {
    /// The lock of a profile's folder. One that is missing, broken or newer than this program is none: compiling anew
    /// costs little and is always right.
    pub fn read(dir: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(dir.join(LOCK_FILE)).ok()?;
        serde_json::from_str(&text).ok().filter(|lock: &Self| lock.lock_version <= LOCK_VERSION)
    }

    /// The text of the file.
    pub(crate) fn to_text(&self) -> Result<String, serde_json::Error> {
        Ok(format!("{}\n", serde_json::to_string_pretty(self)?))
    }
}

impl LockedResources {
    /// What the lock says about a reference.
    pub fn find(&self, slot: Slot, name: &str) -> Option<&LockedResource> {
        let named =
            |list: &'_ [LockedResource]| list.iter().position(|locked| locked.name.as_deref() == Some(name));
        let one = |locked: &Option<LockedResource>| {
            locked.as_ref().is_some_and(|locked| locked.name.as_deref() == Some(name))
        };
        match slot {
            Slot::Module(MountType::Orchestrator) if one(&self.orchestrator) => self.orchestrator.as_ref(),
            Slot::Module(MountType::Context) if one(&self.context) => self.context.as_ref(),
            Slot::Module(MountType::Orchestrator | MountType::Context) => None,
            Slot::Module(MountType::Providers) => self.providers.get(named(&self.providers)?),
            Slot::Module(MountType::Tools) => self.tools.get(named(&self.tools)?),
            Slot::Module(MountType::Hooks) => self.hooks.get(named(&self.hooks)?),
            Slot::Agent => self.agents.get(name),
            Slot::Context => self.contexts.get(name),
        }
    }

    /// All of it.
    pub fn all(&self) -> impl Iterator<Item = &LockedResource> {
        let lists = [&self.providers, &self.tools, &self.hooks].into_iter().flatten();
        let named = self.agents.values().chain(self.contexts.values());
        self.orchestrator.iter().chain(&self.context).chain(lists).chain(named)
    }

    /// Adds what a reference became.
    pub(crate) fn add(&mut self, reference: &Reference, mut locked: LockedResource) {
        let name = reference.name.clone();
        if let Slot::Module(_) = reference.slot {
            locked.name = Some(name.clone());
        }
        match reference.slot {
            Slot::Module(MountType::Orchestrator) => self.orchestrator = Some(locked),
            Slot::Module(MountType::Context) => self.context = Some(locked),
            Slot::Module(MountType::Providers) => self.providers.push(locked),
            Slot::Module(MountType::Tools) => self.tools.push(locked),
            Slot::Module(MountType::Hooks) => self.hooks.push(locked),
            Slot::Agent => {
                self.agents.insert(name, locked);
            }
            Slot::Context => {
                self.contexts.insert(name, locked);
            }
        }
    }

    /// How many things there are.
    pub fn count(&self) -> usize {
        let one = usize::from(self.orchestrator.is_some()) + usize::from(self.context.is_some());
        let lists = self.providers.len() + self.tools.len() + self.hooks.len();
        one + lists + self.agents.len() + self.contexts.len()
    }
}

/// A time as the lock has it: UTC, to the second, with `Z`.
pub(crate) fn stamp(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{}Z", text.get(..19).unwrap_or(&text))
}
