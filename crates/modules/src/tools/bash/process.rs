//! One command as a process: its own session, its output in bounded memory, its end known, its whole group killed.
//!
//! The process belongs to a task of its own, so it is reaped whoever stops waiting for it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use amplifier_core::cancel::{CancelLevel, CancelToken};
use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;

use super::capture::Capture;
use super::sandbox::Confinement;
use crate::watchdog::{self, Watched, sweep};

/// The variable by which processes that left their group are found again.
const MARK: &str = "AMPLIFIER_BASH_CALL";
/// How long output may still come after the command itself has ended.
const DRAIN: Duration = Duration::from_millis(250);
/// How long a command may take to end after an interrupt, and again after it was asked to end.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same when it is to stop at once.
const MOMENT: Duration = Duration::from_millis(30);

/// What is started.
pub(super) struct Launch {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) folder: PathBuf,
    pub(super) variables: BTreeMap<OsString, OsString>,
    /// Names this process and its descendants, and no others.
    pub(super) mark: String,
    pub(super) limit: usize,
    pub(super) confinement: Confinement,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// By itself or by a signal, which is written as a negative number.
    With(i32),
    /// Nobody knows.
    Lost(String),
}

/// Both streams.
pub(super) struct Output {
    pub(super) stdout: Capture,
    pub(super) stderr: Capture,
}

/// A command that runs or ran.
pub(super) struct Running {
    group: Pid,
    mark: String,
    output: Mutex<Output>,
    ended: watch::Sender<Option<Ended>>,
    open: watch::Sender<usize>,
}

#[derive(Clone, Copy)]
enum Stream {
    Stdout,
    Stderr,
}

/// The beginning of the variable that the processes with this mark carry.
pub(super) fn marked(mark: &str) -> String {
    format!("{MARK}={mark}")
}

/// Starts a command.
pub(super) async fn start(launch: Launch) -> std::io::Result<Arc<Running>> {
    let (mark, limit) = (launch.mark.clone(), launch.limit);
    let mut child = spawn(launch).await?;
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let Some(group) = group else { return Err(std::io::Error::other("the command has no process id")) };
    let watched = watchdog::group(group);
    let output = Mutex::new(Output { stdout: Capture::new(limit), stderr: Capture::new(limit) });
    let (ended, open) = (watch::Sender::new(None), watch::Sender::new(2));
    let running = Arc::new(Running { group, mark, output, ended, open });
    let (stdout, stderr) = (child.stdout().take(), child.stderr().take());
    tokio::spawn(pump(stdout, Stream::Stdout, Arc::clone(&running)));
    tokio::spawn(pump(stderr, Stream::Stderr, Arc::clone(&running)));
    tokio::spawn(wait(child, Arc::clone(&running), watched));
    Ok(running)
}

async fn spawn(launch: Launch) -> std::io::Result<Box<dyn ChildWrapper>> {
    let Launch { program, arguments, folder, variables, mark, confinement, .. } = launch;
    let mut command = CommandWrap::with_new(program, |command| {
        command.args(arguments).current_dir(folder).env_clear().envs(variables).env(MARK, mark);
        command.kill_on_drop(true).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    });
    command.wrap(ProcessSession);
    // The group is ours to kill, also after its leader has gone; of the wrapper only the session is wanted.
    let spawned = confinement.run(move || command.spawn()).await?;
    Ok(spawned.into_inner())
}

async fn pump(from: Option<impl AsyncRead + Unpin>, stream: Stream, running: Arc<Running>) {
    if let Some(mut from) = from {
        let mut buffer = vec![0; 64 * 1024];
        // A pipe that breaks has ended.
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            let mut output = running.output();
            let capture = match stream {
                Stream::Stdout => &mut output.stdout,
                Stream::Stderr => &mut output.stderr,
            };
            capture.push(buffer.get(..count).unwrap_or_default());
        }
    }
    running.open.send_modify(|open| *open = open.saturating_sub(1));
}

async fn wait(mut child: Box<dyn ChildWrapper>, running: Arc<Running>, watched: Watched) {
    // When this task goes away with its runtime, the command goes too.
    let orphan = KillOnDrop(Some(Arc::clone(&running)));
    let ended = match child.wait().await {
        Ok(status) => Ended::With(code(status)),
        Err(error) => Ended::Lost(error.to_string()),
    };
    // Something it left behind may hold the pipes open for ever; the answer does not wait for that.
    drop(tokio::time::timeout(DRAIN, running.closed()).await);
    orphan.disarm();
    drop(watched);
    running.ended.send_replace(Some(ended));
}

fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().or_else(|| status.signal().map(|signal| -signal)).unwrap_or(-1)
}

impl Running {
    pub(super) fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it ended, once it has.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended.borrow().clone()
    }

    /// Waits until it has ended.
    pub(super) async fn finished(&self) -> Ended {
        let mut ended = self.ended.subscribe();
        let seen = ended.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
        seen.unwrap_or_else(|| Ended::Lost("nobody watched it".to_owned()))
    }

    /// Whether something it started still writes to its output.
    pub(super) fn left_something(&self) -> bool {
        *self.open.borrow() > 0
    }

    pub(super) fn process_id(&self) -> i32 {
        self.group.as_raw_nonzero().get()
    }

    async fn closed(&self) {
        let mut open = self.open.subscribe();
        drop(open.wait_for(|open| *open == 0).await);
    }

    /// Interrupts the whole group, as Ctrl-C at a terminal does, then stops it; at once when that is wanted meanwhile.
    pub(super) async fn interrupt(&self, cancel: &CancelToken) {
        let politely = async {
            self.signal(Signal::INT);
            drop(tokio::time::timeout(PATIENCE, self.finished()).await);
            self.stop(PATIENCE).await;
        };
        tokio::select! {
            biased;
            () = cancel.cancelled(CancelLevel::Immediate) => self.stop(MOMENT).await,
            () = politely => {}
        }
    }

    /// Asks the whole group to end, then makes it; returns when the command is reaped.
    pub(super) async fn stop(&self, grace: Duration) {
        self.signal(Signal::TERM);
        if tokio::time::timeout(grace, self.finished()).await.is_err() {
            self.signal(Signal::KILL);
        }
        let mark = marked(&self.mark);
        let swept = tokio::task::spawn_blocking(move || sweep(&mark));
        drop(swept.await);
        drop(tokio::time::timeout(Duration::from_secs(2), self.finished()).await);
    }

    /// Kills the group and whatever left it, at once and without waiting.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
        let mark = marked(&self.mark);
        std::thread::spawn(move || sweep(&mark));
    }

    fn signal(&self, signal: Signal) {
        if self.ended.borrow().is_none() {
            // Gone already is as good.
            kill_process_group(self.group, signal).ok();
        }
    }
}

struct KillOnDrop(Option<Arc<Running>>);

impl KillOnDrop {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(running) = &self.0 {
            running.signal(Signal::KILL);
        }
    }
}
