//! A server as a process of ours: started in a group of its own, its error output kept in part, its whole group ended.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use amplifier_core::cancel::{CancelLevel, CancelToken};
use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, watch};

use crate::watchdog::{self, Watched};

/// How much of the error output is kept for messages.
const TAIL: usize = 4 * 1024;
/// How much of the error output of one run goes to its log file.
const MOST_LOGGED: usize = 8 * 1024 * 1024;
/// How long a server may take to end after its input was closed, and again after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// What is started.
pub(super) struct Launch<'a> {
    pub(super) command: &'a str,
    pub(super) args: &'a [String],
    pub(super) variables: BTreeMap<OsString, OsString>,
    pub(super) folder: Option<&'a Path>,
    pub(super) errors: Errors,
}

/// Where the error output goes beside the tail that is kept.
#[derive(Clone, Default)]
pub(super) struct Errors {
    pub(super) file: Option<PathBuf>,
    pub(super) lines: Option<mpsc::Sender<String>>,
}

/// A running or ended server process. When the last owner goes, the group goes.
pub(super) struct Process {
    group: Pid,
    tail: Arc<Mutex<VecDeque<u8>>>,
    ended: watch::Receiver<Option<String>>,
    stop: CancelToken,
}

/// Starts the process and hands out the pipes that carry the protocol.
pub(super) fn start(launch: Launch<'_>) -> std::io::Result<(Process, ChildStdout, ChildStdin)> {
    let (mark, mut watched) = watchdog::child();
    let mut command = CommandWrap::with_new(launch.command, |command| {
        command.args(launch.args).env_clear().envs(launch.variables).envs([mark]);
        if let Some(folder) = launch.folder {
            command.current_dir(folder);
        }
        command.kill_on_drop(true).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    });
    command.wrap(ProcessSession);
    // The group is ours to kill, also after its leader has gone; of the wrapper only the session is wanted.
    let mut child = command.spawn()?.into_inner();
    let missing = |what: &str| std::io::Error::other(format!("the process has no {what}"));
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).ok_or_else(|| missing("id"))?;
    watched.group(group);
    let stdout = child.stdout().take().ok_or_else(|| missing("output"))?;
    let stdin = child.stdin().take().ok_or_else(|| missing("input"))?;
    let tail = Arc::new(Mutex::new(VecDeque::new()));
    if let Some(stderr) = child.stderr().take() {
        tokio::spawn(drain(stderr, Arc::clone(&tail), launch.errors));
    }
    let (told, ended) = watch::channel(None);
    let stop = CancelToken::new();
    tokio::spawn(wait(child, (group, watched), told, stop.clone()));
    Ok((Process { group, tail, ended, stop }, stdout, stdin))
}

async fn wait(
    mut child: Box<dyn ChildWrapper>,
    (group, watched): (Pid, Watched),
    told: watch::Sender<Option<String>>,
    stop: CancelToken,
) {
    // When this task goes away with its runtime, the group goes too.
    let orphans = KillOnDrop(group);
    let status = tokio::select! {
        status = child.wait() => status,
        () = stop.cancelled(CancelLevel::Immediate) => {
            kill(group, Signal::KILL);
            child.wait().await
        }
    };
    // What the server itself started does not outlive it.
    drop((orphans, watched));
    told.send_replace(Some(match status {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    }));
}

struct KillOnDrop(Pid);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        kill(self.0, Signal::KILL);
    }
}

/// A group that is gone already is the usual case and no matter.
fn kill(group: Pid, signal: Signal) {
    kill_process_group(group, signal).ok();
}

impl Process {
    pub(super) fn id(&self) -> i32 {
        self.group.as_raw_nonzero().get()
    }

    /// How it ended, once it has.
    pub(super) fn ended(&self) -> Option<String> {
        self.ended.borrow().clone()
    }

    async fn finished(&self) {
        let mut ended = self.ended.clone();
        drop(ended.wait_for(Option::is_some).await);
    }

    /// Waits a moment for the end of a process whose output has ended, so that messages can name the reason.
    pub(super) async fn settle(&self) {
        drop(tokio::time::timeout(Duration::from_millis(500), self.finished()).await);
    }

    /// The end of its error output, in whole lines.
    pub(super) fn last_words(&self) -> String {
        let tail: Vec<u8> = locked(&self.tail).iter().copied().collect();
        String::from_utf8_lossy(&tail).trim().to_owned()
    }

    /// Ends it, after its input was closed: by itself, then asked, then made.
    pub(super) async fn close(&self) {
        if tokio::time::timeout(GRACE, self.finished()).await.is_err() {
            kill(self.group, Signal::TERM);
            if tokio::time::timeout(GRACE, self.finished()).await.is_err() {
                self.stop.request(CancelLevel::Immediate);
                drop(tokio::time::timeout(GRACE, self.finished()).await);
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop.request(CancelLevel::Immediate);
    }
}

/// Every change under the lock is whole, so a panic leaves nothing half changed.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the error output to its end, whatever becomes of the copies: a full pipe would stop the server.
async fn drain(mut from: ChildStderr, tail: Arc<Mutex<VecDeque<u8>>>, errors: Errors) {
    let mut file = match &errors.file {
        Some(path) => open_log(path).await,
        None => None,
    };
    let (mut buffer, mut line, mut logged) = (vec![0; 16 * 1024], Vec::new(), 0_usize);
    // A pipe that breaks has ended.
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let bytes = buffer.get(..count).unwrap_or_default();
        {
            let mut tail = locked(&tail);
            tail.extend(bytes);
            let surplus = tail.len().saturating_sub(TAIL);
            tail.drain(..surplus);
        }
        logged = logged.saturating_add(count);
        if let Some(open) = file.as_mut().filter(|_| logged <= MOST_LOGGED)
            && open.write_all(bytes).await.is_err()
        {
            // A full disk costs the log and not the server.
            file = None;
        }
        if let Some(lines) = &errors.lines {
            line.extend_from_slice(bytes);
            tell_lines(&mut line, lines);
        }
    }
}

async fn open_log(path: &Path) -> Option<tokio::fs::File> {
    if let Some(folder) = path.parent() {
        tokio::fs::create_dir_all(folder).await.ok()?;
    }
    tokio::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path).await.ok()
}

/// Hands on whole lines. Who listens too slowly misses some.
fn tell_lines(line: &mut Vec<u8>, lines: &mpsc::Sender<String>) {
    while let Some(at) = line.iter().position(|byte| *byte == b'\n') {
        let rest = line.split_off(at + 1);
        let whole = std::mem::replace(line, rest);
        lines.try_send(String::from_utf8_lossy(&whole).trim_end().to_owned()).ok();
    }
    if line.len() > TAIL {
        line.clear();
    }
}
