//! Runs git: the only place that starts it. Git starts programs itself, and the configuration of a repository may name
//! them, so a repository is read with settings that switch them off and with an environment that holds no keys.
//!
//! It knows nothing about addresses, retries or what git prints; `amplifier-sources` and `hooks-status-context` do.

mod configured;
mod environment;
mod repository;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

pub use configured::{Configured, starts_programs};
pub use repository::{Owner, Repository};

/// The largest configuration that is listed, in bytes.
const MOST_CONFIGURATION: u64 = 1 << 20;

/// In force for every command: git runs nothing by itself and asks no questions.
const ALWAYS: [&str; 6] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "credential.interactive=false",
    "gc.auto=0",
];

/// In force where a repository is only read: every program that its configuration may name. Filters have names of their
/// own; [`Git::inspect`] finds them.
const READING: [&str; 19] = [
    "color.ui=false",
    "core.alternateRefsCommand=false",
    "core.askPass=",
    "core.editor=false",
    "core.gitProxy=",
    "core.pager=cat",
    "core.quotePath=false",
    "core.sshCommand=false",
    "credential.helper=",
    "diff.external=",
    "gpg.program=false",
    "gpg.ssh.program=false",
    "gpg.x509.program=false",
    "log.showSignature=false",
    "maintenance.auto=false",
    "protocol.allow=never",
    "sequence.editor=false",
    "status.submoduleSummary=false",
    "submodule.recurse=false",
];

/// What a filter of this name runs.
const FILTER: [&str; 4] = ["clean=", "smudge=", "process=", "required=false"];

/// Which git, and the variables of the user that it needs.
#[derive(Clone)]
pub struct Git {
    program: PathBuf,
    variables: BTreeMap<OsString, OsString>,
}

impl std::fmt::Debug for Git {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Variables may hold secrets.
        f.debug_struct("Git").field("program", &self.program).finish_non_exhaustive()
    }
}

/// Where a command runs.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// In no repository. The user's own configuration is in force.
    Nowhere,
    /// In a repository that we made. The user's own configuration is in force.
    Ours(&'a Path),
    /// In a repository that is only read. Nothing that it configures runs, and the network is not used.
    Read(&'a Inspected),
}

/// A repository whose filters are known.
#[derive(Debug, Clone)]
pub struct Inspected {
    repository: Repository,
    settings: Vec<OsString>,
}

/// One command.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub place: Place<'a>,
    pub arguments: &'a [&'a str],
    /// More variables for this command.
    pub variables: &'a [(String, String)],
    pub longest: Duration,
    /// The most bytes of output that are read.
    pub most: u64,
}

/// What git printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub text: String,
    /// Whether it printed more than was read.
    pub is_cut: bool,
}

/// Why git gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    #[error("git could not be started: {0}")]
    Start(#[source] io::Error),
    #[error("git could not be read: {0}")]
    Read(#[source] io::Error),
    #[error("git did not answer within {} ms", .0.as_millis())]
    Late(Duration),
    /// Git ended with an error; it printed why.
    #[error("git refused")]
    Refused,
    /// The configuration holds a filter that cannot be switched off.
    #[error("the repository configures a filter with the name `{0}`, which cannot be switched off")]
    Filter(String),
}

/// A running git. Dropping it before its end stops it and everything it started.
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

impl Git {
    /// The `git` of the path in these variables. Those that git does not need, such as keys, are dropped.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let variables = variables.into_iter().filter_map(environment::kept).collect();
        Self { program: PathBuf::from("git"), variables }
    }

    /// Another program, or one at a fixed place.
    #[must_use]
    pub fn with_program(self, program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), ..self }
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    /// A variable of the user that git gets.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Finds the filters that apply in a repository: its own, included ones and those of the user, whose programs may read
    /// the configuration of the repository in turn.
    pub async fn inspect(
        &self,
        repository: Repository,
        longest: Duration,
        mut stderr: impl FnMut(&[u8]) + Send,
    ) -> Result<Inspected, Fault> {
        if repository.owner() == Owner::Other {
            // Git says whether its user allows that; a command that is given the directory does not check it.
            let (place, arguments) = (Place::Ours(repository.work_tree()), &["rev-parse", "--git-dir"]);
            let call = Call { place, arguments, variables: &[], longest, most: MOST_CONFIGURATION };
            self.run(call, &mut stderr).await?;
        }
        let mut inspected = Inspected { repository, settings: Vec::new() };
        let (place, most) = (Place::Read(&inspected), MOST_CONFIGURATION);
        let arguments = &["config", "--list", "--name-only", "-z"];
        let listed = self.run(Call { place, arguments, variables: &[], longest, most }, stderr).await?;
        let name = |key: &str| Some(key.strip_prefix("filter.")?.rsplit_once('.')?.0.to_owned());
        let names: BTreeSet<_> = listed.text.split('\0').filter_map(name).collect();
        // What was cut off could hold another, and a `-c` ends the name at the first `=`. A replaced byte is another name.
        let odd = names.iter().find(|name| name.contains(['=', char::REPLACEMENT_CHARACTER])).cloned();
        if let Some(name) = odd.or_else(|| listed.is_cut.then(|| "…".to_owned())) {
            return Err(Fault::Filter(name));
        }
        let settings = names.iter().flat_map(|name| FILTER.map(|value| format!("filter.{name}.{value}")));
        inspected.settings = settings.map(OsString::from).collect();
        Ok(inspected)
    }

    /// Runs one command and gives its output. `stderr` gets what it prints there.
    pub async fn run(&self, call: Call<'_>, stderr: impl FnMut(&[u8]) + Send) -> Result<Output, Fault> {
        let mut command = CommandWrap::with_new(&self.program, |command| self.prepare(command, &call));
        let work = async {
            // A session of its own: git and ssh then have no terminal to ask on, and one signal ends them all.
            let child = command.wrap(ProcessSession).spawn().map_err(Fault::Start)?;
            finish(Running { child, ended: false }, call.most, stderr).await
        };
        tokio::time::timeout(call.longest, work).await.unwrap_or(Err(Fault::Late(call.longest)))
    }

    fn prepare(&self, command: &mut Command, call: &Call<'_>) {
        command.arg("--no-pager").kill_on_drop(true);
        for setting in ALWAYS {
            command.args(["-c", setting]);
        }
        let is_reading = matches!(call.place, Place::Read(_));
        let needed = |name: &OsStr| !is_reading || !environment::is_for_the_network(name);
        command.env_clear().envs(self.variables.iter().filter(|(name, _)| needed(name)));
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0");
        // An empty askpass stops the search for one; a helper that wants to show a window is told not to.
        command.env("GIT_ASKPASS", "").env("SSH_ASKPASS_REQUIRE", "never").env("GCM_INTERACTIVE", "never");
        match call.place {
            Place::Nowhere => {
                // Otherwise git would look for a repository around the directory of this process.
                command
                    .current_dir(std::env::temp_dir().as_path().ancestors().last().unwrap_or(Path::new("/")));
                command.env("GIT_DIR", "/dev/null");
            }
            Place::Ours(folder) => {
                command.current_dir(folder);
                command.env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder));
            }
            Place::Read(Inspected { repository, settings }) => {
                for setting in READING.iter().map(OsStr::new).chain(settings.iter().map(OsString::as_os_str))
                {
                    command.arg("-c").arg(setting);
                }
                command.current_dir(repository.work_tree()).env("GIT_DIR", repository.git_dir());
                command.env("GIT_WORK_TREE", repository.work_tree());
                command.env("GIT_COMMON_DIR", repository.common_dir());
                command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_LAZY_FETCH", "1");
                command.env("GIT_ALLOW_PROTOCOL", "none");
            }
        }
        command.envs(call.variables.iter().map(|(name, value)| (name, value))).args(call.arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }
}

async fn finish(
    mut running: Running,
    most: u64,
    mut listen: impl FnMut(&[u8]) + Send,
) -> Result<Output, Fault> {
    let (stdout, stderr) = (running.child.stdout().take(), running.child.stderr().take());
    let hear = async {
        let Some(mut stderr) = stderr else { return Ok(()) };
        let mut buffer = vec![0; 8 * 1024];
        loop {
            match stderr.read(&mut buffer).await? {
                0 => return Ok(()),
                count => listen(buffer.get(..count).unwrap_or_default()),
            }
        }
    };
    let (bytes, ()) = tokio::try_join!(read(stdout, most), hear).map_err(Fault::Read)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if bytes.len() as u64 >= most {
        // The rest would wait for a reader for ever: git is stopped.
        return Ok(Output { text, is_cut: true });
    }
    let status = running.child.wait().await.map_err(Fault::Read)?;
    running.ended = true;
    if status.success() { Ok(Output { text, is_cut: false }) } else { Err(Fault::Refused) }
}

async fn read(from: Option<impl AsyncRead + Unpin>, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(most).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}
