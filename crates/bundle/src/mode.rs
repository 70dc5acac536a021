//! Modes: the files of `modes/` beside a bundle. Their shape is checked here; switching between them is done elsewhere.

use std::path::Path;
use std::sync::Arc;

use crate::bundle::{Text, split_file};
use crate::error::BundleError;
use crate::fetch::{Files, PathKind};
use crate::include::{Graph, LoadLimits};
use crate::node::{Mapping, Node, NodeValue};
use crate::notice::{Code, Notice, closest};
use crate::origin::{Place, SourceFile};

/// One mode.
#[derive(Debug, Clone, PartialEq)]
pub struct Mode {
    /// Its name; the name of its file when it has none.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Whether it is offered to people.
    pub is_advertised: bool,
    /// What it adds while it is on: agents, context, skills.
    pub contributes: Mapping,
    /// Everything else it says.
    pub extra: Mapping,
    /// What it tells the model.
    pub instruction: Option<Text>,
}

/// What a mode may add.
const CONTRIBUTIONS: [&str; 3] = ["agents", "context", "skills"];

/// Loads the modes beside the bundle that was asked for, by name of file; a broken one is told and left out.
pub fn load(files: &impl Files, graph: &Graph, limits: &LoadLimits) -> (Vec<Mode>, Vec<Notice>) {
    let (mut modes, mut notices) = (Vec::new(), Vec::new());
    let Some(home) = graph.files.first().map(|file| &file.bundle.home) else { return (modes, notices) };
    let folder = home.dir.join("modes");
    if files.kind(&folder) != PathKind::Folder {
        return (modes, notices);
    }
    let mut names = match files.list(&folder) {
        Ok(names) => names,
        Err(error) => {
            let message = format!("the modes in `{}` cannot be listed: {error}", folder.display());
            notices.push(Notice::warning(Code::BadValue, &start_of(&home.file), message));
            return (modes, notices);
        }
    };
    names.retain(|(name, kind)| name.ends_with(".md") && *kind == PathKind::File);
    names.sort_by(|left, right| left.0.cmp(&right.0));
    for (name, _) in names {
        let path = folder.join(&name);
        if !files.real_path(&path).is_ok_and(|real| real.starts_with(&home.root)) {
            let message = format!("mode `{name}` is left out: it leads out of `{}`", home.root.display());
            notices.push(Notice::warning(Code::Escape, &start_of(&path), message));
            continue;
        }
        match read(files, &path, limits, &mut notices) {
            Ok(mode) => modes.push(mode),
            Err(error) => {
                let place = error.place().cloned().unwrap_or_else(|| start_of(&path));
                let message = format!("mode `{name}` is left out: {error}");
                notices.push(Notice::warning(Code::BadValue, &place, message));
            }
        }
    }
    (modes, notices)
}

fn start_of(path: &Path) -> Place {
    Place::start(&Arc::new(SourceFile::new(path, "")))
}

fn read(
    files: &impl Files,
    path: &Path,
    limits: &LoadLimits,
    notices: &mut Vec<Notice>,
) -> Result<Mode, BundleError> {
    let bytes = files
        .read(path, limits.file_bytes)
        .map_err(|source| BundleError::Read { path: path.to_path_buf(), source })?;
    let (document, instruction) = split_file(bytes, path, &limits.yaml, notices)?;
    let mut mode = match document.and_then(|mut node| node.as_map_mut()?.shift_remove("mode")) {
        Some(entry) => match entry.node.value {
            NodeValue::Map(mapping) => mapping,
            _ => {
                let message = format!("`mode` must be a mapping, not {}", entry.node.type_name());
                notices.push(Notice::warning(Code::WrongType, &entry.node.place, message));
                Mapping::new()
            }
        },
        None => Mapping::new(),
    };
    let mut text =
        |key: &str| mode.shift_remove(key).and_then(|entry| entry.node.spelled().map(str::to_owned));
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = text("name").or(stem).unwrap_or_default();
    let description = text("description").unwrap_or_default();
    let advertised = mode.shift_remove("advertised").map(|entry| entry.node.value);
    let is_advertised = !matches!(advertised, Some(NodeValue::Bool(false, _)));
    let contributes = match mode.shift_remove("contributes").map(|entry| entry.node) {
        None => Mapping::new(),
        Some(node) => contributions(node, &name, notices),
    };
    Ok(Mode { name, description, is_advertised, contributes, extra: mode, instruction })
}

fn contributions(node: Node, mode: &str, notices: &mut Vec<Notice>) -> Mapping {
    let place = node.place.clone();
    let found = node.type_name();
    let mapping = match node.value {
        NodeValue::Map(mapping) => mapping,
        NodeValue::Null => return Mapping::new(),
        _ => {
            let message = format!("`contributes` of mode `{mode}` must be a mapping, not {found}");
            notices.push(Notice::warning(Code::WrongType, &place, message));
            return Mapping::new();
        }
    };
    for (key, entry) in &mapping {
        let label = format!("`contributes.{key}` of mode `{mode}`");
        match key.as_str() {
            "agents" => {
                let is_fine = entry
                    .node
                    .as_map()
                    .is_some_and(|agents| agents.values().all(|agent| agent.node.as_map().is_some()));
                if !is_fine {
                    let message = format!("{label} must map names to definitions");
                    notices.push(Notice::warning(Code::WrongType, &entry.node.place, message));
                }
            }
            "context" | "skills" => tell_strings(&entry.node, &label, notices),
            _ => {
                let notice =
                    Notice::warning(Code::UnknownKey, &entry.key, format!("{label} is not a key we know"));
                notices.push(match closest(key, CONTRIBUTIONS) {
                    Some(meant) => notice.with_hint(format!("did you mean `{meant}`?")),
                    None => notice.with_hint(format!("known keys: {}", crate::notice::quoted(CONTRIBUTIONS))),
                });
            }
        }
    }
    mapping
}

fn tell_strings(node: &Node, label: &str, notices: &mut Vec<Notice>) {
    let Some(items) = node.as_list() else {
        let message = format!("{label} must be a list of strings, not {}", node.type_name());
        notices.push(Notice::warning(Code::WrongType, &node.place, message));
        return;
    };
    for (index, item) in items.iter().enumerate().filter(|(_, item)| item.as_text().is_none()) {
        let message = format!("{label}, item {index}, must be a string, not {}", item.type_name());
        notices.push(Notice::warning(Code::WrongType, &item.place, message));
    }
}
