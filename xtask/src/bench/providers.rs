//! `cargo xtask bench providers`: what a provider adds to its transport, beside the public `openai` client in Python.
//!
//! The work is in `crates/modules/benches/providers.rs` and `xtask/bench/openai_sdk.py`; both ask the one model server that
//! this process keeps (`server.rs`). This file runs them; it measures nothing.

use std::ffi::OsStr;
use std::process::Command;

use super::goals::{Goal, Share, judge};
use super::measurement::Run;
use super::server::Server;
use super::{MODULES, PUBLIC_LIMIT, chain, environment, measure, show};
use crate::output::{TaskError, say};
use crate::process::capture_quietly;
use crate::workspace::Workspace;

/// The public client we measure beside ours, by name and version only.
const PUBLIC_CLIENT: &str = "openai==3.49.0";
const MS: f64 = 1_000_000.0;

const fn row(name: &'static str, at_most: Option<f64>) -> Goal {
    Goal { name, at_most, over: None, times: None, share: Share::Whole }
}

/// In the order of the table. Ten thousand pieces within a second, with less than a core: less than a second of work.
const GOALS: &[Goal] = &[
    row("first_piece_added", Some(MS)),
    row("first_piece", None),
    row("first_piece_bare", None),
    row("stream_10k_wall", Some(1_000.0 * MS)),
    row("stream_10k_cpu", Some(1_000.0 * MS)),
    row("stream_10k_bare_wall", None),
    row("stream_10k_bare_cpu", None),
    row("stream_10k_session_wall", Some(1_000.0 * MS)),
    row("stream_10k_session_cpu", Some(1_000.0 * MS)),
    row("paced_10k_wall", None),
    row("paced_10k_cpu", Some(1_000.0 * MS)),
    row("paced_10k_session_wall", None),
    row("paced_10k_session_cpu", Some(1_000.0 * MS)),
];

/// What stands in the second column, where the name of the measurement is not the same.
const BESIDE: &[(&str, &str)] = &[
    ("first_piece", "first_piece"),
    ("stream_10k_wall", "stream_10k_wall"),
    ("stream_10k_cpu", "stream_10k_cpu"),
    ("stream_10k_session_wall", "stream_10k_wall"),
    ("stream_10k_session_cpu", "stream_10k_cpu"),
    ("paced_10k_wall", "paced_10k_wall"),
    ("paced_10k_cpu", "paced_10k_cpu"),
    ("paced_10k_session_wall", "paced_10k_wall"),
    ("paced_10k_session_cpu", "paced_10k_cpu"),
];

/// Measures both and prints the table. Returns how many goals were not met.
pub(crate) fn providers(workspace: &Workspace) -> Result<usize, TaskError> {
    let server = Server::start()?;
    let url = server.url();
    let ours = measure(workspace, MODULES, "providers", &[OsStr::new("--server"), OsStr::new(&url)])?;
    let (public, reason) = match measure_public(workspace, &url) {
        Ok(run) => (run, None),
        Err(error) => (Run::default(), Some(chain(&error))),
    };
    let rows = judge(GOALS, &ours, &public.beside(BESIDE));
    let unmet = show(&rows, "openai", &[("ours", &ours), ("openai", &public)])?;
    say(
        "openai: the public client in Python on the same server; bare: the same requests without anything of ours",
    )?;
    if let Some(reason) = reason {
        say(&format!("the openai column is empty: {reason}"))?;
    }
    Ok(unmet)
}

fn measure_public(workspace: &Workspace, url: &str) -> Result<Run, TaskError> {
    let python = environment(workspace, "bench-openai", PUBLIC_CLIENT)?;
    let mut command = Command::new(python);
    command.arg(workspace.root.join("xtask/bench/openai_sdk.py")).arg(url);
    let run = Run::read(&capture_quietly(&mut command, PUBLIC_LIMIT)?.stdout);
    if run.is_empty() {
        return Err(TaskError::NoMeasurement { command: "xtask/bench/openai_sdk.py".into() });
    }
    Ok(run)
}
