//! The head of a file: `bundle:`, `meta:` or `profile:`, or the flat keys of an agent without any of them.

use super::Text;
use super::read::Reader;
use crate::node::{Entry, Mapping, Node};
use crate::notice::{Code, Notice, closest};
use crate::origin::Place;

/// Under which key a file says who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HeadKind {
    /// `bundle:`
    Bundle,
    /// `meta:`: an agent.
    Agent,
    /// `name` and `description` at the top: an agent written without `meta:`.
    FlatAgent,
    /// `profile:`
    Profile,
    /// Nothing: a file without a name.
    #[default]
    None,
}

/// Who a file is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Head {
    /// Which key it stands under.
    pub kind: HeadKind,
    /// The name, which is also the namespace.
    pub name: Option<Text>,
    /// The version as spelled.
    pub version: Option<Text>,
    /// What it is for.
    pub description: Option<Text>,
    /// A label for people; never in a plan.
    pub display_name: Option<Text>,
    /// The folder its namespace stands for, from the file's own folder.
    pub namespace_root: Option<Text>,
    /// Everything else the head says.
    pub extra: Mapping,
}

/// The keys of each head; agents may carry more.
pub const HEADS: [(&str, HeadKind, &[&str]); 3] = [
    ("bundle", HeadKind::Bundle, &["name", "version", "description", "namespace_root", "display_name"]),
    ("meta", HeadKind::Agent, &["name", "version", "description", "display_name", "model_role"]),
    (
        "profile",
        HeadKind::Profile,
        &["name", "version", "description", "extends", "schema_version", "display_name"],
    ),
];

impl Head {
    /// The name, or nothing when there is none.
    pub fn name(&self) -> Option<&str> {
        self.name.as_ref().map(|name| name.text.as_str())
    }
}

/// Takes the head out of a file's keys.
pub(super) fn take(reader: &mut Reader<'_>, keys: &mut Mapping) -> Head {
    let mut found: Option<Head> = None;
    for (key, kind, known) in HEADS {
        let Some(entry) = keys.shift_remove(key) else { continue };
        if found.is_some() {
            let message = format!("`{key}` stands beside another head and has no effect");
            reader.tell(Notice::warning(Code::NoEffect, &entry.key, message));
            continue;
        }
        found = Some(read_one(reader, key, kind, known, entry));
    }
    found.unwrap_or_else(|| flat(reader, keys))
}

fn read_one(reader: &mut Reader<'_>, key: &str, kind: HeadKind, known: &[&str], entry: Entry) -> Head {
    let mut head = Head { kind, ..Head::default() };
    if let Some(mut mapping) = reader.mapping(entry.node, key) {
        fill(reader, &mut head, &mut mapping);
        if kind != HeadKind::Agent {
            for (name, entry) in &mapping {
                if !known.contains(&name.as_str()) {
                    reader.tell(stray(key, name, &entry.key, known));
                }
            }
        }
        head.extra = mapping;
    }
    head
}

/// An agent may be written without `meta:`: then its name and description stand at the top.
fn flat(reader: &mut Reader<'_>, keys: &mut Mapping) -> Head {
    let mut head = Head::default();
    if keys.contains_key("name") || keys.contains_key("description") {
        head.kind = HeadKind::FlatAgent;
        fill(reader, &mut head, keys);
    }
    head
}

fn fill(reader: &mut Reader<'_>, head: &mut Head, keys: &mut Mapping) {
    let mut take = |key: &str| {
        let entry = keys.shift_remove(key)?;
        reader.text(entry.node, key)
    };
    let name = take("name");
    head.version = take("version");
    head.description = take("description");
    head.display_name = take("display_name");
    head.namespace_root = take("namespace_root");
    match name {
        Some(name) if name.text.is_empty() => {
            let message = "the name is empty, which is the same as no name";
            reader.tell(Notice::warning(Code::BadValue, &name.place, message));
        }
        name => head.name = name,
    }
}

fn stray(section: &str, name: &str, place: &Place, known: &[&str]) -> Notice {
    let notice = Notice::warning(Code::UnknownKey, place, format!("`{section}.{name}` is not a key we know"));
    if super::BUNDLE_KEYS.contains(&name) {
        return notice
            .with_hint(format!("`{name}` belongs to the top level of the file, beside `{section}`"));
    }
    match closest(name, known.iter().copied()) {
        Some(meant) => notice.with_hint(format!("did you mean `{meant}`?")),
        None => notice.with_hint(format!("known keys: {}", crate::notice::quoted(known.iter().copied()))),
    }
}

/// The text of a scalar, as spelled.
pub(super) fn spelled(node: &Node) -> Option<Text> {
    node.spelled().map(|text| Text { text: text.to_owned(), place: node.place.clone() })
}
