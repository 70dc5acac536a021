//! `registry.json`: names that stand for bundles, and the bundle that is in use. Loading a bundle is not done here.
//!
//! Changes are made under a lock and written as a whole, so that two processes lose nothing of each other; reading needs no
//! lock. Keys that are not known here are kept. A file that cannot be read is an error, never an empty registry: the next
//! change would wipe it out.

use std::collections::BTreeMap;
use std::fs::TryLockError;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use amplifier_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::files::{Durability, FileError, OTHER_HOME, READ, create_private_dir, private, write_atomic};
use crate::paths::Home;
use crate::{shelf, spelling};

/// The form of the file that is written here.
pub const VERSION: u32 = 1;

/// How long a change waits for another process that changes the registry.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the file holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Registered {
    pub version: u32,
    /// The bundle in use: a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<String>,
    #[serde(default)]
    pub bundles: BTreeMap<String, Entry>,
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// One name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Where the bundle is.
    pub uri: String,
    /// What the bundle calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its version when it was last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When the name was registered or last updated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded_at: Option<Timestamp>,
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

impl Default for Registered {
    fn default() -> Self {
        Self { version: VERSION, active: None, bundles: BTreeMap::new(), unknown: Map::new() }
    }
}

impl Registered {
    /// Names and where they lead.
    pub fn names(&self) -> BTreeMap<String, String> {
        self.bundles.iter().map(|(name, entry)| (name.clone(), entry.uri.clone())).collect()
    }

    /// Whether a name leads somewhere.
    pub fn knows(&self, name: &str) -> bool {
        self.bundles.contains_key(name) || shelf::has(name)
    }
}

/// Why the registry could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("`{}` is no registry", path.display())]
    Broken {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error("`{}` has version {found}, known is {VERSION}; a newer program wrote it", path.display())]
    Version { path: PathBuf, found: u32 },
    #[error("another process holds `{}` for more than {} s", path.display(), PATIENCE.as_secs())]
    Busy { path: PathBuf },
    #[error(
        "`{name}` is no name for a bundle: letters, digits, `-`, `_` and `.`, beginning with a letter or digit"
    )]
    Name { name: String },
    #[error("the bundle `{uri}` does not say what it is called")]
    Nameless { uri: String },
    #[error("the address `{uri}` holds a credential, which would be written to a file")]
    Credential { uri: String },
    #[error("`{}` cannot be registered: its name is not UTF-8, and a registry is text", spelling::told(path))]
    NotText { path: PathBuf },
    #[error("no bundle is registered as `{name}`")]
    Unknown { name: String },
    #[error("`{name}` is registered for `{uri}` already")]
    Taken { name: String, uri: String },
}

impl RegistryError {
    /// Whether the machine failed, and not what was asked for or how it is configured.
    pub fn is_failure(&self) -> bool {
        match self {
            Self::File(error) => !error.is_reading(),
            Self::Busy { .. } => true,
            _ => false,
        }
    }

    /// What the person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Broken { .. } | Self::File(FileError { action: READ, .. }) => {
                Some("mend the file or move it away; the bundles themselves are not lost with it")
            }
            Self::Unknown { .. } => Some("`amplifier bundle list` shows all names"),
            Self::Taken { .. } => Some("choose another name with `--name`, or remove the old one first"),
            Self::Credential { .. } => Some("leave it out; git's own credential helpers are asked for it"),
            Self::Busy { .. } => Some("wait for the other process, or end it"),
            Self::File(error) => Some(error.cure().unwrap_or(OTHER_HOME)),
            Self::Version { .. } => Some("a newer version of this program reads it"),
            Self::Nameless { .. } => Some(
                "`--name NAME` gives it a name; a bundle's own stands in its front matter, as `bundle: {name: notes}`",
            ),
            Self::NotText { .. } => Some("rename the file or its folder"),
            Self::Name { .. } => Some("`--name NAME` registers it under another one"),
        }
    }
}

/// The registry of a home.
#[derive(Debug, Clone)]
pub struct Registry {
    path: PathBuf,
}

impl Registry {
    pub fn new(home: &Home) -> Self {
        Self { path: home.registry() }
    }

    /// What is registered now.
    pub fn read(&self) -> Result<Registered, RegistryError> {
        let text = match std::fs::read(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Registered::default()),
            text => text.map_err(FileError::at(READ, &self.path))?,
        };
        let broken = |source| RegistryError::Broken { path: self.path.clone(), source };
        let registered: Registered = serde_json::from_slice(&text).map_err(broken)?;
        if registered.version > VERSION {
            return Err(RegistryError::Version { path: self.path.clone(), found: registered.version });
        }
        Ok(registered)
    }

    /// Registers a name. One that leads elsewhere already is not changed.
    pub fn add(&self, name: &str, entry: Entry) -> Result<(), RegistryError> {
        check_name(name)?;
        self.change(|registered| match registered.bundles.get(name) {
            Some(old) if old.uri != entry.uri => {
                Err(RegistryError::Taken { name: name.to_owned(), uri: old.uri.clone() })
            }
            _ => {
                registered.bundles.insert(name.to_owned(), entry);
                Ok(())
            }
        })
    }

    /// Notes what was found when a registered bundle was looked at again. A name that is gone meanwhile stays gone.
    pub fn refresh(&self, name: &str, entry: Entry) -> Result<(), RegistryError> {
        self.change(|registered| {
            if let Some(old) = registered.bundles.get_mut(name) {
                *old = entry;
            }
            Ok(())
        })
    }

    /// Forgets a name; gives what it stood for.
    pub fn remove(&self, name: &str) -> Result<Entry, RegistryError> {
        self.change(|registered| {
            let removed = registered.bundles.remove(name);
            if registered.active.as_deref() == Some(name) {
                registered.active = None;
            }
            removed.ok_or_else(|| RegistryError::Unknown { name: name.to_owned() })
        })
    }

    /// Puts a bundle in use.
    pub fn activate(&self, name: &str) -> Result<(), RegistryError> {
        self.change(|registered| {
            if !registered.knows(name) {
                return Err(RegistryError::Unknown { name: name.to_owned() });
            }
            registered.active = Some(name.to_owned());
            Ok(())
        })
    }

    /// Puts no bundle in use; says which one was.
    pub fn deactivate(&self) -> Result<Option<String>, RegistryError> {
        if self.read()?.active.is_none() {
            return Ok(None);
        }
        self.change(|registered| Ok(registered.active.take()))
    }

    /// Changes the file under the lock. Nothing is written when the change is refused.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Registered) -> Result<T, RegistryError>,
    ) -> Result<T, RegistryError> {
        if let Some(folder) = self.path.parent() {
            create_private_dir(folder)?;
        }
        let lock_path = self.path.with_extension("lock");
        let lock = private().create(true).truncate(false).write(true).open(&lock_path);
        let lock = lock.map_err(FileError::at("open", &lock_path))?;
        let begun = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(TryLockError::WouldBlock) => return Err(RegistryError::Busy { path: lock_path }),
                Err(TryLockError::Error(error)) => {
                    return Err(FileError::at("lock", &lock_path)(error).into());
                }
            }
        }
        let mut registered = self.read()?;
        let answer = change(&mut registered)?;
        let broken = |source| RegistryError::Broken { path: self.path.clone(), source };
        let mut text = serde_json::to_vec_pretty(&registered).map_err(broken)?;
        text.push(b'\n');
        write_atomic(&self.path, &text, Durability::Synced)?;
        Ok(answer)
    }
}

fn check_name(name: &str) -> Result<(), RegistryError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && name.len() <= 100 && name.chars().all(fits) {
        return Ok(());
    }
    Err(RegistryError::Name { name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(uri: &str) -> Entry {
        let (name, version, description, loaded_at) = (None, None, None, None);
        Entry { uri: uri.to_owned(), name, version, description, loaded_at, unknown: Map::new() }
    }

    #[test]
    fn w08_many_writers_lose_nothing_of_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().join("home"));
        std::thread::scope(|scope| {
            for at in 0..20 {
                let home = &home;
                scope.spawn(move || Registry::new(home).add(&format!("b{at}"), entry("file:///b")).unwrap());
            }
        });
        assert_eq!(Registry::new(&home).read().unwrap().bundles.len(), 20);
    }

    #[test]
    fn a_broken_file_is_an_error_and_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        std::fs::write(home.registry(), "{broken").unwrap();
        let registry = Registry::new(&home);
        assert!(matches!(registry.read(), Err(RegistryError::Broken { .. })));
        assert!(matches!(registry.add("a", entry("file:///a")), Err(RegistryError::Broken { .. })));
        assert_eq!(std::fs::read_to_string(home.registry()).unwrap(), "{broken");
    }

    #[test]
    fn unknown_keys_are_kept_and_names_are_checked() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        let text = r#"{"version": 1, "bundles": {"a": {"uri": "file:///a", "is_root": true}}, "x": 1}"#;
        std::fs::write(home.registry(), text).unwrap();
        let registry = Registry::new(&home);
        registry.activate("foundation").unwrap();
        let read = registry.read().unwrap();
        assert_eq!((read.unknown.get("x"), read.active.as_deref()), (Some(&1.into()), Some("foundation")));
        assert!(read.bundles.get("a").is_some_and(|entry| entry.unknown.contains_key("is_root")));
        for wrong in ["", "a:b", "a/b", "-a", "..", "a b"] {
            assert!(
                matches!(registry.add(wrong, entry("file:///a")), Err(RegistryError::Name { .. })),
                "{wrong}"
            );
        }
        assert!(matches!(registry.add("a", entry("file:///b")), Err(RegistryError::Taken { .. })));
        assert!(matches!(registry.activate("nobody"), Err(RegistryError::Unknown { .. })));
        assert!(matches!(registry.remove("nobody"), Err(RegistryError::Unknown { .. })));
    }
}
