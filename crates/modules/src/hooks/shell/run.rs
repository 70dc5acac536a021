//! Runs one command: a process group of its own, a small environment, bounded output, killed as a group when it is late.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use amplifier_core::cancel::{CancelLevel, CancelToken};
use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessGroup};
use rustix::process::Pid;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::watchdog::{self, Watched};

/// Variables that commands get: what programs need to find each other and to speak the right language.
const HARMLESS: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "TZ",
    "TMPDIR",
    "PWD",
    "XDG_RUNTIME_DIR",
];
/// How long output may still come after the command ended, from something it left in the background.
const AFTER: Duration = Duration::from_millis(200);

/// A command and how it runs.
pub(super) struct Program {
    pub(super) command: String,
    pub(super) folder: PathBuf,
    pub(super) environment: BTreeMap<OsString, OsString>,
    pub(super) timeout: Duration,
    pub(super) max_output_bytes: usize,
}

/// How it ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ran {
    Ended { code: i32, stdout: String, stderr: String },
    Late,
    Cancelled,
    Broken(String),
}

/// The environment of a command: the harmless variables, those the plan names, and where it is.
pub(super) fn environment(
    pass: &[String],
    folder: &PathBuf,
    hooks_dir: Option<&PathBuf>,
    session_id: &str,
) -> BTreeMap<OsString, OsString> {
    let passes = |name: &OsString| {
        let name = name.to_string_lossy();
        HARMLESS.contains(&name.as_ref())
            || name.starts_with("LC_")
            || pass.iter().any(|passed| *passed == name)
    };
    let inherited = crate::environment::own().iter().filter(|(name, _)| passes(name));
    let mut environment: BTreeMap<_, _> =
        inherited.map(|(name, value)| (name.clone(), value.clone())).collect();
    for name in ["AMPLIFIER_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "PWD"] {
        environment.insert(name.into(), folder.into());
    }
    if let Some(hooks_dir) = hooks_dir {
        environment.insert("AMPLIFIER_HOOKS_DIR".into(), hooks_dir.into());
    }
    environment.insert("AMPLIFIER_SESSION_ID".into(), session_id.into());
    environment
}

/// A running group. Whoever stops waiting for it, for whatever reason, kills it.
struct Group(Box<dyn ChildWrapper>, #[expect(dead_code, reason = "held until the group is killed")] Watched);

impl Drop for Group {
    fn drop(&mut self) {
        // Nothing is left to kill when all ended, which is the usual case and an error here.
        self.0.start_kill().ok();
    }
}

impl Program {
    /// Runs the command with this text on its standard input.
    pub(super) async fn run(&self, input: String, cancel: Option<&CancelToken>) -> Ran {
        let (mark, mut watched) = watchdog::child();
        let mut group = match self.spawn(mark) {
            Ok(child) => {
                let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
                id.into_iter().for_each(|id| watched.group(id));
                Group(child, watched)
            }
            Err(error) => return Ran::Broken(error.to_string()),
        };
        let cancelled = async {
            match cancel {
                Some(cancel) => cancel.cancelled(CancelLevel::Immediate).await,
                None => std::future::pending().await,
            }
        };
        let ran = tokio::select! {
            biased;
            () = cancelled => Ran::Cancelled,
            ran = tokio::time::timeout(self.timeout, talk(&mut group, input, self.max_output_bytes)) => match ran {
                Ok(Ok(ran)) => ran,
                Ok(Err(error)) => Ran::Broken(error.to_string()),
                Err(_) => Ran::Late,
            },
        };
        if !matches!(ran, Ran::Ended { .. }) {
            group.0.start_kill().ok();
            // Killed processes end at once; one that cannot is the system's to reap.
            drop(tokio::time::timeout(Duration::from_secs(2), group.0.wait()).await);
        }
        ran
    }

    fn spawn(&self, mark: (&str, String)) -> std::io::Result<Box<dyn ChildWrapper>> {
        let mut command = tokio::process::Command::new("sh");
        command.arg("-c").arg(&self.command).current_dir(&self.folder);
        command.env_clear().envs(&self.environment).envs([mark]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut wrap = CommandWrap::from(command);
        wrap.wrap(ProcessGroup::leader());
        wrap.spawn()
    }
}

async fn talk(group: &mut Group, input: String, most: usize) -> std::io::Result<Ran> {
    let child = &mut group.0;
    let (stdin, stdout, stderr) = (child.stdin().take(), child.stdout().take(), child.stderr().take());
    let mut out = Vec::new();
    let mut err = Vec::new();
    let tell = async {
        if let Some(mut stdin) = stdin {
            // A command that does not read its input is free not to.
            stdin.write_all(input.as_bytes()).await.ok();
        }
    };
    let mut listen =
        Box::pin(async { tokio::join!(tell, drain(stdout, &mut out, most), drain(stderr, &mut err, most)) });
    let status = tokio::select! {
        _ = &mut listen => child.wait().await?,
        status = child.wait() => {
            // Something in the background may hold the pipes open; what it says is of no interest.
            drop(tokio::time::timeout(AFTER, &mut listen).await);
            status?
        }
    };
    drop(listen);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Ran::Ended { code: code_of(status), stdout: text(&out), stderr: text(&err) })
}

/// Reads to the end and keeps the beginning, so that a command with much to say does not stand still.
async fn drain(source: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>, most: usize) {
    let Some(mut source) = source else { return };
    let mut buffer = [0_u8; 8 * 1024];
    while let Ok(count @ 1..) = source.read(&mut buffer).await {
        let room = most.saturating_sub(kept.len());
        kept.extend(buffer.iter().take(count.min(room)));
    }
}

/// The exit code; for one that was killed, as shells count, 128 and the signal.
fn code_of(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    status.code().or(signal.map(|signal| 128 + signal)).unwrap_or(-1)
}
