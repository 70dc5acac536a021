//! The `context` section: files whose text goes into the system prompt.

use super::read::Reader;
use super::{HeadKind, Text};
use crate::node::{Mark, Node, NodeValue};
use crate::notice::{Code, Notice};

/// The context files of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextFiles {
    /// Whether they replace what is below them.
    pub mark: Mark,
    /// The files in order.
    pub entries: Vec<ContextEntry>,
}

/// One file, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextEntry {
    /// The name it is known by within the file.
    pub key: String,
    /// The path: from the file's folder, or `namespace:path`.
    pub path: Text,
    /// How it was written.
    pub form: ContextForm,
    /// Whether it takes an inherited file away.
    pub mark: Mark,
}

/// How a context file was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextForm {
    /// In the list below `include`.
    Included,
    /// As `name: path`.
    Named,
}

/// Reads the section.
pub(super) fn read(reader: &mut Reader<'_>, node: Node) -> ContextFiles {
    let mark = node.mark;
    let mut entries = Vec::new();
    if let (NodeValue::List(items), HeadKind::Profile) = (&node.value, reader.kind()) {
        for (index, item) in items.iter().enumerate() {
            let listed = included(reader, item, index);
            let named =
                |entry| ContextEntry { key: format!("context_{index}"), form: ContextForm::Named, ..entry };
            entries.extend(listed.map(named));
        }
        return ContextFiles { mark, entries };
    }
    let mapping = reader.mapping(node, "context").unwrap_or_default();
    for (name, entry) in mapping {
        if name == "include" {
            match entry.node.value {
                NodeValue::Null => {}
                NodeValue::List(items) => {
                    for (index, item) in items.into_iter().enumerate() {
                        entries.extend(included(reader, &item, index));
                    }
                }
                _ => {
                    reader.wrong(&entry.node, "context.include", "a list of paths", "write `include: [path]`")
                }
            }
            continue;
        }
        let mark = entry.node.mark;
        match entry.node.spelled() {
            Some(path) => {
                let path = Text { text: path.to_owned(), place: entry.node.place.clone() };
                entries.push(ContextEntry { key: name, path, form: ContextForm::Named, mark });
            }
            None if mark == Mark::Delete => {
                let path = Text { text: String::new(), place: entry.node.place.clone() };
                entries.push(ContextEntry { key: name, path, form: ContextForm::Named, mark });
            }
            None => reader.wrong(&entry.node, &format!("context.{name}"), "a path", "write the path as text"),
        }
    }
    ContextFiles { mark, entries }
}

fn included(reader: &mut Reader<'_>, item: &Node, index: usize) -> Option<ContextEntry> {
    let label = format!("context.include[{index}]");
    let Some(path) = item.spelled().filter(|path| !path.is_empty()) else {
        reader.wrong(item, &label, "a path", "write the path as text");
        return None;
    };
    let bare = path.strip_prefix('@').unwrap_or(path);
    if bare != path {
        let message = format!("`{label}` begins with `@`, which belongs to text, not to keys");
        reader
            .tell(Notice::warning(Code::BadValue, &item.place, message).with_hint(format!("write `{bare}`")));
    }
    let path = Text { text: bare.to_owned(), place: item.place.clone() };
    Some(ContextEntry { key: bare.to_owned(), path, form: ContextForm::Included, mark: item.mark })
}
