//! Collections and profiles through the binary: the three phases of the specification, from `collections.yaml` to an answer.

use serde_json::{Value, json};

use crate::desk::{Desk, Ran};

/// A profile that answers by itself: its modules are named with sources, and the mock provider speaks.
fn profile(name: &str, modules: &str, rest: &str) -> String {
    format!(
        "---
profile:
  name: {name}
  version: 1.1.0
  description: Base configuration with core functionality
  schema_version: 2

session:
  orchestrator:
    module: loop-streaming
    source: {modules}#subdirectory=loop
    config:
      max_iterations: 10
  context:
    module: context-simple
    source: {modules}#subdirectory=context
    config:
      max_tokens: 200000

providers:
- module: provider-mock
  source: {modules}#subdirectory=provider
  config:
    responses: [Hello from the profile]

{rest}---

@docs:USAGE.md

# Base Profile
"
    )
}

/// A collection in one repository, its modules in another.
fn desk() -> (Desk, String) {
    let desk = Desk::new();
    let (modules, _) = desk.commit(
        "modules",
        &[
            ("loop/amplifier_module_loop_streaming/__init__.py", "loop\n"),
            ("context/amplifier_module_context_simple/__init__.py", "context\n"),
            ("provider/amplifier_module_provider_mock/__init__.py", "provider\n"),
        ],
    );
    let rest = "agents:\n  code-expert: ../agents/code.md\ncontext:\n  docs: ../docs\n";
    let (collection, _) = desk.commit(
        "profiles",
        &[
            ("base/profile.md", &profile("base", &modules, rest)),
            ("agents/code.md", "You are an expert.\n"),
            ("docs/USAGE.md", "usage\n"),
            ("README.md", "read me\n"),
        ],
    );
    (desk, collection)
}

fn ok(ran: Ran) -> Ran {
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    ran
}

fn value(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout))
}

#[test]
fn from_collections_yaml_to_an_answer() {
    let (desk, collection) = desk();
    let home = desk.home().join("share");
    std::fs::create_dir_all(&home).unwrap();
    let text = format!("collections:\n  foundation:\n    source: {collection}\n");
    std::fs::write(home.join("collections.yaml"), text).unwrap();
    let synced = ok(desk.with_git(&["collection", "sync"]));
    assert_eq!(synced.stdout, "foundation synced: base\n");
    let dir = home.join("profiles/foundation/base");
    for file in ["profile.md", "profile.lock", "agents/code-expert.md", "contexts/docs/USAGE.md"] {
        assert!(dir.join(file).is_file(), "{file}");
    }
    let answered = ok(desk.with_git(&["run", "--offline", "--profile", "foundation/base", "hi"]));
    assert_eq!(answered.stdout, "Hello from the profile\n");
    // The plan is kept with the session as the specification has it, hints and all.
    let session = desk.sessions().pop().unwrap();
    let plan: Value =
        serde_json::from_slice(&std::fs::read(session.join("mount_plan.json")).unwrap()).unwrap();
    assert_eq!(plan["session"]["orchestrator"]["source"], json!("foundation/base"));
    assert_eq!(plan["agents"]["code-expert"]["content"], json!("You are an expert.\n"));
    // And the session goes on without the profile being named.
    let id = session.file_name().unwrap().to_str().unwrap().to_owned();
    let again = ok(desk.with_git(&["run", "--resume", &id, "and now?"]));
    assert_eq!(again.stdout, "Hello from the profile\n");
}

#[test]
fn plans_of_profiles_are_shown_explained_hashed_and_compared() {
    let (desk, collection) = desk();
    let added = ok(desk.with_git(&["collection", "add", "foundation", &collection]));
    assert_eq!(added.stdout, "foundation synced: base\n");
    let id = "foundation/base";
    let nested = value(&ok(desk.with_git(&["plan", "show", "--profile", id])));
    assert_eq!(
        nested["session"]["context"],
        json!({"module": "context-simple", "source": id, "config": {"max_tokens": 200_000}})
    );
    assert_eq!((&nested["tools"], &nested["hooks"]), (&json!([]), &json!([])));
    let strings = value(&ok(desk.with_git(&["plan", "show", "--profile", id, "--format", "string"])));
    let url = format!(
        "file://{}",
        desk.home().join("share/profiles/foundation/base/orchestrator/loop-streaming").display()
    );
    assert_eq!(strings["session"]["orchestrator_source"], json!(url));
    assert_eq!(strings["orchestrator"], json!({"config": {"max_iterations": 10}}));
    let pointer = "/session/context/config/max_tokens";
    let explained = ok(desk.with_git(&["plan", "explain", pointer, "--profile", id]));
    assert!(explained.stdout.contains("base/profile.md:18:19"), "{}", explained.stdout);
    let hash = |args: &[&str]| ok(desk.with_git(&[&["plan", "hash"], args].concat())).stdout;
    desk.file("nested.json", nested.to_string());
    assert_eq!(hash(&["--profile", id]), hash(&["--plan", "nested.json"]));
    ok(desk.with_git(&["plan", "diff", "nested.json", "profile:foundation/base"]));
}

#[test]
fn profiles_are_listed_shown_checked_and_compiled() {
    let (desk, collection) = desk();
    ok(desk.with_git(&["collection", "add", "foundation", &collection, "--no-compile"]));
    let listed = ok(desk.with_git(&["profile", "list"]));
    assert!(
        listed.stdout.contains("foundation/base") && listed.stdout.contains("not compiled"),
        "{}",
        listed.stdout
    );
    let checked = desk.with_git(&["profile", "check", "foundation/base"]);
    assert_eq!((checked.code, checked.stdout.as_str()), (1, "not compiled\n"));
    let compiled = ok(desk.with_git(&["profile", "compile"]));
    assert_eq!(compiled.stdout, "foundation/base compiled\n");
    assert_eq!(
        ok(desk.with_git(&["profile", "compile", "foundation/base", "--offline"])).stdout,
        "foundation/base unchanged\n"
    );
    ok(desk.with_git(&["profile", "check", "foundation/base"]));
    let shown = value(&ok(desk.with_git(&["profile", "show", "foundation/base", "--output", "json"])));
    assert_eq!((&shown["state"], &shown["version"]), (&json!("current"), &json!("1.1.0")));
    assert_eq!(shown["references"].as_array().unwrap().len(), 5);
    let collections = value(&ok(desk.with_git(&["collection", "list", "--output", "json"])));
    assert_eq!(collections["collections"][0]["profiles"], json!(["base"]));
    ok(desk.with_git(&["collection", "remove", "foundation"]));
    assert!(!desk.home().join("share/profiles/foundation").exists());
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_a_cure() {
    let desk = Desk::new();
    let text = "---\nprofile:\n  name: broken\n  version: 1\n  schema_version: 2\n  extends: nobody\n---\n";
    desk.file("c/broken/profile.md", text);
    let added = desk.with_git(&["collection", "add", "mine", "c"]);
    assert_eq!(added.code, 1);
    assert!(added.stderr.contains("Some profiles failed to compile: broken"), "{}", added.stderr);
    let ran = desk.with_git(&["run", "--profile", "mine/broken", "hi"]);
    assert_eq!(ran.code, 2);
    let expected = "broken/profile.md:6:12: the profile `nobody` that `mine/broken` extends is not there";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("  hint: ") && ran.stderr.contains("6 |   extends: nobody"),
        "{}",
        ran.stderr
    );
    let ran = desk.with_git(&["run", "--profile", "mine", "hi"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("Invalid profile_id format: mine."), "{}", ran.stderr);
    assert!(ran.stderr.contains("  hint: `amplifier profile list`"), "{}", ran.stderr);
    // A collection that cannot be had is not registered.
    let ran = desk.with_git(&["collection", "add", "gone", "/nowhere/at/all"]);
    assert_eq!(ran.code, 1);
    let listed = value(&ok(desk.with_git(&["collection", "list", "--output", "json"])));
    assert_eq!(listed["collections"].as_array().unwrap().len(), 1);
}

#[test]
fn a_profile_that_upstream_breaks_stays_as_it_was_and_the_refresh_is_no_success() {
    let (desk, collection) = desk();
    ok(desk.with_git(&["collection", "add", "foundation", &collection]));
    let text = std::fs::read_to_string(desk.path("repos/profiles/base/profile.md")).unwrap();
    let refresh = |args: &[&str]| desk.with_git(&[&["collection", "sync", "--refresh"], args].concat());
    let broken = [
        text.replace("  version: 1.1.0\n", "  version: [1.1.0\n"),
        text.replace("\n---\n\n@docs", "\n\n@docs"),
        "# Nothing of a profile any more\n".to_owned(),
    ];
    for broken in &broken {
        desk.commit("profiles", &[("base/profile.md", broken)]);
        let ran = refresh(&[]);
        assert_eq!(ran.code, 1, "{}", ran.seen());
        assert!(ran.stderr.contains("error: ") && ran.stderr.contains("base/profile.md"), "{}", ran.seen());
        assert!(ran.stderr.contains("note: `foundation/base` stays as it was before"), "{}", ran.seen());
        let told = value(&refresh(&["--output", "json"]));
        assert_eq!(told["collections"][0]["skipped"][0]["kept"], json!("foundation/base"), "{told}");
        assert_eq!(told["collections"][0]["removed"], json!([]), "{told}");
        let answered = ok(desk.with_git(&["run", "--offline", "--profile", "foundation/base", "hi"]));
        assert_eq!(answered.stdout, "Hello from the profile\n");
    }
    desk.commit("profiles", &[("base/profile.md", &broken[0])]);
    assert!(
        refresh(&[]).stderr.contains("base/profile.md:5:14: the YAML is broken"),
        "{}",
        refresh(&[]).seen()
    );

    // One that can be read and not be compiled is no better than one that cannot be read.
    let rows = [
        ("#subdirectory=loop", "#subdirectory=nowhere", "nowhere"),
        ("  schema_version: 2\n", "  schema_version: 2\n  extends: nobody\n", "nobody"),
        ("../docs", "../nowhere", "nowhere"),
    ];
    for (from, to, told) in rows {
        desk.commit("profiles", &[("base/profile.md", &text.replace(from, to))]);
        let ran = refresh(&[]);
        assert_eq!(ran.code, 1, "{}", ran.seen());
        assert!(ran.stderr.contains("error: ") && ran.stderr.contains(told), "{}", ran.seen());
        assert!(ran.stderr.contains("note: `foundation/base` stays as it was before"), "{}", ran.seen());
        let kept = std::fs::read_to_string(desk.home().join("share/profiles/foundation/base/profile.md"));
        assert_eq!(kept.unwrap(), text);
        let failed = value(&refresh(&["--output", "json"]))["collections"][0]["failed"].clone();
        assert_eq!(failed[0]["kept"], json!("foundation/base"), "{failed}");
        let answered = ok(desk.with_git(&["run", "--offline", "--profile", "foundation/base", "hi"]));
        assert_eq!(answered.stdout, "Hello from the profile\n");
    }

    // Mended, it is taken over; taken away, it is gone.
    let mended = text.replace("Hello from the profile", "Hello again");
    desk.commit("profiles", &[("base/profile.md", &mended)]);
    assert_eq!(ok(refresh(&[])).stdout, "foundation updated: base\n");
    let answered = ok(desk.with_git(&["run", "--offline", "--profile", "foundation/base", "hi"]));
    assert_eq!(answered.stdout, "Hello again\n");
    desk.git("profiles", &["rm", "--quiet", "base/profile.md"]);
    desk.commit("profiles", &[("README.md", "less\n")]);
    let ran = ok(refresh(&[]));
    assert!(ran.stderr.contains("`foundation/base` is no longer in its collection"), "{}", ran.seen());
}
