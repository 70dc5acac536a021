//! Settings: what a person, a project and a machine have set for every session. Layers, the lowest first: built in, the
//! user's file, the project's, the local one, variables; flags are the front end's and win over all of them.
//!
//! Every value knows the file and line that set it. `settings/known.rs` says which keys there are, `settings/check.rs` whether
//! a file makes sense, `settings/apply.rs` what they do to a plan, `settings/edit.rs` how a file is changed. A file that
//! cannot be read is an error, never skipped.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use amplifier_bundle::explain::Setting;
use amplifier_bundle::home::{is_relative, normalize};
use amplifier_bundle::node::{Entry, Mapping, Node, NodeValue, mapping_to_json, put};
use amplifier_bundle::notice::{Code, Notice, Severity};
use amplifier_bundle::origin::{Place, SourceFile};
use amplifier_bundle::plan::PlanDraft;
use amplifier_bundle::yaml::{self, YamlLimits};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};
use amplifier_protocol::usage::Usd;

mod apply;
mod check;
mod edit;
mod error;
mod files;
mod known;
mod merge;
mod show;
mod splice;
mod text;

pub use apply::Target;
use check::Speaker;
pub use check::is_secret;
pub use edit::{Edited, Editor};
pub use error::SettingsError;
pub use files::{Scope, SettingsFiles};
pub use known::{KEYS, Known, Shape, schema};
pub use show::{Origin, Row};
pub(crate) use text::{change as change_file, read as read_file};

use crate::credentials::Credentials;
use crate::env::{Environment, OFFERED};
use crate::plain::Plain;

/// The largest settings file that is read.
const MOST_BYTES: u64 = 1 << 20;

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The program.
    BuiltIn,
    /// A file.
    File(Scope),
    /// A variable.
    Environment,
}

impl Layer {
    pub fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "built in",
            Self::File(scope) => scope.name(),
            Self::Environment => "environment",
        }
    }
}

/// What tools may do without a question, in the order of how much is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Approve {
    /// Nothing: every answer is no.
    None,
    /// The person decides.
    Ask,
    /// Yes to tools that declare to change nothing, no to the others.
    Safe,
    /// Every answer is yes. What a rule denies stays denied.
    All,
}

/// What is spent at most.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SpendLimits {
    pub max_cost_usd: Option<Usd>,
    pub timeout: Option<Duration>,
    pub max_tokens: Option<u64>,
}

/// A provider that settings name.
#[derive(Debug, Clone, PartialEq)]
pub struct Configured {
    /// The entry for a plan.
    pub spec: ModuleSpec,
    /// Where it stands; the topmost place, when several files speak of it.
    pub place: Place,
    pub layer: Layer,
}

impl Configured {
    /// What it is called: its id, else its module without the first word.
    pub fn name(&self) -> &str {
        let module = self.spec.module.as_str();
        self.spec.instance_id.as_deref().unwrap_or_else(|| module.strip_prefix("provider-").unwrap_or(module))
    }
}

/// All layers together.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    root: Mapping,
    /// The files that were read, by the name their places have.
    names: Vec<(String, Scope)>,
    notices: Vec<Notice>,
}

impl Settings {
    /// Reads every layer. Of a project that is not trusted, only what any project may set is used.
    pub fn load(
        files: &SettingsFiles,
        environment: &Environment,
        project: ProjectSettings,
    ) -> Result<Self, SettingsError> {
        let mut settings = Self { root: built_in(), ..Self::default() };
        let mut problems = Vec::new();
        for (scope, path) in files.read_from() {
            let Some(file) = read(&path)? else { continue };
            settings.names.push((file.name.clone(), scope));
            let (mut layer, notices) = parse(&file, Speaker::File(scope)).map_err(|error| error.of(scope))?;
            let (errors, others): (Vec<_>, Vec<_>) =
                notices.into_iter().partition(|notice| notice.severity == Severity::Error);
            problems.extend(errors);
            settings.notices.extend(others);
            rebase(&mut layer, &files.base(scope));
            if scope != Scope::User {
                settings.keep_care(&mut layer);
                if project == ProjectSettings::Untrusted {
                    layer.retain(|key, _| is_for_strangers(key));
                    settings.keep_limits(&mut layer);
                }
            }
            merge::lay(&mut settings.root, layer);
        }
        let (layer, errors) = variables(environment);
        problems.extend(errors);
        if !problems.is_empty() {
            return Err(SettingsError::Invalid(problems));
        }
        let mut layer = layer;
        rebase(&mut layer, &files.working_dir);
        merge::lay(&mut settings.root, layer);
        Ok(settings)
    }

    /// A project comes from anybody: it may ask for more care than its user, never for less.
    fn keep_care(&mut self, layer: &mut Mapping) {
        let own = self.approve().unwrap_or(Approve::Ask);
        let asked = layer.get("approve").and_then(|entry| approve(&entry.node));
        if asked.is_some_and(|asked| asked > own)
            && let Some(entry) = layer.shift_remove("approve")
        {
            let message = "a project cannot allow tools more than its user does; this `approve` is not used";
            let hint = "`--approve`, or `amplifier config set approve` for yourself, allows it";
            self.notices.push(Notice::warning(Code::NoEffect, &entry.key, message).with_hint(hint));
        }
    }

    /// Without trust a project may lower a limit of its user, never raise it.
    fn keep_limits(&mut self, layer: &mut Mapping) {
        let raised = raised_limits(&self.root, layer);
        let Some(limits) = layer.get_mut("limits").and_then(|entry| entry.node.as_map_mut()) else { return };
        for key in raised {
            let Some(entry) = limits.shift_remove(&key) else { continue };
            let message = format!("a project cannot raise a limit of its user; this `{key}` is not used");
            let hint = format!("run `amplifier config set limits.{key} VALUE` to raise your own");
            self.notices.push(Notice::warning(Code::NoEffect, &entry.key, message).with_hint(hint));
        }
    }

    /// What one file sets, as it is written; `None` when there is no such file.
    pub(crate) fn layer(path: &std::path::Path, scope: Scope) -> Result<Option<Mapping>, SettingsError> {
        let Some(file) = read(path)? else { return Ok(None) };
        let (layer, _) = parse(&file, Speaker::File(scope)).map_err(|error| error.of(scope))?;
        Ok(Some(layer))
    }

    /// Refuses to write what a project would not be granted.
    pub fn refuse_looser(files: &SettingsFiles, scope: Scope, asked: &str) -> Result<(), SettingsError> {
        let mut own = Approve::Ask;
        for (below, path) in files.read_from().into_iter().filter(|(below, _)| *below < scope) {
            let Some(file) = read(&path)? else { continue };
            let (layer, _) = parse(&file, Speaker::File(below)).map_err(|error| error.of(below))?;
            let said = layer.get("approve").and_then(|entry| approve(&entry.node));
            own = match (below, said) {
                (Scope::User, Some(said)) => said,
                (_, said) => said.map_or(own, |said| said.min(own)),
            };
        }
        let file = files.path(scope)?;
        let asked = Node::text(asked, &Place::named("value"));
        match approve(&asked) {
            Some(wanted) if scope != Scope::User && wanted > own => {
                Err(SettingsError::Looser { asked: asked.spelled().unwrap_or_default().to_owned(), file })
            }
            _ => Ok(()),
        }
    }

    /// What is worth telling about the files.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Whether a notice about a plan is one that the settings tell themselves: a key in plain text that stands in them.
    pub(crate) fn tells(&self, notice: &Notice) -> bool {
        let place = notice.place.as_ref().map(|place| self.layer_of(place));
        notice.code == Code::BadValue && matches!(place, Some(Layer::File(_)))
    }

    /// The keys that stand in the files in plain text, by the names of the references that stand for them in a plan.
    pub fn plain(&self) -> Plain {
        let mut plan = MountPlan::new(ModuleId::fixed("loop-basic"), ModuleId::fixed("context-simple"));
        plan.providers = self.providers().into_iter().map(|configured| configured.spec).collect();
        let overrides = self.at("overrides").and_then(Node::as_map).into_iter().flatten();
        let spec = |(module, entry): (&String, &Entry)| {
            let mut spec = ModuleSpec::new(module.parse().ok()?);
            spec.config = mapping_to_json(entry.node.at("config")?.as_map()?);
            Some(spec)
        };
        plan.tools = overrides.filter_map(spec).collect();
        let mut credentials = Credentials::default();
        credentials.hide_plan(plan);
        credentials.plain().clone()
    }

    /// The value at a path with dots; a number leads into a list.
    pub fn at(&self, path: &str) -> Option<&Node> {
        let mut words = path.split('.');
        let mut node = &self.root.get(words.next()?)?.node;
        for word in words {
            node = match &node.value {
                NodeValue::Map(mapping) => &mapping.get(word)?.node,
                NodeValue::List(items) => items.get(word.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        (!node.is_null()).then_some(node)
    }

    /// Every value, each with its place and what it overrode.
    pub fn list(&self) -> Vec<Setting> {
        PlanDraft::new(self.root.clone()).explain()
    }

    /// Everything as one value.
    pub fn to_json(&self) -> serde_json::Value {
        PlanDraft::new(self.root.clone()).to_json()
    }

    /// Which layer a place belongs to.
    pub fn layer_of(&self, place: &Place) -> Layer {
        let file = self.names.iter().find(|(name, _)| *name == place.file.name);
        match file {
            Some((_, scope)) => Layer::File(*scope),
            None if place.file.name.starts_with('$') => Layer::Environment,
            None => Layer::BuiltIn,
        }
    }

    fn text(&self, path: &str) -> Option<(&str, &Place)> {
        let node = self.at(path)?;
        Some((node.spelled()?, &node.place))
    }

    /// The bundle to use when none is named, and where that is set.
    pub fn bundle(&self) -> Option<(&str, &Place)> {
        self.text("bundle.active")
    }

    /// The bundles that are laid over every bundle.
    pub fn app_bundles(&self) -> Vec<(String, Place)> {
        let items = self.at("bundle.app").and_then(Node::as_list).unwrap_or_default();
        items.iter().filter_map(|item| Some((item.spelled()?.to_owned(), item.place.clone()))).collect()
    }

    /// Names for bundles.
    pub fn bundle_names(&self) -> BTreeMap<String, String> {
        let sections =
            ["bundle.added", "sources.bundles"].into_iter().filter_map(|path| self.at(path)?.as_map());
        let entries = sections.flatten();
        entries.filter_map(|(name, entry)| Some((name.clone(), entry.node.spelled()?.to_owned()))).collect()
    }

    /// Where a name for a bundle is set.
    pub(crate) fn bundle_name(&self, name: &str) -> Option<&Place> {
        let sections =
            ["sources.bundles", "bundle.added"].into_iter().filter_map(|path| self.at(path)?.as_map());
        sections.filter_map(|names| names.get(name)).map(|entry| &entry.node.place).next()
    }

    /// What tools may do without a question, when somebody said so.
    pub fn approve(&self) -> Option<Approve> {
        approve(self.at("approve")?)
    }

    /// One of the words of `ui.color`.
    pub fn color(&self) -> &str {
        self.text("ui.color").map_or("auto", |(text, _)| text)
    }

    /// One of the words of `ui.thinking`.
    pub fn thinking(&self) -> &str {
        self.text("ui.thinking").map_or("folded", |(text, _)| text)
    }

    /// What is spent at most.
    pub fn limits(&self) -> SpendLimits {
        let number = |path: &str| self.text(path).map(|(text, _)| text);
        SpendLimits {
            max_cost_usd: number("limits.max_cost_usd").and_then(|text| text.parse().ok()),
            timeout: number("limits.timeout_seconds").and_then(known::seconds),
            max_tokens: number("limits.max_tokens").and_then(|text| text.parse().ok()),
        }
    }

    /// The providers, the first is asked first.
    pub fn providers(&self) -> Vec<Configured> {
        let items = self.at("config.providers").and_then(Node::as_list).unwrap_or_default();
        let configured = |node: &Node| {
            let spec = apply::spec(node)?;
            // The entry itself stands where it was first written; what counts is who spoke last.
            let place = node.at("module").map_or(&node.place, |module| &module.place).clone();
            Some(Configured { spec, layer: self.layer_of(&place), place })
        };
        items.iter().filter_map(configured).collect()
    }

    /// Whether something in the settings says where a module comes from.
    pub(crate) fn has_source(&self, module: &str) -> bool {
        let section = |path: &str| self.at(path).and_then(Node::as_map).and_then(|map| map.get(module));
        let over = section("overrides").and_then(|entry| entry.node.at("source"));
        over.or(section("sources.modules").map(|entry| &entry.node)).is_some_and(|source| !source.is_null())
    }

    /// Where a value of a provider's config stands, by its JSON pointer; where the entry stands when nothing is there.
    pub fn place_in(&self, entry: &Configured, pointer: &str) -> Place {
        let items = self.at("config.providers").and_then(Node::as_list).unwrap_or_default();
        let is_it = |node: &&Node| node.at("module").is_some_and(|module| module.place == entry.place);
        let mut node = items.iter().find(is_it).and_then(|node| node.at("config"));
        for word in pointer.split('/').skip(1) {
            node = match node.map(|node| &node.value) {
                Some(NodeValue::Map(mapping)) => mapping.get(word).map(|entry| &entry.node),
                Some(NodeValue::List(items)) => word.parse().ok().and_then(|at: usize| items.get(at)),
                _ => None,
            };
        }
        node.map_or(&entry.place, |node| &node.place).clone()
    }
}

fn approve(node: &Node) -> Option<Approve> {
    match node.spelled()? {
        "none" => Some(Approve::None),
        "ask" => Some(Approve::Ask),
        "safe" => Some(Approve::Safe),
        "all" => Some(Approve::All),
        _ => None,
    }
}

/// Whether the settings of a project are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectSettings {
    Trusted,
    Untrusted,
}

/// Keys that any project may set, trusted or not: they ask for more care, or change how things look.
const FOR_STRANGERS: [&str; 3] = ["approve", "limits", "ui"];

/// The limits of a layer that are higher than the same below it.
pub(crate) fn raised_limits(below: &Mapping, layer: &Mapping) -> Vec<String> {
    let limits = |mapping: &Mapping| mapping.get("limits").and_then(|entry| entry.node.as_map()).cloned();
    let amount = |node: &Node| node.spelled().and_then(|text| text.parse::<f64>().ok());
    let own = limits(below).unwrap_or_default();
    let is_raised = |key: &String, node: &Node| {
        let most = own.get(key).and_then(|own| amount(&own.node));
        most.is_some_and(|most| amount(node).is_none_or(|asked| asked > most))
    };
    let asked = limits(layer).unwrap_or_default();
    asked.into_iter().filter(|(key, entry)| is_raised(key, &entry.node)).map(|(key, _)| key).collect()
}

/// Whether any project may set the key at this path.
pub(crate) fn is_for_strangers(path: &str) -> bool {
    let section = path.split('.').next().unwrap_or(path);
    // A key that nobody reads asks for nothing.
    let is_unread = known::FOREIGN.contains(&path) || !known::below("").contains(&section);
    FOR_STRANGERS.contains(&section) || is_unread
}

/// The text of a file; nothing when there is none.
fn read(path: &std::path::Path) -> Result<Option<Arc<SourceFile>>, SettingsError> {
    match text::read(path, MOST_BYTES)? {
        Some(text) => Ok(Some(Arc::new(SourceFile::new(path, text.trim_start_matches('\u{feff}'))))),
        None => Ok(None),
    }
}

/// What a file says, and what is to be said about it.
fn parse(file: &Arc<SourceFile>, speaker: Speaker) -> Result<(Mapping, Vec<Notice>), SettingsError> {
    let limits =
        YamlLimits { bytes: usize::try_from(MOST_BYTES).unwrap_or(usize::MAX), ..YamlLimits::default() };
    let document = yaml::read(file, &limits)?;
    let mut notices = document.notices;
    let root = match document.node {
        None => Mapping::new(),
        Some(Node { value: NodeValue::Null, .. }) => Mapping::new(),
        Some(Node { value: NodeValue::Map(mapping), .. }) => mapping,
        Some(other) => {
            let message = format!("settings are a mapping, found {}", other.type_name());
            let mut notice = Notice::error(Code::WrongType, &other.place, message);
            if let Speaker::File(scope) = speaker {
                notice = notice.with_hint(scope.mend());
            }
            notices.push(notice);
            Mapping::new()
        }
    };
    notices.extend(check::check(&root, speaker));
    Ok((root, notices))
}

/// What holds when nobody says anything.
fn built_in() -> Mapping {
    let place = Place::named("built in");
    let mut root = Mapping::new();
    for known in KEYS {
        if let Some(usual) = known.usual {
            set(&mut root, known.path, Node::text(usual, &place));
        }
    }
    root
}

/// What the variables of this process say.
fn variables(environment: &Environment) -> (Mapping, Vec<Notice>) {
    let mut root = Mapping::new();
    let read = KEYS.iter().filter_map(|known| known.variable).chain(OFFERED.iter().copied());
    let mut notices: Vec<_> = environment.garbled(read).into_iter().map(garbled).collect();
    for known in KEYS {
        let Some(name) = known.variable else { continue };
        let Some(value) = environment.get(name).filter(|value| !value.trim().is_empty()) else { continue };
        let place = Place::named(format!("${name}"));
        let value = value.trim();
        let number = value.parse().ok().filter(|_| !matches!(known.shape, Shape::Text | Shape::Choice(_)));
        let node = match number {
            Some(number) => Node::new(NodeValue::Number(number, value.into()), place),
            None => Node::text(value, &place),
        };
        notices.extend(check::check_value(&node, known.path, known.shape, Speaker::Variable(name)));
        set(&mut root, known.path, node);
    }
    (root, notices)
}

/// That a variable cannot be read.
fn garbled(name: &str) -> Notice {
    let place = Place::named(format!("${name}"));
    Notice::error(
        Code::BadValue,
        &place,
        format!("the variable `{name}` is set to something that is no text in UTF-8"),
    )
    .with_hint(format!("set it anew, or `unset {name}`"))
}

/// Puts a value at a path.
fn set(root: &mut Mapping, path: &str, node: Node) {
    match path.split_once('.') {
        None => put(root, path, node),
        Some((first, rest)) => {
            if root.get(first).is_none_or(|entry| entry.node.as_map().is_none()) {
                put(root, first, Node::map(Mapping::new(), &node.place));
            }
            if let Some(below) = root.get_mut(first).and_then(|entry| entry.node.as_map_mut()) {
                set(below, rest, node);
            }
        }
    }
}

/// Makes the relative paths of a layer mean the same everywhere.
fn rebase(root: &mut Mapping, base: &std::path::Path) {
    let absolute = |node: &mut Node| {
        if let NodeValue::Text(text) = &mut node.value
            && is_relative(text)
        {
            *text = normalize(&base.join(PathBuf::from(&*text))).display().to_string();
        }
    };
    let section = |root: &mut Mapping, path: &[&str], each: &mut dyn FnMut(&mut Node)| {
        let mut words = path.iter();
        let Some(first) = words.next() else { return };
        let mut node = root.get_mut(*first).map(|entry| &mut entry.node);
        for word in words {
            node = node
                .and_then(Node::as_map_mut)
                .and_then(|map| map.get_mut(*word))
                .map(|entry| &mut entry.node);
        }
        match node.map(|node| &mut node.value) {
            Some(NodeValue::List(items)) => items.iter_mut().for_each(&mut *each),
            Some(NodeValue::Map(mapping)) => mapping.values_mut().for_each(|entry| each(&mut entry.node)),
            _ => {}
        }
    };
    if let Some(entry) = root.get_mut("bundle").and_then(|entry| entry.node.as_map_mut()?.get_mut("active")) {
        absolute(&mut entry.node);
    }
    for path in [["bundle", "app"], ["bundle", "added"], ["sources", "modules"], ["sources", "bundles"]] {
        section(root, &path, &mut |node| absolute(node));
    }
    let mut source = |node: &mut Node| {
        if let Some(entry) = node.as_map_mut().and_then(|map| map.get_mut("source")) {
            absolute(&mut entry.node);
        }
    };
    section(root, &["config", "providers"], &mut source);
    section(root, &["overrides"], &mut source);
}
