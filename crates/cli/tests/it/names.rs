//! Names that are not UTF-8: folders that no session can be told of, and files that tools cannot be handed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use crate::desk::{Desk, Ran, says};

fn name(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

/// A folder whose name is no text.
fn folder(desk: &Desk) -> PathBuf {
    let folder = desk.path("").join(name(b"b\xc3\xa4d\xffd"));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[track_caller]
fn refused(desk: &Desk, command: &mut Command, words: &[&str]) {
    let ran = Ran::of(command.output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.seen());
    for word in words.iter().chain(&["is not UTF-8", "\n  hint: rename "]) {
        assert!(ran.stderr.contains(word), "`{word}` is not told: {}", ran.seen());
    }
    assert!(!ran.stderr.contains('\u{fffd}'), "{}", ran.seen());
    assert!(desk.sessions().is_empty(), "{}", ran.seen());
}

#[test]
fn no_session_begins_in_a_folder_whose_name_is_no_text() {
    let desk = Desk::new();
    desk.plan("a.json", &says("one"));
    let (folder, plan) = (folder(&desk), desk.work().join("a.json"));
    let plan = plan.to_str().unwrap();
    let words = ["the working folder `", "bäd\\xffd`", "`--cwd DIR`"];
    for args in [
        &["run", "--plan", plan, "hi"] as &[&str],
        &["run", "--plan", plan, "--output", "jsonl", "hi"],
        &["chat", "--plan", plan],
        &["tool", "invoke", "--plan", plan, "bash", "command=ls"],
    ] {
        if args.contains(&"jsonl") {
            let ran = Ran::of(desk.command(args).current_dir(&folder).output().unwrap());
            assert_eq!((ran.code, &ran.lines()[0]["status"]), (2, &json!("error")), "{}", ran.seen());
            continue;
        }
        refused(&desk, desk.command(args).current_dir(&folder), &words);
        refused(&desk, desk.command(&["--cwd"]).arg(&folder).args(args), &words);
    }
    // Nor does one go on there.
    assert_eq!(desk.amplifier(&["run", "--plan", "a.json", "hi"]).code, 0);
    let id = desk.sessions()[0].file_name().unwrap().to_owned();
    let ran =
        Ran::of(desk.command(&["run", "more", "--resume"]).arg(id).current_dir(&folder).output().unwrap());
    assert_eq!(ran.code, 2, "{}", ran.seen());
}

#[test]
fn no_session_begins_in_a_home_whose_name_is_no_text() {
    let desk = Desk::new();
    desk.plan("a.json", &says("one"));
    let folder = folder(&desk);
    let words = ["the home `", "bäd\\xffd", "`--home DIR`"];
    let run = ["run", "--plan", "a.json", "hi"];
    refused(&desk, desk.command(&run).arg("--home").arg(&folder), &words);
    refused(&desk, desk.command(&run).env("AMPLIFIER_HOME", &folder), &words);
    refused(&desk, desk.command(&run).env_remove("AMPLIFIER_HOME").env("HOME", &folder), &words);
    // Somebody who has another home than their own folder needs no text there.
    let ran = Ran::of(desk.command(&run).env("HOME", &folder).output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "one\n"), "{}", ran.seen());
}

#[test]
fn what_needs_no_session_goes_on_working_there() {
    let desk = Desk::new();
    let folder = folder(&desk);
    for args in [
        &["--version"] as &[&str],
        &["version", "--json"],
        &["session", "list"],
        &["session", "list", "--all", "--output", "json"],
        &["doctor", "--output", "json"],
        &["config", "path"],
        &["config", "path", "--output", "json"],
        &["config", "show", "--origin", "--output", "json"],
        &["backup", "list", "--output", "json"],
        &["cache", "list", "--output", "json"],
        &["bundle", "show", "foundation", "--output", "json"],
        &["tool", "list"],
    ] {
        for ran in [
            desk.command(args).current_dir(&folder).output().unwrap(),
            desk.command(args).env("AMPLIFIER_HOME", &folder).output().unwrap(),
        ] {
            let ran = Ran::of(ran);
            assert_eq!(ran.code, 0, "{args:?}: {}", ran.seen());
            assert!(!ran.seen().contains('\u{fffd}'), "{args:?}: {}", ran.seen());
        }
    }
}

#[test]
fn a_command_to_copy_leads_to_the_folder_that_was_meant() {
    let desk = Desk::new();
    let folder = folder(&desk);
    let ran = Ran::of(desk.command(&["session", "show", "none", "--home"]).arg(&folder).output().unwrap());
    let hint = ran.stderr.split_once("hint: `").and_then(|(_, rest)| rest.split_once('`'));
    let command = hint.unwrap_or_else(|| panic!("{}", ran.seen())).0;
    let script = format!("amplifier() {{ printf '%s\\0' \"$@\"; }}; {command}");
    let said = Command::new("bash").arg("-c").arg(script).output().unwrap();
    let words: Vec<_> = said.stdout.split(|byte| *byte == 0).map(OsStr::from_bytes).collect();
    assert!(words.contains(&folder.as_os_str()), "{command}");
}

/// What a tool gives in a folder that holds files with names that are no text.
fn invoked(args: &[&str]) -> serde_json::Value {
    let desk = Desk::new();
    desk.file("plain.txt", "needle\n");
    std::fs::write(desk.work().join(name(b"b\xffd.txt")), "needle\n").unwrap();
    std::fs::create_dir(desk.work().join(name(b"d\xfe"))).unwrap();
    std::fs::write(desk.work().join(name(b"d\xfe")).join("in.txt"), "needle\n").unwrap();
    let ran = desk.amplifier(&[&["tool", "invoke"], args].concat());
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert!(!ran.stdout.contains('\u{fffd}'), "{}", ran.seen());
    ran.json()
}

#[test]
fn files_that_tools_cannot_be_handed_are_shown_as_such() {
    let listed = invoked(&["list_directory", "path=."]);
    let folder = json!({"name": "d\\xfe", "type": "dir", "not_utf8": true});
    let file = json!({"name": "b\\xffd.txt", "type": "file", "size": 7, "not_utf8": true});
    let plain = json!({"name": "plain.txt", "type": "file", "size": 7});
    assert_eq!(listed["entries"], json!([folder, file, plain]));
    let found = invoked(&["grep", "pattern=needle"]);
    assert_eq!(found["files"], json!(["b\\xffd.txt", "d\\xfe/in.txt", "plain.txt"]));
    let matched = invoked(&["glob", "pattern=**/*.txt"]);
    let paths = matched["matches"].as_array().unwrap().iter().map(|found| found["path"].as_str().unwrap());
    assert_eq!(paths.filter(|path| path.contains("\\xf")).count(), 2, "{matched}");
    let read = invoked(&["read_file", "file_path=."]);
    for told in [&listed["warning"], &found["warning"], &matched["warning"], &read["content"]] {
        assert!(told.as_str().unwrap_or_default().contains("are not UTF-8"), "{told}");
    }
}

#[test]
fn a_plan_whose_name_is_no_text_is_not_missed_later() {
    let desk = Desk::new();
    let path = desk.work().join(name(b"pl\xffan.json"));
    std::fs::write(&path, says("found").to_string()).unwrap();
    let ran = Ran::of(desk.command(&["run", "hi", "--plan"]).arg(&path).output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "found\n"), "{}", ran.seen());
    let ran = desk.amplifier(&["continue", "--quiet", "more"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.seen());
}

#[test]
fn a_session_of_a_home_whose_name_is_no_text_is_shown() {
    let desk = Desk::new();
    desk.plan("a.json", &says("one"));
    let ran = desk.amplifier(&["run", "--plan", "a.json", "--output", "json", "hi"]);
    let id = ran.json()["session_id"].as_str().unwrap_or_else(|| panic!("{}", ran.seen())).to_owned();
    // None begins there; one that did elsewhere can come to stand there.
    let home = desk.path("").join(name(b"h\xff"));
    std::fs::rename(desk.home(), &home).unwrap();
    let amplifier =
        |args: &[&str]| Ran::of(desk.command(args).env("AMPLIFIER_HOME", &home).output().unwrap());
    let shown = amplifier(&["session", "show", &id, "--output", "json"]);
    assert_eq!(shown.code, 0, "{}", shown.seen());
    let folder = shown.json()["folder"].as_str().unwrap().to_owned();
    assert!(folder.contains("h\\xff/") && folder.ends_with(&id), "{folder}");
    for args in [&["session", "list", "--output", "json"][..], &["doctor", "--output", "json"]] {
        let ran = amplifier(args);
        assert!(ran.code < 2 && ran.json().is_object(), "{}", ran.seen());
    }
}
