//! What was allowed always: for the session, and in a file when the plan names one.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_core::redact::redact_text;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::rules::Call;
use crate::hooks::place::{private_dir, private_file, write_atomic};

const VERSION: u32 = 2;
/// How many questions are waited for; the oldest, which nobody put, go first.
const MAX_EXPECTED: usize = 1_000;
/// How many grants a file may hold.
const MAX_GRANTS: usize = 10_000;
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// What "Allow always" allows: one command as it stands, or every call of a tool that takes none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Grant {
    tool: String,
    /// The hash of the whole input, for tools that run commands: the same command elsewhere is another matter.
    hash: Option<String>,
}

impl Grant {
    pub(super) fn of(call: &Call<'_>) -> Self {
        let hash = call.effects.executes.then(|| hashed(&call.input.to_string()));
        Self { tool: call.tool.to_owned(), hash }
    }
}

/// What a yes to a question would mean.
pub(super) struct Expected {
    pub(super) grant: Grant,
    /// The input, for whoever reads the file: it may hold secrets.
    pub(super) input: Option<String>,
}

impl Expected {
    pub(super) fn of(call: &Call<'_>) -> Self {
        Self { grant: Grant::of(call), input: call.effects.executes.then(|| call.input.to_string()) }
    }
}

fn hashed(input: &str) -> String {
    Sha256::digest(input).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A grant as the file holds it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Written {
    tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// For people, and without secrets: the hash says what is allowed. In files of version 1 this does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<String>,
}

impl Written {
    fn grant(&self) -> Grant {
        let hash = self.hash.clone().or_else(|| self.input.as_deref().map(hashed));
        Grant { tool: self.tool.clone(), hash }
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Kept {
    version: u32,
    #[serde(default)]
    grants: BTreeSet<Written>,
}

pub(super) struct Memory {
    file: Option<Arc<PathBuf>>,
    grants: Mutex<BTreeSet<Grant>>,
    // Questions that were handed to the kernel, by their text.
    expected: Mutex<VecDeque<(String, Expected)>>,
}

impl Memory {
    /// Reads what was allowed before. A file that cannot be read is an error: it may have been tampered with.
    pub(super) async fn open(file: Option<PathBuf>) -> Result<Self, String> {
        let file = file.map(Arc::new);
        let grants = match &file {
            None => BTreeSet::new(),
            Some(file) => {
                let file = Arc::clone(file);
                let kept = tokio::task::spawn_blocking(move || read(&file)).await;
                kept.map_err(|error| error.to_string())??.grants.iter().map(Written::grant).collect()
            }
        };
        Ok(Self { file, grants: Mutex::new(grants), expected: Mutex::default() })
    }

    pub(super) fn knows(&self, grant: &Grant) -> bool {
        lock(&self.grants).contains(grant)
    }

    /// Notes what a yes to this question would mean.
    pub(super) fn expect(&self, prompt: String, meant: Expected) {
        let mut expected = lock(&self.expected);
        expected.retain(|(known, _)| *known != prompt);
        if expected.len() >= MAX_EXPECTED {
            expected.pop_front();
        }
        expected.push_back((prompt, meant));
    }

    /// What a yes to this question means, once.
    pub(super) fn take_expected(&self, prompt: &str) -> Option<Expected> {
        let mut expected = lock(&self.expected);
        let at = expected.iter().position(|(known, _)| known == prompt)?;
        expected.remove(at).map(|(_, meant)| meant)
    }

    /// Remembers a grant for the session.
    pub(super) fn learn(&self, grant: &Grant) {
        lock(&self.grants).insert(grant.clone());
    }

    /// Remembers a grant in the file, if there is one, before this returns. The input must have no secrets any more.
    pub(super) async fn keep(&self, grant: Grant, input: Option<String>) -> Result<(), String> {
        let Some(file) = self.file.clone() else { return Ok(()) };
        let stored = tokio::task::spawn_blocking(move || add(&file, grant, input)).await;
        stored.map_err(|error| error.to_string())?
    }
}

// A panic cannot leave a set half changed: every change is one insert or one remove.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read(file: &Path) -> Result<Kept, String> {
    let named = |what: &dyn std::fmt::Display| format!("`{}` cannot be read: {what}", file.display());
    match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Kept::default()),
        Err(error) => return Err(named(&error)),
        Ok(about) if about.len() > MAX_FILE_BYTES => return Err(named(&"it is too large")),
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(file).map_err(|error| named(&error))?;
    let kept: Kept = serde_json::from_str(&text).map_err(|error| named(&error))?;
    if kept.version > VERSION {
        return Err(named(&format!("it is of version {}, newer than this program", kept.version)));
    }
    // What an older program wrote down as it was said may hold keys that only the application knows: it is not written again,
    // its hash is.
    let grants = kept.grants.into_iter().map(|written| {
        let Grant { tool, hash } = written.grant();
        let input = written.hash.and(written.input);
        Written { tool, hash, input: input.map(|input| redact_text(&input).into_owned()) }
    });
    Ok(Kept { version: kept.version, grants: grants.collect() })
}

/// Adds one grant to what the file holds now: other sessions write to it as well.
fn add(file: &Path, grant: Grant, input: Option<String>) -> Result<(), String> {
    let named = |error: std::io::Error| format!("`{}` cannot be written: {error}", file.display());
    if let Some(folder) = file.parent() {
        private_dir(folder).map_err(named)?;
    }
    let beside = file.with_extension("lock");
    let lock = private_file().write(true).create(true).truncate(false).open(&beside).map_err(named)?;
    lock.lock().map_err(named)?;
    let mut kept = read(file)?;
    if kept.grants.len() >= MAX_GRANTS {
        return Err(format!("`{}` holds {MAX_GRANTS} grants already; remove some", file.display()));
    }
    kept.version = VERSION;
    let Grant { tool, hash } = grant;
    kept.grants.insert(Written { tool, hash, input });
    let text = serde_json::to_string_pretty(&kept).map_err(|error| error.to_string())?;
    write_atomic(file, text.as_bytes()).map_err(named)
}
