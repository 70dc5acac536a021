//! What a person allowed for longer than once: by tool, and for tools that run something by the exact input.
//!
//! Allowances of one chat are kept in memory, those for always in a file of the home, for one folder and for the person alone.
//! The file lies outside of the folder on purpose: who works in the folder must not be able to allow himself anything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use amplifier_protocol::tool::Effects;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::files::{Durability, FileError, create_private_dir, write_atomic};

const VERSION: u32 = 1;
/// The largest file that is read.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// What needs no question: every call of a tool, or one exact call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Allowance {
    /// The tool.
    pub tool: String,
    /// The whole input, as text, for a tool that runs something: the same command elsewhere is another matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
}

impl Allowance {
    /// What a yes to this call covers when it is meant for longer.
    pub fn of(tool: &str, input: &Value, effects: Effects) -> Self {
        Self { tool: tool.to_owned(), input: effects.executes.then(|| input.to_string()) }
    }

    fn covers(&self, tool: &str, input: &Value) -> bool {
        self.tool == tool && self.input.as_ref().is_none_or(|exact| *exact == input.to_string())
    }
}

/// How long something is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Term {
    /// Until the chat ends.
    Session,
    /// In this folder, for good.
    Always,
}

/// Why the file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AllowanceError {
    #[error(transparent)]
    File(#[from] FileError),
    /// It is not what was written.
    #[error("`{}` is not readable; what it allowed is asked about again", path.display())]
    Json {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    /// It is larger than any that was written.
    #[error("`{}` is too large to be ours", path.display())]
    TooLarge { path: PathBuf },
}

#[derive(Default, Serialize, Deserialize)]
struct Kept {
    version: u32,
    allowed: BTreeSet<Allowance>,
}

/// What is allowed.
#[derive(Debug)]
pub struct Allowances {
    file: PathBuf,
    session: BTreeSet<Allowance>,
    always: BTreeSet<Allowance>,
}

impl Allowances {
    /// Those of a folder. A file that cannot be read allows nothing, and is told.
    pub fn open(file: PathBuf) -> (Self, Option<AllowanceError>) {
        let (always, fault) = match read(&file) {
            Ok(kept) => (kept.allowed, None),
            Err(error) => (BTreeSet::new(), Some(error)),
        };
        (Self { file, session: BTreeSet::new(), always }, fault)
    }

    /// For how long this call needs no question.
    pub fn covers(&self, tool: &str, input: &Value) -> Option<Term> {
        let has = |set: &BTreeSet<Allowance>| set.iter().any(|allowance| allowance.covers(tool, input));
        if has(&self.session) {
            return Some(Term::Session);
        }
        has(&self.always).then_some(Term::Always)
    }

    /// Remembers it; one for always is in the file before this returns.
    pub fn add(&mut self, allowance: Allowance, term: Term) -> Result<(), AllowanceError> {
        self.session.insert(allowance.clone());
        if term == Term::Session {
            return Ok(());
        }
        // What another chat added meanwhile stays.
        let mut kept = read(&self.file)?;
        kept.allowed.insert(allowance);
        self.write(kept)
    }

    /// Forgets everything, of this chat and of the folder.
    pub fn forget(&mut self) -> Result<(), AllowanceError> {
        self.session.clear();
        self.write(Kept::default())
    }

    /// Everything that is allowed, and for how long.
    pub fn list(&self) -> Vec<(&Allowance, Term)> {
        let always = self.always.iter().map(|allowance| (allowance, Term::Always));
        let session = self.session.iter().filter(|allowance| !self.always.contains(*allowance));
        always.chain(session.map(|allowance| (allowance, Term::Session))).collect()
    }

    fn write(&mut self, kept: Kept) -> Result<(), AllowanceError> {
        if let Some(folder) = self.file.parent() {
            create_private_dir(folder)?;
        }
        let kept = Kept { version: VERSION, ..kept };
        let text = serde_json::to_vec_pretty(&kept)
            .map_err(|source| AllowanceError::Json { path: self.file.clone(), source })?;
        write_atomic(&self.file, &text, Durability::Synced)?;
        self.always = kept.allowed;
        Ok(())
    }
}

fn read(file: &Path) -> Result<Kept, AllowanceError> {
    match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Kept::default()),
        Ok(about) if about.len() > MAX_BYTES => {
            return Err(AllowanceError::TooLarge { path: file.to_owned() });
        }
        _ => {}
    }
    let bytes = std::fs::read(file).map_err(FileError::at("read", file))?;
    serde_json::from_slice(&bytes).map_err(|source| AllowanceError::Json { path: file.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_command_is_allowed_exactly_and_a_tool_without_one_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("allowed/x.json");
        let (mut allowances, fault) = Allowances::open(file.clone());
        assert!(fault.is_none());
        let (ls, rm) = (json!({"command": "ls"}), json!({"command": "rm x"}));
        let runs = Effects::UNKNOWN;
        allowances.add(Allowance::of("bash", &ls, runs), Term::Always).unwrap();
        allowances
            .add(Allowance::of("write_file", &json!({"a": 1}), Effects::WRITES), Term::Session)
            .unwrap();
        assert_eq!(allowances.covers("bash", &ls), Some(Term::Session));
        assert_eq!(allowances.covers("bash", &rm), None);
        assert_eq!(allowances.covers("write_file", &json!({"a": 2})), Some(Term::Session));
        let (again, _) = Allowances::open(file.clone());
        assert_eq!((again.covers("bash", &ls), again.list().len()), (Some(Term::Always), 1));
        allowances.forget().unwrap();
        assert!(Allowances::open(file.clone()).0.list().is_empty());
        std::fs::write(&file, "{").unwrap();
        let (broken, fault) = Allowances::open(file);
        assert!(fault.is_some() && broken.covers("bash", &ls).is_none());
    }
}
