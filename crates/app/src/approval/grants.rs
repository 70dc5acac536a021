//! What a person allowed for good, by folder: a file in the home that no session reads or writes by itself.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use amplifier_core::redact::redact;
use amplifier_protocol::hook::AskedModule;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::files::{Durability, FileError, create_private_dir, lock_within, private, write_atomic};
use crate::journal::Secrets;

const VERSION: u32 = 1;
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// How many a folder may have; whoever needs more wants `--approve all`.
const MAX_GRANTS: usize = 10_000;

/// How long a change waits for another process that changes the same file.
const PATIENCE: Duration = Duration::from_secs(10);

/// Something that is allowed: a tool, or one input of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Grant {
    /// The tool.
    pub tool: String,
    /// The one input; without it every call.
    pub input: Option<AllowedInput>,
    /// The module of the tool and a hash of its configuration; nothing in files of earlier versions, where it was any.
    pub module: Option<String>,
}

/// The id of a module with a hash of where it comes from and how it is configured.
pub(super) fn of_module(module: &AskedModule) -> String {
    let AskedModule { id, source, config } = module;
    format!("{id} {}", hashed(&json!([source, config]).to_string()))
}

fn hashed(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An input that is allowed, without the secrets that may stand in it: the permission outlives the session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AllowedInput {
    /// The SHA-256 of the whole text, by which it is known again.
    sha256: String,
    /// The text as people are shown it.
    pub shown: String,
}

impl AllowedInput {
    pub(super) fn of(input: &Value) -> Self {
        let sha256 = hashed(&input.to_string());
        Self { sha256, shown: redact(input).to_string() }
    }
}

/// A permission as it stands in the file. Those of old have the whole text and no hash.
#[derive(Serialize, Deserialize)]
struct Written {
    tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    module: Option<String>,
}

impl From<Written> for Grant {
    fn from(Written { tool, input, sha256, module }: Written) -> Self {
        let input = input.map(|text| match sha256 {
            Some(sha256) => AllowedInput { sha256, shown: text },
            // It was the JSON of the input; what is none allows nothing that could be asked.
            None => AllowedInput::of(&serde_json::from_str(&text).unwrap_or(Value::String(text))),
        });
        Self { tool, input, module }
    }
}

impl From<Grant> for Written {
    fn from(Grant { tool, input, module }: Grant) -> Self {
        let (input, sha256) = input.map(|input| (input.shown, input.sha256)).unzip();
        Self { tool, input, sha256, module }
    }
}

impl Grant {
    /// The same, which shows none of these keys. By its hash it is known all the same.
    fn hiding(mut self, secrets: &Secrets) -> Self {
        if let Some(input) = &mut self.input
            && let Cow::Owned(hidden) = secrets.hidden(&input.shown)
        {
            input.shown = hidden;
        }
        self
    }

    /// Whether what it allows is what the other one asks for. How a text is shown may change from version to version.
    pub(super) fn is(&self, other: &Self) -> bool {
        let hash = |grant: &Self| grant.input.as_ref().map(|input| input.sha256.clone());
        let same_module = self.module.is_none() || self.module == other.module;
        self.tool == other.tool && hash(self) == hash(other) && same_module
    }
}

/// The file, by its path.
#[derive(Debug, Clone)]
pub struct GrantFile(PathBuf);

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrantsError {
    /// The disk refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is not what we write.
    #[error("`{}` is not readable: {message}; remove it to be asked again", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// Somebody else is changing it.
    #[error("another process has been changing `{}` for {seconds} s", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
        /// How long it was waited for.
        seconds: u64,
    },
    /// There is no room for another.
    #[error("`{}` holds {MAX_GRANTS} permissions for this folder already", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
}

#[derive(Default, Serialize, Deserialize)]
struct Kept {
    version: u32,
    #[serde(default)]
    folders: BTreeMap<PathBuf, BTreeSet<Grant>>,
}

impl GrantFile {
    /// The file at this path; it need not be there yet.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Whether something is allowed in a folder.
    pub fn holds(&self, folder: &Path, grant: &Grant) -> Result<bool, GrantsError> {
        Ok(self.read()?.folders.get(folder).is_some_and(|grants| grants.iter().any(|kept| kept.is(grant))))
    }

    /// Everything that is allowed in a folder.
    pub fn list(&self, folder: &Path) -> Result<Vec<Grant>, GrantsError> {
        Ok(self.read()?.folders.remove(folder).unwrap_or_default().into_iter().collect())
    }

    /// Adds to what the file holds now: other processes write to it as well. Nothing in it shows one of these keys then.
    pub fn add(&self, folder: &Path, grant: Grant, secrets: &Secrets) -> Result<(), GrantsError> {
        self.change(|kept| {
            let grants = kept.folders.entry(folder.to_owned()).or_default();
            if grants.len() >= MAX_GRANTS {
                return Err(GrantsError::Full { path: self.0.clone() });
            }
            grants.insert(grant);
            for grants in kept.folders.values_mut() {
                *grants = std::mem::take(grants).into_iter().map(|grant| grant.hiding(secrets)).collect();
            }
            Ok(())
        })
    }

    /// Asks about everything again in a folder.
    pub fn forget(&self, folder: &Path) -> Result<(), GrantsError> {
        self.change(|kept| {
            kept.folders.remove(folder);
            Ok(())
        })
    }

    /// Changes what the file holds, one process at a time.
    fn change(&self, change: impl FnOnce(&mut Kept) -> Result<(), GrantsError>) -> Result<(), GrantsError> {
        if let Some(above) = self.0.parent() {
            create_private_dir(above)?;
        }
        let beside = self.0.with_extension("lock");
        let lock = private().write(true).create(true).truncate(false).open(&beside);
        let lock = lock.map_err(FileError::at("open", &beside))?;
        if !lock_within(&lock, &beside, PATIENCE)? {
            return Err(GrantsError::Busy { path: self.0.clone(), seconds: PATIENCE.as_secs() });
        }
        let mut kept = self.read()?;
        change(&mut kept)?;
        kept.version = VERSION;
        let text = serde_json::to_vec_pretty(&kept).map_err(|error| self.unreadable(&error))?;
        Ok(write_atomic(&self.0, &text, Durability::Synced)?)
    }

    fn read(&self) -> Result<Kept, GrantsError> {
        let bytes = match std::fs::metadata(&self.0) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Kept::default()),
            Err(error) => return Err(FileError::at("read", &self.0)(error).into()),
            Ok(about) => about.len(),
        };
        if bytes > MAX_BYTES {
            return Err(self.unreadable(&"it is too large"));
        }
        let text = std::fs::read(&self.0).map_err(FileError::at("read", &self.0))?;
        let kept: Kept = serde_json::from_slice(&text).map_err(|error| self.unreadable(&error))?;
        if kept.version > VERSION {
            return Err(self.unreadable(&format!("version {} is newer than this program", kept.version)));
        }
        Ok(kept)
    }

    fn unreadable(&self, message: &dyn std::fmt::Display) -> GrantsError {
        GrantsError::Unreadable { path: self.0.clone(), message: message.to_string() }
    }
}
