//! A process that dies in the middle of a turn, many times at random moments.

use std::time::Duration;

#[cfg(unix)]
use amplifier_testing::block_until;
use serde_json::{Value, json};

use crate::desk::Desk;

const KILLS: u64 = 200;
const ROUNDS: usize = 6;

/// A turn of several tool rounds, each a little slow, so that a kill meets it anywhere.
fn long_turn(context: &str) -> Value {
    let mut responses: Vec<Value> = (0..ROUNDS)
        .map(|round| {
            let call = json!({"name": "read_file", "arguments": {"file_path": "notes.txt"}});
            json!({"text": format!("round {round}"), "delay_ms": 2, "tool_calls": [call.clone(), call]})
        })
        .collect();
    responses.push(json!("all rounds done"));
    json!({
        "session": {"orchestrator": "loop-basic", "context": context},
        "providers": [{"module": "provider-mock", "config": {"responses": responses}}],
        "tools": [{"module": "tool-filesystem"}],
    })
}

fn goes_on(context: &str) -> Value {
    json!({
        "session": {"orchestrator": "loop-basic", "context": context},
        "providers": [{"module": "provider-mock", "config": {"responses": ["the end"]}}],
        "tools": [{"module": "tool-filesystem"}],
    })
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// The messages the journal holds; none when the process died before there was one.
fn messages(folder: &std::path::Path) -> Vec<Value> {
    let journal = std::fs::read_to_string(folder.join("events.jsonl")).unwrap_or_default();
    let records = journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records.filter_map(|record| record["body"].get("message").cloned()).collect()
}

/// How many records the newest session's journal holds.
fn written(desk: &Desk) -> u64 {
    let journal =
        desk.sessions().pop().map(|folder| std::fs::read(folder.join("events.jsonl")).unwrap_or_default());
    journal.unwrap_or_default().iter().filter(|byte| **byte == b'\n').count() as u64
}

/// As model services want it: right behind a message that calls tools stand the results, one for each call.
fn assert_well_formed(messages: &[Value]) {
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        match message["role"].as_str().unwrap() {
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap();
                let at = open.iter().position(|call| call == id);
                open.remove(at.unwrap_or_else(|| panic!("{id} answers nothing: {messages:#?}")));
            }
            role => {
                assert!(
                    open.is_empty(),
                    "before a message of the {role}, {open:?} have no result: {messages:#?}"
                );
                let calls = message["tool_calls"].as_array().into_iter().flatten();
                open.extend(calls.map(|call| call["id"].as_str().unwrap().to_owned()));
            }
        }
    }
    assert!(open.is_empty(), "{open:?} have no result");
}

fn survives(context: &str, seed: u64) {
    let desk = Desk::new();
    desk.file("notes.txt", "xyzzy\n")
        .plan("long.json", &long_turn(context))
        .plan("next.json", &goes_on(context));
    let mut dice = Dice(seed);
    let mut cut_off = 0;
    for kill in 0..KILLS {
        let mut child = desk.spawn(&["run", "--plan", "long.json", "go"]);
        // By what was written and not by the clock: a slow machine is killed in the same places.
        let (records, moment) = (dice.below(60), Duration::from_micros(dice.below(2_000)));
        while written(&desk) < records && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(moment);
        child.kill().unwrap();
        child.wait().unwrap();
        let Some(folder) = desk.sessions().pop() else { continue };
        let before = messages(&folder);
        if before.is_empty() {
            std::fs::remove_dir_all(&folder).unwrap();
            continue;
        }
        cut_off += u64::from(before.len() < 2 * ROUNDS);
        let id = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let ran = desk.amplifier(&["run", "--resume", &id, "--plan", "next.json", "--continue"]);
        // Who was killed behind the answer had nothing left to finish, and no model is asked again.
        let is_over = before.last().is_some_and(|message| message.to_string().contains("all rounds done"));
        let said = if is_over { "" } else { "the end\n" };
        assert_eq!((ran.code, ran.stdout.as_str()), (0, said), "kill {kill}: {}", ran.seen());
        assert_eq!(ran.stderr.contains("nothing to finish"), is_over, "kill {kill}: {}", ran.seen());
        let after = messages(&folder);
        assert_eq!(after.get(..before.len()), Some(before.as_slice()), "kill {kill}: what was said is gone");
        assert_well_formed(&after);
        std::fs::remove_dir_all(&folder).unwrap();
    }
    assert!(cut_off > KILLS / 8, "only {cut_off} kills met a turn");
}

#[test]
fn two_hundred_kills_lose_nothing_that_was_said_and_the_turn_goes_on() {
    survives("context-simple", 7);
}

#[test]
fn two_hundred_kills_leave_the_file_of_the_persistent_context_whole() {
    survives("context-persistent", 11);
}

#[cfg(unix)]
#[test]
fn what_a_killed_process_left_in_the_folder_of_temporary_files_goes_with_the_next_command() {
    let desk = Desk::new();
    let runs = |name: &str, command: &str| {
        let call = json!({"name": "bash", "arguments": {"command": command}});
        let plan = json!({
            "session": {"orchestrator": "loop-basic", "context": "context-simple"},
            "providers": [{"module": "provider-mock", "config": {"responses": [{"tool_calls": [call]}, "done"]}}],
            "tools": [{"module": "tool-bash", "config": {"require_approval": "never"}}],
        });
        desk.plan(name, &plan);
        let mut run = desk.command(&["run", "--plan", name, "go"]);
        run.env("TMPDIR", desk.path("tmp"));
        run
    };
    std::fs::create_dir(desk.path("tmp")).unwrap();
    let left = || std::fs::read_dir(desk.path("tmp")).unwrap().count();

    let mut killed = runs("waits.json", "touch begun; while :; do sleep 0.05; done").spawn().unwrap();
    block_until("the command runs", || desk.work().join("begun").exists());
    // While somebody works there it is nobody else's to take away.
    assert!(runs("short.json", "true").status().unwrap().success());
    assert_eq!(left(), 1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    // Its command ends with it; what that worked in is still there.
    let folder = std::fs::read_dir(desk.path("tmp")).unwrap().next().unwrap().unwrap().path();
    block_until("the command has ended", || {
        std::fs::File::open(folder.join("lock")).unwrap().try_lock().is_ok()
    });
    assert_eq!(left(), 1);
    // It is taken away beside the work of the next one, which does not wait for it unless it is told to.
    let waits =
        format!("until [ \"$(ls '{}' | wc -l)\" -eq 1 ]; do sleep 0.05; done", desk.path("tmp").display());
    assert!(runs("clears.json", &waits).status().unwrap().success());
    assert_eq!(left(), 0);
}
