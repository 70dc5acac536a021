//! The project's own words about how to work in it: `AGENTS.md` of the working folder, of the folders above it in the same
//! repository, and of those below. It finds files; reading them is the prompt's.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use crate::trust::{Trust, top_of};

/// What such a file is called.
pub const FILE: &str = "AGENTS.md";
/// How many files below the working folder are taken.
const MOST_BELOW: usize = 20;
/// How deep they may lie.
const DEEPEST: usize = 6;
/// How many folders and files are looked at for them; a home folder is not searched to its end.
const MOST_LOOKED_AT: usize = 20_000;

/// The files, the outermost first: what is nearer to the work comes later and counts more.
pub fn find(working_dir: &Path, home: Option<&Path>, trust: &Trust) -> Vec<PathBuf> {
    let Ok(working_dir) = working_dir.canonicalize() else { return Vec::new() };
    let home = home.and_then(|home| home.canonicalize().ok());
    let top = top_of(&working_dir, home.as_deref());
    let root = trust.project().map_or(top, |project| project.root.as_path());
    let mut above: Vec<_> = working_dir.ancestors().take_while(|dir| dir.starts_with(top)).collect();
    above.reverse();
    let mut files: Vec<_> = above.into_iter().map(|dir| dir.join(FILE)).collect();
    files.extend(below(&working_dir));
    // A link may not bring in what lies outside of the project, unless the user saw that.
    let stays = |file: &Path| {
        let border = if file.starts_with(root) { root } else { top };
        file.canonicalize().is_ok_and(|real| real.starts_with(border)) || trust.allows_link(file)
    };
    files.retain(|file| file.is_file() && stays(file));
    files
}

/// How a file is called in the prompt: from the working folder.
pub fn label(file: &Path, working_dir: &Path) -> String {
    let real = working_dir.canonicalize().unwrap_or_else(|_| working_dir.to_path_buf());
    file.strip_prefix(&real).map_or_else(|_| file.display().to_string(), |below| below.display().to_string())
}

fn below(working_dir: &Path) -> Vec<PathBuf> {
    let walk = WalkBuilder::new(working_dir)
        .max_depth(Some(DEEPEST))
        .require_git(false)
        .follow_links(false)
        .sort_by_file_name(std::cmp::Ord::cmp)
        .filter_entry(|entry| entry.file_name() != "node_modules")
        .build();
    walk.take(MOST_LOOKED_AT)
        // What may not be looked into is none of the project's words.
        .filter_map(Result::ok)
        .filter(|entry| entry.depth() > 1 && entry.file_name() == FILE)
        .map(ignore::DirEntry::into_path)
        .take(MOST_BELOW)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_above_in_the_repository_and_below_are_found_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["repo/.git", "repo/a/b/c", "repo/a/out", "repo/a/.hidden", "repo/a/node_modules/x"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        for folder in
            ["", "repo", "repo/a", "repo/a/b/c", "repo/a/out", "repo/a/.hidden", "repo/a/node_modules/x"]
        {
            std::fs::write(root.join(folder).join(FILE), folder).unwrap();
        }
        std::fs::write(root.join("repo/a/.gitignore"), "out/\n").unwrap();
        std::fs::write(root.join("repo/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let work = root.join("repo/a");
        let labels: Vec<_> =
            find(&work, None, &Trust::default()).iter().map(|file| label(file, &work)).collect();
        assert_eq!(
            labels,
            [root.join("repo/AGENTS.md").display().to_string().as_str(), "AGENTS.md", "b/c/AGENTS.md"]
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_project_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        std::fs::write(dir.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink("../secret", dir.path().join("work/AGENTS.md")).unwrap();
        assert!(find(&dir.path().join("work"), None, &Trust::default()).is_empty());
    }
}
