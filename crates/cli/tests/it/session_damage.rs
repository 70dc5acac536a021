//! Sessions on a full disk, and sessions whose files somebody else damaged: what is there is never made less, and what is
//! wrong is told with its place and its cure.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::desk::{Desk, Ran, read, says};
use crate::terminal::Terminal;
use crate::wrong::{as_nobody, with_home_on};

/// A session of three turns.
struct Told {
    desk: Desk,
    id: String,
    folder: PathBuf,
    journal: String,
}

fn told() -> Told {
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
    fn spoil(&self, journal: &str) {
        std::fs::write(self.folder.join("events.jsonl"), journal).unwrap();
    }

    fn views(&self) -> [String; 2] {
        ["transcript.jsonl", "metadata.json"].map(|name| read(&self.folder.join(name)))
    }

    /// Everything that opens or reads a session.
    fn readers(&self) -> Vec<Vec<&str>> {
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
    fn line_of(&self, prompt: &str) -> usize {
        self.journal.lines().position(|line| line.contains(prompt)).unwrap() + 1
    }
}

#[track_caller]
fn ok(ran: Ran) -> Ran {
    assert_eq!(ran.code, 0, "{}", ran.seen());
    ran
}

#[track_caller]
fn refused(ran: &Ran, words: &[&str]) {
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

/// What somebody may do to a journal.
fn injuries(told: &Told) -> Vec<(&'static str, Vec<u8>)> {
    let lines: Vec<&str> = told.journal.split_inclusive('\n').collect();
    let said = |prompt: &str| {
        let is_said = |line: &&str| line.contains(prompt) && line.contains("\"body\":{\"message\"");
        lines.iter().position(is_said).unwrap()
    };
    let changed = |prompt: &str, to: &[u8]| {
        let (at, mut bytes) =
            (told.journal.find(lines[said(prompt)]).unwrap(), told.journal.clone().into_bytes());
        let letter = at + lines[said(prompt)].find(prompt).unwrap();
        bytes[letter..letter + to.len()].copy_from_slice(to);
        bytes
    };
    let second = said("the second question");
    let mut removed = lines.clone();
    removed.remove(second);
    let mut swapped = lines.clone();
    swapped.swap(second, second + 2);
    vec![
        ("a letter in turn 1", changed("the first question", b"T")),
        ("a letter in turn 2", changed("the second question", b"T")),
        ("a letter in turn 3", changed("the third question", b"T")),
        ("a byte that is no text", changed("the second question", b"\xff")),
        ("a line less", removed.concat().into_bytes()),
        ("lines in another order", swapped.concat().into_bytes()),
        ("a cut", lines[..second].concat().into_bytes()),
        ("nothing left", Vec::new()),
    ]
}

/// Every command that only reads a session, and its forms.
fn shown(id: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["session", "show", id, "--transcript"],
        vec!["session", "show", id, "--transcript", "--output", "json"],
        vec!["session", "export", id],
        vec!["session", "export", id, "--format", "json"],
        vec!["session", "export", id, "--format", "html"],
        vec!["session", "replay", id],
        vec!["session", "replay", id, "--output", "json"],
        vec!["session", "search", "question"],
        vec!["session", "search", "question", "--output", "json"],
    ]
}

/// The commands that a hint offers.
fn offered(ran: &Ran) -> Vec<String> {
    let hint = ran.stderr.split("hint: ").nth(1).unwrap_or_default();
    let quoted = hint.split('`').skip(1).step_by(2);
    quoted.filter_map(|quoted| quoted.strip_prefix("amplifier ")).map(str::to_owned).collect()
}

#[test]
fn what_can_be_read_of_a_damaged_session_is_shown_and_nobody_takes_it_for_the_whole() {
    for (at, name) in injuries(&told()).into_iter().map(|(name, _)| name).enumerate() {
        let told = told();
        let injured = injuries(&told).remove(at).1;
        let views = told.views();
        std::fs::write(told.folder.join("events.jsonl"), &injured).unwrap();
        for args in shown(&told.id) {
            let ran = told.desk.amplifier(&args);
            let about = format!("{name}: {args:?} {}", ran.seen());
            refused(&ran, &["warning: session", "is damaged, and this is what can be read", "events.jsonl"]);
            for said in ["the first question", "the second question", "the third question"] {
                assert!(ran.stdout.contains(said), "`{said}` is missing: {about}");
            }
            if args.contains(&"json") {
                let json = ran.json();
                let place = json["damaged"][0].get("places").map_or(&json["damaged"][0], |places| &places[0]);
                assert!(place["line"].is_u64() && place["cause"].is_string(), "{about}");
            } else if !args.contains(&"search") && name != "lines in another order" {
                assert!(ran.stdout.contains("cannot be read: events.jsonl:"), "{about}");
            }
        }
        // It is known from now on.
        let listed = ok(told.desk.amplifier(&["session", "list"]));
        assert!(listed.stdout.contains("damaged: the first question"), "{name}: {}", listed.seen());
        let listed = ok(told.desk.amplifier(&["session", "list", "--output", "json"])).json();
        let place = &listed["sessions"][0]["damaged"][0];
        assert!(place["line"].is_u64() && place["cause"].is_string(), "{name}: {listed}");
        assert_eq!(listed["damaged"][0]["session_id"], json!(told.id), "{name}: {listed}");
        assert_eq!(std::fs::read(told.folder.join("events.jsonl")).unwrap(), injured, "{name}");
        assert_eq!(told.views(), views, "{name}");
    }
}

#[test]
fn who_would_go_on_with_a_damaged_session_is_offered_what_works() {
    for (at, name) in injuries(&told()).into_iter().map(|(name, _)| name).enumerate() {
        let told = told();
        let injured = injuries(&told).remove(at).1;
        let views = told.views();
        std::fs::write(told.folder.join("events.jsonl"), &injured).unwrap();
        let id = told.id.as_str();
        let goers: [&[&str]; 6] = [
            &["continue", "go on"],
            &["run", "--resume", id, "go on"],
            &["chat", "--resume", id],
            &["session", "rewind", id, "--to", "1"],
            &["session", "rename", id, "another"],
            &["session", "fork", id],
        ];
        let mut offers = Vec::new();
        for args in goers {
            let ran = told.desk.amplifier(args);
            refused(&ran, &["events.jsonl", "copy", "--salvage", "whole"]);
            assert!(!ran.stderr.contains("begin anew"), "{name}: {}", ran.seen());
            offers = offered(&ran);
        }
        assert!(!offers.is_empty());
        let listed = ok(told.desk.amplifier(&["session", "list"]));
        assert!(listed.stdout.contains("damaged: the first question"), "{name}: {}", listed.seen());
        for offer in &offers {
            let made = ok(told.desk.amplifier(&offer.split(' ').collect::<Vec<_>>()));
            let is_all = made.stderr.contains("nothing that was said is missing");
            assert_eq!(is_all, offer.contains("--salvage"), "{name}: {}", made.seen());
            let new = made.stdout.trim();
            let shown = ok(told.desk.amplifier(&["session", "show", new, "--transcript"]));
            assert!(shown.stderr.is_empty(), "{name}: {}", shown.seen());
            let all = ["> the first question", "> the second question", "> the third question"];
            let wanted = if offer.contains("--salvage") { &all[..] } else { &all[..1] };
            for said in wanted {
                assert_eq!(shown.stdout.matches(said).count(), 1, "{name}: {offer}: {}", shown.seen());
            }
            ok(told.desk.amplifier(&["run", "--resume", new, "go on"]));
            ok(told.desk.amplifier(&["session", "delete", new, "--yes"]));
        }
        assert_eq!(std::fs::read(told.folder.join("events.jsonl")).unwrap(), injured, "{name}");
        assert_eq!(told.views(), views, "{name}");
        // The copy comes back, and nobody speaks of damage any more.
        told.spoil(&told.journal);
        ok(told.desk.amplifier(&["continue", "go on"]));
        let listed = ok(told.desk.amplifier(&["session", "list"]));
        assert!(!listed.stdout.contains("damaged"), "{name}: {}", listed.seen());
    }
}

#[test]
fn what_was_salvaged_is_in_the_list_of_its_folder_and_goes_on() {
    // The record that names folder and bundle, and everything: then only the views know.
    for name in ["one line", "nothing left"] {
        let told = told();
        ok(told.desk.amplifier(&["session", "rename", &told.id, "my work"]));
        let injured = match name {
            "one line" => spoiled(&told, told.line_of("session:described")),
            _ => String::new(),
        };
        told.spoil(&injured);
        let new = ok(told.desk.amplifier(&["session", "fork", &told.id, "--salvage"])).stdout;
        let new = new.trim();
        let listed = ok(told.desk.amplifier(&["session", "list", "--output", "json"])).json();
        let row = &listed["sessions"][0];
        assert_eq!((&row["session_id"], &row["name"]), (&json!(new), &json!("my work")), "{name}: {listed}");
        assert_eq!(row["bundle"]["kind"], json!("plan"), "{name}: {listed}");
        let shown = ok(told.desk.amplifier(&["session", "show", new]));
        for said in ["the first question", "the second question", "the third question"] {
            assert!(shown.stdout.contains(said), "{name}: {}", shown.seen());
        }
        assert!(!shown.stdout.contains("(continued)"), "{name}: {}", shown.seen());
        let went = ok(told.desk.amplifier(&["continue", "--output", "json", "go on"]));
        assert_eq!(went.json()["session_id"], json!(new), "{name}: {}", went.seen());
    }
}

/// The journal as it is now, with a line that cannot be read.
fn spoiled(told: &Told, line: usize) -> String {
    let journal = read(&told.folder.join("events.jsonl"));
    let lines = journal.split_inclusive('\n').enumerate();
    lines.map(|(at, text)| if at + 1 == line { "no line\n" } else { text }).collect()
}

#[test]
fn what_was_said_before_the_first_line_that_can_be_read_was_not_said_in_1970() {
    let told = told();
    told.spoil("");
    for args in [&["session", "show", &told.id][..], &["session", "export", &told.id]] {
        let ran = told.desk.amplifier(args);
        refused(&ran, &["events.jsonl"]);
        assert!(ran.stdout.contains("the first question") && !ran.stdout.contains("1970-"), "{}", ran.seen());
    }
}

#[test]
fn lists_and_one_session_tell_damage_in_one_shape() {
    let told = told();
    let shapes = || {
        let shown = told.desk.amplifier(&["session", "show", &told.id, "--output", "json"]).json();
        let listed = ok(told.desk.amplifier(&["session", "list", "--output", "json"])).json();
        let tree = ["session", "list", "--tree", &told.id, "--output", "json"];
        let tree = ok(told.desk.amplifier(&tree)).json();
        [&shown, &listed["sessions"][0], &tree["sessions"][0]].map(|session| session["damaged"].clone())
    };
    assert_eq!(shapes(), [json!([]), json!([]), json!([])]);
    told.spoil(&spoiled(&told, 5));
    let [shown, listed, tree] = shapes();
    assert_eq!(shown[0]["line"], json!(5), "{shown}");
    assert_eq!((&listed, &tree), (&shown, &shown));
}

/// Puts into the views and the index of a session what a version of old would have there.
fn as_of_old(told: &Told) {
    let old = |text: &str| {
        let mut metadata: Value = serde_json::from_str(text).unwrap();
        metadata["views"]["version"] = json!(2);
        for amount in metadata["views"]["spent"].as_object_mut().unwrap().values_mut() {
            *amount = json!(0);
        }
        metadata.to_string()
    };
    let (metadata, index) = (told.folder.join("metadata.json"), told.desk.home().join("state/sessions.idx"));
    std::fs::write(&metadata, old(&read(&metadata))).unwrap();
    let lines = read(&index);
    let last = lines.lines().last().unwrap();
    let (before, known) = last.split_at(last.find('{').unwrap());
    std::fs::write(&index, format!("{lines}{before}{}\n", old(known))).unwrap();
}

#[test]
fn what_a_version_of_old_counted_is_counted_anew_where_it_is_shown() {
    let told = told();
    let listed = || {
        let listed = ok(told.desk.amplifier(&["session", "list", "--output", "json"])).json();
        listed["sessions"][0].clone()
    };
    let before = listed();
    assert!(before["usage"]["input_tokens"].as_u64().unwrap() > 0, "{before}");
    as_of_old(&told);
    assert_eq!(listed(), before);
    // The index has it from now on.
    std::fs::remove_file(told.folder.join("metadata.json")).unwrap();
    assert_eq!(listed(), before);
    assert!(!told.folder.join("metadata.json").exists(), "nobody looked at the session again");
}

#[test]
fn a_transcript_that_a_version_of_old_wrote_is_believed() {
    let told = told();
    as_of_old(&told);
    let injured = injuries(&told).remove(1).1;
    std::fs::write(told.folder.join("events.jsonl"), &injured).unwrap();
    let ran = told.desk.amplifier(&["session", "export", &told.id]);
    refused(&ran, &["events.jsonl:"]);
    assert!(ran.stdout.contains("the second question"), "{}", ran.seen());
}

#[test]
fn a_journal_whose_line_ends_were_converted_is_read_and_nothing_of_it_is_lost() {
    let told = told();
    std::fs::remove_file(told.folder.join("transcript.jsonl")).unwrap();
    told.spoil(&told.journal.replace('\n', "\r\n"));
    let ran = told.desk.amplifier(&["continue", "go on"]);
    refused(&ran, &["events.jsonl:1", "carriage return", "--salvage", "turns 1 to 3 are whole"]);
    let ran = told.desk.amplifier(&["session", "export", &told.id]);
    refused(&ran, &["events.jsonl:1", "carriage return", "--salvage"]);
    assert!(ran.stdout.contains("the third question"), "{}", ran.seen());
    assert!(!ran.stdout.contains("cannot be read:"), "{}", ran.seen());
    let made =
        ok(told.desk.amplifier(&["session", "fork", &told.id, "--salvage", "--output", "json"])).json();
    assert_eq!(made["left_out"], json!(0), "{made}");
    let new = made["session_id"].as_str().unwrap();
    let shown = ok(told.desk.amplifier(&["session", "show", new]));
    assert_eq!(shown.stdout.matches("answered").count(), 3, "{}", shown.seen());
}

#[test]
fn thousands_of_bad_lines_are_told_in_few_words() {
    let told = told();
    let second = told.line_of("the second question");
    let lines: Vec<_> = told.journal.split_inclusive('\n').collect();
    let bad = "no line\n".repeat(8_000);
    told.spoil(&format!("{}{bad}{}", lines[..second - 1].concat(), lines[second - 1..].concat()));
    let ran = told.desk.amplifier(&["session", "export", &told.id, "--format", "json"]);
    refused(&ran, &["events.jsonl:", "more places are damaged"]);
    let damaged = ran.json()["damaged"].clone();
    let damaged = damaged.as_array().unwrap();
    assert!(damaged.len() < 50, "{}", damaged.len());
    let last = damaged.last().unwrap();
    assert!(last["cause"].as_str().unwrap().contains("places behind it"), "{last}");
}

#[test]
fn what_the_transcript_does_not_have_either_is_said_where_it_is_missing() {
    let told = told();
    std::fs::remove_file(told.folder.join("transcript.jsonl")).unwrap();
    let injured = injuries(&told).remove(1).1;
    std::fs::write(told.folder.join("events.jsonl"), &injured).unwrap();
    let ran = told.desk.amplifier(&["session", "show", &told.id, "--transcript"]);
    refused(&ran, &["events.jsonl:", "turns 1 and 3 are whole"]);
    assert!(ran.stdout.contains("(parts cannot be read)"), "{}", ran.seen());
    let lines: Vec<_> = ran.stdout.lines().filter(|line| !line.starts_with(' ')).collect();
    let missing =
        lines.iter().position(|line| line.starts_with("[1 record cannot be read: events.jsonl:")).unwrap();
    assert_eq!(lines[missing + 1], "the answer", "{}", ran.seen());
    assert!(!lines.contains(&"> the second question"), "{}", ran.seen());
    let made =
        ok(told.desk.amplifier(&["session", "fork", &told.id, "--salvage", "--output", "json"])).json();
    assert_eq!((&made["left_out"], &made["damaged"][0]["line"]), (&json!(1), &json!(24)), "{made}");
    assert_eq!(made["forked_from"]["session"], json!(told.id), "{made}");
    let made = ok(told.desk.amplifier(&["session", "fork", &told.id, "--salvage", "--name", "saved"]));
    assert!(
        made.stderr.contains("1 record could not be read; the model is told so in 1 place"),
        "{}",
        made.seen()
    );
    let shown = ok(told.desk.amplifier(&["session", "show", made.stdout.trim(), "--transcript"]));
    assert!(shown.stdout.contains("[amplifier added: (Something that was said"), "{}", shown.seen());
    ok(told.desk.amplifier(&["run", "--resume", made.stdout.trim(), "go on"]));
}

#[test]
fn a_large_value_that_is_gone_takes_nothing_else_with_it() {
    let desk = Desk::new();
    desk.plan("a.json", &says("the answer"));
    let long = format!("the long question {}", "x".repeat(70_000));
    ok(desk.amplifier(&["run", "--plan", "a.json", &long]));
    ok(desk.amplifier(&["continue", "the second question"]));
    let folder = desk.sessions().remove(0);
    let id = folder.file_name().unwrap().to_str().unwrap();
    for blob in std::fs::read_dir(folder.join("blobs")).unwrap() {
        std::fs::remove_file(blob.unwrap().path()).unwrap();
    }
    let ran = desk.amplifier(&["session", "export", id]);
    refused(&ran, &["events.jsonl:", "large value", "--salvage"]);
    refused(&desk.amplifier(&["session", "fork", id]), &["events.jsonl:", "large value", "--salvage"]);
    // The transcript has it.
    assert!(ran.stdout.contains(&long) && ran.stdout.contains("the second question"), "{}", ran.stderr);
    assert!(ok(desk.amplifier(&["session", "list"])).stdout.contains("damaged: the long question"));
    let transcript = read(&folder.join("transcript.jsonl"));
    std::fs::write(folder.join("transcript.jsonl"), transcript.replacen("long", "lone", 1)).unwrap();
    let ran = desk.amplifier(&["session", "export", id]);
    refused(&ran, &["events.jsonl:", "large value", "--salvage"]);
    assert!(ran.stdout.contains("bytes that cannot be read any more]"), "{}", ran.seen());
    assert!(ran.stdout.contains("the second question"), "{}", ran.seen());
    let made = ok(desk.amplifier(&["session", "fork", id, "--salvage"]));
    assert!(made.stderr.contains("the model is told so in 1 place"), "{}", made.seen());
    ok(desk.amplifier(&["run", "--resume", made.stdout.trim(), "go on"]));
}

#[test]
fn a_doctor_finds_a_damaged_journal_and_lists_know_it_then() {
    let told = told();
    let injured = injuries(&told).remove(0).1;
    std::fs::write(told.folder.join("events.jsonl"), &injured).unwrap();
    let ran = told.desk.amplifier(&["doctor", "--output", "json"]);
    let findings = ran.json()["findings"].clone();
    let found = findings.as_array().unwrap().iter().find(|finding| finding["check"] == "sessions").unwrap();
    assert_eq!(found["level"], "warning", "{found}");
    assert!(found["message"].as_str().unwrap().contains("is damaged"), "{found}");
    assert!(found["cure"].as_str().unwrap().contains("--salvage"), "{found}");
    for tree in [&[][..], &["--tree", &told.id]] {
        let listed = ok(told.desk.amplifier(&[&["session", "list"][..], tree].concat()));
        assert!(listed.stdout.contains("damaged: the first question"), "{}", listed.seen());
    }
    // Who picks one sees it, too.
    let mut terminal = Terminal::open(&told.desk, &["resume"], (80, 24), "xterm-256color");
    terminal.sees("which one?");
    assert!(terminal.screen().contains("damaged: the first question"), "{}", terminal.screen());
    terminal.types("q\r");
    terminal.end();
    assert_eq!(std::fs::read(told.folder.join("events.jsonl")).unwrap(), injured);
    // The copy comes back, and the next examination finds it.
    told.spoil(&told.journal);
    told.desk.amplifier(&["doctor"]);
    assert!(!ok(told.desk.amplifier(&["session", "list"])).stdout.contains("damaged"));
}

#[test]
fn a_doctor_tells_how_many_journals_it_read_and_not_which() {
    let desk = Desk::new();
    desk.plan("a.json", &says("the answer"));
    ok(desk.amplifier(&["run", "--plan", "a.json", "an old one"]));
    let old = desk.sessions().remove(0);
    ok(desk.amplifier(&["run", "--plan", "a.json", "the newest one"]));
    let newest = desk.sessions().into_iter().find(|folder| *folder != old).unwrap();
    // More than is ever read; it takes no room on the disk.
    std::fs::File::create(newest.join("large")).unwrap().set_len(64 << 20).unwrap();
    let ran = desk.amplifier(&["doctor"]);
    assert!(ran.stdout.contains("2 sessions; one journal was read whole"), "{}", ran.seen());
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
fn a_session_that_is_known_to_lack_a_large_value_is_not_gone_on_with() {
    let desk = Desk::new();
    desk.plan("a.json", &says("the answer"));
    ok(desk.amplifier(&["run", "--plan", "a.json", &"long ".repeat(20_000)]));
    ok(desk.amplifier(&["continue", "second"]));
    let folder = desk.sessions().remove(0);
    let id = folder.file_name().unwrap().to_str().unwrap();
    let blob = std::fs::read_dir(folder.join("blobs")).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&blob).unwrap();
    std::fs::write(&blob, vec![b'x'; whole.len()]).unwrap();
    assert_eq!(desk.amplifier(&["session", "show", id]).code, 1);
    let journal = read(&folder.join("events.jsonl"));
    for args in
        [&["continue", "third"] as &[&str], &["session", "rename", id, "another"], &["session", "fork", id]]
    {
        let place = format!("sessions/{id}/events.jsonl:");
        refused(&desk.amplifier(args), &[&place, "large value that cannot be read", "--salvage"]);
    }
    assert_eq!(read(&folder.join("events.jsonl")), journal);
    std::fs::write(&blob, whole).unwrap();
    ok(desk.amplifier(&["continue", "third"]));
    assert!(!folder.join("damaged.json").exists());
}

#[test]
fn what_was_taken_back_does_not_come_back_when_that_record_is_lost() {
    let told = told();
    ok(told.desk.amplifier(&["session", "rewind", &told.id, "--to", "1"]));
    let records = read(&told.folder.join("events.jsonl")).lines().count();
    ok(told.desk.amplifier(&["continue", "the fourth question"]));
    let taken_back = |(at, line): (usize, &str)| match at + 1 == records {
        true => format!("{}\n", line.replacen("\"ts\"", "\"tz\"", 1)),
        false => format!("{line}\n"),
    };
    let damaged: String =
        read(&told.folder.join("events.jsonl")).lines().enumerate().map(taken_back).collect();
    told.spoil(&damaged);
    let ran = ok(told.desk.amplifier(&["session", "fork", &told.id, "--salvage"]));
    assert!(ran.stderr.contains("nothing that was said is missing"), "{}", ran.seen());
    let fork = told.desk.home().join("state/sessions").join(ran.stdout.trim());
    assert_eq!(said(&fork), said(&told.folder));
}

/// The conversation that a session goes on with.
fn said(folder: &std::path::Path) -> String {
    read(&folder.join("transcript.jsonl"))
}

#[test]
fn a_fork_without_a_plan_is_told_what_it_needs() {
    let told = told();
    std::fs::write(told.folder.join("mount_plan.json"), "{").unwrap();
    let ran = ok(told.desk.amplifier(&["session", "fork", &told.id]));
    let fork = ran.stdout.trim();
    assert!(ran.stderr.contains("its plan is of no use"), "{}", ran.seen());
    assert!(ran.stderr.contains(&format!("`amplifier resume {fork} --bundle NAME`")), "{}", ran.seen());
    ok(told.desk.amplifier(&["run", "--resume", fork, "--plan", "a.json", "go on"]));
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
    terminal.sees(" out");
    let folder = desk.sessions().remove(0);
    // Only the lease is gone: the same session can be opened again.
    std::fs::remove_file(folder.join("lease")).unwrap();
    terminal.types("second\r");
    terminal.sees("was taken away");
    terminal.sees("ask again");
    terminal.types("third\r");
    terminal.sees("opened anew: ");
    terminal.until("the answer to the third", |screen| screen.matches("the answer").count() == 2);
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
