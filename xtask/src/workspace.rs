//! The workspace as `cargo metadata` sees it: where it is, its packages and their direct dependencies.
//! It resolves nothing, so it works without a network and costs milliseconds.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::output::TaskError;
use crate::process::{capture_quietly, cargo};

/// What the tasks know about the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    #[serde(rename = "target_directory")]
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// One member of the workspace.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
}

/// One line of a `[dependencies]` table.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Option<Kind>,
    #[serde(default)]
    pub(crate) features: Vec<String>,
}

/// Which table a dependency stands in, when it is not the plain one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Dev,
    Build,
}

impl Workspace {
    /// Asks cargo about the workspace this program was built from.
    pub(crate) fn read() -> Result<Self, TaskError> {
        let mut command = cargo();
        command.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
        // Not the caller's folder: `fuzz/` is a workspace of its own and would answer for itself.
        command.current_dir(env!("CARGO_MANIFEST_DIR"));
        let captured = capture_quietly(&mut command, Duration::from_secs(120))?;
        serde_json::from_str(&captured.stdout).map_err(TaskError::Metadata)
    }

    /// A path as people write it: relative to the root, with forward slashes. One outside the root stays as it is.
    pub(crate) fn relative(&self, path: &Path) -> String {
        let Ok(path) = path.strip_prefix(&self.root) else { return path.display().to_string() };
        let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        parts.join("/")
    }
}

/// Reads a text file, naming it in the error.
pub(crate) fn read(path: &Path) -> Result<String, TaskError> {
    fs::read_to_string(path).map_err(|source| TaskError::Read { path: path.to_owned(), source })
}

/// Every file below `folder` whose name ends in `.rs`, sorted; hidden and `target` folders are left out.
pub(crate) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, TaskError> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let failed = |source| TaskError::Read { path: folder.clone(), source };
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() && !name.starts_with('.') && name != "target" {
                open.push(entry.path());
            } else if kind.is_file() && name.ends_with(".rs") {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}
