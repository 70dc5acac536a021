//! `amplifier cache …`.

use serde_json::json;

use crate::desk::{Desk, read, wait_until};

#[test]
fn what_was_fetched_is_listed_checked_and_cleared() {
    let desk = Desk::new();
    assert_eq!(desk.amplifier(&["cache", "list"]).stdout, "nothing is kept\n");
    let (lib, commit) = desk.commit("lib", &[("bundle.yaml", "bundle: {name: lib}\n")]);
    desk.file("b/bundle.yaml", format!("bundle: {{name: mine}}\nincludes: [minimal, \"{lib}\"]\n"));
    assert_eq!(desk.with_git(&["plan", "hash", "--bundle", "b"]).code, 0);
    let listed = desk.amplifier(&["cache", "list", "--output", "json"]).json();
    assert_eq!(
        (listed["entries"][0]["key"].clone(), listed["entries"][0]["source"].clone()),
        (json!(commit), json!(lib))
    );
    let text = desk.amplifier(&["cache", "list"]);
    assert!(text.stdout.contains(&commit[..12]) && text.stdout.contains(&lib), "{}", text.stdout);
    assert_eq!(desk.amplifier(&["cache", "verify"]).code, 0);
    std::fs::write(desk.home().join("cache/git").join(&commit).join("bundle.yaml"), "changed\n").unwrap();
    let verified = desk.amplifier(&["cache", "verify"]);
    assert_eq!(verified.code, 1, "{}", verified.seen());
    assert!(verified.stdout.contains("bundle.yaml"), "{}", verified.stdout);
    for command in ["clear", "verify"] {
        let unknown = desk.amplifier(&["cache", command, "ffff"]);
        assert_eq!((unknown.code, unknown.stdout.as_str()), (1, ""), "{}", unknown.seen());
        assert!(unknown.stderr.contains("nothing is kept under `ffff`"), "{}", unknown.seen());
    }
    assert_eq!(desk.amplifier(&["cache", "clear", &commit[..6]]).stdout, "1 removed\n");
    assert_eq!(desk.amplifier(&["cache", "list"]).stdout, "nothing is kept\n");
    assert_eq!(desk.with_git(&["plan", "hash", "--bundle", "b"]).code, 0);
}

#[test]
fn offline_takes_what_is_here_and_says_what_is_not() {
    let desk = Desk::new();
    let (lib, _) = desk.commit("lib", &[("bundle.yaml", "bundle: {name: lib}\n")]);
    desk.file("b/bundle.yaml", format!("bundle: {{name: mine}}\nincludes: [minimal, \"{lib}\"]\n"));
    let run = |more: &[&str]| {
        let args = [&["run", "--bundle", "b", "--provider", "mock", "--strict"][..], more, &["hi"]].concat();
        desk.with_git(&args)
    };
    let refused = run(&["--offline"]);
    assert_eq!(refused.code, 2, "{}", refused.seen());
    assert!(refused.stderr.contains("not in the cache"), "{}", refused.stderr);
    assert_eq!(run(&[]).code, 0);
    assert_eq!(run(&["--offline"]).code, 0);
}

#[test]
fn i25_what_a_running_session_uses_is_not_cleared() {
    let desk = Desk::new();
    let bundle = "---\nbundle: {name: far}\nincludes: [minimal]\nproviders: [{module: provider-mock, config: {responses: [{text: a, delay_ms: 600000}]}}]\n---\nSee @far:notes.md\n";
    let (uri, commit) = desk.commit("far", &[("bundle.md", bundle), ("notes.md", "n")]);
    let (other, unused) =
        desk.commit("other", &[("bundle.yaml", "bundle: {name: other}\nincludes: [minimal]\n")]);
    assert_eq!(desk.with_git(&["plan", "hash", "--bundle", &other]).code, 0);
    let mut running = desk.command_with_git(&["run", "--bundle", &uri, "hi"]).spawn().unwrap();
    let journal = || desk.sessions().first().map(|folder| folder.join("events.jsonl"));
    wait_until(|| journal().is_some_and(|file| file.exists() && read(&file).contains("provider:request")));
    let cleared = desk.amplifier(&["cache", "clear", "--output", "json"]);
    let told = cleared.json();
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(cleared.code, 1, "{}", cleared.seen());
    assert_eq!(
        (&told["removed"][0]["key"], &told["busy"][0]["key"]),
        (&json!(unused), &json!(commit)),
        "{told}"
    );
    let cleared = desk.amplifier(&["cache", "clear"]);
    assert_eq!((cleared.code, cleared.stdout.as_str()), (0, "1 removed\n"), "{}", cleared.seen());
}
