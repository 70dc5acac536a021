//! Getting commits with the git command line: which commit a name stands for, and the files of a commit.
//!
//! It is the user's git, with the user's configuration: credential helpers, `insteadOf`, proxies and certificates work.
//! It runs no hook and asks no question; `amplifier-git` sees to that. Where the files end up is the cache's business.

mod command;
mod progress;

use std::path::{Path, PathBuf};

use crate::cache::{Cache, Store};
use crate::error::FetchError;
use crate::fetch::FetchContext;
use crate::limits::Limits;
use crate::progress::Stage;
use crate::uri::{GitTransport, GitUri};

pub use amplifier_git::Git;
use command::{Fault, Run, Ssh, run};

/// A full commit id: 40 or 64 lower-case hex digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommitId(String);

impl CommitId {
    /// A text that is a full commit id, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        let full = matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit());
        full.then(|| Self(text.to_ascii_lowercase()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for CommitId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl GitUri {
    /// The commit it is pinned to, if it is.
    pub fn pinned(&self) -> Option<CommitId> {
        self.reference.as_deref().and_then(CommitId::parse)
    }
}

/// One repository, asked on behalf of one fetch.
pub(crate) struct Remote<'a> {
    program: &'a Git,
    uri: &'a GitUri,
    limits: &'a Limits,
    cx: &'a FetchContext,
    address: String,
    shown: String,
}

/// What git said when it could not do something, and whether that settles it.
struct Refusal {
    message: String,
    error: FetchError,
}

impl<'a> Remote<'a> {
    pub(crate) fn new(program: &'a Git, uri: &'a GitUri, limits: &'a Limits, cx: &'a FetchContext) -> Self {
        let relative = uri.transport == GitTransport::File
            && (uri.path.starts_with("./") || uri.path.starts_with("../"));
        let address = if relative {
            format!("file://{}", crate::file::clean(&cx.base.folder.join(&uri.path)).display())
        } else {
            uri.address()
        };
        Self { program, uri, limits, cx, address, shown: uri.to_string() }
    }

    /// What is asked for, as a name in the cache: no credentials, no part of it.
    pub(crate) fn name(&self) -> String {
        format!("{}@{}", self.address, self.uri.reference.as_deref().unwrap_or("HEAD"))
    }

    /// The commit that the ref stands for now. A branch comes before a tag of the same name, as with `git clone`.
    pub(crate) async fn resolve(&self, cache: &Cache) -> Result<CommitId, FetchError> {
        self.cx.tell(&self.shown, Stage::Resolving);
        let reference = self.uri.reference.as_deref().unwrap_or("HEAD");
        let names = match reference {
            "HEAD" => vec!["HEAD".to_owned()],
            name if name.starts_with("refs/") => vec![format!("{name}^{{}}"), name.to_owned()],
            name => vec![
                format!("refs/heads/{name}"),
                format!("refs/tags/{name}^{{}}"),
                format!("refs/tags/{name}"),
            ],
        };
        let mut arguments = vec!["ls-remote", "--quiet", self.address.as_str()];
        arguments.extend(names.iter().map(String::as_str));
        let answer = self.ask("look up the refs of", None, &arguments, self.limits.git_query).await?;
        let find = |name: &String| {
            let mut lines = answer.lines().filter_map(|line| line.split_once('\t'));
            lines.find(|(_, found)| found == name).and_then(|(commit, _)| CommitId::parse(commit))
        };
        if let Some(commit) = names.iter().find_map(find) {
            return Ok(commit);
        }
        let short = (4..40).contains(&reference.len()) && reference.bytes().all(|b| b.is_ascii_hexdigit());
        if short {
            return self.complete(reference, cache).await;
        }
        Err(FetchError::RefNotFound { uri: self.shown.clone(), reference: reference.to_owned() })
    }

    /// The full id of a shortened commit. No server completes one, so the history is looked through here.
    async fn complete(&self, prefix: &str, cache: &Cache) -> Result<CommitId, FetchError> {
        let scratch = cache.scratch(Store::Git)?;
        let repo = scratch.path();
        self.init(repo, prefix.len()).await?;
        // Servers that know filters send the history without the files; the others send all of it.
        self.fetch_all(repo, &["--filter=tree:0"]).await.map_err(|refusal| refusal.error)?;
        let question = format!("{prefix}^{{commit}}");
        let arguments = ["rev-parse", "--verify", "--end-of-options", &question];
        match self.run(Some(repo), &arguments, self.limits.git_query).await {
            Ok(answer) => CommitId::parse(answer.trim()).ok_or_else(|| self.no_commit(prefix, "")),
            Err(Fault::Refused { stderr, .. }) if stderr.contains("ambiguous") => {
                Err(FetchError::AmbiguousCommit { uri: self.shown.clone(), prefix: prefix.to_owned() })
            }
            Err(Fault::Refused { .. }) => {
                Err(self.no_commit(prefix, "no commit of the repository begins so"))
            }
            Err(fault) => Err(self.error("look into", fault)),
        }
    }

    /// Puts the files of a commit into a new folder below `scratch`, without git's own folder.
    pub(crate) async fn check_out(&self, commit: &CommitId, scratch: &Path) -> Result<PathBuf, FetchError> {
        let tree = scratch.join("tree");
        self.init(&tree, commit.as_str().len()).await?;
        if let Err(refusal) = self.fetch_one(&tree, commit).await {
            if !asks_for_more(&refusal.message) {
                return Err(refusal.error);
            }
            // Old or plain servers give only what they advertise, or nothing shallow; then all of it is needed.
            self.fetch_all(&tree, &[]).await.map_err(|refusal| refusal.error)?;
            self.must_have(commit, &tree).await?;
        }
        let arguments = ["checkout", "--quiet", "--force", "--detach", commit.as_str(), "--"];
        self.ask("check out a commit of", Some(&tree), &arguments, self.limits.git_fetch).await?;
        self.bring_submodules(&tree).await?;
        let git_folder = tree.join(".git");
        let head = git_folder.join("HEAD");
        let head = std::fs::read_to_string(&head).map_err(FetchError::at("read", &head))?;
        if head.trim() != commit.as_str() {
            return Err(self.no_commit(commit.as_str(), &format!("git gave {} instead", head.trim())));
        }
        std::fs::rename(&git_folder, scratch.join("git"))
            .map_err(FetchError::in_cache("move", &git_folder))?;
        Ok(tree)
    }

    /// What a commit says about repositories inside it is part of it: their files come along, from addresses of the kinds
    /// that sources may have. What would run a program, or reach from elsewhere into this machine, is refused by git.
    async fn bring_submodules(&self, tree: &Path) -> Result<(), FetchError> {
        if !tree.join(".gitmodules").is_file() {
            return Ok(());
        }
        // Relative addresses are relative to where the commit came from.
        let origin = ["config", "remote.origin.url", self.address.as_str()];
        self.ask("prepare the submodules of", Some(tree), &origin, self.limits.git_query).await?;
        let mut kinds = vec!["https", "ssh"];
        match self.uri.transport {
            GitTransport::File => kinds.extend(["http", "file"]),
            GitTransport::Http => kinds.push("http"),
            GitTransport::Https | GitTransport::Ssh => {}
        }
        let kinds: Vec<_> = kinds.into_iter().map(|kind| format!("protocol.{kind}.allow=always")).collect();
        let mut arguments = vec!["-c", "protocol.allow=never"];
        arguments.extend(kinds.iter().flat_map(|kind| ["-c", kind.as_str()]));
        arguments.extend(["submodule", "update", "--init", "--recursive", "--checkout", "--force"]);
        let shallow = [arguments.as_slice(), &["--depth=1"]].concat();
        let longest = self.limits.git_fetch;
        if self.with_attempts(Some(tree), &shallow, longest).await.is_err() {
            // Old or plain servers give nothing shallow.
            self.ask("fetch the submodules of", Some(tree), &arguments, longest).await?;
        }
        drop_git_links(tree).map_err(FetchError::in_cache("tidy", tree))
    }

    async fn must_have(&self, commit: &CommitId, repo: &Path) -> Result<(), FetchError> {
        let exists = format!("{commit}^{{commit}}");
        match self.run(Some(repo), &["cat-file", "-e", &exists], self.limits.git_query).await {
            Ok(_) => Ok(()),
            Err(Fault::Refused { .. }) => {
                Err(self.no_commit(commit.as_str(), "the repository does not have it"))
            }
            Err(fault) => Err(self.error("look into", fault)),
        }
    }

    async fn init(&self, repo: &Path, digits: usize) -> Result<(), FetchError> {
        let format = if digits > 40 { "--object-format=sha256" } else { "--object-format=sha1" };
        std::fs::create_dir_all(repo).map_err(FetchError::in_cache("create", repo))?;
        // Without a template there are no hooks to begin with.
        let arguments = ["init", "--quiet", "--template=", "--initial-branch=none", format];
        self.ask("prepare a folder for", Some(repo), &arguments, self.limits.git_query).await.map(drop)
    }

    async fn fetch_one(&self, repo: &Path, commit: &CommitId) -> Result<(), Refusal> {
        let options = ["--depth=1", "--no-tags", self.address.as_str(), commit.as_str()];
        self.fetch(repo, &options).await
    }

    async fn fetch_all(&self, repo: &Path, options: &[&str]) -> Result<(), Refusal> {
        let mut arguments = vec!["--no-tags"];
        arguments.extend(options);
        arguments.extend([
            self.address.as_str(),
            "+refs/heads/*:refs/remotes/all/*",
            "+refs/tags/*:refs/tags/*",
        ]);
        self.fetch(repo, &arguments).await
    }

    async fn fetch(&self, repo: &Path, options: &[&str]) -> Result<(), Refusal> {
        let mut arguments = vec!["fetch", "--progress", "--no-recurse-submodules", "--no-write-fetch-head"];
        arguments.extend(options);
        let ran = self.with_attempts(Some(repo), &arguments, self.limits.git_fetch).await;
        ran.map(drop).map_err(|fault| {
            let message = match &fault {
                Fault::Refused { stderr } => stderr.clone(),
                _ => String::new(),
            };
            Refusal { message, error: self.error("fetch", fault) }
        })
    }

    async fn ask(
        &self,
        action: &'static str,
        repo: Option<&Path>,
        arguments: &[&str],
        longest: std::time::Duration,
    ) -> Result<String, FetchError> {
        self.with_attempts(repo, arguments, longest).await.map_err(|fault| self.error(action, fault))
    }

    /// Asks again after failures that may pass. A command that was too slow is not asked again: it would be slow again.
    async fn with_attempts(
        &self,
        repo: Option<&Path>,
        arguments: &[&str],
        longest: std::time::Duration,
    ) -> Result<String, Fault> {
        let mut attempt = 1;
        loop {
            let because = match self.run(repo, arguments, longest).await {
                Err(Fault::Refused { stderr }) if may_pass(&stderr) && attempt < self.limits.git_attempts => {
                    stderr
                }
                ended => return ended,
            };
            attempt += 1;
            self.cx.tell(&self.shown, Stage::Retrying { attempt, because });
            let pause = std::time::Duration::from_millis(250) * 3_u32.saturating_pow(attempt - 2);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.cx.cancel.cancelled(amplifier_core::cancel::CancelLevel::Graceful) => {
                    return Err(Fault::Cancelled);
                }
            }
        }
    }

    async fn run(
        &self,
        repo: Option<&Path>,
        arguments: &[&str],
        longest: std::time::Duration,
    ) -> Result<String, Fault> {
        let listen = |phase: &str, percent| {
            self.cx.tell(&self.shown, Stage::Git { phase: phase.to_owned(), percent });
        };
        let call =
            Run { repo, arguments, longest, uri: self.uri, cancel: &self.cx.cancel, ssh: Ssh::AsConfigured };
        let talks = matches!(arguments.first(), Some(&("fetch" | "ls-remote")));
        if self.uri.transport != GitTransport::Ssh || !talks {
            return run(self.program, call, listen).await;
        }
        let question = ["config", "--get", "core.sshCommand"];
        match run(self.program, Run { arguments: &question, ..call }, |_, _| ()).await {
            // Nothing is configured.
            Err(Fault::Refused { .. }) => run(self.program, Run { ssh: Ssh::Batch, ..call }, listen).await,
            Err(fault) => Err(fault),
            Ok(_) => run(self.program, call, listen).await,
        }
    }

    fn error(&self, action: &'static str, fault: Fault) -> FetchError {
        let uri = self.shown.clone();
        match fault {
            Fault::Start(source) => {
                FetchError::GitMissing { program: self.program.program().to_owned(), source }
            }
            Fault::Late(after) => FetchError::TimedOut { uri, action, after },
            Fault::Cancelled => FetchError::Cancelled { uri },
            Fault::Read(error) => FetchError::Git { uri, action, message: error.to_string() },
            Fault::Refused { stderr } => FetchError::Git { uri, action, message: stderr },
        }
    }

    fn no_commit(&self, commit: &str, message: &str) -> FetchError {
        FetchError::CommitNotFound {
            uri: self.shown.clone(),
            commit: commit.to_owned(),
            message: message.to_owned(),
        }
    }
}

/// Removes what git leaves in each submodule to find its own folder. No commit can hold such a name.
fn drop_git_links(tree: &Path) -> std::io::Result<()> {
    let mut open = vec![tree.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let is_top = folder == tree;
            let kind = entry.file_type()?;
            if entry.file_name() == ".git" && !is_top {
                std::fs::remove_file(entry.path())?;
            } else if kind.is_dir() && !(is_top && entry.file_name() == ".git") {
                open.push(entry.path());
            }
        }
    }
    Ok(())
}

/// Whether a server refused one commit in a way that leaves open whether it has it.
fn asks_for_more(message: &str) -> bool {
    let signs = ["not our ref", "unadvertised object", "shallow", "find remote ref", "dumb http"];
    signs.iter().any(|sign| message.contains(sign))
}

/// Whether a failure is of the kind that passes by itself.
fn may_pass(message: &str) -> bool {
    let signs = [
        "Could not resolve host",
        "Connection reset",
        "Connection timed out",
        "Operation timed out",
        "early EOF",
        "RPC failed",
        "unexpected disconnect",
        "remote end hung up",
        "The requested URL returned error: 5",
        "HTTP 429",
    ];
    // A repository that is not there closes the connection too, and says so.
    let settled = ["not our ref", "does not appear to be a git repository", "Permission denied", "not found"];
    signs.iter().any(|sign| message.contains(sign)) && !settled.iter().any(|sign| message.contains(sign))
}
