//! Credentials in the addresses of modules, and keys in plain text in their configs (`plain.rs`): they are used, and nothing
//! that is shown or kept holds them.
//!
//! An address is hidden right after it was read, as `sources` shows it, so that plans, hashes, locks and messages all have
//! one text for it. What was written is remembered until the modules are here. A session that is resumed has only what is
//! shown: its modules come from the cache, else git's own helpers are asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use amplifier_bundle::include::Graph;
use amplifier_bundle::node::{Mapping, Node, NodeValue};
use amplifier_bundle::notice::{Code, Notice};
use amplifier_bundle::origin::{Overridden, Place};
use amplifier_bundle::plan::PlanDraft;
use amplifier_protocol::address::hide;
use amplifier_protocol::locate::join;
use amplifier_protocol::mount_plan::{MountPlan, PlanForm};
use amplifier_sources::uri::SourceUri;
use serde_json::Value;

use crate::plain::{self, Plain};

/// What a person can do about one.
pub const HINT: &str =
    "leave it out of the address, and let git's credential helper keep it (`git help credentials`)";

/// Addresses as they were written, by how they are shown, and keys in plain text.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    written: BTreeMap<String, SourceUri>,
    plain: Plain,
}

/// A credential of a plan in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hidden {
    /// An address at this pointer.
    Address { pointer: String },
    /// A key in plain text at this pointer, and what is to be told about it.
    Plain { pointer: String, message: String },
}

impl Credentials {
    /// Whether no address holds one.
    pub fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    /// The keys that stood in plain text.
    pub fn plain(&self) -> &Plain {
        &self.plain
    }

    pub(crate) fn plain_mut(&mut self) -> &mut Plain {
        &mut self.plain
    }

    /// What a fetch needs instead of what is shown.
    pub fn written(&self) -> &BTreeMap<String, SourceUri> {
        &self.written
    }

    /// How an address is shown, when it holds a credential.
    fn hide(&mut self, address: &str) -> Option<String> {
        let uri: SourceUri = address.parse().ok()?;
        if !uri.holds_credentials() {
            return None;
        }
        let shown = uri.to_string();
        self.written.insert(shown.clone(), uri);
        Some(shown)
    }

    /// Hides those of a plan whose values know their places, overridden ones included; gives what is to be told.
    pub fn hide_draft(&mut self, draft: &mut PlanDraft) -> Vec<Notice> {
        let mut notices = Vec::new();
        self.hide_mapping("plan", draft.root_mut(), &mut notices);
        notices
    }

    fn hide_mapping(&mut self, name: &str, mapping: &mut Mapping, notices: &mut Vec<Notice>) {
        let text = |key: &str| mapping.get(key).and_then(|entry| entry.node.as_text()).map(str::to_owned);
        let owner = owner(text, name);
        for (key, entry) in mapping {
            let node = &mut entry.node;
            match &mut node.value {
                NodeValue::Map(config) if key == "config" => {
                    self.plain.hide_config(&owner, config, notices);
                    plain::redact_history(key, node);
                }
                NodeValue::Text(text) if is_source(key) => {
                    if let Some(shown) = self.hide(text) {
                        notices.push(told(&node.place, &shown));
                        *text = shown;
                    }
                    for lost in &mut node.overrode {
                        self.hide_text(&mut lost.value);
                        self.hide_parts(lost);
                    }
                }
                _ => self.hide_node(key, node, notices),
            }
        }
    }

    fn hide_node(&mut self, name: &str, node: &mut Node, notices: &mut Vec<Notice>) {
        plain::redact_history(name, node);
        for lost in &mut node.overrode {
            self.hide_json(&mut lost.value, "", &mut Vec::new());
            self.hide_parts(lost);
        }
        match &mut node.value {
            NodeValue::Map(mapping) => self.hide_mapping(name, mapping, notices),
            NodeValue::List(items) => items.iter_mut().for_each(|item| self.hide_node(name, item, notices)),
            _ => {}
        }
    }

    /// What was overridden as a whole is explained part by part.
    fn hide_parts(&mut self, lost: &mut Overridden) {
        if let Some(parts) = &mut lost.parts {
            self.hide_node("plan", Arc::make_mut(parts), &mut Vec::new());
        }
    }

    /// Hides those of a plan in JSON; gives what was hidden.
    pub fn hide_json(&mut self, value: &mut Value, at: &str, found: &mut Vec<Hidden>) {
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.hide_json(item, &join(at, &index.to_string()), found);
                }
            }
            Value::Object(map) => {
                let text = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
                let owner = owner(text, at.rsplit('/').next().unwrap_or_default());
                for (key, value) in map.iter_mut() {
                    let at = join(at, key);
                    match value {
                        Value::Object(config) if key == "config" => {
                            let hidden = self.plain.hide_json(&owner, config, &at).into_iter();
                            found.extend(hidden.map(|(pointer, message)| Hidden::Plain { pointer, message }));
                        }
                        Value::String(text) if is_source(key) => {
                            if let Some(shown) = self.hide(text) {
                                *text = shown;
                                found.push(Hidden::Address { pointer: at });
                            }
                        }
                        value => self.hide_json(value, &at, found),
                    }
                }
            }
            _ => {}
        }
    }

    fn hide_text(&mut self, value: &mut Value) {
        if let Value::String(text) = value
            && let Some(shown) = self.hide(text)
        {
            *text = shown;
        }
    }

    /// Hides those of a typed plan.
    pub fn hide_plan(&mut self, plan: MountPlan) -> MountPlan {
        let (mut json, mut found) = (plan.write(PlanForm::Nested), Vec::new());
        self.hide_json(&mut json, "", &mut found);
        match found.is_empty() {
            true => plan,
            // The same plan with other texts.
            false => MountPlan::read(&json).unwrap_or(plan),
        }
    }
}

/// Whose a config is: what the entry is called, else its module, else the section it stands in.
fn owner(text: impl Fn(&str) -> Option<String>, section: &str) -> String {
    text("instance_id").or_else(|| text("module")).unwrap_or_else(|| section.to_owned())
}

/// An address as it may be shown; other texts as they are.
pub fn shown(address: &str) -> String {
    hide(address).into_owned()
}

/// What is to be told about the includes of bundles; they are read before anything can be hidden, and shown hidden anyway.
pub fn of_includes(graph: &Graph) -> Vec<Notice> {
    let includes = graph.files.iter().flat_map(|file| &file.bundle.includes);
    let told = includes.filter_map(|include| told_of(&include.reference, &include.place));
    told.collect()
}

/// What is to be told about an address as written, if anything.
pub fn told_of(address: &str, place: &Place) -> Option<Notice> {
    let uri: SourceUri = address.parse().ok()?;
    uri.holds_credentials().then(|| told(place, &uri.to_string()))
}

fn told(place: &Place, shown: &str) -> Notice {
    let message = format!("the address `{shown}` holds a credential; it is used now and kept nowhere");
    Notice::warning(Code::Credential, place, message).with_hint(HINT)
}

/// Whether a key of a plan names where a module comes from.
fn is_source(key: &str) -> bool {
    key == "source" || key.ends_with("_source")
}
