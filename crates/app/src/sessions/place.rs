//! Which folders' sessions are meant: those of a project, of one folder, or all. One rule for lists, `continue`, searches and
//! cleaning up.

use std::path::{Path, PathBuf};

use crate::library::Access;
use crate::spelling::told;

/// Where sessions were started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Place {
    #[default]
    Anywhere,
    /// In this folder or below it.
    Below(PathBuf),
    /// In this folder and in no other.
    Only(PathBuf),
}

impl Place {
    /// The project that somebody is in: the folder that settings take for it, if it is marked as one. Outside of any, this
    /// folder alone: what lies below it are other projects.
    pub fn here(access: &Access) -> Self {
        match access.settings_files().project() {
            Some(project) => Self::Below(written(project)),
            None => Self::Only(written(&access.base)),
        }
    }

    pub(super) fn below(folder: &Path) -> Self {
        Self::Below(written(folder))
    }

    pub(super) fn has(&self, dir: Option<&Path>) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Below(folder) => dir.is_some_and(|dir| dir.starts_with(folder)),
            Self::Only(folder) => dir == Some(folder),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Anywhere => write!(f, "this home"),
            Self::Below(folder) => write!(f, "`{}` or below it", told(folder)),
            Self::Only(folder) => write!(f, "`{}`", told(folder)),
        }
    }
}

/// A folder as it is written down with a session.
fn written(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}
