//! The module lists of a file: `providers`, `tools`, `hooks`, and the two modules of `session`.

use std::collections::HashMap;

use super::read::Reader;
use crate::node::{Mapping, Mark, Node, NodeValue};
use crate::notice::{Code, Notice, closest};
use crate::origin::Place;

/// A list of modules.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Modules {
    /// Whether it replaces what is below it.
    pub mark: Mark,
    /// Where the list stands; `None` when the file has none. An empty list that is written is not the same as none.
    pub place: Option<Place>,
    /// The entries in order.
    pub entries: Vec<Module>,
    /// What a `!replace` took away, by id: one that comes again remembers what it had been.
    pub(crate) gone: HashMap<String, Node>,
}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Module {
    /// What it is matched by: `id` if it has one, else `module`.
    pub id: String,
    /// The entry, a mapping.
    pub node: Node,
}

/// The keys of an entry.
pub const MODULE_KEYS: [&str; 6] = ["module", "source", "config", "id", "instance_id", "native"];

/// Reads a list; what is wrong with an entry is told and the entry left out.
pub(super) fn read(reader: &mut Reader<'_>, node: Node, section: &str) -> Modules {
    let mark = node.mark;
    let mut place = Some(node.place.clone());
    let items = match node.value {
        NodeValue::Null => {
            place = None;
            Vec::new()
        }
        NodeValue::List(items) => items,
        _ => {
            let hint = format!("write\n  {section}:\n    - module: some-module");
            reader.wrong(&node, section, "a list", &hint);
            Vec::new()
        }
    };
    let mut entries: Vec<Module> = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        let label = format!("{section}[{index}]");
        let Some(module) = read_entry(reader, item, &label) else { continue };
        if !reader.allows_duplicates() && entries.iter().any(|other| other.id == module.id) {
            let message = format!("`{label}` names `{}` a second time; the two are merged", module.id);
            let hint = "give one of them an `id` of its own, or make one entry of them";
            reader.tell(Notice::warning(Code::DuplicateModule, &module.node.place, message).with_hint(hint));
        }
        entries.push(module);
    }
    Modules { mark, place, entries, gone: HashMap::new() }
}

fn read_entry(reader: &mut Reader<'_>, mut node: Node, label: &str) -> Option<Module> {
    let NodeValue::Map(entry) = &mut node.value else {
        let hint = match node.as_text() {
            Some(text) => format!("write `- module: {text}`"),
            None => "write `- module: some-module`".to_owned(),
        };
        reader.wrong(&node, label, "a mapping", &hint);
        return None;
    };
    check_entry(reader, entry, label);
    let name = |key: &str| {
        let text = entry.get(key).and_then(|entry| entry.node.spelled()).unwrap_or_default();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let Some(id) = name("id").or_else(|| name("module")) else {
        let message = format!("`{label}` of {} names no module", reader.label());
        reader.tell(
            Notice::error(Code::Missing, &node.place, message)
                .with_hint("add `module:` with the id of a module"),
        );
        return None;
    };
    Some(Module { id, node })
}

/// Checks the keys of an entry and makes its source absolute.
pub(super) fn check_entry(reader: &mut Reader<'_>, entry: &mut Mapping, label: &str) {
    for key in ["module", "id", "instance_id"] {
        if let Some(found) = entry.get_mut(key) {
            let at = format!("{label}.{key}");
            match found.node.spelled().map(str::to_owned) {
                Some(text) => found.node.value = NodeValue::Text(text),
                None => reader.wrong(&found.node, &at, "a string", "write the id as text"),
            }
        }
    }
    if let Some(source) = entry.get_mut("source") {
        rebase(reader, &mut source.node, &format!("{label}.source"));
    }
    check_config(reader, entry, label);
    for (key, found) in entry.iter() {
        if !MODULE_KEYS.contains(&key.as_str())
            && let Some(meant) = closest(key, MODULE_KEYS)
        {
            let message = format!("`{label}.{key}` is not a key we know");
            reader.tell(
                Notice::warning(Code::UnknownKey, &found.key, message)
                    .with_hint(format!("did you mean `{meant}`?")),
            );
        }
    }
}

fn check_config(reader: &mut Reader<'_>, entry: &mut Mapping, label: &str) {
    let Some(found) = entry.get("config") else { return };
    match &found.node.value {
        NodeValue::Map(_) => {}
        _ if found.node.mark == Mark::Delete => {}
        NodeValue::Null => {
            let message = format!("`{label}.config` is empty and has no effect");
            let notice = Notice::warning(Code::NoEffect, &found.key, message)
                .with_hint("leave it out; to drop an inherited config write `config: !delete`");
            reader.tell(notice);
            entry.shift_remove("config");
        }
        _ => {
            let found = found.node.clone();
            reader.wrong(
                &found,
                &format!("{label}.config"),
                "a mapping",
                "write keys and values below `config:`",
            );
        }
    }
}

/// Makes a relative source absolute; tells when it leaves what was fetched.
pub(super) fn rebase(reader: &mut Reader<'_>, node: &mut Node, label: &str) {
    match &node.value {
        NodeValue::Text(source) => match reader.home().rebase(source) {
            Ok(None) => {}
            Ok(Some(absolute)) => node.value = NodeValue::Text(absolute),
            Err(escape) => reader.tell(
                Notice::error(Code::Escape, &node.place, format!("`{label}`: {escape}"))
                    .with_hint("a fetched bundle reaches only its own files"),
            ),
        },
        NodeValue::Map(_) | NodeValue::Null => {}
        _ => reader.wrong(node, label, "a string or a mapping", "write an address or a path"),
    }
}
