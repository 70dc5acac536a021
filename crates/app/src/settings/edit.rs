//! Changes to a settings file, made in its text so that comments and order stay. What comes out is read again and compared
//! with what was meant before it is written; a change that cannot be made safely is refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_bundle::node::Node;
use amplifier_bundle::notice::{Code, Notice, Severity, closest};
use amplifier_bundle::origin::{Place, SourceFile};
use amplifier_bundle::yaml::{self, YamlLimits};
use amplifier_protocol::mount_plan::ModuleSpec;
use serde_json::{Map, Value, json};

use super::check::{self, Speaker, identity, is_secret};
use super::error::SettingsError;
use super::files::{Scope, SettingsFiles};
use super::known::{self, KEYS, OVERRIDE_KEYS, Shape};
use super::splice::{self, Lines, Refusal};
use super::{MOST_BYTES, text};
use crate::trust::{Power, Trust};

/// What a change did.
#[derive(Debug, Clone, PartialEq)]
pub struct Edited {
    pub file: PathBuf,
    /// What stood there; nothing when it was not set.
    pub before: Option<Value>,
    /// What stands there now.
    pub after: Option<Value>,
}

/// A settings file that is to be changed.
#[derive(Debug, Clone)]
pub struct Editor {
    file: PathBuf,
    scope: Scope,
    /// The files of the project, where this is one of them: what the user writes there by a command is trusted.
    project: Option<SettingsFiles>,
}

/// What may stand at a path.
enum Fits {
    Shape(Shape),
    Anything,
}

impl Editor {
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), scope: Scope::User, project: None }
    }

    /// The file of a scope.
    pub fn of(files: &SettingsFiles, scope: Scope) -> Result<Self, SettingsError> {
        let file = files.path(scope)?;
        let project = (scope != Scope::User).then(|| files.clone());
        // A link of a project must not lead to the user's own files.
        if let Some(root) = files.root().filter(|_| scope != Scope::User)
            && let (Ok(target), Ok(root)) = (file.canonicalize(), root.canonicalize())
            && !target.starts_with(root)
        {
            return Err(SettingsError::Link { file, target });
        }
        Ok(Self { file, scope, project })
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Sets a value, as a person types it.
    pub fn set(&self, path: &str, typed: &str) -> Result<Edited, SettingsError> {
        let value = typed_value(path, typed)?;
        self.put(path, &value)
    }

    /// Sets a value that is known to fit.
    pub(crate) fn put(&self, path: &str, value: &Value) -> Result<Edited, SettingsError> {
        let words: Vec<_> = path.split('.').collect();
        self.change(|lines, root, json| {
            let before = json.pointer(&pointer(&words)).filter(|value| !value.is_null()).cloned();
            splice::set(lines, root, &words, value)?;
            put(json, &words, value);
            Ok((before, Some(value.clone())))
        })
    }

    /// Takes a value out of the file.
    pub fn unset(&self, path: &str) -> Result<Edited, SettingsError> {
        let words: Vec<_> = path.split('.').collect();
        let not_set = || SettingsError::NotSet { path: path.to_owned(), file: self.file.clone() };
        if text::read(&self.file, MOST_BYTES)?.is_none() {
            return Err(not_set());
        }
        let edited = self.change(|lines, root, json| {
            let before = json.pointer(&pointer(&words)).cloned();
            if let (Some(root), Some(_)) = (root, &before) {
                splice::unset(lines, root, &words)?;
                remove(json, &words);
            }
            Ok((before, None))
        })?;
        if edited.before.is_some() { Ok(edited) } else { Err(not_set()) }
    }

    /// Adds a provider to the end of the list.
    pub fn add_provider(&self, spec: &ModuleSpec) -> Result<Edited, SettingsError> {
        let item = written(spec);
        refuse_secrets("config.providers", "", &item)?;
        let name = spec.instance_id.clone().unwrap_or_else(|| spec.module.to_string());
        let mut taken = false;
        let edited = self.change(|lines, root, json| {
            let list = providers(root);
            let known = list.and_then(Node::as_list).unwrap_or_default();
            if known.iter().any(|entry| identity(entry).as_deref() == Some(&name)) {
                taken = true;
                return Ok((None, None));
            }
            match list.filter(|_| !known.is_empty()) {
                Some(list) => splice::push(lines, list, &item)?,
                None => splice::set(lines, root, &["config", "providers"], &json!([item]))?,
            }
            let mut items =
                json.pointer("/config/providers").and_then(Value::as_array).cloned().unwrap_or_default();
            items.push(item.clone());
            put(json, &["config", "providers"], &Value::Array(items));
            Ok((None, Some(item.clone())))
        })?;
        if taken {
            return Err(SettingsError::Taken { name, file: self.file.clone() });
        }
        Ok(edited)
    }

    /// Changes the config of a provider that is in the list, in one go: these keys get these values, everything else stays
    /// as it is written. Nothing when it is not there.
    pub fn change_provider(
        &self,
        name: &str,
        config: &Map<String, Value>,
    ) -> Result<Option<Edited>, SettingsError> {
        refuse_secrets("config.providers", "", &Value::Object(config.clone()))?;
        if text::read(&self.file, MOST_BYTES)?.is_none() {
            return Ok(None);
        }
        let edited = self.change(|lines, root, json| {
            let items = providers(root).and_then(Node::as_list).unwrap_or_default();
            let Some(at) = find_provider(items, name) else { return Ok((None, None)) };
            let Some(item) = items.get(at) else { return Ok((None, None)) };
            let Some(entry) = json.pointer_mut(&format!("/config/providers/{at}")) else {
                return Ok((None, None));
            };
            let before = entry.clone();
            for (key, value) in config {
                put(entry, &["config", key], value);
            }
            let old = item.at("config").filter(|old| !splice::is_flow(lines, old)).and_then(Node::as_map);
            match old.filter(|old| !old.is_empty()) {
                Some(old) => {
                    // From below upwards, so that the places above stay true; what is new comes last in the text.
                    let line = |key: &str| old.get(key).map_or(u32::MAX, |entry| entry.key.line);
                    let mut keys: Vec<_> = config.iter().collect();
                    keys.sort_by_key(|(key, _)| std::cmp::Reverse(line(key)));
                    for (key, value) in keys {
                        splice::set(lines, Some(item), &["config", key], value)?;
                    }
                }
                // What stands in `{…}` is written anew as a whole.
                None => {
                    let whole = entry.get("config").cloned().unwrap_or_default();
                    splice::set(lines, Some(item), &["config"], &whole)?;
                }
            }
            Ok((Some(before), Some(entry.clone())))
        })?;
        Ok(edited.before.is_some().then_some(edited))
    }

    /// Takes a provider out of the list: by its id, its module, or its module's short name. Nothing when it is not there.
    pub fn remove_provider(&self, name: &str) -> Result<Option<Edited>, SettingsError> {
        if text::read(&self.file, MOST_BYTES)?.is_none() {
            return Ok(None);
        }
        let edited = self.change(|lines, root, json| {
            let Some(list) = providers(root) else { return Ok((None, None)) };
            let items = list.as_list().unwrap_or_default();
            let Some(at) = find_provider(items, name) else { return Ok((None, None)) };
            let before = json.pointer(&format!("/config/providers/{at}")).cloned();
            match (items.len(), root, items.get(at)) {
                (1, Some(root), _) => {
                    splice::unset(lines, root, &["config", "providers"])?;
                    remove(json, &["config", "providers"]);
                }
                (_, _, Some(item)) => {
                    splice::pull(lines, item)?;
                    if let Some(Value::Array(items)) = json.pointer_mut("/config/providers") {
                        items.remove(at);
                    }
                }
                _ => {}
            }
            Ok((before, None))
        })?;
        Ok(edited.before.is_some().then_some(edited))
    }

    /// Whether a text makes sense in this file.
    pub fn check(&self, text: &str) -> Result<(), SettingsError> {
        check_text(&self.file, text)
    }

    /// What is worth telling about a text that makes sense.
    pub fn notices(&self, text: &str) -> Vec<Notice> {
        let source = Arc::new(SourceFile::new(&self.file, text.trim_start_matches('\u{feff}')));
        super::parse(&source, Speaker::Person).map(|(_, notices)| notices).unwrap_or_default()
    }

    /// Replaces the whole text, if it makes sense as settings and nobody changed it meanwhile; what stood there stays
    /// otherwise.
    pub fn replace(&self, old: &str, new: &str) -> Result<(), SettingsError> {
        check_text(&self.file, new)?;
        let wanted = self.wanted()?;
        let changed = text::change(&self.file, MOST_BYTES, |now| {
            if now.unwrap_or_default() != old {
                return Err(SettingsError::Changed { file: self.file.clone() });
            }
            Ok((Some(new.to_owned()), ()))
        });
        changed.map_err(|error| error.of(self.scope))?;
        self.trust_changes(&wanted)
    }

    /// What the project asked for before a change.
    fn wanted(&self) -> Result<Vec<Power>, SettingsError> {
        self.project.as_ref().map_or_else(|| Ok(Vec::new()), Trust::wanted)
    }

    fn trust_changes(&self, wanted: &[Power]) -> Result<(), SettingsError> {
        self.project.as_ref().map_or(Ok(()), |files| Trust::record_changes(files, wanted))
    }

    /// The text as it stands; empty when there is no file.
    pub fn text(&self) -> Result<String, SettingsError> {
        Ok(text::read(&self.file, MOST_BYTES)?.unwrap_or_default())
    }

    /// Changes the text under the lock and checks that it says exactly what was meant.
    fn change(
        &self,
        change: impl FnOnce(
            &mut Lines,
            Option<&Node>,
            &mut Value,
        ) -> Result<(Option<Value>, Option<Value>), Refusal>,
    ) -> Result<Edited, SettingsError> {
        let wanted = self.wanted()?;
        let changed = text::change(&self.file, MOST_BYTES, |old| {
            let old = old.unwrap_or_default();
            let (mark, body) = match old.strip_prefix('\u{feff}') {
                Some(body) => ("\u{feff}", body),
                None => ("", old.as_str()),
            };
            let file = Arc::new(SourceFile::new(&self.file, body));
            let root = yaml::read(&file, &YamlLimits::default())?.node;
            let mut meant = json_of(root.as_ref());
            let mut lines = Lines::of(body);
            let refused = |Refusal { place, reason }| SettingsError::Unsafe { place, reason };
            let (before, after) = change(&mut lines, root.as_ref(), &mut meant).map_err(refused)?;
            let edited = Edited { file: self.file.clone(), before, after };
            let new = lines.text();
            if new == body {
                return Ok((None, edited));
            }
            let written = Arc::new(SourceFile::new(&self.file, new.as_str()));
            let read = yaml::read(&written, &YamlLimits::default()).ok().map(|document| document.node);
            if read.map(|node| json_of(node.as_ref())) != Some(meant) {
                let reason = "the file is written in a way that cannot be changed line by line".to_owned();
                return Err(SettingsError::Unsafe { place: Place::start(&file), reason });
            }
            Ok((Some(format!("{mark}{new}")), edited))
        });
        let edited = changed.map_err(|error| error.of(self.scope))?;
        self.trust_changes(&wanted)?;
        Ok(edited)
    }
}

/// Whether a text makes sense as settings.
pub(super) fn check_text(file: &Path, new: &str) -> Result<(), SettingsError> {
    let source = Arc::new(SourceFile::new(file, new.trim_start_matches('\u{feff}')));
    let (_, notices) = super::parse(&source, Speaker::Person)?;
    let errors: Vec<_> = notices.into_iter().filter(|notice| notice.severity == Severity::Error).collect();
    if errors.is_empty() { Ok(()) } else { Err(SettingsError::Invalid(errors)) }
}

fn providers(root: Option<&Node>) -> Option<&Node> {
    root?.at("config")?.at("providers")
}

/// Which entry a name means: an id before a module, a module before its short name.
fn find_provider(items: &[Node], name: &str) -> Option<usize> {
    let by_id = items.iter().position(|item| identity(item).as_deref() == Some(name));
    let long = format!("provider-{name}");
    let module = |item: &Node| item.at("module").and_then(Node::as_text).map(str::to_owned);
    by_id.or_else(|| {
        items.iter().position(|item| module(item).is_some_and(|module| module == name || module == long))
    })
}

/// A provider as settings write it.
fn written(spec: &ModuleSpec) -> Value {
    let mut item = Map::new();
    item.insert("module".to_owned(), Value::from(spec.module.as_str()));
    if let Some(id) = &spec.instance_id {
        item.insert("id".to_owned(), Value::from(id.as_str()));
    }
    if let Some(source) = &spec.source {
        item.insert("source".to_owned(), source.clone());
    }
    if !spec.config.is_empty() {
        item.insert("config".to_owned(), Value::Object(spec.config.clone()));
    }
    Value::Object(item)
}

/// What may stand at a path; one that leads nowhere is refused with the nearest.
fn fits(path: &str) -> Result<Fits, SettingsError> {
    if let Some(known) = known::find(path) {
        return Ok(Fits::Shape(known.shape));
    }
    let open = KEYS.iter().find_map(|known| Some((known, path.strip_prefix(known.path)?.strip_prefix('.')?)));
    let words: Vec<_> = open.map(|(_, rest)| rest.split('.').collect()).unwrap_or_default();
    match (open.map(|(known, _)| known.shape), words.as_slice()) {
        (Some(Shape::Named), [name]) if !name.is_empty() => Ok(Fits::Shape(Shape::Text)),
        (Some(Shape::Overrides), [module, "source"]) if !module.is_empty() => Ok(Fits::Shape(Shape::Text)),
        (Some(Shape::Overrides), [module, "config", ..]) if !module.is_empty() => Ok(Fits::Anything),
        (Some(Shape::Overrides), [module, word, ..]) => {
            let near = closest(word, OVERRIDE_KEYS).map(|near| format!("overrides.{module}.{near}"));
            Err(SettingsError::Unknown { path: path.to_owned(), near })
        }
        _ => {
            let near = closest(path, KEYS.iter().map(|known| known.path)).map(str::to_owned);
            Err(SettingsError::Unknown { path: path.to_owned(), near })
        }
    }
}

/// What somebody typed, as what the path takes.
fn typed_value(path: &str, typed: &str) -> Result<Value, SettingsError> {
    let fits = fits(path)?;
    let as_text = || Value::from(typed.trim());
    let value = match fits {
        Fits::Shape(Shape::Text | Shape::Choice(_)) => as_text(),
        _ => {
            let file = Arc::new(SourceFile::new(path, typed));
            match yaml::read(&file, &YamlLimits::default())?.node {
                Some(node) => node.to_json(),
                None => as_text(),
            }
        }
    };
    // Before anything is said about the value: what is said must not show a key.
    refuse_secrets(path, path.rsplit('.').next().unwrap_or(path), &value)?;
    let Fits::Shape(shape) = fits else { return Ok(value) };
    let value = match (shape, value) {
        // One bundle is a list of one.
        (Shape::Texts, Value::String(text)) => json!([text]),
        (_, value) => value,
    };
    let file = Arc::new(SourceFile::new("value", value.to_string()));
    let node = yaml::read(&file, &YamlLimits::default())?.node;
    let check = |node: &Node| check::check_value(node, path, shape, Speaker::Person);
    let notices = node.as_ref().map(check).unwrap_or_default();
    if notices.is_empty() && !value.is_null() {
        return Ok(value);
    }
    // A list or a mapping is wrong in a part, which the notice names; a key that is misspelled says most.
    let misspelled = notices.iter().find(|notice| notice.code == Code::UnknownKey);
    let part = misspelled.or(notices.first()).filter(|_| value.is_array() || value.is_object());
    if let Some(notice) = part {
        return Err(SettingsError::Part { message: notice.message.clone(), hint: notice.hint.clone() });
    }
    let (path, expected) = (path.to_owned(), shape.words());
    let found = amplifier_core::redact::redact_text(typed).into_owned();
    Err(SettingsError::Value { path, expected, found })
}

/// Settings are plain text: what looks like a secret is not written.
fn refuse_secrets(path: &str, key: &str, value: &Value) -> Result<(), SettingsError> {
    match value {
        Value::String(text) if is_secret(key, text) => Err(SettingsError::Secret { path: path.to_owned() }),
        Value::Array(items) => items.iter().try_for_each(|item| refuse_secrets(path, key, item)),
        Value::Object(map) => {
            map.iter().try_for_each(|(key, value)| refuse_secrets(&check::join(path, key), key, value))
        }
        _ => Ok(()),
    }
}

fn json_of(root: Option<&Node>) -> Value {
    match root.map(Node::to_json) {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(value) => value,
    }
}

fn pointer(words: &[&str]) -> String {
    words.iter().fold(String::new(), |pointer, word| amplifier_protocol::locate::join(&pointer, word))
}

fn put(root: &mut Value, words: &[&str], value: &Value) {
    let mut at = root;
    for word in words {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(map) = at else { return };
        at = map.entry((*word).to_owned()).or_insert(Value::Null);
    }
    *at = value.clone();
}

/// Takes a value out, and the mappings that are empty without it.
fn remove(root: &mut Value, words: &[&str]) {
    let Some((first, rest)) = words.split_first() else { return };
    let Value::Object(map) = root else { return };
    if let (Some(below), false) = (map.get_mut(*first), rest.is_empty()) {
        remove(below, rest);
        if below.as_object().is_some_and(|below| !below.is_empty()) || !below.is_object() {
            return;
        }
    }
    map.shift_remove(*first);
}
