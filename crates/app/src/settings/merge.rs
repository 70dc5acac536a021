//! One layer over another: mappings are merged key by key, anything else is replaced and remembered. Providers are merged by
//! what they are called, and those of the upper layer come first.

use amplifier_bundle::node::{Mapping, Mark, Node, NodeValue};

use super::check::{identity, join};

/// The list that is merged entry by entry.
const PROVIDERS: &str = "config.providers";

/// Lays a layer over what is below it.
pub(super) fn lay(base: &mut Mapping, over: Mapping) {
    lay_map(base, over, "");
}

fn lay_map(base: &mut Mapping, over: Mapping, path: &str) {
    for (key, entry) in over {
        let here = join(path, &key);
        if entry.node.mark == Mark::Delete {
            base.shift_remove(&key);
            continue;
        }
        match base.get_mut(&key) {
            Some(below) => lay_at(&mut below.node, entry.node, &here),
            None => {
                base.insert(key, entry);
            }
        }
    }
}

/// Lays a value over another.
pub(super) fn lay_node(base: &mut Node, over: Node) {
    lay_at(base, over, "");
}

fn lay_at(base: &mut Node, mut over: Node, path: &str) {
    let replaces = over.mark == Mark::Replace;
    over.mark = Mark::Merge;
    match (&mut base.value, &mut over.value) {
        (NodeValue::Map(below), NodeValue::Map(above)) if !replaces => {
            return lay_map(below, std::mem::take(above), path);
        }
        (NodeValue::List(below), NodeValue::List(above)) if path == PROVIDERS && !replaces => {
            return lay_providers(below, std::mem::take(above));
        }
        _ => {}
    }
    if base.place == over.place && base.value == over.value {
        return;
    }
    let mut overrode = std::mem::take(&mut base.overrode);
    if !base.is_null() {
        overrode.push(base.clone().overridden());
    }
    overrode.append(&mut over.overrode);
    *base = Node { overrode, ..over };
}

fn lay_providers(base: &mut Vec<Node>, over: Vec<Node>) {
    let mut below = std::mem::take(base);
    for entry in over {
        let name = identity(&entry);
        match below.iter().position(|other| name.is_some() && identity(other) == name) {
            Some(at) => {
                let mut merged = below.remove(at);
                lay_node(&mut merged, entry);
                base.push(merged);
            }
            None => base.push(entry),
        }
    }
    base.append(&mut below);
}
