//! The arrows between our crates, their names and their lints, read from the manifests.
//!
//! The table below is the whole picture, crates to come included. A new crate or a new arrow begins with a change here.

use super::Finding;
use crate::workspace::{Dependency, Kind, Package};

/// A manifest as read: its path from the root, its text, and what cargo understood.
#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) package: Package,
}

/// Which crates of ours a crate may build on.
struct Row {
    folder: &'static str,
    may_use: &'static [&'static str],
}

/// Arrows point down only; siblings never meet.
const TABLE: &[Row] = &[
    Row { folder: "protocol", may_use: &[] },
    Row { folder: "core", may_use: &["protocol"] },
    Row { folder: "git", may_use: &[] },
    Row { folder: "testing", may_use: &["core", "protocol"] },
    Row { folder: "modules", may_use: &["git", "core", "protocol"] },
    Row { folder: "bundle", may_use: &["protocol"] },
    Row { folder: "sources", may_use: &["git", "core", "protocol"] },
    Row { folder: "profile", may_use: &["bundle", "sources", "core", "protocol"] },
    Row { folder: "host", may_use: &["core", "protocol"] },
    Row { folder: "guest", may_use: &["core", "protocol"] },
    Row {
        folder: "app",
        may_use: &["profile", "bundle", "sources", "modules", "host", "git", "core", "protocol"],
    },
    Row { folder: "cli", may_use: &["app", "protocol"] },
    Row { folder: "daemon", may_use: &["app", "protocol"] },
];

/// Crates whose work is I/O; the two lowest crates do none.
const IO_CRATES: &[&str] = &[
    "async-std",
    "axum",
    "crossterm",
    "curl",
    "directories",
    "dirs",
    "dotenvy",
    "fs-err",
    "fs4",
    "git2",
    "gix",
    "hyper",
    "ignore",
    "memmap2",
    "mio",
    "nix",
    "notify",
    "process-wrap",
    "reqwest",
    "rusqlite",
    "rustix",
    "serde-saphyr",
    "serde_yaml",
    "smol",
    "socket2",
    "tempfile",
    "tonic",
    "tracing-subscriber",
    "tungstenite",
    "ureq",
    "walkdir",
];

/// The parts of tokio that touch the outside.
const IO_FEATURES: &[&str] = &["fs", "full", "io-std", "net", "process", "signal"];

/// The crates that do no I/O.
const PURE: &[&str] = &["core", "protocol"];

/// Applies every rule about manifests.
pub(crate) fn check(manifests: &[Manifest]) -> Vec<Finding> {
    manifests.iter().flat_map(check_one).collect()
}

fn check_one(manifest: &Manifest) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !inherits_lints(&manifest.text) {
        findings.push(Finding {
            place: manifest.path.clone(),
            rule: "lints",
            problem: format!("`{}` does not take the workspace's lints", manifest.package.name),
            cure: "add a `[lints]` section with `workspace = true`".into(),
        });
    }
    // The tools of this folder sit above everything and are part of no product.
    let Some(folder) = crate_folder(&manifest.path) else { return findings };
    findings.extend(check_name(manifest, folder));
    let Some(row) = TABLE.iter().find(|row| row.folder == folder) else {
        findings.push(Finding {
            place: manifest.path.clone(),
            rule: "arrows",
            problem: format!("`crates/{folder}` has no row in the table of arrows"),
            cure: "add a row to `xtask/src/check/arrows.rs` and to `ARCHITECTURE.md`, with the reason in a decision".into(),
        });
        return findings;
    };
    findings.extend(manifest.package.dependencies.iter().filter_map(|used| check_arrow(manifest, row, used)));
    if PURE.contains(&folder) {
        findings.extend(manifest.package.dependencies.iter().filter_map(|used| check_purity(manifest, used)));
    }
    findings
}

/// `core` of `crates/core/Cargo.toml`; nothing for members that are not in `crates/`.
fn crate_folder(manifest_path: &str) -> Option<&str> {
    manifest_path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")
}

/// The package name a folder must carry.
fn package_name(folder: &str) -> String {
    if folder == "daemon" { "amplifierd".into() } else { format!("amplifier-{folder}") }
}

fn check_name(manifest: &Manifest, folder: &str) -> Option<Finding> {
    let expected = package_name(folder);
    (manifest.package.name != expected).then(|| Finding {
        place: manifest.path.clone(),
        rule: "names",
        problem: format!("the package in `crates/{folder}` is called `{}`", manifest.package.name),
        cure: format!("call it `{expected}`, or move the folder"),
    })
}

fn check_arrow(manifest: &Manifest, row: &Row, used: &Dependency) -> Option<Finding> {
    let ours = TABLE.iter().find(|other| package_name(other.folder) == used.name);
    let target = match ours {
        Some(other) => other.folder,
        // A crate of ours that has no row, or the tools: no arrow of the table can lead there.
        None if used.name.starts_with("amplifier-") || used.name == "xtask" => used.name.as_str(),
        None => return None,
    };
    if row.may_use.contains(&target) || (used.kind == Some(Kind::Dev) && target == "testing") {
        return None;
    }
    let cure = match (target, row.may_use) {
        ("testing", _) => "move it to `[dev-dependencies]`; test doubles are not part of the product".into(),
        (_, []) => format!("`{}` stands at the bottom and builds on none of our crates", row.folder),
        (_, allowed) => format!("`{}` may use only: {}", row.folder, allowed.join(", ")),
    };
    Some(Finding {
        place: manifest.path.clone(),
        rule: "arrows",
        problem: format!("`{}` must not depend on `{}`", manifest.package.name, used.name),
        cure,
    })
}

fn check_purity(manifest: &Manifest, used: &Dependency) -> Option<Finding> {
    if used.kind == Some(Kind::Dev) {
        return None;
    }
    let feature = (used.name == "tokio")
        .then(|| used.features.iter().find(|feature| IO_FEATURES.contains(&feature.as_str())))
        .flatten();
    let problem = match feature {
        Some(feature) => format!("`{}` uses tokio with feature `{feature}`", manifest.package.name),
        None if IO_CRATES.contains(&used.name.as_str()) => {
            format!("`{}` depends on `{}`, which does I/O", manifest.package.name, used.name)
        }
        None => return None,
    };
    let cure = "do the I/O in `app` or a module and hand it in through a trait".into();
    Some(Finding { place: manifest.path.clone(), rule: "no-io", problem, cure })
}

/// Whether the manifest says `[lints] workspace = true`, in either spelling.
fn inherits_lints(manifest: &str) -> bool {
    let mut section = String::new();
    for line in manifest.lines() {
        let line: String = line.split('#').next().unwrap_or("").split_whitespace().collect();
        if line.starts_with('[') {
            section = line;
        } else if (section == "[lints]" && line == "workspace=true")
            || (section.is_empty() && line == "lints.workspace=true")
        {
            return true;
        }
    }
    false
}

#[cfg(test)]
#[path = "arrows_tests.rs"]
mod tests;
