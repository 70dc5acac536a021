//! Agents: the names of a roster become entries of the plan, filled from their files.
//!
//! An agent file is a bundle with another head and is read by the same function. What the roster itself says about an
//! agent wins over its file, even when it says "nothing". Running an agent is not done here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;

use crate::bundle::{self, Access, Bundle, HeadKind, Modules};
use crate::compose::{Agent, Composed};
use crate::error::BundleError;
use crate::fetch::{Files, PathKind};
use crate::home::{Home, normalize};
use crate::include::{LoadLimits, Namespace};
use crate::node::{Entry, Mapping, Mark, Node, NodeValue, put};
use crate::notice::{Code, Notice};
use crate::origin::Place;

/// Fills every agent of a bundle; what is missing or broken is told and does not stop the others.
pub fn entries(files: &impl Files, composed: &mut Composed, limits: &LoadLimits) -> IndexMap<String, Node> {
    let mut notices = Vec::new();
    let mut entries = IndexMap::new();
    for (name, agent) in &composed.agents {
        if agent.entry.mark == Mark::Delete {
            continue;
        }
        let file = match find(files, name, agent, &composed.namespaces) {
            Found::File { home, place_note } => {
                notices.extend(place_note);
                let read = read(files, name, &home, &agent.entry.place, limits, &mut notices);
                if read.is_none() {
                    // Half an agent, without its rules, is worse than none.
                    continue;
                }
                read
            }
            Found::Missing(tried) => {
                notices.extend(missing(name, agent, &tried));
                None
            }
            Found::Escapes(escape) => {
                notices.push(Notice::warning(Code::Escape, &agent.entry.place, escape));
                None
            }
        };
        entries.insert(name.clone(), entry(name, agent, file));
    }
    composed.notices.append(&mut notices);
    entries
}

/// What looking for an agent's file came to.
enum Found {
    File { home: Arc<Home>, place_note: Option<Notice> },
    Missing(Vec<PathBuf>),
    Escapes(String),
}

/// The folders an agent may live in, each with the namespace that says how far it may reach.
fn places(agent: &Agent, name: &str, namespaces: &[Namespace]) -> (Vec<(PathBuf, Arc<Home>)>, String) {
    if let Some((namespace, rest)) = name.split_once(':') {
        let found = agent.own.iter().chain(namespaces).find(|known| known.name == namespace);
        let place = found.map(|found| (found.dir.clone(), Arc::clone(&found.home)));
        return (place.into_iter().collect(), rest.to_owned());
    }
    let mut places = vec![(agent.home.dir.clone(), Arc::clone(&agent.home))];
    for own in &agent.own {
        if places.iter().all(|(dir, _)| *dir != own.dir) {
            places.push((own.dir.clone(), Arc::clone(&own.home)));
        }
    }
    (places, name.to_owned())
}

fn find(files: &impl Files, name: &str, agent: &Agent, namespaces: &[Namespace]) -> Found {
    let (places, rest) = places(agent, name, namespaces);
    let stem = rest.strip_suffix(".md").unwrap_or(&rest);
    let mut tried = Vec::new();
    for (dir, home) in places {
        // The folder `agents` is implied; people write it all the same.
        for (base, doubled) in [(dir.join("agents"), false), (dir.clone(), true)] {
            if doubled && !stem.starts_with("agents/") {
                continue;
            }
            let path = normalize(&base.join(format!("{stem}.md")));
            if !path.starts_with(&dir) {
                return Found::Escapes(format!("agent `{name}` leads out of `{}`", dir.display()));
            }
            if files.kind(&path) != PathKind::File {
                tried.push(path);
                continue;
            }
            return match confined(files, &path, &home) {
                Some(file) => {
                    let place_note = doubled.then(|| {
                        let short = name.replacen("agents/", "", 1);
                        let message = format!("agent `{name}` names the folder `agents`, which is implied");
                        Notice::warning(Code::BadValue, &agent.entry.place, message)
                            .with_hint(format!("write `{short}`"))
                    });
                    let home = Arc::new(Home::new(file, home.root.clone(), home.source.clone()));
                    Found::File { home, place_note }
                }
                None => Found::Escapes(format!(
                    "the file of agent `{name}` leads out of `{}`",
                    home.root.display()
                )),
            };
        }
    }
    Found::Missing(tried)
}

/// The real path of a file, unless a link leads it out of its root.
fn confined(files: &impl Files, path: &Path, home: &Home) -> Option<PathBuf> {
    let real = files.real_path(path).ok()?;
    let is_inside = real.starts_with(&home.root) || real.starts_with(files.real_path(&home.root).ok()?);
    is_inside.then_some(real)
}

/// An agent that is only listed needs a file; one that is defined in the bundle may have none.
fn missing(name: &str, agent: &Agent, tried: &[PathBuf]) -> Option<Notice> {
    let is_listed = agent.entry.definition.keys().all(|key| key == "name") && agent.entry.reference.is_none();
    if !is_listed {
        return None;
    }
    let message = match tried {
        [] => format!("agent `{name}` has no definition: no bundle of that namespace is loaded"),
        _ => {
            let tried = tried.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>();
            format!("agent `{name}` has no definition; tried {}", tried.join(", "))
        }
    };
    Some(Notice::warning(Code::MissingAgent, &agent.entry.place, message))
}

fn read(
    files: &impl Files,
    name: &str,
    home: &Arc<Home>,
    listed: &Place,
    limits: &LoadLimits,
    notices: &mut Vec<Notice>,
) -> Option<Bundle> {
    let read = files
        .read(&home.file, limits.file_bytes)
        .map_err(|source| BundleError::Read { path: home.file.clone(), source })
        .and_then(|bytes| bundle::read(bytes, home, &limits.yaml));
    match read {
        Ok((bundle, mut found)) => {
            notices.append(&mut found);
            tell_unused(&bundle, name, notices);
            Some(bundle)
        }
        Err(error) => {
            let place = error.place().unwrap_or(listed).clone();
            let message = format!("agent `{name}` is left out: {error}");
            let mut notice = Notice::warning(Code::MissingAgent, &place, message);
            notice.hint = error.hint();
            notices.push(notice);
            None
        }
    }
}

/// Sections that mean something in a bundle and nothing in an agent of a roster.
fn tell_unused(bundle: &Bundle, name: &str, notices: &mut Vec<Notice>) {
    let mut unused = |section: &str, place: &Place| {
        let message = format!("`{section}` has no effect in agent `{name}` when a roster lists it");
        notices.push(Notice::warning(Code::NoEffect, place, message));
    };
    if let Some(include) = bundle.includes.first() {
        unused("includes", &include.place);
    }
    if let Some(context) = bundle.context.entries.first() {
        unused("context", &context.path.place);
    }
    if let Some(spawn) = &bundle.spawn {
        unused("spawn", &spawn.place);
    }
    if let Some((_, agent)) = bundle.agents.entries.first() {
        unused("agents", &agent.place);
    }
}

/// The entry of the plan: the roster's words first, the file's where the roster is silent.
fn entry(name: &str, agent: &Agent, file: Option<Bundle>) -> Node {
    let listed = &agent.entry.place;
    let mut own = agent.entry.definition.clone();
    let mut merged = Mapping::new();
    let named = own.shift_remove("name").map_or_else(|| Node::text(name, listed), |entry| entry.node);
    put(&mut merged, "name", named);
    let described = own.shift_remove("description").map(|entry| entry.node);
    let from_file = file.map(said).unwrap_or_default();
    if let Some(described) =
        described.or_else(|| from_file.get("description").map(|entry| entry.node.clone()))
    {
        put(&mut merged, "description", described);
    }
    for (key, entry) in from_file {
        if !matches!(key.as_str(), "name" | "description") && !own.contains_key(&key) {
            merged.insert(key, entry);
        }
    }
    merged.extend(own.into_iter().map(|(key, entry)| (key, Entry { key: entry.key, node: entry.node })));
    let mut node = Node::map(merged, listed);
    node.overrode.clone_from(&agent.overrode);
    node
}

/// What an agent's file says, as the keys of an entry.
pub fn said(bundle: Bundle) -> Mapping {
    let mut mapping = bundle.head.extra;
    for (key, text) in [("name", bundle.head.name), ("description", bundle.head.description)] {
        if let Some(text) = text {
            put(&mut mapping, key, Node::text(text.text, &text.place));
        }
    }
    if bundle.head.kind == HeadKind::FlatAgent {
        // Without `meta:` its further words stand at the top.
        mapping.extend(bundle.unknown);
    }
    for (key, modules) in [("providers", bundle.providers), ("tools", bundle.tools), ("hooks", bundle.hooks)]
    {
        if let Some(list) = list(modules) {
            put(&mut mapping, key, list);
        }
    }
    if let Some(session) = bundle.session {
        put(&mut mapping, "session", session);
    }
    for (key, node) in bundle.models {
        put(&mut mapping, &key, node);
    }
    if let Some((access, place)) = bundle.access {
        put(&mut mapping, "agents", access_node(access, &place));
    }
    if let Some(text) = bundle.instruction {
        put(&mut mapping, "instruction", Node::text(text.text, &text.place));
    }
    mapping
}

fn list(modules: Modules) -> Option<Node> {
    let place = modules.place?;
    let nodes = modules.entries.into_iter().map(|module| module.node).collect();
    Some(Node::new(NodeValue::List(nodes), place))
}

fn access_node(access: Access, place: &Place) -> Node {
    match access {
        Access::All => Node::text("all", place),
        Access::None => Node::text("none", place),
        Access::Only(names) => {
            let names = names.into_iter().map(|name| Node::text(name, place)).collect();
            Node::new(NodeValue::List(names), place.clone())
        }
    }
}
