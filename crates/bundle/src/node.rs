//! The tree a YAML text becomes: JSON's values, each with the place it was written at and what it overrode.
//!
//! A node knows nothing of bundles. Reading text into nodes is `yaml.rs`, merging them is `compose.rs`.

use std::sync::Arc;

use amplifier_protocol::address::star;
use indexmap::IndexMap;
use serde_json::{Map, Number, Value};

use crate::origin::{Overridden, Place};

/// A mapping: keys in the order in which they were written.
pub type Mapping = IndexMap<String, Entry>;

/// A value of a mapping and the place of its key.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Where the key stands.
    pub key: Place,
    /// The value.
    pub node: Node,
}

/// What composition does with a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mark {
    /// Mappings and lists are merged with what is below them.
    #[default]
    Merge,
    /// `!replace`: nothing of what is below stays.
    Replace,
    /// `!delete`: what is below goes, and nothing takes its place.
    Delete,
}

/// One value with its history.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The value.
    pub value: NodeValue,
    /// Where it was set.
    pub place: Place,
    /// How it meets what is below it.
    pub mark: Mark,
    /// What it overrode, oldest first.
    pub overrode: Vec<Overridden>,
}

/// The values of JSON.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeValue {
    /// Nothing.
    Null,
    /// A truth, with its spelling.
    Bool(bool, Box<str>),
    /// A number, with its spelling: `1.0` is a version as often as a number.
    Number(Number, Box<str>),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping.
    Map(Mapping),
}

impl Node {
    /// A node that overrode nothing.
    pub fn new(value: NodeValue, place: Place) -> Self {
        Self { value, place, mark: Mark::Merge, overrode: Vec::new() }
    }

    /// A text.
    pub fn text(text: impl Into<String>, place: &Place) -> Self {
        Self::new(NodeValue::Text(text.into()), place.clone())
    }

    /// A mapping.
    pub fn map(mapping: Mapping, place: &Place) -> Self {
        Self::new(NodeValue::Map(mapping), place.clone())
    }

    /// The mapping, if it is one.
    pub fn as_map(&self) -> Option<&Mapping> {
        match &self.value {
            NodeValue::Map(mapping) => Some(mapping),
            _ => None,
        }
    }

    /// The mapping, if it is one, to change.
    pub fn as_map_mut(&mut self) -> Option<&mut Mapping> {
        match &mut self.value {
            NodeValue::Map(mapping) => Some(mapping),
            _ => None,
        }
    }

    /// The list, if it is one.
    pub fn as_list(&self) -> Option<&[Node]> {
        match &self.value {
            NodeValue::List(items) => Some(items),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A scalar as it was spelled: where a text belongs, `1.0` and `yes` are texts.
    pub fn spelled(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Text(text) => Some(text),
            NodeValue::Bool(_, text) | NodeValue::Number(_, text) => Some(text),
            NodeValue::Null | NodeValue::List(_) | NodeValue::Map(_) => None,
        }
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        matches!(self.value, NodeValue::Null)
    }

    /// The value of a key, if this is a mapping that has it.
    pub fn at(&self, key: &str) -> Option<&Node> {
        Some(&self.as_map()?.get(key)?.node)
    }

    /// The word for its type, as used in messages.
    pub fn type_name(&self) -> &'static str {
        match self.value {
            NodeValue::Null => "nothing",
            NodeValue::Bool(..) => "a boolean",
            NodeValue::Number(..) => "a number",
            NodeValue::Text(_) => "a string",
            NodeValue::List(_) => "a list",
            NodeValue::Map(_) => "a mapping",
        }
    }

    /// The value without its history. What is marked `!delete` is left out.
    pub fn to_json(&self) -> Value {
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(flag, _) => Value::Bool(*flag),
            NodeValue::Number(number, _) => Value::Number(number.clone()),
            NodeValue::Text(text) => Value::String(text.clone()),
            NodeValue::List(items) => {
                items.iter().filter(|item| item.mark != Mark::Delete).map(Self::to_json).collect()
            }
            NodeValue::Map(mapping) => Value::Object(mapping_to_json(mapping)),
        }
    }

    /// What remains of it when something takes its place. What it overrode itself is not part of that.
    pub fn overridden(mut self) -> Overridden {
        self.overrode.clear();
        let (place, value) = (self.place.clone(), self.to_json());
        let has_parts = matches!(&self.value, NodeValue::List(_) | NodeValue::Map(_));
        Overridden { place, value, parts: has_parts.then(|| Arc::new(self)) }
    }

    /// How many nodes it holds, itself included.
    pub fn count(&self) -> usize {
        match &self.value {
            NodeValue::List(items) => 1 + items.iter().map(Self::count).sum::<usize>(),
            NodeValue::Map(mapping) => 1 + mapping.values().map(|entry| entry.node.count()).sum::<usize>(),
            _ => 1,
        }
    }

    /// The value in one short line, for messages.
    pub fn preview(&self) -> String {
        const LONGEST: usize = 60;
        let text = star(&self.to_json().to_string());
        if text.chars().count() <= LONGEST {
            return text;
        }
        let cut: String = text.chars().take(LONGEST).collect();
        format!("{cut}…")
    }
}

/// A mapping without its history.
pub fn mapping_to_json(mapping: &Mapping) -> Map<String, Value> {
    mapping
        .iter()
        .filter(|(_, entry)| entry.node.mark != Mark::Delete)
        .map(|(key, entry)| (key.clone(), entry.node.to_json()))
        .collect()
}

/// Puts a value under a key whose place is the value's own.
pub fn put(mapping: &mut Mapping, key: &str, node: Node) {
    let place = node.place.clone();
    mapping.insert(key.to_owned(), Entry { key: place, node });
}
