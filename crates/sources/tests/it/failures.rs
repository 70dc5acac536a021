//! What goes wrong on the way: how often it is tried again, who is told what, and removing what resists.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use amplifier_sources::cache::Selection;
use amplifier_sources::error::FetchError;
use amplifier_sources::fetch::FetchContext;
use amplifier_sources::limits::Limits;
use amplifier_sources::progress::Stage;
use amplifier_testing::copy_program;

use crate::server::{End, Reply, Server};
use crate::support::{Heard, World, fetch, names};

fn retries(heard: &Heard) -> usize {
    heard.stages().iter().filter(|stage| matches!(stage, Stage::Retrying { .. })).count()
}

#[tokio::test]
async fn after_three_failures_the_servers_own_reason_is_told() {
    let world = World::new();
    let server = Server::start(|_| Reply::new(503, "busy")).await;
    let heard = Arc::new(Heard::default());
    let cx = FetchContext { progress: heard.clone(), ..world.cx() };
    let uri = format!("git+{}@main", server.url("/one/.git"));
    let error = fetch(&world.fetcher(), &uri, &cx).await.unwrap_err();
    assert!(matches!(error, FetchError::Git { .. }), "{error}");
    assert!(error.chain().contains("The requested URL returned error: 503"), "{}", error.chain());
    assert_eq!((server.log().len(), retries(&heard)), (3, 2), "{:#?}", server.log());
}

#[tokio::test]
async fn what_was_too_slow_is_not_tried_again() {
    let world = World::new();
    let server = Server::start(|_| Reply::new(200, "").ending(End::Stalled)).await;
    let heard = Arc::new(Heard::default());
    let cx = FetchContext { progress: heard.clone(), ..world.cx() };
    let limits = Limits { git_query: Duration::from_millis(700), ..Limits::default() };
    let uri = format!("git+{}@main", server.url("/one/.git"));
    let error = fetch(&world.fetcher().with_limits(limits), &uri, &cx).await.unwrap_err();
    assert!(matches!(error, FetchError::TimedOut { .. }), "{error}");
    assert_eq!(retries(&heard), 0, "{:?}", heard.stages());
    assert!(server.log().len() <= 1, "{:#?}", server.log());
}

#[tokio::test]
async fn whoever_waits_for_a_fetch_that_fails_sees_why() {
    let world = World::new();
    let server = Server::start(|_| Reply::new(403, "no")).await;
    let fetcher = Arc::new(world.fetcher());
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let (fetcher, cx) = (fetcher.clone(), world.cx());
        let uri = format!("git+{}@main", server.url("/one/.git"));
        tasks.spawn(async move { fetch(&fetcher, &uri, &cx).await.unwrap_err().chain() });
    }
    let mut reasons = tasks.join_all().await;
    reasons.dedup();
    assert_eq!(reasons.len(), 1, "{reasons:#?}");
    assert!(reasons[0].contains("403"), "{reasons:#?}");
}

const VARIABLE: &str = "AMPLIFIER_TEST_CLEAR";

/// Not a test of its own: what the test below starts as somebody without special rights.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test hands its child what to do, as no argument reaches a test"
)]
fn clearing_child() {
    let Ok(home) = std::env::var(VARIABLE) else { return };
    match World::at(home.into()).fetcher().cache().clear(&Selection::All) {
        Ok(cleared) => println!("\nremoved {}", cleared.removed.len()),
        Err(error) => println!("\nfailed {}", error.chain()),
    }
}

/// Clears the cache as somebody who may not do everything; gives what was said.
fn clear(world: &World) -> String {
    let program = world.path("tests");
    copy_program(&std::env::current_exe().unwrap(), &program);
    let mut command = Command::new(&program);
    command.args(["--exact", "failures::clearing_child", "--nocapture", "--test-threads", "1"]);
    command.env(VARIABLE, world.path(""));
    if is_superuser(world) {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = text.lines().find(|line| line.starts_with("removed") || line.starts_with("failed"));
    said.unwrap_or_else(|| panic!("{text}")).to_owned()
}

const NOBODY: u32 = 65_534;

/// Whether nothing is forbidden to whoever runs the tests.
fn is_superuser(world: &World) -> bool {
    std::fs::metadata(world.path("home")).unwrap().uid() == 0
}

/// Gives a whole tree to somebody.
fn give(path: &Path, owner: u32) {
    chown(path, Some(owner), Some(owner)).unwrap();
    if path.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| give(&entry.unwrap().path(), owner));
    }
}

#[tokio::test]
async fn an_entry_that_was_made_read_only_is_removed_and_one_that_stays_is_named() {
    let world = World::new();
    let repo = world.repo("repos/one");
    let commit = repo.commit(&[("a/b/c.txt", "1"), ("top.txt", "2")]);
    fetch(&world.fetcher(), &repo.uri("@main"), &world.cx()).await.unwrap();
    std::fs::set_permissions(world.path(""), PermissionsExt::from_mode(0o755)).unwrap();
    let superuser = is_superuser(&world);
    let entry = world.path("cache/git").join(&commit);
    let protect = || {
        for part in ["a/b/c.txt", "a/b", "a", "top.txt", ""] {
            let path = entry.join(part);
            let mode = if path.is_dir() { 0o555 } else { 0o444 };
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        }
    };
    if superuser {
        give(&world.path("cache"), NOBODY);
    }
    protect();
    assert_eq!(clear(&world), "removed 1");
    assert!(!entry.exists());
    assert_eq!(names(world.path("cache/git/.temp")), [""; 0]);
    // Only a superuser can make something that somebody else cannot remove.
    if superuser {
        fetch(&world.fetcher(), &repo.uri("@main"), &world.cx()).await.unwrap();
        give(&world.path("cache"), NOBODY);
        chown(entry.join("a/b"), Some(0), Some(0)).unwrap();
        let said = clear(&world);
        assert!(said.starts_with("failed ") && said.contains("/cache/git/"), "{said}");
    }
}
