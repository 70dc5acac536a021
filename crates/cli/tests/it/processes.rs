//! Many processes prepare the same bundle in a cold cache: one fetch of each source, the same plan, nothing broken.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use crate::desk::{Desk, Ran, git_variables};

const PROCESSES: usize = 20;

/// Two repositories with nested bundles, tags and a subdirectory, and a bundle that includes them three times.
fn desk() -> Desk {
    let desk = Desk::new();
    let pages = "page\n".repeat(2_000);
    let (lib, commit) = desk.commit(
        "lib",
        &[
            ("bundle.md", "---\nbundle: {name: lib}\nincludes: [lib:parts/x, ./nested]\n---\nLib.\n"),
            ("parts/x.yaml", "bundle: {name: x}\ntools: [{module: tool-todo}]\n"),
            ("nested/bundle.yaml", "bundle: {name: nested}\ntools: [{module: tool-search}]\n"),
            ("docs/pages.md", &pages),
        ],
    );
    let (more, _) = desk.commit(
        "more",
        &[
            ("deep/bundle.yaml", "bundle: {name: more}\nincludes: [./y.yaml]\n"),
            ("deep/y.yaml", "bundle: {name: y}\nhooks: [{module: hooks-logging}]\n"),
        ],
    );
    let pinned = lib.replace("@main", &format!("@{commit}#subdirectory=nested"));
    desk.file("b/bundle.yaml", format!("bundle: {{name: mine}}\nincludes: [minimal, \"{lib}\", \"{more}#subdirectory=deep\", \"{pinned}\"]\n"));
    desk
}

/// A `git` that writes down what it is asked to do, and then does it.
fn counting_git(desk: &Desk) -> (PathBuf, PathBuf) {
    let (bin, log) = (desk.path("bin"), desk.path("git.log"));
    std::fs::create_dir_all(&bin).unwrap();
    let path = git_variables(&desk.path("user")).into_iter().find(|(name, _)| name == "PATH").unwrap().1;
    let real = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file());
    let real = real.expect("git is needed for this test; install it");
    let script = format!("#!/bin/sh\necho \"$@\" >> '{}'\nexec '{}' \"$@\"\n", log.display(), real.display());
    std::fs::write(bin.join("git"), script).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(bin.join("git"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    (bin, log)
}

fn start(desk: &Desk, bin: &Path) -> Child {
    let mut command = desk.command_with_git(&["plan", "hash", "--bundle", "b"]);
    let path = git_variables(&desk.path("user")).into_iter().find(|(name, _)| name == "PATH").unwrap().1;
    command.env("PATH", format!("{}:{path}", bin.display()));
    command.spawn().unwrap()
}

fn fetches(log: &Path) -> usize {
    let text = std::fs::read_to_string(log).unwrap();
    text.lines().filter(|line| line.split_whitespace().any(|word| word == "fetch")).count()
}

#[cfg(unix)]
#[test]
fn twenty_processes_in_a_cold_cache_fetch_each_source_once_and_get_the_same_plan() {
    let desk = desk();
    let (bin, log) = counting_git(&desk);
    let children: Vec<_> = (0..PROCESSES).map(|_| start(&desk, &bin)).collect();
    let mut plans: Vec<_> = children
        .into_iter()
        .map(|child| Ran::of(child.wait_with_output().unwrap()))
        .map(|ran| {
            assert_eq!(ran.code, 0, "{}", ran.seen());
            ran.stdout
        })
        .collect();
    plans.dedup();
    assert_eq!(plans.len(), 1, "{plans:?}");
    assert_eq!(fetches(&log), 2, "{}", std::fs::read_to_string(&log).unwrap());
    assert_eq!(desk.amplifier(&["cache", "verify"]).code, 0);
}

#[cfg(unix)]
#[test]
fn half_of_twenty_processes_killed_at_any_moment_harm_nobody() {
    let desk = desk();
    let (bin, _) = counting_git(&desk);
    let mut children: Vec<_> = (0..PROCESSES).map(|_| start(&desk, &bin)).collect();
    // Not for luck: the moments only have to differ, and every one of them is a fair one.
    for (at, child) in children.iter_mut().enumerate().filter(|(at, _)| at % 2 == 0) {
        std::thread::sleep(Duration::from_millis(u64::try_from(at * 7 % 23).unwrap()));
        child.kill().unwrap();
    }
    let mut plans = Vec::new();
    for (at, child) in children.into_iter().enumerate() {
        let ran = Ran::of(child.wait_with_output().unwrap());
        if at % 2 == 1 {
            assert_eq!(ran.code, 0, "{}", ran.seen());
            plans.push(ran.stdout);
        }
    }
    let after = Ran::of(start(&desk, &bin).wait_with_output().unwrap());
    plans.push(after.stdout);
    plans.dedup();
    assert_eq!(plans.len(), 1, "{plans:?}");
    assert_eq!(desk.amplifier(&["cache", "verify"]).code, 0);
}
