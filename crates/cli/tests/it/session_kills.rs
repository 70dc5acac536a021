//! Forks and rewinds that are killed at any moment leave whole sessions, or none.

use std::time::Duration;

use serde_json::{Value, json};

use crate::desk::{Desk, read};

const KILLS: u64 = 40;

fn desk() -> (Desk, String) {
    let desk = Desk::new();
    let plan = json!({
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-mock", "config": {"responses": ["x".repeat(100_000)]}}],
    });
    desk.plan("a.json", &plan);
    assert_eq!(desk.amplifier(&["run", "--plan", "a.json", "one"]).code, 0);
    let id = desk.sessions()[0].file_name().unwrap().to_str().unwrap().to_owned();
    for prompt in ["two", "three"] {
        assert_eq!(desk.amplifier(&["run", "--resume", &id, prompt]).code, 0);
    }
    (desk, id)
}

/// Starts a command and kills it after a moment that differs from time to time.
fn kill(desk: &Desk, args: &[&str], number: u64) {
    let mut child = desk.spawn(args);
    // Not for luck: the moments only have to differ, and every one of them is a fair one.
    std::thread::sleep(Duration::from_micros(number * 7919 % 60_000));
    child.kill().unwrap();
    child.wait().unwrap();
}

fn show(desk: &Desk, id: &str) -> Value {
    let ran = desk.amplifier(&["session", "show", id, "--output", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    ran.json()
}

#[test]
fn a_killed_fork_is_whole_or_not_there() {
    let (desk, id) = desk();
    let before = read(&desk.home().join("state/sessions").join(&id).join("events.jsonl"));
    for number in 0..KILLS {
        kill(&desk, &["session", "fork", &id, "--at", "2"], number);
    }
    let listed = desk.amplifier(&["session", "list", "--limit", "1000", "--output", "json"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (0, ""), "{}", listed.seen());
    let sessions = listed.json()["sessions"].as_array().unwrap().clone();
    for session in &sessions {
        let shown = show(&desk, session["session_id"].as_str().unwrap());
        let turns = if session["forked_from"].is_null() { 3 } else { 2 };
        assert_eq!(shown["turn_list"].as_array().unwrap().len(), turns, "{shown}");
        assert_eq!(shown["bundle"], sessions.last().unwrap()["bundle"]);
    }
    println!("{KILLS} kills, {} forks", sessions.len() - 1);
    assert_eq!(read(&desk.home().join("state/sessions").join(&id).join("events.jsonl")), before);
}

#[test]
fn a_killed_rewind_happened_or_did_not() {
    let (desk, id) = desk();
    let transcript = desk.home().join("state/sessions").join(&id).join("transcript.jsonl");
    for number in 0..KILLS {
        let to = (number % 3 + 1).to_string();
        kill(&desk, &["session", "rewind", &id, "--to", &to], number);
        let shown = show(&desk, &id);
        let turns = shown["turn_list"].as_array().unwrap();
        let counted = turns.iter().filter(|turn| turn["counts"] == json!(true)).count();
        assert_eq!(read(&transcript).lines().count(), counted * 2, "{turns:?}");
    }
    assert_eq!(desk.amplifier(&["session", "rewind", &id, "--to", "3"]).code, 0);
    assert_eq!(read(&transcript).lines().count(), 6);
}
