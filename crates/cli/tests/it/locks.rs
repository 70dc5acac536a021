//! A lock keeps what it names: whatever is missing, moved or changed ends the command and leaves the lock as it was.

use serde_json::{Value, json};

use crate::desk::{Desk, Ran, plan, read};

/// A bundle in `b` whose included, fetched layer denies a tool; its model writes a file.
fn locked() -> (Desk, String, String) {
    let desk = Desk::new();
    let rules = "hooks: [{module: hooks-approval, config: {rules: [{tool: write_file, action: deny}]}}]\n";
    let (team, commit) = desk.commit("team", &[("bundle.yaml", &format!("bundle: {{name: team}}\n{rules}"))]);
    let call =
        json!({"tool_calls": [{"name": "write_file", "arguments": {"path": "written", "content": "x"}}]});
    let written = plan(json!({"responses": [call, "done"]}));
    desk.file(
        "b/bundle.yaml",
        format!(
            "bundle: {{name: proj}}\nincludes: [\"{team}\"]\nsession: {}\nproviders: {}\ntools: {}\n",
            written["session"], written["providers"], written["tools"]
        ),
    );
    let ran = desk.with_git(&["bundle", "lock", "b"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    // Rules of a fetched bundle may allow as well as deny.
    assert_eq!(desk.with_git(&["trust", "--bundle", "b"]).code, 0);
    (desk, team, commit)
}

fn writes(desk: &Desk, more: &[&str]) -> Ran {
    desk.with_git(&[&["run", "--bundle", "b", "--approve", "all", "go"], more].concat())
}

fn is_written(desk: &Desk) -> bool {
    desk.work().join("written").exists()
}

#[test]
fn i25_what_a_lock_names_and_cannot_be_fetched_ends_every_command() {
    let (desk, team, _) = locked();
    let ran = writes(&desk, &[]);
    assert_eq!((ran.code, is_written(&desk)), (0, false), "the layer denies: {}", ran.seen());
    std::fs::remove_dir_all(desk.home().join("cache")).unwrap();
    std::fs::remove_dir_all(desk.path("repos/team")).unwrap();
    for args in [
        &["run", "--bundle", "b", "--approve", "all", "go"][..],
        &["run", "--bundle", "b", "--approve", "all", "--offline", "go"],
        &["run", "--bundle", "b", "--approve", "all", "-q", "go"],
        &["run", "--bundle", "b", "--approve", "all", "--output", "json", "go"],
        &["chat", "--bundle", "b"],
        &["plan", "show", "--bundle", "b"],
        &["plan", "hash", "--bundle", "b"],
        &["bundle", "show", "b"],
        &["bundle", "tree", "b"],
        &["bundle", "validate", "b"],
        &["bundle", "validate", "b", "--output", "json"],
        &["tool", "list", "--bundle", "b"],
        &["agents", "list", "--bundle", "b"],
    ] {
        let ran = desk.with_git(args);
        assert!(matches!(ran.code, 1 | 2), "{args:?}: {}", ran.seen());
        let seen = ran.seen();
        assert!(seen.contains(&team) && seen.contains("cannot be loaded"), "{args:?}: {seen}");
        assert!(!is_written(&desk), "{args:?}");
    }
    let validated = desk.with_git(&["bundle", "validate", "b", "--output", "json"]).json();
    assert_eq!(validated["passed"], json!(false), "{validated}");
    desk.file(".keep", "").amplifier(&["config", "set", "bundle.active", "./b"]);
    let doctor = desk.with_git(&["doctor", "--offline", "--output", "json"]).json();
    let bundle = doctor["findings"].as_array().unwrap().iter().find(|found| found["check"] == "bundle");
    assert_eq!(bundle.unwrap()["level"], json!("problem"), "{doctor}");
}

#[test]
fn i25_a_locked_module_that_cannot_be_fetched_ends_the_run() {
    let desk = Desk::new();
    let (gate, _) = desk.commit("gate", &[("amplifier_module_hooks_gate/__init__.py", "x = 1\n")]);
    desk.file(
        "b/bundle.yaml",
        format!("bundle: {{name: b}}\nincludes: [minimal]\nproviders: [{{module: provider-mock}}]\nhooks: [{{module: hooks-gate, source: \"{gate}\"}}]\n"),
    );
    assert_eq!(desk.with_git(&["bundle", "lock", "b"]).code, 0);
    std::fs::remove_dir_all(desk.home().join("cache")).unwrap();
    std::fs::remove_dir_all(desk.path("repos/gate")).unwrap();
    let ran = desk.with_git(&["run", "--bundle", "b", "go"]);
    assert_eq!(ran.code, 2, "{}", ran.seen());
    assert!(ran.stderr.contains("hooks-gate") && ran.stderr.contains("/repos/gate@"), "{}", ran.stderr);
}

#[test]
fn i25_an_include_that_cannot_be_fetched_is_an_error_without_a_lock_too() {
    let (desk, team, _) = locked();
    std::fs::remove_file(desk.work().join("b/bundle.lock")).unwrap();
    std::fs::remove_dir_all(desk.home().join("cache")).unwrap();
    std::fs::remove_dir_all(desk.path("repos/team")).unwrap();
    for more in [&[][..], &["--offline"], &["--output", "json"]] {
        let ran = writes(&desk, more);
        assert_eq!((ran.code, is_written(&desk)), (2, false), "{}", ran.seen());
        assert!(ran.seen().contains(&team), "{}", ran.seen());
    }
}

#[test]
fn i25_a_lock_stays_when_a_source_cannot_be_reached() {
    let (desk, team, _) = locked();
    let lock = desk.work().join("b/bundle.lock");
    let before = read(&lock);
    let away = |repo: &str, to: &str| {
        std::fs::rename(desk.path("repos").join(repo), desk.path("repos").join(to)).unwrap()
    };
    away("team", "gone");
    for command in ["update", "lock"] {
        // An update asks the server; a lock is made from what is there until that is gone.
        if command == "lock" {
            std::fs::remove_dir_all(desk.home().join("cache")).unwrap();
        }
        let ran = desk.with_git(&["bundle", command, "b"]);
        assert!(matches!(ran.code, 1 | 2), "{command}: {}", ran.seen());
        assert!(ran.stderr.contains(&team), "{command}: {}", ran.seen());
        assert_eq!(read(&lock), before, "{command}");
    }
    let check = desk.with_git(&["bundle", "update", "b", "--check"]);
    assert!(matches!(check.code, 1 | 2), "{}", check.seen());
    away("gone", "team");
    assert_eq!(desk.with_git(&["bundle", "update", "b"]).code, 0);
    assert_eq!(read(&lock), before);
    assert_eq!((writes(&desk, &[]).code, is_written(&desk)), (0, false));
}

#[test]
fn i25_a_commit_with_other_content_is_a_broken_cache_and_is_never_locked() {
    let (desk, _, commit) = locked();
    let lock = desk.work().join("b/bundle.lock");
    let before = read(&lock);
    let file = desk.home().join("cache/git").join(&commit).join("bundle.yaml");
    let tampered = read(&file).replace("action: deny", "action: allow");
    std::fs::write(&file, &tampered).unwrap();
    let refuses = |args: &[&str]| {
        let ran = desk.with_git(args);
        assert_eq!(ran.code, 3, "{args:?}: {}", ran.seen());
        assert!(
            ran.stderr.contains(&format!("`amplifier cache clear {commit}`")),
            "{args:?}: {}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("bundle update"), "{args:?}: {}", ran.stderr);
        assert_eq!(read(&lock), before, "{args:?}");
        assert!(!is_written(&desk));
    };
    let commands = [
        &["run", "--bundle", "b", "--approve", "all", "go"][..],
        &["bundle", "validate", "b"],
        &["plan", "show", "-B", "b"],
    ];
    commands.into_iter().for_each(refuses);
    // Neither is the record of the cache believed, which lies beside the files.
    let record = desk.home().join("cache/git/.meta").join(format!("{commit}.json"));
    for recorded in [read(&record), forged(&desk, &commit)] {
        std::fs::write(&record, recorded).unwrap();
        for command in ["update", "lock"] {
            let ran = desk.with_git(&["bundle", command, "b"]);
            assert!(matches!(ran.code, 1 | 3), "{command}: {}", ran.seen());
            assert!(
                ran.stderr.contains(&format!("`amplifier cache clear {commit}`")),
                "{command}: {}",
                ran.seen()
            );
            assert_eq!(read(&lock), before, "{command}");
        }
    }
    // Without the lock there is only the record to compare with.
    assert_eq!(desk.amplifier(&["cache", "clear", &commit]).code, 0);
    assert_eq!((writes(&desk, &[]).code, is_written(&desk)), (0, false));
    assert!(read(&file).contains("action: deny"));
}

/// A record that fits the files as they are now.
fn forged(desk: &Desk, commit: &str) -> String {
    let verified = desk.amplifier(&["cache", "verify", "--output", "json"]).json();
    assert_eq!(verified["passed"], json!(false), "{verified}");
    let record = desk.home().join("cache/git/.meta").join(format!("{commit}.json"));
    let mut record: Value = serde_json::from_str(&read(&record)).unwrap();
    // The hash of a tree is that of its files; the lock of another bundle says what it is.
    let team = desk.home().join("cache/git").join(commit);
    std::fs::create_dir_all(desk.work().join("copy")).unwrap();
    std::fs::copy(team.join("bundle.yaml"), desk.work().join("copy/bundle.yaml")).unwrap();
    desk.file(
        "c/bundle.yaml",
        "bundle: {name: c}\nincludes: [file://COPY]\n"
            .replace("COPY", &desk.path("work/copy").display().to_string()),
    );
    let locked = desk.with_git(&["bundle", "lock", "c"]);
    assert_eq!(locked.code, 0, "{}", locked.seen());
    let lock: Value = serde_json::from_str(&read(&desk.work().join("c/bundle.lock"))).unwrap();
    let (_, source) = lock["sources"].as_object().unwrap().iter().next().unwrap();
    record["content_hash"] = source["content_hash"].clone();
    record.to_string()
}
