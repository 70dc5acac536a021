//! Asking git how a repository stands. What the repository configures does not run; `amplifier-git` sees to that.

use std::time::Duration;

use amplifier_git::{Call, Git, Inspected, Place, Repository};

use super::Config;
use super::refs::MainBranch;
use crate::environment;

/// The most output of one command that is read.
const MOST: u64 = 1024 * 1024;
/// The most bytes of a complaint that are kept.
const MOST_COMPLAINT: usize = 4_096;

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

/// Asks git about a repository, and about its main branch where that is not known.
pub(super) async fn read(
    repository: Repository,
    wanted: &Wanted,
    main: MainBranch,
    timeout: Duration,
) -> Repo {
    let git = Git::new(environment::own().clone());
    let mut complaint = Complaint::default();
    let inspected = match git.inspect(repository, timeout, |bytes| complaint.push(bytes)).await {
        Ok(inspected) => inspected,
        Err(fault) => {
            return Repo { exists: true, fault: Some(complaint.told(&fault)), ..Repo::default() };
        }
    };
    let run = async |arguments: &[&str]| run(&git, &inspected, arguments, timeout).await;
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
        run(status),
        async { if wanted.commits > 0 { run(&log).await } else { Ok(String::new()) } },
        async {
            match main {
                _ if !wanted.main_branch => None,
                MainBranch::Known(name) => name,
                MainBranch::Unknown => main_branch(&run(&refs).await.unwrap_or_default()),
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
        Err(fault) => repo.fault = Some(fault),
    }
    // A repository without a commit has no log; that is no fault.
    repo.commits = log.unwrap_or_default().lines().map(str::to_owned).collect();
    repo.main_branch = main_branch;
    repo
}

async fn run(
    git: &Git,
    inspected: &Inspected,
    arguments: &[&str],
    timeout: Duration,
) -> Result<String, String> {
    let mut complaint = Complaint::default();
    let place = Place::Read(inspected);
    let call = Call { place, arguments, variables: &[], longest: timeout, most: MOST };
    match git.run(call, |bytes| complaint.push(bytes)).await {
        // What is longer is used as far as it was read.
        Ok(output) => Ok(output.text),
        Err(fault) => Err(complaint.told(&fault)),
    }
}

/// The beginning of what git printed as an error.
#[derive(Default)]
struct Complaint(Vec<u8>);

impl Complaint {
    fn push(&mut self, bytes: &[u8]) {
        let room = MOST_COMPLAINT.saturating_sub(self.0.len()).min(bytes.len());
        self.0.extend_from_slice(bytes.get(..room).unwrap_or_default());
    }

    fn told(&self, fault: &amplifier_git::Fault) -> String {
        let text = String::from_utf8_lossy(&self.0);
        match (fault, text.lines().next()) {
            (amplifier_git::Fault::Refused, Some(line)) => format!("{fault}: {line}"),
            _ => fault.to_string(),
        }
    }
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
