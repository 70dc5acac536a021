//! A world in memory: files, addresses that lead to them, and fetches that end in any order we like.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use amplifier_bundle::error::{BundleError, FetchError, ReadError};
use amplifier_bundle::fetch::{Fetch, Fetched, Files, PathKind, Stamp};
use amplifier_bundle::home::{Source, normalize};
use amplifier_bundle::include::LoadOptions;
use amplifier_bundle::load::{LoadedBundle, load_bundle};
use amplifier_bundle::notice::{Code, Strictness};
use serde_json::Value;

#[derive(Default)]
pub struct Memory {
    files: BTreeMap<PathBuf, Vec<u8>>,
    trees: BTreeMap<String, PathBuf>,
    registered: BTreeMap<String, String>,
    denied: Vec<PathBuf>,
    /// How many turns each fetch waits, by address.
    delays: BTreeMap<String, usize>,
    /// What was fetched, in the order in which it was asked for.
    pub fetched: Mutex<Vec<String>>,
    running: AtomicUsize,
    /// The most fetches that ran at once.
    pub most: AtomicUsize,
}

impl Memory {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let mut memory = Self::default();
        for (path, text) in files {
            memory.put(path, text);
        }
        memory
    }

    pub fn put(&mut self, path: &str, text: &str) {
        self.files.insert(path.into(), text.as_bytes().to_vec());
    }

    /// Lets an address lead to a folder, as a checkout would.
    pub fn tree(mut self, address: &str, folder: &str) -> Self {
        self.trees.insert(address.to_owned(), folder.into());
        self
    }

    pub fn register(mut self, name: &str, address: &str) -> Self {
        self.registered.insert(name.to_owned(), address.to_owned());
        self
    }

    /// Lets a file be one that may not be read.
    pub fn deny(mut self, path: &str) -> Self {
        self.denied.push(path.into());
        self
    }

    pub fn delay(mut self, address: &str, turns: usize) -> Self {
        self.delays.insert(address.to_owned(), turns);
        self
    }

    pub async fn load(&self, reference: &str) -> Result<LoadedBundle, BundleError> {
        load_bundle(self, reference, Path::new("/"), &LoadOptions::default()).await
    }

    pub async fn strict(&self, reference: &str) -> Result<LoadedBundle, BundleError> {
        let options = LoadOptions { strictness: Strictness::Strict, ..LoadOptions::default() };
        load_bundle(self, reference, Path::new("/"), &options).await
    }

    pub async fn plan(&self, reference: &str) -> Value {
        self.load(reference).await.unwrap().plan.to_json()
    }
}

/// The modules of a list of a plan, by name.
pub fn modules(plan: &Value, section: &str) -> Vec<String> {
    let items = plan[section].as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["module"].as_str().unwrap().to_owned()).collect()
}

pub fn codes(loaded: &LoadedBundle) -> Vec<Code> {
    loaded.notices().iter().map(|notice| notice.code).collect()
}

impl Files for Memory {
    fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
        let bytes = self.files.get(path).ok_or(ReadError::Missing)?;
        if self.denied.iter().any(|denied| denied == path) {
            return Err(ReadError::Denied);
        }
        let size = bytes.len() as u64;
        if size > limit { Err(ReadError::TooLarge { size, limit }) } else { Ok(bytes.clone()) }
    }

    fn kind(&self, path: &Path) -> PathKind {
        if self.files.contains_key(path) {
            return PathKind::File;
        }
        let below = self.files.range(path.to_path_buf()..).next();
        let below = below.is_some_and(|(file, _)| file.starts_with(path));
        if below { PathKind::Folder } else { PathKind::Missing }
    }

    fn list(&self, _path: &Path) -> Result<Vec<(String, PathKind)>, ReadError> {
        Err(ReadError::Denied)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
        let path = normalize(path);
        if self.kind(&path) == PathKind::Missing { Err(ReadError::Missing) } else { Ok(path) }
    }

    fn stamp(&self, path: &Path) -> Option<Stamp> {
        self.files.get(path).map(|bytes| Stamp { length: bytes.len() as u64, modified: None })
    }
}

impl Fetch for Memory {
    fn redirect(&self, reference: &str) -> Option<String> {
        self.registered.get(reference).cloned()
    }

    async fn fetch(&self, address: &str) -> Result<Fetched, FetchError> {
        self.fetched.lock().unwrap().push(address.to_owned());
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        for _ in 0..self.delays.get(address).copied().unwrap_or(0) {
            tokio::task::yield_now().await;
        }
        self.running.fetch_sub(1, Ordering::SeqCst);
        let (uri, below) = address.split_once("#subdirectory=").unwrap_or((address, ""));
        let root = self.trees.get(uri).ok_or_else(|| FetchError::new(format!("no route to `{uri}`")))?;
        let pinned = uri.contains('@').then(|| format!("{}@c0ffee", uri.split('@').next().unwrap_or(uri)));
        let source = Source::Fetched { uri: uri.to_owned(), pinned };
        Ok(Fetched { path: normalize(&root.join(below)), root: root.clone(), source })
    }
}
