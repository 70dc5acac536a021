//! Which sessions are meant: those of this project, or of this folder where it is in none, unless others are named.

use std::path::Path;

use crate::desk::{Desk, Ran, says};
use crate::terminal::Terminal;

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
    assert!(
        none.stdout.contains("there is no session that was started in `") && none.code == 0,
        "{}",
        none.seen()
    );
    let named = desk.amplifier(&["session", "cleanup", "--days", "0", "--yes", "--project", "../other"]);
    assert!(named.code == 0 && desk.sessions().is_empty(), "{}", named.seen());
}

/// Two projects below a folder that is none, with a session in the top of one and in a folder of the other.
fn projects() -> Desk {
    let desk = Desk::new();
    desk.plan("a.json", &says("yes")).file("one/.git/HEAD", "").file("one/sub/x", "");
    desk.file("two/.amplifier/settings.yaml", "").file("two/sub/x", "").file("two/.git/HEAD", "");
    for (folder, words) in [("one", "of the first"), ("two/sub", "of the second")] {
        let plan = desk.work().join("a.json");
        assert_eq!(at(&desk, folder, &["run", "--plan", plan.to_str().unwrap(), words]).code, 0);
    }
    // What modules leave makes no project.
    desk.file(".amplifier/backups/x", "").file("one/sub/.amplifier/logs/x", "");
    desk
}

fn at(desk: &Desk, folder: &str, args: &[&str]) -> Ran {
    Ran::of(desk.command(args).current_dir(desk.work().join(folder)).output().unwrap())
}

#[test]
fn a_project_has_its_sessions_from_every_folder_in_it_and_no_other_ones() {
    let desk = projects();
    for (folder, mine, other) in [
        ("one", "of the first", "of the second"),
        ("one/sub", "of the first", "of the second"),
        ("two", "of the second", "of the first"),
        ("two/sub", "of the second", "of the first"),
    ] {
        for args in [
            &["session", "list"][..],
            &["session", "search", "of the"],
            &["session", "cleanup", "--days", "0", "--dry-run"],
        ] {
            let ran = at(&desk, folder, args);
            assert!(
                ran.stdout.contains(mine) && !ran.stdout.contains(other),
                "{folder} {args:?} {}",
                ran.seen()
            );
        }
        let ran = at(&desk, folder, &["continue", "go on"]);
        assert!(ran.code == 0 && ran.stderr.contains(mine), "{folder} {}", ran.seen());
        let ran = at(&desk, folder, &["resume"]);
        assert!(
            ran.stderr.contains("of this project") && ran.stderr.contains(mine),
            "{folder} {}",
            ran.seen()
        );
    }
    // The folder above is no project, and what lies below it is not its own.
    let here = format!("no session was started in `{}`\n", desk.path("work").display());
    assert_eq!(at(&desk, "", &["session", "list"]).stdout, here);
    for args in [&["continue", "go on"][..], &["resume"]] {
        let ran = at(&desk, "", args);
        assert!(ran.code == 2 && ran.stderr.contains(&here), "{}", ran.seen());
    }
    let none = at(&desk, "", &["session", "cleanup", "--days", "0", "--yes"]);
    assert!(none.code == 0 && desk.sessions().len() == 2, "{}", none.seen());
    // Who names it means all that is below.
    let named = at(&desk, "", &["session", "list", "--project", "."]);
    assert!(
        named.stdout.contains("of the first") && named.stdout.contains("of the second"),
        "{}",
        named.seen()
    );
}

#[test]
fn a_chat_offers_the_sessions_of_its_project() {
    let desk = projects();
    let ran = {
        let plan = desk.work().join("a.json");
        let mut command = desk.command(&["--plan", plan.to_str().unwrap()]);
        command.current_dir(desk.work().join("one/sub")).stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"/sessions\n").unwrap();
        Ran::of(child.wait_with_output().unwrap())
    };
    assert!(ran.stderr.contains("of the first") && !ran.stderr.contains("of the second"), "{}", ran.seen());
}

/// Every file below a folder that holds a text.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(holding(&entry, text));
        } else if String::from_utf8_lossy(&std::fs::read(&entry).unwrap()).contains(text) {
            found.push(entry.display().to_string());
        }
    }
    found
}

#[test]
fn what_is_deleted_is_nowhere_in_the_home() {
    let desk = Desk::new();
    let plan = serde_json::json!({
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-mock", "config": {"responses": [
            {"tool_calls": [{"name": "write_file", "arguments": {"file_path": "f.txt", "content": "x"}}]}, "yes"]}}],
        "tools": [{"module": "tool-filesystem"}],
        "hooks": [{"module": "hooks-backup", "config": {"transcripts": false}}],
    });
    desk.plan("a.json", &plan).plan("b.json", &says("yes"));
    for (plan, words) in
        [("a.json", "a word nobody may find"), ("b.json", "old and dull"), ("b.json", "stays here")]
    {
        assert_eq!(desk.amplifier(&["run", "--plan", plan, words]).code, 0);
    }
    let ids: Vec<_> = desk.sessions().iter().map(|folder| folder.file_name().unwrap().to_owned()).collect();
    let id = ids[0].to_str().unwrap();
    let deleted = desk.amplifier(&["session", "delete", id, "--yes"]);
    let kept = desk.path("work").join(".amplifier/backups").join(id);
    let note = format!("note: copies of files that it changed stay in `{}`", kept.display());
    assert!(deleted.code == 0 && deleted.stderr.contains(&note), "{}", deleted.seen());
    for gone in ["nobody may find", id] {
        assert_eq!(holding(&desk.home(), gone), Vec::<String>::new(), "{gone}");
    }
    let listed = desk.amplifier(&["session", "list"]);
    assert!(
        listed.stdout.contains("old and dull") && listed.stdout.contains("stays here"),
        "{}",
        listed.seen()
    );
    let cleaned = desk.amplifier(&["session", "cleanup", "--days", "0", "--yes", "--output", "json"]);
    assert_eq!(cleaned.json()["deleted"].as_array().unwrap().len(), 2, "{}", cleaned.seen());
    for gone in ["old and dull", "stays here"] {
        assert_eq!(holding(&desk.home(), gone), Vec::<String>::new(), "{gone}");
    }
}

#[test]
fn copies_are_found_from_a_folder_of_the_project() {
    let desk = Desk::new();
    let plan = serde_json::json!({
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-mock", "config": {"responses": [
            {"tool_calls": [{"name": "write_file", "arguments": {"file_path": "f.txt", "content": "x"}}]}, "yes"]}}],
        "tools": [{"module": "tool-filesystem"}],
        "hooks": [{"module": "hooks-backup", "config": {"transcripts": false}}],
    });
    desk.plan("a.json", &plan).file(".git/HEAD", "").file("sub/x", "");
    assert_eq!(desk.amplifier(&["run", "--plan", "a.json", "go"]).code, 0);
    let listed = at(&desk, "sub", &["backup", "list"]);
    assert!(listed.stdout.contains("f.txt (before write_file)"), "{}", listed.seen());
    let back = at(&desk, "sub", &["backup", "restore", "1", "--yes"]);
    assert!(back.code == 0 && !desk.work().join("f.txt").exists(), "{}", back.seen());
}

#[test]
fn a_narrow_terminal_shows_what_was_asked() {
    let desk = Desk::new();
    desk.plan("a.json", &says("yes"));
    assert_eq!(desk.amplifier(&["run", "--plan", "a.json", "the one question"]).code, 0);
    let folder = desk.sessions().remove(0);
    let id = folder.file_name().unwrap().to_str().unwrap();
    let mut terminal = Terminal::open(&desk, &["session", "show", id], (40, 40), "xterm");
    let screen = terminal.sees("answered");
    terminal.end();
    assert!(screen.contains("\n       the one question"), "{screen}");
}
