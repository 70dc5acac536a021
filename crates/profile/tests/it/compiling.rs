//! What is resolved again and what is not, and what a failure leaves behind (reference §6.3, §6.4).

use std::fs;

use amplifier_profile::ProfileError;
use amplifier_profile::check::State;

use crate::house::{House, listing, module, outcome, profile};
use crate::support::Repo;

/// A repository with one module in it.
fn repository(house: &House, id: &str) -> Repo {
    let repo = house.world.repo(&format!("repos/{id}"));
    let files = module(id);
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    repo.commit(&files);
    repo
}

fn tools(house: &House, text: &str) {
    house.write("home/share/profiles/local/p/profile.md", &profile("p", text));
}

const DIR: &str = "profiles/local/p";

#[tokio::test]
async fn only_what_changed_is_resolved_again() {
    let house = House::new();
    let (a, b) = (repository(&house, "tool-a"), repository(&house, "tool-b"));
    let two = |b: &str, config: &str| {
        format!(
            "tools:\n- {{module: tool-a, source: {}}}\n- {{module: tool-b, source: {b}{config}}}\n",
            a.uri("@main")
        )
    };
    tools(&house, &two(&b.uri("@main"), ""));
    let first = house.compile("local/p").await.unwrap();
    assert_eq!(outcome(&first), ["tool-a", "tool-b"]);
    assert_eq!(house.heard.resolved().len(), 2);
    // Nothing changed: nothing happens.
    let again = house.compile("local/p").await.unwrap();
    assert_eq!(outcome(&again), ["unchanged"]);
    assert_eq!(again.lock, first.lock);
    assert!(house.heard.resolved().is_empty());
    // Only a config: nothing is fetched, the plan has it.
    tools(&house, &two(&b.uri("@main"), ", config: {x: 1}"));
    let configured = house.compile("local/p").await.unwrap();
    assert!(outcome(&configured).is_empty());
    assert!(house.heard.resolved().is_empty());
    assert_eq!(configured.lock.resources, first.lock.resources, "the times of resolving stay");
    assert_ne!(configured.lock.profile_hash, first.lock.profile_hash);
    let plan = house.plan_as("local/p", Default::default());
    assert_eq!(plan["tools"][1]["config"]["x"], 1);
    // One reference: only that one.
    b.run(&["branch", "other"]);
    tools(&house, &two(&b.uri("@other"), ""));
    let moved = house.compile("local/p").await.unwrap();
    assert_eq!(outcome(&moved), ["tool-b"]);
    assert_eq!(house.heard.resolved(), [b.uri("@other")]);
    // Without its lock the profile is compiled anew.
    fs::remove_file(house.share(DIR).join("profile.lock")).unwrap();
    assert_eq!(outcome(&house.compile("local/p").await.unwrap()), ["tool-a", "tool-b"]);
    // A lock that cannot be read is none.
    fs::write(house.share(DIR).join("profile.lock"), "{").unwrap();
    assert_eq!(outcome(&house.compile("local/p").await.unwrap()), ["tool-a", "tool-b"]);
}

#[tokio::test]
async fn what_was_removed_or_changed_by_hand_is_restored() {
    let house = House::new();
    let a = repository(&house, "tool-a");
    tools(&house, &format!("tools:\n- {{module: tool-a, source: {}}}\n", a.uri("@main")));
    house.compile("local/p").await.unwrap();
    let before = house.snapshot(DIR);
    let id = "local/p".parse().unwrap();
    assert_eq!(house.profiles.check(&id).unwrap().state, State::Current);
    let file = house.share(DIR).join("tools/tool-a/amplifier_module_tool_a/__init__.py");
    fs::write(&file, "changed").unwrap();
    let State::Stale(why) = house.profiles.check(&id).unwrap().state else { panic!("it was changed") };
    assert_eq!(why, ["`tools/tool-a` is not what was locked"]);
    house.profiles.compile(&id, &house.offline()).await.unwrap();
    assert_eq!(
        house.snapshot(DIR)["tools/tool-a/amplifier_module_tool_a/__init__.py"],
        before["tools/tool-a/amplifier_module_tool_a/__init__.py"]
    );
    fs::remove_dir_all(house.share(DIR).join("tools")).unwrap();
    let State::Stale(why) = house.profiles.check(&id).unwrap().state else { panic!("it was removed") };
    assert_eq!(why, ["`tools/tool-a` is missing"]);
    house.compile("local/p").await.unwrap();
    assert_eq!(house.profiles.check(&id).unwrap().state, State::Current);
    assert_eq!(
        listing(&house.share("profiles/local")).iter().filter(|name| name.starts_with('.')).count(),
        0
    );
}

#[tokio::test]
async fn a_failure_leaves_the_old_folder_as_it_was() {
    let house = House::new();
    let a = repository(&house, "tool-a");
    tools(&house, &format!("tools:\n- {{module: tool-a, source: {}}}\n", a.uri("@main")));
    house.compile("local/p").await.unwrap();
    let mut before = house.snapshot(DIR);
    let gone = format!("git+file://{}@main", house.path("repos/nowhere").display());
    let rows = ["tool-a", "tool-b", "tool-c", "tool-d", "tool-e"].map(|id| {
        let source = if id == "tool-b" { gone.clone() } else { repository_uri(&house, id) };
        format!("- {{module: {id}, source: {source}}}\n")
    });
    let text = profile("p", &format!("tools:\n{}", rows.concat()));
    tools(&house, &format!("tools:\n{}", rows.concat()));
    let error = house.compile("local/p").await.unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains(":11:")
            && said.contains(&format!("the module reference `{gone}` of `tool-b` cannot be resolved")),
        "{said}"
    );
    assert!(error.hint().is_some());
    before.insert("profile.md".into(), text.into_bytes());
    assert_eq!(house.snapshot(DIR), before);
    assert_eq!(crate::support::names(house.share("profiles/local")), ["p"]);
}

fn repository_uri(house: &House, id: &str) -> String {
    let path = house.path(&format!("repos/{id}"));
    if path.exists() {
        format!("git+file://{}@main", path.display())
    } else {
        repository(house, id).uri("@main")
    }
}

#[tokio::test]
async fn a_branch_moves_only_when_it_is_asked_for() {
    let house = House::new();
    let a = repository(&house, "tool-a");
    tools(&house, &format!("tools:\n- {{module: tool-a, source: {}}}\n", a.uri("@main")));
    let id = "local/p".parse().unwrap();
    let first = house.compile("local/p").await.unwrap().lock;
    let commit = a.commit(&[("amplifier_module_tool_a/new.py", "new\n")]);
    assert_eq!(outcome(&house.compile("local/p").await.unwrap()), ["unchanged"]);
    let moved = house.profiles.compile(&id, &house.fresh()).await.unwrap();
    assert_eq!(outcome(&moved), ["tool-a"]);
    assert_eq!(moved.lock.resources.tools[0].commit.as_deref(), Some(commit.as_str()));
    assert_ne!(moved.lock.resources.tools[0].resolved_at, first.resources.tools[0].resolved_at);
    assert!(house.share(DIR).join("tools/tool-a/amplifier_module_tool_a/new.py").is_file());
    // Asked again, and nothing has moved.
    assert_eq!(outcome(&house.profiles.compile(&id, &house.fresh()).await.unwrap()), ["unchanged"]);
    // A commit in the lock holds even when the branch goes on and the folder is lost.
    a.commit(&[("amplifier_module_tool_a/newer.py", "newer\n")]);
    fs::remove_dir_all(house.share(DIR).join("tools")).unwrap();
    let restored = house.profiles.compile(&id, &house.offline()).await.unwrap();
    assert_eq!(restored.lock.resources.tools[0].commit.as_deref(), Some(commit.as_str()));
}

#[tokio::test]
async fn an_edit_of_a_base_or_of_a_folder_on_this_machine_is_seen() {
    let house = House::new();
    house.write("modules/tool-x/amplifier_module_tool_x/__init__.py", "1\n");
    let base = |rest: &str| {
        profile(
            "base",
            &format!(
                "tools:\n- {{module: tool-x, source: {}{rest}}}\n",
                house.path("modules/tool-x").display()
            ),
        )
    };
    house.write("home/share/profiles/local/base/profile.md", &base(""));
    tools(&house, "");
    let text = profile("p", "").replace("  version", "  extends: base\n  version");
    house.write("home/share/profiles/local/p/profile.md", &text);
    assert_eq!(outcome(&house.compile("local/p").await.unwrap()), ["tool-x"]);
    assert_eq!(outcome(&house.compile("local/p").await.unwrap()), ["unchanged"]);
    house.write("home/share/profiles/local/base/profile.md", &base(", config: {a: 1}"));
    let compiled = house.compile("local/p").await.unwrap();
    assert!(outcome(&compiled).is_empty(), "{:?}", compiled.outcome);
    assert_eq!(compiled.lock.extends[0].profile, "local/base");
    house.write("modules/tool-x/amplifier_module_tool_x/__init__.py", "2\n");
    assert_eq!(outcome(&house.compile("local/p").await.unwrap()), ["tool-x"]);
    let copied = house.share(DIR).join("tools/tool-x/amplifier_module_tool_x/__init__.py");
    assert_eq!(fs::read_to_string(copied).unwrap(), "2\n");
}

#[tokio::test]
async fn entries_without_a_source_shift_nothing_and_empty_folders_are_there() {
    let house = House::new();
    let (a, c) = (repository(&house, "tool-a"), repository(&house, "tool-c"));
    tools(
        &house,
        &format!(
            "tools:\n- {{module: tool-a, source: {}}}\n- module: tool-b\n- {{module: tool-c, source: {}}}\n- {{module: tool-a, config: {{again: true}}}}\n",
            a.uri(""),
            c.uri("")
        ),
    );
    house.compile("local/p").await.unwrap();
    assert_eq!(crate::support::names(house.share(DIR).join("tools")), ["tool-a", "tool-c"]);
    assert_eq!(
        crate::support::names(house.share(DIR)),
        ["hooks", "profile.lock", "profile.md", "providers", "tools"]
    );
    let plan = house.plan_as("local/p", Default::default());
    let sources: Vec<_> =
        plan["tools"].as_array().unwrap().iter().map(|tool| tool["source"].as_str()).collect();
    assert_eq!(sources, [Some("local/p"), None, Some("local/p"), Some("local/p")]);
}

#[tokio::test]
async fn agents_are_named_by_their_key_and_by_products_are_left_behind() {
    let house = House::new();
    let repo = house.world.repo("repos/x");
    repo.commit(&[
        ("agents/abc.md", "agent\n"),
        ("ctx/a.md", "a\n"),
        ("ctx/__pycache__/a.pyc", "x"),
        ("ctx/.venv/b", "x"),
        ("ctx/node_modules/c/d.js", "x"),
    ]);
    tools(
        &house,
        &format!(
            "agents: {{explorer: {}}}\ncontext: {{docs: {}}}\n",
            repo.uri("#agents/abc.md"),
            repo.uri("#subdirectory=ctx")
        ),
    );
    house.compile("local/p").await.unwrap();
    assert_eq!(listing(&house.share(DIR).join("agents")), ["explorer.md"]);
    assert_eq!(listing(&house.share(DIR).join("contexts")), ["docs/", "docs/a.md"]);
    // The working folder of a repository on this machine is copied without its history.
    tools(&house, &format!("context: {{docs: {}}}\n", repo.path.display()));
    house.compile("local/p").await.unwrap();
    assert!(!house.share(DIR).join("contexts/docs/.git").exists());
    assert!(house.share(DIR).join("contexts/docs/agents/abc.md").is_file());
}

#[tokio::test]
async fn what_does_not_fit_is_told_with_its_line_and_what_was_expected() {
    let house = House::new();
    house.write("two/amplifier_module_tool_a/__init__.py", "");
    house.write("two/amplifier_module_tool_b/__init__.py", "");
    house.write("empty/readme.txt", "");
    house.write("file.md", "text");
    fs::write(house.path("binary.md"), [0xff, 0xfe, 0x00]).unwrap();
    let at = |name: &str| house.path(name).display().to_string();
    let rows = [
        (
            format!("tools:\n- {{module: tool-x, source: {}}}\n", at("empty")),
            "holds no module `tool-x`: expected the folder `amplifier_module_tool_x` in it",
        ),
        (
            format!("tools:\n- {{module: tool-x, source: {}}}\n", at("two")),
            "found `amplifier_module_tool_a`, `amplifier_module_tool_b`",
        ),
        (format!("tools:\n- {{module: tool-x, source: {}}}\n", at("file.md")), "found a file"),
        (
            format!(
                "tools:\n- {{module: tool-x, source: {}}}\n- {{module: tool-x, source: {}}}\n",
                at("two"),
                at("empty")
            ),
            "`tool-x` has two sources",
        ),
        (format!("context: {{docs: {}}}\n", at("file.md")), "Context ref must be a directory"),
        (format!("agents: {{a: {}}}\n", at("two")), "is a folder"),
        (format!("agents: {{a: {}}}\n", at("binary.md")), "is no UTF-8 text"),
        ("agents: {../a: ./x.md}\n".to_owned(), "`../a` is no name of a folder"),
        (format!("agents: {{a: {}}}\n", at("missing.md")), "does not exist"),
        ("tools:\n- {module: tool-x, source: 's3://bucket/x'}\n".to_owned(), "is no reference"),
        (
            "tools:\n- {module: tool-x, source: 'git+https://h/r@v1#subdirectory=../..'}\n".to_owned(),
            "is no reference",
        ),
        ("agents: {a: 'foundation:agents/x.md'}\n".to_owned(), "is a name, not a place to fetch from"),
    ];
    for (text, expected) in rows {
        tools(&house, &text);
        let error = house.compile("local/p").await.unwrap_err();
        assert!(error.chain().contains(expected), "{text}{}", error.chain());
        assert!(error.to_string().contains("profile.md:") && error.place().is_some(), "{error}");
    }
    assert_eq!(crate::support::names(house.share("profiles/local")), ["p"]);
}

#[tokio::test]
async fn a_name_other_than_expected_is_taken_when_there_is_no_doubt() {
    let house = House::new();
    house.write("m/src/amplifier_module_tool_other/__init__.py", "");
    house.write("m/pyproject.toml", "[project]\n");
    house.write("w/amplifier.toml", "x = 1\n");
    house.write("w/bin/tool", "#!/bin/sh\n");
    let at = |name: &str| house.path(name).display().to_string();
    tools(
        &house,
        &format!(
            "tools:\n- {{module: tool-x, source: {}}}\n- {{module: tool-w, source: {}}}\n",
            at("m"),
            at("w")
        ),
    );
    house.compile("local/p").await.unwrap();
    assert_eq!(
        listing(&house.share(DIR).join("tools")),
        [
            "tool-w/",
            "tool-w/amplifier.toml",
            "tool-w/bin/",
            "tool-w/bin/tool",
            "tool-x/",
            "tool-x/amplifier_module_tool_other/",
            "tool-x/amplifier_module_tool_other/__init__.py",
            "tool-x/pyproject.toml"
        ]
    );
}

#[tokio::test]
async fn what_an_interrupted_run_left_is_put_right() {
    let house = House::new();
    let a = repository(&house, "tool-a");
    tools(&house, &format!("tools:\n- {{module: tool-a, source: {}}}\n", a.uri("@main")));
    house.compile("local/p").await.unwrap();
    // Killed while building, killed right after the exchange, killed between two renames.
    house.write("home/share/profiles/local/.staging-p/tools/half", "x");
    house.write("home/share/profiles/local/.staging-p/notes/mine.txt", "mine");
    fs::rename(house.share(DIR), house.share("profiles/local/.old-p")).unwrap();
    fs::create_dir(house.share(DIR)).unwrap();
    fs::copy(house.share("profiles/local/.old-p/profile.md"), house.share(DIR).join("profile.md")).unwrap();
    house.compile("local/p").await.unwrap();
    assert_eq!(crate::support::names(house.share("profiles/local")), ["p"]);
    assert_eq!(
        crate::support::names(house.share(DIR)),
        ["hooks", "notes", "profile.lock", "profile.md", "providers", "tools"]
    );
    assert_eq!(fs::read_to_string(house.share(DIR).join("notes/mine.txt")).unwrap(), "mine");
}

#[tokio::test]
async fn a_cancelled_compilation_says_so_and_leaves_nothing() {
    let house = House::new();
    let a = repository(&house, "tool-a");
    tools(&house, &format!("tools:\n- {{module: tool-a, source: {}}}\n", a.uri("@main")));
    let cx = house.cx();
    cx.cancel.request_graceful();
    let error = house.profiles.compile(&"local/p".parse().unwrap(), &cx).await.unwrap_err();
    assert!(matches!(error, ProfileError::Cancelled { .. }), "{error}");
    assert_eq!(crate::support::names(house.share(DIR)), ["profile.md"]);
}

#[tokio::test]
async fn credentials_reach_no_file_and_no_message() {
    let house = House::new();
    let uri = "git+http://user:hunter2@127.0.0.1:9/o/r@main";
    tools(&house, &format!("tools:\n- {{module: tool-a, source: '{uri}'}}\n"));
    let error = house.compile("local/p").await.unwrap_err();
    assert!(
        !format!("{error:?} {}", error.chain())
            .replace(&format!("{:?}", error.place().unwrap().file), "")
            .contains("hunter2"),
        "{}",
        error.chain()
    );
    let check = house.profiles.check(&"local/p".parse().unwrap()).unwrap();
    assert_eq!(check.references[0].shown, "git+http://***@127.0.0.1:9/o/r@main");
}
