//! Ten thousand sessions are listed from one file. The time is printed, not judged: `cargo xtask bench` judges.

use std::fmt::Write as _;
use std::time::Instant;

use serde_json::json;

use crate::desk::Desk;

const SESSIONS: usize = 10_000;

#[test]
fn ten_thousand_sessions_are_listed_from_one_file() {
    let desk = Desk::new();
    let work = desk.work().canonicalize().unwrap();
    let state = desk.home().join("state");
    let mut index = String::new();
    for number in 0..SESSIONS {
        let id = format!("019a8a1e-{:04x}-7c3a-9d52-{number:012x}", number % 65_536);
        std::fs::create_dir_all(state.join("sessions").join(&id)).unwrap();
        let micros = 1_763_245_489_000_000 + i64::try_from(number).unwrap() * 1_000_000;
        let about = json!({
            "session_id": id, "parent_id": null, "created": "2025-11-15T22:24:49.000000+00:00",
            "updated": "2025-11-15T22:24:49.000000+00:00", "turns": 12, "title": format!("Question number {number}"),
            "working_dir": work, "model": "a-model-1",
            "bundle": {"kind": "bundle", "reference": "foundation", "plan_hash": format!("sha256:{}", "0".repeat(64))},
            "plan_hash": format!("sha256:{}", "0".repeat(64)), "status": "completed", "views": {},
        });
        let head = json!({"id": id, "open": false, "at": micros, "dir": work});
        writeln!(index, "{head}{about}").unwrap();
    }
    std::fs::write(state.join("sessions.idx"), index).unwrap();
    let mut times = Vec::new();
    for _ in 0..5 {
        let begun = Instant::now();
        let ran = desk.amplifier(&["session", "list"]);
        times.push(begun.elapsed());
        assert_eq!(ran.code, 0, "{}", ran.seen());
        assert_eq!(ran.stdout.lines().count(), 20);
        assert!(
            ran.stdout.contains("Question number 9999") && ran.stderr.contains("20 of 10000"),
            "{}",
            ran.seen()
        );
    }
    times.sort();
    println!("session list of {SESSIONS}: {:?} (median of 5, this build)", times[2]);
}
