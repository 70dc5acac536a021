//! What the files of a project ask for. They are read, never run, and nothing is fetched.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use amplifier_bundle::node::{Mapping, NodeValue};
use ignore::WalkBuilder;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::powers::{Power, shown};
use crate::settings::{Scope, Settings, SettingsError, SettingsFiles, is_for_strangers};

/// Files that start programs or name servers, where they are at all.
const FILES: [&str; 2] = [".mcp.json", ".amplifier/mcp.json"];
/// Directories whose files do.
const DIRECTORIES: [&str; 2] = [".amplifier/hooks", ".amplifier/skills"];
/// Directories that may be links, which lead a project out of itself.
const LINKS: [&str; 3] = [".amplifier", ".amplifier/hooks", ".amplifier/skills"];
/// The most files of one directory that are looked at.
const MOST_FILES: usize = 2_000;
/// The most bytes of a file that count; what is longer cannot be trusted to stay the same.
const MOST_BYTES: u64 = 32 << 20;

/// What the project's own files ask for.
pub(super) fn wants(root: &Path, files: &SettingsFiles) -> Result<Vec<Power>, SettingsError> {
    let mut found = Vec::new();
    for (scope, path) in files.read_from().into_iter().filter(|(scope, _)| *scope != Scope::User) {
        let Some(layer) = Settings::layer(&path, scope)? else { continue };
        settings(&layer, "", &mut found);
    }
    for name in LINKS {
        let path = root.join(name);
        if let Ok(to) = path.canonicalize()
            && path.is_symlink()
        {
            let (module, key) = ("project".to_owned(), name.to_owned());
            found.push(Power::Path { module, key, path: to.display().to_string() });
        }
    }
    for name in FILES.iter().filter(|name| root.join(name).is_file()) {
        file(root, &root.join(name), &mut found);
    }
    for name in DIRECTORIES.iter().filter(|name| root.join(name).is_dir()) {
        let walk = WalkBuilder::new(root.join(name)).standard_filters(false).follow_links(true).build();
        let paths = walk.filter_map(Result::ok).filter(|entry| entry.path().is_file());
        for entry in paths.take(MOST_FILES) {
            file(root, entry.path(), &mut found);
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
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
    let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
    let sha256 = match read {
        Ok(_) => Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect(),
        Err(error) => format!("unreadable: {error}"),
    };
    found.push(Power::File { path: name.clone(), sha256 });
    if let Ok(value) = serde_json::from_slice::<Value>(&bytes) {
        programs(&name, &value, found);
    }
}

/// Commands and addresses anywhere in a file of hooks or servers.
fn programs(file: &str, value: &Value, found: &mut Vec<Power>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| programs(file, item, found)),
        Value::Object(entries) => {
            let text = |key: &str| entries.get(key).and_then(Value::as_str);
            if let Some(command) = text("command") {
                let args = entries.get("args").and_then(Value::as_array).into_iter().flatten();
                let words: Vec<_> = std::iter::once(command).chain(args.filter_map(Value::as_str)).collect();
                found.push(Power::Program { module: file.to_owned(), command: words.join(" ") });
            }
            if let Some(url) = text("url").or_else(|| text("httpUrl")) {
                let (module, url) = (file.to_owned(), shown(&Value::from(url)));
                found.push(Power::Address { module, url, keys: Vec::new() });
            }
            entries.values().for_each(|entry| programs(file, entry, found));
        }
        _ => {}
    }
}

/// Whether a directory is the top of a repository of this user. An empty `.git`, or one that somebody else put into a
/// directory above, makes no repository of it.
pub(crate) fn is_repository(directory: &Path) -> bool {
    let git = directory.join(".git");
    let Ok(about) = std::fs::symlink_metadata(&git) else { return false };
    let is_real = match about.is_dir() {
        true => git.join("HEAD").is_file(),
        // A worktree or a submodule.
        false => about.is_file() && begins_with(&git, b"gitdir:"),
    };
    is_real && is_own(&about)
}

fn begins_with(path: &Path, words: &[u8]) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(words.len() as u64).read_to_end(&mut bytes));
    read.is_ok() && bytes == words
}

#[cfg(unix)]
fn is_own(about: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    about.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_own(_about: &std::fs::Metadata) -> bool {
    true
}

/// The root of a project as it is compared: without links.
pub(super) fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}
