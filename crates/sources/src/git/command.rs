//! One git command: its environment, its end, its output, and that nothing of it outlives whoever asked.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use amplifier_core::cancel::{CancelLevel, CancelToken};
use amplifier_core::redact::redact_text;
use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::progress::Reader;
use crate::uri::GitUri;

/// The most output of one command that is read.
const MOST: u64 = 4 * 1024 * 1024;

/// Variables that would lead git to another repository, make it ask or make it talk.
const UNWANTED: [&str; 17] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CEILING_DIRECTORIES",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_TEMPLATE_DIR",
    "GIT_DEFAULT_HASH",
    "GIT_TRACE",
    "GIT_TRACE_CURL",
    "GIT_CURL_VERBOSE",
    "SSH_ASKPASS",
];

/// Settings that hold whatever the user's are: nothing runs by itself, and the files of a commit are the same everywhere.
const SETTINGS: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.autocrlf=false",
    "core.eol=lf",
    "core.longpaths=true",
    "core.attributesFile=/dev/null",
    "credential.interactive=false",
    "gc.auto=0",
    "advice.detachedHead=false",
];

/// Which git, and with which environment it runs.
///
/// The environment is the user's, handed in by the application: `HOME` leads to the configuration, `PATH` to helpers.
#[derive(Clone)]
pub struct GitProgram {
    program: PathBuf,
    variables: BTreeMap<OsString, OsString>,
}

impl std::fmt::Debug for GitProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Variables may hold secrets.
        f.debug_struct("GitProgram").field("program", &self.program).finish_non_exhaustive()
    }
}

/// What shall be run.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) repo: Option<&'a Path>,
    pub(super) arguments: &'a [&'a str],
    pub(super) longest: Duration,
    /// Whose credentials may be used, and must not be shown.
    pub(super) uri: &'a GitUri,
    pub(super) cancel: &'a CancelToken,
    pub(super) ssh: Ssh,
}

/// How git shall call ssh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ssh {
    /// OpenSSH, told not to ask, unless the environment names another command.
    Batch,
    /// As the user's configuration says; without a terminal it cannot ask either.
    AsConfigured,
}

/// Why git gave no answer.
#[derive(Debug)]
pub(super) enum Fault {
    Start(io::Error),
    Read(io::Error),
    Late(Duration),
    Cancelled,
    Refused { stderr: String },
}

/// A running git. Whoever lets go of it before its end stops it, with everything it started.
struct Running {
    child: Box<dyn ChildWrapper>,
    ended: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            // Gone already is as good as stopped.
            self.child.start_kill().ok();
        }
    }
}

impl GitProgram {
    /// The `git` of the path in these variables.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self { program: PathBuf::from("git"), variables: variables.into_iter().collect() }
    }

    /// Another program, or one at a fixed place.
    #[must_use]
    pub fn with_program(self, program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), ..self }
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Runs one command and gives its output. `listen` hears progress.
    pub(super) async fn run(
        &self,
        run: Run<'_>,
        listen: impl FnMut(&str, u8) + Send,
    ) -> Result<String, Fault> {
        let secrets = run.uri.secrets();
        let (longest, cancel) = (run.longest, run.cancel);
        let mut command = CommandWrap::with_new(&self.program, |command| self.prepare(command, &run));
        let work = async {
            // A session of its own: git and ssh then have no terminal to ask on, and one signal ends them all.
            let child = command.wrap(ProcessSession).spawn().map_err(Fault::Start)?;
            finish(Running { child, ended: false }, listen).await
        };
        let ended = tokio::select! {
            ended = tokio::time::timeout(longest, work) => ended.unwrap_or(Err(Fault::Late(longest))),
            () = cancel.cancelled(CancelLevel::Graceful) => Err(Fault::Cancelled),
        };
        ended.map_err(|fault| match fault {
            Fault::Refused { stderr } => Fault::Refused { stderr: scrub(&stderr, &secrets) },
            fault => fault,
        })
    }

    fn prepare(&self, command: &mut Command, run: &Run<'_>) {
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(run.arguments).kill_on_drop(true);
        // Elsewhere git would look for a repository around the working folder of this process.
        command.current_dir(run.repo.unwrap_or(Path::new("/")));
        command.env_clear().envs(&self.variables);
        for name in UNWANTED {
            command.env_remove(name);
        }
        if let Some(repo) = run.repo {
            command.env("GIT_CEILING_DIRECTORIES", repo.parent().unwrap_or(repo));
        }
        // An empty askpass stops the search for one; a helper that wants to show a window is told not to.
        let quiet = [("GIT_TERMINAL_PROMPT", "0"), ("GIT_ASKPASS", ""), ("GCM_INTERACTIVE", "never")];
        command.envs(quiet).env("SSH_ASKPASS_REQUIRE", "never").env("LC_ALL", "C");
        let chosen =
            ["GIT_SSH_COMMAND", "GIT_SSH"].iter().any(|name| self.variables.contains_key(OsStr::new(name)));
        if run.ssh == Ssh::Batch && !chosen {
            command.env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes");
        }
        if let Some((secret, address)) = run.uri.secret_origin() {
            self.lend_credentials(command, &secret, &address);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }

    /// Credentials of an address go through the environment: arguments can be read by everybody on the machine.
    fn lend_credentials(&self, command: &mut Command, secret: &str, address: &str) {
        let count = self.variables.get(OsStr::new("GIT_CONFIG_COUNT")).and_then(|count| count.to_str());
        let count: u32 = count.and_then(|count| count.parse().ok()).unwrap_or(0);
        command.env("GIT_CONFIG_COUNT", (count + 1).to_string());
        command.env(format!("GIT_CONFIG_KEY_{count}"), format!("url.{secret}.insteadOf"));
        command.env(format!("GIT_CONFIG_VALUE_{count}"), address);
    }
}

async fn finish(mut running: Running, listen: impl FnMut(&str, u8)) -> Result<String, Fault> {
    let (stdout, stderr) = (running.child.stdout().take(), running.child.stderr().take());
    let mut reader = Reader::new(listen);
    let complain = async {
        let Some(mut stderr) = stderr else { return Ok(()) };
        let mut buffer = vec![0; 8 * 1024];
        loop {
            match stderr.read(&mut buffer).await? {
                0 => return Ok(()),
                count => reader.push(buffer.get(..count).unwrap_or_default()),
            }
        }
    };
    let (output, ()) = tokio::try_join!(read_all(stdout), complain).map_err(Fault::Read)?;
    let status = running.child.wait().await.map_err(Fault::Read)?;
    running.ended = true;
    let stderr = reader.finish();
    if status.success() { Ok(output) } else { Err(Fault::Refused { stderr }) }
}

async fn read_all(from: Option<impl AsyncRead + Unpin>) -> io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(MOST).read_to_end(&mut bytes).await?;
    }
    if bytes.len() as u64 >= MOST {
        return Err(io::Error::other(format!("git wrote more than {MOST} bytes")));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What git said, without credentials: its messages may repeat the address.
fn scrub(text: &str, secrets: &[&str]) -> String {
    let text = secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "***"));
    redact_text(&text).into_owned()
}
