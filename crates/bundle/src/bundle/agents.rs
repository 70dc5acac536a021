//! The `agents` section: a roster of agents, or, in an agent's own file, which agents it may call.

use indexmap::IndexMap;

use super::modules;
use super::read::Reader;
use super::{HeadKind, Text};
use crate::node::{Mapping, Mark, Node, NodeValue, put};
use crate::notice::{Code, Notice};
use crate::origin::Place;

/// Agents by name, in the order in which they were listed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Roster {
    /// Whether it replaces what is below it.
    pub mark: Mark,
    /// The agents.
    pub entries: IndexMap<String, RosterEntry>,
}

/// One agent of a roster.
#[derive(Debug, Clone, PartialEq)]
pub struct RosterEntry {
    /// Whether it takes an inherited agent away.
    pub mark: Mark,
    /// Where it is listed.
    pub place: Place,
    /// What is written about it in the bundle itself.
    pub definition: Mapping,
    /// Where a profile says its file is.
    pub reference: Option<Text>,
}

/// Which agents a session may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// All its parent may.
    All,
    /// None.
    None,
    /// These.
    Only(Vec<String>),
}

/// What the section says.
#[derive(Default)]
pub(super) struct Agents {
    pub(super) roster: Roster,
    pub(super) access: Option<(Access, Place)>,
}

/// Reads the section.
pub(super) fn read(reader: &mut Reader<'_>, node: Node, kind: HeadKind) -> Agents {
    let place = node.place.clone();
    let mark = node.mark;
    match node.value {
        NodeValue::Null => Agents::default(),
        NodeValue::Map(mapping) => {
            let mut roster = read_roster(reader, mapping, kind);
            roster.mark = mark;
            Agents { roster, access: None }
        }
        NodeValue::Text(word) => {
            let access = match word.as_str() {
                "all" => Access::All,
                "none" => Access::None,
                _ => {
                    let message = format!(
                        "`agents` of {} is `{word}`, which is neither `all` nor `none`",
                        reader.label()
                    );
                    reader.tell(
                        Notice::error(Code::BadValue, &place, message)
                            .with_hint("write `all`, `none`, a list of names, or a mapping of agents"),
                    );
                    return Agents::default();
                }
            };
            Agents { access: Some((access, place)), ..Agents::default() }
        }
        NodeValue::List(items) if kind == HeadKind::Profile => {
            let entries = names(reader, items, "agents").into_iter().enumerate();
            let entries = entries.map(|(index, text)| {
                let (mark, place, definition) = (Mark::Merge, text.place.clone(), Mapping::new());
                (format!("agent_{index}"), RosterEntry { mark, place, definition, reference: Some(text) })
            });
            Agents { roster: Roster { mark, entries: entries.collect() }, access: None }
        }
        NodeValue::List(items) => {
            let names = names(reader, items, "agents").into_iter().map(|name| name.text).collect();
            Agents { access: Some((Access::Only(names), place)), ..Agents::default() }
        }
        _ => {
            reader.wrong(
                &node,
                "agents",
                "a mapping, a list, `all` or `none`",
                "list agents below `agents: include:`",
            );
            Agents::default()
        }
    }
}

fn read_roster(reader: &mut Reader<'_>, mapping: Mapping, kind: HeadKind) -> Roster {
    let mut entries = IndexMap::new();
    for (name, entry) in mapping {
        if name == "include" {
            for name in include(reader, entry.node) {
                let mut definition = Mapping::new();
                put(&mut definition, "name", Node::text(name.text.as_str(), &name.place));
                let listed =
                    RosterEntry { mark: Mark::Merge, place: name.place, definition, reference: None };
                entries.insert(name.text, listed);
            }
            continue;
        }
        if name == "inline" && kind == HeadKind::Profile {
            let inner = reader.mapping(entry.node, "agents.inline").unwrap_or_default();
            entries.extend(read_roster(reader, inner, HeadKind::Bundle).entries);
            continue;
        }
        let place = entry.key.clone();
        let mark = entry.node.mark;
        match entry.node.value {
            NodeValue::Map(mut definition) => {
                check_definition(reader, &mut definition, &name);
                entries.insert(name, RosterEntry { mark, place, definition, reference: None });
            }
            _ if mark == Mark::Delete => {
                let definition = Mapping::new();
                entries.insert(name, RosterEntry { mark, place, definition, reference: None });
            }
            NodeValue::Text(reference) if kind == HeadKind::Profile => {
                let reference = Some(Text { text: reference, place: entry.node.place });
                entries.insert(name, RosterEntry { mark, place, definition: Mapping::new(), reference });
            }
            _ => reader.wrong(
                &entry.node,
                &format!("agents.{name}"),
                "a mapping",
                "define the agent here, or list its name below `agents: include:`",
            ),
        }
    }
    Roster { mark: Mark::Merge, entries }
}

/// An agent written in the bundle is a partial plan: its modules obey the rules of modules.
fn check_definition(reader: &mut Reader<'_>, definition: &mut Mapping, name: &str) {
    for section in ["providers", "tools", "hooks"] {
        let Some(entry) = definition.get_mut(section) else { continue };
        let label = format!("agents.{name}.{section}");
        let list = modules::read(reader, entry.node.clone(), &label);
        entry.node.value = NodeValue::List(list.entries.into_iter().map(|module| module.node).collect());
    }
    if let Some(entry) = definition.get_mut("session") {
        let session = super::read::session(reader, entry.node.clone(), &format!("agents.{name}.session"));
        if let Some(session) = session {
            entry.node = session;
        }
    }
}

fn include(reader: &mut Reader<'_>, node: Node) -> Vec<Text> {
    match node.value {
        NodeValue::Null => Vec::new(),
        NodeValue::List(items) => names(reader, items, "agents.include"),
        _ => {
            let hint = match node.as_text() {
                Some(text) => format!("write `include: [{text}]`"),
                None => "write a list of names".to_owned(),
            };
            reader.wrong(&node, "agents.include", "a list of names", &hint);
            Vec::new()
        }
    }
}

fn names(reader: &mut Reader<'_>, items: Vec<Node>, label: &str) -> Vec<Text> {
    let mut names = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        match item.spelled() {
            Some(name) if !name.is_empty() => {
                names.push(Text { text: name.to_owned(), place: item.place.clone() });
            }
            _ => reader.wrong(
                &item,
                &format!("{label}[{index}]"),
                "the name of an agent",
                "write the name as text",
            ),
        }
    }
    names
}
