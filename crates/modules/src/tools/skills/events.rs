//! The events of skills.

use amplifier_protocol::event::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Found, Skill};

const EMITTER: &str = "tool";

/// The session knows its skills.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct SkillsDiscovered {
    /// How many.
    pub(super) skill_count: usize,
    /// Their names.
    pub(super) skill_names: Vec<String>,
    /// The folders they are in.
    pub(super) sources: Vec<String>,
}

impl SkillsDiscovered {
    pub(super) fn of(found: &Found) -> Self {
        let mut sources: Vec<String> = Vec::new();
        for skill in &found.skills {
            let source = skill.root.display().to_string();
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        let skill_names: Vec<_> = found.skills.iter().map(|skill| skill.name.clone()).collect();
        Self { skill_count: skill_names.len(), skill_names, sources }
    }
}

impl Event for SkillsDiscovered {
    const NAME: &'static str = "skills:discovered";
    const EMITTER: &'static str = EMITTER;
}

/// The model read a skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct SkillLoaded {
    /// The skill.
    pub(super) skill_name: String,
    /// The folder it was found in.
    pub(super) source: String,
    /// How many characters its text has.
    pub(super) content_length: usize,
    /// Its version, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    /// Its own folder.
    pub(super) skill_directory: String,
}

impl SkillLoaded {
    pub(super) fn of(skill: &Skill, content_length: usize) -> Self {
        Self {
            skill_name: skill.name.clone(),
            source: skill.root.display().to_string(),
            content_length,
            version: skill.version.clone(),
            skill_directory: skill.folder.display().to_string(),
        }
    }
}

impl Event for SkillLoaded {
    const NAME: &'static str = "skill:loaded";
    const EMITTER: &'static str = EMITTER;
}

/// The session ends for a skill that was read in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct SkillUnloaded {
    /// The skill.
    pub(super) skill_name: String,
}

impl Event for SkillUnloaded {
    const NAME: &'static str = "skill:unloaded";
    const EMITTER: &'static str = EMITTER;
}
