//! `docs/reference/events.md`: every event we emit, its meaning, its emitter and its fields, from the event types.

use std::collections::BTreeMap;

use serde_json::Value;

use super::schema::{Shapes, anchor, collect_shapes, description, fields, shape};
use crate::output::TaskError;

/// One event as the page shows it.
#[derive(Debug, Clone)]
pub(crate) struct EventEntry {
    pub(crate) name: String,
    pub(crate) emitter: String,
    pub(crate) schema: Value,
}

/// The page for the events of `amplifier-protocol`.
pub(crate) fn page() -> Result<String, TaskError> {
    let entry = |kind: &amplifier_protocol::event::EventKind| {
        let name = kind.name.to_owned();
        let schema = serde_json::to_value((kind.schema)())
            .map_err(|source| TaskError::Schema { name: name.clone(), source })?;
        Ok(EventEntry { name, emitter: kind.emitter.to_owned(), schema })
    };
    let entries = amplifier_protocol::event::EVENTS.iter().map(entry).collect::<Result<Vec<_>, _>>()?;
    Ok(events_page(&entries))
}

/// Writes the page: contents by namespace, a section per event, then the shapes that fields refer to.
pub(crate) fn events_page(entries: &[EventEntry]) -> String {
    let mut namespaces: BTreeMap<&str, Vec<&EventEntry>> = BTreeMap::new();
    let mut shapes = Shapes::new();
    for entry in entries {
        namespaces.entry(namespace(&entry.name)).or_default().push(entry);
        collect_shapes(&entry.schema, &mut shapes);
    }
    let mut page = String::from(INTRODUCTION);
    page.push_str("\n## Contents\n\n");
    for (namespace, entries) in &namespaces {
        let links: Vec<_> =
            entries.iter().map(|entry| format!("[`{0}`](#{1})", entry.name, anchor(&entry.name))).collect();
        page.push_str(&format!("- **{namespace}**: {}\n", links.join(", ")));
    }
    if !shapes.is_empty() {
        page.push_str("- [Shapes](#shapes)\n");
    }
    for (namespace, entries) in &namespaces {
        page.push_str(&format!("\n## {namespace}\n"));
        for entry in entries {
            page.push_str(&section(entry));
        }
    }
    if !shapes.is_empty() {
        page.push_str("\n## Shapes\n\nTypes that fields above refer to.\n");
        for (name, schema) in &shapes {
            page.push_str(&format!("\n### {name}\n\n{}{}", paragraph(&description(schema)), shape(schema)));
        }
    }
    page
}

const INTRODUCTION: &str = "\
<!-- Written by `cargo xtask gen` from `crates/protocol/src/event.rs`; edit the types, not this page. -->

# Events

A hook registers for an event by its name, for a namespace with `namespace:*`, or for everything with `*`. The payload is
a JSON object with the fields below. Readers ignore fields they do not know; a later version may add some.
";

fn section(entry: &EventEntry) -> String {
    let meaning = paragraph(&description(&entry.schema));
    format!("\n### `{}`\n\n{meaning}Emitted by: {}\n\n{}", entry.name, entry.emitter, fields(&entry.schema))
}

fn paragraph(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{text}\n\n") }
}

fn namespace(name: &str) -> &str {
    name.split_once(':').map_or(name, |(namespace, _)| namespace)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(name: &str, schema: Value) -> EventEntry {
        EventEntry { name: name.into(), emitter: "the loop".into(), schema }
    }

    #[test]
    fn the_page_has_contents_sections_and_shapes() {
        let pre = json!({
            "title": "ToolPre",
            "description": "A tool is about to run.",
            "type": "object",
            "properties": {
                "tool_name": {"type": "string", "description": "Which tool."},
                "call": {"$ref": "#/$defs/Call"},
            },
            "required": ["tool_name"],
            "$defs": {"Call": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}},
        });
        let entries = [entry("tool:pre", pre), entry("session:start", json!({"type": "object"}))];
        let page = events_page(&entries);
        let body = page.strip_prefix(INTRODUCTION).unwrap();
        let expected = "
## Contents

- **session**: [`session:start`](#sessionstart)
- **tool**: [`tool:pre`](#toolpre)
- [Shapes](#shapes)

## session

### `session:start`

Emitted by: the loop

It carries no fields of its own.

## tool

### `tool:pre`

A tool is about to run.

Emitted by: the loop

| field | type | required | meaning |
|---|---|---|---|
| `tool_name` | string | yes | Which tool. |
| `call` | [Call](#call) | no |  |

## Shapes

Types that fields above refer to.

### Call

| field | type | required | meaning |
|---|---|---|---|
| `id` | string | yes |  |
";
        assert_eq!(body, expected);
    }
}
