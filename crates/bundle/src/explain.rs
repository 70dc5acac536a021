//! Where each value of a plan was set, and what it overrode. The settings alone are enough to build the plan again.

use std::fmt;

use amplifier_protocol::locate;
use serde_json::{Map, Value, json};

use crate::node::{Mapping, Mark, Node, NodeValue};
use crate::origin::{Overridden, Place};

/// One value of a plan: a scalar, or a list or mapping that is empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The way to it.
    pub path: Vec<Step>,
    /// The value.
    pub value: Value,
    /// Where it was set.
    pub place: Place,
    /// What it overrode, oldest first.
    pub overrode: Vec<Overridden>,
}

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Into a mapping.
    Key(String),
    /// Into a list.
    Index(usize),
}

impl Setting {
    /// The way as a JSON pointer.
    pub fn pointer(&self) -> String {
        self.path.iter().fold(String::new(), |pointer, step| match step {
            Step::Key(key) => locate::join(&pointer, key),
            Step::Index(index) => locate::join(&pointer, &index.to_string()),
        })
    }

    /// The setting as data.
    pub fn to_json(&self) -> Value {
        let overrode =
            self.overrode.iter().map(|lost| json!({"at": lost.place.to_string(), "value": lost.value}));
        json!({
            "pointer": self.pointer(),
            "value": self.value,
            "at": self.place.to_string(),
            "overrode": overrode.collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}  {}", self.pointer(), self.value, self.place)?;
        for lost in self.overrode.iter().rev() {
            write!(f, "\n  overrode {}  {}", lost.value, lost.place)?;
        }
        Ok(())
    }
}

/// Every setting of a tree, in its order.
pub(crate) fn settings(root: &Mapping) -> Vec<Setting> {
    let mut walk = Walk::default();
    for (key, entry) in root.iter().filter(|(_, entry)| entry.node.mark != Mark::Delete) {
        walk.step(Step::Key(key.clone()), &entry.node);
    }
    walk.settings
}

#[derive(Default)]
struct Walk<'n> {
    path: Vec<Step>,
    /// What whole lists and mappings on the way overrode, with how deep they stand.
    above: Vec<(usize, &'n Overridden)>,
    settings: Vec<Setting>,
}

impl<'n> Walk<'n> {
    fn step(&mut self, step: Step, node: &'n Node) {
        self.path.push(step);
        let known = self.above.len();
        match &node.value {
            NodeValue::Map(mapping) if has_present(mapping) => {
                self.above.extend(node.overrode.iter().map(|lost| (self.path.len(), lost)));
                for (key, entry) in mapping.iter().filter(|(_, entry)| entry.node.mark != Mark::Delete) {
                    self.step(Step::Key(key.clone()), &entry.node);
                }
            }
            NodeValue::List(items) if present(items).next().is_some() => {
                self.above.extend(node.overrode.iter().map(|lost| (self.path.len(), lost)));
                for (index, item) in present(items).enumerate() {
                    self.step(Step::Index(index), item);
                }
            }
            _ => self.leaf(node),
        }
        self.above.truncate(known);
        self.path.pop();
    }

    fn leaf(&mut self, node: &Node) {
        let mut lost = Vec::new();
        for (depth, whole) in &self.above {
            let below = self.path.get(*depth..).unwrap_or_default();
            if let Some(parts) = &whole.parts {
                collect(parts, below, &mut lost);
            }
        }
        lost.extend(node.overrode.iter().cloned());
        let mut overrode: Vec<Overridden> = Vec::with_capacity(lost.len());
        for item in lost {
            if item.place != node.place && overrode.iter().all(|known| known.place != item.place) {
                overrode.push(item);
            }
        }
        let (path, value) = (self.path.clone(), node.to_json());
        self.settings.push(Setting { path, value, place: node.place.clone(), overrode });
    }
}

/// Everything that had stood at a way below a node, oldest first, in the node itself last.
fn collect(node: &Node, way: &[Step], into: &mut Vec<Overridden>) {
    let Some((step, rest)) = way.split_first() else {
        into.extend(node.overrode.iter().cloned());
        if node.mark != Mark::Delete {
            into.push(node.clone().overridden());
        }
        return;
    };
    for whole in node.overrode.iter().filter_map(|lost| lost.parts.as_ref()) {
        collect(whole, way, into);
    }
    let part = match (step, &node.value) {
        (Step::Key(key), NodeValue::Map(mapping)) => mapping.get(key).map(|entry| &entry.node),
        (Step::Index(index), NodeValue::List(items)) => present(items).nth(*index),
        _ => None,
    };
    if let Some(part) = part.filter(|_| node.mark != Mark::Delete) {
        collect(part, rest, into);
    }
}

/// The items of a list that are not deleted.
pub(crate) fn present(items: &[Node]) -> impl Iterator<Item = &Node> {
    items.iter().filter(|item| item.mark != Mark::Delete)
}

fn has_present(mapping: &Mapping) -> bool {
    mapping.values().any(|entry| entry.node.mark != Mark::Delete)
}

/// Builds the value that the settings describe.
pub fn replay(settings: &[Setting]) -> Value {
    let mut root = Value::Object(Map::new());
    for setting in settings {
        let mut at = &mut root;
        for (depth, step) in setting.path.iter().enumerate() {
            let next = match setting.path.get(depth + 1) {
                Some(Step::Index(_)) => Value::Array(Vec::new()),
                Some(Step::Key(_)) => Value::Object(Map::new()),
                None => setting.value.clone(),
            };
            at = match (step, at) {
                (Step::Key(key), Value::Object(map)) => map.entry(key.clone()).or_insert(next),
                (Step::Index(index), Value::Array(items)) => {
                    if items.len() <= *index {
                        items.push(next);
                    }
                    let last = items.len().saturating_sub(1);
                    match items.get_mut((*index).min(last)) {
                        Some(item) => item,
                        None => break,
                    }
                }
                _ => break,
            };
        }
    }
    root
}
