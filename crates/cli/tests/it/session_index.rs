//! What lists know of sessions, where that cannot be written: nothing old is shown as new, and nothing fails that was done.

use crate::desk::{Desk, Ran, says};

/// Two sessions, of which the first was used last while the lock of the index could not be had.
fn used_unnoted() -> (Desk, String) {
    let desk = Desk::new();
    desk.plan("a.json", &says("the answer"));
    ok(desk.amplifier(&["run", "--plan", "a.json", "the older one"]));
    let older = desk.sessions().remove(0).file_name().unwrap().to_str().unwrap().to_owned();
    ok(desk.amplifier(&["run", "--plan", "a.json", "the newer one"]));
    let lock = desk.home().join("state/sessions.lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    ok(desk.amplifier(&["run", "--resume", &older, "once more"]));
    (desk, older)
}

#[track_caller]
fn ok(ran: Ran) -> Ran {
    assert_eq!(ran.code, 0, "{}", ran.seen());
    ran
}

#[test]
fn what_could_not_be_noted_is_looked_up() {
    let (desk, older) = used_unnoted();
    let listed = ok(desk.amplifier(&["session", "list", "--output", "json"])).json();
    let first = &listed["sessions"][0];
    assert_eq!((first["session_id"].as_str(), first["turns"].as_u64()), (Some(&*older), Some(2)), "{listed}");
    ok(desk.amplifier(&["continue", "and again"]));
    let listed = ok(desk.amplifier(&["session", "list", "--output", "json"])).json();
    assert_eq!(listed["sessions"][0]["turns"], 3, "{listed}");
}

#[test]
fn what_was_deleted_is_no_failure() {
    let (desk, older) = used_unnoted();
    ok(desk.amplifier(&["session", "delete", "--yes", &older]));
    assert_eq!(desk.sessions().len(), 1);
    let cleaned = ok(desk.amplifier(&["session", "cleanup", "--days", "0", "--yes"]));
    assert!(cleaned.stdout.contains("deleted"), "{}", cleaned.seen());
    assert!(desk.sessions().is_empty());
}
