//! `cargo xtask once`: runs one program and prints what it took, as JSON. For the benches, each run in a process of its own:
//! what the system counts for ended children is then about this one alone.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde::{Deserialize, Serialize};

use crate::output::{TaskError, say};

/// What one run took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Took {
    pub(crate) wall_ns: f64,
    /// Work of the program and of all it started and waited for.
    pub(crate) cpu_ns: f64,
    /// The most memory the largest of them held.
    pub(crate) peak_bytes: f64,
    /// How it ended; nothing when a signal ended it.
    pub(crate) code: Option<i32>,
}

/// Runs a program with its output in `FILE.out` and `FILE.err`, and prints what it took.
pub(crate) fn run(output: &Path, seconds: u64, program: &[OsString]) -> Result<(), TaskError> {
    let Some((name, arguments)) = program.split_first() else {
        return Err(TaskError::NoMeasurement { command: "cargo xtask once".to_owned() });
    };
    let shown = name.to_string_lossy().into_owned();
    let failed = |source| TaskError::Start { program: shown.clone(), source };
    let file = |end: &str| {
        let path = output.with_extension(end);
        File::create(&path).map_err(|source| TaskError::Write { path, source })
    };
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::null()).stdout(file("out")?).stderr(file("err")?);
    let began = Instant::now();
    let mut child = command.spawn().map_err(failed)?;
    let id = child.id().to_string();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let ended = child.wait();
        // Nobody waits any more when the deadline has passed.
        sender.send((ended, began.elapsed())).unwrap_or(());
    });
    let Ok((ended, wall)) = receiver.recv_timeout(Duration::from_secs(seconds)) else {
        Command::new("kill").args(["-KILL", &id]).status().map_err(failed)?;
        return Err(TaskError::Deadline { command: shown, seconds });
    };
    let code = ended.map_err(failed)?.code();
    let spent = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| failed(error.into()))?;
    let cpu = spent.user_time().num_microseconds() + spent.system_time().num_microseconds();
    // Linux counts in KiB, macOS in bytes.
    let unit = if cfg!(target_os = "macos") { 1.0 } else { 1024.0 };
    let took = Took {
        wall_ns: wall.as_nanos() as f64,
        cpu_ns: cpu as f64 * 1e3,
        peak_bytes: spent.max_rss() as f64 * unit,
        code,
    };
    say(&serde_json::to_string(&took)
        .map_err(|source| TaskError::Printed { command: "cargo xtask once".to_owned(), source })?)
}
