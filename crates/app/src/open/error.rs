//! Why a session could not be opened, and what the person can do about it.

use std::fmt;
use std::path::{Path, PathBuf};

use amplifier_core::loader::LoadError;
use amplifier_core::session::{OpenError, OpenFault};
use amplifier_protocol::module_info::ModuleKind;
use amplifier_sources::lock::LockError;

use crate::files::OTHER_HOME;
use crate::journal::{JournalFileError, LeaseError};
use crate::paths::Home;
use crate::prompt::PromptError;
use crate::sessions::rescue;
use crate::store::StoreError;
use crate::{catalog, failure, spelling};

/// What helps where a session of this home cannot be changed.
pub(crate) const NOT_WRITABLE: &str =
    "make its folder writable for you, or copy the home and name the copy with `--home DIR`";

/// What helps where the plan of a session is of no use.
const OTHER_PLAN: &str = "`--plan FILE` or `--bundle REF` opens the session with another plan";

/// Why a session could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppError {
    /// No home folder was named.
    #[error("there is no home folder: neither `--home` nor `AMPLIFIER_HOME` nor `HOME` is set")]
    NoHome,
    /// The folder to work in, or the home, cannot be told to modules.
    #[error(
        "{what} `{}` has a name that is not UTF-8, and modules are told it as text",
        spelling::told(path)
    )]
    NotText {
        /// Which of them.
        what: NotText,
        /// Where it is.
        path: PathBuf,
    },
    /// The session's folder failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The session's journal failed.
    #[error(transparent)]
    Journal(#[from] JournalFileError),
    /// The parts of the system prompt could not be kept or read.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// What is kept about the session's sources cannot be used.
    #[error("`{}` cannot be used", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: LockError,
    },
    /// The work on the disk was cut off.
    #[error("opening the session was cut off: {message}")]
    CutOff {
        /// Why.
        message: String,
    },
    /// The kernel refused.
    #[error(transparent)]
    Open(#[from] Box<OpenError>),
}

/// Which folder has a name that is no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotText {
    WorkingFolder,
    Home,
}

impl fmt::Display for NotText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WorkingFolder => "the working folder",
            Self::Home => "the home",
        })
    }
}

/// Refuses folders that modules could not find: what they are told of them is text, wherever they run.
pub(crate) fn check_names(working_dir: &Path, home: &Home) -> Result<(), AppError> {
    let told = [(NotText::WorkingFolder, working_dir), (NotText::Home, home.root())];
    match told.into_iter().find(|(_, path)| path.to_str().is_none()) {
        Some((what, path)) => Err(AppError::NotText { what, path: path.to_owned() }),
        None => Ok(()),
    }
}

impl AppError {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<String> {
        self.cure().or_else(|| self.offer()).or_else(|| self.advice().map(str::to_owned))
    }

    /// What helps this very session.
    fn cure(&self) -> Option<String> {
        match self {
            Self::Store(error) => rescue::cure_of_store(error),
            Self::Journal(error) => rescue::cure(error),
            Self::Prompt(PromptError::File(error)) => error.cure().map(str::to_owned),
            _ => None,
        }
    }

    /// What helps any session.
    fn advice(&self) -> Option<&'static str> {
        match self {
            Self::NotText { what: NotText::WorkingFolder, .. } => {
                Some("rename the folder, or work in another one: `--cwd DIR`")
            }
            Self::NotText { what: NotText::Home, .. } => {
                Some("rename it, or take another one: `--home DIR` or `AMPLIFIER_HOME`")
            }
            Self::NoHome => Some("name one with `--home DIR`"),
            Self::Store(StoreError::NotFound { .. }) => {
                Some("`--home` must be the one the session was made in")
            }
            Self::Store(StoreError::File(error)) if error.is_missing() && is_plan(&error.path) => {
                Some(OTHER_PLAN)
            }
            Self::Store(StoreError::File(_)) | Self::Journal(JournalFileError::File(_)) => Some(OTHER_HOME),
            Self::Store(StoreError::Json { .. } | StoreError::Plan { .. }) => Some(OTHER_PLAN),
            Self::Prompt(PromptError::Broken { .. } | PromptError::Missing { .. }) => Some(
                "put a copy of it back, or `--bundle REF` opens the session with another plan and prompt",
            ),
            Self::Prompt(PromptError::File(_)) => Some(NOT_WRITABLE),
            Self::Journal(JournalFileError::Lease(LeaseError::Held { .. })) => {
                Some("wait until it is done, or end that process")
            }
            Self::Journal(JournalFileError::Newer { .. }) => Some("a newer version of this program reads it"),
            Self::Journal(JournalFileError::Lease(LeaseError::File(_))) => Some(NOT_WRITABLE),
            Self::Journal(JournalFileError::Lease(LeaseError::Lost { .. })) => {
                Some("somebody removed or replaced the file; try again")
            }
            Self::Journal(_) => Some(
                "something else changed the file, and it is left as it is: put a copy back, or begin anew",
            ),
            Self::Open(open) if matches!(open.fault, OpenFault::Strict { .. }) => {
                Some("without `--strict` the session runs with what is there")
            }
            _ => None,
        }
    }

    /// What there is instead of the orchestrator or the context that nobody knows, or what its config may be.
    fn offer(&self) -> Option<String> {
        let Self::Open(open) = self else { return None };
        let kind = match &open.fault {
            OpenFault::Orchestrator(LoadError::Config { id, .. })
            | OpenFault::Context(LoadError::Config { id, .. }) => return Some(failure::config_of(id)),
            OpenFault::Orchestrator(LoadError::NotFound { .. } | LoadError::Kind { .. }) => {
                ModuleKind::Orchestrator
            }
            OpenFault::Context(LoadError::NotFound { .. } | LoadError::Kind { .. }) => ModuleKind::Context,
            _ => return None,
        };
        let known: Vec<_> = catalog::of_kind(kind).iter().map(|info| format!("`{}`", info.id)).collect();
        Some(format!("there are {}; `amplifier module list` tells about them", known.join(", ")))
    }

    /// Whether the plan is wrong, or what was asked for: trying again would not help.
    pub fn is_usage(&self) -> bool {
        let is_written = |error: &LoadError| {
            matches!(
                error,
                LoadError::NotFound { .. }
                    | LoadError::Kind { .. }
                    | LoadError::Config { .. }
                    | LoadError::Expand { .. }
            )
        };
        let Self::Open(open) = self else { return matches!(self, Self::NotText { .. }) };
        match &open.fault {
            OpenFault::Orchestrator(error) | OpenFault::Context(error) => is_written(error),
            OpenFault::Declined { .. }
            | OpenFault::Instances { .. }
            | OpenFault::Section { .. }
            | OpenFault::Strict { .. } => true,
            _ => false,
        }
    }
}

fn is_plan(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "mount_plan.json")
}
