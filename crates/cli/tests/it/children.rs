//! The programs that `amplifier` starts: what they can read of it, and that they end with it, also when it is killed.

use std::process::Command;
use std::time::{Duration, Instant};

use amplifier_testing::write_program;
use serde_json::{Value, json};

use crate::chat_keys::gone;
use crate::desk::{Desk, Ran, plan, read, wait_until};

const KEY: (&str, &str) = ("ANTHROPIC_API_KEY", "key-of-the-user-7f3a");
const TOKEN: (&str, &str) = ("GITHUB_TOKEN", "token-of-the-user-91cc");

/// A plan whose model runs this command.
fn runs(command: &str, config: Value) -> Value {
    let call = json!({"name": "bash", "arguments": {"command": command, "timeout": 600}});
    let mut plan = plan(json!({"responses": [{"tool_calls": [call]}, "done"]}));
    plan["tools"] = json!([{"module": "tool-bash", "config": config}]);
    plan
}

fn unasked() -> Value {
    json!({"require_approval": "never"})
}

/// `amplifier` as its user starts it, with keys.
fn command(desk: &Desk, args: &[&str]) -> Command {
    let mut command = desk.command(args);
    command.envs([
        KEY,
        TOKEN,
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("EXAMPLE", "of an innocent variable"),
    ]);
    command
}

fn signal(signal: &str, child: &std::process::Child) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

/// The exit code of a process that is about to end.
fn ended(mut child: std::process::Child) -> Option<i32> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if begun.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it did not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The process ids that programs have written to files, when all of them have.
fn ids(desk: &Desk, names: &[&str]) -> Vec<u32> {
    let id =
        |name: &&str| std::fs::read_to_string(desk.work().join(name)).ok()?.strip_suffix('\n')?.parse().ok();
    let mut found = None;
    wait_until(|| {
        found = names.iter().map(id).collect::<Option<Vec<u32>>>();
        found.is_some()
    });
    found.unwrap()
}

/// Copies the environment of the parent to a file; the file is there in any case.
fn spies(file: &str) -> String {
    format!(": > {file}; cat /proc/$PPID/environ >> {file} 2>/dev/null; env >> {file}")
}

fn assert_no_key(desk: &Desk, file: &str) {
    let seen = read(&desk.work().join(file));
    assert!(!seen.contains(KEY.1) && !seen.contains(TOKEN.1), "{file}: {seen}");
}

#[cfg(target_os = "linux")]
#[test]
fn no_child_reads_the_keys_of_the_user() {
    let desk = Desk::new();
    let mut spied = runs(&spies("of-bash"), unasked());
    let hook = json!({"event": "session:start", "command": spies("of-hook")});
    spied["hooks"] = json!([{"module": "hooks-shell", "config": {"hooks": [hook]}}]);
    let server = json!({"command": "sh", "args": ["-c", spies("of-server")]});
    let tools = spied["tools"].as_array_mut().unwrap();
    tools.push(json!({"module": "tool-mcp", "config": {"servers": {"s": server}}}));
    desk.plan("a.json", &spied);
    let ran = Ran::of(command(&desk, &["run", "--plan", "a.json", "hi"]).output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "done\n"), "{}", ran.seen());
    for file in ["of-bash", "of-hook", "of-server"] {
        assert_no_key(&desk, file);
    }
    // Root reads it all the same; then what is no secret is there.
    let seen = read(&desk.work().join("of-bash"));
    assert_eq!(seen.contains(&format!("{}=", KEY.0)), seen.contains("of an innocent variable"), "{seen}");
}

/// What is left when the values are overwritten: files, memory and the rest of the environment.
#[cfg(target_os = "linux")]
#[test]
fn a_command_of_an_ordinary_user_reads_nothing_of_the_process() {
    use std::os::unix::fs::{MetadataExt, chown};
    use std::os::unix::process::CommandExt;

    let desk = Desk::new();
    let spies =
        "cat /proc/$PPID/maps > maps 2>/dev/null; cat /proc/$PPID/environ > environ 2>/dev/null; : > end";
    desk.plan("a.json", &runs(spies, unasked()));
    let mut command = command(&desk, &["run", "--plan", "a.json", "hi"]);
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        [desk.path(""), desk.work()].iter().for_each(|dir| chown(dir, Some(65_534), Some(65_534)).unwrap());
        command.uid(65_534).gid(65_534);
    }
    // Where root may not be another user, or that one not see the program, only the test above can be made.
    let Ok(output) = command.output() else { return };
    let ran = Ran::of(output);
    assert!(ran.code == 0 && desk.work().join("end").exists(), "{}", ran.seen());
    assert_eq!([read(&desk.work().join("maps")), read(&desk.work().join("environ"))], ["", ""]);
}

#[test]
fn a_child_gets_a_variable_that_is_named_for_it() {
    let desk = Desk::new();
    let config = json!({"require_approval": "never", "pass_env": [TOKEN.0]});
    desk.plan("a.json", &runs("echo \"$GITHUB_TOKEN\" > seen", config));
    let ran = Ran::of(command(&desk, &["run", "--trust", "--plan", "a.json", "hi"]).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert_eq!(read(&desk.work().join("seen")).trim(), TOKEN.1);
}

#[test]
fn an_editor_gets_everything_but_keys() {
    let desk = Desk::new();
    write_program(&desk.work().join("editor"), &format!("#!/bin/sh\n{}\n", spies("of-editor")));
    let mut edit = command(&desk, &["config", "edit"]);
    let ran = Ran::of(edit.env("EDITOR", desk.work().join("editor")).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert_no_key(&desk, "of-editor");
    let seen = read(&desk.work().join("of-editor"));
    assert!(seen.contains("EXAMPLE=of an innocent variable"), "{seen}");
}

/// Regression of issue 25: a killed process left its commands and servers running.
#[test]
fn commands_and_servers_end_when_their_process_is_killed() {
    let desk = Desk::new();
    // A job in the background, a pipeline, and what has left the process group where the system shows marks.
    let escapes = cfg!(target_os = "linux") && Command::new("setsid").arg("true").status().is_ok();
    let escape = if escapes { "setsid sh -c 'echo $$ > escaped; exec sleep 600' &" } else { "" };
    let family = format!(
        "echo $$ > shell; sleep 600 & echo $! > job; {escape} sh -c 'echo $$ > piped; exec sleep 600' | cat"
    );
    let mut runs = runs(&family, unasked());
    let server = json!({"command": "sh", "args": ["-c", "trap '' TERM HUP; echo $$ > server; sleep 600 & echo $! > helper; wait"]});
    let tools = runs["tools"].as_array_mut().unwrap();
    tools.push(json!({"module": "tool-mcp", "config": {"servers": {"s": server}, "wait": 0.01}}));
    desk.plan("a.json", &runs);
    let mut child = command(&desk, &["run", "--plan", "a.json", "hi"]).spawn().unwrap();
    let mut names = vec!["shell", "job", "piped", "server", "helper"];
    names.extend(escapes.then_some("escaped"));
    let ids = ids(&desk, &names);
    child.kill().unwrap();
    child.wait().unwrap();
    ids.into_iter().for_each(gone);
}

#[test]
fn a_hook_ends_when_its_process_is_killed() {
    let desk = Desk::new();
    let mut plan = plan(json!({"responses": ["done"]}));
    let hook = json!({"event": "session:start", "command": "echo $$ > hook; sleep 600 & echo $! > job; wait", "timeout": 600});
    plan["hooks"] = json!([{"module": "hooks-shell", "config": {"hooks": [hook]}}]);
    desk.plan("a.json", &plan);
    let mut child = command(&desk, &["run", "--plan", "a.json", "hi"]).spawn().unwrap();
    let ids = ids(&desk, &["hook", "job"]);
    child.kill().unwrap();
    child.wait().unwrap();
    ids.into_iter().for_each(gone);
}

/// The helper that ends children ends itself with its parent, and is started again when it was killed.
#[cfg(target_os = "linux")]
#[test]
fn commands_end_although_the_helper_was_killed_once() {
    let desk = Desk::new();
    let call = |command: &str, behind: bool| {
        let arguments = json!({"command": command, "timeout": 600, "run_in_background": behind});
        json!({"tool_calls": [{"name": "bash", "arguments": arguments}]})
    };
    let mut plan = plan(json!({"responses": [
        call("sleep 600 & echo $! > first; until [ -e killed ]; do sleep 0.02; done", false),
        call("echo $$ > second; sleep 600", true),
        // When this one runs the helper knows of the one before.
        call(": > ready; sleep 600", false),
        "done",
    ]}));
    plan["tools"] = json!([{"module": "tool-bash", "config": unasked()}]);
    desk.plan("a.json", &plan);
    let mut child = command(&desk, &["run", "--plan", "a.json", "hi"]).spawn().unwrap();
    let first = ids(&desk, &["first"]);
    let helper = helper_of(child.id()).expect("it has a helper");
    assert!(Command::new("kill").args(["-KILL", &helper.to_string()]).status().unwrap().success());
    desk.file("killed", "");
    let second = ids(&desk, &["second"]);
    wait_until(|| desk.work().join("ready").exists());
    let anew = helper_of(child.id()).expect("it has another helper");
    child.kill().unwrap();
    child.wait().unwrap();
    first.into_iter().chain(second).chain([helper, anew]).for_each(gone);
}

/// The child of a process that is the same program.
#[cfg(target_os = "linux")]
fn helper_of(parent: u32) -> Option<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut ids = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|id| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let is_child = stat
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.split_ascii_whitespace().nth(1) == Some(parent.to_string().as_str()));
        is_child && line.starts_with(b"amplifier\0--end-children\0")
    })
}

#[test]
fn one_interrupt_ends_a_command_in_order_and_keeps_what_it_printed() {
    let desk = Desk::new();
    let text = "trap 'echo cleaned up; exit 7' INT; sleep 600 & echo $! > job; echo begun; : > began; wait";
    desk.plan("a.json", &runs(text, unasked()));
    let child = command(&desk, &["run", "--plan", "a.json", "hi"]).spawn().unwrap();
    wait_until(|| desk.work().join("began").exists());
    let job = ids(&desk, &["job"]);
    signal("-INT", &child);
    assert_eq!(ended(child), Some(130));
    job.into_iter().for_each(gone);
    let transcript = read(&desk.sessions()[0].join("transcript.jsonl"));
    assert!(transcript.contains("begun\\\\ncleaned up"), "{transcript}");
}

#[test]
fn one_interrupt_ends_a_command_that_ignores_it_also_in_an_agent() {
    let desk = Desk::new();
    let stubborn = "trap '' INT TERM; echo $$ > stubborn; while :; do sleep 600; done";
    let scout = runs(stubborn, unasked());
    let task = json!({"name": "task", "arguments": {"agent": "scout", "instruction": "look"}});
    let mut plan = plan(json!({"responses": [{"tool_calls": [task]}, "done"]}));
    plan["tools"] = json!([{"module": "tool-task"}, {"module": "tool-bash", "config": unasked()}]);
    plan["agents"] = json!({"scout": {"description": "Looks.", "providers": scout["providers"]}});
    desk.plan("a.json", &plan);
    let child = command(&desk, &["run", "--plan", "a.json", "hi"]).spawn().unwrap();
    let stubborn = ids(&desk, &["stubborn"]);
    signal("-INT", &child);
    assert_eq!(ended(child), Some(130));
    stubborn.into_iter().for_each(gone);
}
