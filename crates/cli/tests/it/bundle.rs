//! `amplifier run --bundle` and `amplifier bundle …`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::desk::{Desk, read};

/// A bundle on top of the built-in one, with a scripted model.
fn mine(responses: &Value) -> String {
    format!(
        "---\nbundle: {{name: mine, version: 0.2.0, description: My own.}}\nincludes: [minimal]\nproviders:\n  - module: \
         provider-mock\n    config: {{responses: {responses}}}\n---\nBe mine. See @notes.md\n"
    )
}

fn three_layers(desk: &Desk) {
    desk.file("b/base.yaml", "bundle: {name: base}\nsession: {orchestrator: loop-basic, context: {module: context-simple, config: {max_tokens: 100}}}\ntools: [{module: tool-todo}, {module: tool-bash, config: {timeout: 5}}]\n");
    desk.file(
        "b/mid.yaml",
        "bundle: {name: mid}\nincludes: [./base.yaml]\ntools: [{module: tool-bash, config: {timeout: 6}}]\n",
    );
    desk.file("b/bundle.md", "---\nbundle: {name: top, version: 1.0.0}\nincludes: [./mid.yaml]\nproviders: [{module: provider-mock}]\nsession: {context: {config: {max_tokens: 300}}}\n---\nTop.\n");
}

#[test]
fn a_bundle_folder_answers() {
    let desk = Desk::new();
    desk.file("b/bundle.md", mine(&json!(["Hello from mine."]))).file("notes.md", "n");
    let ran = desk.amplifier(&["run", "--bundle", "b", "hi"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "Hello from mine.\n", ""));
    let kept = read(&desk.sessions()[0].join("prompt.json"));
    assert!(kept.contains("Be mine."), "{kept}");
}

#[test]
fn files_that_a_prompt_mentions_come_with_it_and_strange_ones_are_told() {
    let desk = Desk::new();
    desk.file("b/bundle.md", mine(&json!(["ok"]))).file("notes.md", "n").file("a.txt", "xyzzy");
    let ran =
        desk.amplifier(&["run", "--bundle", "b", "read @a.txt, @missing.txt, ask @joe or joe@example.com"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert_eq!(ran.stderr, "warning: mention `@missing.txt`: nothing is there\n");
    let transcript = read(&desk.sessions()[0].join("transcript.jsonl"));
    assert!(transcript.contains("xyzzy") && transcript.contains("read @a.txt"), "{transcript}");
}

#[test]
fn without_a_name_the_built_in_bundle_is_run_with_a_provider_that_is_named_or_found() {
    let desk = Desk::new();
    let ran = crate::provider::with(&desk, &[], &["run", "--strict", "hi"]);
    assert_eq!(ran.code, 2, "{}", ran.seen());
    assert!(
        ran.stderr.starts_with("error: no provider is named, and none was found here\n"),
        "{}",
        ran.stderr
    );
    let ran = desk.amplifier(&["run", "--provider", "mock", "--output", "json", "hi"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.seen());
    let report = ran.json()["load_report"]["modules"].to_string();
    assert!(report.contains("tool-task") && report.contains("hooks-backup"), "{report}");
}

#[test]
fn the_built_in_bundles_are_clean() {
    let desk = Desk::new();
    for name in ["foundation", "minimal"] {
        let ran = desk.amplifier(&["bundle", "validate", name, "--strict"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "PASSED\n"), "{}", ran.seen());
        let ran = desk.amplifier(&["run", "--strict", "--bundle", name, "--provider", "mock", "hi"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.seen());
    }
}

#[test]
fn names_are_registered_used_and_forgotten() {
    let desk = Desk::new();
    desk.file("b/bundle.md", mine(&json!(["Mine."]))).file("notes.md", "n");
    let mut seen = String::new();
    for args in [
        &["bundle", "list"][..],
        &["bundle", "current"],
        &["bundle", "add", "b"],
        &["bundle", "add", "b", "--name", "again"],
        &["bundle", "use", "mine"],
        &["bundle", "list"],
        &["run", "hi"],
        &["bundle", "current", "--output", "json"],
        &["bundle", "remove", "mine"],
        &["bundle", "current"],
        &["bundle", "remove", "foundation"],
        &["bundle", "use", "nobody"],
        &["bundle", "add", "nowhere"],
    ] {
        seen.push_str(&format!("$ {}\n{}\n", args.join(" "), desk.seen(&desk.amplifier(args))));
    }
    assert_snapshot!("names", seen);
    let listed = desk.amplifier(&["bundle", "list", "--output", "json"]).json();
    let names: Vec<_> = listed["bundles"].as_array().unwrap().iter().map(|row| row["name"].clone()).collect();
    assert_eq!(names, [json!("again"), json!("foundation"), json!("minimal")]);
}

#[test]
fn a_bundle_shows_what_it_brings_and_where_from() {
    let desk = Desk::new();
    three_layers(&desk);
    assert_snapshot!("show", desk.seen(&desk.amplifier(&["bundle", "show", "b"])));
    assert_snapshot!("tree", desk.seen(&desk.amplifier(&["bundle", "tree", "b"])));
    assert_snapshot!("dot", desk.seen(&desk.amplifier(&["bundle", "tree", "b", "--dot"])));
    let tree = desk.amplifier(&["bundle", "tree", "b", "--output", "json"]).json();
    assert_eq!(tree["files"].as_array().unwrap().len(), 3);
    let shown = desk.amplifier(&["bundle", "show", "b", "--output", "json"]).json();
    assert_eq!(
        (shown["name"].clone(), shown["tools"].clone()),
        (json!("top"), json!(["tool-todo", "tool-bash"]))
    );
}

#[test]
fn w12_what_is_amiss_is_told_with_its_line_and_stops_in_strict_mode() {
    let desk = Desk::new();
    desk.file("b/bundle.md", "---\nbundle: {name: x, verion: 1}\nincludes: [minimal, ./gone.yaml]\ncontext: {include: [none.md]}\nagents: {include: [nobody]}\nproviders: [{module: provider-mock}]\ntool: []\n---\nHi.\n");
    assert_snapshot!("amiss", desk.seen(&desk.amplifier(&["bundle", "validate", "b"])));
    let strict = desk.amplifier(&["bundle", "validate", "b", "--strict"]);
    assert_eq!(strict.code, 1, "{}", strict.seen());
    let json = desk.amplifier(&["bundle", "validate", "b", "--output", "json"]).json();
    assert_eq!(json["passed"], json!(true));
    assert!(json["notices"].as_array().unwrap().len() >= 4, "{json}");
    let ran = desk.amplifier(&["run", "--strict", "--bundle", "b", "hi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.seen());
}

#[test]
fn a_tab_is_told_where_it_stands() {
    let desk = Desk::new();
    desk.file("b3.md", "---\nbundle:\n  name: x\n\tversion: 1\n---\n");
    let ran = desk.amplifier(&["run", "--bundle", "./b3.md", "hi"]);
    assert!(ran.code == 2 && ran.stderr.contains("b3.md:4:1: the YAML is broken"), "{}", ran.seen());
    assert!(ran.stderr.contains("  4 | \tversion: 1\n    | ^"), "{}", ran.seen());
    desk.file(".amplifier/settings.yaml", "limits:\n  timeout_seconds: 5\n\n  \tmax_turns: 3\n");
    let ran = desk.amplifier(&["config", "show"]);
    assert!(ran.stderr.contains("settings.yaml:4:") && !ran.stderr.contains("yaml:2:"), "{}", ran.seen());
}

#[test]
fn w11_broken_files_are_told_with_a_caret() {
    let desk = Desk::new();
    desk.file("b/bundle.md", "---\nbundle:\n  name: [x\n---\n")
        .file("c/bundle.yaml", "tools: 7\n")
        .file("d/x.txt", "");
    let mut seen = String::new();
    for reference in ["b", "c", "d", "nowhere", "./nowhere.md", "git+ssh"] {
        let ran = desk.amplifier(&["run", "--bundle", reference, "hi"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{reference}: {}", ran.seen());
        seen.push_str(&format!("$ {reference}\n{}\n", desk.seen(&ran)));
    }
    assert_snapshot!("broken_bundles", seen);
}

#[test]
fn a_lock_pins_and_an_update_shows_what_changes_first() {
    let desk = Desk::new();
    let (lib, _) =
        desk.commit("lib", &[("bundle.yaml", "bundle: {name: lib}\ntools: [{module: tool-todo}]\n")]);
    desk.file("b/bundle.yaml", format!("bundle: {{name: mine}}\nincludes: [minimal, \"{lib}\"]\n"));
    let show = || desk.with_git(&["plan", "show", "--bundle", "b"]);
    let locked = desk.with_git(&["bundle", "lock", "b"]);
    assert_eq!(locked.code, 0, "{}", locked.seen());
    let before = show();
    desk.commit("lib", &[("bundle.yaml", "bundle: {name: lib}\ntools: [{module: tool-echo}]\n")]);
    assert_eq!(show().stdout, before.stdout);
    let mut seen = String::new();
    for args in [
        &["bundle", "update", "b", "--check"][..],
        &["bundle", "update", "b"],
        &["bundle", "update", "b", "--check"],
        &["bundle", "update"],
    ] {
        seen.push_str(&format!("$ {}\n{}\n", args.join(" "), desk.seen(&desk.with_git(args))));
    }
    assert_snapshot!("update", seen);
    assert!(show().stdout.contains("tool-echo"));
    // Offline, from the cache alone.
    std::fs::remove_dir_all(desk.path("repos")).unwrap();
    assert!(show().stdout.contains("tool-echo"));
    let edited =
        format!("bundle: {{name: mine}}\nincludes: [minimal, \"{lib}\", \"git+file:///elsewhere@main\"]\n");
    desk.file("b/bundle.yaml", edited);
    let refused = show();
    assert_eq!((refused.code, refused.stdout.as_str()), (3, ""), "{}", refused.seen());
    assert_snapshot!("drift", desk.seen(&refused));
}

#[test]
fn a_name_that_hides_a_built_in_bundle_is_told_with_the_way_back() {
    let desk = Desk::new();
    desk.file("mine/bundle.md", "---\nbundle: {name: foundation, version: 1.0.0}\n---\nMine.\n");
    let added = desk.amplifier(&["bundle", "add", "./mine"]);
    assert_eq!(added.code, 0, "{}", added.seen());
    assert_eq!(added.stdout, "`foundation` is registered and in use\n");
    assert!(added.stderr.contains("is also built in"), "{}", added.stderr);
    let removed = desk.amplifier(&["bundle", "remove", "foundation"]);
    assert_eq!(removed.code, 0, "{}", removed.seen());
    let shown = desk.amplifier(&["bundle", "list"]);
    assert!(shown.stdout.contains("(built in) (in use)"), "{}", shown.stdout);
}

#[test]
fn a_bundle_that_says_no_name_is_asked_for_one() {
    let desk = Desk::new();
    desk.file("notes.md", "Only words.\n");
    let ran = desk.amplifier(&["bundle", "add", "notes.md"]);
    assert_eq!(ran.code, 2, "{}", ran.seen());
    assert!(ran.stderr.contains("the bundle `notes.md` does not say what it is called"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`--name NAME` gives it a name"), "{}", ran.stderr);
    assert_eq!(desk.amplifier(&["bundle", "add", "notes.md", "--name", "notes"]).code, 0);
}

#[test]
fn a_bundle_that_says_nothing_is_told_so() {
    let desk = Desk::new();
    for (name, text) in [("a.md", ""), ("b.md", "---\n---\n"), ("c.yaml", ""), ("d.yaml", "---\n")] {
        let ran = desk.file(name, text).amplifier(&["bundle", "validate", &format!("./{name}")]);
        assert!(ran.seen().contains(&format!("{name}:1:1: the bundle says nothing")), "{}", ran.seen());
        assert!(ran.seen().contains("hint: begin with `bundle:`"), "{}", ran.seen());
        let ran = desk.amplifier(&["run", "--bundle", &format!("./{name}"), "hi"]);
        assert!(ran.code == 2 && ran.stderr.contains("  hint: include `foundation`"), "{}", ran.seen());
    }
}
