//! What was fetched, by commit or by content, in folders that many processes share.
//!
//! ```text
//! cache/git/<commit>/      the files of a commit            cache/fsspec/<hash>/   a download, or what an archive held
//!   .meta/<key>.json       source, content hash, size       .meta/<key>.files      what it held, path by path
//!   .refs/<hash>.json      which key a name stood for       .locks/, .temp/        who fetches and uses what, half-made things
//! ```
//! An entry is complete or not there: it is made in `.temp` and renamed. Its record is written before, so an entry always has
//! one. Entries never change; a name that moves gets another entry. Lock files stay, since removing one that somebody
//! waits for would let two in. How things are fetched is not decided here.

mod key_lock;
mod record;
mod scratch;

use std::io;
use std::path::{Path, PathBuf};

use crate::error::FetchError;
use crate::limits::Limits;
use crate::tree::Listing;

pub use key_lock::{InUse, KeyLock};
pub use record::{EntryRecord, NameRecord, Validators};
pub(crate) use scratch::Scratch;

/// One of the two halves of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Store {
    /// By commit.
    Git,
    /// By content hash.
    Fsspec,
}

impl Store {
    pub const ALL: [Self; 2] = [Self::Git, Self::Fsspec];

    /// The name of its folder.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Git => "git",
            Self::Fsspec => "fsspec",
        }
    }
}

/// The folder `cache/` of a home.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

/// Something in the cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub store: Store,
    /// The commit or the content hash.
    pub key: String,
    pub path: PathBuf,
    /// Where it came from and what it was; missing only when somebody removed the record.
    pub record: Option<EntryRecord>,
}

/// Which entries are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    All,
    /// Entries whose key begins with the text.
    Key(String),
}

/// What a check of one entry found.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    pub entry: Entry,
    /// What differs from the record, one line each; empty when all is well.
    pub problems: Vec<String>,
}

/// What clearing did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cleared {
    pub removed: Vec<Entry>,
    /// Left alone, since a process fetches or uses them right now.
    pub busy: Vec<Entry>,
}

impl Cache {
    /// The cache in a folder, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where an entry is, if it is there.
    pub fn find(&self, store: Store, key: &str) -> Option<PathBuf> {
        let path = self.entry_path(store, key);
        (is_key(key) && path.is_dir()).then_some(path)
    }

    /// Keeps the entry that a path lies in from being cleared; nothing for other paths, and where no lock can be taken.
    pub fn hold(&self, path: &Path) -> Option<InUse> {
        let root = self.root.canonicalize().ok()?;
        let path = path.canonicalize().ok()?;
        let mut parts = path.strip_prefix(root).ok()?.iter().map(|part| part.to_str());
        let (store, key) = (parts.next()??, parts.next()??);
        let store = Store::ALL.into_iter().find(|known| known.as_str() == store)?;
        is_key(key).then(|| InUse::acquire(&self.use_path(store, key)))?
    }

    /// Every entry, in a stable order.
    pub fn list(&self) -> Result<Vec<Entry>, FetchError> {
        let mut entries = Vec::new();
        for store in Store::ALL {
            for key in names_in(&self.store_path(store))?.into_iter().filter(|name| is_key(name)) {
                let path = self.entry_path(store, &key);
                let record = EntryRecord::read(&self.record_path(store, &key))?;
                entries.push(Entry { store, key, path, record });
            }
        }
        entries.sort_by(|a, b| (a.store, &a.key).cmp(&(b.store, &b.key)));
        Ok(entries)
    }

    /// Removes entries and the names that led to them, and what dead processes left half made.
    pub fn clear(&self, selection: &Selection) -> Result<Cleared, FetchError> {
        let mut cleared = Cleared::default();
        for entry in self.list()?.into_iter().filter(|entry| selection.takes(&entry.key)) {
            self.prepare(entry.store)?;
            let fetching = KeyLock::try_acquire(&self.lock_path(entry.store, &entry.key))?;
            let using = KeyLock::try_acquire(&self.use_path(entry.store, &entry.key))?;
            let (Some(_fetching), Some(_using)) = (fetching, using) else {
                cleared.busy.push(entry);
                continue;
            };
            // Away in one step, so that nobody finds half of it; its removal may then take its time.
            let scratch = Scratch::create(&self.store_path(entry.store))?;
            let aside = scratch.path().join("removed");
            put_aside(&entry.path, &aside).map_err(FetchError::in_cache("remove", &entry.path))?;
            for path in [self.record_path(entry.store, &entry.key), self.files_path(entry.store, &entry.key)]
            {
                remove_if_there(&path)?;
            }
            scratch::remove_tree(&aside).map_err(FetchError::in_cache("remove", &aside))?;
            cleared.removed.push(entry);
        }
        for store in Store::ALL {
            self.forget_dangling_names(store)?;
            Scratch::sweep(&self.store_path(store))?;
        }
        Ok(cleared)
    }

    /// Reads entries again and compares them with what was recorded when they were fetched.
    pub fn verify(&self, selection: &Selection, limits: &Limits) -> Result<Vec<Verdict>, FetchError> {
        let chosen = self.list()?.into_iter().filter(|entry| selection.takes(&entry.key));
        chosen.map(|entry| self.verify_one(entry, limits)).collect()
    }

    fn verify_one(&self, entry: Entry, limits: &Limits) -> Result<Verdict, FetchError> {
        let found = match Listing::read(&entry.path, limits) {
            Ok(found) => found,
            Err(error) => return Ok(Verdict { entry, problems: vec![error.to_string()] }),
        };
        let hash = found.hash();
        let expected = match (&entry.record, entry.store) {
            (Some(record), _) => record.content_hash.hex().to_owned(),
            (None, Store::Fsspec) => entry.key.clone(),
            (None, Store::Git) => {
                let problems = vec!["it has no record, so nothing can be compared".to_owned()];
                return Ok(Verdict { entry, problems });
            }
        };
        let mut problems = Vec::new();
        if hash.hex() != expected {
            let files = record::read_files(&self.files_path(entry.store, &entry.key))?.unwrap_or_default();
            problems = Listing::changes(&files, &found);
            if problems.is_empty() || files.is_empty() {
                problems = vec![format!("its content is {hash}, recorded was sha256:{expected}")];
            }
        }
        Ok(Verdict { entry, problems })
    }

    /// Puts a finished tree in place. Whoever holds the key's lock calls it.
    pub(crate) fn publish(
        &self,
        (store, key): (Store, &str),
        tree: &Path,
        (record, listing): (&EntryRecord, &Listing),
    ) -> Result<PathBuf, FetchError> {
        let path = self.entry_path(store, key);
        if path.is_dir() {
            return Ok(path);
        }
        record::write_files(&self.files_path(store, key), listing)?;
        record.write(&self.record_path(store, key))?;
        match std::fs::rename(tree, &path) {
            // Under another lock the same content may have come from another place.
            Err(_) if path.is_dir() => {}
            renamed => renamed.map_err(FetchError::in_cache("put in place", &path))?,
        }
        sync_folder(&self.store_path(store))?;
        Ok(path)
    }

    /// The record of an entry.
    pub(crate) fn record(&self, store: Store, key: &str) -> Result<Option<EntryRecord>, FetchError> {
        EntryRecord::read(&self.record_path(store, key))
    }

    /// What a name stood for when it was last asked, if the entry is still there.
    pub(crate) fn name(&self, store: Store, name: &str) -> Result<Option<(NameRecord, PathBuf)>, FetchError> {
        let Some(record) = NameRecord::read(&self.name_path(store, name))? else { return Ok(None) };
        Ok(self.find(store, &record.key).map(|path| (record, path)))
    }

    pub(crate) fn remember(&self, store: Store, name: &str, record: &NameRecord) -> Result<(), FetchError> {
        record.write(&self.name_path(store, name))
    }

    /// Makes the folders a fetch needs; the first thing to fail when the cache may not be written to.
    pub(crate) fn prepare(&self, store: Store) -> Result<(), FetchError> {
        for folder in [".meta", ".refs", ".locks", ".temp"] {
            let path = self.store_path(store).join(folder);
            std::fs::create_dir_all(&path).map_err(FetchError::in_cache("create", &path))?;
        }
        Scratch::sweep(&self.store_path(store))
    }

    pub(crate) fn scratch(&self, store: Store) -> Result<Scratch, FetchError> {
        Scratch::create(&self.store_path(store))
    }

    pub(crate) fn lock_path(&self, store: Store, key: &str) -> PathBuf {
        self.store_path(store).join(".locks").join(format!("{key}.lock"))
    }

    fn use_path(&self, store: Store, key: &str) -> PathBuf {
        self.store_path(store).join(".locks").join(format!("{key}.use"))
    }

    fn store_path(&self, store: Store) -> PathBuf {
        self.root.join(store.as_str())
    }

    fn entry_path(&self, store: Store, key: &str) -> PathBuf {
        self.store_path(store).join(key)
    }

    fn record_path(&self, store: Store, key: &str) -> PathBuf {
        self.store_path(store).join(".meta").join(format!("{key}.json"))
    }

    fn files_path(&self, store: Store, key: &str) -> PathBuf {
        self.store_path(store).join(".meta").join(format!("{key}.files"))
    }

    fn name_path(&self, store: Store, name: &str) -> PathBuf {
        self.store_path(store).join(".refs").join(format!("{name}.json"))
    }

    fn forget_dangling_names(&self, store: Store) -> Result<(), FetchError> {
        let folder = self.store_path(store).join(".refs");
        for file in names_in(&folder)? {
            let path = folder.join(&file);
            let dangling = match NameRecord::read(&path)? {
                Some(record) => self.find(store, &record.key).is_none(),
                None => true,
            };
            if dangling {
                remove_if_there(&path)?;
            }
        }
        Ok(())
    }
}

impl Selection {
    fn takes(&self, key: &str) -> bool {
        match self {
            Self::All => true,
            Self::Key(prefix) => !prefix.is_empty() && key.starts_with(prefix.as_str()),
        }
    }
}

/// Commits have 40 or 64 digits, content hashes 64.
fn is_key(name: &str) -> bool {
    matches!(name.len(), 40 | 64) && name.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn names_in(folder: &Path) -> Result<Vec<String>, FetchError> {
    let at = || FetchError::at("read", folder);
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(at())?,
    };
    let mut names = Vec::new();
    for entry in entries {
        // A name that is not UTF-8 was not made here.
        names.extend(entry.map_err(at())?.file_name().into_string().ok());
    }
    Ok(names)
}

/// Moves an entry away. A folder that its owner may not change cannot be moved either.
fn put_aside(entry: &Path, aside: &Path) -> io::Result<()> {
    match std::fs::rename(entry, aside) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            scratch::make_writable(entry)?;
            std::fs::rename(entry, aside)
        }
        ended => ended,
    }
}

fn remove_if_there(path: &Path) -> Result<(), FetchError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(FetchError::in_cache("remove", path)(error))
        }
        _ => Ok(()),
    }
}

fn sync_folder(path: &Path) -> Result<(), FetchError> {
    if cfg!(unix) {
        std::fs::File::open(path).and_then(|dir| dir.sync_all()).map_err(FetchError::at("sync", path))?;
    }
    Ok(())
}
