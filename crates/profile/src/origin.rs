//! Where the profiles of a collection were taken from: what their relative paths are relative to.
//!
//! Kept as `.collection.json` beside the profiles, since the files themselves are copies and must stay as they are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_bundle::home::{Home, Source};
use amplifier_sources::fetch::{Fetched, Identity};
use amplifier_sources::tree::ContentHash;
use amplifier_sources::uri::SourceUri;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::error::ProfileError;
use crate::share::{ProfileId, Share, ShareName};
use crate::staging::write_atomically;

/// The folder that stands for the root of a fetched tree, wherever it is kept: paths are only compared in it.
const TREE: &str = "/collection";

/// What was extracted, and from where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CollectionRecord {
    /// The source as the registry has it, without credentials.
    pub(crate) source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content_hash: Option<ContentHash>,
    pub(crate) tree: Tree,
    /// The collection's folder within the tree; empty for all of it.
    pub(crate) folder: String,
    /// Its folder of context files within the tree, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<String>,
    /// The file of each profile, within the tree.
    pub(crate) profiles: IndexMap<String, String>,
}

/// The whole of which a collection is a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Tree {
    /// A folder of this machine, whose author is the user.
    Local(PathBuf),
    /// Something that can be fetched again under an address that names exactly it.
    Pinned(String),
    /// Something whose address may not be kept, since it holds a credential: its place in the cache.
    Cached(PathBuf),
}

impl CollectionRecord {
    /// The record of a collection before its profiles are known.
    pub(crate) fn new(source: &SourceUri, fetched: &Fetched) -> Self {
        let (commit, content_hash) = match &fetched.identity {
            Identity::Local => (None, None),
            Identity::Commit { commit, content_hash } => {
                (Some(commit.as_str().to_owned()), Some(content_hash.clone()))
            }
            Identity::Content { content_hash } => (None, Some(content_hash.clone())),
        };
        let tree = match (&fetched.identity, source) {
            (Identity::Local, _) => Tree::Local(fetched.path.clone()),
            (Identity::Commit { commit, .. }, SourceUri::Git(uri)) => {
                pinned(&SourceUri::Git(uri.whole().at(commit.as_str())), fetched)
            }
            (_, SourceUri::Zip(uri)) => pinned(&SourceUri::Zip(uri.whole()), fetched),
            _ => Tree::Cached(fetched.root.clone()),
        };
        let root = if fetched.identity == Identity::Local { &fetched.path } else { &fetched.root };
        let folder = below(&fetched.path, root);
        let source = source.to_string();
        Self { source, commit, content_hash, tree, folder, context: None, profiles: IndexMap::new() }
    }

    /// Reads the record of a collection; one that cannot be read is as good as none, since a sync writes it again.
    pub(crate) fn read(share: &Share, collection: &ShareName) -> Option<Self> {
        let text = std::fs::read_to_string(path(share, collection)).ok()?;
        serde_json::from_str(&text).ok()
    }

    pub(crate) fn write(&self, share: &Share, collection: &ShareName) -> Result<(), ProfileError> {
        let path = path(share, collection);
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| ProfileError::io("write", &path)(error.into()))?;
        write_atomically(&path, format!("{text}\n").as_bytes())
    }

    /// The folder that stands for the root of the tree.
    pub(crate) fn root(&self) -> PathBuf {
        match &self.tree {
            Tree::Local(root) | Tree::Cached(root) => root.clone(),
            Tree::Pinned(_) => PathBuf::from(TREE),
        }
    }

    /// The surroundings of a file of the tree, whose text lies at `shown`.
    pub(crate) fn home(&self, file: &str, shown: &Path) -> Home {
        let root = self.root();
        let at = root.join(file);
        let source = match &self.tree {
            Tree::Local(_) => Source::Local,
            Tree::Pinned(pinned) => {
                Source::Fetched { uri: self.source.clone(), pinned: Some(pinned.clone()) }
            }
            Tree::Cached(_) => Source::Fetched { uri: self.source.clone(), pinned: None },
        };
        // A copy in `share/` is nothing to edit: what a person wrote on this machine is named as they know it.
        let file = if source == Source::Local { at.clone() } else { shown.to_owned() };
        let dir = at.parent().map(Path::to_path_buf).unwrap_or_else(|| root.clone());
        Home { file, dir, root, source }
    }
}

/// The surroundings of a profile in `share/`.
pub(crate) fn home(share: &Share, id: &ProfileId) -> Arc<Home> {
    let shown = share.profile_file(id);
    let record = CollectionRecord::read(share, &id.collection);
    let found = record.as_ref().and_then(|record| Some((record, record.profiles.get(id.profile.as_str())?)));
    Arc::new(match found {
        Some((record, file)) => record.home(file, &shown),
        // Written in place, by hand.
        None => Home::local(shown, share.profile_dir(id)),
    })
}

/// A path relative to a folder above it, with `/`.
pub(crate) fn below(path: &Path, root: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(Path::new(""));
    below.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn pinned(uri: &SourceUri, fetched: &Fetched) -> Tree {
    let shown = uri.to_string();
    // What is shown has lost its credentials and would lead nowhere.
    if shown.parse::<SourceUri>().is_ok_and(|read| read == *uri) {
        Tree::Pinned(shown)
    } else {
        Tree::Cached(fetched.root.clone())
    }
}

fn path(share: &Share, collection: &ShareName) -> PathBuf {
    share.collection_dir(collection).join(".collection.json")
}
