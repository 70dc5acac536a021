//! Which sessions are cleaned up: those of this folder, unless all are meant.

use crate::desk::{Desk, Ran, says};

#[test]
fn other_folders_keep_their_sessions_unless_all_are_meant() {
    let desk = Desk::new();
    let other = desk.path("other");
    std::fs::create_dir(&other).unwrap();
    desk.plan("a.json", &says("yes"));
    assert_eq!(desk.amplifier(&["run", "--plan", "a.json", "of this folder"]).code, 0);
    let plan = desk.work().join("a.json");
    let there = |args: &[&str]| Ran::of(desk.command(args).current_dir(&other).output().unwrap());
    assert_eq!(there(&["run", "--plan", plan.to_str().unwrap(), "of another folder"]).code, 0);

    let dry = desk.amplifier(&["session", "cleanup", "--days", "0", "--dry-run"]);
    assert!(dry.stdout.contains("of this folder") && !dry.stdout.contains("another"), "{}", dry.seen());
    let all = desk.amplifier(&["session", "cleanup", "--days", "0", "--dry-run", "--all"]);
    for words in ["of this folder", "of another folder", &format!("({})", other.display())] {
        assert!(all.stdout.contains(words), "{words}: {}", all.seen());
    }
    let done = desk.amplifier(&["session", "cleanup", "--days", "0", "--yes"]);
    assert!(
        done.stdout.ends_with("KiB)\n") && done.stdout.contains("deleted: 1 session ("),
        "{}",
        done.seen()
    );
    assert_eq!(desk.sessions().len(), 1, "the other folder keeps its own");
    let none = desk.amplifier(&["session", "cleanup", "--days", "0", "--yes"]);
    assert!(none.stdout.contains("every session of `") && none.code == 0, "{}", none.seen());
    let named = desk.amplifier(&["session", "cleanup", "--days", "0", "--yes", "--project", "../other"]);
    assert!(named.code == 0 && desk.sessions().is_empty(), "{}", named.seen());
}
