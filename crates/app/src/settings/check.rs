//! Whether a settings file says what settings can say. A key nobody knows is a warning with the nearest one; a value that
//! cannot be meant is an error, since doing something else in silence would be worse.

use amplifier_bundle::node::{Mapping, Node, NodeValue};
use amplifier_bundle::notice::{Code, Notice, closest, quoted};
use amplifier_bundle::origin::Place;
use amplifier_core::redact::{names_a_secret, redact_text};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::usage::Usd;

use crate::catalog;
use crate::connect;

use super::files::Scope;
use super::known::{self, FOREIGN, OVERRIDE_KEYS, PROVIDER_KEYS, Shape};

/// Who says something: what can be done about it differs.
#[derive(Debug, Clone, Copy)]
pub(super) enum Speaker {
    /// A file that every command reads.
    File(Scope),
    /// A variable of this process.
    Variable(&'static str),
    /// A person at the keyboard, who is told what to type by whoever asked.
    Person,
}

/// What is worth telling about a file.
pub(super) fn check(root: &Mapping, speaker: Speaker) -> Vec<Notice> {
    let mut findings = Findings::of(speaker);
    section(root, "", &mut findings);
    findings.notices
}

/// What is worth telling about one value.
pub(super) fn check_value(node: &Node, path: &str, shape: Shape, speaker: Speaker) -> Vec<Notice> {
    let mut findings = Findings::of(speaker);
    value(node, path, shape, &mut findings);
    findings.notices
}

/// What was found so far.
struct Findings {
    speaker: Speaker,
    notices: Vec<Notice>,
}

impl Findings {
    fn of(speaker: Speaker) -> Self {
        Self { speaker, notices: Vec::new() }
    }

    fn push(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    /// A value that cannot be meant.
    fn wrong(&mut self, node: &Node, path: &str, expected: &str, example: Option<&str>) {
        let message = format!("`{path}` takes {expected}, found {}", shown(node));
        let mut notice = Notice::error(Code::WrongType, &node.place, message);
        // A command changes whole lines: what stands in `{…}` is the editor's.
        notice.hint = self.speaker.cure(path, example.filter(|_| !stands_in_braces(node)));
        self.push(notice);
    }
}

impl Speaker {
    /// What helps against a value that cannot be meant; where it is one of a list or a mapping, no command changes it alone.
    fn cure(self, path: &str, example: Option<&str>) -> Option<String> {
        match (self, example) {
            (Self::Person, _) => None,
            (Self::Variable(name), Some(example)) => {
                Some(format!("`unset {name}` takes it out, `export {name}={example}` sets one that fits"))
            }
            (Self::Variable(name), None) => Some(format!("`unset {name}` takes it out")),
            (Self::File(scope), Some(example)) => {
                let flag = scope.flag();
                Some(format!(
                    "`amplifier config set{flag} {path} {example}` sets one that fits, `amplifier config unset{flag} {path}` \
                     takes it out"
                ))
            }
            (Self::File(scope), None) => Some(scope.mend()),
        }
    }
}

fn section(mapping: &Mapping, path: &str, findings: &mut Findings) {
    for (key, entry) in mapping {
        let here = join(path, key);
        if let Some(known) = known::find(&here) {
            value(&entry.node, &here, known.shape, findings);
        } else if FOREIGN.contains(&here.as_str()) {
            let message = format!("`{here}` belongs to another program and means nothing here");
            findings.push(Notice::note(Code::NoEffect, &entry.key, message));
        } else if known::below(&here).is_empty() {
            findings.push(unknown(&entry.key, &here, key, &known::below(path)));
        } else {
            match &entry.node.value {
                NodeValue::Map(below) => section(below, &here, findings),
                NodeValue::Null => {}
                _ => findings.wrong(&entry.node, &here, "a mapping", None),
            }
        }
    }
}

fn unknown(place: &Place, path: &str, key: &str, words: &[&str]) -> Notice {
    let notice = Notice::warning(Code::UnknownKey, place, format!("there is no setting `{path}`"));
    match closest(key, words.iter().copied()) {
        Some(near) => notice.with_hint(format!("did you mean `{near}`?")),
        None => notice.with_hint(format!("known here: {}", quoted(words.iter().copied()))),
    }
}

fn stands_in_braces(node: &Node) -> bool {
    let Place { file, line, column } = &node.place;
    let at = |number: u32| usize::try_from(number).unwrap_or_default().saturating_sub(1);
    let before = file.text.lines().nth(at(*line)).map(|line| line.chars().take(at(*column)));
    before.is_some_and(|mut before| before.any(|letter| letter == '{'))
}

/// What stands in the wrong place, as it is spelled; what may be a key is named, not shown.
fn shown(node: &Node) -> String {
    match (&node.value, node.spelled()) {
        (_, Some(text)) if redact_text(text) != text => node.type_name().to_owned(),
        (_, Some(text)) if text.trim().is_empty() => "an empty text".to_owned(),
        // In quotes it is a text, whatever it says.
        (NodeValue::Text(_), Some(text)) if text.parse::<f64>().is_ok() => format!("the text `{text}`"),
        (_, Some(text)) => format!("`{text}`"),
        (_, None) => node.type_name().to_owned(),
    }
}

/// Checks one value; null means that nothing is set.
fn value(node: &Node, path: &str, shape: Shape, findings: &mut Findings) {
    if node.is_null() {
        return;
    }
    match shape {
        Shape::Providers => return providers(node, path, findings),
        Shape::Overrides => return overrides(node, path, findings),
        Shape::Texts => return texts(node, path, findings),
        Shape::Named => return named(node, path, findings),
        _ => {}
    }
    let number = node.spelled().filter(|_| matches!(node.value, NodeValue::Number(..)));
    // What is accepted here is what the limits are read from: a limit that cannot be read would be none.
    let fits = match shape {
        Shape::Text => node.spelled().is_some_and(|text| !text.trim().is_empty()),
        Shape::Choice(words) => node.spelled().is_some_and(|text| words.contains(&text)),
        Shape::Dollars => {
            number.and_then(|text| text.parse().ok()).is_some_and(|most: Usd| most >= Usd::default())
        }
        Shape::Seconds => number.and_then(known::seconds).is_some(),
        Shape::Count => number.and_then(|text| text.parse().ok()).is_some_and(|most: u64| most >= 1),
        Shape::Texts | Shape::Named | Shape::Providers | Shape::Overrides => true,
    };
    if !fits {
        let near = |words: &[&'static str]| closest(node.spelled()?, words.iter().copied());
        let example = match (shape, findings.speaker) {
            // The strictest is what every project may say.
            (Shape::Choice(_), Speaker::File(Scope::Project | Scope::Local)) if path == "approve" => {
                Some("none")
            }
            (Shape::Choice(words), _) => near(words).or_else(|| words.first().copied()),
            (shape, _) => shape.example(),
        };
        findings.wrong(node, path, &shape.words(), example);
    }
}

fn texts(node: &Node, path: &str, findings: &mut Findings) {
    let Some(items) = node.as_list() else {
        return findings.wrong(node, path, &Shape::Texts.words(), None);
    };
    for (at, item) in items.iter().enumerate().filter(|(_, item)| item.spelled().is_none()) {
        findings.wrong(item, &format!("{path}.{at}"), &Shape::Text.words(), None);
    }
}

fn named(node: &Node, path: &str, findings: &mut Findings) {
    let Some(entries) = node.as_map() else {
        return findings.wrong(node, path, &Shape::Named.words(), None);
    };
    for (name, entry) in entries.iter().filter(|(_, entry)| entry.node.spelled().is_none()) {
        findings.wrong(&entry.node, &join(path, name), &Shape::Text.words(), None);
    }
}

fn providers(node: &Node, path: &str, findings: &mut Findings) {
    let Some(items) = node.as_list() else {
        findings.wrong(node, path, &Shape::Providers.words(), None);
        return;
    };
    let mut seen: Vec<String> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let here = format!("{path}.{at}");
        let Some(entry) = item.as_map() else {
            findings.wrong(item, &here, "a mapping with `module`", None);
            continue;
        };
        match item.at("module").and_then(Node::as_text).map(str::parse::<ModuleId>) {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                let mut notice = Notice::error(Code::BadValue, &item.place, error.to_string());
                notice.hint = findings.speaker.cure(&here, None);
                findings.push(notice);
            }
            None => {
                let message = format!("`{here}` names no module");
                findings.push(
                    Notice::error(Code::Missing, &item.place, message)
                        .with_hint("write `- module: provider-anthropic`, for one"),
                );
            }
        }
        keys(entry, &here, &PROVIDER_KEYS, findings);
        let module = item.at("module").and_then(Node::as_text).unwrap_or_default();
        misspelled(module, item.at("config"), &here, findings);
        let Some(identity) = identity(item) else { continue };
        if seen.contains(&identity) {
            let message = format!("`{identity}` is listed twice; the second is laid over the first");
            let notice = Notice::warning(Code::DuplicateModule, &item.place, message);
            findings.push(notice.with_hint("give one of them an `id` of its own"));
        }
        seen.push(identity);
    }
}

fn overrides(node: &Node, path: &str, findings: &mut Findings) {
    let Some(modules) = node.as_map() else {
        findings.wrong(node, path, &Shape::Overrides.words(), None);
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
            findings.push(match near.is_empty() {
                true => notice.with_hint("`amplifier module list` shows the built-in ones"),
                false => notice.with_hint(format!("did you mean {}?", near.join(" or "))),
            });
        }
        misspelled(module, entry.node.at("config"), &here, findings);
        match &entry.node.value {
            NodeValue::Map(keys_of_it) => keys(keys_of_it, &here, &OVERRIDE_KEYS, findings),
            NodeValue::Null => {}
            _ => findings.wrong(&entry.node, &here, "a mapping with `source` or `config`", None),
        }
    }
}

/// Keys of a config that are nearly those of its module. What is nothing like any is left to the module: it may have other
/// names for its keys, and says itself what it does not take.
fn misspelled(module: &str, config: Option<&Node>, path: &str, findings: &mut Findings) {
    let Some(config) = config.and_then(Node::as_map).filter(|config| !config.is_empty()) else { return };
    let schema = catalog::module(module).and_then(|info| info.config_schema);
    let Some(known) = schema.as_ref().and_then(|schema| schema.get("properties")?.as_object()) else {
        return;
    };
    for (key, entry) in config.iter().filter(|(key, _)| !known.contains_key(*key)) {
        if let Some(near) = closest(key, known.keys().map(String::as_str)) {
            let message = format!("`{module}` has no `{key}` in its config (`{path}.config.{key}`)");
            let notice = Notice::warning(Code::UnknownKey, &entry.key, message);
            findings.push(notice.with_hint(format!("did you mean `{near}`?")));
        }
    }
}

/// The keys of a provider or an override.
fn keys(entry: &Mapping, path: &str, words: &[&str], findings: &mut Findings) {
    for (key, value) in entry {
        let here = join(path, key);
        let node = &value.node;
        match key.as_str() {
            _ if !words.contains(&key.as_str()) => findings.push(unknown(&value.key, &here, key, words)),
            "config" if node.is_null() => {}
            "config" => match node.as_map() {
                Some(config) => plain_secrets(config, &here, &with_variable(entry), findings),
                None => findings.wrong(node, &here, "a mapping", None),
            },
            "native" if matches!(node.value, NodeValue::Bool(..)) => {}
            "native" => findings.wrong(node, &here, "`true` or `false`", None),
            _ if node.spelled().is_some() => {}
            _ => findings.wrong(node, &here, "a text", None),
        }
    }
}

/// What helps where the key of this entry lies open: the command, where it is a provider.
fn with_variable(entry: &Mapping) -> String {
    let text = |key: &str| entry.get(key).and_then(|entry| entry.node.spelled());
    let module = text("module").filter(|module| connect::provider(module).is_ok());
    match module.map(|module| text("id").or(text("instance_id")).unwrap_or(connect::bare(module))) {
        Some(name) => {
            let variable = connect::variable_of(name);
            format!(
                "put it into `{variable}`, and `amplifier provider set {name} --key-from-env {variable}` writes \
                 `${{{variable}}}` here; `amplifier init` keeps it for you"
            )
        }
        None => "keep it in a variable, and write `${NAME}` here".to_owned(),
    }
}

/// A key that lies open in a file is told, without being shown.
fn plain_secrets(config: &Mapping, path: &str, cure: &str, findings: &mut Findings) {
    for (key, entry) in config {
        let here = join(path, key);
        match &entry.node.value {
            NodeValue::Map(below) => plain_secrets(below, &here, cure, findings),
            NodeValue::Text(text) if is_secret(key, text) => {
                let message = format!("`{here}` holds a key in plain text");
                findings.push(Notice::warning(Code::BadValue, &entry.node.place, message).with_hint(cure));
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
