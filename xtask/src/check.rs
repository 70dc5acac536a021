//! `cargo xtask check`: the rules a compiler does not know. Each rule is a pure function from what was read to
//! findings; this file reads the workspace, calls the rules and prints. Formatting and lints are other tools' work.

mod architecture;
mod arrows;
mod code;
mod security;
mod sources;

use std::fmt;

use crate::Outcome;
use crate::output::{TaskError, say};
use crate::workspace::{Workspace, read, rust_files};

/// One thing that breaks a rule: where, which rule, what is wrong and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The file, relative to the root, with `:line` when the rule knows it.
    pub(crate) place: String,
    /// The rule's short name.
    pub(crate) rule: &'static str,
    /// What was found.
    pub(crate) problem: String,
    /// What mends it.
    pub(crate) cure: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: [{}] {}\n  cure: {}", self.place, self.rule, self.problem, self.cure)
    }
}

/// Reads the workspace, applies every rule and prints what was found.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome, TaskError> {
    let manifests = manifests(workspace)?;
    let files = source_files(workspace)?;
    let architecture = read(&workspace.root.join("ARCHITECTURE.md"))?;

    let mut findings = arrows::check(&manifests);
    findings.extend(sources::check(&files));
    findings.extend(architecture::check(&architecture, |path| workspace.root.join(path).is_file()));
    let has_test = |name: &str| {
        let function = format!("fn {name}(");
        files.iter().any(|file| file.text.contains(&function))
    };
    findings.extend(security::check(&read(&workspace.root.join("docs/security.md"))?, has_test));
    findings.sort_by(|a, b| a.place.cmp(&b.place));
    for finding in &findings {
        say(&finding.to_string())?;
    }
    let (crates, files) = (manifests.len(), files.len());
    if findings.is_empty() {
        say(&format!("xtask check: {crates} crates and {files} source files, nothing to mend"))?;
        return Ok(Outcome::Clean);
    }
    say(&format!("xtask check: {} to mend in {crates} crates and {files} source files", findings.len()))?;
    Ok(Outcome::Found)
}

fn manifests(workspace: &Workspace) -> Result<Vec<arrows::Manifest>, TaskError> {
    let read_one = |package: &crate::workspace::Package| {
        Ok(arrows::Manifest {
            path: workspace.relative(&package.manifest_path),
            text: read(&package.manifest_path)?,
            package: package.clone(),
        })
    };
    workspace.packages.iter().map(read_one).collect()
}

fn source_files(workspace: &Workspace) -> Result<Vec<sources::SourceFile>, TaskError> {
    let mut files = Vec::new();
    for folder in ["crates", "xtask", "fuzz"] {
        let folder = workspace.root.join(folder);
        if !folder.is_dir() {
            continue;
        }
        for path in rust_files(&folder)? {
            files.push(sources::SourceFile { path: workspace.relative(&path), text: read(&path)? });
        }
    }
    Ok(files)
}
