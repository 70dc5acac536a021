//! Asking git: read-only commands with a time limit, in a group of their own, that trust nothing the repository says.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessGroup};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::Config;
use super::refs::MainBranch;

/// The most output of one command that is read.
const MOST: u64 = 1024 * 1024;

/// Variables that would lead git to another repository than the folder's.
const ELSEWHERE: [&str; 7] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_EXTERNAL_DIFF",
];

/// What shall be asked.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    status: bool,
    untracked: bool,
    commits: u32,
    main_branch: bool,
}

impl Wanted {
    pub(super) fn of(config: &Config) -> Self {
        Self {
            status: config.git_include_status,
            untracked: config.git_status_include_untracked,
            commits: config.git_include_commits.min(50),
            main_branch: config.git_include_main_branch,
        }
    }
}

/// How a repository stands.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Repo {
    /// Whether there is one.
    pub(super) exists: bool,
    /// The current branch, with what it follows.
    pub(super) branch: Option<String>,
    /// The branch that others build on.
    pub(super) main_branch: Option<String>,
    /// Changed and new files; `None` when nobody asked.
    pub(super) entries: Option<Vec<Entry>>,
    /// The last commits, the newest first.
    pub(super) commits: Vec<String>,
    /// What went wrong when it was last looked at.
    pub(super) fault: Option<String>,
}

/// A changed or new file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The two letters of git's short form.
    pub(super) code: String,
    /// The file, relative to the top of the repository; folders end with `/`.
    pub(super) path: String,
}

impl Entry {
    pub(super) fn is_untracked(&self) -> bool {
        self.code == "??"
    }
}

/// The folder in which git keeps what it knows, for a folder inside a repository. Touches the disk.
pub(super) fn find(dir: &Path) -> Option<PathBuf> {
    dir.ancestors().find_map(|dir| {
        let git = dir.join(".git");
        let metadata = std::fs::metadata(&git).ok()?;
        if metadata.is_dir() {
            return Some(git);
        }
        // A linked work tree: a small file that names the folder.
        let text = (metadata.len() < 4_096).then(|| std::fs::read_to_string(&git).ok()).flatten()?;
        Some(dir.join(text.strip_prefix("gitdir:")?.trim()))
    })
}

/// Asks git about the repository around a folder, and about its main branch where that is not known.
pub(super) async fn read(dir: &Path, wanted: &Wanted, main: MainBranch, timeout: Duration) -> Repo {
    let files = if wanted.untracked { "--untracked-files=normal" } else { "--untracked-files=no" };
    let status: &[&str] = if wanted.status {
        &["status", "--porcelain=v1", "--branch", "-z", "--ignore-submodules=dirty", files]
    } else {
        &["symbolic-ref", "--short", "-q", "HEAD"]
    };
    let count = wanted.commits.to_string();
    let log = ["log", "-n", &count, "--no-show-signature", "--format=%h %s"];
    let refs = [
        "for-each-ref",
        "--format=%(refname) %(symref)",
        "refs/remotes/origin/HEAD",
        "refs/heads/main",
        "refs/heads/master",
    ];
    let (status, log, main_branch) = tokio::join!(
        run(dir, status, timeout),
        async { if wanted.commits > 0 { run(dir, &log, timeout).await } else { Ok(String::new()) } },
        async {
            match main {
                _ if !wanted.main_branch => None,
                MainBranch::Known(name) => name,
                MainBranch::Unknown => main_branch(&run(dir, &refs, timeout).await.unwrap_or_default()),
            }
        },
    );
    let mut repo = Repo { exists: true, ..Repo::default() };
    match status {
        Ok(text) if wanted.status => {
            let (branch, entries) = parse_status(&text);
            (repo.branch, repo.entries) = (branch, Some(entries));
        }
        Ok(text) => repo.branch = Some(text.trim().to_owned()).filter(|branch| !branch.is_empty()),
        Err(fault) => repo.fault = Some(fault.to_string()),
    }
    // A repository without a commit has no log; that is no fault.
    repo.commits = log.unwrap_or_default().lines().map(str::to_owned).collect();
    repo.main_branch = main_branch;
    repo
}

/// Why git gave no answer.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("git could not be started: {0}")]
    Start(#[source] io::Error),
    #[error("git could not be read: {0}")]
    Read(#[source] io::Error),
    #[error("git did not answer within {} ms", .0.as_millis())]
    Late(Duration),
    #[error("git refused: {0}")]
    Refused(String),
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

async fn run(dir: &Path, arguments: &[&str], timeout: Duration) -> Result<String, Fault> {
    let mut command = CommandWrap::with_new("git", |command| prepare(command, dir, arguments));
    let child = command.wrap(ProcessGroup::leader()).spawn().map_err(Fault::Start)?;
    let mut running = Running { child, ended: false };
    let (stdout, stderr) = (running.child.stdout().take(), running.child.stderr().take());
    let work = async {
        let (out, err) =
            tokio::try_join!(read_all(stdout, MOST), read_all(stderr, 4_096)).map_err(Fault::Read)?;
        // What is longer than we read would wait for a reader for ever: it is used as far as it goes, and stopped.
        if (out.len() as u64) < MOST {
            let status = running.child.wait().await.map_err(Fault::Read)?;
            running.ended = true;
            if !status.success() {
                let said = String::from_utf8_lossy(&err);
                return Err(Fault::Refused(said.lines().next().unwrap_or("without a word").to_owned()));
            }
        }
        Ok(String::from_utf8_lossy(&out).into_owned())
    };
    tokio::time::timeout(timeout, work).await.unwrap_or(Err(Fault::Late(timeout)))
}

async fn read_all(from: Option<impl AsyncRead + Unpin>, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(most).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

fn prepare(command: &mut Command, dir: &Path, arguments: &[&str]) {
    // What a repository configures must not run programs or write to it while somebody merely looks.
    command.args(["--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false"]);
    command.args(["-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false"]);
    command.args(["-c", "log.showSignature=false", "-c", "color.ui=false"]);
    command.args(arguments).current_dir(dir).kill_on_drop(true);
    for name in ELSEWHERE {
        command.env_remove(name);
    }
    command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
}

/// Reads git's short form, every entry ended by a zero byte: spaces and line ends in names are then no riddle.
fn parse_status(text: &str) -> (Option<String>, Vec<Entry>) {
    let (mut branch, mut entries) = (None, Vec::new());
    let mut parts = text.split('\0').filter(|part| !part.is_empty());
    while let Some(part) = parts.next() {
        let (Some(code), Some(path)) = (part.get(..2), part.get(3..)) else { continue };
        if code == "##" {
            branch = Some(branch_name(path));
            continue;
        }
        // A rename is followed by its old name.
        if code.contains(['R', 'C']) {
            parts.next();
        }
        entries.push(Entry { code: code.to_owned(), path: path.to_owned() });
    }
    (branch, entries)
}

fn branch_name(line: &str) -> String {
    let fresh = line.strip_prefix("No commits yet on ");
    let (name, note) = match fresh {
        Some(name) => (name, Some("no commits yet")),
        None if line.starts_with("HEAD (no branch)") => ("no branch (detached HEAD)", None),
        None => (line, None),
    };
    let name = match name.split_once("...") {
        Some((name, upstream)) => format!("{name} (follows {upstream})"),
        None => name.to_owned(),
    };
    note.map_or(name.clone(), |note| format!("{name} ({note})"))
}

fn main_branch(refs: &str) -> Option<String> {
    let line = |name: &str| refs.lines().find(|line| line.split(' ').next() == Some(name));
    let origin = line("refs/remotes/origin/HEAD").and_then(|line| line.rsplit("refs/remotes/origin/").next());
    let origin = origin.filter(|name| !name.is_empty() && *name != "HEAD").map(|name| name.trim().to_owned());
    let local = |name: &str| line(&format!("refs/heads/{name}")).map(|_| name.to_owned());
    origin.or_else(|| local("main")).or_else(|| local("master"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entry_keeps_its_leading_space_and_a_rename_is_one_entry() {
        let text = "## main...origin/main [ahead 1]\0 M a b.rs\0R  new\0old\0?? dir/\0";
        let (branch, entries) = parse_status(text);
        assert_eq!(branch.as_deref(), Some("main (follows origin/main [ahead 1])"));
        let entries: Vec<_> =
            entries.iter().map(|entry| (entry.code.as_str(), entry.path.as_str())).collect();
        assert_eq!(entries, [(" M", "a b.rs"), ("R ", "new"), ("??", "dir/")]);
    }

    #[test]
    fn a_fresh_and_a_detached_repository_have_names_too() {
        assert_eq!(branch_name("No commits yet on main"), "main (no commits yet)");
        assert_eq!(branch_name("HEAD (no branch)"), "no branch (detached HEAD)");
    }

    #[test]
    fn the_main_branch_is_what_the_remote_says_else_what_is_there() {
        let remote = "refs/remotes/origin/HEAD refs/remotes/origin/trunk\nrefs/heads/main \n";
        assert_eq!(main_branch(remote).as_deref(), Some("trunk"));
        assert_eq!(main_branch("refs/heads/master \n").as_deref(), Some("master"));
        assert_eq!(main_branch(""), None);
    }
}
