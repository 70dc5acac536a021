//! A file's text to a [`Bundle`]: every section checked, every mistake collected, nothing dropped in silence.

use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;

use super::head::spelled;
use super::{Bundle, Head, HeadKind, Include, Modules, Text, agents, context, head, modules};
use crate::error::BundleError;
use crate::front_matter;
use crate::home::Home;
use crate::node::{Mapping, Mark, Node, NodeValue};
use crate::notice::{Code, Notice, Severity, closest};
use crate::origin::{Place, SourceFile};
use crate::yaml::{self, YamlLimits};

/// The top-level keys of a file.
pub const BUNDLE_KEYS: [&str; 15] = [
    "bundle",
    "meta",
    "profile",
    "mode",
    "includes",
    "session",
    "providers",
    "tools",
    "hooks",
    "agents",
    "context",
    "spawn",
    "model_role",
    "provider_preferences",
    "ui",
];

/// What helps where a file is nothing like a bundle.
const BEGIN: &str = "begin with `bundle:` and a `name:` below it";

/// Keys of `session` that are read somewhere; others are passed on to the plan.
pub const SESSION_KEYS: [&str; 12] = [
    "orchestrator",
    "orchestrator_source",
    "context",
    "context_source",
    "injection_budget_per_turn",
    "injection_size_limit",
    "metadata",
    "raw",
    "debug",
    "limits",
    "deadlines",
    "settings",
];

/// Keys of `spawn` that are read somewhere; others are passed on to the plan.
pub const SPAWN_KEYS: [&str; 6] =
    ["tools", "exclude_tools", "inherit_tools", "hooks", "exclude_hooks", "inherit_hooks"];

/// Bytes to a bundle: the file's name says which format it has.
///
/// # Errors
/// [`BundleError`] when the bytes are no text, the YAML is broken, or a section has the wrong shape.
pub fn read(
    bytes: Vec<u8>,
    home: &Arc<Home>,
    limits: &YamlLimits,
) -> Result<(Bundle, Vec<Notice>), BundleError> {
    let mut notices = Vec::new();
    let (node, instruction) = split_file(bytes, &home.file, limits, &mut notices)?;
    if instruction.is_none() && node.as_ref().is_none_or(Node::is_null) {
        notices.push(says_nothing(home));
    }
    let mut reader = Reader { home, label: String::new(), kind: HeadKind::None, notices };
    let mut bundle = reader.bundle(node);
    bundle.instruction = instruction;
    let notices = reader.notices;
    if notices.iter().any(|notice| notice.severity == Severity::Error) {
        return Err(BundleError::Invalid(notices));
    }
    Ok((bundle, notices))
}

fn says_nothing(home: &Home) -> Notice {
    let file = Arc::new(SourceFile::new(&home.file, ""));
    let notice = Notice::note(
        Code::Missing,
        &Place::start(&file),
        "the bundle says nothing: it has neither keys nor an instruction",
    );
    notice.with_hint(BEGIN)
}

/// Bytes of a file to its YAML and its body; the file's name says which format it has.
///
/// # Errors
/// [`BundleError`] when the bytes are no text, the YAML is broken, or the name has no suffix we know.
pub fn split_file(
    bytes: Vec<u8>,
    path: &Path,
    limits: &YamlLimits,
    notices: &mut Vec<Notice>,
) -> Result<(Option<Node>, Option<Text>), BundleError> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..offset).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        BundleError::NotText { path: path.to_path_buf(), offset, line }
    })?;
    let file = Arc::new(SourceFile::new(path, front_matter::without_byte_order_mark(&text)));
    let suffix = path.extension().map(|suffix| suffix.to_string_lossy().to_lowercase());
    let (document, instruction) = match suffix.as_deref() {
        Some("md") => {
            let parts = front_matter::split(&file.text);
            if front_matter::opens_unclosed(&file.text) {
                let message =
                    "the file begins with `---` but no line ends the head; all of it is the instruction";
                let notice = Notice::warning(Code::NoEffect, &Place::start(&file), message);
                notices.push(notice.with_hint("add a line `---` after the YAML"));
            }
            let yaml = parts.yaml.unwrap_or_default();
            (yaml::read_part(&file, yaml, parts.yaml_line, limits)?, body(&file, parts.body, parts.body_line))
        }
        Some("yaml" | "yml") => (yaml::read(&file, limits)?, None),
        _ => return Err(BundleError::UnknownFormat(path.to_path_buf())),
    };
    notices.extend(document.notices);
    Ok((document.node, instruction))
}

fn body(file: &Arc<SourceFile>, body: &str, line: u32) -> Option<Text> {
    let text = body.trim().replace("\r\n", "\n");
    (!text.is_empty()).then(|| Text { text, place: Place { file: Arc::clone(file), line, column: 1 } })
}

/// The state of reading one file.
pub(super) struct Reader<'r> {
    home: &'r Arc<Home>,
    label: String,
    kind: HeadKind,
    notices: Vec<Notice>,
}

impl Reader<'_> {
    pub(super) fn tell(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    /// How messages call the file: by its name, else by its path.
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    pub(super) fn home(&self) -> &Home {
        self.home
    }

    pub(super) fn kind(&self) -> HeadKind {
        self.kind
    }

    /// Profiles list one module twice as a matter of course.
    pub(super) fn allows_duplicates(&self) -> bool {
        self.kind == HeadKind::Profile
    }

    pub(super) fn wrong(&mut self, node: &Node, label: &str, expected: &str, hint: &str) {
        let message = format!(
            "`{label}` of {} must be {expected}, not {}: {}",
            self.label,
            node.type_name(),
            node.preview()
        );
        self.tell(Notice::error(Code::WrongType, &node.place, message).with_hint(hint));
    }

    /// A mapping; null counts as an empty one.
    pub(super) fn mapping(&mut self, node: Node, label: &str) -> Option<Mapping> {
        match node.value {
            NodeValue::Map(mapping) => Some(mapping),
            NodeValue::Null => None,
            _ => {
                self.wrong(&node, label, "a mapping", "write keys and values below it");
                None
            }
        }
    }

    /// A scalar as spelled; null counts as absent.
    pub(super) fn text(&mut self, node: Node, label: &str) -> Option<Text> {
        if node.is_null() {
            return None;
        }
        let text = spelled(&node);
        if text.is_none() {
            self.wrong(&node, label, "a string", "write it as text");
        }
        text
    }

    fn bundle(&mut self, node: Option<Node>) -> Bundle {
        self.label = format!("`{}`", self.home.file.display());
        let mut keys = node.map(|node| self.top(node)).unwrap_or_default();
        let head = head::take(self, &mut keys);
        self.kind = head.kind;
        if let Some(name) = head.name() {
            self.label = format!("`{name}`");
        }
        let mut bundle = self.sections(head, &mut keys);
        self.tell_unknown(&bundle.head, &keys);
        bundle.unknown = keys;
        bundle
    }

    fn top(&mut self, node: Node) -> Mapping {
        match node.value {
            NodeValue::Map(mapping) => mapping,
            NodeValue::Null => Mapping::new(),
            _ => {
                let message = format!("{} must hold keys and values, not {}", self.label, node.type_name());
                let notice = Notice::error(Code::WrongType, &node.place, message);
                self.tell(notice.with_hint(BEGIN));
                Mapping::new()
            }
        }
    }

    fn sections(&mut self, head: Head, keys: &mut Mapping) -> Bundle {
        let kind = head.kind;
        let includes = take(keys, "includes").map(|node| self.includes(node)).unwrap_or_default();
        let session = take(keys, "session").and_then(|node| session(self, node, "session"));
        let mut list = |section: &str, keys: &mut Mapping| -> Modules {
            take(keys, section).map(|node| modules::read(self, node, section)).unwrap_or_default()
        };
        let [providers, tools, hooks] = ["providers", "tools", "hooks"].map(|section| list(section, keys));
        let agents = take(keys, "agents").map(|node| agents::read(self, node, kind)).unwrap_or_default();
        let context = take(keys, "context").map(|node| context::read(self, node)).unwrap_or_default();
        let spawn = take(keys, "spawn").and_then(|node| self.spawn(node));
        let models = ["model_role", "provider_preferences"]
            .into_iter()
            .filter_map(|key| Some((key.to_owned(), take(keys, key)?)))
            .filter(|(_, node)| !node.is_null())
            .collect::<IndexMap<_, _>>();
        Bundle {
            head,
            includes,
            session,
            providers,
            tools,
            hooks,
            agents: agents.roster,
            access: agents.access,
            context,
            spawn,
            instruction: None,
            models,
            unknown: Mapping::new(),
            home: Arc::clone(self.home),
        }
    }

    fn includes(&mut self, node: Node) -> Vec<Include> {
        let items = match node.value {
            NodeValue::Null => return Vec::new(),
            NodeValue::List(items) => items,
            _ => {
                let hint = node
                    .as_text()
                    .map_or("write a list".to_owned(), |text| format!("write `- bundle: {text}`"));
                self.wrong(&node, "includes", "a list", &hint);
                return Vec::new();
            }
        };
        items.into_iter().enumerate().filter_map(|(index, item)| self.include(&item, index)).collect()
    }

    fn include(&mut self, item: &Node, index: usize) -> Option<Include> {
        let label = format!("includes[{index}]");
        if let Some(mapping) = item.as_map() {
            for (key, entry) in mapping {
                if key != "bundle" {
                    let message = format!("`{label}.{key}` is not a key we know");
                    let notice = Notice::warning(Code::UnknownKey, &entry.key, message);
                    self.tell(notice.with_hint("write `- bundle: <address, path or name>`"));
                }
            }
        }
        let target = if item.as_map().is_some() { item.at("bundle") } else { Some(item) };
        let Some(target) = target.filter(|target| !target.is_null()) else {
            let notice = Notice::warning(Code::NoEffect, &item.place, format!("`{label}` names no bundle"));
            self.tell(notice.with_hint("write `- bundle: <address, path or name>`"));
            return None;
        };
        match target.spelled().map(str::trim) {
            Some("") => {
                self.tell(Notice::warning(Code::NoEffect, &target.place, format!("`{label}` is empty")));
                None
            }
            Some(reference) => Some(Include { reference: reference.to_owned(), place: target.place.clone() }),
            None => {
                self.wrong(
                    target,
                    &label,
                    "the address of a bundle",
                    "write `- bundle: <address, path or name>`",
                );
                None
            }
        }
    }

    fn spawn(&mut self, mut node: Node) -> Option<Node> {
        match &mut node.value {
            NodeValue::Map(mapping) => {
                near_misses(self, mapping, "spawn", &SPAWN_KEYS);
                if let Some(tools) = mapping.get_mut("tools")
                    && matches!(tools.node.value, NodeValue::List(_))
                {
                    let list = modules::read(self, tools.node.clone(), "spawn.tools");
                    tools.node.value =
                        NodeValue::List(list.entries.into_iter().map(|module| module.node).collect());
                }
                Some(node)
            }
            _ if node.mark == Mark::Delete => Some(node),
            NodeValue::Null => None,
            _ => {
                self.wrong(&node, "spawn", "a mapping", "write keys and values below it");
                None
            }
        }
    }

    fn tell_unknown(&mut self, head: &Head, keys: &Mapping) {
        for (key, entry) in keys {
            if BUNDLE_KEYS.contains(&key.as_str()) || is_flat_extra(head, key) {
                continue;
            }
            if head.kind == HeadKind::Profile && matches!(key.as_str(), "task" | "model") {
                continue;
            }
            let notice =
                Notice::warning(Code::UnknownKey, &entry.key, format!("`{key}` is not a key we know"));
            let hint = match (key.as_str(), closest(key, BUNDLE_KEYS)) {
                ("instruction", _) => "the instruction is the Markdown body below the head".to_owned(),
                (_, Some(meant)) => format!("did you mean `{meant}`?"),
                (_, None) => format!("known keys: {}", crate::notice::quoted(BUNDLE_KEYS)),
            };
            self.tell(notice.with_hint(hint));
        }
    }
}

/// An agent without `meta:` keeps its own keys at the top.
fn is_flat_extra(head: &Head, key: &str) -> bool {
    head.kind == HeadKind::FlatAgent && closest(key, BUNDLE_KEYS).is_none()
}

/// Checks a `session` section and makes its sources absolute.
pub(super) fn session(reader: &mut Reader<'_>, mut node: Node, label: &str) -> Option<Node> {
    let mapping = match &mut node.value {
        NodeValue::Map(mapping) => mapping,
        _ if node.mark == Mark::Delete => return Some(node),
        NodeValue::Null => return None,
        _ => {
            reader.wrong(&node, label, "a mapping", "write keys and values below it");
            return None;
        }
    };
    if reader.kind == HeadKind::Profile {
        for alias in ["context-manager", "context_manager"] {
            if let Some(entry) = mapping.shift_remove(alias) {
                mapping.entry("context".to_owned()).or_insert(entry);
            }
        }
    }
    for slot in ["orchestrator", "context"] {
        if let Some(source) = mapping.get_mut(&format!("{slot}_source")) {
            modules::rebase(reader, &mut source.node, &format!("{label}.{slot}_source"));
        }
        let Some(entry) = mapping.get_mut(slot) else { continue };
        let at = format!("{label}.{slot}");
        match &mut entry.node.value {
            NodeValue::Text(_) | NodeValue::Null => {}
            NodeValue::Map(module) => modules::check_entry(reader, module, &at),
            _ => reader.wrong(&entry.node, &at, "a module id or a mapping", "write the id of a module"),
        }
    }
    near_misses(reader, mapping, label, &SESSION_KEYS);
    Some(node)
}

/// Tells of keys that are one slip away from a known one; the rest of a free section is its reader's business.
fn near_misses(reader: &mut Reader<'_>, mapping: &Mapping, label: &str, known: &[&str]) {
    for (key, entry) in mapping {
        if !known.contains(&key.as_str())
            && let Some(meant) = closest(key, known.iter().copied())
        {
            let notice = Notice::warning(
                Code::UnknownKey,
                &entry.key,
                format!("`{label}.{key}` is not a key we know"),
            );
            reader.tell(notice.with_hint(format!("did you mean `{meant}`?")));
        }
    }
}

fn take(keys: &mut Mapping, key: &str) -> Option<Node> {
    keys.shift_remove(key).map(|entry| entry.node)
}
