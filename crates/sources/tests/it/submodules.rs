//! Repositories inside repositories: their files come along, from addresses of the kinds that sources may have.

use std::path::Path;

use amplifier_sources::cache::Selection;
use amplifier_sources::error::FetchError;
use amplifier_sources::limits::Limits;

use crate::support::{Repo, World, commit_of, fetch, read};

/// Puts a repository into another, at a commit, under an address that nobody looks at yet.
fn put(repo: &Repo, name: &str, url: &str, commit: &str) -> String {
    std::fs::write(
        repo.path.join(".gitmodules"),
        format!("[submodule \"{name}\"]\n\tpath = {name}\n\turl = {url}\n"),
    )
    .unwrap();
    repo.run(&["add", ".gitmodules"]);
    repo.run(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},{name}")]);
    repo.run(&["commit", "--quiet", "--message", "in"]);
    repo.run(&["rev-parse", "HEAD"]).trim().to_owned()
}

fn git_names(dir: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() == ".git" {
            found.push(entry.path().display().to_string());
        } else if entry.file_type().unwrap().is_dir() {
            git_names(&entry.path(), found);
        }
    }
}

#[tokio::test]
async fn the_files_of_repositories_inside_come_along_at_their_commit() {
    let world = World::new();
    let inner = world.repo("repos/inner");
    let wanted = inner.commit(&[("deep.txt", "as it was\n")]);
    inner.commit(&[("deep.txt", "as it is\n")]);
    let middle = world.repo("repos/middle");
    middle.commit(&[("mid.txt", "m\n")]);
    let middle_commit = put(&middle, "inner", "../inner", &wanted);
    let outer = world.repo("repos/outer");
    outer.commit(&[("bundle.md", "o\n")]);
    let commit = put(&outer, "parts", &format!("file://{}", middle.path.display()), &middle_commit);
    let fetcher = world.fetcher();
    let fetched = fetch(&fetcher, &outer.uri("@main"), &world.cx()).await.unwrap();
    assert_eq!(commit_of(&fetched), commit);
    assert_eq!(read(fetched.path.join("bundle.md")), "o\n");
    assert_eq!(read(fetched.path.join("parts/mid.txt")), "m\n");
    assert_eq!(read(fetched.path.join("parts/inner/deep.txt")), "as it was\n");
    let mut left = Vec::new();
    git_names(&fetched.root, &mut left);
    assert_eq!(left, [""; 0], "nothing of git's own stays");
    let part = fetch(&fetcher, &outer.uri("@main#subdirectory=parts/inner"), &world.cx()).await.unwrap();
    assert_eq!(read(part.path.join("deep.txt")), "as it was\n");
    let verdicts = fetcher.cache().verify(&Selection::All, &Limits::default()).unwrap();
    assert!(verdicts.iter().all(|verdict| verdict.problems.is_empty()), "{verdicts:?}");
}

#[tokio::test]
async fn an_address_that_would_run_a_program_is_refused_and_nothing_is_kept() {
    let world = World::new();
    let inner = world.repo("repos/inner");
    let wanted = inner.commit(&[("x", "x\n")]);
    let outer = world.repo("repos/outer");
    outer.commit(&[("bundle.md", "o\n")]);
    let mark = world.path("ran");
    let commit = put(&outer, "evil", &format!("ext::sh -c \"touch {}\"", mark.display()), &wanted);
    let error = fetch(&world.fetcher(), &outer.uri("@main"), &world.cx()).await.unwrap_err();
    assert!(matches!(&error, FetchError::Git { action: "fetch the submodules of", .. }), "{error:?}");
    assert!(error.to_string().contains("repos/outer"), "{error}");
    assert!(!mark.exists(), "the program was run");
    assert!(!world.path("cache/git").join(commit).exists());
}

#[tokio::test]
async fn a_repository_inside_that_cannot_be_had_is_an_error_and_no_empty_folder() {
    let world = World::new();
    let inner = world.repo("repos/inner");
    let wanted = inner.commit(&[("x", "x\n")]);
    let outer = world.repo("repos/outer");
    outer.commit(&[("bundle.md", "o\n")]);
    let commit = put(&outer, "gone", "../gone", &wanted);
    let error = fetch(&world.fetcher(), &outer.uri("@main"), &world.cx()).await.unwrap_err();
    assert!(matches!(&error, FetchError::Git { action: "fetch the submodules of", .. }), "{error:?}");
    assert!(!world.path("cache/git").join(commit).exists());
}
