//! The branch that others build on, from the files that git keeps branches in: a process less for every turn.

use std::path::Path;

/// The largest list of packed branches that is looked through here.
const MOST: u64 = 1024 * 1024;

/// What the files say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MainBranch {
    Known(Option<String>),
    /// Branches are kept in another way than in files, or there are very many: git must be asked.
    Unknown,
}

/// Reads the files of a repository; `shared` is what all its work trees share.
pub(super) fn main_branch(shared: &Path) -> MainBranch {
    if shared.join("reftable").exists() {
        return MainBranch::Unknown;
    }
    // Symbolic names are always files of their own.
    let origin = text(&shared.join("refs/remotes/origin/HEAD"));
    let origin = origin.trim().strip_prefix("ref: refs/remotes/origin/").map(str::to_owned);
    if origin.is_some() {
        return MainBranch::Known(origin);
    }
    let packed = shared.join("packed-refs");
    let length = std::fs::metadata(&packed).map_or(0, |metadata| metadata.len());
    if length > MOST {
        return MainBranch::Unknown;
    }
    let packed = text(&packed);
    let has = |name: &str| {
        let branch = format!("refs/heads/{name}");
        shared.join(&branch).is_file() || packed.lines().any(|line| line.split(' ').nth(1) == Some(&branch))
    };
    MainBranch::Known(["main", "master"].iter().find(|name| has(name)).map(|name| (*name).to_owned()))
}

/// A file; nothing where there is none. What would make its reader wait is none.
fn text(path: &Path) -> String {
    let is_file = path.is_file();
    is_file.then(|| std::fs::read_to_string(path).ok()).flatten().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use amplifier_git::Repository;

    use super::*;

    fn git(dir: &Path, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=A", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false"]);
        let done = git.args(arguments).current_dir(dir).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    fn known(name: &str) -> MainBranch {
        MainBranch::Known(Some(name.to_owned()))
    }

    #[test]
    fn the_main_branch_is_found_loose_packed_in_a_linked_tree_and_behind_origin() {
        let dir = tempfile::tempdir().unwrap();
        let (first, linked, clone) = (dir.path().join("a"), dir.path().join("b"), dir.path().join("c"));
        std::fs::create_dir(&first).unwrap();
        git(&first, &["init", "--quiet", "--initial-branch", "master"]);
        assert_eq!(main_branch(&first.join(".git")), MainBranch::Known(None), "no commit, no branch");
        git(&first, &["commit", "--quiet", "--allow-empty", "--message", "one"]);
        assert_eq!(main_branch(&first.join(".git")), known("master"));
        git(&first, &["worktree", "add", "--quiet", "-b", "side", &linked.display().to_string()]);
        git(&first, &["pack-refs", "--all"]);
        assert!(!first.join(".git/refs/heads/master").exists());
        assert_eq!(main_branch(&first.join(".git")), known("master"));
        assert_eq!(main_branch(Repository::at(&linked).unwrap().common_dir()), known("master"));
        git(&first, &["branch", "trunk"]);
        git(&first, &["symbolic-ref", "HEAD", "refs/heads/trunk"]);
        git(dir.path(), &["clone", "--quiet", "a", "c"]);
        assert_eq!(main_branch(&clone.join(".git")), known("trunk"), "what origin calls so comes first");
        std::fs::create_dir(clone.join(".git/reftable")).unwrap();
        assert_eq!(main_branch(&clone.join(".git")), MainBranch::Unknown);
    }
}
