//! `docs/reference/modules.md`: every built-in module with its config, tools and events.
//!
//! It asks `amplifier module list` and `amplifier module info`, which tell the same to people. Linking the product instead
//! would make every task here wait for a build of it.

use std::process::Command;
use std::time::Duration;

use amplifier_protocol::module_info::{EventInfo, ModuleInfo, ModuleKind};
use amplifier_protocol::tool::{Effects, ToolSpec};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::schema::{anchor, cell, description, fields, one_line};
use crate::output::TaskError;
use crate::process::{capture_quietly, cargo, stream};
use crate::workspace::Workspace;

/// How long one question to the program may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
struct Listed {
    modules: Vec<ListedModule>,
}

#[derive(Deserialize)]
struct ListedModule {
    id: String,
}

#[derive(Deserialize)]
struct Details {
    #[serde(flatten)]
    info: ModuleInfo,
    aliases: Vec<String>,
    config: Vec<Key>,
    tools: Vec<Tool>,
    tools_unknown: Option<String>,
}

#[derive(Deserialize)]
struct Key {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    required: bool,
    default: Option<Value>,
    description: String,
}

#[derive(Deserialize)]
struct Tool {
    #[serde(flatten)]
    spec: ToolSpec,
    effects: Effects,
    input: Vec<Key>,
}

/// The page for the modules that the program knows.
pub(crate) fn page(workspace: &Workspace) -> Result<String, TaskError> {
    let mut build = cargo();
    build.args(["build", "--quiet", "-p", "amplifier-cli"]).current_dir(&workspace.root);
    stream(&mut build)?;
    let listed: Listed = ask(workspace, &["module", "list"])?;
    let details = listed.modules.iter().map(|module| ask(workspace, &["module", "info", &module.id]));
    Ok(modules_page(&details.collect::<Result<Vec<_>, _>>()?))
}

/// What the program answers to a question, for programs.
pub(super) fn ask<T: DeserializeOwned>(workspace: &Workspace, question: &[&str]) -> Result<T, TaskError> {
    printed(workspace, &[question, &["--output", "json"]].concat())
}

/// The JSON that the program prints.
pub(super) fn printed<T: DeserializeOwned>(workspace: &Workspace, question: &[&str]) -> Result<T, TaskError> {
    let program = workspace.target.join("debug").join(format!("amplifier{}", std::env::consts::EXE_SUFFIX));
    let mut command = Command::new(program);
    command.args(question);
    let answer = capture_quietly(&mut command, ANSWER_LIMIT)?;
    serde_json::from_str(&answer.stdout)
        .map_err(|source| TaskError::Printed { command: format!("amplifier {}", question.join(" ")), source })
}

const INTRODUCTION: &str = "\
<!-- Written by `cargo xtask gen` from what the modules say about themselves; edit their config types, not this page. -->

# Built-in modules

What `amplifier module list` and `amplifier module info ID` print. A key without a default may be left out unless it is
required. `a.b` is the key `b` in the object `a`, `a[].b` the key `b` of each entry of the list `a`, `a.*.b` that of each
value of the map `a`. An unknown key is a warning in the load report.
";

/// Writes the page: contents by kind, then a section for each module.
fn modules_page(modules: &[Details]) -> String {
    let mut page = String::from(INTRODUCTION);
    page.push_str("\n## Contents\n\n");
    let of_kind = |kind: ModuleKind| modules.iter().filter(move |module| module.info.kind == kind);
    for kind in ModuleKind::PLAN_ORDER {
        let link =
            |module: &Details| format!("[`{0}`](#{1})", module.info.id, anchor(module.info.id.as_str()));
        let links: Vec<_> = of_kind(kind).map(link).collect();
        if !links.is_empty() {
            page.push_str(&format!("- **{}**: {}\n", plural(kind), links.join(", ")));
        }
    }
    for kind in ModuleKind::PLAN_ORDER {
        if of_kind(kind).next().is_some() {
            page.push_str(&format!("\n## {}\n", plural(kind)));
        }
        of_kind(kind).for_each(|module| page.push_str(&section(module)));
    }
    page
}

fn plural(kind: ModuleKind) -> &'static str {
    match kind {
        ModuleKind::Orchestrator => "Orchestrators",
        ModuleKind::Context => "Contexts",
        ModuleKind::Provider => "Providers",
        ModuleKind::Tool => "Tools",
        ModuleKind::Hook => "Hooks",
        ModuleKind::Resolver => "Resolvers",
    }
}

fn section(module: &Details) -> String {
    let info = &module.info;
    let mut text = format!("\n### `{}`\n\n{}\n", info.id, info.description);
    if !module.aliases.is_empty() {
        let names: Vec<_> = module.aliases.iter().map(|name| format!("`{name}`")).collect();
        text.push_str(&format!("\nOther names: {}\n", names.join(", ")));
    }
    if !module.config.is_empty() {
        text.push_str(&format!("\nConfig:\n\n{}", keys(&module.config)));
    }
    for tool in &module.tools {
        text.push_str(&tool_section(tool));
    }
    if let Some(reason) = &module.tools_unknown {
        text.push_str(&format!(
            "\nIts tools depend on its config; with the usual one: {}.\n",
            one_line(reason)
        ));
    }
    if !info.events.is_empty() {
        let events: String = info.events.iter().map(event).collect();
        text.push_str(&format!("\nEvents it emits:\n\n{events}"));
    }
    for own in info.events.iter().filter(|event| event.schema.is_some()) {
        let table = own.schema.as_ref().map(fields).unwrap_or_default();
        text.push_str(&format!("\n`{}` carries:\n\n{table}", own.name));
    }
    for (words, names) in [("Capabilities it uses", &info.uses), ("Capabilities it offers", &info.gives)] {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        if !names.is_empty() {
            text.push_str(&format!("\n{words}: {}\n", names.join(", ")));
        }
    }
    text
}

fn tool_section(tool: &Tool) -> String {
    let about = tool.spec.description.as_deref().unwrap_or_default().trim();
    let effects = effects(tool.effects);
    let mut text = format!("\n#### Tool `{}`\n\n{about}\n\nDeclared effects: {effects}\n", tool.spec.name);
    if !tool.input.is_empty() {
        text.push_str(&format!("\n{}", keys(&tool.input)));
    }
    text
}

fn effects(effects: Effects) -> String {
    let touched = [
        (effects.reads, "reads"),
        (effects.writes, "writes"),
        (effects.executes, "executes"),
        (effects.network, "network"),
    ];
    let words: Vec<_> = touched.into_iter().filter(|(touches, _)| *touches).map(|(_, word)| word).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

fn keys(keys: &[Key]) -> String {
    let row = |key: &Key| {
        let default = match (&key.default, key.required) {
            (Some(default), _) => format!("`{default}`"),
            (None, true) => "required".to_owned(),
            (None, false) => String::new(),
        };
        let meaning = cell(&key.description);
        format!("| `{}` | {} | {} | {meaning} |\n", key.name, cell(&key.kind), cell(&default))
    };
    let rows: String = keys.iter().map(row).collect();
    format!("| key | type | default | meaning |\n|---|---|---|---|\n{rows}")
}

/// The agreed events are described on their own page.
fn event(event: &EventInfo) -> String {
    let meaning = one_line(&description(&serde_json::json!({ "description": event.description })));
    match event.schema {
        Some(_) => format!("- `{}`: {meaning}\n", event.name),
        None => format!("- [`{}`](events.md#{}): {meaning}\n", event.name, anchor(&event.name)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_page_has_contents_config_tools_and_events() {
        let key = json!({"name": "a.b", "type": "one of x, y", "required": false, "default": "x|z", "description": "Which."});
        let tool = json!({
            "name": "peek", "description": "Looks.", "parameters": {},
            "effects": {"class": "read", "reads": true, "writes": false, "executes": false, "network": false},
            "input": [{"name": "path", "type": "string", "required": true, "description": "Where."}],
        });
        let own = json!({"properties": {"n": {"type": "integer", "description": "How many."}}});
        let details: Details = serde_json::from_value(json!({
            "id": "tool-peek", "name": "tool-peek", "version": "1", "type": "tool", "mount_point": "tools",
            "description": "Looks at things.", "aliases": ["tool-look"], "config": [key], "tools": [tool], "uses": ["session.dir"],
            "events": [
                {"name": "artifact:read", "description": "A file was read."},
                {"name": "peek:done", "description": "It looked.", "schema": own},
            ],
        }))
        .unwrap();
        let page = modules_page(&[details]);
        let expected = "
## Contents

- **Tools**: [`tool-peek`](#tool-peek)

## Tools

### `tool-peek`

Looks at things.

Other names: `tool-look`

Config:

| key | type | default | meaning |
|---|---|---|---|
| `a.b` | one of x, y | `\"x\\|z\"` | Which. |

#### Tool `peek`

Looks.

Declared effects: reads

| key | type | default | meaning |
|---|---|---|---|
| `path` | string | required | Where. |

Events it emits:

- [`artifact:read`](events.md#artifactread): A file was read.
- `peek:done`: It looked.

`peek:done` carries:

| field | type | required | meaning |
|---|---|---|---|
| `n` | integer | no | How many. |

Capabilities it uses: `session.dir`
";
        assert_eq!(page.strip_prefix(INTRODUCTION).unwrap(), expected);
    }
}
