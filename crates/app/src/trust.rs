//! Which directories and sources the user trusts, and with what: the one place that decides it.
//!
//! A project's files, a fetched bundle and a file named on the command line may ask for powers (`trust/powers.rs`): programs,
//! addresses, keys, variables, paths. What the user agreed to is kept in `state/trust.json` by directory or source, power by
//! power, so that a change asks again and can be shown as one. A directory that is not trusted may add text for the model and
//! ask for more care; nothing else in it is used (`trust/project.rs`). Nothing here asks: front ends do, where a user is there.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::paths::Home;
use crate::settings::{SettingsError, SettingsFiles, change_file, read_file};

mod permissions;
mod powers;
mod project;
mod source;

pub use powers::{Author, Power};
pub(crate) use project::{repository_of, top_of};
pub use source::Request;

/// The form of the file that is written here.
const VERSION: u32 = 1;
/// The largest file that is read.
const MAX_BYTES: u64 = 16 << 20;

/// What is trusted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum Subject {
    /// The root of a project, by its real path. Directories below it are not meant.
    Directory(PathBuf),
    /// A bundle, by its address or real path.
    Bundle(String),
    /// A profile of a collection.
    Profile(String),
    /// A plan file, by its real path.
    Plan(String),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => write!(f, "directory `{}`", path.display()),
            Self::Bundle(name) => write!(f, "bundle `{name}`"),
            Self::Profile(name) => write!(f, "profile `{name}`"),
            Self::Plan(name) => write!(f, "plan `{name}`"),
        }
    }
}

/// What the user said about a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Trusted,
    /// Not asked again about the same powers.
    Refused,
}

/// One answer of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    #[serde(flatten)]
    pub subject: Subject,
    pub answer: Answer,
    /// What was shown.
    #[serde(default)]
    pub powers: Vec<Power>,
}

#[derive(Default, Serialize, Deserialize)]
struct Kept {
    version: u32,
    #[serde(default)]
    answers: Vec<Consent>,
}

/// What a source wants and the user has not agreed to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{subject} needs your consent:{}", lines(missing))]
pub struct Untrusted {
    pub subject: Subject,
    /// What is new.
    pub missing: Vec<Power>,
    /// What it wants in all.
    pub wants: Vec<Power>,
    /// Whether the user trusted it before it changed.
    pub was_trusted: Before,
}

/// Whether a subject was trusted with other powers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    Unknown,
    Trusted,
    Refused,
}

fn lines(powers: &[Power]) -> String {
    powers.iter().map(|power| format!("\n  {power}")).collect()
}

impl Untrusted {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        let name = |flag: &str, name: &str| format!("{flag} {}", crate::spelling::quoted(Path::new(name)));
        let subject = match &self.subject {
            Subject::Directory(path) => crate::spelling::quoted(path).to_string(),
            Subject::Bundle(reference) => name("--bundle", reference),
            Subject::Profile(id) => name("--profile", id),
            Subject::Plan(path) => name("--plan", path),
        };
        format!("run `amplifier trust {subject}` to allow it, or add `--trust` to allow it this time")
    }
}

/// How much of what asks for powers is trusted in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// What the user agreed to.
    #[default]
    Recorded,
    /// Everything, for this process: `--trust`.
    Everything,
}

/// The project that a command works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Its real path.
    pub root: PathBuf,
    /// What its own files ask for, before the bundle that they choose is looked at.
    pub wants: Vec<Power>,
    pub state: State,
}

/// Whether a project is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Trusted,
    /// Not asked yet, or it changed since.
    Unknown(Before),
}

/// Trust as one command sees it.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    file: Option<PathBuf>,
    mode: Mode,
    /// `None` in the user's own home directory, and where no settings were read.
    project: Option<Project>,
}

impl Trust {
    /// Finds out whether the project is trusted.
    pub fn of_project(home: &Home, files: &SettingsFiles, mode: Mode) -> Result<Self, SettingsError> {
        let file = home.trust();
        let project = match files.root() {
            None => None,
            Some(root) => {
                let root = project::real(root);
                let wants = project::wants(&root, files)?;
                let subject = Subject::Directory(root.clone());
                // Most directories ask for nothing, and were never asked about.
                let known = read(&file)?.answers.into_iter().find(|known| known.subject == subject);
                let state = match known {
                    _ if mode == Mode::Everything => State::Trusted,
                    None => State::Unknown(Before::Unknown),
                    Some(known) if !wants.iter().all(|want| want.is_in(&known.powers)) => {
                        match known.answer {
                            Answer::Trusted => State::Unknown(Before::Trusted),
                            Answer::Refused => State::Unknown(Before::Unknown),
                        }
                    }
                    Some(known) => match known.answer {
                        Answer::Trusted => State::Trusted,
                        Answer::Refused => State::Unknown(Before::Refused),
                    },
                };
                Some(Project { root, wants, state })
            }
        };
        Ok(Self { file: Some(file), mode, project })
    }

    /// The project that the command works in.
    pub fn project(&self) -> Option<&Project> {
        self.project.as_ref()
    }

    /// Whether the files of the project are used.
    pub fn trusts_project(&self) -> bool {
        self.project.as_ref().is_none_or(|project| project.state == State::Trusted)
    }

    /// The directory whose files may start programs and name addresses, and the one whose files may not.
    pub fn roots(&self) -> [Option<&Path>; 2] {
        let root = self.project.as_ref().map(|project| project.root.as_path());
        if self.trusts_project() { [root, None] } else { [None, root] }
    }

    /// The untrusted directory whose files ask for powers. Many directories ask for none, and were never asked about.
    pub fn asking(&self) -> Option<&Path> {
        let project = self.project.as_ref().filter(|project| !project.wants.is_empty());
        project.filter(|_| !self.trusts_project()).map(|project| project.root.as_path())
    }

    /// Whether a link may lead out of the project: the user saw where it leads.
    pub(crate) fn allows_link(&self, link: &Path) -> bool {
        let trusted = self.project.as_ref().filter(|project| project.state == State::Trusted);
        let allows = |project: &Project| {
            let to = link.canonicalize().ok()?;
            Some(project.wants.contains(&project::link(&project.root, link, &to)))
        };
        trusted.and_then(allows).unwrap_or(false)
    }

    /// Passes what the user agreed to; anything else is told as what is missing.
    pub fn check(&self, subject: &Subject, wants: Vec<Power>) -> Result<(), CheckError> {
        let Some(file) = self.file.as_ref().filter(|_| self.mode == Mode::Recorded && !wants.is_empty())
        else {
            return Ok(());
        };
        let known = read(file)?.answers.into_iter().find(|known| known.subject == *subject);
        let (before, granted) = match known {
            None => (Before::Unknown, Vec::new()),
            Some(Consent { answer: Answer::Trusted, powers, .. }) => (Before::Trusted, powers),
            Some(Consent { answer: Answer::Refused, powers, .. }) => {
                let same = wants.iter().all(|want| powers.contains(want));
                (if same { Before::Refused } else { Before::Unknown }, Vec::new())
            }
        };
        let missing: Vec<_> = wants.iter().filter(|want| !want.is_in(&granted)).cloned().collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Untrusted { subject: subject.clone(), missing, wants, was_trusted: before }.into()),
        }
    }

    /// Remembers what the user said. What was granted before and is wanted no more is forgotten.
    pub fn record(home: &Home, consent: Consent) -> Result<(), SettingsError> {
        change(&home.trust(), |answers| {
            answers.retain(|known| known.subject != consent.subject);
            answers.push(consent);
        })
    }

    /// What the files of a project ask for.
    pub(crate) fn wanted(files: &SettingsFiles) -> Result<Vec<Power>, SettingsError> {
        files.root().map_or_else(|| Ok(Vec::new()), |root| project::wants(&project::real(root), files))
    }

    /// Trusts what the user changed in the settings of the project by a command. A project that asked for something the user
    /// never agreed to stays untrusted.
    pub(crate) fn record_changes(files: &SettingsFiles, before: &[Power]) -> Result<(), SettingsError> {
        let Some(root) = files.root().map(project::real) else { return Ok(()) };
        let wants = project::wants(&root, files)?;
        if wants.iter().all(|want| before.contains(want)) {
            return Ok(());
        }
        let subject = Subject::Directory(root);
        change(files.trust(), |answers| {
            let known = answers.iter().position(|known| known.subject == subject);
            let known = known.and_then(|at| answers.get_mut(at));
            let granted = match &known {
                Some(known) if known.answer == Answer::Trusted => known.powers.as_slice(),
                _ => &[],
            };
            if !before.iter().all(|power| power.is_in(granted)) {
                return;
            }
            let added = wants.into_iter().filter(|power| !before.contains(power));
            match known {
                Some(known) => {
                    known.answer = Answer::Trusted;
                    known.powers.extend(added);
                }
                None => answers.push(Consent { subject, answer: Answer::Trusted, powers: added.collect() }),
            }
        })
    }

    /// Everything that the user said, by subject.
    pub fn list(home: &Home) -> Result<Vec<Consent>, SettingsError> {
        let by_subject: BTreeMap<_, _> = read(&home.trust())?
            .answers
            .into_iter()
            .map(|consent| (consent.subject.clone(), consent))
            .collect();
        Ok(by_subject.into_values().collect())
    }

    /// Forgets what the user said about a subject; says whether anything was.
    pub fn remove(home: &Home, subject: &Subject) -> Result<Removed, SettingsError> {
        change(&home.trust(), |answers| {
            let before = answers.len();
            answers.retain(|known| known.subject != *subject);
            if answers.len() < before { Removed::Known } else { Removed::Nothing }
        })
    }
}

/// What removing came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    Known,
    Nothing,
}

/// Why powers are not granted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    #[error(transparent)]
    Untrusted(Box<Untrusted>),
    #[error(transparent)]
    File(#[from] SettingsError),
}

impl From<Untrusted> for CheckError {
    fn from(untrusted: Untrusted) -> Self {
        Self::Untrusted(Box::new(untrusted))
    }
}

impl CheckError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Untrusted(untrusted) => Some(untrusted.hint()),
            Self::File(error) => error.hint(),
        }
    }
}

fn read(path: &Path) -> Result<Kept, SettingsError> {
    match read_file(path, MAX_BYTES)? {
        Some(text) => parse(path, &text),
        None => Ok(Kept::default()),
    }
}

fn parse(path: &Path, text: &str) -> Result<Kept, SettingsError> {
    let unreadable = |message: String| SettingsError::Trust { path: path.to_owned(), message };
    let kept: Kept = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
    match kept.version {
        version if version > VERSION => {
            Err(unreadable(format!("version {version} is newer than this program")))
        }
        _ => Ok(kept),
    }
}

/// Changes the file, one process at a time.
fn change<T>(path: &Path, change: impl FnOnce(&mut Vec<Consent>) -> T) -> Result<T, SettingsError> {
    let mut failed = None;
    let changed = change_file(path, MAX_BYTES, |text| {
        let kept = text.map_or_else(|| Ok(Kept::default()), |text| parse(path, &text));
        let mut kept = match kept {
            Ok(kept) => kept,
            Err(error) => {
                failed = Some(error);
                return Ok((None, None));
            }
        };
        let answer = change(&mut kept.answers);
        kept.version = VERSION;
        match serde_json::to_string_pretty(&kept) {
            Ok(text) => Ok((Some(text + "\n"), Some(answer))),
            Err(error) => {
                failed = Some(SettingsError::Trust { path: path.to_owned(), message: error.to_string() });
                Ok((None, None))
            }
        }
    })?;
    match (changed, failed) {
        (Some(answer), _) => Ok(answer),
        (None, Some(error)) => Err(error),
        (None, None) => {
            Err(SettingsError::Trust { path: path.to_owned(), message: "nothing changed".to_owned() })
        }
    }
}
