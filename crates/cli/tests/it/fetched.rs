//! What was fetched shows its programs, addresses and references before their first use and whenever they change, however it is
//! reached.

use serde_json::{Value, json};

use crate::desk::{Desk, Ran};

/// A bundle whose hook, server and agent leave marks of this name.
fn bundle(name: &str, mark: &str) -> String {
    let call =
        json!({"tool_calls": [{"name": "task", "arguments": {"agent": "helper", "instruction": "go"}}]});
    let plan = json!({
        "bundle": {"name": name},
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-mock", "config": {"responses": [call, "done", "done"]}}],
        "tools": [{"module": "tool-task"}],
        "hooks": [{"module": "hooks-shell", "config": {"hooks": [{"event": "session:start", "command": format!("touch {mark}-hook")}]}}],
        "agents": {"helper": {"description": "d", "instruction": "Help.", "tools": [server(&format!("{mark}-agent"))]}},
    });
    format!("---\n{plan}\n---\nHi.\n")
}

fn server(mark: &str) -> Value {
    json!({"module": "tool-mcp", "config": {"servers": {"s": {"command": "sh", "args": ["-c", format!("touch {mark}")]}}}})
}

fn marks(desk: &Desk) -> Vec<String> {
    let names = std::fs::read_dir(desk.work())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut marks: Vec<_> = names.filter(|name| name.starts_with("mark")).collect();
    marks.sort();
    marks
}

/// Refused with all of these shown, and nothing done.
fn asks(desk: &Desk, ran: &Ran, shown: &[&str]) {
    assert_eq!(ran.code, 3, "{}", ran.seen());
    let seen = ran.seen();
    assert!(seen.contains("needs your consent"), "{seen}");
    shown.iter().for_each(|text| assert!(seen.contains(text), "`{text}` is missing: {seen}"));
    assert_eq!(marks(desk), [""; 0], "{seen}");
}

fn clear(desk: &Desk) {
    marks(desk).iter().for_each(|mark| std::fs::remove_file(desk.work().join(mark)).unwrap());
}

const ALL: [&str; 2] = ["runs `touch mark-hook`", "runs `sh -c touch mark-agent`"];

#[test]
fn i25_a_registered_bundle_in_use_asks_first_and_again_when_it_changes() {
    let desk = Desk::new();
    let (uri, _) = desk.commit("far", &[("bundle.md", &bundle("far", "mark"))]);
    for args in [&["bundle", "add", &uri][..], &["bundle", "use", "far"], &["bundle", "show", "far"]] {
        assert_eq!(desk.with_git(args).code, 0);
    }
    for args in [
        &["run", "hi"][..],
        &["run", "--output", "json", "hi"],
        &["run", "--output", "jsonl", "hi"],
        &["run", "-B", "far", "hi"],
        &["chat"],
        &["tool", "invoke", "task", "agent=helper", "instruction=x"],
    ] {
        asks(&desk, &desk.with_git(args), &ALL);
    }
    assert_eq!(desk.with_git(&["trust", "--bundle", "far"]).code, 0);
    let ran = desk.with_git(&["run", "hi"]);
    assert_eq!(
        (ran.code, marks(&desk)),
        (0, vec!["mark-agent".to_owned(), "mark-hook".to_owned()]),
        "{}",
        ran.seen()
    );
    clear(&desk);
    // Without an update nothing changes; after it only what is new is shown.
    desk.commit("far", &[("bundle.md", &bundle("far", "mark").replace("mark-agent", "mark-other"))]);
    assert_eq!(desk.with_git(&["run", "hi"]).code, 0);
    clear(&desk);
    assert_eq!(desk.with_git(&["bundle", "update", "far"]).code, 0);
    assert_eq!(marks(&desk), [""; 0]);
    let ran = desk.with_git(&["run", "hi"]);
    asks(&desk, &ran, &["runs `sh -c touch mark-other`"]);
    assert!(!ran.seen().contains("mark-hook"), "{}", ran.seen());
}

#[test]
fn i25_a_resumed_session_needs_the_consent_it_was_opened_with() {
    let desk = Desk::new();
    let (uri, _) = desk.commit("far", &[("bundle.md", &bundle("far", "mark"))]);
    let ran = desk.with_git(&["run", "--trust", "-B", &uri, "--output", "json", "hi"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let id = ran.json()["session_id"].as_str().unwrap().to_owned();
    clear(&desk);
    for args in [
        &["run", "--resume", &id, "again"][..],
        &["continue", "again"],
        &["session", "resume", &id],
        &["resume", &id],
        &["tool", "invoke", "task", "agent=helper", "instruction=x", "-B", &uri],
    ] {
        let ran = desk.with_git(args);
        assert_eq!(ran.code, 3, "{args:?}: {}", ran.seen());
        asks(&desk, &ran, &ALL);
    }
    // So do a copy of it and the session of its agent.
    let child = desk
        .sessions()
        .iter()
        .map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned())
        .find(|other| *other != id);
    asks(&desk, &desk.with_git(&["run", "--resume", &child.unwrap(), "again"]), &ALL);
    let forked = desk.with_git(&["session", "fork", &id, "--output", "json"]).json();
    let fork = forked["session_id"].as_str().or(forked["id"].as_str()).unwrap().to_owned();
    asks(&desk, &desk.with_git(&["run", "--resume", &fork, "again"]), &ALL);
    assert_eq!(desk.with_git(&["trust", "--bundle", &uri]).code, 0);
    assert_eq!(desk.with_git(&["run", "--resume", &id, "again"]).code, 0);
    assert!(marks(&desk).contains(&"mark-hook".to_owned()));
}

#[test]
fn i25_a_profile_of_a_collection_asks_first_and_again_when_it_changes() {
    let desk = Desk::new();
    let profile = |mark: &str| {
        format!(
            "---\nprofile: {{name: base, version: 1.0.0, description: d, schema_version: 2}}\nsession: {{orchestrator: {{module: loop-basic}}, \
             context: {{module: context-simple}}}}\nproviders: [{{module: provider-mock}}]\ntools: [{}]\nhooks: [{}]\n---\nx\n",
            server(&format!("{mark}-mcp")),
            json!({"module": "hooks-shell", "config": {"hooks": [{"event": "session:start", "command": format!("touch {mark}-hook")}]}})
        )
    };
    let (uri, _) = desk.commit("profiles", &[("base/profile.md", &profile("mark"))]);
    let added = desk.with_git(&["collection", "add", "team", &uri]);
    assert_eq!((added.code, marks(&desk)), (0, vec![]), "{}", added.seen());
    let run = || desk.with_git(&["run", "--profile", "team/base", "hi"]);
    asks(&desk, &run(), &["runs `touch mark-hook`", "runs `sh -c touch mark-mcp`"]);
    assert_eq!(desk.with_git(&["trust", "--profile", "team/base"]).code, 0);
    assert_eq!(run().code, 0);
    assert_eq!(marks(&desk), ["mark-hook", "mark-mcp"]);
    clear(&desk);
    desk.commit("profiles", &[("base/profile.md", &profile("mark").replace("mark-mcp", "mark-new"))]);
    assert_eq!(desk.with_git(&["collection", "sync", "--refresh"]).code, 0);
    let ran = run();
    asks(&desk, &ran, &["runs `sh -c touch mark-new`"]);
    assert!(!ran.seen().contains("mark-hook"), "{}", ran.seen());
}

#[test]
fn i25_a_fetched_layer_of_a_local_bundle_asks_too() {
    let desk = Desk::new();
    let (uri, _) = desk.commit("far", &[("bundle.md", &bundle("far", "mark"))]);
    desk.file("b/bundle.md", format!("---\nbundle: {{name: b}}\nincludes: [\"{uri}\"]\n---\nHi.\n"));
    asks(&desk, &desk.with_git(&["run", "-B", "./b", "hi"]), &ALL);
    desk.file("../home/settings.yaml", format!("bundle: {{app: [\"{uri}\"]}}\n"));
    asks(&desk, &desk.with_git(&["run", "-B", "minimal", "--provider", "mock", "hi"]), &ALL);
}
