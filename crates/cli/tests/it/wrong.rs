//! The table of what goes wrong: each row with the right exit code and a message that names the thing, the place and the
//! cure, and nothing lost.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::desk::{Desk, Ran, plan, read, says, wait_until};

fn slow() -> Value {
    plan(json!({"responses": [{"text": "late", "delay_ms": 60_000}]}))
}

/// A row of the table. Every one says what to do; for a wrong command line the parser does, in its own words.
#[track_caller]
fn row(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, code, "{}", ran.seen());
    assert!(ran.stdout.is_empty() && !ran.stderr.contains("panicked"), "{}", ran.seen());
    let cures = ["\n  hint: ", "For more information, try '--help'."];
    assert!(cures.iter().any(|cure| ran.stderr.contains(cure)), "no cure is told: {}", ran.seen());
    for word in words {
        assert!(ran.stderr.contains(word), "`{word}` is not told: {}", ran.seen());
    }
}

/// A session that was asked one thing.
fn begun(desk: &Desk) -> (String, PathBuf) {
    desk.plan("first.json", &says("one"));
    let ran = desk.amplifier(&["run", "--plan", "first.json", "--output", "json", "first words"]);
    let folder = desk.sessions().pop().unwrap_or_else(|| panic!("{}", ran.seen()));
    (folder.file_name().unwrap().to_str().unwrap().to_owned(), folder)
}

fn transcript(folder: &Path) -> Vec<String> {
    let text = |line: &str| -> Value { serde_json::from_str(line).unwrap() };
    let said = |message: Value| match &message["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    read(&folder.join("transcript.jsonl")).lines().map(|line| said(text(line))).collect()
}

/// A turn that is in the middle of a model call.
fn in_the_middle(desk: &Desk, args: &[&str]) -> Child {
    desk.plan("slow.json", &slow());
    let child = desk.spawn(&[&["run", "--plan", "slow.json"], args, &["wait for it"]].concat());
    wait_until(|| {
        desk.sessions().pop().is_some_and(|folder| {
            std::fs::read_to_string(folder.join("events.jsonl"))
                .is_ok_and(|text| text.contains("call_started"))
        })
    });
    child
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn what_was_asked_for_is_not_there() {
    let desk = Desk::new();
    row(&desk.amplifier(&["run", "--bundle", "nowhere", "hi"]), 2, &["nowhere", "hint:"]);
    row(&desk.amplifier(&["run", "--plan", "none.json", "hi"]), 2, &["none.json", "hint:"]);
    row(&desk.amplifier(&["run", "--profile", "no/such", "hi"]), 2, &["no/such", "hint:"]);
    row(&desk.amplifier(&["run", "--resume", "none-such", "hi"]), 2, &["none-such", "hint:"]);
    row(&desk.amplifier(&["run", "-p", "no such", "hi"]), 2, &["no such", "hint:"]);
    row(&desk.amplifier(&["run", "--bogus", "hi"]), 2, &["--bogus"]);
    row(&desk.amplifier(&["run", "what", "is", "this"]), 2, &["'is'", "hint: several words are one prompt"]);
    row(&desk.amplifier(&["run", "--max-tokens", "many", "hi"]), 2, &["--max-tokens", "many"]);
    row(&desk.amplifier(&["run", "--max-cost", "cheap", "hi"]), 2, &["--max-cost", "cheap"]);
    row(&desk.amplifier(&["run", "--approve", "some", "hi"]), 2, &["some", "all, safe, none"]);
    row(&desk.amplifier(&["run", ""]), 2, &["the prompt is empty", "hint:"]);
    row(&desk.amplifier(&["run"]), 2, &["standard input is empty", "hint:"]);
    let near = "hint: did you mean `foundation`? `amplifier bundle list`";
    for command in [
        &["run", "--bundle", "fundation", "hi"][..],
        &["bundle", "use", "fundation"],
        &["bundle", "show", "fundation"],
    ] {
        row(&desk.amplifier(command), 2, &["`fundation`", near]);
    }
    row(&desk.amplifier(&["run", "-p", "olama", "hi"]), 2, &["`olama`", "did you mean `ollama`?"]);
    assert!(desk.sessions().is_empty());
}

#[test]
fn a_provider_without_its_key_is_told_before_anything_begins() {
    let desk = Desk::new();
    let ran = desk.amplifier(&["run", "-p", "anthropic", "hi"]);
    row(&ran, 2, &["`anthropic`", "ANTHROPIC_API_KEY", "`amplifier init`"]);
    assert!(ran.stderr.lines().count() <= 3, "short: {}", ran.seen());
    assert!(desk.sessions().is_empty());
}

#[test]
fn files_that_are_not_what_they_should_be() {
    let desk = Desk::new();
    desk.file("bundle.yaml", "bundle: {name: b\ntools: [\n")
        .file("bytes.yaml", [b'b', b'u', 0xff, 0xfe])
        .file("broken.json", "{\"session\": }")
        .file("bytes.json", [b'{', 0xff])
        .plan("shape.json", &json!({"session": {"orchestrator": 7, "context": "context-simple"}}));
    row(
        &desk.amplifier(&["run", "--bundle", "./bundle.yaml", "hi"]),
        2,
        &["bundle.yaml:", "bundle validate"],
    );
    row(&desk.amplifier(&["run", "--bundle", "./bytes.yaml", "hi"]), 2, &["bytes.yaml", "UTF-8"]);
    row(&desk.amplifier(&["run", "--plan", "broken.json", "hi"]), 2, &["broken.json:1:13", "not JSON"]);
    row(&desk.amplifier(&["run", "--plan", "bytes.json", "hi"]), 2, &["bytes.json", "UTF-8"]);
    row(
        &desk.amplifier(&["run", "--plan", "shape.json", "hi"]),
        2,
        &["shape.json:1:", "orchestrator", "hint:"],
    );
    row(&desk.amplifier(&["run", "--plan", ".", "hi"]), 2, &["`.`", "--bundle"]);
    assert!(desk.sessions().is_empty());
    assert_snapshot!("broken_json", desk.amplifier(&["run", "--plan", "broken.json", "hi"]).seen());
}

/// A command that runs as somebody who may not write here.
pub fn as_nobody(desk: &Desk, args: &[&str]) -> Command {
    let mut command = desk.command(args);
    // Who is allowed everything has to become somebody else.
    if std::fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0) {
        command.uid(65_534).gid(65_534);
        std::fs::set_permissions(desk.path(""), PermissionsExt::from_mode(0o755)).unwrap();
    }
    command
}

#[test]
fn a_home_and_a_plan_without_permission() {
    let desk = Desk::new();
    desk.plan("a.json", &says("x")).plan("closed.json", &says("x"));
    std::fs::create_dir(desk.home()).unwrap();
    std::fs::set_permissions(desk.home(), PermissionsExt::from_mode(0o555)).unwrap();
    let ran = Ran::of(as_nobody(&desk, &["run", "--plan", "a.json", "hi"]).output().unwrap());
    row(&ran, 1, &["home", "ermission denied", "hint:", "--home"]);
    std::fs::set_permissions(desk.work().join("closed.json"), PermissionsExt::from_mode(0o000)).unwrap();
    let ran = Ran::of(as_nobody(&desk, &["run", "--plan", "closed.json", "hi"]).output().unwrap());
    row(&ran, 2, &["closed.json", "ermission denied"]);
    desk.file("closed.md", "---\nbundle: {name: closed}\n---\n");
    std::fs::set_permissions(desk.work().join("closed.md"), PermissionsExt::from_mode(0o000)).unwrap();
    let ran = Ran::of(as_nobody(&desk, &["run", "--bundle", "./closed.md", "hi"]).output().unwrap());
    row(&ran, 2, &["closed.md", "ermission denied"]);
    std::fs::set_permissions(desk.home(), PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn folders_that_are_none_or_may_not_be_entered_are_named_and_not_what_would_be_in_them() {
    let desk = Desk::new();
    desk.plan("a.json", &says("x")).file("b/x", "");
    for args in [&["run", "hi"][..], &["bundle", "list"]] {
        let ran = desk.amplifier(&[&["--home", "a.json"], args].concat());
        row(&ran, 2, &["cannot enter `a.json`", "it is no folder", "hint: name a folder"]);
    }
    for (closed, args) in [
        ("h", &["--home", "h", "run", "--plan", "a.json", "hi"][..]),
        ("h", &["--home", "h", "config", "show"]),
        ("b", &["--home", "none", "run", "--bundle", "./b", "hi"]),
    ] {
        let folder = desk.work().join(closed);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o000)).unwrap();
        let ran = Ran::of(as_nobody(&desk, args).output().unwrap());
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
        row(&ran, 2, &["cannot enter `", &format!("{closed}`"), "ermission denied", "chmod u+rwx"]);
    }
}

#[test]
fn a_home_that_is_a_link_to_nothing() {
    let desk = Desk::new();
    desk.plan("a.json", &says("x"));
    std::os::unix::fs::symlink("nowhere", desk.home()).unwrap();
    let ran = desk.amplifier(&["run", "--plan", "a.json", "hi"]);
    row(&ran, 1, &["home", "is a link that leads nowhere", "hint:", "--home"]);
}

#[test]
fn a_session_in_a_home_that_may_only_be_read() {
    let desk = Desk::new();
    let (id, folder) = begun(&desk);
    // Everybody may look, nobody may write.
    let closed: &[&Path] = &[&folder, folder.parent().unwrap(), &desk.home().join("state"), &desk.home()];
    let set = |mode: u32, files: u32| {
        for dir in closed {
            for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_file() {
                    std::fs::set_permissions(entry, PermissionsExt::from_mode(files)).unwrap();
                }
            }
            std::fs::set_permissions(dir, PermissionsExt::from_mode(mode)).unwrap();
        }
    };
    set(0o555, 0o444);
    let commands: &[&[&str]] = &[
        &["run", "--resume", &id, "again"],
        &["session", "fork", &id],
        &["session", "rewind", &id, "--to", "0"],
        &["session", "rename", &id, "another"],
        &["session", "delete", &id, "--yes"],
    ];
    let ran: Vec<_> = commands.iter().map(|args| Ran::of(as_nobody(&desk, args).output().unwrap())).collect();
    let added = Ran::of(as_nobody(&desk, &["bundle", "add", "minimal"]).output().unwrap());
    set(0o755, 0o644);
    for ran in &ran {
        row(ran, 1, &["home/state/sessions", "ermission denied", "writable"]);
    }
    row(&added, 1, &["home", "ermission denied", "--home"]);
    assert_eq!(transcript(&folder), ["first words", "one"]);
}

#[test]
fn settings_of_a_project_that_may_not_be_read_and_a_place_that_is_not_there() {
    let desk = Desk::new();
    let (id, _) = begun(&desk);
    let ran = desk.amplifier(&["session", "export", &id, "--to", "/none/x.md"]);
    row(&ran, 1, &["there is no folder `/none`", "hint: make it first"]);
    assert!(!ran.stderr.contains(".tmp"), "{}", ran.seen());
    let desk = Desk::new();
    desk.plan("first.json", &says("one")).file(".amplifier/settings.yaml", "ui: {color: never}\n");
    let settings = desk.work().join(".amplifier/settings.yaml");
    std::fs::set_permissions(&settings, PermissionsExt::from_mode(0o000)).unwrap();
    let ran = Ran::of(as_nobody(&desk, &["run", "--plan", "first.json", "hi"]).output().unwrap());
    row(&ran, 2, &[".amplifier/settings.yaml", "ermission denied", "readable"]);
    assert!(!ran.stderr.contains("--home"), "another home does not help: {}", ran.seen());
}

#[test]
fn a_file_of_configuration_that_cannot_be_read_is_wrong_configuration() {
    let rows: &[(&str, &[&str])] = &[
        ("home/settings.yaml", &["run", "hi"]),
        ("work/.amplifier/settings.yaml", &["config", "show"]),
        ("work/.amplifier/settings.local.yaml", &["bundle", "list"]),
        ("home/registry.json", &["bundle", "list"]),
        ("home/registry.json", &["run", "--bundle", "minimal", "hi"]),
        ("home/share/collections.yaml", &["collection", "list"]),
        ("home/share/collections.yaml", &["profile", "list"]),
    ];
    for (file, command) in rows {
        let desk = Desk::new();
        let path = desk.path(file);
        std::fs::create_dir_all(&path).unwrap();
        row(&desk.amplifier(command), 2, &[file]);
        std::fs::remove_dir(&path).unwrap();
        std::fs::write(&path, [b'a', 0xff]).unwrap();
        row(&desk.amplifier(command), 2, &[file]);
        std::fs::write(&path, "{[").unwrap();
        row(&desk.amplifier(command), 2, &[file]);
        for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(desk.path(""))) {
            std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
        }
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
        let ran = Ran::of(as_nobody(&desk, command).output().unwrap());
        row(&ran, 2, &[file, "ermission denied"]);
    }
}

#[test]
fn cures_that_are_told_fit_what_is_wrong() {
    let desk = Desk::new();
    let (_, folder) = begun(&desk);
    // What was put among the sessions is nobody's to delete but whoever put it there.
    let stray = folder.with_file_name("stray file");
    std::fs::write(&stray, "x").unwrap();
    let ran = desk.amplifier(&["session", "show", "stray file"]);
    assert!(!ran.stderr.contains("session delete"), "{}", ran.seen());
    std::fs::rename(&stray, folder.with_file_name("stray")).unwrap();
    let ran = desk.amplifier(&["session", "list", "--all"]);
    let cure = format!("`rm {}` removes it", folder.with_file_name("stray").display());
    assert!(ran.stderr.contains(&cure), "{cure}: {}", ran.seen());
    // A word alone is nothing that can be fetched.
    let ran = desk.amplifier(&["collection", "add", "a", "nope"]);
    assert!(ran.stderr.contains("hint: write a folder as `./NAME`"), "{}", ran.seen());
    // A folder that is not there is made or another is named.
    let ran = desk.amplifier(&["--cwd", "no such", "config", "show"]);
    row(&ran, 2, &["`no such`", "hint: `mkdir -p 'no such'` makes it"]);
    // Settings of a project are in no home.
    std::fs::set_permissions(desk.work(), PermissionsExt::from_mode(0o555)).unwrap();
    let ran =
        Ran::of(as_nobody(&desk, &["config", "set", "ui.color", "never", "--project"]).output().unwrap());
    row(&ran, 1, &["work/.amplifier", "ermission denied", "the project's folder", "without `--project`"]);
    assert!(!ran.stderr.contains("--home"), "{}", ran.seen());
    std::fs::set_permissions(desk.work(), PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn a_session_whose_folder_is_gone_is_not_sent_back_there() {
    let desk = Desk::new();
    desk.plan("a.json", &says("one"));
    let plan = desk.work().join("a.json").display().to_string();
    std::fs::create_dir(desk.path("gone")).unwrap();
    let gone = desk.path("gone").display().to_string();
    let ran = desk.amplifier(&["--cwd", &gone, "run", "--plan", &plan, "hi"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let id = desk.sessions().pop().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let there = desk.amplifier(&["run", "--resume", &id, "again"]);
    assert!(there.stderr.contains(&format!("hint: `--cwd {gone}` works there again")), "{}", there.seen());
    std::fs::remove_dir_all(&gone).unwrap();
    let ran = desk.amplifier(&["run", "--resume", &id, "again"]);
    assert!(ran.code == 0 && ran.stderr.contains("which is no folder any more"), "{}", ran.seen());
    assert!(!ran.stderr.contains("--cwd"), "{}", ran.seen());
}

/// Runs a script with a file system of its own at the home, in a name space of its own.
pub fn with_home_on(desk: &Desk, options: &str, script: &str, args: &[&str]) -> Ran {
    std::fs::create_dir_all(desk.home()).unwrap();
    let inner = desk.command(args);
    let mount = format!("mount -t tmpfs -o {options} tmpfs \"$AMPLIFIER_HOME\" && {script}");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", &mount, "sh"]);
    command.arg(inner.get_program()).args(inner.get_args());
    command.current_dir(desk.work()).env("AMPLIFIER_HOME", desk.home()).stdin(Stdio::null());
    let ran = Ran::of(command.output().expect("unshare is needed for this test; it is in util-linux"));
    let refused = "this test needs a system that lets people mount in a name space of their own";
    assert!(
        !ran.stderr.contains("unshare failed") && !ran.stderr.contains("mount:"),
        "{refused}: {}",
        ran.stderr
    );
    ran
}

#[test]
fn a_home_that_is_read_only() {
    let desk = Desk::new();
    desk.plan("a.json", &says("x"));
    let ran = with_home_on(&desk, "ro", "exec \"$@\"", &["run", "--plan", "a.json", "hi"]);
    row(&ran, 1, &["home/state", "Read-only file system", "hint:", "--home"]);
}

#[test]
fn a_disk_that_is_full_loses_nothing_that_was_said() {
    let desk = Desk::new();
    let noise: String = (0..1_900).map(|at| format!("{at} {}\n", "noise ".repeat(20))).collect();
    let call = json!({"tool_calls": [{"name": "read_file", "arguments": {"file_path": "noise.txt"}}]});
    desk.plan("a.json", &says("fits")).plan("b.json", &plan(json!({"responses": [call, "never"]})));
    desk.file("noise.txt", noise);
    // One turn fits, the next does not; what is there is kept for the time after.
    let script = "\"$@\" >first.out && id=$(ls \"$AMPLIFIER_HOME/state/sessions\") \
         && shift 4 && { \"$AMP\" run --plan b.json --resume $id second; code=$?; cp -r \"$AMPLIFIER_HOME\" kept; exit $code; }";
    let script = script.replace("\"$AMP\"", &format!("\"{}\"", env!("CARGO_BIN_EXE_amplifier")));
    let ran = with_home_on(&desk, "size=128k", &script, &["run", "--plan", "a.json", "first"]);
    row(&ran, 1, &["No space left on device", "home/state/sessions/", "hint:"]);
    let kept = desk.work().join("kept");
    let folder = std::fs::read_dir(kept.join("state/sessions")).unwrap().next().unwrap().unwrap().path();
    let id = folder.file_name().unwrap().to_str().unwrap().to_owned();
    let home = kept.display().to_string();
    let again = desk.amplifier(&["run", "--home", &home, "--plan", "a.json", "--resume", &id, "third"]);
    assert_eq!((again.code, again.stdout.as_str()), (0, "fits\n"), "{}", again.seen());
    let said = transcript(&folder);
    assert_eq!((said[0].as_str(), said[1].as_str()), ("first", "fits"), "{said:?}");
    assert!(said.contains(&"third".to_owned()), "{said:?}");
}

#[test]
fn an_answer_that_nobody_can_take() {
    let desk = Desk::new();
    desk.plan("a.json", &says("x"));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = desk.command(&["run", "--plan", "a.json", "hi"]).stdout(full).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("standard output") && stderr.contains("No space left"), "{stderr}");
    // A chat that is piped tells it too, and asks the model nothing more.
    desk.file("asked.txt", "first\nsecond\nthird\n");
    let asked = std::fs::File::open(desk.work().join("asked.txt")).unwrap();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut chat = desk.command(&["chat", "--plan", "a.json"]);
    let output = chat.stdin(asked).stdout(full).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("standard output") && stderr.contains("No space left"), "{stderr}");
    let said = transcript(desk.sessions().last().unwrap());
    assert!(!said.contains(&"third".to_owned()), "{said:?}");
}

#[test]
fn session_files_that_were_damaged() {
    let desk = Desk::new();
    let (id, folder) = begun(&desk);
    let resume = |desk: &Desk| desk.amplifier(&["run", "--resume", &id, "again"]);
    // Views are made again from the journal.
    std::fs::write(folder.join("metadata.json"), "{").unwrap();
    std::fs::write(folder.join("transcript.jsonl"), "no").unwrap();
    std::fs::remove_file(folder.join("lease")).ok();
    let ran = resume(&desk);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "one\n"), "{}", ran.seen());
    assert_eq!(transcript(&folder), ["first words", "one", "again", "one"]);
    // A torn end is mended and told.
    let events = folder.join("events.jsonl");
    let whole = std::fs::read(&events).unwrap();
    std::fs::write(&events, &whole[..whole.len() - 7]).unwrap();
    let ran = resume(&desk);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert!(ran.stderr.contains("torn") && ran.stderr.contains("are kept in"), "{}", ran.stderr);
    // A damaged middle is never passed over.
    let whole = String::from_utf8(std::fs::read(&events).unwrap()).unwrap();
    std::fs::write(&events, whole.replacen("first words", "other words", 1)).unwrap();
    std::fs::remove_file(folder.join("events.idx")).ok();
    let ran = resume(&desk);
    row(&ran, 1, &["events.jsonl:", "damaged", "checksum", "hint:"]);
    assert_eq!(read(&events), whole.replacen("first words", "other words", 1), "it is left as it was found");
    std::fs::write(&events, &whole).unwrap();
    // A plan that is none can be replaced.
    std::fs::write(folder.join("mount_plan.json"), "{").unwrap();
    row(&resume(&desk), 1, &["mount_plan.json", "hint:", "--plan"]);
    let ran = desk.amplifier(&["run", "--resume", &id, "--plan", "first.json", "again"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
}

#[test]
fn two_processes_on_one_session() {
    let desk = Desk::new();
    let (id, folder) = begun(&desk);
    desk.plan("slow.json", &slow());
    let mut holder = desk.spawn(&["run", "--resume", &id, "--plan", "slow.json", "two"]);
    let pid = holder.id().to_string();
    wait_until(|| std::fs::read_to_string(folder.join("lease")).is_ok_and(|text| text.contains(&pid)));
    let ran = desk.amplifier(&["run", "--resume", &id, "three"]);
    holder.kill().unwrap();
    holder.wait().unwrap();
    row(&ran, 1, &["in use by", &pid, "lease", "hint:"]);
    let ran = desk.amplifier(&["run", "--resume", &id, "--plan", "first.json", "four"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
}

/// CRC-32 as the journal uses it.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(crc & 1)))
    })
}

/// A line of a journal, written a thousand years from now.
pub fn later(line: &str) -> String {
    let (body, _) = line.rsplit_once(",\"crc\":").unwrap();
    let year = body.split("\"ts\":\"").nth(1).unwrap().chars().take(4).collect::<String>();
    let body = body.replacen(&format!("\"ts\":\"{year}"), "\"ts\":\"3026", 1);
    format!("{body},\"crc\":\"{:08x}\"}}\n", crc(body.as_bytes()))
}

#[test]
fn a_clock_that_went_back() {
    let desk = Desk::new();
    let (id, folder) = begun(&desk);
    let events = folder.join("events.jsonl");
    // As if everything had been written a thousand years from now, before somebody set the clock right.
    let moved: String = read(&events).lines().map(later).collect();
    std::fs::write(&events, moved).unwrap();
    std::fs::remove_file(folder.join("events.idx")).ok();
    let ran = desk.amplifier(&["run", "--resume", &id, "--output", "jsonl", "again"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let result = ran.lines().pop().unwrap();
    assert_eq!(result["answer"], json!("one"), "{result}");
    assert_eq!(transcript(&folder), ["first words", "one", "again", "one"]);
}

#[test]
fn arguments_and_files_that_are_not_text() {
    let desk = Desk::new();
    let bytes = |text: &[u8]| std::ffi::OsString::from_vec(text.to_vec());
    let mut command = desk.command(&["run"]);
    let ran = Ran::of(command.arg(bytes(b"h\xffi")).output().unwrap());
    row(&ran, 2, &["`h\\xffi` is not UTF-8", "hint:"]);
    // The same word where a command belongs.
    let ran = Ran::of(desk.command(&[]).arg(bytes(b"h\xffi")).output().unwrap());
    row(&ran, 2, &["`h\\xffi` is not UTF-8", "iconv"]);
    // A path need not be text.
    let path = desk.work().join(bytes(b"pl\xffan.json"));
    std::fs::write(&path, says("found").to_string()).unwrap();
    let ran = Ran::of(desk.command(&["run", "hi", "--plan"]).arg(&path).output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "found\n"), "{}", ran.seen());
    let calls =
        json!([{"tool_calls": [{"name": "read_file", "arguments": {"file_path": "bytes.txt"}}]}, "seen"]);
    desk.file("bytes.txt", [b'a', 0xff, 0, 0xfe]).plan("reads.json", &plan(json!({"responses": calls})));
    let ran = desk.amplifier(&["run", "--plan", "reads.json", "read"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "seen\n"), "{}", ran.seen());
    // A limit that cannot be read is no limit that nobody set.
    for name in ["AMPLIFIER_MAX_COST_USD", "ANTHROPIC_API_KEY"] {
        let mut command = desk.command(&["run", "--plan", "reads.json", "read"]);
        let ran = Ran::of(command.env(name, bytes(b"0.01\xff")).output().unwrap());
        row(&ran, 2, &[&format!("the variable `{name}`"), "no text", &format!("unset {name}")]);
    }
}

#[test]
fn a_terminal_that_is_closed_and_a_process_that_is_ended() {
    for (name, code) in [("-HUP", 129), ("-TERM", 143)] {
        let desk = Desk::new();
        let child = in_the_middle(&desk, &["--output", "json"]);
        signal(&child, name);
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.code, code, "{name}: {}", ran.seen());
        let told = ran.json();
        assert_eq!((&told["status"], &told["exit_code"]), (&json!("cancelled"), &json!(code)), "{told}");
        let folder = desk.sessions().pop().unwrap();
        assert_eq!(transcript(&folder)[0], "wait for it", "{name}");
        assert!(read(&folder.join("events.jsonl")).contains("session:end"), "{name}: it ended in order");
    }
}

#[test]
fn an_interrupt_while_nothing_is_asked_yet() {
    let desk = Desk::new();
    desk.plan("a.json", &says("x"));
    let mut command = desk.command(&["run", "--plan", "a.json"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let pipe = child.stdin.take();
    let mut stderr = child.stderr.take().unwrap();
    let mut said = [0; 5];
    // It says what it waits for, so it is waiting.
    stderr.read_exact(&mut said).unwrap();
    signal(&child, "-INT");
    let code = child.wait().unwrap().code();
    drop(pipe);
    assert_eq!((code, &said), (Some(130), b"note:"));
    assert!(desk.sessions().is_empty());
}

#[test]
fn three_interrupts_leave_at_once_and_keep_the_journal() {
    let desk = Desk::new();
    let call = json!({"tool_calls": [{"name": "bash", "arguments": {"command": "trap '' INT TERM; : > began; sleep 60"}}]});
    let mut runs = plan(json!({"responses": [call, "never"]}));
    runs["tools"] = json!([{"module": "tool-bash"}]);
    desk.plan("tool.json", &runs);
    let mut child = desk.spawn(&["run", "--plan", "tool.json", "--approve", "all", "wait for it"]);
    // Written down is not yet running, and where nothing runs one interrupt is enough.
    wait_until(|| desk.work().join("began").exists());
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    signal(&child, "-INT");
    let mut told = String::new();
    // It waits for the tool; this is how it says that it has heard.
    stderr.read_line(&mut told).unwrap();
    assert!(told.contains("interrupt again"), "{told}");
    signal(&child, "-INT");
    // The second may have been enough.
    Command::new("kill").args(["-INT", &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
    let mut ended = None;
    wait_until(|| {
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    assert_eq!(ended.unwrap().code(), Some(130));
    let id = desk.sessions().pop().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    desk.plan("next.json", &says("on"));
    let again = desk.amplifier(&["run", "--resume", &id, "--plan", "next.json", "and now?"]);
    assert_eq!((again.code, again.stdout.as_str()), (0, "on\n"), "{}", again.seen());
}

#[test]
fn a_reader_that_goes_away_ends_the_run_quietly() {
    let desk = Desk::new();
    desk.plan("slow.json", &slow());
    let mut child = desk.spawn(&["run", "--plan", "slow.json", "--output", "jsonl", "hi"]);
    let mut first = [0; 1];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let began = Instant::now();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), stderr.as_ref()), (Some(141), ""));
    assert!(began.elapsed() < Duration::from_secs(50), "nobody pays for what nobody reads");
    // Either it had begun, and what was asked is kept, or nothing is left of it.
    for folder in desk.sessions() {
        assert_eq!(transcript(&folder).first().map(String::as_str), Some("hi"), "{}", folder.display());
    }
}
