//! The two hooks of the module: the list of skills at the end of each request, and the farewell to those that were read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler};
use amplifier_protocol::event::{Event, ProviderRequest, SessionEnd};
use amplifier_protocol::hook::HookResult;
use async_trait::async_trait;

use super::events::SkillUnloaded;
use super::{Found, Shelf, Visibility, lock};
use crate::reminder::{Place, one_line, remind};

pub(super) const NAME: &str = "hooks-skills-visibility";
/// The longest description that is shown, in characters.
const ABOUT: usize = 200;

/// Lets the model see which skills there are.
pub(super) struct Shown {
    shelf: Arc<Shelf>,
    visibility: Visibility,
    // What is stored is stored once.
    stored: AtomicBool,
}

impl Shown {
    pub(super) fn new(shelf: Arc<Shelf>, visibility: Visibility) -> Self {
        Self { shelf, visibility, stored: AtomicBool::new(false) }
    }

    fn told(&self, found: &Found) -> String {
        let mut text =
            String::from("Skills you can read with the `load_skill` tool when a task calls for one:\n");
        let most = self.visibility.max_skills_visible;
        for skill in found.skills.iter().take(most) {
            text.push_str(&format!(
                "- {}: {}\n",
                one_line(&skill.name, 64),
                one_line(&skill.description, ABOUT)
            ));
        }
        if let Some(more) = found.skills.len().checked_sub(most).filter(|more| *more > 0) {
            text.push_str(&format!("({more} more: `load_skill` with `list` or `search`)\n"));
        }
        text
    }
}

#[async_trait]
impl HookHandler for Shown {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        let found = self.shelf.known();
        if event.name.as_str() != ProviderRequest::NAME || found.skills.is_empty() {
            return Ok(HookResult::proceed());
        }
        let place = match self.visibility.ephemeral {
            true => Place::Apart,
            false if self.stored.swap(true, Ordering::Relaxed) => return Ok(HookResult::proceed()),
            false => Place::Kept,
        };
        Ok(remind(NAME, &self.told(&found), self.visibility.inject_role, place))
    }
}

/// Says when the session ends which skills were read in it.
pub(super) struct Unloading(pub(super) Arc<Shelf>);

#[async_trait]
impl HookHandler for Unloading {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        if event.name.as_str() == SessionEnd::NAME {
            let loaded = std::mem::take(&mut *lock(&self.0.loaded));
            for skill_name in loaded {
                self.0.coordinator.emit(SkillUnloaded { skill_name }).await;
            }
        }
        Ok(HookResult::proceed())
    }
}
