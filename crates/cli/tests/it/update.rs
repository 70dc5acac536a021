//! `amplifier update --check`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::desk::Desk;

/// Every file below a folder with its bytes, locks aside: holding one leaves its file.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.display().to_string(), std::fs::read(path).unwrap());
            }
        }
    }
    found
}

#[test]
fn what_moved_is_told_and_nothing_is_fetched_or_written() {
    let desk = Desk::new();
    let empty = desk.with_git(&["update", "--check"]);
    assert_eq!(
        (empty.code, empty.stdout.as_str()),
        (0, "no bundle is registered and there are no collections\n")
    );
    let (tools, before) = desk.commit("tools", &[("t/amplifier_module_tool_far/__init__.py", "far\n")]);
    let bundle = format!(
        "---\nbundle: {{name: far}}\nincludes: [minimal]\ntools: [{{module: tool-far, source: '{tools}#subdirectory=t'}}]\n---\nFar.\n"
    );
    let (uri, _) = desk.commit("bundles", &[("bundle.md", &bundle)]);
    let profile = "---\nprofile:\n  name: base\n  version: 1.0.0\n  description: d\n  schema_version: 2\nsession:\n  orchestrator: {module: loop-basic}\n  context: {module: context-simple}\n---\nx\n";
    let (profiles, _) = desk.commit("profiles", &[("base/profile.md", profile)]);
    assert_eq!(desk.with_git(&["bundle", "add", &uri]).code, 0);
    let added = desk.with_git(&["collection", "add", "mine", &profiles, "--no-compile"]);
    assert_eq!(added.code, 0, "{}", added.seen());

    let quiet = desk.with_git(&["update", "--check"]);
    assert_eq!(
        (quiet.code, quiet.stdout.as_str()),
        (0, "bundle far: nothing is new\ncollection mine: nothing is new\n"),
        "{}",
        quiet.seen()
    );

    let (_, after) = desk.commit("tools", &[("t/amplifier_module_tool_far/__init__.py", "farther\n")]);
    desk.commit("profiles", &[("base/more.md", "more")]);
    let kept = files(&desk.home());
    let news = desk.with_git(&["update", "--check"]);
    assert_eq!(news.code, 100, "{}", news.seen());
    assert!(
        news.stdout.contains("bundle far: `amplifier bundle update far` brings what is new\n"),
        "{}",
        news.stdout
    );
    assert!(news.stdout.contains(&format!("moves from {before} to {after}\n")), "{}", news.stdout);
    assert!(
        news.stdout
            .contains("collection mine: `amplifier collection sync mine --refresh` brings what is new\n"),
        "{}",
        news.stdout
    );
    assert_eq!(files(&desk.home()), kept);
    let told = desk.with_git(&["update", "--check", "--output", "json"]).json();
    assert_eq!(
        (&told["news"][0]["kind"], told["news"][1]["changes"].as_array().unwrap().len()),
        (&"bundle".into(), 1)
    );
    let change = &told["news"][0]["changes"][0];
    assert_eq!((change["from"].as_str(), change["to"].as_str()), (Some(&*before), Some(&*after)));
}

#[test]
fn one_that_cannot_be_asked_costs_nobody_else_and_without_check_it_is_a_wrong_call() {
    let desk = Desk::new();
    let bundle = "---\nbundle: {name: NAME}\nincludes: [minimal]\n---\nx\n";
    for name in ["one", "two"] {
        let (uri, _) = desk.commit(name, &[("bundle.md", &bundle.replace("NAME", name))]);
        assert_eq!(desk.with_git(&["bundle", "add", &uri]).code, 0);
    }
    std::fs::remove_dir_all(desk.path("repos/one")).unwrap();
    let ran = desk.with_git(&["update", "--check"]);
    assert_eq!(ran.code, 1, "{}", ran.seen());
    assert!(ran.stderr.contains("error: bundle one: cannot be told: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("  hint: "), "{}", ran.stderr);
    assert_eq!(ran.stdout, "bundle two: nothing is new\n");
    let wrong = desk.amplifier(&["update"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("--check"), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("`amplifier bundle update`"), "{}", wrong.stderr);
}

#[test]
fn w22_an_update_without_a_name_brings_every_registered_bundle_up_to_date() {
    let desk = Desk::new();
    let (lib, _) =
        desk.commit("lib", &[("bundle.yaml", "bundle: {name: lib}\ntools: [{module: tool-todo}]\n")]);
    let (tool, _) = desk.commit("tool", &[("amplifier_module_tool_far/__init__.py", "1\n")]);
    for (name, rest) in [
        ("one", format!("includes: [minimal, \"{lib}\"]\n")),
        (
            "two",
            format!(
                "includes: [minimal]\nagents: {{helper: {{tools: [{{module: tool-far, source: \"{tool}\"}}]}}}}\n"
            ),
        ),
        ("three", "includes: [minimal]\n".to_owned()),
    ] {
        let (uri, _) = desk.commit(name, &[("bundle.yaml", &format!("bundle: {{name: {name}}}\n{rest}"))]);
        assert_eq!(desk.with_git(&["bundle", "add", &uri]).code, 0);
        assert_eq!(desk.with_git(&["plan", "show", "--bundle", name]).code, 0);
    }
    let quiet = desk.with_git(&["bundle", "update", "--check"]);
    let nothing = "one: nothing is new\nthree: nothing is new\ntwo: nothing is new\n";
    assert_eq!((quiet.code, quiet.stdout.as_str()), (0, nothing), "{}", quiet.seen());
    let (_, lib_commit) =
        desk.commit("lib", &[("bundle.yaml", "bundle: {name: lib}\ntools: [{module: tool-web}]\n")]);
    let (_, tool_commit) = desk.commit("tool", &[("amplifier_module_tool_far/__init__.py", "2\n")]);
    let told = desk.with_git(&["bundle", "update", "--check"]);
    assert_eq!(told.code, 100, "{}", told.seen());
    assert!(told.stdout.contains(&lib_commit) && told.stdout.contains(&tool_commit), "{}", told.stdout);
    let tools = || desk.with_git(&["plan", "show", "--bundle", "one"]).json()["tools"].to_string();
    assert!(tools().contains("tool-todo") && !tools().contains("tool-web"), "a check changes nothing");
    let updated = desk.with_git(&["bundle", "update", "--output", "json"]);
    assert_eq!(updated.code, 0, "{}", updated.seen());
    let changes: Vec<_> = updated.json()["updates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|update| {
            (update["bundle"].as_str().unwrap().to_owned(), update["changes"].as_array().unwrap().len())
        })
        .collect();
    assert_eq!(changes, [("one".to_owned(), 1), ("three".to_owned(), 0), ("two".to_owned(), 1)]);
    assert!(tools().contains("tool-web") && !tools().contains("tool-todo"), "{}", tools());
    assert_eq!(desk.with_git(&["bundle", "update", "--check"]).stdout, nothing);
    // Offline, what was brought is there.
    std::fs::remove_dir_all(desk.path("repos")).unwrap();
    assert!(tools().contains("tool-web"));
}

#[test]
fn the_bundle_in_use_is_looked_at_though_it_has_no_name() {
    let desk = Desk::new();
    let text = |word: &str| format!("---\nbundle: {{name: far}}\nincludes: [minimal]\n---\n{word}\n");
    let (uri, before) = desk.commit("far", &[("bundle.md", &text("one"))]);
    assert_eq!(desk.with_git(&["config", "set", "bundle.active", &uri]).code, 0);
    assert_eq!(desk.with_git(&["plan", "show"]).code, 0);
    let quiet = desk.with_git(&["update", "--check"]);
    assert_eq!((quiet.code, quiet.stdout.as_str()), (0, &*format!("bundle {uri}: nothing is new\n")));
    let (_, after) = desk.commit("far", &[("bundle.md", &text("two"))]);
    for args in [["update", "--check"].as_slice(), &["bundle", "update", "--check"]] {
        let news = desk.with_git(args);
        assert_eq!(news.code, 100, "{}", news.seen());
        assert!(news.stdout.contains(&format!("moves from {before} to {after}")), "{}", news.stdout);
    }
    assert_eq!(desk.with_git(&["bundle", "update"]).code, 0);
    assert_eq!(desk.with_git(&["update", "--check"]).code, 0);
}
