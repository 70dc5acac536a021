//! The includes of a bundle as data: which file includes which, where each comes from, and what it contributes. Drawing
//! it on a terminal is the command line's; the picture for Graphviz is made here because it is only text.

use std::collections::BTreeMap;

use amplifier_protocol::address::hide;
use serde::Serialize;

use crate::bundle::{Bundle, Modules};
use crate::home::Source;
use crate::include::{Edge, Graph, LoadedFile};

/// A bundle and everything it includes; the first file is the one that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tree {
    /// Each file once.
    pub files: Vec<TreeFile>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TreeFile {
    /// The name of the bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The version as spelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How it was first asked for.
    pub reference: String,
    /// The file on this machine.
    pub path: String,
    /// The address of the tree it came from; `None` for local files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The same address with its reference resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<String>,
    /// The hash of the file, SHA-256 in hex.
    pub hash: String,
    /// What it adds: the names of its modules, agents and files by section.
    pub contributes: BTreeMap<&'static str, Vec<String>>,
    /// What it includes, in order.
    pub includes: Vec<TreeInclude>,
}

/// One include.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TreeInclude {
    /// What is written.
    pub reference: String,
    /// What it led to.
    #[serde(flatten)]
    pub outcome: TreeOutcome,
}

/// What an include led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeOutcome {
    /// The file with this index.
    File(usize),
    /// The file with this index, which is being loaded already: skipped.
    Cycle(usize),
    /// Nothing.
    Failed,
}

/// The tree of a graph.
pub fn tree(graph: &Graph) -> Tree {
    Tree { files: graph.files.iter().map(file).collect() }
}

fn file(file: &LoadedFile) -> TreeFile {
    let head = &file.bundle.head;
    let (source, pinned) = match &file.bundle.home.source {
        Source::Local => (None, None),
        Source::Fetched { uri, pinned } => (Some(shown(uri)), pinned.as_deref().map(shown)),
    };
    let includes = file.bundle.includes.iter().zip(&file.edges).map(|(include, edge)| {
        let outcome = match edge {
            Edge::To(to) => TreeOutcome::File(*to),
            Edge::Cycle(to) => TreeOutcome::Cycle(*to),
            Edge::Failed => TreeOutcome::Failed,
        };
        TreeInclude { reference: shown(&include.reference), outcome }
    });
    TreeFile {
        name: head.name().map(str::to_owned),
        version: head.version.as_ref().map(|version| version.text.clone()),
        reference: shown(&file.reference),
        path: file.bundle.home.file.display().to_string(),
        source,
        pinned,
        hash: file.hash.clone(),
        contributes: contributions(&file.bundle),
        includes: includes.collect(),
    }
}

fn contributions(bundle: &Bundle) -> BTreeMap<&'static str, Vec<String>> {
    let ids = |modules: &Modules| modules.entries.iter().map(|module| module.id.clone()).collect::<Vec<_>>();
    let keys = |node: &Option<crate::node::Node>| {
        let mapping = node.as_ref().and_then(crate::node::Node::as_map);
        mapping.map(|mapping| mapping.keys().cloned().collect::<Vec<_>>()).unwrap_or_default()
    };
    let instruction =
        bundle.instruction.iter().map(|text| format!("{} characters", text.text.chars().count()));
    let sections = [
        ("session", keys(&bundle.session)),
        ("providers", ids(&bundle.providers)),
        ("tools", ids(&bundle.tools)),
        ("hooks", ids(&bundle.hooks)),
        ("agents", bundle.agents.entries.keys().cloned().collect()),
        ("context", bundle.context.entries.iter().map(|entry| entry.key.clone()).collect()),
        ("spawn", keys(&bundle.spawn)),
        ("instruction", instruction.collect()),
    ];
    sections.into_iter().filter(|(_, names)| !names.is_empty()).collect()
}

fn shown(reference: &str) -> String {
    hide(reference).into_owned()
}

impl Tree {
    /// The tree as a picture for Graphviz.
    pub fn to_dot(&self) -> String {
        let mut dot = String::from("digraph bundle {\n  rankdir=LR;\n  node [shape=box];\n");
        for (index, file) in self.files.iter().enumerate() {
            let name = file.name.as_deref().unwrap_or(&file.reference);
            let sections =
                file.contributes.iter().map(|(section, names)| format!("{section}: {}", names.join(", ")));
            let label = [name.to_owned()].into_iter().chain(sections).map(|line| escape(&line));
            let label = label.collect::<Vec<_>>().join("\\n");
            dot.push_str(&format!("  f{index} [label=\"{label}\"];\n"));
            for (order, include) in file.includes.iter().enumerate() {
                let edge = match include.outcome {
                    TreeOutcome::File(to) => format!("  f{index} -> f{to} [label=\"{}\"];", order + 1),
                    TreeOutcome::Cycle(to) => {
                        format!("  f{index} -> f{to} [label=\"circle\", style=dashed];")
                    }
                    TreeOutcome::Failed => format!(
                        "  f{index} -> x{index}_{order};\n  x{index}_{order} [label=\"{}\", style=dotted];",
                        escape(&include.reference)
                    ),
                };
                dot.push_str(&edge);
                dot.push('\n');
            }
        }
        dot.push_str("}\n");
        dot
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
