//! The algebra of merging: nodes, lists of modules, and what a value remembers of those below it.

use std::collections::{HashMap, VecDeque};

use super::Composed;
use crate::bundle::Modules;
use crate::error::BundleError;
use crate::node::{Mapping, Mark, Node, NodeValue};
use crate::notice::{Code, Notice};
use crate::origin::{Overridden, Place};

/// How much merging one composition may do, counted in values.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    limit: usize,
    left: usize,
}

impl Budget {
    /// A budget of so many values.
    pub fn new(limit: usize) -> Self {
        Self { limit, left: limit }
    }

    /// Takes from it.
    ///
    /// # Errors
    /// [`BundleError::Limit`] when nothing is left.
    pub fn spend(&mut self, values: usize) -> Result<(), BundleError> {
        match self.left.checked_sub(values) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(BundleError::Limit { what: "the number of values merged", limit: self.limit }),
        }
    }
}

/// Puts a value on top of another.
///
/// Mappings are merged key by key, lists are joined without repeating an item; anything else is replaced. The marks
/// `!replace` and `!delete` end what is below.
///
/// # Errors
/// [`BundleError::Limit`] when the budget is spent.
pub fn merge(base: &mut Node, mut over: Node, budget: &mut Budget) -> Result<(), BundleError> {
    budget.spend(1)?;
    let ends_below = over.mark != Mark::Merge || base.mark == Mark::Delete;
    match (&mut base.value, &mut over.value) {
        (NodeValue::Map(below), NodeValue::Map(above)) if !ends_below => {
            return merge_maps(below, std::mem::take(above), budget);
        }
        (NodeValue::List(below), NodeValue::List(above)) if !ends_below => {
            return merge_lists(below, std::mem::take(above), budget);
        }
        _ => {}
    }
    if base.place == over.place && base.value == over.value && base.mark == over.mark {
        return Ok(());
    }
    budget.spend(over.count())?;
    // What stands on a deleted value stands on nothing, for every layer still to come below it.
    if base.mark == Mark::Delete && over.mark == Mark::Merge {
        over.mark = Mark::Replace;
    }
    let place = over.place.clone();
    let mut below = std::mem::replace(base, over);
    let older = std::mem::take(&mut below.overrode);
    let lost = (below.mark != Mark::Delete).then(|| below.overridden());
    remember(&mut base.overrode, older, lost, &place);
    Ok(())
}

fn merge_maps(base: &mut Mapping, over: Mapping, budget: &mut Budget) -> Result<(), BundleError> {
    for (key, entry) in over {
        match base.get_mut(&key) {
            Some(below) => merge(&mut below.node, entry.node, budget)?,
            None => {
                budget.spend(entry.node.count())?;
                base.insert(key, entry);
            }
        }
    }
    Ok(())
}

fn merge_lists(base: &mut Vec<Node>, over: Vec<Node>, budget: &mut Budget) -> Result<(), BundleError> {
    let mut known: HashMap<String, usize> = HashMap::with_capacity(base.len() + over.len());
    let below = std::mem::take(base);
    for item in below.into_iter().chain(over) {
        budget.spend(item.count())?;
        let identity = identity(&item);
        match known.get(&identity).and_then(|at| base.get_mut(*at)) {
            // Equal items are one item; only `!delete` and its undoing change it.
            Some(found) if found.mark != item.mark => merge(found, item, budget)?,
            Some(_) => {}
            None => {
                known.insert(identity, base.len());
                base.push(item);
            }
        }
    }
    Ok(())
}

/// What makes two items the same: the value with its types, the order of keys aside.
fn identity(node: &Node) -> String {
    fn write(node: &Node, into: &mut String) {
        match &node.value {
            NodeValue::Map(mapping) => {
                let mut keys: Vec<_> = mapping.iter().collect();
                keys.sort_by(|left, right| left.0.cmp(right.0));
                into.push('{');
                for (key, entry) in keys {
                    into.push_str(&serde_json::Value::from(key.as_str()).to_string());
                    into.push(':');
                    write(&entry.node, into);
                    into.push(',');
                }
                into.push('}');
            }
            NodeValue::List(items) => {
                into.push('[');
                for item in items {
                    write(item, into);
                    into.push(',');
                }
                into.push(']');
            }
            _ => into.push_str(&node.to_json().to_string()),
        }
    }
    let mut text = String::new();
    write(node, &mut text);
    text
}

/// Merges an optional section.
pub(super) fn section(
    base: &mut Option<Node>,
    over: Option<Node>,
    budget: &mut Budget,
) -> Result<(), BundleError> {
    match (base.as_mut(), over) {
        (_, None) => Ok(()),
        (None, Some(over)) => {
            budget.spend(over.count())?;
            *base = Some(over);
            Ok(())
        }
        (Some(below), Some(over)) => merge(below, over, budget),
    }
}

/// What becomes of two entries of one list that share an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeats {
    /// They are merged.
    Merged,
    /// They stay two, as profiles expect.
    Kept,
}

/// Merges lists of modules by id; a new id is added at the end.
pub(super) fn modules(
    base: &mut Modules,
    over: Modules,
    repeats: Repeats,
    budget: &mut Budget,
) -> Result<(), BundleError> {
    if over.mark != Mark::Merge {
        let below = std::mem::take(&mut base.entries).into_iter();
        // Of two with one id the first counts.
        base.gone.extend(below.rev().map(|entry| (entry.id, entry.node)));
        base.mark = over.mark;
    }
    let mut index: HashMap<String, VecDeque<usize>> = HashMap::with_capacity(base.entries.len());
    for (at, entry) in base.entries.iter().enumerate() {
        index.entry(entry.id.clone()).or_default().push_back(at);
    }
    for mut entry in over.entries {
        // Where repeats stay apart, the first meets the first, the second the second.
        let known = index.entry(entry.id.clone()).or_default();
        let at = match repeats {
            Repeats::Merged => known.front().copied(),
            Repeats::Kept => known.pop_front(),
        };
        match at.and_then(|at| base.entries.get_mut(at)) {
            Some(below) => merge(&mut below.node, entry.node, budget)?,
            None => {
                budget.spend(entry.node.count())?;
                if let Some(below) = base.gone.remove(&entry.id) {
                    entry.node = instead_of(below, entry.node, budget)?;
                }
                if repeats == Repeats::Merged {
                    known.push_back(base.entries.len());
                }
                base.entries.push(entry);
            }
        }
    }
    Ok(())
}

/// A value that takes the whole place of another, and remembers it.
fn instead_of(mut below: Node, mut over: Node, budget: &mut Budget) -> Result<Node, BundleError> {
    let mark = over.mark;
    if mark == Mark::Merge {
        over.mark = Mark::Replace;
    }
    merge(&mut below, over, budget)?;
    Ok(Node { mark, ..below })
}

/// Extends what a value overrode by what the value below it had overridden, and by that value; each place once.
pub(super) fn remember(
    overrode: &mut Vec<Overridden>,
    below: Vec<Overridden>,
    lost: Option<Overridden>,
    current: &Place,
) {
    // What lies below is free of repetition already; a value that fifty layers set has a long history.
    let above = std::mem::replace(overrode, below);
    for item in lost.into_iter().chain(above) {
        if item.place != *current && overrode.iter().all(|known| known.place != item.place) {
            overrode.push(item);
        }
    }
    overrode.retain(|item| item.place != *current);
}

/// A `!delete` that met nothing is a mistake or a leftover.
pub(super) fn tell_idle_deletes(composed: &mut Composed) {
    let mut idle = Vec::new();
    for node in composed.session.iter().chain(&composed.spawn) {
        collect_idle(node, &mut idle);
    }
    for list in [&composed.providers, &composed.tools, &composed.hooks] {
        list.entries.iter().for_each(|entry| collect_idle(&entry.node, &mut idle));
    }
    for agent in composed.agents.values().filter(|agent| agent.entry.mark == Mark::Delete) {
        if agent.overrode.is_empty() {
            idle.push(agent.entry.place.clone());
        }
    }
    let message = "`!delete` has nothing to delete here";
    composed.notices.extend(idle.iter().map(|place| Notice::warning(Code::NothingToDelete, place, message)));
}

fn collect_idle(node: &Node, idle: &mut Vec<Place>) {
    if node.mark == Mark::Delete {
        if node.overrode.is_empty() {
            idle.push(node.place.clone());
        }
        return;
    }
    match &node.value {
        NodeValue::Map(mapping) => mapping.values().for_each(|entry| collect_idle(&entry.node, idle)),
        NodeValue::List(items) => items.iter().for_each(|item| collect_idle(item, idle)),
        _ => {}
    }
}
