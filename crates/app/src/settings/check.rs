//! Whether a settings file says what settings can say. A key nobody knows is a warning with the nearest one; a value that
//! cannot be meant is an error, since doing something else in silence would be worse.

use std::time::Duration;

use amplifier_bundle::node::{Mapping, Node, NodeValue};
use amplifier_bundle::notice::{Code, Notice, closest, quoted};
use amplifier_core::redact::{names_a_secret, redact_text};
use amplifier_protocol::ids::ModuleId;

use crate::catalog;

use super::known::{self, FOREIGN, OVERRIDE_KEYS, PROVIDER_KEYS, Shape};

/// What is worth telling about a file.
pub(super) fn check(root: &Mapping) -> Vec<Notice> {
    let mut notices = Vec::new();
    section(root, "", &mut notices);
    notices
}

fn section(mapping: &Mapping, path: &str, notices: &mut Vec<Notice>) {
    for (key, entry) in mapping {
        let here = join(path, key);
        if let Some(known) = known::find(&here) {
            value(&entry.node, &here, known.shape, notices);
        } else if FOREIGN.contains(&here.as_str()) {
            let message = format!("`{here}` belongs to another program and means nothing here");
            notices.push(Notice::note(Code::NoEffect, &entry.key, message));
        } else if known::below(&here).is_empty() {
            notices.push(unknown(&entry.key, &here, key, &known::below(path)));
        } else {
            match &entry.node.value {
                NodeValue::Map(below) => section(below, &here, notices),
                NodeValue::Null => {}
                _ => notices.push(wrong(&entry.node, &here, "a mapping")),
            }
        }
    }
}

fn unknown(place: &amplifier_bundle::origin::Place, path: &str, key: &str, words: &[&str]) -> Notice {
    let notice = Notice::warning(Code::UnknownKey, place, format!("there is no setting `{path}`"));
    match closest(key, words.iter().copied()) {
        Some(near) => notice.with_hint(format!("did you mean `{near}`?")),
        None => notice.with_hint(format!("known here: {}", quoted(words.iter().copied()))),
    }
}

fn wrong(node: &Node, path: &str, expected: &str) -> Notice {
    let found = match node.as_text() {
        // What stands in the wrong place may be a key; it is named, not shown.
        Some(text) if redact_text(text) == text => format!("`{text}`"),
        _ => node.type_name().to_owned(),
    };
    let message = format!("`{path}` takes {expected}, found {found}");
    Notice::error(Code::WrongType, &node.place, message)
}

/// Checks one value; null means that nothing is set.
pub(super) fn value(node: &Node, path: &str, shape: Shape, notices: &mut Vec<Notice>) {
    if node.is_null() {
        return;
    }
    match shape {
        Shape::Providers => return providers(node, path, notices),
        Shape::Overrides => return overrides(node, path, notices),
        _ => {}
    }
    let number = match &node.value {
        NodeValue::Number(number, _) => number.as_f64(),
        _ => None,
    };
    let fits = match shape {
        Shape::Text => node.spelled().is_some_and(|text| !text.trim().is_empty()),
        Shape::Choice(words) => node.spelled().is_some_and(|text| words.contains(&text)),
        Shape::Dollars => number.is_some_and(|number| number >= 0.0),
        Shape::Seconds => {
            let time = number.and_then(|number| Duration::try_from_secs_f64(number).ok());
            // Neither less than can be measured nor more than can be waited for.
            time.is_some_and(|time| !time.is_zero())
        }
        Shape::Count => number.is_some_and(|number| number >= 1.0 && number.fract() == 0.0),
        Shape::Texts => node.as_list().is_some_and(|items| items.iter().all(|item| item.spelled().is_some())),
        Shape::Named => {
            node.as_map().is_some_and(|map| map.values().all(|entry| entry.node.spelled().is_some()))
        }
        Shape::Providers | Shape::Overrides => true,
    };
    if !fits {
        notices.push(wrong(node, path, &shape.words()));
    }
}

fn providers(node: &Node, path: &str, notices: &mut Vec<Notice>) {
    let Some(items) = node.as_list() else {
        notices.push(wrong(node, path, &Shape::Providers.words()));
        return;
    };
    let mut seen: Vec<String> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let here = format!("{path}.{at}");
        let Some(entry) = item.as_map() else {
            notices.push(wrong(item, &here, "a mapping with `module`"));
            continue;
        };
        match item.at("module").and_then(Node::as_text).map(str::parse::<ModuleId>) {
            Some(Ok(_)) => {}
            Some(Err(error)) => notices.push(Notice::error(Code::BadValue, &item.place, error.to_string())),
            None => {
                let message = format!("`{here}` names no module");
                notices.push(
                    Notice::error(Code::Missing, &item.place, message)
                        .with_hint("write `- module: provider-anthropic`, for one"),
                );
            }
        }
        keys(entry, &here, &PROVIDER_KEYS, notices);
        let module = item.at("module").and_then(Node::as_text).unwrap_or_default();
        misspelled(module, item.at("config"), &here, notices);
        let Some(identity) = identity(item) else { continue };
        if seen.contains(&identity) {
            let message = format!("`{identity}` is listed twice; the second is laid over the first");
            let notice = Notice::warning(Code::DuplicateModule, &item.place, message);
            notices.push(notice.with_hint("give one of them an `id` of its own"));
        }
        seen.push(identity);
    }
}

fn overrides(node: &Node, path: &str, notices: &mut Vec<Notice>) {
    let Some(modules) = node.as_map() else {
        notices.push(wrong(node, path, &Shape::Overrides.words()));
        return;
    };
    for (module, entry) in modules {
        let here = join(path, module);
        let is_known = catalog::module(module).is_some() || catalog::is_alias(module);
        if !is_known && entry.node.at("source").is_none() {
            let message = format!(
                "`{here}` is for no built-in module; it counts where a bundle brings one of that name"
            );
            let notice = Notice::warning(Code::NoEffect, &entry.key, message);
            let near = catalog::unknown(module).near;
            notices.push(match near.is_empty() {
                true => notice.with_hint("`amplifier module list` shows the built-in ones"),
                false => notice.with_hint(format!("did you mean {}?", near.join(" or "))),
            });
        }
        misspelled(module, entry.node.at("config"), &here, notices);
        match &entry.node.value {
            NodeValue::Map(keys_of_it) => keys(keys_of_it, &here, &OVERRIDE_KEYS, notices),
            NodeValue::Null => {}
            _ => notices.push(wrong(&entry.node, &here, "a mapping with `source` or `config`")),
        }
    }
}

/// Keys of a config that are nearly those of its module. What is nothing like any is left to the module: it may have other
/// names for its keys, and says itself what it does not take.
fn misspelled(module: &str, config: Option<&Node>, path: &str, notices: &mut Vec<Notice>) {
    let Some(config) = config.and_then(Node::as_map).filter(|config| !config.is_empty()) else { return };
    let schema = catalog::module(module).and_then(|info| info.config_schema);
    let Some(known) = schema.as_ref().and_then(|schema| schema.get("properties")?.as_object()) else {
        return;
    };
    for (key, entry) in config.iter().filter(|(key, _)| !known.contains_key(*key)) {
        if let Some(near) = closest(key, known.keys().map(String::as_str)) {
            let message = format!("`{module}` has no `{key}` in its config (`{path}.config.{key}`)");
            let notice = Notice::warning(Code::UnknownKey, &entry.key, message);
            notices.push(notice.with_hint(format!("did you mean `{near}`?")));
        }
    }
}

/// The keys of a provider or an override.
fn keys(entry: &Mapping, path: &str, words: &[&str], notices: &mut Vec<Notice>) {
    for (key, value) in entry {
        let here = join(path, key);
        let node = &value.node;
        match key.as_str() {
            _ if !words.contains(&key.as_str()) => notices.push(unknown(&value.key, &here, key, words)),
            "config" if node.is_null() => {}
            "config" => match node.as_map() {
                Some(config) => plain_secrets(config, &here, notices),
                None => notices.push(wrong(node, &here, "a mapping")),
            },
            "native" if matches!(node.value, NodeValue::Bool(..)) => {}
            "native" => notices.push(wrong(node, &here, "`true` or `false`")),
            _ if node.spelled().is_some() => {}
            _ => notices.push(wrong(node, &here, "a text")),
        }
    }
}

/// A key that lies open in a file is told, without being shown.
fn plain_secrets(config: &Mapping, path: &str, notices: &mut Vec<Notice>) {
    for (key, entry) in config {
        let here = join(path, key);
        match &entry.node.value {
            NodeValue::Map(below) => plain_secrets(below, &here, notices),
            NodeValue::Text(text) if is_secret(key, text) => {
                let message = format!("`{here}` holds a key in plain text");
                let hint = "keep it in a variable or with `amplifier init`, and write `${NAME}` here";
                notices.push(Notice::warning(Code::BadValue, &entry.node.place, message).with_hint(hint));
            }
            _ => {}
        }
    }
}

/// Whether a text under a key looks like a secret that lies open.
pub fn is_secret(key: &str, text: &str) -> bool {
    let is_reference = text.trim_start().starts_with("${") || text.contains(" ${");
    redact_text(text) != text || (names_a_secret(key) && !text.trim().is_empty() && !is_reference)
}

/// What entries of several files are matched by: `id` if there is one, else the module.
pub(super) fn identity(entry: &Node) -> Option<String> {
    let text = |key: &str| entry.at(key).and_then(Node::spelled).map(str::to_owned);
    text("id").or_else(|| text("instance_id")).or_else(|| text("module"))
}

pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
