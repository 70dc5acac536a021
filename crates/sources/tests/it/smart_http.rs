//! Git over HTTP, from a server that behaves like a hosting service: refs, `insteadOf`, credentials, servers that refuse.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use amplifier_core::contracts::{ModuleSourceResolver, Resolved};
use amplifier_sources::cache::Cache;
use amplifier_sources::error::FetchError;
use amplifier_sources::fetch::{FetchContext, Fetcher};
use amplifier_sources::limits::Limits;
use amplifier_sources::progress::Stage;
use amplifier_sources::resolver::SourceResolver;
use amplifier_sources::uri::SourceUri;
use amplifier_testing::write_program;
use serde_json::json;

use crate::server::{Reply, Request, Server, git};
use crate::support::{Heard, Stopped, World, commit_of, fetch, read};

const PASSWORD: &str = "pa55-w0rd-nobody-sees";

/// Lets in who knows the password.
fn guarded(
    inner: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    // `u:` and the password, in the form the header has.
    let expected = format!("Basic {}", base64(&format!("u:{PASSWORD}")));
    move |request| match request.headers.get("authorization") {
        Some(value) if *value == expected => inner(request),
        _ => Reply::new(401, "").with("WWW-Authenticate", "Basic realm=\"x\""),
    }
}

fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, at| bits << 8 | u32::from(chunk.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at)) as usize & 63];
            out.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[tokio::test]
async fn refs_of_several_repositories_come_over_http_with_one_fetch_for_a_commit() {
    let world = World::new();
    let (one, two) = (world.repo("repos/one"), world.repo("repos/two"));
    let old = one.commit(&[("mods/tool-x/x.py", "1\n")]);
    one.run(&["tag", "--annotate", "--message", "x", "v1"]);
    one.run(&["checkout", "--quiet", "-b", "feature/x"]);
    let tip = one.commit(&[("mods/tool-x/x.py", "2\n")]);
    let other = two.commit(&[("bundle.md", "two\n")]);
    // As the large hosting services have it.
    one.run(&["config", "uploadpack.allowFilter", "true"]);
    let server = Server::start(git(&world.path("repos"), world.variables())).await;
    let fetcher = world.fetcher();
    let uri = |rest: &str| format!("git+{}", server.url(rest));
    let rows = [
        (uri("/one/.git@v1#subdirectory=mods/tool-x"), &old),
        (uri("/one/.git@feature/x#subdirectory=mods/tool-x"), &tip),
        (uri(&format!("/one/.git@{old}#subdirectory=mods")), &old),
        (uri(&format!("/one/.git@{}", &old[..10])), &old),
        (uri("/two/.git"), &other),
    ];
    for (uri, commit) in &rows {
        let fetched =
            fetch(&fetcher, uri, &world.cx()).await.unwrap_or_else(|error| panic!("{uri}: {error}"));
        assert_eq!(commit_of(&fetched), *commit, "{uri}");
        assert!(fetched.path.is_dir());
    }
    // Three commits, and one look through the history for the shortened one.
    assert_eq!(server.fetches(), 4, "{:#?}", server.log());
    let before = server.log().len();
    for (uri, _) in &rows {
        fetch(&fetcher, uri, &world.cx()).await.unwrap();
    }
    assert_eq!(server.log().len(), before, "what is cached is not asked for");
}

#[tokio::test]
async fn an_older_commit_is_had_from_a_server_that_gives_only_what_it_advertises() {
    let world = World::new();
    let repo = world.repo("repos/one");
    let old = repo.commit(&[("a", "1\n")]);
    repo.commit(&[("a", "2\n")]);
    let inner = git(&world.path("repos"), world.variables());
    // Without protocol 2 a server refuses what it has not advertised.
    let server = Server::start(move |request| {
        let headers =
            request.headers.clone().into_iter().filter(|(name, _)| name != "git-protocol").collect();
        let (method, path) = (request.method.clone(), request.path.clone());
        inner(&Request { method, path, query: request.query.clone(), headers, body: request.body.clone() })
    })
    .await;
    let fetched =
        fetch(&world.fetcher(), &format!("git+{}@{old}", server.url("/one/.git")), &world.cx()).await;
    assert_eq!(read(fetched.unwrap().path.join("a")), "1\n");
}

#[tokio::test]
async fn instead_of_in_the_users_configuration_is_honoured() {
    let world = World::new();
    let repo = world.repo("repos/one");
    let commit = repo.commit(&[("a", "1\n")]);
    let server = Server::start(git(&world.path("repos"), world.variables())).await;
    world.configure(&format!(
        "[url \"{}\"]\n insteadOf = https://forge.invalid/team/\n[url \"file://{}/\"]\n insteadOf = ssh://git@forge.invalid/\n",
        server.url("/"),
        world.path("repos").display()
    ));
    for uri in ["git+https://forge.invalid/team/one/.git@main", "git+ssh://git@forge.invalid/one"] {
        let fetched = fetch(&world.fetcher(), uri, &world.cx()).await.unwrap();
        assert_eq!(commit_of(&fetched), commit, "{uri}");
    }
    let keyed = format!("git+https://someone:{PASSWORD}@forge.invalid/team/one/.git@{commit}");
    fetch(&world.fetcher_in("other"), &keyed, &world.cx()).await.unwrap();
}

#[tokio::test]
async fn a_credential_helper_is_asked_and_without_one_nobody_is() {
    let world = World::new();
    let repo = world.repo("repos/one");
    let commit = repo.commit(&[("a", "1\n")]);
    let server = Server::start(guarded(git(&world.path("repos"), world.variables()))).await;
    let uri = format!("git+{}@main", server.url("/one/.git"));
    let error = fetch(&world.fetcher(), &uri, &world.cx()).await.unwrap_err();
    assert!(error.to_string().contains("unable to get password"), "{error}");
    world.configure(&format!(
        "[credential]\n helper = \"!f() {{ echo username=u; echo password={PASSWORD}; }}; f\"\n"
    ));
    let fetched = fetch(&world.fetcher(), &uri, &world.cx()).await.unwrap();
    assert_eq!(commit_of(&fetched), commit);
    assert_eq!(files_with(&world.path("cache"), PASSWORD), [""; 0]);
}

/// The files below a folder that hold a text.
fn files_with(dir: &std::path::Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(text) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[tokio::test]
async fn credentials_in_an_address_work_and_are_nowhere_to_be_seen() {
    let world = World::new();
    let repo = world.repo("repos/one");
    let commit = repo.commit(&[("a", "1\n")]);
    let server = Server::start(guarded(git(&world.path("repos"), world.variables()))).await;
    let script = world.path("git-that-tells");
    let told = world.path("arguments");
    write_program(&script, &format!("#!/bin/sh\necho \"$@\" >> {}\nexec git \"$@\"\n", told.display()));
    let git = world.git().with_program(script);
    let limits = Limits { git_attempts: 1, ..Limits::default() };
    let fetcher = Fetcher::new(Cache::new(world.path("cache")), git, Arc::new(Stopped)).with_limits(limits);
    let heard = Arc::new(Heard::default());
    let cx = FetchContext { progress: heard.clone(), ..world.cx() };
    let uri =
        |user: &str, path: &str| format!("git+http://{user}:{PASSWORD}@127.0.0.1:{}{path}", server.port);

    let fetched = fetch(&fetcher, &uri("u", "/one/.git@main"), &cx).await.unwrap();
    assert_eq!(commit_of(&fetched), commit);
    let wrong = fetch(&fetcher, &uri("wrong", "/one/.git@main2"), &cx).await.unwrap_err();
    let absent = fetch(&fetcher, &uri("u", "/none/.git@main"), &cx).await.unwrap_err();
    assert!(
        matches!((&wrong, &absent), (FetchError::Git { .. }, FetchError::Git { .. })),
        "{wrong} {absent}"
    );
    let shown = format!("{wrong:?} {absent:?} {wrong} {absent} {} {}", heard.text(), read(told));
    assert!(shown.contains("/one/.git") && !shown.contains(PASSWORD), "{shown}");
    assert_eq!(files_with(&world.path("cache"), PASSWORD), [""; 0]);
}

#[tokio::test]
async fn a_server_that_is_down_for_a_moment_is_asked_again() {
    let world = World::new();
    let repo = world.repo("repos/one");
    let commit = repo.commit(&[("a", "1\n")]);
    let inner = git(&world.path("repos"), world.variables());
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |request| match asked.fetch_add(1, Ordering::SeqCst) {
        0 | 3 => Reply::new(503, "busy"),
        _ => inner(request),
    })
    .await;
    let heard = Arc::new(Heard::default());
    let cx = FetchContext { progress: heard.clone(), ..world.cx() };
    let uri = format!("git+{}@main", server.url("/one/.git"));
    assert_eq!(commit_of(&fetch(&world.fetcher(), &uri, &cx).await.unwrap()), commit);
    let again = heard
        .stages()
        .into_iter()
        .filter(|stage| matches!(stage, Stage::Retrying { attempt: 2, .. }))
        .count();
    assert_eq!(again, 2, "once for the question and once for the fetch: {:?}", heard.stages());
}

#[tokio::test]
async fn a_hint_that_hides_its_credential_finds_what_was_written_or_asks_a_helper() {
    let world = World::new();
    world.repo("repos/one").commit(&[("a.md", "a\n")]);
    let server = Server::start(guarded(git(&world.path("repos"), world.variables()))).await;
    let written: SourceUri = format!("git+{}@main", server.url("/one/.git"))
        .replacen("://", &format!("://u:{PASSWORD}@"), 1)
        .parse()
        .unwrap();
    assert!(written.holds_credentials());
    let shown = written.to_string();
    assert!(!shown.parse::<SourceUri>().unwrap().holds_credentials(), "{shown}");
    let id = "tool-far".parse().unwrap();
    let resolve = async |resolver: SourceResolver| {
        let source = resolver.resolve(&id, Some(&json!(shown))).await.unwrap();
        source.resolve().await
    };
    let resolver = |cache: &str| SourceResolver::new(Arc::new(world.fetcher_in(cache)), world.cx());
    let known = resolver("one").with_written([(shown.clone(), written.clone())].into());
    assert!(matches!(resolve(known).await, Ok(Resolved::Folder(_))));
    let error = resolve(resolver("two")).await.err().unwrap().to_string();
    assert!(error.contains(&shown) && !error.contains(PASSWORD), "{error}");
    // What was fetched once is found without, and so is what git's own helper knows.
    assert!(matches!(resolve(resolver("one")).await, Ok(Resolved::Folder(_))));
    world.configure(&format!(
        "[credential]\n\thelper = \"!f() {{ echo username=u; echo password={PASSWORD}; }}; f\"\n"
    ));
    assert!(matches!(resolve(resolver("two")).await, Ok(Resolved::Folder(_))));
}
