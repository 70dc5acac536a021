//! Single files over HTTP: cached by content, remembered by address, refreshed when asked, never half there.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_sources::error::FetchError;
use amplifier_sources::fetch::{Freshness, Identity};
use amplifier_sources::limits::Limits;

use crate::server::{End, Reply, Server};
use crate::support::{World, cx_with, fetch, names, read};

fn entries(world: &World) -> Vec<String> {
    names(world.path("cache/fsspec")).into_iter().filter(|name| !name.starts_with('.')).collect()
}

#[tokio::test]
async fn w9_a_file_is_fetched_once_keeps_its_name_and_is_there_when_the_server_is_not() {
    let world = World::new();
    let server =
        Server::start(|request| Reply::new(200, format!("{}?{}", request.path, request.query))).await;
    let fetcher = world.fetcher();
    let one = fetch(&fetcher, &server.url("/a/bundle.md?b=2&a=1"), &world.cx()).await.unwrap();
    assert_eq!(read(&one.path), "/a/bundle.md?b=2&a=1", "the query goes to the server as it is written");
    assert_eq!(one.path.file_name().unwrap(), "bundle.md");
    assert_eq!(one.root.parent().unwrap(), world.path("cache/fsspec"));
    let Identity::Content { content_hash } = &one.identity else { panic!("{one:?}") };
    assert_eq!(one.root.file_name().unwrap().to_str().unwrap(), content_hash.hex());
    let same = fetch(&fetcher, &server.url("/a/bundle.md?a=1&b=2").replace("http", "HTTP"), &world.cx())
        .await
        .unwrap();
    assert_eq!((same, server.log().len()), (one.clone(), 1), "the same address, written in another way");
    let other = fetch(&fetcher, &server.url("/b/bundle.md"), &world.cx()).await.unwrap();
    assert_ne!(other.path, one.path, "one name on two addresses is two files");

    let (first, gone) = (server.url("/a/bundle.md?b=2&a=1"), server.url("/c.md"));
    drop(server);
    let offline = cx_with(world.cx(), Freshness::Offline);
    assert_eq!(fetch(&fetcher, &first, &offline).await.unwrap(), one);
    let error = fetch(&fetcher, &gone, &offline).await.unwrap_err();
    assert!(matches!(error, FetchError::NotCached { .. }), "{error}");
}

#[tokio::test]
async fn a_refresh_asks_whether_it_changed_and_keeps_the_old_content() {
    let world = World::new();
    let text = Arc::new(Mutex::new("one"));
    let served = Arc::clone(&text);
    let server = Server::start(move |request| {
        let text = *served.lock().unwrap();
        let tag = format!("\"{text}\"");
        match request.headers.get("if-none-match") {
            Some(known) if *known == tag => Reply::new(304, ""),
            _ => Reply::new(200, text).with("ETag", tag),
        }
    })
    .await;
    let fetcher = world.fetcher();
    let refresh = cx_with(world.cx(), Freshness::Refresh);
    let one = fetch(&fetcher, &server.url("/b.md"), &world.cx()).await.unwrap();
    assert_eq!(fetch(&fetcher, &server.url("/b.md"), &refresh).await.unwrap(), one);
    *text.lock().unwrap() = "two";
    assert_eq!(fetch(&fetcher, &server.url("/b.md"), &world.cx()).await.unwrap(), one);
    let two = fetch(&fetcher, &server.url("/b.md"), &refresh).await.unwrap();
    assert_eq!((read(&one.path).as_str(), read(&two.path).as_str()), ("one", "two"));
    assert_eq!(server.log().len(), 3);
}

#[tokio::test]
async fn an_interrupted_download_leaves_nothing_and_the_next_one_works() {
    let world = World::new();
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |_| {
        let end = match asked.fetch_add(1, Ordering::SeqCst) {
            0 => End::Torn,
            1 => End::Stalled,
            _ => End::Whole,
        };
        Reply::new(200, "half of it").ending(end)
    })
    .await;
    let limits = Limits { http_idle: Duration::from_millis(200), ..Limits::default() };
    let fetcher = world.fetcher().with_limits(limits);
    let uri = server.url("/b.md");
    let torn = fetch(&fetcher, &uri, &world.cx()).await.unwrap_err();
    assert!(matches!(torn, FetchError::Http { .. }), "{torn}");
    let stalled = fetch(&fetcher, &uri, &world.cx()).await.unwrap_err();
    assert!(matches!(stalled, FetchError::TimedOut { .. }), "{stalled}");
    assert_eq!((entries(&world), names(world.path("cache/fsspec/.temp"))), (vec![], vec![]));
    assert_eq!(read(fetch(&fetcher, &uri, &world.cx()).await.unwrap().path), "half of it");
}

#[tokio::test]
async fn cancelling_stops_a_download() {
    let world = World::new();
    let server = Server::start(|_| Reply::new(200, "x").ending(End::Stalled)).await;
    let (fetcher, cx, uri) = (world.fetcher(), world.cx(), server.url("/b.md"));
    let cancel = cx.cancel.clone();
    let task = tokio::spawn(async move { fetch(&fetcher, &uri, &cx).await });
    amplifier_testing::until("the server is asked", || !server.log().is_empty()).await;
    cancel.request_graceful();
    let error = task.await.unwrap().unwrap_err();
    assert!(matches!(error, FetchError::Cancelled { .. }), "{error}");
    assert_eq!(names(world.path("cache/fsspec/.temp")), [""; 0]);
}

#[tokio::test]
async fn sizes_redirects_and_statuses_are_bounded() {
    let world = World::new();
    let server = Server::start(|request| match request.path.as_str() {
        "/announced" => Reply::new(200, "x".repeat(2_000)),
        "/unannounced" => Reply::new(200, "x".repeat(2_000)).ending(End::Unannounced),
        "/small" => Reply::new(200, "x".repeat(1_000)).ending(End::Unannounced),
        "/loop" => Reply::new(302, "").with("Location", "/loop"),
        "/out" => Reply::new(302, "").with("Location", "file:///etc/passwd"),
        "/once" => Reply::new(302, "").with("Location", "/small"),
        _ => Reply::new(404, "no"),
    })
    .await;
    let limits = Limits { download_bytes: 1_000, http_redirects: 3, ..Limits::default() };
    let fetcher = world.fetcher().with_limits(limits);
    let error = async |path: &str| {
        let error = fetch(&fetcher, &server.url(path), &world.cx()).await.unwrap_err();
        error.to_string().replace(&server.url(""), "")
    };
    assert_eq!(error("/announced").await, "`/announced` is larger than 1000 bytes");
    assert_eq!(error("/unannounced").await, "`/unannounced` is larger than 1000 bytes");
    assert_eq!(error("/loop").await, "`/loop` redirects more than 3 times");
    assert!(error("/out").await.starts_with("`/out` "));
    assert_eq!(error("/none").await, "`/none` answered with status 404");
    assert_eq!(entries(&world), [""; 0]);
    let once = fetch(&fetcher, &server.url("/once"), &world.cx()).await.unwrap();
    assert_eq!(read(once.path).len(), 1_000);
    let error = fetch(&fetcher, &server.url("/small#subdirectory=x"), &world.cx()).await.unwrap_err();
    assert!(matches!(error, FetchError::SubdirectoryMissing { .. }), "{error}");
}

#[tokio::test]
async fn credentials_of_an_address_reach_the_server_and_nothing_else() {
    let world = World::new();
    let server = Server::start(|request| match request.headers.get("authorization") {
        Some(_) if request.path == "/b.md" => Reply::new(200, "b"),
        _ => Reply::new(403, "").with("X", "x"),
    })
    .await;
    let uri = |path: &str| format!("http://u:s3cr3t-w0rd@127.0.0.1:{}{path}", server.port);
    let fetcher = world.fetcher();
    fetch(&fetcher, &uri("/b.md"), &world.cx()).await.unwrap();
    let error = fetch(&fetcher, &uri("/c.md?access_token=s3cr3t-w0rd"), &world.cx()).await.unwrap_err();
    assert!(!format!("{error:?} {error} {}", error.chain()).contains("s3cr3t"), "{error}");
    let dead = "http://u:s3cr3t-w0rd@127.0.0.1:1/x";
    let error = fetch(&fetcher, dead, &world.cx()).await.unwrap_err();
    assert!(!format!("{error:?} {}", error.chain()).contains("s3cr3t"), "{error:?}");
    let records = names(world.path("cache/fsspec/.refs"));
    assert_eq!(records.len(), 1);
    assert!(!read(world.path("cache/fsspec/.refs").join(&records[0])).contains("s3cr3t"));
}

#[tokio::test]
async fn ten_at_once_make_one_request() {
    let world = World::new();
    let server = Server::start(|_| Reply::new(200, "b")).await;
    let fetcher = Arc::new(world.fetcher());
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let (fetcher, cx, uri) = (fetcher.clone(), world.cx(), server.url("/b.md"));
        tasks.spawn(async move { fetch(&fetcher, &uri, &cx).await.unwrap().path });
    }
    let mut paths = tasks.join_all().await;
    paths.dedup();
    assert_eq!((paths.len(), server.log().len()), (1, 1));
}

/// How many requests are answered at the same time, at most and now.
#[derive(Default)]
struct Crowd {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Crowd {
    /// Answers when as many as expected are there, or after a while.
    fn answer(&self, expected: usize) -> Reply {
        self.most.fetch_max(self.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let ends = std::time::Instant::now() + Duration::from_secs(10);
        while self.most.load(Ordering::SeqCst) < expected && std::time::Instant::now() < ends {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.now.fetch_sub(1, Ordering::SeqCst);
        Reply::new(200, "b")
    }
}

#[tokio::test]
async fn w28_different_sources_are_fetched_at_the_same_time_but_not_too_many() {
    let world = World::new();
    let crowd = Arc::new(Crowd::default());
    let counted = Arc::clone(&crowd);
    let server = Server::start(move |_| counted.answer(3)).await;
    let limits = Limits { at_once: 3, ..Limits::default() };
    let fetcher = Arc::new(world.fetcher().with_limits(limits));
    let mut tasks = tokio::task::JoinSet::new();
    for at in 0..9 {
        let (fetcher, cx, uri) = (fetcher.clone(), world.cx(), server.url(&format!("/{at}.md")));
        tasks.spawn(async move { fetch(&fetcher, &uri, &cx).await.unwrap().path });
    }
    assert_eq!(tasks.join_all().await.len(), 9);
    assert_eq!(crowd.most.load(Ordering::SeqCst), 3);
}
