//! What the files of a project ask for. They are read, never run, and nothing is fetched.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use amplifier_bundle::node::{Mapping, NodeValue};
use amplifier_git::{Configured, Owner, Repository};
use ignore::WalkBuilder;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::powers::{Power, hex, program, shown};
use crate::expand::references;
use crate::settings::{Scope, Settings, SettingsError, SettingsFiles, is_for_strangers, raised_limits};

/// Files that start programs or name servers, where they are at all.
const FILES: [&str; 2] = [".mcp.json", ".amplifier/mcp.json"];
/// Directories whose files do.
const DIRECTORIES: [&str; 2] = [".amplifier/hooks", ".amplifier/skills"];
/// The directory whose links lead a project out of itself, and so do links in it.
const FOLDER: &str = ".amplifier";
/// The most files of one directory that are looked at.
const MOST_FILES: usize = 2_000;
/// The most bytes of a file that are looked at.
const MOST_BYTES: u64 = 32 << 20;

/// The most bytes of all files together that are looked at.
const MOST_BYTES_IN_ALL: u64 = 64 << 20;
/// What stands for a content that is too large to be looked at, and so is never trusted.
pub(super) const UNCHECKED: &str = "too large to be checked";

/// What the project's own files ask for: those of its root, and those of the directory that is worked in.
pub(super) fn wants(root: &Path, files: &SettingsFiles) -> Result<Vec<Power>, SettingsError> {
    let mut found = Vec::new();
    let (user, project): (Vec<_>, Vec<_>) =
        files.read_from().into_iter().partition(|(scope, _)| *scope == Scope::User);
    for (scope, path) in project {
        let Some(layer) = Settings::layer(&path, scope)? else { continue };
        settings(&layer, "", &mut found);
        let Some(limits) = layer.get("limits") else { continue };
        for (scope, path) in &user {
            let own = Settings::layer(path, *scope)?.unwrap_or_default();
            for key in raised_limits(&own, &layer) {
                let value = limits.node.at(&key).map(|node| shown(&node.to_json())).unwrap_or_default();
                found.push(Power::Setting { key: format!("limits.{key}"), value });
            }
        }
    }
    let here = files.working_dir();
    let directories = [Some(root), Some(here).filter(|here| *here != root)];
    for directory in directories.into_iter().flatten() {
        for path in links(&directory.join(FOLDER)) {
            // One that leads nowhere yet says where a file would be made.
            let to = path.canonicalize().or_else(|_| std::fs::read_link(&path)).unwrap_or_default();
            found.push(link(root, &path, &to));
        }
        let words = directory.join(crate::project::FILE);
        let leads_to = words.canonicalize().ok().filter(|to| !to.starts_with(root));
        found.extend(leads_to.map(|to| link(root, &words, &to)));
        for path in FILES.map(|name| directory.join(name)).into_iter().filter(|path| path.is_file()) {
            file(root, &path, &mut found);
        }
        DIRECTORIES.iter().for_each(|name| tree(root, &directory.join(name), &mut found));
    }
    repository(root, files.repository(), &mut found);
    found.sort();
    found.dedup();
    Ok(found)
}

/// What the repository of the project makes git start when a command of a session calls it. We never do ourselves.
fn repository(root: &Path, top: Option<&Path>, found: &mut Vec<Power>) {
    let repository = top.and_then(Repository::at);
    for configured in repository.iter().flat_map(Repository::configured) {
        match configured {
            Configured::Setting { key, value } => {
                let value = shown(&Value::from(value));
                found.push(Power::Setting { key: format!("{key} (git)"), value });
            }
            Configured::Hook(path) => file(root, &path, found),
        }
    }
}

/// The directory when it is a link, and the links in it.
fn links(directory: &Path) -> Vec<PathBuf> {
    let inside = std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let inside = inside.map(|entry| entry.path());
    inside.chain([directory.to_owned()]).filter(|path| path.is_symlink()).collect()
}

/// Every file below a directory, or the file itself, with what it would start.
pub(super) fn tree(root: &Path, top: &Path, found: &mut Vec<Power>) {
    if !top.exists() {
        return;
    }
    let walk = WalkBuilder::new(top).standard_filters(false).follow_links(true).build();
    let (mut entries, mut bytes) = (0, 0);
    for entry in walk.filter_map(Result::ok) {
        entries += 1;
        bytes += entry.metadata().map_or(0, |about| if about.is_file() { about.len() } else { 0 });
        if entries > MOST_FILES || bytes > MOST_BYTES_IN_ALL {
            found.push(Power::File { path: name_in(root, top), sha256: UNCHECKED.to_owned() });
            return;
        }
        if entry.path().is_file() {
            file(root, entry.path(), found);
        }
    }
}

fn name_in(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// The values of a settings file that only a trusted project may set.
fn settings(mapping: &Mapping, above: &str, found: &mut Vec<Power>) {
    for (key, entry) in mapping {
        let path = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
        match &entry.node.value {
            _ if is_for_strangers(&path) => {}
            NodeValue::Map(below) if !below.is_empty() => settings(below, &path, found),
            _ => found.push(Power::Setting { key: path, value: shown(&entry.node.to_json()) }),
        }
    }
}

/// A file with its content, and what it would start and connect to.
fn file(root: &Path, path: &Path, found: &mut Vec<Power>) {
    let name = name_in(root, path);
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
    let sha256 = match read {
        Ok(_) if u64::try_from(bytes.len()).is_ok_and(|length| length > MOST_BYTES) => UNCHECKED.to_owned(),
        Ok(_) => hex(&Sha256::digest(&bytes)),
        Err(error) => format!("unreadable: {error}"),
    };
    found.push(Power::File { path: name.clone(), sha256 });
    if let Ok(value) = serde_json::from_slice::<Value>(&bytes) {
        programs(&name, &value, found);
    }
}

/// Commands, addresses and variables anywhere in a file of hooks or servers.
fn programs(file: &str, value: &Value, found: &mut Vec<Power>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| programs(file, item, found)),
        Value::Object(entries) => {
            let text = |key: &str| entries.get(key).and_then(Value::as_str);
            if let Some(command) = text("command") {
                found.push(program(file, command, entries));
            }
            if let Some(url) = text("url").or_else(|| text("httpUrl")) {
                let (module, url) = (file.to_owned(), shown(&Value::from(url)));
                found.push(Power::Address { module, url, keys: Vec::new() });
            }
            entries.values().for_each(|entry| programs(file, entry, found));
        }
        Value::String(text) => found.extend(references(text).map(|name| {
            let (module, name) = (file.to_owned(), name.to_owned());
            Power::Variable { module, name }
        })),
        _ => {}
    }
}

/// Whether a directory is the top of a repository of this user. An empty `.git`, one that leads into another repository,
/// or one that another user put into a directory above makes no repository of it.
pub(crate) fn is_repository(directory: &Path) -> bool {
    Repository::at(directory).is_some_and(|repository| repository.owner() == Owner::User)
}

/// The top of the repository that a directory lies in, or the directory itself: nothing above belongs to its project.
pub(crate) fn top_of<'d>(directory: &'d Path, home: Option<&Path>) -> &'d Path {
    repository_of(directory, home).unwrap_or(directory)
}

/// The top of the repository that a directory lies in. The home directory of the user and what is above it is the top of no
/// project.
pub(crate) fn repository_of<'d>(directory: &'d Path, home: Option<&Path>) -> Option<&'d Path> {
    let is_beyond = |folder: &Path| home.is_some_and(|home| home.starts_with(folder));
    directory.ancestors().take_while(|folder| !is_beyond(folder)).find(|folder| is_repository(folder))
}

/// A link that leads out of where it lies.
pub(super) fn link(root: &Path, path: &Path, to: &Path) -> Power {
    Power::Path { module: "project".to_owned(), key: name_in(root, path), path: to.display().to_string() }
}

/// The root of a project as it is compared: without links.
pub(super) fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}
