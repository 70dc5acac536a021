//! A composed bundle to a mount plan in its nested form, the same text for the same bundle every time.
//!
//! The plan is built as a tree of nodes first, so that every value still knows where it was set. A partial bundle gives a
//! partial plan: [`PlanDraft::to_json`] always works, [`PlanDraft::mount_plan`] wants an orchestrator and a context.
//! Metadata, includes, context files and the instruction are no part of a plan.

use amplifier_protocol::mount_plan::{MountPlan, PlanError};
use indexmap::IndexMap;
use serde_json::Value;

use crate::bundle::Modules;
use crate::compose::Composed;
use crate::explain::{self, Setting};
use crate::node::{Entry, Mapping, Mark, Node, NodeValue, put};
use crate::origin::Place;

/// A plan whose values know where they were set.
#[derive(Debug, Clone)]
pub struct PlanDraft {
    root: Mapping,
}

impl PlanDraft {
    /// A plan that was laid out elsewhere, as for a profile, whose form the draft keeps.
    pub fn new(root: Mapping) -> Self {
        Self { root }
    }

    /// The values themselves, for whoever lays something over the plan; each keeps its place.
    pub fn root_mut(&mut self) -> &mut Mapping {
        &mut self.root
    }

    /// The plan as JSON.
    pub fn to_json(&self) -> Value {
        Value::Object(crate::node::mapping_to_json(&self.root))
    }

    /// The plan, typed.
    ///
    /// # Errors
    /// [`PlanError`] with the pointer of the first value that does not fit; [`PlanDraft::place_of`] says where that
    /// value was set.
    pub fn mount_plan(&self) -> Result<MountPlan, PlanError> {
        MountPlan::read(&self.to_json())
    }

    /// Each value of the plan: where it was set, and what it overrode.
    pub fn explain(&self) -> Vec<Setting> {
        explain::settings(&self.root)
    }

    /// Where the value at a JSON pointer was set, or the closest value above it that was set anywhere.
    pub fn place_of(&self, pointer: &str) -> Option<Place> {
        let mut found = None;
        let mut at: Option<&Node> = None;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            let next = match at {
                None => self.root.get(&token).map(|entry| &entry.node),
                Some(node) => match &node.value {
                    NodeValue::Map(mapping) => mapping.get(&token).map(|entry| &entry.node),
                    NodeValue::List(items) => {
                        token.parse().ok().and_then(|index: usize| explain::present(items).nth(index))
                    }
                    _ => None,
                },
            };
            let Some(next) = next else { break };
            found = Some(next.place.clone());
            at = Some(next);
        }
        found
    }
}

/// Whether the entries of a list may carry the short name of an instance.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    Provider,
    Plain,
}

/// Makes the plan of a bundle and its agents.
pub fn draft(composed: &Composed, agents: IndexMap<String, Node>) -> PlanDraft {
    let mut root = Mapping::new();
    if let Some(session) = &composed.session
        && let Some(session) = session_node(session)
    {
        put(&mut root, "session", session);
    }
    let lists = [
        ("providers", &composed.providers, Slot::Provider),
        ("tools", &composed.tools, Slot::Plain),
        ("hooks", &composed.hooks, Slot::Plain),
    ];
    for (section, modules, slot) in lists {
        if let Some(list) = list_node(modules, slot) {
            put(&mut root, section, list);
        }
    }
    if let Some(first) = agents.values().next() {
        let place = first.place.clone();
        let mut mapping = Mapping::new();
        for (name, node) in agents {
            put(&mut mapping, &name, node);
        }
        put(&mut root, "agents", Node::map(mapping, &place));
    }
    if let Some(spawn) = &composed.spawn
        && spawn.mark != Mark::Delete
        && spawn.as_map().is_some_and(|mapping| mapping.values().any(|entry| entry.node.mark != Mark::Delete))
    {
        put(&mut root, "spawn", spawn.clone());
    }
    PlanDraft { root }
}

/// The session section with both modules nested and known keys first.
fn session_node(session: &Node) -> Option<Node> {
    if session.mark == Mark::Delete {
        return None;
    }
    let mut rest = session.as_map()?.clone();
    rest.retain(|_, entry| entry.node.mark != Mark::Delete);
    let mut ordered = Mapping::new();
    for slot in ["orchestrator", "context"] {
        let Some(entry) = rest.shift_remove(slot) else { continue };
        let node = match &entry.node.value {
            NodeValue::Text(_) => {
                let mut module = Mapping::new();
                let place = entry.node.place.clone();
                put(&mut module, "module", entry.node);
                if let Some(source) = rest.shift_remove(&format!("{slot}_source")) {
                    put(&mut module, "source", source.node);
                }
                Node::map(module, &place)
            }
            NodeValue::Null => continue,
            _ => entry.node,
        };
        ordered.insert(slot.to_owned(), Entry { key: entry.key, node: module_node(node, Slot::Plain) });
    }
    let known =
        ["injection_budget_per_turn", "injection_size_limit", "metadata", "raw", "limits", "deadlines"];
    for key in known {
        if let Some(entry) = rest.shift_remove(key)
            && says_something(key, &entry.node)
        {
            ordered.insert(key.to_owned(), entry);
        }
    }
    ordered.extend(rest);
    (!ordered.is_empty()).then(|| {
        let mut node = session.clone();
        node.value = NodeValue::Map(ordered);
        node
    })
}

/// A plan leaves out what is at its default; only a budget means something by being null.
fn says_something(key: &str, node: &Node) -> bool {
    match &node.value {
        NodeValue::Null => key.starts_with("injection_"),
        NodeValue::Bool(flag, _) => *flag || key != "raw",
        NodeValue::Map(mapping) => mapping.values().any(|entry| entry.node.mark != Mark::Delete),
        _ => true,
    }
}

fn list_node(modules: &Modules, slot: Slot) -> Option<Node> {
    let present = modules.entries.iter().filter(|module| module.node.mark != Mark::Delete);
    let nodes: Vec<_> = present.map(|module| module_node(module.node.clone(), slot)).collect();
    let place = nodes.first()?.place.clone();
    Some(Node::new(NodeValue::List(nodes), place))
}

/// An entry with its keys in the order in which plans are written.
fn module_node(mut node: Node, slot: Slot) -> Node {
    let NodeValue::Map(rest) = &mut node.value else { return node };
    let mut rest = std::mem::take(rest);
    rest.retain(|_, entry| entry.node.mark != Mark::Delete);
    // `id` is what bundles call the name of a provider's instance.
    if slot == Slot::Provider
        && rest.get("instance_id").is_none_or(|entry| entry.node.is_null())
        && rest.get("id").is_some_and(|entry| entry.node.as_text().is_some())
        && let Some(id) = rest.shift_remove("id")
    {
        rest.insert("instance_id".to_owned(), id);
    }
    let mut ordered = Mapping::new();
    for key in ["module", "source", "instance_id", "native", "config"] {
        let Some(entry) = rest.shift_remove(key) else { continue };
        let empty = match &entry.node.value {
            NodeValue::Null => true,
            NodeValue::Map(mapping) if key == "config" => {
                mapping.values().all(|entry| entry.node.mark == Mark::Delete)
            }
            _ => false,
        };
        if !empty {
            ordered.insert(key.to_owned(), entry);
        }
    }
    ordered.extend(rest);
    node.value = NodeValue::Map(ordered);
    node
}
