//! Zip archives: what they hold, what is refused, and that a changed archive is seen.

use std::io::{Cursor, Write};

use amplifier_sources::error::FetchError;
use amplifier_sources::fetch::{Base, FetchContext, Freshness};
use amplifier_sources::limits::Limits;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::server::{Reply, Server};
use crate::support::{World, cx_with, fetch, names, read};

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in files {
        let mode = if name.ends_with(".sh") { 0o755 } else { 0o644 };
        zip.start_file(*name, SimpleFileOptions::default().unix_permissions(mode)).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The archive with a text of its bytes replaced by one of the same length: names no writer would write.
fn patched(bytes: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes;
    let mut found = 0;
    for at in 0..bytes.len() - from.len() {
        if bytes[at..].starts_with(from.as_bytes()) {
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
            found += 1;
        }
    }
    assert_eq!(found, 2, "once before the content and once in the directory");
    bytes
}

async fn refused(world: &World, bytes: &[u8], limits: Limits) -> String {
    std::fs::write(world.path("a.zip"), bytes).unwrap();
    let fetcher = world.fetcher().with_limits(limits);
    let error = fetch(&fetcher, "zip+file://./a.zip", &world.cx()).await.unwrap_err();
    assert!(matches!(error, FetchError::Archive { .. }), "{error}");
    let kept: Vec<_> =
        names(world.path("cache/fsspec")).into_iter().filter(|name| !name.starts_with('.')).collect();
    assert_eq!((kept, names(world.path("cache/fsspec/.temp"))), (vec![], vec![]), "nothing of it stays");
    error.chain()
}

#[tokio::test]
async fn w9_archives_of_this_machine_and_of_servers_are_unpacked() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let bytes =
        archive(&[("top/mods/x.py", "1\n"), ("top/run.sh", "#!/bin/sh\n"), ("top/.git/config", "no")]);
    std::fs::write(world.path("a.zip"), &bytes).unwrap();
    let server = Server::start(move |_| Reply::new(200, bytes.clone())).await;
    let fetcher = world.fetcher();
    let local = fetch(&fetcher, "zip+file://./a.zip#subdirectory=top", &world.cx()).await.unwrap();
    let remote = format!("zip+{}#subdirectory=top/mods", server.url("/small.zip?sig=1"));
    let remote = fetch(&fetcher, &remote, &world.cx()).await.unwrap();
    assert_eq!(local.root, remote.root, "the same content is kept once");
    assert_eq!(remote.path, local.path.join("mods"));
    assert_eq!(names(&local.path), ["mods", "run.sh"]);
    assert_eq!(read(remote.path.join("x.py")), "1\n");
    let mode = std::fs::metadata(local.path.join("run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
    let error = fetch(&fetcher, "zip+file://./a.zip#subdirectory=gone", &world.cx()).await.unwrap_err();
    assert!(matches!(error, FetchError::SubdirectoryMissing { .. }), "{error}");
}

#[tokio::test]
async fn w9_a_changed_archive_is_unpacked_again_and_a_missing_one_is_an_error() {
    let world = World::new();
    let fetcher = world.fetcher();
    std::fs::write(world.path("a.zip"), archive(&[("a", "1")])).unwrap();
    let one = fetch(&fetcher, "zip+file://./a.zip", &world.cx()).await.unwrap();
    std::fs::write(world.path("a.zip"), archive(&[("a", "2")])).unwrap();
    let offline = cx_with(world.cx(), Freshness::Offline);
    let two = fetch(&fetcher, "zip+file://./a.zip", &offline).await.unwrap();
    assert_eq!((read(one.path.join("a")), read(two.path.join("a"))), ("1".to_owned(), "2".to_owned()));
    std::fs::remove_file(world.path("a.zip")).unwrap();
    let error = fetch(&fetcher, "zip+file://./a.zip", &world.cx()).await.unwrap_err();
    assert!(matches!(error, FetchError::Missing { .. }), "{error}");
}

#[tokio::test]
async fn entries_that_lead_out_are_refused() {
    let world = World::new();
    let limits = Limits::default;
    for (name, why) in [
        ("../evil", "leaves the archive"),
        ("/a/evil", "is absolute"),
        ("a/../../evil", "leaves the archive"),
        ("a//evil", "leaves the archive"),
        ("a\\evil", "holds a character that no path here may hold"),
        ("C:/evil", "is absolute"),
    ] {
        let harmless = "x".repeat(name.len());
        let bytes = patched(archive(&[(&harmless, "boo")]), &harmless, name);
        let chain = refused(&world, &bytes, limits()).await;
        assert!(chain.ends_with(&format!("entry `{name}` {why}")), "{chain}");
    }
    assert!(!world.path("evil").exists() && !world.path("cache/evil").exists());
}

#[tokio::test]
async fn links_strange_kinds_and_clashing_names_are_refused() {
    let world = World::new();
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.add_symlink("link", "/etc", SimpleFileOptions::default()).unwrap();
    let chain = refused(&world, &zip.finish().unwrap().into_inner(), Limits::default()).await;
    assert!(chain.ends_with("entry `link` is a link"), "{chain}");
    let clash = archive(&[("a", "file"), ("a/b", "below a file")]);
    refused(&world, &clash, Limits::default()).await;
    refused(&world, b"PK no zip at all", Limits::default()).await;
    let mut torn = archive(&[("a", &"text ".repeat(1_000))]);
    torn[60] ^= 0xff;
    refused(&world, &torn, Limits::default()).await;
}

#[tokio::test]
async fn bombs_are_defused() {
    let world = World::new();
    let zeros = "\0".repeat(40 * 1024 * 1024);
    let bomb = archive(&[("bomb", &zeros)]);
    assert!(bomb.len() < 100_000, "{}", bomb.len());
    let chain = refused(&world, &bomb, Limits::default()).await;
    assert!(chain.ends_with("it unpacks to more than 200 times its size"), "{chain}");
    let small = Limits { tree_bytes: 1_000, ..Limits::default() };
    let chain = refused(&world, &archive(&[("a", &"x".repeat(600)), ("b", &"x".repeat(600))]), small).await;
    assert!(chain.ends_with("it holds more than 1000 bytes"), "{chain}");
    let names: Vec<_> = (0..11).map(|at| at.to_string()).collect();
    let many: Vec<_> = names.iter().map(|name| (name.as_str(), "x")).collect();
    let chain = refused(&world, &archive(&many), Limits { tree_files: 10, ..Limits::default() }).await;
    assert!(chain.ends_with("it holds more than 10 files"), "{chain}");
    let deep = "d/".repeat(70) + "x";
    let chain = refused(&world, &archive(&[(&deep, "x")]), Limits::default()).await;
    assert!(chain.ends_with("is nested too deep"), "{chain}");
}

#[tokio::test]
async fn an_archive_outside_of_the_border_is_refused() {
    let world = World::new();
    std::fs::create_dir(world.path("inside")).unwrap();
    std::fs::write(world.path("a.zip"), archive(&[("a", "1")])).unwrap();
    let base = Base { confined_to: Some(world.path("inside")), ..Base::at(world.path("inside")) };
    let error = fetch(&world.fetcher(), "zip+file://../a.zip", &FetchContext::new(base)).await.unwrap_err();
    assert!(matches!(error, FetchError::Escapes { .. }), "{error}");
}
