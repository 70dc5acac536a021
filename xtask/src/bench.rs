//! `cargo xtask bench kernel`: our kernel and the public Python package on the same work, in one table with the goals.
//! `cargo xtask bench modules` is in `bench/modules.rs`, and so on, a file each.
//!
//! The work itself is in `crates/modules/benches/kernel.rs` and `xtask/bench/public_kernel.py`; both print one JSON object
//! per measurement. This file runs them; it measures nothing.

mod bundles;
mod cli;
mod goals;
mod measurement;
mod modules;
mod providers;
mod server;
mod table;

pub(crate) use bundles::bundles;
pub(crate) use cli::cli;
pub(crate) use modules::modules;
pub(crate) use providers::providers;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::output::{TaskError, say};
use crate::process::{capture, capture_quietly, cargo};
use crate::workspace::Workspace;
use measurement::Run;

/// The public package we measure beside ours, by name and version only.
const PUBLIC_PACKAGE: &str = "amplifier-core==2.0.2";

/// The package whose benches measure the kernel and the modules.
const MODULES: &str = "amplifier-modules";

/// A release build of the bench and its dependencies, from nothing, fits into this.
const OUR_LIMIT: Duration = Duration::from_secs(1800);
const INSTALL_LIMIT: Duration = Duration::from_secs(300);
const PUBLIC_LIMIT: Duration = Duration::from_secs(300);

/// Measures both and prints the table. Returns how many goals were not met.
pub(crate) fn kernel(workspace: &Workspace) -> Result<usize, TaskError> {
    let ours = measure(workspace, MODULES, "kernel", &[])?;
    let public = measure_public(workspace);
    let (public, reason) = match public {
        Ok(run) => (run, None),
        Err(error) => (Run::default(), Some(chain(&error))),
    };
    let rows = goals::judge(goals::KERNEL, &ours, &public);
    let unmet = show(&rows, "public", &[("ours", &ours), ("public", &public)])?;
    if let Some(reason) = reason {
        say(&format!("the public column is empty: {reason}"))?;
    }
    Ok(unmet)
}

/// Runs one of our benches and reads what it prints.
fn measure(workspace: &Workspace, package: &str, bench: &str, options: &[&OsStr]) -> Result<Run, TaskError> {
    let mut command = cargo();
    command.args(["bench", "--quiet", "-p", package, "--bench", bench, "--", "--json"]);
    command.args(options).current_dir(&workspace.root);
    let run = Run::read(&capture(&mut command, OUR_LIMIT)?.stdout);
    if run.is_empty() {
        return Err(TaskError::NoMeasurement {
            command: format!("cargo bench -p {package} --bench {bench}"),
        });
    }
    Ok(run)
}

/// Prints the table, what the benches had to say, and how many goals were met. Returns how many were not.
fn show(rows: &[goals::Row], beside: &str, runs: &[(&str, &Run)]) -> Result<usize, TaskError> {
    say(&table::render(rows, beside))?;
    for (who, run) in runs {
        for note in run.notes() {
            say(&format!("note ({who}): {note}"))?;
        }
    }
    say(&table::summary(rows))?;
    Ok(rows.iter().filter(|row| row.verdict == goals::Verdict::NotMet).count())
}

/// Runs the Python bench in an environment of its own.
fn measure_public(workspace: &Workspace) -> Result<Run, TaskError> {
    let python = environment(workspace, "bench-venv", PUBLIC_PACKAGE)?;
    let mut command = Command::new(&python);
    command.arg(workspace.root.join("xtask/bench/public_kernel.py"));
    let run = Run::read(&capture_quietly(&mut command, PUBLIC_LIMIT)?.stdout);
    if run.is_empty() {
        return Err(TaskError::NoMeasurement { command: "xtask/bench/public_kernel.py".into() });
    }
    Ok(run)
}

/// A Python interpreter below the target folder that has a package; made if need be.
fn environment(workspace: &Workspace, name: &str, package: &str) -> Result<PathBuf, TaskError> {
    let environment = workspace.target.join(name);
    let python = interpreter(&environment);
    if !python.is_file() {
        let mut command = Command::new("python3");
        command.args(["-m", "venv"]).arg(&environment);
        capture_quietly(&mut command, INSTALL_LIMIT)?;
    }
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"]);
    install.arg(package);
    capture_quietly(&mut install, INSTALL_LIMIT)?;
    Ok(python)
}

fn interpreter(environment: &Path) -> PathBuf {
    let inside = if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" };
    environment.join(inside)
}

fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
