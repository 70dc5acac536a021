//! `tool-skills`: knowledge in folders, shown step by step: the list, then a skill's text, then a file of it. It mounts
//! `load_skill`, and a hook that lets the model see which skills there are.
//!
//! A skill is a folder with a `SKILL.md` (`skills/front_matter.rs`); where they are looked for is in `skills/find.rs`.
//! Nothing of a skill is ever run: its scripts are files to read, and skills are not fetched from elsewhere.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_core::contracts::{Module, Mounted, TaskFailure, Typed};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::event::{ProviderRequest, SessionEnd};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::reminder::Voice;
use crate::table::BuiltIn;
use crate::workspace::{CAPABILITY, Workspace};

mod events;
mod find;
mod front_matter;
mod load;
mod visibility;

use events::{SkillLoaded, SkillUnloaded, SkillsDiscovered};
use find::{Found, Skill};

/// The folder that is looked in without being named, in the working folder.
const USUAL: &str = ".amplifier/skills";

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// Folders to look for skills in; the first that has a skill counts. Sources elsewhere are not supported.
    skills: Vec<String>,
    /// More such folders.
    skills_dirs: Vec<String>,
    /// One more such folder.
    skills_dir: Option<String>,
    /// How the model learns which skills there are.
    visibility: Visibility,
    /// The most bytes of a skill's text or of one of its files that are shown.
    max_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            skills: Vec::new(),
            skills_dirs: Vec::new(),
            skills_dir: None,
            visibility: Visibility::default(),
            max_bytes: 100_000,
        }
    }
}

/// How the model learns which skills there are.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Visibility {
    /// Whether it is told unasked.
    enabled: bool,
    /// In whose name.
    inject_role: Voice,
    /// The most skills that are told.
    max_skills_visible: usize,
    /// Whether it is told with each request and never stored; else it is stored once.
    ephemeral: bool,
    /// Where the hook stands among the others; lower runs first.
    priority: i32,
}

impl Default for Visibility {
    fn default() -> Self {
        Self {
            enabled: true,
            inject_role: Voice::User,
            max_skills_visible: 50,
            ephemeral: true,
            priority: 20,
        }
    }
}

/// Where a session's skills are, what was found there last, and what was loaded.
struct Shelf {
    roots: Vec<PathBuf>,
    max_bytes: usize,
    coordinator: Coordinator,
    found: Mutex<Arc<Found>>,
    loaded: Mutex<Vec<String>>,
}

impl Shelf {
    /// Looks again: folders change while a session runs.
    async fn look(&self) -> Arc<Found> {
        let roots = self.roots.clone();
        match tokio::task::spawn_blocking(move || find::skills(&roots)).await {
            Ok(found) => {
                let found = Arc::new(found);
                *lock(&self.found) = Arc::clone(&found);
                found
            }
            // It broke, or the runtime is going down: what was found before still counts.
            Err(_) => self.known(),
        }
    }

    fn known(&self) -> Arc<Found> {
        Arc::clone(&lock(&self.found))
    }
}

/// Every change under these locks is one assignment or one push, so a panic leaves nothing half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The module, as the table lists it.
pub(crate) struct Skills;

#[async_trait]
impl Module for Skills {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("tool-skills")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Tool
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        let shelf = Arc::new(Shelf {
            roots: roots(&config, cx),
            max_bytes: config.max_bytes,
            coordinator: cx.coordinator.clone(),
            found: Mutex::default(),
            loaded: Mutex::default(),
        });
        let found = shelf.look().await;
        found.warnings.iter().for_each(|warning| cx.warn(warning.clone()));
        cx.mount_tool(Arc::new(Typed(load::LoadSkill(Arc::clone(&shelf)))));
        if config.visibility.enabled {
            let spec = HookSpec::new(EventPattern::event::<ProviderRequest>(), visibility::NAME);
            let priority = config.visibility.priority;
            let hook = visibility::Shown::new(Arc::clone(&shelf), config.visibility);
            cx.on(spec.priority(priority), Arc::new(hook));
        }
        let end = HookSpec::new(EventPattern::event::<SessionEnd>(), "tool-skills");
        cx.on(end, Arc::new(visibility::Unloading(shelf)));
        let told = events::SkillsDiscovered::of(&found);
        cx.on_session_ready(async move |coordinator: Coordinator| {
            coordinator.emit(told).await;
            Ok::<(), TaskFailure>(())
        });
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for Skills {
    fn info(&self) -> ModuleInfo {
        self.about(
            "Finds folders with a SKILL.md, tells the model which there are and loads them when asked.",
        )
        .config::<Config>()
        .emits::<SkillsDiscovered>()
        .emits::<SkillLoaded>()
        .emits::<SkillUnloaded>()
        .uses("session.working_dir")
        .uses("user.home_dir")
        .uses(CAPABILITY)
    }
}

/// The folders of the config, absolute, then the usual one. What cannot be used is a warning.
fn roots(config: &Config, cx: &MountCx) -> Vec<PathBuf> {
    let session = cx.coordinator.capability_text("session.working_dir").map(PathBuf::from);
    let home = cx.coordinator.capability_text("user.home_dir").map(PathBuf::from);
    let mut roots = Vec::new();
    for text in config.skills.iter().chain(&config.skills_dirs).chain(&config.skills_dir) {
        if text.contains("://") || text.starts_with("git+") {
            cx.warn(format!(
                "skills from `{text}` are not fetched: sources elsewhere are not supported; name a folder instead"
            ));
            continue;
        }
        let path = match text.strip_prefix("~/") {
            Some(rest) => home.as_ref().map(|home| home.join(rest)),
            None => Some(session.as_ref().map_or_else(|| PathBuf::from(text), |base| base.join(text))),
        };
        match path.filter(|path| path.is_absolute()) {
            Some(path) => roots.push(path),
            None => {
                cx.warn(format!("skills folder `{text}` cannot be found from here; give an absolute path"))
            }
        }
    }
    roots.extend(session.map(|session| session.join(USUAL)));
    let workspace = Workspace::of(&cx.coordinator);
    roots.retain(|root| {
        // One that is not there yet may come while the session runs.
        let is_left_out = workspace.is_untrusted(root);
        if is_left_out && root.exists() {
            cx.warn(format!("skills of `{}` are not used: the directory is not trusted", root.display()));
        }
        !is_left_out
    });
    roots
}
