//! What makes a directory the top of a repository, and where git keeps what it knows about it. Reads files, runs nothing.
//!
//! A `.git` may be a link or a file that names another directory. It counts only if that directory belongs to this work
//! tree, so that no directory passes for the top of another repository of the user or shows what is in it.

use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest file that names a directory.
const MOST: u64 = 4096;
/// What git reads of its own directory: a link there may not lead out of it.
const READ: [&str; 11] = [
    "HEAD",
    "index",
    "config",
    "config.worktree",
    "objects",
    "refs",
    "packed-refs",
    "info",
    "logs",
    "shallow",
    "reftable",
];

/// A repository with a work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    work_tree: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    owner: Owner,
}

/// Whose repository it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    User,
    /// Another user of the machine.
    Other,
}

impl Repository {
    /// The repository that has its top in this directory.
    pub fn at(directory: &Path) -> Option<Self> {
        let written = directory.join(".git");
        let about = std::fs::symlink_metadata(&written).ok()?;
        let work_tree = directory.canonicalize().ok()?;
        let (git_dir, is_moved) = match about.is_file() {
            true => {
                (work_tree.join(line(&written)?.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?, true)
            }
            false => (written.canonicalize().ok()?, about.is_symlink()),
        };
        if is_moved && !belongs(&work_tree, &git_dir) {
            return None;
        }
        let common_dir = common_dir(&git_dir)?;
        let leads_out = |path: PathBuf| {
            path.is_symlink() && !path.canonicalize().is_ok_and(|real| real.starts_with(&common_dir))
        };
        let shared = Some(&common_dir).filter(|common| **common != git_dir);
        let is_linked = [Some(&git_dir), shared]
            .into_iter()
            .flatten()
            .any(|directory| READ.iter().any(|name| leads_out(directory.join(name))));
        let is_whole = git_dir.join("HEAD").is_file() && !is_linked;
        is_whole.then_some(Self { work_tree, git_dir, common_dir, owner: owner(&about) })
    }

    /// The repository that a directory lies in.
    pub fn around(directory: &Path) -> Option<Self> {
        directory.ancestors().find_map(Self::at)
    }

    /// The top of its files.
    pub fn work_tree(&self) -> &Path {
        &self.work_tree
    }

    /// What belongs to this work tree: its `HEAD` and index.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// What all work trees share: objects, branches and the configuration.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    pub fn owner(&self) -> Owner {
        self.owner
    }
}

/// Whether the `.git` in a directory leads to a repository at all.
pub(crate) fn has_head(directory: &Path) -> bool {
    let written = directory.join(".git");
    let named = || Some(directory.join(line(&written)?.strip_prefix("gitdir:")?.trim()));
    let git_dir = if written.is_file() { named().unwrap_or(written) } else { written };
    git_dir.join("HEAD").exists()
}

/// Whether a directory that `.git` leads to is that of this work tree: it lies inside, it is a linked work tree that names
/// this one, or a submodule of the repository above.
fn belongs(work_tree: &Path, git_dir: &Path) -> bool {
    let names_it = || {
        let named = line(&git_dir.join("gitdir"))?;
        let named = git_dir.join(named.trim());
        Some(named.parent()?.canonicalize().ok()? == work_tree)
    };
    let is_submodule = || {
        let above = work_tree.parent().and_then(Repository::around);
        above.is_some_and(|above| git_dir.starts_with(above.git_dir.join("modules")))
    };
    git_dir.starts_with(work_tree) || names_it().unwrap_or(false) || is_submodule()
}

/// What a git directory shares with other work trees; `None` if it says that this is somewhere it does not lie in.
fn common_dir(git_dir: &Path) -> Option<PathBuf> {
    let written = git_dir.join("commondir");
    if std::fs::symlink_metadata(&written).is_err() {
        return Some(git_dir.to_path_buf());
    }
    let common = git_dir.join(line(&written)?.trim()).canonicalize().ok()?;
    git_dir.starts_with(common.join("worktrees")).then_some(common)
}

/// A short file of one line.
fn line(path: &Path) -> Option<String> {
    let about = std::fs::symlink_metadata(path).ok()?;
    let mut text = String::new();
    let file = File::open(path).ok().filter(|_| about.is_file())?;
    file.take(MOST).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(unix)]
fn owner(about: &Metadata) -> Owner {
    use std::os::unix::fs::MetadataExt;
    if about.uid() == rustix::process::geteuid().as_raw() { Owner::User } else { Owner::Other }
}

#[cfg(not(unix))]
fn owner(_about: &Metadata) -> Owner {
    Owner::User
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    fn git(directory: &Path, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=A", "-c", "user.email=a@localhost", "-c", "protocol.file.allow=always"]);
        let done = git.args(arguments).current_dir(directory).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    fn made(root: &Path, name: &str) -> PathBuf {
        let directory = root.join(name);
        std::fs::create_dir(&directory).unwrap();
        git(&directory, &["init", "--quiet", "--initial-branch=main"]);
        git(&directory, &["commit", "--quiet", "--allow-empty", "--message=one"]);
        directory
    }

    #[test]
    fn linked_work_trees_and_submodules_are_repositories() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let (main, other) = (made(&root, "main"), made(&root, "other"));
        git(&main, &["worktree", "add", "--quiet", "-b", "side", "../linked"]);
        git(&main, &["submodule", "--quiet", "add", "../other", "sub"]);
        let at = |path: &str| Repository::at(&root.join(path)).unwrap();
        assert_eq!(at("main").git_dir(), main.join(".git"));
        assert_eq!(at("linked").common_dir(), main.join(".git"));
        assert_eq!(at("main/sub").git_dir(), main.join(".git/modules/sub"));
        assert_eq!(Repository::around(&other.join(".git/refs")).unwrap().work_tree(), other);
        assert_eq!(at("main").owner(), Owner::User);
    }

    #[test]
    fn a_directory_that_leads_into_another_repository_is_none() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let private = made(&root, "private");
        git(&private, &["worktree", "add", "--quiet", "-b", "side", "../linked"]);
        let at = |name: &str, make: &dyn Fn(&Path)| {
            let directory = root.join(name);
            std::fs::create_dir(&directory).unwrap();
            make(&directory);
            Repository::at(&directory)
        };
        let file = |target: &Path| format!("gitdir: {}\n", target.display());
        let write = |path: PathBuf, text: String| std::fs::write(path, text).unwrap();
        assert_eq!(at("empty", &|top| std::fs::create_dir(top.join(".git")).unwrap()), None);
        assert_eq!(at("file", &|top| write(top.join(".git"), file(&private.join(".git")))), None);
        assert_eq!(
            at("tree", &|top| write(top.join(".git"), file(&private.join(".git/worktrees/linked")))),
            None
        );
        assert_eq!(at("link", &|top| symlink(private.join(".git"), top.join(".git")).unwrap()), None);
        let shared = |top: &Path| {
            std::fs::create_dir(top.join(".git")).unwrap();
            write(top.join(".git/HEAD"), "ref: refs/heads/main\n".to_owned());
            write(top.join(".git/commondir"), private.join(".git").display().to_string());
        };
        assert_eq!(at("shared", &shared), None);
        let parts = |top: &Path| {
            std::fs::create_dir(top.join(".git")).unwrap();
            write(top.join(".git/HEAD"), "ref: refs/heads/main\n".to_owned());
            symlink(private.join(".git/refs"), top.join(".git/refs")).unwrap();
        };
        assert_eq!(at("parts", &parts), None);
        // A directory of its own may lie anywhere inside.
        let own = |top: &Path| {
            git(top, &["init", "--quiet", "--separate-git-dir=.bare", "."]);
        };
        assert!(at("own", &own).is_some());
    }
}
