//! `share/collections.yaml`: which collections there are and where they come from.
//!
//! People edit it too, so it is read anew each time, and a change leaves the lines of others as they are where it can.

use std::path::Path;
use std::sync::Arc;

use amplifier_bundle::disk::Disk;
use amplifier_bundle::error::ReadError;
use amplifier_bundle::fetch::Files;
use amplifier_bundle::node::{Mapping, Node, mapping_to_json};
use amplifier_bundle::origin::{Place, SourceFile};
use amplifier_bundle::yaml::{self, YamlLimits};
use amplifier_sources::uri::SourceUri;
use indexmap::IndexMap;

use crate::error::ProfileError;
use crate::lock_file::stamp;
use crate::profiles::{ProfileContext, Profiles};
use crate::share::{LOCAL, Share, ShareName};
use crate::staging::{remove, write_atomically};

const MOST_BYTES: u64 = 1 << 20;

/// The registry.
#[derive(Debug, Clone, Default)]
pub struct Collections {
    /// In the order of the file.
    pub entries: IndexMap<ShareName, CollectionEntry>,
    text: String,
}

/// One collection of the registry.
#[derive(Debug, Clone)]
pub struct CollectionEntry {
    /// Where it comes from; a collection without a source is skipped by a sync.
    pub source: Option<String>,
    /// When it was added, if the file says so.
    pub installed_at: Option<String>,
    /// Where the entry stands.
    pub place: Place,
}

/// A collection as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionSummary {
    pub name: ShareName,
    /// The source as written; `local` for the one whose profiles are written in place.
    pub source: String,
    pub installed_at: Option<String>,
    /// The profiles that were extracted.
    pub profiles: Vec<ShareName>,
}

impl Collections {
    /// Reads the registry; a missing file is an empty one.
    pub fn read(share: &Share) -> Result<Self, ProfileError> {
        let path = share.collections_file();
        let bytes = match Disk::default().read(&path, MOST_BYTES) {
            Err(ReadError::Missing) => return Ok(Self::default()),
            bytes => bytes.map_err(|source| ProfileError::Read { path: path.clone(), source })?,
        };
        let text = String::from_utf8(bytes).map_err(|_| ProfileError::Read {
            path: path.clone(),
            source: ReadError::Io("it is not UTF-8 text".into()),
        })?;
        Self::parse(&path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, ProfileError> {
        let file = Arc::new(SourceFile::new(path, text.trim_start_matches('\u{feff}')));
        let document = yaml::read(&file, &YamlLimits::default())?;
        let mut entries = IndexMap::new();
        let root = document.node.unwrap_or_else(|| Node::map(Mapping::new(), &Place::start(&file)));
        for (name, entry) in section(&root)? {
            let place = entry.key.clone();
            let name = name.parse::<ShareName>().map_err(|error| ProfileError::Registry {
                place: place.clone(),
                message: error.to_string(),
            })?;
            let text = |key: &str| entry.node.at(key).and_then(Node::spelled).map(str::to_owned);
            // `name: source` is what people write when they are in a hurry.
            let source = entry.node.as_text().map(str::to_owned).or_else(|| text("source"));
            let source = source.filter(|source| !source.trim().is_empty());
            entries.insert(name, CollectionEntry { source, installed_at: text("installed_at"), place });
        }
        Ok(Self { entries, text: text.to_owned() })
    }

    /// The file with one entry more.
    fn with(&self, path: &Path, name: &ShareName, source: &str, at: &str) -> Result<String, ProfileError> {
        let mut text = self.text.clone();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if self.entries.is_empty() {
            text = text
                .lines()
                .filter(|line| !line.trim_start().starts_with("collections:"))
                .fold(String::new(), |text, line| text + line + "\n");
            text.push_str("collections:\n");
        }
        let indent = self.entries.values().next().map_or(2, |entry| entry.place.column.saturating_sub(1));
        let pad = " ".repeat(usize::try_from(indent.max(1)).unwrap_or(2));
        let deeper = pad.repeat(2);
        let addition = format!(
            "{pad}{name}:\n{deeper}source: {}\n{deeper}installed_at: {}\n",
            scalar(source),
            scalar(at)
        );
        let appended = format!("{text}{addition}");
        let expected = |read: &Self| {
            read.entries.len() == self.entries.len() + 1
                && read
                    .entries
                    .last()
                    .is_some_and(|(last, entry)| last == name && entry.source.as_deref() == Some(source))
        };
        if Self::parse(path, &appended).is_ok_and(|read| expected(&read)) {
            return Ok(appended);
        }
        // A file in another style, or with keys after the collections: written anew, values kept.
        let mut all = self.plain(path)?;
        let entry = serde_json::json!({ "source": source, "installed_at": at });
        all.insert(name.to_string(), entry);
        Ok(written(&all))
    }

    /// The file without one entry.
    fn without(&self, path: &Path, name: &ShareName) -> Result<String, ProfileError> {
        let lines: Vec<&str> = self.text.split_inclusive('\n').collect();
        let Some((index, _, entry)) = self.entries.get_full(name) else { return Ok(self.text.clone()) };
        let first = usize::try_from(entry.place.line).unwrap_or(1).saturating_sub(1);
        let next = self.entries.get_index(index + 1).map(|(_, next)| next.place.line);
        let last = next.map_or(lines.len(), |line| usize::try_from(line).unwrap_or(1).saturating_sub(1));
        let kept = lines.iter().take(first).chain(lines.iter().skip(last));
        let cut: String = kept.copied().collect();
        let expected = |read: &Self| {
            let left = self.entries.iter().filter(|(known, _)| *known != name);
            read.entries.len() + 1 == self.entries.len()
                && left.zip(&read.entries).all(|(old, new)| old.0 == new.0 && old.1.source == new.1.source)
        };
        if Self::parse(path, &cut).is_ok_and(|read| expected(&read)) {
            return Ok(cut);
        }
        let mut all = self.plain(path)?;
        all.shift_remove(name.as_str());
        Ok(written(&all))
    }

    fn plain(&self, path: &Path) -> Result<serde_json::Map<String, serde_json::Value>, ProfileError> {
        let file = Arc::new(SourceFile::new(path, self.text.as_str()));
        let document = yaml::read(&file, &YamlLimits::default())?;
        match &document.node {
            Some(node) => Ok(mapping_to_json(&section(node)?)),
            None => Ok(serde_json::Map::new()),
        }
    }
}

/// The entries below `collections`.
fn section(root: &Node) -> Result<Mapping, ProfileError> {
    let wrong = |node: &Node, what: &str| {
        let message = format!("{what} must be a mapping, not {}", node.type_name());
        ProfileError::Registry { place: node.place.clone(), message }
    };
    let keys = root.as_map().ok_or_else(|| wrong(root, "the file"))?;
    match keys.get("collections").map(|entry| &entry.node) {
        None => Ok(Mapping::new()),
        Some(node) if node.is_null() => Ok(Mapping::new()),
        Some(node) => Ok(node.as_map().ok_or_else(|| wrong(node, "`collections`"))?.clone()),
    }
}

fn written(entries: &serde_json::Map<String, serde_json::Value>) -> String {
    let mut text = "collections:\n".to_owned();
    for (name, entry) in entries {
        text.push_str(&format!("  {}:", scalar(name)));
        match entry.as_object() {
            Some(keys) => {
                text.push('\n');
                for (key, value) in keys {
                    let value = value.as_str().map_or_else(|| value.to_string(), scalar);
                    text.push_str(&format!("    {}: {value}\n", scalar(key)));
                }
            }
            None => {
                text.push_str(&format!(" {}\n", entry.as_str().map_or_else(|| entry.to_string(), scalar)))
            }
        }
    }
    text
}

/// A text as YAML: bare where that is safe, else quoted, in the form that JSON and YAML share.
fn scalar(text: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || "+-_./:@#=?&%~".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '.');
    let ends =
        !text.ends_with(':') && !matches!(text, "null" | "true" | "false" | "yes" | "no" | "on" | "off");
    let time = text.len() == 20 && text.ends_with('Z');
    if (begins && ends && text.chars().all(bare) && !text.starts_with("...")) || time {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}

impl Profiles {
    /// Every collection, in the order of the registry; then `local`, if it has a profile.
    pub fn collections(&self) -> Result<Vec<CollectionSummary>, ProfileError> {
        let mut found = Vec::new();
        let registry = Collections::read(&self.share)?;
        let names = |name: &ShareName| -> Result<Vec<ShareName>, ProfileError> {
            Ok(self.share.profiles(name)?.into_iter().map(|id| id.profile).collect())
        };
        for (name, entry) in &registry.entries {
            found.push(CollectionSummary {
                name: name.clone(),
                source: entry.source.clone().unwrap_or_default(),
                installed_at: entry.installed_at.clone(),
                profiles: names(name)?,
            });
        }
        let local: ShareName = LOCAL.parse()?;
        let profiles = names(&local)?;
        if !registry.entries.contains_key(&local) && !profiles.is_empty() {
            found.push(CollectionSummary { name: local, source: LOCAL.into(), installed_at: None, profiles });
        }
        Ok(found)
    }

    /// Adds a collection to the registry. Its profiles come with the next sync.
    pub async fn add_collection(
        &self,
        name: &ShareName,
        source: &str,
        cx: &ProfileContext,
    ) -> Result<(), ProfileError> {
        if name.as_str() == LOCAL {
            return Err(ProfileError::LocalCollection);
        }
        if let Ok(uri) = source.parse::<SourceUri>()
            && uri.holds_credentials()
        {
            return Err(ProfileError::Credential { uri: uri.to_string() });
        }
        let _guard = self.guard("collections.yaml", cx).await?;
        let path = self.share.collections_file();
        let registry = Collections::read(&self.share)?;
        if registry.entries.contains_key(name) {
            return Err(ProfileError::CollectionExists { name: name.to_string() });
        }
        let text = registry.with(&path, name, source.trim(), &stamp(self.clock.now()))?;
        write_atomically(&path, text.as_bytes())
    }

    /// Takes a collection out of the registry, and its profiles out of `share/`.
    pub async fn remove_collection(&self, name: &ShareName, cx: &ProfileContext) -> Result<(), ProfileError> {
        if name.as_str() == LOCAL {
            return Err(ProfileError::LocalCollection);
        }
        let _registry = self.guard("collections.yaml", cx).await?;
        let path = self.share.collections_file();
        let registry = Collections::read(&self.share)?;
        if !registry.entries.contains_key(name) {
            return Err(ProfileError::NoCollection { name: name.to_string() });
        }
        let _profiles = self.guard(name.as_str(), cx).await?;
        write_atomically(&path, registry.without(&path, name)?.as_bytes())?;
        remove(&self.share.collection_dir(name))
    }
}

#[cfg(test)]
#[path = "collections_tests.rs"]
mod tests;
