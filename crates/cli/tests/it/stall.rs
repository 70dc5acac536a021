//! Readers that stall: whoever reads nothing cannot keep the program from ending when it is told to, or when its time is up.

use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use serde_json::{Value, json};

use crate::desk::{Desk, plan, read, wait_until};

/// How long a program may take to end that should end at once; a machine that does much at a time is slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// A model whose answer is longer than any pipe holds and than what may wait to be printed.
fn talks() -> Value {
    plan(json!({"responses": [{"text": "all work and no play ".repeat(25_000)}]}))
}

/// A program that prints to a pipe that nobody reads and that is full.
fn stalled(desk: &Desk, args: &[&str]) -> Child {
    desk.plan("a.json", &talks());
    let child = desk.spawn(&[&["run", "--plan", "a.json"], args, &["hi"]].concat());
    wait_until(|| is_full(child.stdout.as_ref().unwrap()));
    child
}

/// Whether a pipe holds the beginning of a line that does not fit into it.
fn is_full(pipe: impl AsFd) -> bool {
    rustix::io::ioctl_fionread(pipe).unwrap() >= 32_768
}

fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

/// Whether no signal waits for this process; where there is no `/proc`, nothing is known of it.
fn is_received(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mut waiting = status.lines().filter_map(|line| line.strip_prefix("ShdPnd:"));
    waiting.all(|mask| mask.trim().chars().all(|digit| digit == '0'))
}

/// How it ended, without anybody having read a word.
fn end(mut child: Child) -> i32 {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_signal_ends_a_run_that_nobody_reads() {
    for output in ["jsonl", "json", "text"] {
        for (name, code) in [("-TERM", 143), ("-HUP", 129)] {
            let desk = Desk::new();
            let child = stalled(&desk, &["--output", output]);
            signal(child.id(), name);
            assert_eq!(end(child), code, "{output} {name}");
        }
    }
}

#[test]
fn interrupts_end_a_run_that_nobody_reads() {
    let desk = Desk::new();
    let mut child = stalled(&desk, &["--output", "jsonl"]);
    let stderr = child.stderr.take().unwrap();
    signal(child.id(), "-INT");
    assert_eq!(end(child), 130);
    let told = std::io::read_to_string(stderr).unwrap();
    assert!(told.contains("error: interrupted"), "standard error is read, so it is told: {told}");
    let journal = read(&desk.sessions().pop().unwrap().join("events.jsonl"));
    assert!(journal.contains("session:end"), "it ended in order");
}

#[test]
fn the_time_ends_a_run_that_nobody_reads() {
    for output in ["jsonl", "text"] {
        let desk = Desk::new();
        desk.plan("a.json", &talks());
        let args = ["run", "--plan", "a.json", "--timeout", "1s", "--output", output, "hi"];
        let mut child = desk.spawn(&args);
        let stderr = child.stderr.take().unwrap();
        assert_eq!(end(child), 124, "{output}");
        let told = std::io::read_to_string(stderr).unwrap();
        assert!(told.contains("error: not done in 1.0 s"), "{output}: {told}");
    }
}

/// The turn is complete and its views wait for the lock of all sessions when the signal comes, so the turn succeeds after it
/// was asked to stop. Lines are printed while the turn runs, so they would hold it up before that.
#[test]
fn an_answer_that_is_cut_off_is_no_success_although_its_turn_was() {
    for output in ["json", "text"] {
        let desk = Desk::new();
        desk.plan("a.json", &talks());
        std::fs::create_dir_all(desk.home().join("state")).unwrap();
        let lock = std::fs::File::create(desk.home().join("state/sessions.lock")).unwrap();
        lock.lock().unwrap();
        let mut child = desk.spawn(&["run", "--plan", "a.json", "--output", output, "hi"]);
        let journal = || std::fs::read_to_string(desk.sessions().pop()?.join("events.jsonl")).ok();
        wait_until(|| journal().is_some_and(|text| text.contains("session:end")));
        signal(child.id(), "-TERM");
        wait_until(|| is_received(child.id()));
        lock.unlock().unwrap();
        let stderr = child.stderr.take().unwrap();
        let stdout = child.stdout.take().unwrap();
        assert_eq!(end(child), 143, "{output}");
        let told = std::io::read_to_string(stderr).unwrap();
        assert!(told.contains("error: ended by another program"), "{output}: {told}");
        assert!(std::io::read_to_string(stdout).unwrap().len() < 500_000, "{output}: it was cut off");
    }
}

#[test]
fn a_reader_that_comes_before_the_time_is_up_gets_the_whole_answer() {
    for output in ["jsonl", "json", "text"] {
        let desk = Desk::new();
        let child = stalled(&desk, &["--output", output, "--timeout", "10m"]);
        let ran = crate::desk::Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 0, "{output}: {}", ran.stderr);
        assert!(ran.stdout.matches("all work and no play").count() >= 25_000, "{output}");
    }
}

#[test]
fn a_run_ends_that_prints_everything_to_one_pipe_that_nobody_reads() {
    let desk = Desk::new();
    desk.plan("a.json", &talks());
    // The same pipe for both, so that one thing stalls the other.
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = desk.command(&["run", "--plan", "a.json", "--output", "jsonl", "hi"]);
    let child = command.stdout(Stdio::from(writer.try_clone().unwrap())).stderr(writer).spawn().unwrap();
    drop(command);
    wait_until(|| is_full(&reader));
    signal(child.id(), "-TERM");
    assert_eq!(end(child), 143);
}

#[test]
fn a_terminal_that_is_held_up_does_not_keep_a_run_from_ending() {
    let desk = Desk::new();
    desk.plan("a.json", &talks());
    let pair = native_pty_system().openpty(PtySize::default()).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_amplifier"));
    command.args(["run", "--plan", "a.json", "hi"]);
    command.env_clear();
    command.env("AMPLIFIER_HOME", desk.home());
    command.env("TERM", "xterm-256color");
    command.cwd(desk.work());
    let mut child = pair.slave.spawn_command(command).unwrap();
    let journal = || std::fs::read_to_string(desk.sessions().pop()?.join("events.jsonl")).ok();
    wait_until(|| journal().is_some_and(|text| text.contains("call_started")));
    signal(child.process_id().unwrap(), "-TERM");
    wait_until(|| child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().exit_code(), 143);
}

#[test]
fn a_reader_that_is_slow_gets_every_line_in_order() {
    let desk = Desk::new();
    let child = stalled(&desk, &["--output", "jsonl"]);
    let ran = crate::desk::Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines = ran.lines();
    let numbers: Vec<_> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert!(numbers.len() > 5 && numbers.is_sorted(), "{numbers:?}");
    assert_eq!(lines.last().unwrap()["status"], "completed");
}
