//! What can be read of a damaged session: shown, marked in lists, made into another session. Nobody takes a part for the whole.

use serde_json::{Value, json};

use crate::desk::{Desk, Ran, read, says};
use crate::session_damage::{Told, ok, refused, told};
use crate::terminal::Terminal;

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
