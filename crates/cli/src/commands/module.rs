//! `amplifier module …`: what the built-in modules are.

use amplifier_app::catalog::{self, Key, ModuleDetails, ToolDetails};
use amplifier_protocol::module_info::{EventInfo, ModuleInfo, ModuleKind};
use amplifier_protocol::tool::Effects;
use serde_json::{Value, json};

use super::load;
use crate::args::{Form, ModuleInfoArgs, ModuleListArgs};
use crate::exit::Exit;
use crate::render;

/// Where the column of summaries begins: behind the longest id.
const SUMMARIES: usize = 30;
/// Where the column of events' meanings begins.
const MEANINGS: usize = 38;

/// `amplifier module list`.
pub fn list(args: &ModuleListArgs) -> Exit {
    let modules = catalog::modules();
    if args.output == Form::Json {
        let rows = modules.iter().map(row).collect();
        render::json(&json!({ "modules": Value::Array(rows) }));
        return Exit::Success;
    }
    let mut kind = None;
    for module in &modules {
        if kind != Some(module.kind) {
            if kind.is_some() {
                render::out("");
            }
            render::out(heading(module.kind));
            kind = Some(module.kind);
        }
        render::out(&render::entry(module.id.as_str(), &module.description, SUMMARIES));
    }
    render::out("\nOther names");
    for module in &modules {
        for alias in catalog::aliases(&module.id) {
            render::out(&render::entry(&alias, &format!("is `{}`", module.id), SUMMARIES));
        }
    }
    Exit::Success
}

fn row(module: &ModuleInfo) -> Value {
    let ModuleInfo { id, version, kind, description, .. } = module;
    let aliases = catalog::aliases(id);
    json!({"id": id, "type": kind, "version": version, "description": description, "aliases": aliases})
}

fn heading(kind: ModuleKind) -> &'static str {
    match kind {
        ModuleKind::Orchestrator => "Orchestrators: run the turn",
        ModuleKind::Context => "Contexts: keep the conversation",
        ModuleKind::Provider => "Providers: talk to models",
        ModuleKind::Tool => "Tools: do things for the model",
        ModuleKind::Hook => "Hooks: watch and control",
        ModuleKind::Resolver => "Resolvers: find modules",
    }
}

/// `amplifier module info ID`.
pub fn info(args: &ModuleInfoArgs) -> Exit {
    load::block_on(async {
        let details = match catalog::details(&args.id).await {
            Ok(details) => details,
            Err(error) => {
                render::error(&error, Some("`amplifier module list` shows all"));
                return Exit::Usage;
            }
        };
        match args.output {
            Form::Json => render::json(&json!(details)),
            Form::Text => render::out(text(&details).trim_end()),
        }
        Exit::Success
    })
}

fn text(details: &ModuleDetails) -> String {
    let info = &details.info;
    let mut text = String::new();
    if let Some(alias) = &details.asked_as {
        text.push_str(&format!("`{alias}` is another name of `{}`.\n\n", info.id));
    }
    text.push_str(&format!("{} {} ({})\n", info.id, info.version, info.kind));
    text.push_str(&format!("{}\n", render::wrapped(&info.description, 0)));
    section(&mut text, "Other names", details.aliases.iter().map(|name| format!("  {name}")));
    section(&mut text, "Config", details.config.iter().map(|field| key(field, 2)));
    section(&mut text, "Tools", details.tools.iter().map(tool));
    if let Some(reason) = &details.tools_unknown {
        let told = format!("They depend on the config; with the usual one there are none: {reason}");
        section(&mut text, "Tools", std::iter::once(render::wrapped(&told, 2)));
    }
    section(&mut text, "Events it emits", info.events.iter().map(event));
    section(&mut text, "Capabilities it uses", info.uses.iter().map(|name| format!("  {name}")));
    section(&mut text, "Capabilities it offers", info.gives.iter().map(|name| format!("  {name}")));
    text
}

/// A heading and what is below it; nothing when there is nothing.
fn section(text: &mut String, heading: &str, parts: impl Iterator<Item = String>) {
    let parts: Vec<_> = parts.collect();
    if !parts.is_empty() {
        text.push_str(&format!("\n{heading}\n{}\n", parts.join("\n")));
    }
}

pub(super) fn key(key: &Key, indent: usize) -> String {
    let more = match (&key.default, key.required) {
        (Some(default), _) => format!(", default {default}"),
        (None, true) => ", required".to_owned(),
        (None, false) => String::new(),
    };
    let head = render::wrapped(&format!("{} ({}{more})", key.name, key.kind), indent + 4);
    // The lines of a long default hang below the key.
    let head = format!("{:indent$}{}", "", head.trim_start());
    if key.description.is_empty() {
        head
    } else {
        format!("{head}\n{}", render::wrapped(&key.description, indent + 4))
    }
}

fn tool(tool: &ToolDetails) -> String {
    let mut parts = vec![format!("  {} ({})", tool.spec.name, effects(tool.effects))];
    if let Some(description) = &tool.spec.description {
        parts.push(render::wrapped(description, 6));
    }
    parts.extend(tool.input.iter().map(|input| key(input, 6)));
    parts.join("\n")
}

pub(super) fn effects(effects: Effects) -> String {
    let touched = [
        (effects.reads, "reads"),
        (effects.writes, "writes"),
        (effects.executes, "executes"),
        (effects.network, "network"),
    ];
    let words: Vec<_> = touched.into_iter().filter(|(touches, _)| *touches).map(|(_, word)| word).collect();
    if words.is_empty() { "touches nothing".to_owned() } else { words.join(", ") }
}

fn event(event: &EventInfo) -> String {
    render::entry(&event.name, &event.description, MEANINGS)
}
