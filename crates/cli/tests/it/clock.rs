//! A clock that is wrong: before 1970, as on a machine that was never told the time, and set back between two sessions.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::desk::{Desk, Ran, says};

/// Gives programs another time of day: so many seconds earlier than it is.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, time);
    if (id == CLOCK_REALTIME) time->tv_sec -= atoll(getenv("EARLIER"));
    return result;
}
"#;

/// The library that does it; whoever builds this program has a compiler that links it.
fn shim(desk: &Desk) -> PathBuf {
    let (source, library) = (desk.path("clock.c"), desk.path("clock.so"));
    std::fs::write(&source, SHIM).unwrap();
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).arg("-ldl").status();
    assert!(built.unwrap().success());
    library
}

struct Machine {
    desk: Desk,
    shim: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let desk = Desk::new();
        let shim = shim(&desk);
        Self { desk, shim }
    }

    /// Runs with a clock that is so many seconds behind.
    fn behind(&self, seconds: i64, args: &[&str]) -> Ran {
        let mut command = self.desk.command(args);
        command.env("LD_PRELOAD", &self.shim).env("EARLIER", seconds.to_string());
        Ran::of(command.output().unwrap())
    }
}

const DAY: i64 = 24 * 60 * 60;

#[test]
fn before_1970_a_session_is_kept_and_goes_on() {
    let machine = Machine::new();
    machine.desk.plan("a.json", &says("one"));
    let long_ago = 100 * 365 * DAY;
    for _ in 0..2 {
        let ran = machine.behind(long_ago, &["run", "--plan", "a.json", "hi"]);
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "one\n", ""), "{}", ran.seen());
    }
    assert_eq!(machine.desk.sessions().len(), 2, "each has an id of its own");
    let ran = machine.behind(long_ago, &["continue", "more"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "one\n"), "{}", ran.seen());
    let listed = machine.behind(long_ago, &["session", "list"]);
    assert_eq!(listed.code, 0, "{}", listed.seen());
}

#[test]
fn the_last_used_session_is_the_last_used_one_after_the_clock_went_back() {
    let machine = Machine::new();
    machine.desk.plan("a.json", &says("one"));
    let begun = |earlier: i64, words: &str| {
        let ran = machine.behind(earlier, &["run", "--plan", "a.json", "--output", "json", words]);
        ran.json()["session_id"].as_str().unwrap().to_owned()
    };
    let last = || {
        let ran = machine.behind(2 * DAY, &["continue", "--output", "json", "more"]);
        ran.json()["session_id"].as_str().unwrap_or_else(|| panic!("{}", ran.seen())).to_owned()
    };
    let ahead = begun(0, "while the clock was ahead");
    let behind = begun(2 * DAY, "after it was set right");
    assert_eq!(last(), behind);
    // Who goes on with the other has used that one last.
    let ran = machine.behind(2 * DAY, &["run", "--resume", &ahead, "again"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert_eq!(last(), ahead);
    let listed = machine.behind(2 * DAY, &["session", "list", "--output", "json"]).json();
    let order: Vec<_> = listed["sessions"].as_array().unwrap().iter().map(|row| &row["session_id"]).collect();
    assert_eq!(order, [&ahead, &behind]);
}

/// As on a machine that lost its clock: in 1970.
const LONG_AGO: i64 = 56 * 365 * DAY;

#[test]
fn what_was_used_while_the_clock_was_wrong_is_not_old() {
    let machine = Machine::new();
    machine.desk.plan("a.json", &says("one"));
    let begun = |earlier: i64| {
        let ran = machine.behind(earlier, &["run", "--plan", "a.json", "--output", "json", "hi"]);
        ran.json()["session_id"].as_str().unwrap().to_owned()
    };
    let cleanup = |args: &[&str]| {
        let ran = machine.desk.amplifier(&[&["session", "cleanup", "--output", "json"], args].concat());
        assert_eq!(ran.code, 0, "{}", ran.seen());
        (ran.json(), ran.stderr)
    };
    begun(0);
    let lost = begun(LONG_AGO);
    // It was used after the other, and that was just now.
    let (told, stderr) = cleanup(&["--dry-run"]);
    assert_eq!((&told["sessions"], &told["undated"]), (&json!([]), &json!([])), "{stderr}");
    let listed = machine.desk.amplifier(&["session", "list"]);
    assert!(!listed.stdout.contains("1970-"), "{}", listed.seen());
    // Without the index nobody knows when that was.
    for name in ["sessions.idx", "sessions.lock"] {
        std::fs::remove_file(machine.desk.home().join("state").join(name)).unwrap();
    }
    for args in [["--dry-run"], ["--yes"]] {
        let (told, stderr) = cleanup(&args);
        assert_eq!((&told["sessions"], &told["deleted"]), (&json!([]), &json!([])), "{stderr}");
        assert_eq!(told["undated"][0]["session_id"], json!(lost), "{told}");
        assert!(stderr.contains(&format!("session `{lost}` stays")), "{stderr}");
        assert!(stderr.contains(&format!("`amplifier session delete {lost}`")), "{stderr}");
    }
    assert_eq!(machine.desk.sessions().len(), 2);
}

#[test]
fn one_use_with_a_clock_far_ahead_dates_no_later_one() {
    let machine = Machine::new();
    machine.desk.plan("a.json", &says("one"));
    let begun = |earlier: i64, words: &str| {
        let ran = machine.behind(earlier, &["run", "--plan", "a.json", "--output", "json", words]);
        ran.json()["session_id"].as_str().unwrap_or_else(|| panic!("{}", ran.seen())).to_owned()
    };
    let ahead = begun(-70 * 365 * DAY, "far ahead");
    let right = begun(0, "set right");
    // The order is that of the uses, and no date is made up.
    let listed = machine.desk.amplifier(&["session", "list"]);
    let rows: Vec<_> = listed.stdout.lines().collect();
    assert!(rows[0].contains("set right") && rows[1].contains("far ahead"), "{}", listed.seen());
    assert!(!rows[0].contains("date unknown") && rows[1].contains("date unknown"), "{}", listed.seen());
    let today = machine.desk.amplifier(&["session", "show", &right]).stdout;
    let today = today.lines().find_map(|line| line.strip_prefix("last used")).unwrap().trim();
    assert!(rows[0].contains(&today[..10]), "{} {today}", listed.seen());
    let cleanup = |days: &str| {
        let args = ["session", "cleanup", "--days", days, "--dry-run", "--output", "json"];
        let ran = machine.desk.amplifier(&args);
        assert_eq!(ran.code, 0, "{}", ran.seen());
        assert!(ran.stderr.contains(&format!("session `{ahead}` stays")), "{}", ran.seen());
        assert_eq!(ran.json()["undated"][0]["session_id"], json!(ahead), "{}", ran.seen());
        ran.json()["sessions"].clone()
    };
    assert_eq!(cleanup("0")[0]["session_id"], json!(right));
    assert_eq!(cleanup("30"), json!([]));
}

#[test]
fn a_session_of_a_time_ahead_is_not_the_last_used_one_for_ever() {
    let machine = Machine::new();
    machine.desk.plan("a.json", &says("one"));
    let begun = |earlier: i64, words: &str| {
        let ran = machine.behind(earlier, &["run", "--plan", "a.json", "--output", "json", words]);
        ran.json()["session_id"].as_str().unwrap_or_else(|| panic!("{}", ran.seen())).to_owned()
    };
    let resume = |id: &str| {
        let ran = machine.desk.amplifier(&["run", "--resume", id, "again"]);
        assert_eq!(ran.code, 0, "{}", ran.seen());
    };
    let ahead = begun(-70 * 365 * DAY, "far ahead");
    let right = begun(0, "set right");
    // What kept the order of the uses is gone: only the sessions tell when they were used.
    for name in ["sessions.idx", "sessions.lock"] {
        std::fs::remove_file(machine.desk.home().join("state").join(name)).unwrap();
    }
    assert_eq!(machine.desk.amplifier(&["session", "list"]).code, 0);
    resume(&right);
    let last = machine.desk.amplifier(&["continue", "--output", "json", "more"]);
    assert_eq!(last.json()["session_id"], json!(right), "{}", last.seen());
    // Used again with a clock that is right, it has a date again.
    resume(&ahead);
    let listed = machine.desk.amplifier(&["session", "list"]);
    let first = listed.stdout.lines().next().unwrap_or_default();
    assert!(first.contains("far ahead") && !first.contains("date unknown"), "{}", listed.seen());
}

#[test]
fn what_was_begun_while_the_clock_was_wrong_may_be_at_work() {
    let desk = Desk::new();
    let sessions = desk.home().join("state/sessions");
    let hours_ago = desk.work().metadata().unwrap().modified().unwrap() - Duration::from_secs(2 * 3600);
    let in_1970 = SystemTime::UNIX_EPOCH + Duration::from_secs(3600);
    let left = |name: &str, when: SystemTime| {
        let folder = sessions.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        File::open(&folder).unwrap().set_modified(when).unwrap();
        folder
    };
    let old = [left(".new-a", hours_ago), left(".gone-a", hours_ago), left("empty-a", hours_ago)];
    let undated = [left(".new-b", in_1970), left(".gone-b", in_1970), left("empty-b", in_1970)];
    let ran = desk.amplifier(&["session", "cleanup", "--yes"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert!(old.iter().all(|folder| !folder.exists()), "{}", ran.seen());
    for folder in &undated {
        let modified = folder.metadata().unwrap_or_else(|_| panic!("{folder:?} is gone")).modified().unwrap();
        assert!(modified > hours_ago, "it is old from now on");
        File::open(folder).unwrap().set_modified(hours_ago).unwrap();
    }
    assert_eq!(desk.amplifier(&["session", "cleanup", "--yes"]).code, 0);
    assert!(undated.iter().all(|folder| !folder.exists()));
}
