//! `amplifier backup list` and `amplifier backup restore`, on what a real session left.

use std::path::Path;
use std::time::{Duration, Instant};

use insta::{Settings, assert_snapshot};
use serde_json::{Value, json};

use crate::desk::{Desk, read};

/// A plan whose model writes these files, one after the other, and then answers.
fn writes(files: &[(&str, &str)], last: Value) -> Value {
    let call = |(file, text): &(&str, &str)| json!({"tool_calls": [{"name": "write_file", "arguments": {"file_path": file, "content": text}}]});
    let responses: Vec<_> = files.iter().map(call).chain([last]).collect();
    json!({
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-mock", "config": {"responses": responses}}],
        "tools": [{"module": "tool-filesystem", "config": {"require_read_before_write": false}}],
        "hooks": [{"module": "hooks-backup"}],
    })
}

/// A desk where a session changed `notes.txt` and made `new.txt`.
fn desk_after_a_session() -> Desk {
    let desk = Desk::new();
    desk.file("notes.txt", "as it was\n");
    desk.plan("plan.json", &writes(&[("notes.txt", "changed"), ("new.txt", "new")], json!("done")));
    let ran = desk.amplifier(&["run", "--plan", "plan.json", "go"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    desk
}

fn notes(desk: &Desk) -> String {
    read(&desk.work().join("notes.txt"))
}

#[test]
fn what_was_kept_is_listed_and_put_back() {
    let desk = desk_after_a_session();
    assert_eq!(notes(&desk), "changed");
    insta_scope(|| {
        assert_snapshot!("list", desk.amplifier(&["backup", "list"]).seen());
        assert_snapshot!("unconfirmed", desk.amplifier(&["backup", "restore", "1"]).seen());
        assert_eq!(notes(&desk), "changed", "nothing happens without a yes");
        assert_snapshot!("restored", desk.amplifier(&["backup", "restore", "1", "--yes"]).seen());
    });
    assert_eq!(notes(&desk), "as it was\n");
    // What was overwritten is kept: the restore can be undone.
    let again = desk.amplifier(&["backup", "restore", "3", "--yes"]);
    assert_eq!((again.code, notes(&desk).as_str()), (0, "changed"), "{}", again.seen());
    // A file that was not there goes again; and then there is nothing to do.
    let gone = desk.amplifier(&["backup", "restore", "2", "--yes"]);
    assert_eq!(gone.stdout, "`new.txt` is gone, as it was; what stood there is backup 5\n");
    assert!(!desk.work().join("new.txt").exists());
    let nothing = desk.amplifier(&["backup", "restore", "2"]);
    assert_eq!(
        (nothing.code, nothing.stdout.contains("nothing to put back")),
        (0, true),
        "{}",
        nothing.seen()
    );
}

#[test]
fn the_list_for_programs_names_folder_session_and_hash() {
    let desk = desk_after_a_session();
    let listed = desk.amplifier(&["backup", "list", "--output", "json"]).json();
    let session = &listed["sessions"][0];
    let folder = desk.sessions().pop().unwrap();
    // The beginning of an id will do.
    let id = folder.file_name().unwrap().to_str().unwrap();
    let named = desk.amplifier(&["backup", "list", "--output", "json", "--session", &id[..13]]);
    assert_eq!(named.json(), listed, "{}", named.seen());
    assert_eq!(session["session_id"].as_str(), folder.file_name().and_then(|name| name.to_str()));
    assert_eq!(session["entries"][0]["bytes"], 10);
    assert_eq!(session["entries"][1]["sha256"], Value::Null);
    assert!(Path::new(listed["dir"].as_str().unwrap()).ends_with(".amplifier/backups"), "{listed}");
}

#[test]
fn what_is_not_there_is_a_wrong_call_with_a_way_out() {
    let desk = Desk::new();
    insta_scope(|| {
        assert_snapshot!("nothing", desk.amplifier(&["backup", "list"]).seen());
        assert_snapshot!("nothing_to_restore", desk.amplifier(&["backup", "restore", "1", "--yes"]).seen());
    });
    let desk = desk_after_a_session();
    insta_scope(|| {
        assert_snapshot!("wrong_number", desk.amplifier(&["backup", "restore", "9", "--yes"]).seen());
        let other = ["backup", "restore", "1", "--yes", "--session", "another"];
        assert_snapshot!("wrong_session", desk.amplifier(&other).seen());
        let listed = desk.amplifier(&["backup", "list", "--session", "another"]);
        assert_eq!(listed.code, 2, "{}", listed.seen());
        assert!(listed.stderr.contains("there are no backups of session `another`"), "{}", listed.seen());
    });
    for wrong in
        [&["backup", "restore"][..], &["backup", "restore", "-1"], &["backup", "list", "--session", "../x"]]
    {
        assert_eq!(desk.amplifier(wrong).code, 2, "{wrong:?}");
    }
    assert_eq!(notes(&desk), "changed");
}

#[test]
fn of_two_sessions_one_must_be_named_and_files_elsewhere_stay() {
    let desk = desk_after_a_session();
    desk.plan("again.json", &writes(&[("newer.txt", "new")], json!("done")));
    assert_eq!(desk.amplifier(&["run", "--plan", "again.json", "again"]).code, 0);
    let first = desk.sessions().remove(0);
    let ran = desk.amplifier(&["backup", "restore", "1", "--yes"]);
    assert_eq!(ran.code, 2, "{}", ran.seen());
    assert!(ran.stderr.contains("2 sessions") && ran.stderr.contains("--session"), "{}", ran.stderr);
    let named = first.file_name().unwrap().to_str().unwrap();
    std::fs::create_dir(desk.work().join("inside")).unwrap();
    let outside = ["backup", "restore", "1", "--yes", "--session", named, "--within", "inside"];
    let ran = desk.amplifier(&outside);
    assert_eq!((ran.code, notes(&desk).as_str()), (2, "changed"), "{}", ran.seen());
    assert!(ran.stderr.contains("lies outside"), "{}", ran.stderr);
    assert_eq!(desk.amplifier(&["backup", "restore", "1", "--yes", "--session", named]).code, 0);
    assert_eq!(notes(&desk), "as it was\n");
}

#[test]
fn a_damaged_copy_is_not_put_back() {
    let desk = desk_after_a_session();
    let listed = desk.amplifier(&["backup", "list", "--output", "json"]).json();
    let entry = &listed["sessions"][0];
    let folder = Path::new(listed["dir"].as_str().unwrap()).join(entry["session_id"].as_str().unwrap());
    let copy = folder.join("objects").join(entry["entries"][0]["sha256"].as_str().unwrap());
    std::fs::write(copy, "something else").unwrap();
    let ran = desk.amplifier(&["backup", "restore", "1", "--yes"]);
    assert_eq!((ran.code, notes(&desk).as_str()), (1, "changed"), "{}", ran.seen());
    assert!(ran.stderr.contains("is damaged"), "{}", ran.stderr);
}

#[test]
fn a_running_session_is_left_alone() {
    let desk = Desk::new();
    desk.file("notes.txt", "as it was\n");
    let waits = json!({"text": "done", "delay_ms": 600_000});
    desk.plan("plan.json", &writes(&[("notes.txt", "changed")], waits));
    let mut running = desk.spawn(&["run", "--plan", "plan.json", "go"]);
    let began = Instant::now();
    while notes(&desk) != "changed" {
        assert!(began.elapsed() < Duration::from_secs(60), "the tool never ran");
        std::thread::sleep(Duration::from_millis(20));
    }
    let ran = desk.amplifier(&["backup", "restore", "1", "--yes"]);
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!((ran.code, notes(&desk).as_str()), (1, "changed"), "{}", ran.seen());
    assert!(
        ran.stderr.contains("cannot be kept still") && ran.stderr.contains("end that session first"),
        "{}",
        ran.stderr
    );
    assert_eq!(desk.amplifier(&["backup", "restore", "1", "--yes"]).code, 0);
    assert_eq!(notes(&desk), "as it was\n");
}

/// Snapshots without what differs from run to run.
fn insta_scope(check: impl FnOnce()) {
    let mut settings = Settings::clone_current();
    settings.add_filter(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "SESSION");
    settings.add_filter(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", "TIME");
    settings.add_filter(r"(/[\w.-]+)+/work/", "");
    settings.bind(check);
}

#[test]
fn a_call_that_changed_nothing_leaves_no_copy() {
    let desk = Desk::new();
    desk.file("notes.txt", "as it was\n").file("other.txt", "as it was\n");
    let call = |name: &str, arguments: Value| json!({"tool_calls": [{"name": name, "arguments": arguments}]});
    let responses = json!([
        call("edit_file", json!({"file_path": "notes.txt", "old_string": "nowhere", "new_string": "x"})),
        call("write_file", json!({"file_path": "new.txt", "content": "refused"})),
        call("edit_file", json!({"file_path": "other.txt", "old_string": "nowhere", "new_string": "x"})),
        call("edit_file", json!({"file_path": "other.txt", "old_string": "was", "new_string": "is"})),
        "done",
    ]);
    let mut plan = writes(&[], json!("done"));
    plan["providers"][0]["config"]["responses"] = responses;
    let rules = json!([{"tool": "write_file", "action": "ask"}, {"tool": "edit_file", "action": "allow"}]);
    plan["hooks"]
        .as_array_mut()
        .unwrap()
        .push(json!({"module": "hooks-approval", "config": {"rules": rules}}));
    desk.plan("plan.json", &plan);
    let ran = desk.amplifier(&["run", "--plan", "plan.json", "--approve", "none", "go"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert!(!desk.work().join("new.txt").exists());
    assert_eq!(read(&desk.work().join("other.txt")), "as it is\n");
    let listed = desk.amplifier(&["backup", "list", "--output", "json"]).json();
    let entries = listed["sessions"][0]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{listed}");
    assert!(entries[0]["path"].as_str().unwrap().ends_with("other.txt"), "{listed}");
    let back = desk.amplifier(&["backup", "restore", &entries[0]["number"].to_string(), "--yes"]);
    assert_eq!(
        (back.code, read(&desk.work().join("other.txt")).as_str()),
        (0, "as it was\n"),
        "{}",
        back.seen()
    );
}

#[test]
fn without_copies_nothing_goes_back_when_files_shall() {
    let desk = Desk::new();
    let mut plan = writes(&[("notes.txt", "changed")], json!("done"));
    plan["hooks"] = json!([]);
    desk.file("notes.txt", "as it was\n").plan("plan.json", &plan);
    assert_eq!(desk.amplifier(&["run", "--plan", "plan.json", "go"]).code, 0);
    let id = desk.sessions()[0].file_name().unwrap().to_str().unwrap().to_owned();
    let journal = || read(&desk.sessions()[0].join("events.jsonl"));
    let before = journal();
    let ran = desk.amplifier(&["session", "rewind", &id, "--to", "0", "--files"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.seen());
    assert!(ran.stderr.contains("no copies of files were kept for session"), "{}", ran.seen());
    assert!(ran.stderr.contains("hint: without `--files`"), "{}", ran.seen());
    assert_eq!(journal(), before, "the conversation stays too");
    // What it advises works.
    assert_eq!(desk.amplifier(&["session", "rewind", &id, "--to", "0"]).code, 0);
}

#[test]
fn a_session_that_changed_no_file_goes_back_with_nothing_to_put_back() {
    let desk = Desk::new();
    desk.plan("plan.json", &writes(&[], json!("done")));
    assert_eq!(desk.amplifier(&["run", "--plan", "plan.json", "go"]).code, 0);
    let id = desk.sessions()[0].file_name().unwrap().to_str().unwrap().to_owned();
    let ran = desk.amplifier(&["session", "rewind", &id, "--to", "0", "--files"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert!(ran.stderr.contains("no file had to be put back"), "{}", ran.seen());
}
