//! Merges the layers of a graph into one bundle: includes in declared order, then the file itself; later wins.
//!
//! The rules, section by section: `session` and `spawn` are merged deeply; `providers`, `tools` and `hooks` by `id` or
//! `module`; agents by name, whole; context files accumulate; the instruction of the last that has one stands. A node
//! marked `!replace` or `!delete` says so explicitly, and says it to every layer below, in whatever file. Every value
//! remembers where it was set and what it overrode. It makes no plan; that is `plan.rs`.

mod merge;

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexMap;

pub use self::merge::{Budget, merge};
use crate::bundle::{Access, Bundle, ContextForm, Head, HeadKind, Include, Modules, RosterEntry, Text};
use crate::error::BundleError;
use crate::home::Home;
use crate::include::{Edge, Graph, LoadLimits, Namespace};
use crate::node::{Mark, Node};
use crate::notice::Notice;
use crate::origin::{Overridden, Place};

/// A bundle with everything it builds on merged in.
#[derive(Debug, Clone)]
pub struct Composed {
    /// Who it is: the last that says so.
    pub head: Head,
    /// The includes of the file that was asked for.
    pub includes: Vec<Include>,
    /// The session section, a mapping.
    pub session: Option<Node>,
    /// Model providers.
    pub providers: Modules,
    /// Tools.
    pub tools: Modules,
    /// Hooks.
    pub hooks: Modules,
    /// Agents by name.
    pub agents: IndexMap<String, Agent>,
    /// Which agents a session may call.
    pub access: Option<(Access, Place)>,
    /// Files for the system prompt, by key.
    pub context: IndexMap<String, ContextFile>,
    /// What agents inherit, a mapping.
    pub spawn: Option<Node>,
    /// The system prompt.
    pub instruction: Option<Instruction>,
    /// What an agent says about its models.
    pub models: IndexMap<String, Node>,
    /// Every namespace that was loaded.
    pub namespaces: Vec<Namespace>,
    /// What is worth telling.
    pub notices: Vec<Notice>,
    context_mark: Mark,
    agents_mark: Mark,
}

/// An agent of a composed bundle.
#[derive(Debug, Clone)]
pub struct Agent {
    /// What is written about it.
    pub entry: RosterEntry,
    /// The file that lists it.
    pub home: Arc<Home>,
    /// The namespaces of that file's own source.
    pub own: Vec<Namespace>,
    /// What it overrode.
    pub overrode: Vec<Overridden>,
}

/// A context file of a composed bundle.
#[derive(Debug, Clone)]
pub struct ContextFile {
    /// The path as written.
    pub path: Text,
    /// How it was written.
    pub form: ContextForm,
    /// Whether it takes an inherited file away.
    pub mark: Mark,
    /// The file that names it.
    pub home: Arc<Home>,
    /// The namespaces of that file's own source.
    pub own: Vec<Namespace>,
}

/// A system prompt and where it comes from.
#[derive(Debug, Clone)]
pub struct Instruction {
    /// The text.
    pub text: Text,
    /// The file it stands in.
    pub home: Arc<Home>,
    /// What it overrode.
    pub overrode: Vec<Overridden>,
}

/// Merges a graph into the bundle that was asked for.
///
/// # Errors
/// [`BundleError::Limit`] when merging takes more than any honest bundle needs.
pub fn compose(graph: &Graph, limits: &LoadLimits) -> Result<Composed, BundleError> {
    let mut budget = Budget::new(limits.values);
    let mut uses = uses(graph);
    let mut done: HashMap<usize, Composed> = HashMap::new();
    for index in &graph.order {
        let Some(file) = graph.files.get(*index) else { continue };
        let mut result: Option<Composed> = None;
        for edge in &file.edges {
            let Edge::To(to) = edge else { continue };
            let Some(layer) = take(&mut done, &mut uses, *to) else { continue };
            result = Some(match result {
                None => layer,
                Some(below) => below.under(layer, &mut budget)?,
            });
        }
        let own = layer(&file.bundle, &file.namespaces);
        let whole = match result {
            None => Composed::empty().under(own, &mut budget)?,
            Some(below) => below.under(own, &mut budget)?,
        };
        done.insert(*index, whole);
    }
    let mut composed = done.remove(&0).unwrap_or_else(Composed::empty);
    if let Some(root) = graph.files.first() {
        composed.includes = root.bundle.includes.clone();
        composed.head.kind = root.bundle.head.kind;
        // A label is the root's own; an include's label would name the wrong thing.
        composed.head.display_name = root.bundle.head.display_name.clone();
        composed.head.namespace_root = root.bundle.head.namespace_root.clone();
    }
    composed.namespaces = graph.namespaces.clone();
    composed.notices = graph.notices.clone();
    merge::tell_idle_deletes(&mut composed);
    Ok(composed)
}

/// Merges files without a graph, the lowest first: the chain of a profile.
///
/// # Errors
/// As [`compose`].
pub fn stack<'b>(
    layers: impl IntoIterator<Item = &'b Bundle>,
    limits: &LoadLimits,
) -> Result<Composed, BundleError> {
    let mut budget = Budget::new(limits.values);
    let mut composed = Composed::empty();
    for bundle in layers {
        composed = composed.under(layer(bundle, &[]), &mut budget)?;
    }
    merge::tell_idle_deletes(&mut composed);
    Ok(composed)
}

/// Lays a whole bundle over another, which keeps its name.
///
/// # Errors
/// As [`compose`].
pub fn over(below: Composed, above: Composed, limits: &LoadLimits) -> Result<Composed, BundleError> {
    let (head, includes) = (below.head.clone(), below.includes.clone());
    let (mut namespaces, mut notices) = (below.namespaces.clone(), below.notices.clone());
    let known = |name: &str| below.namespaces.iter().any(|namespace| namespace.name == name);
    namespaces.extend(above.namespaces.iter().filter(|namespace| !known(&namespace.name)).cloned());
    notices.extend(above.notices.iter().cloned());
    let whole = below.under(above, &mut Budget::new(limits.values))?;
    Ok(Composed { head, includes, namespaces, notices, ..whole })
}

/// How often each file is still needed; the last use takes it instead of copying it.
fn uses(graph: &Graph) -> HashMap<usize, usize> {
    let mut uses = HashMap::new();
    for edge in graph.files.iter().flat_map(|file| &file.edges) {
        if let Edge::To(to) = edge {
            *uses.entry(*to).or_insert(0) += 1;
        }
    }
    uses
}

fn take(
    done: &mut HashMap<usize, Composed>,
    uses: &mut HashMap<usize, usize>,
    file: usize,
) -> Option<Composed> {
    let left = uses.get_mut(&file)?;
    *left = left.saturating_sub(1);
    if *left == 0 { done.remove(&file) } else { done.get(&file).cloned() }
}

/// One file as a layer.
fn layer(bundle: &Bundle, own: &[Namespace]) -> Composed {
    let home = &bundle.home;
    let agent = |(name, entry): (&String, &RosterEntry)| {
        let (home, own) = (Arc::clone(home), own.to_vec());
        (name.clone(), Agent { entry: entry.clone(), home, own, overrode: Vec::new() })
    };
    let context = bundle.context.entries.iter().map(|entry| {
        // A key without a namespace gets the one of its bundle, so that two bundles may both have a `readme`. The keys of
        // a profile are namespaces themselves.
        let key = match bundle.head.name() {
            Some(name) if bundle.head.kind != HeadKind::Profile && !entry.key.contains(':') => {
                format!("{name}:{}", entry.key)
            }
            _ => entry.key.clone(),
        };
        let (path, home, own) = (entry.path.clone(), Arc::clone(home), own.to_vec());
        (key, ContextFile { path, form: entry.form, mark: entry.mark, home, own })
    });
    Composed {
        head: bundle.head.clone(),
        includes: Vec::new(),
        session: bundle.session.clone(),
        providers: bundle.providers.clone(),
        tools: bundle.tools.clone(),
        hooks: bundle.hooks.clone(),
        agents: bundle.agents.entries.iter().map(agent).collect(),
        access: bundle.access.clone(),
        context: context.collect(),
        spawn: bundle.spawn.clone(),
        instruction: bundle.instruction.clone().map(|text| Instruction {
            text,
            home: Arc::clone(home),
            overrode: Vec::new(),
        }),
        models: bundle.models.clone(),
        namespaces: Vec::new(),
        notices: Vec::new(),
        context_mark: bundle.context.mark,
        agents_mark: bundle.agents.mark,
    }
}

impl Composed {
    fn empty() -> Self {
        Self {
            head: Head::default(),
            includes: Vec::new(),
            session: None,
            providers: Modules::default(),
            tools: Modules::default(),
            hooks: Modules::default(),
            agents: IndexMap::new(),
            access: None,
            context: IndexMap::new(),
            spawn: None,
            instruction: None,
            models: IndexMap::new(),
            namespaces: Vec::new(),
            notices: Vec::new(),
            context_mark: Mark::Merge,
            agents_mark: Mark::Merge,
        }
    }

    /// This bundle with another on top of it.
    fn under(mut self, over: Self, budget: &mut Budget) -> Result<Self, BundleError> {
        let repeats = match over.head.kind {
            HeadKind::Profile => merge::Repeats::Kept,
            _ => merge::Repeats::Merged,
        };
        merge::section(&mut self.session, over.session, budget)?;
        merge::section(&mut self.spawn, over.spawn, budget)?;
        merge::modules(&mut self.providers, over.providers, repeats, budget)?;
        merge::modules(&mut self.tools, over.tools, repeats, budget)?;
        merge::modules(&mut self.hooks, over.hooks, repeats, budget)?;
        merge_head(&mut self.head, over.head);
        budget.spend(over.agents.len() + over.context.len())?;
        merge_agents(&mut self.agents, over.agents, over.agents_mark);
        merge_context(&mut self.context, over.context, over.context_mark);
        if over.agents_mark != Mark::Merge {
            self.agents_mark = over.agents_mark;
        }
        if over.context_mark != Mark::Merge {
            self.context_mark = over.context_mark;
        }
        self.access = over.access.or(self.access);
        self.models.extend(over.models);
        self.instruction = match (self.instruction, over.instruction) {
            (Some(below), Some(mut over)) => {
                let lost = Node::text(below.text.text, &below.text.place).overridden();
                merge::remember(&mut over.overrode, below.overrode, Some(lost), &over.text.place);
                Some(over)
            }
            (below, over) => over.or(below),
        };
        Ok(self)
    }
}

fn merge_head(head: &mut Head, over: Head) {
    if over.name.is_some() {
        head.name = over.name;
    }
    if over.version.is_some() {
        head.version = over.version;
    }
    if over.description.is_some() {
        head.description = over.description;
    }
    head.kind = over.kind;
    // What a head says beyond its name belongs to its own file.
    head.extra = over.extra;
}

fn merge_agents(agents: &mut IndexMap<String, Agent>, over: IndexMap<String, Agent>, mark: Mark) {
    // Those that nobody lists any more go; the others only change.
    let mut replaced = if mark == Mark::Merge { IndexMap::new() } else { std::mem::take(agents) };
    for (name, mut agent) in over {
        let below = agents.get_mut(&name).map(|below| (std::mem::take(&mut below.overrode), &below.entry));
        let gone = replaced.get_mut(&name).map(|below| (std::mem::take(&mut below.overrode), &below.entry));
        if let Some((older, entry)) = below.or(gone) {
            let lost = Node::map(entry.definition.clone(), &entry.place).overridden();
            let place = agent.entry.place.clone();
            merge::remember(&mut agent.overrode, older, Some(lost), &place);
        }
        agents.insert(name, agent);
    }
}

fn merge_context(
    context: &mut IndexMap<String, ContextFile>,
    over: IndexMap<String, ContextFile>,
    mark: Mark,
) {
    if mark != Mark::Merge {
        context.clear();
    }
    // A key that is there keeps its position and takes the later path.
    context.extend(over);
}
