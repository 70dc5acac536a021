//! What settings do to a plan: sources, overrides, providers, `prefer`, limits. Each value that is laid over the plan keeps
//! the place it was set at, so that `plan explain` names it.

use amplifier_bundle::node::{Entry, Mapping, Mark, Node, NodeValue, put};
use amplifier_bundle::plan::PlanDraft;
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};
use amplifier_protocol::usage::Usd;
use serde_json::{Map, Value};

use super::Settings;
use super::check::identity;
use super::merge::lay_node;
use crate::catalog;
use crate::inquire::has_key;

/// What is laid over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Target {
    /// The bundle as it is written.
    #[default]
    Bundle,
    /// What a session runs with: settings are laid over the bundle.
    Session,
}

impl Settings {
    /// Lays everything that concerns a session over the plan of a bundle or a profile.
    pub fn apply(&self, draft: &mut PlanDraft) {
        let root = draft.root_mut();
        self.add_providers(root);
        self.change_modules(root);
        if let Some(agents) = root.get_mut("agents").and_then(|entry| entry.node.as_map_mut()) {
            for agent in agents.values_mut() {
                if let Some(sections) = agent.node.as_map_mut() {
                    self.change_modules(sections);
                }
            }
        }
        self.lay_providers(root);
        self.prefer_sources(root);
        self.limit(root);
    }

    /// Gives a plan file what it leaves open: providers when it names none, and limits. The rest stays as it is written.
    pub fn complete(&self, plan: &mut MountPlan) {
        if plan.providers.is_empty() {
            plan.providers = self.providers().into_iter().map(|configured| configured.spec).collect();
        }
        self.limit_plan(plan);
    }

    /// Puts the limits into a plan that has its providers. Where the plan says less, less counts.
    pub fn limit_plan(&self, plan: &mut MountPlan) {
        let limits = self.limits();
        if let Some(cost) = limits.max_cost_usd {
            lower(&mut plan.session.limits, "cost_usd", Value::from(cost.to_string()));
        }
        if let (Some(tokens), Some(first)) = (limits.max_tokens, plan.providers.first_mut())
            && counts_answers(first.module.as_str())
        {
            lower(&mut first.config, "max_tokens", Value::from(tokens));
        }
    }

    /// The configured providers first, in their order; what a bundle says about them is found and kept.
    fn add_providers(&self, root: &mut Mapping) {
        let Some(list) = self.at("config.providers") else { return };
        let configured = list.as_list().unwrap_or_default();
        if configured.is_empty() {
            return;
        }
        if root.get("providers").is_none_or(|entry| entry.node.as_list().is_none()) {
            put(root, "providers", Node::new(NodeValue::List(Vec::new()), list.place.clone()));
        }
        let Some(NodeValue::List(entries)) = root.get_mut("providers").map(|entry| &mut entry.node.value)
        else {
            return;
        };
        let mut below = std::mem::take(entries);
        for provider in configured {
            let name = identity(provider);
            let known = below.iter().position(|entry| entry.mark != Mark::Delete && identity(entry) == name);
            entries.push(match known {
                Some(at) => below.remove(at),
                None => bare(provider),
            });
        }
        entries.append(&mut below);
    }

    /// Lays what settings say about the providers over them.
    fn lay_providers(&self, root: &mut Mapping) {
        let configured = self.at("config.providers").and_then(Node::as_list).unwrap_or_default();
        let Some(NodeValue::List(entries)) = root.get_mut("providers").map(|entry| &mut entry.node.value)
        else {
            return;
        };
        for (entry, provider) in entries.iter_mut().zip(configured) {
            lay_node(entry, for_plan(provider));
        }
    }

    /// Sources and overrides, wherever a module stands.
    fn change_modules(&self, sections: &mut Mapping) {
        let sources = self.at("sources.modules").and_then(Node::as_map);
        let overrides = self.at("overrides").and_then(Node::as_map);
        if sources.is_none() && overrides.is_none() {
            return;
        }
        each_module(sections, &mut |entry| {
            let Some(id) = entry.at("module").and_then(Node::as_text).map(str::to_owned) else { return };
            let over = overrides.and_then(|modules| modules.get(&id)).map(|over| &over.node);
            let source = over.and_then(|over| over.at("source"));
            let source = source.or_else(|| Some(&sources?.get(&id)?.node)).filter(|source| !source.is_null());
            let mut laid = Mapping::new();
            if let Some(source) = source {
                put(&mut laid, "source", source.clone());
                put(&mut laid, "native", no(source));
            }
            if let Some(config) = over.and_then(|over| over.at("config")).filter(|config| !config.is_null()) {
                put(&mut laid, "config", config.clone());
            }
            if !laid.is_empty() {
                let place = entry.place.clone();
                lay_node(entry, Node::map(laid, &place));
            }
        });
    }

    /// `prefer: source`: whatever names a source comes from there, unless its entry says otherwise.
    fn prefer_sources(&self, root: &mut Mapping) {
        let Some(prefer) = self.at("prefer").filter(|prefer| prefer.spelled() == Some("source")) else {
            return;
        };
        let mut from_source = |entry: &mut Node| {
            if entry.at("source").is_none() || entry.at("native").is_some() {
                return;
            }
            if let Some(map) = entry.as_map_mut() {
                put(map, "native", no(prefer));
            }
        };
        each_module(root, &mut from_source);
        let agents = root.get_mut("agents").and_then(|entry| entry.node.as_map_mut());
        for agent in agents.into_iter().flat_map(|agents| agents.values_mut()) {
            if let Some(sections) = agent.node.as_map_mut() {
                each_module(sections, &mut from_source);
            }
        }
    }

    /// The limits of a session and of its answers.
    fn limit(&self, root: &mut Mapping) {
        if let Some(limit) = self.at("limits.max_cost_usd")
            && let Some(cost) = limit.spelled().and_then(|text| text.parse::<Usd>().ok())
            && let Some(session) = root.get_mut("session").and_then(|entry| entry.node.as_map_mut())
        {
            // Plans write money as text, so that no digit is lost.
            let cost = Node::text(cost.to_string(), &limit.place);
            lower_node(session, ["limits", "cost_usd"], cost);
        }
        let first = match root.get_mut("providers").map(|entry| &mut entry.node.value) {
            Some(NodeValue::List(entries)) => entries.iter_mut().find(|entry| entry.mark != Mark::Delete),
            _ => None,
        };
        if let (Some(limit), Some(first)) = (self.at("limits.max_tokens"), first)
            && first.at("module").and_then(Node::as_text).is_some_and(counts_answers)
            && let Some(entry) = first.as_map_mut()
        {
            lower_node(entry, ["config", "max_tokens"], limit.clone());
        }
    }
}

/// Whether a provider knows a bound for its answers; one that is not built in is asked to.
fn counts_answers(module: &str) -> bool {
    let known = catalog::module(module);
    known.is_none_or(|info| has_key(&info, "max_tokens"))
}

/// Of two limits the smaller one counts.
fn lower(limits: &mut Map<String, Value>, key: &str, limit: Value) {
    if limits.get(key).is_none_or(|own| amount(own) > amount(&limit)) {
        limits.insert(key.to_owned(), limit);
    }
}

fn lower_node(owner: &mut Mapping, [section, key]: [&str; 2], limit: Node) {
    if owner.get(section).is_none_or(|entry| entry.node.as_map().is_none()) {
        put(owner, section, Node::map(Mapping::new(), &limit.place));
    }
    let Some(limits) = owner.get_mut(section).and_then(|entry| entry.node.as_map_mut()) else { return };
    match limits.get_mut(key) {
        Some(own) if amount(&own.node.to_json()) <= amount(&limit.to_json()) => {}
        Some(own) => lay_node(&mut own.node, limit),
        None => put(limits, key, limit),
    }
}

/// A limit as a number; what is none limits nothing.
fn amount(value: &Value) -> f64 {
    let text = value.as_str().and_then(|text| text.parse().ok());
    value.as_f64().or(text).unwrap_or(f64::INFINITY)
}

/// `false`, set where another value is.
fn no(node: &Node) -> Node {
    Node::new(NodeValue::Bool(false, "false".into()), node.place.clone())
}

/// The entry of a provider with nothing but its module.
fn bare(provider: &Node) -> Node {
    let mut entry = Mapping::new();
    if let Some(module) = provider.at("module") {
        put(&mut entry, "module", module.clone());
    }
    Node::map(entry, &provider.place)
}

/// The entry of a provider in the words of a plan.
fn for_plan(provider: &Node) -> Node {
    let mut node = provider.clone();
    if let Some(entry) = node.as_map_mut() {
        if let Some(id) = entry.shift_remove("id") {
            entry.insert("instance_id".to_owned(), id);
        }
        entry.retain(|_, entry| !entry.node.is_null());
    }
    node
}

/// The entry of a provider, typed; nothing when it has no module.
pub(super) fn spec(provider: &Node) -> Option<ModuleSpec> {
    let json = for_plan(provider).to_json();
    let mut spec = ModuleSpec::new(json.get("module")?.as_str()?.parse().ok()?);
    spec.source = json.get("source").cloned();
    spec.instance_id = json.get("instance_id").and_then(Value::as_str).map(str::to_owned);
    spec.native = json.get("native").and_then(Value::as_bool);
    if let Some(Value::Object(config)) = json.get("config") {
        spec.config = config.clone();
    }
    Some(spec)
}

/// Every entry that names a module: of the session and of the lists. A slot of the session that is a text becomes an entry,
/// is changed, and is written back in its own dialect.
fn each_module(sections: &mut Mapping, each: &mut dyn FnMut(&mut Node)) {
    for slot in ["orchestrator", "context"] {
        each_slot(sections, slot, each);
    }
    for list in ["providers", "tools", "hooks"] {
        if let Some(NodeValue::List(entries)) = sections.get_mut(list).map(|entry| &mut entry.node.value) {
            entries.iter_mut().filter(|entry| entry.mark != Mark::Delete).for_each(&mut *each);
        }
    }
}

fn each_slot(sections: &mut Mapping, slot: &str, each: &mut dyn FnMut(&mut Node)) {
    let Some(session) = sections.get_mut("session").and_then(|entry| entry.node.as_map_mut()) else { return };
    let Some(entry) = session.get_mut(slot) else { return };
    if entry.node.as_map().is_some() {
        return each(&mut entry.node);
    }
    // The string dialect: the module, its source and its config stand apart.
    let (module, source_key) = (entry.node.clone(), format!("{slot}_source"));
    let mut whole = Mapping::new();
    put(&mut whole, "module", module.clone());
    if let Some(source) = session.get(&source_key) {
        put(&mut whole, "source", source.node.clone());
    }
    if let Some(config) = sections.get(slot).and_then(|entry| entry.node.at("config")) {
        put(&mut whole, "config", config.clone());
    }
    let before = whole.clone();
    let mut node = Node::map(whole, &module.place);
    each(&mut node);
    let Some(mut after) = node.as_map_mut().map(std::mem::take) else { return };
    if after == before {
        return;
    }
    let config = after.shift_remove("config");
    if after.contains_key("native") {
        // Only the other dialect can say this.
        after.extend(config.map(|config| ("config".to_owned(), config)));
        let key = module.place.clone();
        if let Some(session) = sections.get_mut("session").and_then(|entry| entry.node.as_map_mut()) {
            session.shift_remove(&source_key);
            session.insert(slot.to_owned(), Entry { key, node: Node::map(after, &module.place) });
        }
        sections.shift_remove(slot);
        return;
    }
    if let Some(config) = config {
        let mut section =
            sections.get(slot).and_then(|entry| entry.node.as_map().cloned()).unwrap_or_default();
        section.insert("config".to_owned(), config);
        put(sections, slot, Node::map(section, &module.place));
    }
}
