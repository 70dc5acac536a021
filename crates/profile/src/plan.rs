//! A compiled profile to a mount plan: nested with hints, or in the string form with `file://` sources.
//!
//! Every value keeps the place that set it. Context folders and the body are no part of a plan: they reach the session
//! through mentions and the system prompt.

use std::fs;
use std::path::Path;

use amplifier_bundle::bundle::Modules;
use amplifier_bundle::node::{Mapping, Mark, Node, NodeValue, put};
use amplifier_bundle::notice::Notice;
use amplifier_bundle::origin::Place;
use amplifier_bundle::plan::PlanDraft;
use amplifier_protocol::mount_plan::PlanForm;

use crate::chain::Profile;
use crate::compile::is_current;
use crate::error::ProfileError;
use crate::lock_file::ProfileLock;
use crate::mount_type::MountType;
use crate::profiles::Profiles;
use crate::reference::Slot;
use crate::share::ProfileId;

/// The plan of a profile.
#[derive(Debug)]
pub struct ProfilePlan {
    pub profile: Profile,
    pub plan: PlanDraft,
    /// Whether the profile was compiled from the texts that are there now.
    pub freshness: PlanFreshness,
}

/// Whether a plan and the folders beside it are of one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanFreshness {
    Current,
    /// A text was edited after the profile was compiled.
    Edited,
}

impl ProfilePlan {
    /// What is worth telling about its texts.
    pub fn notices(&self) -> &[Notice] {
        &self.profile.notices
    }
}

impl Profiles {
    /// Makes the mount plan of a compiled profile.
    pub fn plan(&self, id: &ProfileId, form: PlanForm) -> Result<ProfilePlan, ProfileError> {
        let dir = self.share.profile_dir(id);
        let not_compiled = || ProfileError::NotCompiled { id: id.to_string(), path: dir.clone() };
        if !dir.is_dir() {
            return Err(not_compiled());
        }
        let profile = self.load(id)?;
        let lock = ProfileLock::read(&dir).ok_or_else(not_compiled)?;
        let plan = Planner { profile: &profile, lock: &lock, form }.plan()?;
        let freshness =
            if is_current(&profile, &lock) { PlanFreshness::Current } else { PlanFreshness::Edited };
        Ok(ProfilePlan { profile, plan, freshness })
    }
}

struct Planner<'p> {
    profile: &'p Profile,
    lock: &'p ProfileLock,
    form: PlanForm,
}

impl Planner<'_> {
    fn plan(&self) -> Result<PlanDraft, ProfileError> {
        let composed = &self.profile.composed;
        let mut root = Mapping::new();
        let mut sections = Mapping::new();
        if let Some(session) = &composed.session {
            put(&mut root, "session", self.session(session, &mut sections));
        }
        root.extend(sections);
        let lists = [
            (MountType::Providers, &composed.providers),
            (MountType::Tools, &composed.tools),
            (MountType::Hooks, &composed.hooks),
        ];
        for (mount, modules) in lists {
            let list = self.list(mount, modules);
            if self.form == PlanForm::Nested || list.as_list().is_some_and(|items| !items.is_empty()) {
                put(&mut root, mount.as_str(), list);
            }
        }
        let agents = self.agents()?;
        if self.form == PlanForm::Nested || !agents.is_empty() {
            put(&mut root, "agents", Node::map(agents, &self.start()));
        }
        Ok(PlanDraft::new(root))
    }

    /// The place of what nobody wrote: the name of the profile.
    fn start(&self) -> Place {
        let named = self.profile.head().and_then(|head| head.name.as_ref());
        let session = self.profile.composed.session.as_ref();
        match (named, session) {
            (Some(name), _) => name.place.clone(),
            (None, Some(session)) => session.place.clone(),
            (None, None) => {
                Place::start(&std::sync::Arc::new(amplifier_bundle::origin::SourceFile::new("", "")))
            }
        }
    }

    fn session(&self, session: &Node, sections: &mut Mapping) -> Node {
        let mut rest = session.as_map().cloned().unwrap_or_default();
        rest.retain(|_, entry| entry.node.mark != Mark::Delete);
        let mut ordered = Mapping::new();
        for mount in [MountType::Orchestrator, MountType::Context] {
            let Some(entry) = rest.shift_remove(mount.as_str()) else { continue };
            let written = rest.shift_remove(&format!("{mount}_source"));
            let mut node = entry.node;
            if node.as_map().is_none() {
                let mut module = Mapping::new();
                let place = node.place.clone();
                put(&mut module, "module", node);
                module.extend(written.map(|source| ("source".to_owned(), source)));
                node = Node::map(module, &place);
            }
            let node = self.module(mount, node);
            if self.form == PlanForm::Nested || !in_strings(mount, &node, &mut ordered, sections) {
                put(&mut ordered, mount.as_str(), node);
            }
        }
        for key in ["injection_budget_per_turn", "injection_size_limit"] {
            ordered.extend(rest.shift_remove(key).map(|entry| (key.to_owned(), entry)));
        }
        ordered.extend(rest);
        let mut node = session.clone();
        node.value = NodeValue::Map(ordered);
        node
    }

    fn list(&self, mount: MountType, modules: &Modules) -> Node {
        let present = modules.entries.iter().filter(|module| module.node.mark != Mark::Delete);
        let nodes: Vec<_> = present.map(|module| self.module(mount, module.node.clone())).collect();
        let place = nodes.first().map(|node| node.place.clone()).or_else(|| modules.place.clone());
        Node::new(NodeValue::List(nodes), place.unwrap_or_else(|| self.start()))
    }

    /// An entry with its keys in the order in which plans are written, its source a hint or an address in `share/`.
    fn module(&self, mount: MountType, mut node: Node) -> Node {
        let mut rest = match &mut node.value {
            NodeValue::Map(mapping) => std::mem::take(mapping),
            _ => return node,
        };
        rest.retain(|_, entry| entry.node.mark != Mark::Delete && !entry.node.is_null());
        let id = rest.get("module").and_then(|entry| entry.node.as_text()).unwrap_or_default().to_owned();
        let mut ordered = Mapping::new();
        ordered.extend(rest.shift_remove_entry("module"));
        let written = rest.shift_remove("source");
        match self.source(mount, &id) {
            Some(source) => {
                let mut source =
                    Node::text(source, written.as_ref().map_or(&node.place, |entry| &entry.node.place));
                if let Some(written) = &written {
                    source.overrode.clone_from(&written.node.overrode);
                }
                put(&mut ordered, "source", source);
            }
            None => ordered.extend(written.map(|entry| ("source".to_owned(), entry))),
        }
        // `id` is what people call the name of a provider's instance.
        if mount == MountType::Providers && !rest.contains_key("instance_id") {
            ordered.extend(rest.shift_remove("id").map(|entry| ("instance_id".to_owned(), entry)));
        }
        for key in ["instance_id", "native"] {
            ordered.extend(rest.shift_remove_entry(key));
        }
        match rest.shift_remove_entry("config") {
            Some(config) => ordered.extend([config]),
            None => put(&mut ordered, "config", Node::map(Mapping::new(), &node.place)),
        }
        ordered.extend(rest);
        node.value = NodeValue::Map(ordered);
        node
    }

    /// How the plan names the folder of a module; `None` when the profile brings none.
    fn source(&self, mount: MountType, id: &str) -> Option<String> {
        self.lock.resources.find(Slot::Module(mount), id)?;
        let dir = &self.profile.dir;
        Some(match self.form {
            PlanForm::Nested => self.profile.id.to_string(),
            PlanForm::Strings => file_url(&dir.join(mount.as_str()).join(id)),
        })
    }

    fn agents(&self) -> Result<Mapping, ProfileError> {
        let mut agents = Mapping::new();
        for (name, agent) in &self.profile.composed.agents {
            if agent.entry.mark == Mark::Delete {
                continue;
            }
            let Some(reference) = &agent.entry.reference else {
                put(&mut agents, name, Node::map(agent.entry.definition.clone(), &agent.entry.place));
                continue;
            };
            let path = self.profile.dir.join("agents").join(format!("{name}.md"));
            let content = fs::read_to_string(&path).map_err(ProfileError::io("read", &path))?;
            let source = match self.form {
                PlanForm::Nested => format!("{}:agents/{name}.md", self.profile.id.collection),
                PlanForm::Strings => {
                    let locked = self.lock.resources.find(Slot::Agent, name);
                    locked.map_or_else(|| reference.text.clone(), |locked| locked.reference.clone())
                }
            };
            let place = &reference.place;
            let mut metadata = Mapping::new();
            put(&mut metadata, "source", Node::text(source, place));
            let mut entry = Mapping::new();
            put(&mut entry, "content", Node::text(content, place));
            put(&mut entry, "metadata", Node::map(metadata, place));
            let mut node = Node::map(entry, place);
            node.overrode.clone_from(&agent.overrode);
            put(&mut agents, name, node);
        }
        Ok(agents)
    }
}

/// Writes a slot in the string form; says no when that would lose something.
fn in_strings(mount: MountType, node: &Node, session: &mut Mapping, sections: &mut Mapping) -> bool {
    let Some(entry) = node.as_map() else { return false };
    let fits = entry.iter().all(|(key, entry)| match key.as_str() {
        "module" | "source" => entry.node.as_text().is_some(),
        "config" => entry.node.as_map().is_some(),
        _ => false,
    });
    let (true, Some(module)) = (fits, entry.get("module")) else { return false };
    put(session, mount.as_str(), module.node.clone());
    if let Some(source) = entry.get("source") {
        put(session, &format!("{mount}_source"), source.node.clone());
    }
    let config = entry.get("config").filter(|entry| entry.node.as_map().is_some_and(|map| !map.is_empty()));
    if let Some(config) = config {
        let mut section = Mapping::new();
        section.insert("config".to_owned(), config.clone());
        put(sections, mount.as_str(), Node::map(section, &node.place));
    }
    true
}

fn file_url(path: &Path) -> String {
    format!("file://{}", path.display())
}
