//! The boundary around commands: bubblewrap where it works, else Landlock and seccomp, else nothing and a word about it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::process::Command;

#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod seccomp;

/// How far commands are fenced in by the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Level {
    /// Not at all.
    #[default]
    Off,
    /// Only the workspace and a private temporary folder can be written.
    WorkspaceWrite,
    /// Nothing but a private temporary folder can be written, and there is no network.
    ReadOnly,
}

/// What the machine offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fence {
    Bubblewrap(PathBuf),
    #[cfg(target_os = "linux")]
    Landlock {
        /// Why it is not bubblewrap.
        because: String,
        filter: Filter,
        /// What this kernel leaves open.
        gaps: Vec<String>,
    },
}

/// Whether system calls are filtered too.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filter {
    On,
    Off,
}

/// A level on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sandbox {
    Off,
    Fenced {
        level: Level,
        fence: Fence,
    },
    /// Wanted and not to be had.
    Missing {
        why: String,
    },
}

/// The folders a sandbox knows.
#[derive(Debug, Clone)]
pub(super) struct Folders {
    pub(super) workspace: PathBuf,
    /// Where commands leave word of their working folder.
    pub(super) notes: PathBuf,
    /// What commands see as `/tmp`, or have as `TMPDIR`.
    pub(super) temporary: PathBuf,
}

/// How a process is started so that it is fenced in.
pub(super) enum Confinement {
    None,
    #[cfg(target_os = "linux")]
    Landlock {
        level: Level,
        filter: Filter,
        folders: Folders,
    },
}

/// Finds out what the machine offers, by trying it.
pub(super) async fn probe(level: Level) -> Sandbox {
    if level == Level::Off {
        return Sandbox::Off;
    }
    let bubblewrap = match tried_bubblewrap().await {
        Ok(program) => return Sandbox::Fenced { level, fence: Fence::Bubblewrap(program) },
        Err(why) => why,
    };
    #[cfg(target_os = "linux")]
    match landlock::tried(level).await {
        Ok((filter, gaps)) => {
            Sandbox::Fenced { level, fence: Fence::Landlock { because: bubblewrap, filter, gaps } }
        }
        Err(why) => Sandbox::Missing { why: format!("{bubblewrap}; {why}") },
    }
    #[cfg(not(target_os = "linux"))]
    Sandbox::Missing { why: bubblewrap }
}

async fn tried_bubblewrap() -> Result<PathBuf, String> {
    let places = ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"];
    let program = places.iter().map(PathBuf::from).find(|path| path.is_file());
    let program = program.ok_or("bubblewrap (`bwrap`) is not installed")?;
    let mut command = Command::new(&program);
    command.args([
        "--unshare-pid",
        "--unshare-net",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "true",
    ]);
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(Duration::from_secs(5), command.status()).await {
        Ok(Ok(status)) if status.success() => Ok(program),
        Ok(Ok(_)) => Err("bubblewrap is installed but may not make namespaces here".to_owned()),
        Ok(Err(error)) => Err(format!("bubblewrap does not start: {error}")),
        Err(_) => Err("bubblewrap does not answer".to_owned()),
    }
}

impl Sandbox {
    /// What should be known about it although it works.
    pub(super) fn caveat(&self) -> Option<String> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Fenced { fence: Fence::Landlock { because, gaps, .. }, .. } => {
                let open: String = gaps.iter().map(|gap| format!("; {gap}")).collect();
                Some(format!("sandbox: Landlock, because {because}{open}"))
            }
            _ => None,
        }
    }

    /// The command line that runs `program` inside.
    pub(super) fn command_line(
        &self,
        program: OsString,
        arguments: Vec<OsString>,
        folder: &Path,
        folders: &Folders,
    ) -> (OsString, Vec<OsString>, Confinement) {
        match self {
            Self::Fenced { level, fence: Fence::Bubblewrap(bubblewrap) } => {
                let mut line = bubblewrap_arguments(*level, folder, folders);
                line.push("--".into());
                line.push(program);
                line.extend(arguments);
                (bubblewrap.into(), line, Confinement::None)
            }
            #[cfg(target_os = "linux")]
            Self::Fenced { level, fence: Fence::Landlock { filter, .. } } => {
                let (level, filter, folders) = (*level, *filter, folders.clone());
                (program, arguments, Confinement::Landlock { level, filter, folders })
            }
            Self::Off | Self::Missing { .. } => (program, arguments, Confinement::None),
        }
    }
}

fn bubblewrap_arguments(level: Level, folder: &Path, folders: &Folders) -> Vec<OsString> {
    let mut line: Vec<OsString> = Vec::new();
    let mut add = |parts: &[&dyn AsRef<std::ffi::OsStr>]| {
        line.extend(parts.iter().map(|part| part.as_ref().to_owned()));
    };
    add(&[
        &"--die-with-parent",
        &"--unshare-pid",
        &"--unshare-ipc",
        &"--unshare-uts",
        &"--unshare-cgroup-try",
    ]);
    add(&[&"--ro-bind", &"/", &"/", &"--dev", &"/dev", &"--proc", &"/proc"]);
    add(&[&"--bind", &folders.temporary, &"/tmp"]);
    let workspace = &folders.workspace;
    match level {
        Level::WorkspaceWrite => {
            add(&[&"--bind", workspace, workspace]);
            // What would run outside the sandbox later stays as it is.
            for kept in [".git/hooks", ".amplifier"] {
                let kept = workspace.join(kept);
                add(&[&"--ro-bind-try", &kept, &kept]);
            }
        }
        Level::ReadOnly | Level::Off => add(&[&"--ro-bind", workspace, workspace, &"--unshare-net"]),
    }
    add(&[&"--bind", &folders.notes, &folders.notes, &"--chdir", &folder]);
    line
}

impl Confinement {
    /// Runs `spawn` so that what it starts is fenced in.
    pub(super) async fn run<T: Send + 'static>(
        self,
        spawn: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> std::io::Result<T> {
        match self {
            Self::None => spawn(),
            #[cfg(target_os = "linux")]
            Self::Landlock { level, filter, folders } => landlock::run(level, filter, folders, spawn).await,
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
#[path = "sandbox_tests.rs"]
mod tests;
