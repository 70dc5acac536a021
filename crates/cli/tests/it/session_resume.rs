//! Going on: `amplifier continue`, `amplifier resume`, and what changed meanwhile.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::desk::{Desk, Ran, read};

fn plan(responses: &Value) -> Value {
    json!({
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-mock", "config": {"responses": responses}}],
    })
}

fn bundle(answer: &str) -> String {
    format!(
        "---\nbundle: {{name: mine}}\nsession: {{orchestrator: loop-basic, context: context-simple}}\n\
         providers:\n  - module: provider-mock\n    config: {{responses: [\"{answer}\"]}}\n---\nBe brief.\n"
    )
}

fn ok(ran: Ran) -> Ran {
    assert_eq!(ran.code, 0, "{}", ran.seen());
    ran
}

fn ids(desk: &Desk) -> Vec<String> {
    desk.sessions().iter().map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn the_last_used_session_of_the_folder_goes_on() {
    let desk = Desk::new();
    desk.plan("a.json", &plan(&json!(["yes"])));
    ok(desk.amplifier(&["run", "--plan", "a.json", "older"]));
    ok(desk.amplifier(&["run", "--plan", "a.json", "newer"]));
    let older = ids(&desk).remove(0);
    let ran = ok(desk.amplifier(&["continue", "go on"]));
    assert_eq!(ran.stdout, "yes\n");
    assert!(ran.stderr.contains("newer"), "{}", ran.stderr);
    // What is used becomes the last used.
    ok(desk.amplifier(&["run", "--resume", &older[..18], "again"]));
    let ran = ok(desk.amplifier_with_input(&["continue"], b"from a pipe"));
    assert!(ran.stderr.contains("older"), "{}", ran.stderr);
    let ran = ok(desk.amplifier_with_input(&["resume"], b"once more"));
    assert!(ran.stderr.contains("nobody is there to pick") && ran.stderr.contains("older"), "{}", ran.stderr);
    assert_eq!(ids(&desk).len(), 2);
    assert_eq!(desk.amplifier(&["continue", "--resume", &older, "x"]).code, 2);
    // No project: a folder stands for itself, and the one below it is another.
    std::fs::create_dir(desk.work().join("below")).unwrap();
    let ran =
        Ran::of(desk.command(&["continue", "x"]).current_dir(desk.work().join("below")).output().unwrap());
    assert_eq!(ran.code, 2, "{}", ran.seen());
}

#[test]
fn a_bundle_that_changed_is_told_and_taken_when_asked() {
    let desk = Desk::new();
    desk.file("b/bundle.md", bundle("old words"));
    ok(desk.amplifier(&["run", "--bundle", "b", "hi"]));
    let same = ok(desk.amplifier(&["continue", "hi"]));
    assert!(!same.stderr.contains("changed"), "{}", same.stderr);
    desk.file("b/bundle.md", bundle("new words"));
    let told = ok(desk.amplifier(&["continue", "hi"]));
    assert_eq!(told.stdout, "old words\n", "it goes on with the plan it ran with");
    assert!(told.stderr.contains("bundle `b` changed since this session began"), "{}", told.stderr);
    let taken = ok(desk.amplifier(&["continue", "--force-bundle", "hi"]));
    assert_eq!(taken.stdout, "new words\n");
    let after = ok(desk.amplifier(&["continue", "hi"]));
    assert_eq!(after.stdout, "new words\n");
    assert!(!after.stderr.contains("changed"), "{}", after.stderr);
    std::fs::remove_dir_all(desk.work().join("b")).unwrap();
    let gone = ok(desk.amplifier(&["continue", "hi"]));
    assert_eq!(gone.stdout, "new words\n", "a session needs its bundle no more");
    assert!(gone.stderr.contains("cannot be compared"), "{}", gone.stderr);
}

#[test]
fn what_was_handed_over_then_is_not_read_again() {
    let desk = Desk::new();
    let piped = plan(&json!(["from a pipe"])).to_string();
    let begun = desk.amplifier_with_input(&["run", "--plan", "/dev/stdin", "hi"], piped.as_bytes());
    assert_eq!((begun.code, begun.stdout.as_str()), (0, "from a pipe\n"), "{}", begun.seen());
    let ran = desk.amplifier_with_input(&["continue", "--force-bundle"], b"a prompt and no plan");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "from a pipe\n"), "{}", ran.seen());
    assert!(ran.stderr.contains("it keeps its plan"), "{}", ran.seen());
}

#[test]
fn a_provider_that_cannot_be_used_is_told_with_what_is_wrong_with_the_stored_keys() {
    let desk = Desk::new();
    desk.plan("a.json", &plan(&json!(["x"])));
    ok(desk.amplifier(&["run", "--plan", "a.json", "hi"]));
    std::fs::write(desk.home().join("keyring.json"), "no list").unwrap();
    let id = ids(&desk).remove(0);
    for args in [&["--plan", "a.json"][..], &["--resume", &id]] {
        let ran = desk.amplifier(&[&["run", "--provider", "openai", "hi"], args].concat());
        assert_eq!(ran.code, 2, "{}", ran.seen());
        assert!(ran.stderr.contains("is no list of names"), "{}", ran.seen());
    }
}

#[test]
fn a_bundle_that_says_something_else_is_told_and_so_is_a_session_that_goes_on_elsewhere() {
    let desk = Desk::new();
    let words = |words: &str| format!("{}{words}\n", bundle("answer"));
    desk.file("b/bundle.md", words("Be kind."));
    ok(desk.amplifier(&["run", "--bundle", "b", "hi"]));
    let same = ok(desk.amplifier(&["continue", "hi"]));
    assert!(!same.stderr.contains("note:"), "{}", same.stderr);
    desk.file("b/bundle.md", words("Be rude."));
    let told = ok(desk.amplifier(&["continue", "hi"]));
    assert!(told.stderr.contains("bundle `b` changed since this session began"), "{}", told.stderr);
    // What the settings add is no change of the bundle.
    desk.file("b/bundle.md", words("Be kind."));
    desk.file(
        ".amplifier/settings.yaml",
        "config:\n  providers:\n  - module: provider-mock\n    id: other\n",
    );
    ok(desk.amplifier(&["run", "--bundle", "b", "hi"]));
    let same = ok(desk.amplifier(&["continue", "hi"]));
    assert!(!same.stderr.contains("note:"), "{}", same.stderr);
    std::fs::create_dir(desk.work().join("sub")).unwrap();
    let id = ids(&desk).remove(0);
    let mut elsewhere = desk.command(&["run", "--resume", &id, "hi"]);
    let told = ok(Ran::of(elsewhere.current_dir(desk.work().join("sub")).output().unwrap()));
    assert!(told.stderr.contains("its tools work in"), "{}", told.stderr);
    assert!(told.stderr.contains("hint: `--cwd "), "{}", told.stderr);
}

#[test]
fn a_session_in_use_is_refused_by_name_and_can_still_be_read() {
    let desk = Desk::new();
    desk.plan("slow.json", &plan(&json!(["first", {"text": "late", "delay_ms": 600_000}])));
    desk.plan("now.json", &plan(&json!(["first"])));
    ok(desk.amplifier(&["run", "--plan", "now.json", "hello"]));
    let id = ids(&desk).remove(0);
    desk.plan("slow.json", &plan(&json!([{"text": "late", "delay_ms": 600_000}])));
    let mut running = desk.spawn(&["run", "--resume", &id, "--plan", "slow.json", "wait"]);
    let journal = desk.sessions().remove(0).join("events.jsonl");
    let began = Instant::now();
    while !read(&journal).contains("wait") {
        assert!(began.elapsed() < Duration::from_secs(60), "the turn never began");
        std::thread::sleep(Duration::from_millis(20));
    }
    let listed = desk.amplifier(&["session", "list", "--output", "json"]);
    let refused = desk.amplifier(&["run", "--resume", &id, "me too"]);
    let alone = desk.amplifier(&["session", "cleanup", "--days", "0", "--yes"]);
    let forked = desk.amplifier(&["session", "fork", &id]);
    let shown = desk.amplifier(&["session", "show", &id]);
    let deleted = desk.amplifier(&["session", "delete", &id, "--yes"]);
    let cleaned = desk.amplifier(&["session", "cleanup", "--days", "0", "--dry-run"]);
    let pid = running.id();
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(listed.json()["sessions"][0]["in_use_by"]["pid"], json!(pid), "{}", listed.seen());
    for refused in [&refused, &deleted] {
        assert_eq!(refused.code, 1, "{}", refused.seen());
        assert!(refused.stderr.contains(&format!("process {pid}")), "{}", refused.stderr);
    }
    assert!(shown.stdout.contains("in use by") && !shown.stdout.contains("did not end"), "{}", shown.seen());
    assert_eq!(shown.stdout.matches("running").count(), 2, "at the top and in the list: {}", shown.seen());
    let named = format!("session `{id}` is in use by");
    assert!(refused.stderr.contains(&named), "{}", refused.stderr);
    let listed_short = desk.amplifier(&["session", "list"]).stdout;
    assert!(listed_short.contains(&id[..13]), "{listed_short}");
    assert!(!cleaned.stdout.contains(&id[..13]), "what is in use is not old: {}", cleaned.seen());
    assert!(
        alone.stdout.starts_with("every session") && alone.stdout.ends_with(" is in use\n"),
        "{}",
        alone.seen()
    );
    // The fork has the turns that had ended.
    let fork = ok(forked).stdout.trim().to_owned();
    let shown = ok(desk.amplifier(&["session", "show", &fork, "--output", "json"])).json();
    assert_eq!(shown["turns"], json!(1), "{shown}");
    // The killed one is found as it was, with the turn that did not end.
    let listed = ok(desk.amplifier(&["session", "list", "--output", "json"])).json();
    let killed =
        listed["sessions"].as_array().unwrap().iter().find(|session| session["session_id"] == json!(id));
    assert_eq!((&killed.unwrap()["turns"], &killed.unwrap()["status"]), (&json!(2), &json!("running")));
}

/// The first provider of the plan that a session keeps.
fn asked(desk: &Desk) -> Value {
    let plan: Value =
        serde_json::from_str(&read(&desk.sessions().remove(0).join("mount_plan.json"))).unwrap();
    plan["providers"][0].clone()
}

#[test]
fn another_provider_and_another_model_are_asked_from_here_on() {
    let desk = Desk::new();
    desk.plan("a.json", &plan(&json!(["yes"])));
    ok(desk.amplifier(&["run", "--plan", "a.json", "hello"]));
    let id = ids(&desk).remove(0);
    for args in [
        &["continue", "-p", "nonsense-zzz", "hi"][..],
        &["run", "--resume", &id, "-p", "nonsense-zzz", "hi"],
        &["resume", &id, "-p", "nonsense-zzz"],
    ] {
        let ran = desk.amplifier(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.seen());
        assert!(ran.stderr.contains("there is no provider `nonsense-zzz`"), "{}", ran.stderr);
        assert!(ran.stderr.contains("hint: `amplifier provider list`"), "{}", ran.stderr);
    }
    let near = desk.amplifier(&["continue", "-p", "antropic", "hi"]);
    assert!(near.code == 2 && near.stderr.contains("did you mean `anthropic`?"), "{}", near.seen());
    assert_eq!(asked(&desk)["module"], json!("provider-mock"), "what is refused changes nothing");

    ok(desk.amplifier(&["continue", "-m", "other-model", "hi"]));
    assert!(asked(&desk)["config"].to_string().contains("other-model"), "{}", asked(&desk));
    let ran = ok(desk.amplifier(&["run", "--resume", &id, "-p", "demo", "hi"]));
    assert!(!ran.stderr.contains("the plan changed"), "who gives a flag knows: {}", ran.stderr);
    assert_eq!(asked(&desk)["module"], json!("provider-demo"));
    let after = ok(desk.amplifier(&["continue", "hi"]));
    assert!(!after.stdout.contains("yes") && asked(&desk)["module"] == "provider-demo", "{}", after.seen());
    // The one it began with is still there, with its config.
    let back = ok(desk.amplifier_with_input(&["resume", &id, "-p", "mock"], b"and now?"));
    assert!(back.stdout.contains("yes"), "{}", back.seen());
    assert!(asked(&desk)["config"].to_string().contains("other-model"), "{}", asked(&desk));
}

#[test]
fn going_on_can_be_quiet_and_can_tell_every_step() {
    let desk = Desk::new();
    desk.plan("a.json", &plan(&json!(["yes"])));
    ok(desk.amplifier(&["run", "--plan", "a.json", "hello"]));
    let quiet = ok(desk.amplifier(&["continue", "-q", "hi"]));
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("yes\n", ""));
    let verbose = ok(desk.amplifier(&["continue", "-v", "hi"]));
    assert!(
        verbose.stderr.contains("`provider-mock` …") && verbose.stderr.contains(" in, "),
        "{}",
        verbose.seen()
    );
}

#[test]
fn programs_are_told_that_nothing_can_go_on() {
    let desk = Desk::new();
    for form in ["json", "jsonl"] {
        let ran = desk.amplifier(&["continue", "--output", form, "hi"]);
        assert_eq!(ran.code, 2, "{}", ran.seen());
        let told = serde_json::from_str::<Value>(&ran.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", ran.seen()));
        assert_eq!((&told["status"], &told["exit_code"]), (&json!("error"), &json!(2)), "{told}");
        assert!(told["error"].as_str().unwrap().contains("no session"), "{told}");
    }
    desk.file(".amplifier/settings.yaml", "bundle: [\n");
    let ran = desk.amplifier(&["continue", "--output", "json", "hi"]);
    assert_eq!((ran.code, &ran.json()["status"]), (2, &json!("error")), "{}", ran.seen());
}

#[test]
fn quiet_leaves_out_a_note_with_its_hint() {
    let desk = Desk::new();
    desk.plan("a.json", &plan(&json!(["yes"])));
    ok(desk.amplifier(&["run", "--plan", "a.json", "hi"]));
    let id = ids(&desk).remove(0);
    let elsewhere = desk.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let again = ["run", "--resume", &id, "--cwd", elsewhere.to_str().unwrap(), "again"];
    let told = ok(desk.amplifier(&again));
    assert!(told.stderr.contains("note: this session began in") && told.stderr.contains("  hint: `--cwd"));
    let quiet = ok(desk.amplifier(&[&again[..], &["--quiet"]].concat()));
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("yes\n", ""));
}

#[test]
fn a_replay_ends_when_its_reader_goes() {
    let desk = Desk::new();
    // More than a pipe holds, so that it is in the middle of it when the reader goes.
    desk.plan("a.json", &plan(&json!(["all work and no play ".repeat(20_000), "and then"])));
    ok(desk.amplifier(&["run", "--plan", "a.json", "hi"]));
    let folder = desk.sessions().remove(0);
    let id = ids(&desk).remove(0);
    let first = read(&folder.join("events.jsonl")).lines().count();
    ok(desk.amplifier(&["run", "--resume", &id, "again"]));
    // What was said later was said much later: the longest wait, and that ten times slower than it was.
    let moved =
        |(at, line): (usize, &str)| if at < first { format!("{line}\n") } else { crate::wrong::later(line) };
    let events = folder.join("events.jsonl");
    let text: String = read(&events).lines().enumerate().map(moved).collect();
    std::fs::write(&events, text).unwrap();
    std::fs::remove_file(folder.join("events.idx")).ok();
    let mut child = desk.spawn(&["session", "replay", &id, "--speed", "0.1"]);
    let mut stdout = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut stdout, &mut [0]).unwrap();
    drop(stdout);
    let began = Instant::now();
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        if began.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it goes on for nobody");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(ended.code(), Some(141));
}
