//! Locks: what was got is got again exactly, or refused.

use std::sync::{Arc, Mutex};

use amplifier_sources::error::FetchError;
use amplifier_sources::fetch::{Fetched, Fetcher, Freshness};
use amplifier_sources::lock::{BundleLock, LockError};
use amplifier_sources::uri::SourceUri;

use crate::server::{Reply, Server};
use crate::support::{World, commit_of, cx_with, fetch, read};

async fn lock_all(fetcher: &Fetcher, world: &World, uris: &[&str], freshness: Freshness) -> BundleLock {
    let mut lock = BundleLock::default();
    for uri in uris {
        let uri: SourceUri = uri.parse().unwrap();
        let fetched = fetcher.fetch(&uri, &cx_with(world.cx(), freshness)).await.unwrap();
        lock.insert(&uri, fetcher.locked(&fetched).await.unwrap());
    }
    lock
}

async fn locked(
    fetcher: &Fetcher,
    world: &World,
    (lock, uri): (&BundleLock, &str),
    freshness: Freshness,
) -> Result<Fetched, FetchError> {
    let uri: SourceUri = uri.parse().unwrap();
    fetcher.fetch_locked(&uri, lock.find(&uri)?, &cx_with(world.cx(), freshness)).await
}

#[tokio::test]
async fn a_locked_branch_stays_at_its_commit_also_on_another_machine_and_offline() {
    let world = World::new();
    let repo = world.repo("repos/one");
    let commit = repo.commit(&[("mods/a", "1\n")]);
    let uri = repo.uri("@main#subdirectory=mods");
    let lock = lock_all(&world.fetcher(), &world, &[&uri], Freshness::Reuse).await;
    repo.commit(&[("mods/a", "2\n")]);

    let elsewhere = world.fetcher_in("cache-of-another-machine");
    let first = locked(&elsewhere, &world, (&lock, &uri), Freshness::Reuse).await.unwrap();
    assert_eq!((commit_of(&first), read(first.path.join("a")).as_str()), (commit.as_str(), "1\n"));
    std::fs::remove_dir_all(&repo.path).unwrap();
    assert_eq!(locked(&elsewhere, &world, (&lock, &uri), Freshness::Offline).await.unwrap(), first);

    std::fs::write(first.path.join("a"), "tampered\n").unwrap();
    let error = locked(&elsewhere, &world, (&lock, &uri), Freshness::Offline).await.unwrap_err();
    assert!(matches!(error, FetchError::Drift { .. }), "{error}");
    assert!(error.to_string().contains("is not what was locked: its content is sha256:"), "{error}");
}

#[tokio::test]
async fn downloads_archives_and_files_that_changed_are_refused() {
    let world = World::new();
    let text = Arc::new(Mutex::new("one"));
    let served = Arc::clone(&text);
    let server = Server::start(move |_| Reply::new(200, *served.lock().unwrap())).await;
    std::fs::write(world.path("local.md"), "1").unwrap();
    let (remote, local) = (server.url("/b.md"), "./local.md");
    let fetcher = world.fetcher();
    let lock = lock_all(&fetcher, &world, &[&remote, local], Freshness::Reuse).await;
    locked(&fetcher, &world, (&lock, local), Freshness::Reuse).await.unwrap();

    *text.lock().unwrap() = "two";
    let refresh = cx_with(world.cx(), Freshness::Refresh);
    assert_eq!(read(fetch(&fetcher, &remote, &refresh).await.unwrap().path), "two");
    let kept = locked(&fetcher, &world, (&lock, &remote), Freshness::Reuse).await.unwrap();
    assert_eq!(read(kept.path), "one", "the locked content is still in the cache");

    let elsewhere = world.fetcher_in("cache-of-another-machine");
    let error = locked(&elsewhere, &world, (&lock, &remote), Freshness::Offline).await.unwrap_err();
    assert!(matches!(error, FetchError::NotCached { .. }), "{error}");
    let error = locked(&elsewhere, &world, (&lock, &remote), Freshness::Reuse).await.unwrap_err();
    assert!(matches!(error, FetchError::Drift { .. }), "{error}");
    std::fs::write(world.path("local.md"), "2").unwrap();
    let error = locked(&fetcher, &world, (&lock, local), Freshness::Reuse).await.unwrap_err();
    assert!(matches!(error, FetchError::Drift { .. }), "{error}");
    let error = locked(&fetcher, &world, (&lock, "./other.md"), Freshness::Reuse).await.unwrap_err();
    assert_eq!(error.to_string(), "`./other.md` is not what was locked: the lock does not name it");
}

#[tokio::test]
async fn a_lock_is_the_same_bytes_for_the_same_sources_and_says_what_an_update_changes() {
    let world = World::new();
    let (one, two, three) = (world.repo("repos/one"), world.repo("repos/two"), world.repo("repos/three"));
    let repos = [&one, &two, &three];
    let olds: Vec<_> = repos.iter().map(|repo| repo.commit(&[("a", "1")])).collect();
    let uris: Vec<_> = repos.iter().map(|repo| repo.uri("@main")).collect();
    let fetcher = world.fetcher();
    let before = lock_all(&fetcher, &world, &[&uris[0], &uris[1]], Freshness::Reuse).await;
    let again = lock_all(&world.fetcher_in("other"), &world, &[&uris[1], &uris[0]], Freshness::Reuse).await;
    let text = before.to_text().unwrap();
    assert_eq!(text, again.to_text().unwrap());
    assert_eq!(BundleLock::parse(&text).unwrap(), before);

    let new = one.commit(&[("a", "2")]);
    let after = lock_all(&fetcher, &world, &[&uris[0], &uris[2]], Freshness::Refresh).await;
    let changes: Vec<_> = before.changes(&after).iter().map(ToString::to_string).collect();
    let expected = [
        format!("`{}` moves from {} to {new}", uris[0], olds[0]),
        format!("`{}` is no longer used", uris[1]),
        format!("`{}` is new, at {}", uris[2], olds[2]),
    ];
    assert_eq!(changes, expected);
    assert_eq!(before.changes(&before), []);
}

#[test]
fn a_lock_of_the_future_is_refused_and_unknown_keys_are_kept() {
    let hash = format!("sha256:{}", "0".repeat(64));
    let text = format!(
        r#"{{"lock_version": 1, "sources": {{"./a": {{"content_hash": "{hash}", "note": 1}}}}, "plan": "x"}}"#
    );
    let lock = BundleLock::parse(&text).unwrap();
    let again: serde_json::Value = serde_json::from_str(&lock.to_text().unwrap()).unwrap();
    assert_eq!(again, serde_json::from_str::<serde_json::Value>(&text).unwrap());
    let future = BundleLock::parse(r#"{"lock_version": 2, "things": []}"#).unwrap_err();
    assert!(matches!(future, LockError::Version { found: 2 }), "{future}");
    BundleLock::parse("{").unwrap_err();
    BundleLock::parse(r#"{"lock_version": 1, "sources": {"./a": {"content_hash": "md5:0"}}}"#).unwrap_err();
}
