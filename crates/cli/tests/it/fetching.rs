//! What a person hears of fetches: nothing of a quick one, each second of a long one, and at once when one is tried again.

use std::sync::atomic::{AtomicUsize, Ordering};

use amplifier_testing::http::{Reply, Request, Server};
use amplifier_testing::write_program;

use crate::desk::{Desk, Ran, git_variables};

const BUNDLE: &str = "bundle: {name: far}\nincludes: [minimal]\n";

/// A `git` that does something before it fetches, as git waits for a slow server; the `PATH` that leads to it.
#[cfg(unix)]
pub fn git_that_first(desk: &Desk, does: &str) -> String {
    let path = git_variables(&desk.path("user")).into_iter().find(|(name, _)| name == "PATH").unwrap().1;
    let real = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file());
    let real = real.expect("git is needed for this test; install it");
    let bin = desk.path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *' fetch '*)\n{does} ;;\nesac\nexec '{}' \"$@\"\n",
        real.display()
    );
    write_program(&bin.join("git"), &script);
    format!("{}:{path}", bin.display())
}

#[cfg(unix)]
#[test]
fn a_long_fetch_is_told_and_a_quick_one_is_not() {
    let desk = Desk::new();
    let (uri, _) = desk.commit("far", &[("bundle.yaml", BUNDLE)]);
    let args = ["plan", "hash", "--bundle", uri.as_str()];
    let slowly = "printf 'Receiving objects:  10%% (1/10)\\r' >&2\nsleep 1.1\n\
        printf 'Receiving objects:  60%% (6/10)\\r' >&2";
    let path = git_that_first(&desk, slowly);
    let slow = Ran::of(desk.command_with_git(&args).env("PATH", path).output().unwrap());
    assert_eq!(slow.code, 0, "{}", slow.seen());
    assert!(slow.stdout.starts_with("sha256:"), "the answer is alone on its stream: {}", slow.stdout);
    let lines: Vec<_> = slow.stderr.lines().collect();
    assert_eq!(
        lines.first(),
        Some(&format!("fetching `{uri}`: Receiving objects 60%").as_str()),
        "{lines:#?}"
    );
    assert_eq!(lines.last(), Some(&format!("fetching `{uri}`: done").as_str()), "{lines:#?}");
    // It is there now, and nothing is worth a word.
    let quick = desk.with_git(&args);
    assert_eq!((quick.stdout.as_str(), quick.stderr.as_str()), (slow.stdout.as_str(), ""));
    let other = desk.commit("other", &[("bundle.yaml", BUNDLE)]).0;
    let quick = desk.with_git(&["plan", "hash", "--bundle", &other]);
    assert_eq!((quick.code, quick.stderr.as_str()), (0, ""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fetch_that_is_tried_again_is_told_at_once() {
    let desk = Desk::new();
    desk.commit("far", &[("bundle.yaml", BUNDLE)]);
    let inner = desk.serving();
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |request: &Request| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::new(503, "busy"),
        _ => inner(request),
    })
    .await;
    let uri = format!("git+{}@main", server.url("/far/.git"));
    let ran = tokio::task::block_in_place(|| desk.with_git(&["plan", "hash", "--bundle", &uri]));
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let first = ran.stderr.lines().next().unwrap_or_default();
    assert!(first.starts_with(&format!("fetching `{uri}`: trying again (2): ")), "{}", ran.stderr);
    assert!(first.contains("503"), "{}", ran.stderr);
}

#[test]
fn an_address_that_cannot_be_reached_is_named_with_the_cause_and_a_cure() {
    let desk = Desk::new();
    let place = crate::provider::closed();
    let addresses = [format!("git+http://{place}/x.git"), format!("http://{place}/b.md")];
    for (address, cause) in addresses.iter().zip(["to connect to", "cannot be reached: Connection refused"]) {
        for command in [&["bundle", "show"][..], &["bundle", "add"], &["run", "hi", "--bundle"]] {
            let ran = desk.with_git(&[command, &[address.as_str()]].concat());
            assert_eq!(ran.code, 2, "{}", ran.seen());
            for word in [address.as_str(), cause, "\n  hint: check the address"] {
                assert!(ran.stderr.contains(word), "`{word}` is not told: {}", ran.seen());
            }
        }
        let ran = desk.with_git(&["collection", "add", "far", address.as_str()]);
        assert_eq!(ran.code, 1, "{}", ran.seen());
        assert!(
            ran.stderr.contains(cause) && ran.stderr.contains("hint: check the address"),
            "{}",
            ran.seen()
        );
        assert!(ran.stderr.lines().count() <= 4, "every layer is told: {}", ran.seen());
    }
}
