//! Credentials in the addresses of bundles, profiles and settings: no command shows them or writes them down.

use std::io::Write as _;
use std::process::Stdio;

use crate::desk::{Desk, Ran};

const TOKEN: &str = "t0ken-secret";

/// A desk whose repositories have an address on the loopback, with credentials; git finds them on the disk.
fn desk() -> Desk {
    let desk = Desk::new();
    let repos = desk.path("").join("repos");
    std::fs::create_dir_all(desk.path("user")).unwrap();
    let config = format!("[url \"file://{}/\"]\n\tinsteadOf = http://127.0.0.1:9/repos/\n", repos.display());
    std::fs::write(desk.path("user").join(".gitconfig"), config).unwrap();
    desk.commit("module", &[("tool.py", "x = 1\n")]);
    desk.commit("lib", &[("bundle.yaml", "bundle: {name: lib}\n")]);
    desk.file(
        "b/bundle.md",
        format!(
            "---\nbundle: {{name: mine}}\nincludes: [minimal, '{}']\nproviders: [{{module: provider-mock, config: {{responses: \
             [ok]}}}}]\ntools:\n  - module: tool-far\n    source: {}\n    cnfig: {{}}\n---\nMine.\n",
            address("lib"),
            address("module")
        ),
    );
    desk
}

fn address(repo: &str) -> String {
    format!("git+http://u:{TOKEN}@127.0.0.1:9/repos/{repo}@main")
}

/// What came of a command, which shows no token.
fn ran(desk: &Desk, args: &[&str]) -> Ran {
    let ran = desk.with_git(args);
    assert!(!ran.seen().contains(TOKEN), "{args:?}: {}", ran.seen());
    ran
}

#[test]
fn no_command_about_a_bundle_shows_or_keeps_a_token() {
    let desk = desk();
    let shown = ran(&desk, &["plan", "show", "--bundle", "b"]);
    assert_eq!(shown.json()["tools"][0]["source"], "git+http://***@127.0.0.1:9/repos/module@main");
    let warned =
        "b/bundle.md:7:13: the address `git+http://***@127.0.0.1:9/repos/module@main` holds a credential";
    assert!(shown.stderr.contains(warned), "{}", shown.stderr);
    assert!(shown.stderr.contains("  hint: leave it out of the address"), "{}", shown.stderr);
    for args in [
        &["plan", "explain", "--bundle", "b"][..],
        &["plan", "hash", "--bundle", "b"],
        &["bundle", "tree", "b"],
        &["bundle", "tree", "b", "--dot"],
        &["bundle", "show", "b", "--output", "json"],
        &["bundle", "lock", "b"],
        &["bundle", "add", "./b"],
        &["bundle", "list"],
        &["run", "--bundle", "b", "hi"],
        &["cache", "list"],
        &["session", "list"],
    ] {
        let ran = ran(&desk, args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.seen());
    }
    // Errors and their excerpts: a key nobody knows beside the address, an include that cannot be had.
    assert_ne!(ran(&desk, &["bundle", "validate", "b", "--strict"]).code, 0);
    assert_ne!(ran(&desk, &["run", "--bundle", &address("gone"), "hi"]).code, 0);
    assert_ne!(ran(&desk, &["bundle", "show", &address("gone")]).code, 0);
    assert_eq!(ran(&desk, &["bundle", "show", &address("lib"), "--output", "json"]).code, 0);
    let session = desk.sessions().pop().unwrap();
    let id = session.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(ran(&desk, &["run", "--resume", &id, "again"]).code, 0);
    for folder in ["state", "cache"] {
        no_token_below(&desk.home().join(folder));
    }
    no_token_below(&desk.home());
    let lock = std::fs::read_to_string(desk.work().join("b/bundle.lock")).unwrap();
    assert!(lock.contains("***@127.0.0.1:9/repos/lib@main") && !lock.contains(TOKEN), "{lock}");
}

#[test]
fn the_chat_shows_no_token_of_a_bundle() {
    let desk = desk();
    let whole = "bundle: {name: whole}\nincludes: [minimal]\nproviders: [{module: provider-mock, config: {responses: [ok]}}]\n";
    desk.commit("whole", &[("bundle.yaml", whole)]);
    let lines = format!("/bundle {}\n/bundle\n/status\n", address("whole"));
    let mut child = desk.command_with_git(&["--bundle", "b"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(
        ran.stderr.matches("git+http://***@127.0.0.1:9/repos/whole@main").count(),
        3,
        "{}",
        ran.seen()
    );
    assert!(!ran.seen().contains(TOKEN), "{}", ran.seen());
}

fn no_token_below(dir: &std::path::Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            no_token_below(&path);
        } else {
            let text = std::fs::read(&path).unwrap_or_default();
            assert!(!String::from_utf8_lossy(&text).contains(TOKEN), "{}", path.display());
        }
    }
}

#[test]
fn a_collection_with_a_token_is_refused_and_a_profile_with_one_is_told() {
    let desk = desk();
    let refused = ran(&desk, &["collection", "add", "far", &address("lib")]);
    assert_ne!(refused.code, 0);
    assert!(
        refused.stderr.contains("holds a credential, which would be written to a file"),
        "{}",
        refused.stderr
    );
    desk.commit("tool", &[("amplifier_module_tool_far/__init__.py", "x = 1\n")]);
    let text = format!(
        "---\nprofile: {{name: p, version: 1.0.0, schema_version: 2}}\nsession: {{orchestrator: {{module: loop-basic}}, context: \
         {{module: context-simple}}}}\nproviders: [{{module: provider-mock}}]\ntools:\n- module: tool-far\n  source: {}\n---\nBe brief.\n",
        address("tool")
    );
    desk.file("c/p/profile.md", text);
    assert_eq!(ran(&desk, &["collection", "add", "mine", "c"]).code, 0);
    let shown = ran(&desk, &["plan", "show", "--profile", "mine/p"]);
    assert!(shown.stderr.contains("profile.md:7:11: the address `git+http://***@"), "{}", shown.seen());
    for format in ["nested", "string"] {
        assert_eq!(ran(&desk, &["plan", "show", "--profile", "mine/p", "--format", format]).code, 0);
    }
    assert_eq!(ran(&desk, &["profile", "show", "mine/p", "--output", "json"]).code, 0);
    let lock = std::fs::read_to_string(desk.home().join("share/profiles/mine/p/profile.lock")).unwrap();
    assert!(lock.contains("***@") && !lock.contains(TOKEN), "{lock}");
}

#[test]
fn settings_with_a_token_are_shown_without_it() {
    let desk = desk();
    std::fs::create_dir_all(desk.home()).unwrap();
    let token_alone = format!("git+http://{TOKEN}@127.0.0.1:9/repos/module@main");
    std::fs::write(
        desk.home().join("settings.yaml"),
        format!("sources:\n  modules:\n    tool-far: {token_alone}\n"),
    )
    .unwrap();
    let shown = ran(&desk, &["config", "show"]);
    assert!(shown.stdout.contains("***@127.0.0.1:9"), "{}", shown.seen());
    let shown = ran(&desk, &["plan", "explain", "--bundle", "b"]);
    assert!(shown.stdout.contains("settings.yaml:3:"), "{}", shown.seen());
}

/// One rule for what is hidden, wherever an address is shown.
#[test]
fn i25_tokens_in_addresses_are_shown_nowhere() {
    let desk = Desk::new();
    let place = crate::provider::closed();
    let secret = "t0ken-5f1e";
    for address in [
        format!("http://{place}/b.md?token={secret}"),
        format!("http://{place}/b.md?v=1&code={secret}"),
        format!("http://{secret}@{place}/b.md"),
        format!("http://me:{secret},x@{place}/b.md"),
        format!("git+http://{place}/r?access_token={secret}@main"),
        format!("zip+http://{place}/r.zip?sig={secret}#subdirectory=a"),
    ] {
        desk.file(
            "b/bundle.md",
            format!("---\nbundle: {{name: b}}\nincludes: [minimal, {{bundle: \"{address}\", x: 1}}]\n---\n"),
        );
        let module = format!(
            "---\nbundle: {{name: c}}\nincludes: [minimal]\ntools: [{{module: tool-x, source: \"{address}\", y: [}}]\n---\n"
        );
        desk.file("c/bundle.md", module);
        for args in [
            &["bundle", "validate", "b"][..],
            &["bundle", "validate", "b", "--strict"],
            &["bundle", "validate", "b", "--output", "json"],
            &["bundle", "show", "b"],
            &["bundle", "tree", "b", "--output", "json"],
            &["run", "-v", "--bundle", "b", "hi"],
            &["run", "--output", "json", "--bundle", "b", "hi"],
            &["bundle", "validate", "c"],
            &["bundle", "validate", &address],
            &["bundle", "add", &address],
            &["collection", "add", "mine", &address],
            &["cache", "list", "--output", "json"],
        ] {
            let ran = desk.with_git(args);
            // What the user typed is named in its own error, without the secret.
            assert!(!ran.seen().contains(secret), "{args:?}: {}", ran.seen());
        }
    }
    let shown = desk.with_git(&["bundle", "validate", "b"]);
    assert!(shown.stdout.contains("zip+http") && shown.stdout.contains("sig=***"), "{}", shown.seen());
}
