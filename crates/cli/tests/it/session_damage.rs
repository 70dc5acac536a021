//! Sessions on a full disk, and sessions whose files somebody else damaged: what is there is never made less, and what is
//! wrong is told with its place and its cure.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::desk::{Desk, Ran, read, says};
use crate::terminal::Terminal;
use crate::wrong::{as_nobody, with_home_on};

/// A session of three turns.
pub struct Told {
    pub desk: Desk,
    pub id: String,
    pub folder: PathBuf,
    pub journal: String,
}

pub fn told() -> Told {
    let desk = Desk::new();
    desk.plan("a.json", &says("the answer"));
    ok(desk.amplifier(&["run", "--plan", "a.json", "the first question"]));
    ok(desk.amplifier(&["continue", "the second question"]));
    ok(desk.amplifier(&["continue", "the third question"]));
    let folder = desk.sessions().remove(0);
    let id = folder.file_name().unwrap().to_str().unwrap().to_owned();
    let journal = read(&folder.join("events.jsonl"));
    Told { desk, id, folder, journal }
}

impl Told {
    pub fn spoil(&self, journal: &str) {
        std::fs::write(self.folder.join("events.jsonl"), journal).unwrap();
    }

    pub fn views(&self) -> [String; 2] {
        ["transcript.jsonl", "metadata.json"].map(|name| read(&self.folder.join(name)))
    }

    /// Everything that opens or reads a session.
    pub fn readers(&self) -> Vec<Vec<&str>> {
        let id = self.id.as_str();
        vec![
            vec!["continue", "go on"],
            vec!["run", "--resume", id, "go on"],
            vec!["chat", "--resume", id],
            vec!["session", "show", id],
            vec!["session", "export", id],
            vec!["session", "replay", id],
            vec!["session", "fork", id],
            vec!["session", "rewind", id, "--to", "1"],
            vec!["session", "rename", id, "another"],
        ]
    }

    /// The number of the line where a turn begins.
    pub fn line_of(&self, prompt: &str) -> usize {
        self.journal.lines().position(|line| line.contains(prompt)).unwrap() + 1
    }
}

#[track_caller]
pub fn ok(ran: Ran) -> Ran {
    assert_eq!(ran.code, 0, "{}", ran.seen());
    ran
}

#[track_caller]
pub fn refused(ran: &Ran, words: &[&str]) {
    assert_eq!(ran.code, 1, "{}", ran.seen());
    for word in words.iter().chain(&["hint: "]) {
        assert!(ran.stderr.contains(word), "`{word}` is not told: {}", ran.seen());
    }
}

#[test]
fn a_journal_that_lost_records_is_refused_and_its_views_are_left_alone() {
    let told = told();
    let records = told.journal.lines().count();
    let views = told.views();
    let second = told.line_of("the second question");
    let cut_at = |line: usize| told.journal.split_inclusive('\n').take(line).collect::<String>();
    let known = format!("know {records}");
    let torn = format!("{}{{\"v\":1,\"seq\":", cut_at(second - 1));
    let ends = format!("ends at record {}", second - 1);
    let whole = format!("session fork {} --at 1", told.id);
    let salvage = format!("session fork {} --salvage", told.id);
    for (journal, words) in [
        (String::new(), ["holds no record", &salvage]),
        (cut_at(second - 1), [&ends, &whole]),
        (torn, [&ends, &whole]),
    ] {
        told.spoil(&journal);
        for args in told.readers() {
            let ran = told.desk.amplifier(&args);
            refused(&ran, &["events.jsonl", &known, "put a copy of `events.jsonl` back", words[0], words[1]]);
        }
        assert_eq!(read(&told.folder.join("events.jsonl")), journal, "it is left as it was found");
    }
    std::fs::remove_file(told.folder.join("events.jsonl")).unwrap();
    for args in told.readers() {
        refused(&told.desk.amplifier(&args), &["events.jsonl", &known, "is not there"]);
    }
    assert!(!told.folder.join("events.jsonl").exists());
    assert_eq!(told.views(), views, "the last copy of what was said");
    // A list knows it still, from the index and without it.
    assert!(ok(told.desk.amplifier(&["session", "list"])).stdout.contains("the first question"));
    std::fs::remove_file(told.desk.home().join("state/sessions.idx")).unwrap();
    let listed = ok(told.desk.amplifier(&["session", "list"]));
    assert!(listed.stdout.contains("the first question"), "{}", listed.seen());
    assert!(listed.stderr.contains(&known) && listed.stderr.contains("hint: "), "{}", listed.seen());
    let listed = ok(told.desk.amplifier(&["session", "list", "--output", "json"])).json();
    assert_eq!(listed["damaged"][0]["session_id"], json!(told.id), "{listed}");
    // The copy comes back, and nothing is missing.
    told.spoil(&told.journal);
    ok(told.desk.amplifier(&["continue", "go on"]));
    assert!(told.views()[0].starts_with(&views[0]));
}

#[test]
fn a_transcript_is_kept_when_the_journal_and_the_metadata_lost_what_it_holds() {
    let told = told();
    let [transcript, _] = told.views();
    let second = told.line_of("the second question");
    let half: String = told.journal.split_inclusive('\n').take(second - 1).collect();
    std::fs::remove_file(told.folder.join("metadata.json")).unwrap();
    told.spoil("");
    refused(&told.desk.amplifier(&["session", "show", &told.id]), &["holds no record", "transcript"]);
    assert_eq!(read(&told.folder.join("transcript.jsonl")), transcript);
    // Nothing tells that records are gone; what the transcript has beyond them stays all the same.
    told.spoil(&half);
    ok(told.desk.amplifier(&["session", "show", &told.id]));
    assert_eq!(read(&told.folder.join("transcript.lost-1.jsonl")), transcript);
    assert_eq!(read(&told.folder.join("transcript.jsonl")).lines().count(), 2);
}

#[test]
fn a_damaged_journal_is_told_with_the_fork_that_saves_what_is_whole() {
    let told = told();
    let views = told.views();
    let fork = format!("session fork {} --at 1", told.id);
    // The very first line of the second turn, and one in its middle.
    for line in [told.line_of("the second question"), told.line_of("the second question") + 4] {
        let spoil = |(at, text): (usize, &str)| match at + 1 == line {
            true => format!("{}\n", text.replacen("\"ts\"", "\"tz\"", 1)),
            false => format!("{text}\n"),
        };
        let damaged: String = told.journal.lines().enumerate().map(spoil).collect();
        told.spoil(&damaged);
        for args in told.readers() {
            let ran = told.desk.amplifier(&args);
            refused(&ran, &[&format!("events.jsonl:{line}"), "damaged", &fork]);
        }
        assert_eq!(told.views(), views);
        let saved = ok(told.desk.amplifier(&["session", "fork", &told.id, "--at", "1"])).stdout;
        let saved = saved.trim();
        let ran = ok(told.desk.amplifier(&["session", "export", saved]));
        assert!(
            ran.stdout.contains("the first question") && !ran.stdout.contains("second"),
            "{}",
            ran.seen()
        );
        ok(told.desk.amplifier(&["session", "delete", saved, "--yes"]));
    }
    // Nothing came before the damage, and yet most is there.
    told.spoil(&told.journal.replacen("the first question", "the worst question", 1));
    let ran = told.desk.amplifier(&["continue", "go on"]);
    refused(&ran, &["events.jsonl:", "--salvage", "turns 2 to 3 are whole"]);
    assert!(!ran.stderr.contains("begin anew") && !ran.stderr.contains("--at"), "{}", ran.seen());
    // Nothing is left anywhere.
    told.spoil("no journal\nat all\n");
    std::fs::remove_file(told.folder.join("transcript.jsonl")).unwrap();
    refused(&told.desk.amplifier(&["continue", "go on"]), &["events.jsonl:", "begin anew: nothing of it"]);
}

#[test]
fn files_beside_the_journal_are_replaced_or_named() {
    let told = told();
    let resume = || told.desk.amplifier(&["run", "--resume", &told.id, "go on"]);
    std::fs::remove_file(told.folder.join("mount_plan.json")).unwrap();
    refused(&resume(), &["mount_plan.json", "--plan FILE", "--bundle REF"]);
    ok(told.desk.amplifier(&["run", "--resume", &told.id, "--plan", "a.json", "go on"]));
    // The lock counts, not what the file says.
    for garbage in [vec![0xff_u8, 0xfe, 0], vec![0x80; 9_000]] {
        std::fs::write(told.folder.join("lease"), garbage).unwrap();
        ok(resume());
    }
    std::fs::write(told.folder.join("prompt.json"), "no").unwrap();
    refused(&resume(), &["prompt.json", "--bundle REF"]);
    told.desk.file(
        "b/bundle.md",
        "---\nbundle: {name: mine}\nsession: {orchestrator: loop-basic, context: context-simple}\n\
         providers:\n  - module: provider-mock\n    config: {responses: [brief]}\n---\nBe brief.\n",
    );
    let ran = ok(told.desk.amplifier(&["run", "--resume", &told.id, "--bundle", "b", "go on"]));
    assert_eq!(ran.stdout, "brief\n");
    ok(resume());
    // Without it the model would be asked without its task, and nobody would know.
    std::fs::remove_file(told.folder.join("prompt.json")).unwrap();
    let ran = resume();
    refused(&ran, &["prompt.json", "is gone", "--bundle REF"]);
    assert!(!ran.stderr.contains("changed since"), "{}", ran.seen());
    ok(told.desk.amplifier(&["run", "--resume", &told.id, "--bundle", "b", "go on"]));
    ok(resume());
}

#[test]
fn a_journal_that_may_not_be_read_is_to_be_made_readable() {
    let told = told();
    // Everything is open to everybody, but the journal.
    let mut open = vec![told.desk.home(), told.desk.work()];
    while let Some(path) = open.pop() {
        let is_dir = path.is_dir();
        if is_dir {
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let mode = if is_dir { 0o777 } else { 0o666 };
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    }
    let journal = told.folder.join("events.jsonl");
    std::fs::set_permissions(&journal, PermissionsExt::from_mode(0o000)).unwrap();
    let id = told.id.as_str();
    for args in
        [["session", "show", id].as_slice(), &["session", "export", id], &["run", "--resume", id, "x"]]
    {
        let ran = Ran::of(as_nobody(&told.desk, args).output().unwrap());
        refused(&ran, &["events.jsonl", "ermission denied", "readable"]);
    }
}

#[test]
fn a_session_that_did_not_come_to_be_is_told_with_its_place_and_cleaned_up() {
    let desk = Desk::new();
    let left = desk.home().join("state/sessions/left-behind");
    std::fs::create_dir_all(&left).unwrap();
    std::fs::write(left.join("mount_plan.json"), "{}").unwrap();
    let listed = ok(desk.amplifier(&["session", "list"]));
    assert!(listed.stderr.contains(&left.join("events.jsonl").display().to_string()), "{}", listed.seen());
    assert!(listed.stderr.contains("`amplifier session delete left-behind`"), "{}", listed.seen());
    ok(desk.amplifier(&["session", "cleanup", "--yes"]));
    assert!(left.exists(), "somebody may be about to begin");
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    std::fs::File::open(&left).unwrap().set_modified(long_ago).unwrap();
    ok(desk.amplifier(&["session", "cleanup", "--yes"]));
    assert!(!left.exists());
    // The cure that the warning names works at once.
    std::fs::create_dir_all(&left).unwrap();
    ok(desk.amplifier(&["session", "delete", "left-behind", "--yes"]));
    assert!(!left.exists());
}

/// What a command said and how it ended, from a file that a script wrote.
fn noted(desk: &Desk, name: &str) -> Ran {
    let text = |end: &str| read(&desk.work().join(format!("{name}.{end}")));
    Ran { code: text("code").trim().parse().unwrap(), stdout: text("out"), stderr: text("err") }
}

#[test]
fn a_full_disk_keeps_nobody_from_reading_and_what_is_done_is_no_failure() {
    let desk = Desk::new();
    desk.plan("a.json", &says("the answer"));
    // The disk has no room for another file: files can grow, none can be replaced.
    let script = r#"
        note() { name=$1; shift; "$@" >$name.out 2>$name.err; echo $? >$name.code; }
        A=$1
        "$@" >/dev/null && "$A" continue "the second question" >/dev/null || exit 9
        id=$(ls "$AMPLIFIER_HOME/state/sessions")
        n=0; while touch "$AMPLIFIER_HOME/full-$n" 2>/dev/null; do n=$((n+1)); done
        note show "$A" session show $id
        note export "$A" session export $id
        note rename "$A" session rename $id "another name"
        note rewind "$A" session rewind $id --to 1
        note after "$A" session show $id
        rm "$AMPLIFIER_HOME/state/sessions.idx" && touch "$AMPLIFIER_HOME/full-again"
        note list "$A" session list
        note new-0 "$A" run --plan a.json hello
        for k in 1 2 3; do
            n=$((n-1)); rm "$AMPLIFIER_HOME/full-$n"
            note new-$k "$A" run --plan a.json hello
        done
        ls "$AMPLIFIER_HOME/state/sessions" >sessions.txt
        rm "$AMPLIFIER_HOME"/full-*
        note room "$A" session show $id
        exit 0
    "#;
    let ran = with_home_on(
        &desk,
        "size=8m,nr_inodes=80",
        script,
        &["run", "--plan", "a.json", "the first question"],
    );
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert!(ok(noted(&desk, "show")).stdout.contains("the second question"));
    assert!(ok(noted(&desk, "export")).stdout.contains("the second question"));
    let complete = "the journal is complete, and the views are rebuilt from it";
    for (name, says) in [("rename", "is called `another name`"), ("rewind", "at the end of turn 1")] {
        let ran = ok(noted(&desk, name));
        assert!(ran.stdout.contains(says), "{}", ran.seen());
        assert!(ran.stderr.contains("No space left") && ran.stderr.contains(complete), "{}", ran.seen());
    }
    for name in ["after", "list", "room"] {
        assert!(ok(noted(&desk, name)).stdout.contains("another name"), "{}", noted(&desk, name).seen());
    }
    for name in ["new-0", "new-1", "new-2", "new-3"] {
        refused(&noted(&desk, name), &["No space left", "make room"]);
    }
    assert_eq!(read(&desk.work().join("sessions.txt")).lines().count(), 1, "nothing is left of the others");
}

#[test]
fn what_a_model_said_cannot_steer_the_terminal_but_stands_in_a_file() {
    let desk = Desk::new();
    desk.plan("a.json", &says("before \u{1b}]0;hacked\u{7} after"));
    ok(desk.amplifier(&["run", "--plan", "a.json", "hi"]));
    let id = desk.sessions().remove(0).file_name().unwrap().to_str().unwrap().to_owned();
    let piped = ok(desk.amplifier(&["session", "export", &id]));
    assert!(piped.stdout.contains("before \u{1b}]0;hacked\u{7} after"), "{}", piped.seen());
    let mut terminal = Terminal::open(&desk, &["session", "export", &id], (80, 24), "xterm-256color");
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    let bytes = String::from_utf8(terminal.bytes()).unwrap();
    assert!(bytes.contains("before \u{fffd}]0;hacked\u{fffd} after"), "{bytes:?}");
    let ran = desk.amplifier(&["session", "rename", &id, "a\u{1b}[31mb"]);
    assert_eq!(ran.code, 2, "{}", ran.seen());
    assert!(ran.stderr.contains("a\u{fffd}[31mb"), "{}", ran.seen());
}

#[test]
fn what_is_said_after_a_torn_end_holds_and_the_repair_is_told() {
    for args in [&["session", "rename"][..], &["session", "rewind"]] {
        let told = told();
        // The last record is torn, and the views know it.
        let journal = told.journal.trim_end();
        told.spoil(&journal[..journal.len() - 20]);
        let last: &[&str] = if args.contains(&"rename") { &["foo"] } else { &["--to", "1"] };
        let ran = ok(told.desk.amplifier(&[args, &[&told.id], last].concat()));
        assert!(ran.stderr.contains("of the journal were torn; they are kept in"), "{}", ran.seen());
        let records = told.journal.lines().count();
        let torn = read(&told.folder.join("events.torn"));
        assert!(torn.starts_with(&format!("{records} {{\"v\":1,\"seq\":{records},")), "{torn}");
        let shown = ok(told.desk.amplifier(&["session", "show", &told.id]));
        if args.contains(&"rename") {
            assert_eq!(ran.stdout, format!("session `{}` is called `foo`\n", told.id));
            assert!(shown.stdout.contains("name          foo\n"), "{}", shown.seen());
            assert!(ok(told.desk.amplifier(&["session", "list"])).stdout.contains("foo"));
        } else {
            assert_eq!(
                shown.stdout.matches("(not part of the conversation now)").count(),
                2,
                "{}",
                shown.seen()
            );
        }
        assert!(shown.stderr.is_empty(), "{}", shown.seen());
    }
}

#[test]
fn a_session_that_cannot_be_read_is_told_by_whoever_passes_it_over() {
    let told = told();
    ok(told.desk.amplifier(&["run", "--plan", "a.json", "the newest question"]));
    let newest = told.desk.sessions().remove(1);
    let id = newest.file_name().unwrap().to_str().unwrap();
    std::fs::write(newest.join("events.jsonl"), "no journal\nat all\n").unwrap();
    std::fs::remove_file(newest.join("metadata.json")).unwrap();
    std::fs::remove_file(told.desk.home().join("state/sessions.idx")).unwrap();
    let warning = format!("warning: session `{id}` cannot be read: ");
    for args in [
        &["continue", "go on"][..],
        &["session", "list"],
        &["session", "search", "question"],
        &["session", "cleanup", "--days", "0", "--dry-run"],
        &["session", "list", "--tree", &told.id],
    ] {
        let ran = ok(told.desk.amplifier(args));
        assert!(ran.stderr.contains(&warning) && ran.stderr.contains("hint: "), "{args:?} {}", ran.seen());
    }
    for args in [
        &["session", "search", "question"][..],
        &["session", "list"],
        &["session", "list", "--tree", &told.id],
        &["session", "cleanup", "--days", "0", "--dry-run"],
    ] {
        let ran = ok(told.desk.amplifier(&[args, &["--output", "json"]].concat())).json();
        assert_eq!(ran["unread"][0]["session_id"], json!(id), "{args:?} {ran}");
    }
    let found = ok(told.desk.amplifier(&["session", "search", "first", "--output", "json"])).json();
    assert_eq!(found["hits"][0]["session_id"], json!(told.id), "{found}");
    ok(told.desk.amplifier(&["session", "delete", id, "--yes"]));
    assert!(!newest.exists());
}

#[test]
fn a_chat_goes_on_when_there_is_room_again() {
    let desk = Desk::new();
    desk.plan("a.json", &says("the answer"));
    let script = r#"
        seen() { tries=0; until grep -q "$1" chat.$2 || [ $tries -gt 600 ]; do sleep 0.05; tries=$((tries+1)); done; }
        : >chat.out; : >chat.err
        {
            echo first; seen answer out
            head -c 8m /dev/zero >"$AMPLIFIER_HOME/full" 2>/dev/null
            echo second; seen "journal could not be written" err
            echo third; seen "goes on as it was" err
            rm "$AMPLIFIER_HOME/full"
            echo fourth; seen "opened anew: " err
        } | "$@" >chat.out 2>chat.err
        echo $? >chat.code
        "$1" session show "$(ls "$AMPLIFIER_HOME/state/sessions")" >shown.txt
    "#;
    let ran = with_home_on(&desk, "size=256k", script, &["chat", "--plan", "a.json"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let chat = noted(&desk, "chat");
    // Somebody who is not there must learn that not everything was answered.
    refused(
        &chat,
        &["No space left", "make room, then ask again", "make room on the disk", "opened anew: its journal"],
    );
    assert_eq!(chat.stdout.matches("the answer").count(), 2, "{}", chat.seen());
    let shown = read(&desk.work().join("shown.txt"));
    assert!(shown.contains("fourth") && !shown.contains("third"), "{shown}");
}

#[test]
fn a_chat_whose_session_was_taken_away_says_so_and_not_that_there_is_no_room() {
    let desk = Desk::new();
    desk.plan("a.json", &says("the answer"));
    let mut terminal = Terminal::open(&desk, &["chat", "--plan", "a.json"], (80, 60), "xterm-256color");
    terminal.sees("/help");
    terminal.types("first\r");
    terminal.sees("the answer");
    terminal.prompt();
    let folder = desk.sessions().remove(0);
    // Only the lease is gone: the same session can be opened again.
    std::fs::remove_file(folder.join("lease")).unwrap();
    terminal.types("second\r");
    terminal.sees("was taken away");
    terminal.sees("ask again");
    terminal.types("third\r");
    terminal.sees("opened anew: ");
    terminal.until("the answer to the third", |screen| screen.matches("the answer").count() == 2);
    terminal.prompt();
    std::fs::remove_dir_all(&folder).unwrap();
    terminal.types("fourth\r");
    terminal.sees("put a copy back");
    assert!(!terminal.screen().contains("make room"), "{}", terminal.screen());
    terminal.types("/quit\r");
    terminal.end();
    let bytes = String::from_utf8_lossy(&terminal.bytes()).into_owned();
    assert!(!bytes.contains("go on with"), "{bytes}");
}

#[test]
fn a_session_that_cannot_be_gone_to_in_a_chat_is_told_with_its_cure() {
    let told = told();
    let lines: Vec<_> = told.journal.lines().collect();
    let mut injured: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
    injured[1] = injured[1].replacen('"', "'", 2);
    told.spoil(&(injured.join("\n") + "\n"));
    for view in ["transcript.jsonl", "metadata.json"] {
        std::fs::remove_file(told.folder.join(view)).unwrap();
    }
    let args = ["chat", "--plan", "a.json"];
    let asked = format!("hello\n/resume {}\n", told.id);
    let ran = told.desk.amplifier_with_input(&args, asked.as_bytes());
    refused(&ran, &["is damaged", "hint: ", "goes on as it was"]);
}

#[test]
fn a_folder_in_place_of_a_file_is_to_be_moved_away() {
    let told = told();
    let answer = "a long answer ".repeat(20_000);
    told.desk.plan("long.json", &says(&answer));
    let id = told.id.as_str();
    ok(told.desk.amplifier(&["run", "--resume", id, "--plan", "long.json", "the fourth question"]));
    let blob = std::fs::read_dir(told.folder.join("blobs")).unwrap().next().unwrap().unwrap().path();
    let resume = ["run", "--resume", id, "go on"];
    let (fork, rename) = (["session", "fork", id], ["session", "rename", id, "another"]);
    let doctor = ["doctor", "--offline", "--output", "json"];
    let rows: [(PathBuf, &[&[&str]]); 4] = [
        (told.folder.join("mount_plan.json"), &[&resume, &fork]),
        (told.folder.join("lease"), &[&resume, &rename]),
        (told.folder.join("events.jsonl"), &[&resume, &fork, &rename]),
        (blob, &[&resume, &fork]),
    ];
    let cure = "a folder stands where a file belongs: move it away";
    for (file, commands) in rows {
        let away = told.desk.path("away");
        std::fs::rename(&file, &away).unwrap();
        std::fs::create_dir(&file).unwrap();
        for command in commands {
            let ran = told.desk.amplifier(command);
            refused(&ran, &[file.to_str().unwrap(), cure]);
            assert!(!ran.stderr.contains("writable"), "{}", ran.seen());
        }
        let found = told.desk.amplifier(&doctor);
        assert!(found.stdout.contains(cure), "{}: {}", file.display(), found.stdout);
        std::fs::remove_dir(&file).unwrap();
        std::fs::rename(&away, &file).unwrap();
        assert!(!told.desk.amplifier(&doctor).stdout.contains(cure));
    }
    ok(told.desk.amplifier(&resume));
}

/// Point 19 of issue 25: without the journal the turns come from the transcript, where a message stands as it was said.
#[test]
fn a_look_alike_of_a_key_is_hidden_also_when_the_journal_is_gone() {
    let desk = Desk::new();
    desk.plan("a.json", &crate::desk::says("ok"));
    let key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789";
    let ran = desk.amplifier(&["run", "--plan", "a.json", &format!("use {key} for it")]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let folder = desk.sessions().pop().unwrap();
    let id = folder.file_name().unwrap().to_string_lossy().into_owned();
    for _ in 0..2 {
        for args in [&["session", "show", &id][..], &["session", "show", &id, "--output", "json"]] {
            let shown = desk.amplifier(args);
            assert!(!shown.seen().contains(key) && shown.stdout.contains("[REDACTED]"), "{}", shown.seen());
        }
        if folder.join("events.jsonl").exists() {
            std::fs::remove_file(folder.join("events.jsonl")).unwrap();
        }
    }
}
