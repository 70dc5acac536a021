//! What commands print, as a person sees it: a snapshot each of those that no other file has one of.

use amplifier_testing::write_program;
use insta::{Settings, assert_snapshot};
use serde_json::{Value, json};

use crate::desk::{Desk, Ran};
use crate::provider::{Manner, Server, with};

/// Snapshots without what differs from run to run and from machine to machine.
fn told(desk: &Desk, name: &str, steps: &[(String, Ran)]) {
    let mut settings = Settings::clone_current();
    settings.add_filter(desk.path("").to_str().unwrap().trim_end_matches('/'), "<desk>");
    settings.add_filter(r"127\.0\.0\.1:\d+", "<server>");
    settings.add_filter(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)", "<time>");
    settings.add_filter(r"it is \d{4}-\d\d-\d\dT\d\d:\d\d", "it is <time>");
    settings.add_filter(r"\b\d+ ms\b", "<time>");
    settings.add_filter(r"sha256:[0-9a-f]{64}", "<hash>");
    settings.add_filter(r"\b[0-9a-f]{40}\b", "<commit>");
    settings.add_filter(r"\b[0-9a-f]{12}\b", "<commit>");
    settings.add_filter(r"\d+(\.\d+)? (B|KiB|MiB|GiB|TiB)\b", "<size>");
    let text: Vec<_> =
        steps.iter().map(|(step, ran)| format!("$ amplifier {step}\n{}", ran.seen())).collect();
    settings.bind(|| assert_snapshot!(name, text.join("\n")));
}

/// Does one thing after the other.
fn follow(desk: &Desk, name: &str, steps: &[&[&str]]) {
    let ran: Vec<_> = steps.iter().map(|step| (step.join(" "), desk.with_git(step))).collect();
    told(desk, name, &ran);
}

const PROFILE: &str = "---\nprofile:\n  name: base\n  version: 1.0.0\n  description: A profile to look at\n  schema_version: 2\nsession:\n  orchestrator: {module: loop-basic}\n  context: {module: context-simple}\nproviders:\n- module: provider-mock\n  config: {responses: [Hello from the profile]}\n---\nBe brief.\n";

#[test]
fn collections_and_profiles() {
    let desk = Desk::new();
    desk.commit(
        "profiles",
        &[("base/profile.md", PROFILE), ("broken/profile.md", "---\nprofile: {name: broken\n---\n")],
    );
    let source = format!("git+file://{}@main", desk.path("repos/profiles").display());
    follow(
        &desk,
        "collection",
        &[
            &["collection", "list"],
            &["collection", "add", "mine", &source, "--no-compile"],
            &["collection", "list"],
            &["collection", "sync"],
            &["collection", "add", "mine", &source],
            &["collection", "remove", "nobody"],
        ],
    );
    follow(
        &desk,
        "profile",
        &[
            &["profile", "list"],
            &["profile", "show", "mine/base"],
            &["profile", "compile", "mine/base"],
            &["profile", "check", "mine/base"],
            &["profile", "show", "mine/none"],
            &["profile", "compile", "mine/broken"],
            &["collection", "remove", "mine"],
            &["profile", "list"],
        ],
    );
}

#[test]
fn what_was_fetched_and_what_is_new() {
    let desk = Desk::new();
    let bundle = "---\nbundle: {name: far}\nincludes: [minimal]\n---\nFar.\n";
    let (uri, _) = desk.commit("far", &[("bundle.md", bundle)]);
    let steps: &[&[&str]] = &[
        &["cache", "list"],
        &["cache", "verify"],
        &["update", "--check"],
        &["bundle", "add", &uri],
        &["cache", "list"],
        &["cache", "verify"],
        &["update", "--check"],
    ];
    let mut ran: Vec<_> = steps.iter().map(|step| (step.join(" "), desk.with_git(step))).collect();
    let (_, commit) = desk.commit("far", &[("bundle.md", &bundle.replace("Far.", "Farther."))]);
    for step in [&["update", "--check"][..], &["update"], &["cache", "clear", "ffff"], &["cache", "clear"]] {
        ran.push((step.join(" "), desk.with_git(step)));
    }
    assert_ne!(commit, "");
    told(&desk, "cache_and_update", &ran);
}

#[test]
fn this_program() {
    let desk = Desk::new();
    let version = env!("CARGO_PKG_VERSION");
    let ran = desk.amplifier(&["version"]);
    let mut settings = Settings::clone_current();
    settings.add_filter(&version.replace('.', r"\."), "<version>");
    settings.add_filter(desk.path("").to_str().unwrap().trim_end_matches('/'), "<desk>");
    settings.add_filter(r"(?m)^(  platform +).*", "$1<platform>");
    settings.add_filter(r"(?m)^(  commit +).*", "$1<commit>");
    settings.add_filter(r"\d+ built in", "<number> built in");
    settings.bind(|| assert_snapshot!("version", ran.seen()));
}

/// Programs that only tell a version, so that every machine is the same.
fn programs(desk: &Desk) -> String {
    let folder = desk.path("bin");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, version) in [
        ("git", "git version 2.45.1"),
        ("python3", "Python 3.12.3"),
        ("uv", "uv 0.5.0"),
        ("node", "v22.1.0"),
        ("cargo", "cargo 1.95.0"),
        ("rustc", "rustc 1.95.0"),
    ] {
        let path = folder.join(name);
        write_program(&path, &format!("#!/bin/sh\necho '{version}'\n"));
    }
    folder.display().to_string()
}

#[test]
fn a_look_at_everything() {
    let desk = Desk::new();
    let path = programs(&desk);
    let looked = |args: &[&str], path: &str| {
        let Ran { code, stdout, stderr } = with(&desk, &[("PATH", path)], args);
        // What differs from machine to machine: this program, the disk and the sandbox, each with the lines below it.
        let mut kept = Vec::new();
        let mut is_kept = true;
        for line in stdout.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            let is_head = line.starts_with("  ") && !line.starts_with("   ");
            if is_head {
                let check = words.get(1).copied().unwrap_or_default();
                is_kept = !["version", "disk", "sandbox"].contains(&check);
                if !is_kept {
                    kept.push(format!("  <{check}>"));
                }
            } else if line.is_empty() {
                is_kept = true;
            }
            // Where a line ends depends on how long the path of the desk is.
            let goes_on = line.starts_with(&" ".repeat(24)) && !line.trim_start().starts_with("cure:");
            match kept.last_mut().filter(|_| goes_on) {
                Some(last) if is_kept => last.push_str(&format!(" {}", line.trim_start())),
                _ if is_kept => kept.push(line.to_owned()),
                _ => {}
            }
        }
        // How much is amiss depends on them.
        kept.pop();
        (args.join(" "), Ran { code, stdout: kept.join("\n") + "\n", stderr })
    };
    let nothing = desk.path("nothing").display().to_string();
    let well = looked(&["doctor", "--offline"], &path);
    let bare = looked(&["doctor"], &nothing);
    assert!(well.1.stdout.contains("no key of a model service is set"), "{}", well.1.seen());
    told(&desk, "doctor", &[well, bare]);
}

#[test]
fn providers_come_and_go() {
    let (desk, server) = (Desk::new(), Server::start(Manner::Well));
    let place = server.url();
    let steps: &[&[&str]] = &[
        &["provider", "add", "chat-completions", "--id", "near", "--base-url", &place, "--model", "smol"],
        &["provider", "add", "openai", "--key-from-env", "MY_KEY", "--project"],
        &["provider", "list"],
        &["provider", "remove", "near"],
        &["provider", "remove", "openai", "--project"],
        &["provider", "remove", "near"],
    ];
    let ran: Vec<_> = steps.iter().map(|step| (step.join(" "), with(&desk, &[], step))).collect();
    told(&desk, "provider_add_remove", &ran);
}

#[test]
fn a_model_is_connected() {
    let (desk, server) = (Desk::new(), Server::start(Manner::Well));
    let place = server.url();
    let variables =
        [("CHAT_COMPLETIONS_BASE_URL", place.as_str()), ("CHAT_COMPLETIONS_API_KEY", "hunter2-hunter2")];
    let steps: Vec<_> = [&["init", "--yes"][..], &["init", "--yes"]]
        .iter()
        .map(|step| (step.join(" "), with(&desk, &variables, step)))
        .collect();
    told(&desk, "init", &steps);
}

#[test]
fn plans_that_are_fine_and_plans_that_are_not_there() {
    let desk = Desk::new();
    desk.plan("a.json", &crate::desk::says("hi"));
    follow(&desk, "plan_fine", &[&["plan", "validate", "a.json"], &["plan", "hash", "--plan", "a.json"]]);
    follow(
        &desk,
        "plan_missing",
        &[
            &["plan", "hash", "--plan", "none.json"],
            &["plan", "show", "--plan", "none.json"],
            &["plan", "explain", "/tools", "--plan", "none.json"],
            &["plan", "explain", "/nothing", "--plan", "a.json"],
        ],
    );
}

#[test]
fn pages_for_the_shell() {
    let desk = Desk::new();
    let first_lines = |step: &[&str]| {
        let Ran { code, stdout, stderr } = desk.amplifier(step);
        let stdout = stdout.lines().take(8).map(|line| format!("{line}\n")).collect();
        (step.join(" "), Ran { code, stdout, stderr })
    };
    let mut settings = Settings::clone_current();
    settings.add_filter(&env!("CARGO_PKG_VERSION").replace('.', r"\."), "<version>");
    settings
        .bind(|| told(&desk, "shell_pages", &[first_lines(&["completions", "bash"]), first_lines(&["man"])]));
    desk.file("a.txt", "no folder");
    follow(&desk, "shell_pages_wrong", &[&["completions", "none"], &["man", "--dir", "a.txt"]]);
}

/// Everything that programs may ask for, where there is nothing to give.
#[test]
fn a_failure_has_one_shape_for_programs_whatever_was_asked() {
    let desk = Desk::new();
    desk.file("empty.json", "").file("shape.json", "{\"session\": 7}");
    let commands: &[(&[&str], u64)] = &[
        (&["session", "show", "nope"], 2),
        (&["session", "search", "x", "--session", "nope"], 2),
        (&["bundle", "show", "nope"], 2),
        (&["bundle", "list", "--bogus"], 2),
        (&["tool", "info", "nope"], 2),
        (&["agents", "show", "nope"], 2),
        (&["module", "info", "nope"], 2),
        (&["profile", "show", "nope"], 2),
        (&["profile", "show", "no/pe"], 2),
        (&["config", "get", "nope"], 2),
        (&["config", "get", "approve"], 1),
        (&["plan", "show", "--plan", "empty.json"], 2),
        (&["plan", "hash", "--plan", "none.json"], 2),
        (&["plan", "explain", "--plan", "none.json"], 2),
        (&["plan", "validate", "none.json"], 2),
        (&["plan", "diff", "empty.json", "shape.json"], 2),
        (&["--cwd", "nope", "session", "list"], 2),
        (&["run", "--plan", "none.json", "hi"], 2),
        (&["run", "--bogus", "hi"], 2),
    ];
    let schema = include_str!("../../../../schemas/failure.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    for (command, code) in commands {
        let text = desk.amplifier(command);
        assert_eq!(text.stdout, "", "{}", text.seen());
        let ran = desk.amplifier(&[command, &["--output", "json"][..]].concat());
        assert_eq!((ran.code as u64, text.code), (*code, ran.code), "{command:?}: {}", ran.seen());
        assert_eq!(ran.stderr, text.stderr, "people read the same");
        let told = ran.json();
        let broken: Vec<_> = schema.iter_errors(&told).map(|error| error.to_string()).collect();
        assert!(broken.is_empty(), "{command:?}: {broken:?}: {}", ran.seen());
        assert_eq!((&told["status"], &told["exit_code"]), (&json!("error"), &json!(code)), "{}", ran.seen());
        let error = told["error"].as_str().unwrap().lines().next().unwrap().to_owned();
        assert!(ran.stderr.contains(error.split(" <").next().unwrap()), "{error}: {}", ran.seen());
        assert!(told["hint"].is_string(), "{command:?}: {}", ran.seen());
    }
    let told = desk.amplifier(&["plan", "hash", "--plan", "shape.json", "--output", "json"]).json();
    assert_eq!(told["place"], json!({"file": "shape.json", "line": 1, "column": 13}));
    // What has an answer of its own, also where it is a bad one, is not spoken over.
    let ran = desk.amplifier(&["plan", "validate", "shape.json", "--output", "json"]);
    assert_eq!((ran.code, &ran.json()["passed"]), (1, &json!(false)), "{}", ran.seen());
}
