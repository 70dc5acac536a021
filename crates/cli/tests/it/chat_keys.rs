//! Keys and signals in the chat: stopping what runs, pasting, several lines, history, and what can be unfolded.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::chat::{WIDE, desk, open, steady};
use crate::desk::{Desk, read};
use crate::terminal::Terminal;

/// How long a process may take to be gone.
const PATIENCE: Duration = Duration::from_secs(20);

/// A desk whose model runs a program that says who it is and does not end.
fn running(before: &str) -> (Desk, Terminal, u32) {
    let command = format!("{before} echo $$ > pid; exec sleep 600");
    let bash = json!({"tool_calls": [{"name": "bash", "input": {"command": command, "timeout": 600}}]});
    let desk = desk(json!([bash, "After it."]), json!({"tools": [{"module": "tool-bash"}]}));
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    terminal.sees("running ·");
    let file = desk.work().join("pid");
    let began = Instant::now();
    let pid = loop {
        let written = std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
        match written {
            Some(pid) => break pid,
            None => assert!(began.elapsed() < PATIENCE, "the program did not begin"),
        }
        std::thread::yield_now();
    };
    (desk, terminal, pid)
}

pub fn is_alive(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // One that only waits to be buried is gone.
    state.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

pub fn gone(pid: u32) {
    let began = Instant::now();
    while is_alive(pid) {
        assert!(began.elapsed() < PATIENCE, "process {pid} is still there");
        std::thread::yield_now();
    }
}

#[test]
fn the_first_interrupt_ends_the_command() {
    let (desk, terminal, pid) = running("");
    terminal.types("\u{3}");
    terminal.sees("stopping; waiting for bash, Ctrl-C again stops at once");
    terminal.sees("stopped");
    terminal.prompt();
    gone(pid);
    assert!(!terminal.screen().contains("After it."));
    drop(desk);
}

#[test]
fn the_second_interrupt_ends_a_command_that_ignores_the_first_at_once() {
    let (desk, terminal, pid) = running("trap '' INT TERM;");
    terminal.types("\u{3}");
    terminal.sees("stopping; waiting for bash, Ctrl-C again stops at once");
    terminal.types("\u{3}");
    terminal.sees("stopped");
    terminal.prompt();
    gone(pid);
    assert!(!terminal.screen().contains("After it."));
    drop(desk);
}

#[test]
fn a_terminal_that_is_closed_ends_the_chat_and_the_tool_and_loses_nothing() {
    let (desk, mut terminal, pid) = running("");
    let chat = terminal.pid().to_string();
    assert!(Command::new("kill").args(["-HUP", &chat]).status().unwrap().success());
    assert_eq!(terminal.end(), 129);
    gone(pid);
    let folder = desk.sessions().pop().unwrap();
    assert!(read(&folder.join("transcript.jsonl")).contains("\"go\""), "what was said is kept");
    assert!(read(&folder.join("events.jsonl")).contains("session:end"), "it ended in order");
    // Also where nobody said anything.
    let desk = crate::chat::desk(json!(["x"]), json!({}));
    let mut terminal = open(&desk, WIDE);
    let chat = terminal.pid().to_string();
    assert!(Command::new("kill").args(["-HUP", &chat]).status().unwrap().success());
    assert_eq!(terminal.end(), 129);
    assert!(desk.sessions().is_empty(), "a session without a word is not kept");
}

#[test]
fn what_is_pasted_is_one_prompt_with_its_lines() {
    let desk = desk(json!(["seen"]), json!({}));
    let terminal = open(&desk, WIDE);
    terminal.types("\u{1b}[200~first line\rsecond line\u{1b}[201~");
    let screen = terminal.sees("second line");
    assert!(!screen.contains("seen"), "{screen}");
    terminal.types("\r");
    terminal.sees("seen");
    terminal.prompt();
    let said = read(&desk.sessions()[0].join("transcript.jsonl"));
    assert!(said.lines().next().unwrap().contains("first line\\nsecond line"), "{said}");
}

#[test]
fn several_lines_are_typed_and_history_brings_them_back() {
    let desk = desk(json!(["seen", "again"]), json!({}));
    let mut terminal = open(&desk, WIDE);
    // Ctrl-J begins a new line.
    terminal.types("one\u{a}two");
    terminal.sees("two");
    terminal.types("\r");
    terminal.sees("seen");
    terminal.prompt();
    terminal.types("\u{4}");
    assert_eq!(terminal.end(), 0);
    let said = read(&desk.sessions()[0].join("transcript.jsonl"));
    assert!(said.lines().next().unwrap().contains("one\\ntwo"), "{said}");
    // Another chat in the same folder knows it.
    let terminal = open(&desk, WIDE);
    terminal.types("\u{1b}[A");
    let screen = terminal.sees("two");
    assert!(screen.contains("> one"), "{screen}");
    terminal.types("\r");
    terminal.sees("seen");
}

#[test]
fn sessions_of_this_folder_are_completed_and_no_others() {
    let desk = desk(json!(["one"]), json!({}));
    let id = |folder: &std::path::Path| folder.file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(desk.amplifier(&["run", "--plan", "plan.json", "the first"]).code, 0);
    let here = id(&desk.sessions()[0]);
    // Elsewhere, with an id that begins in the same way.
    std::fs::create_dir(desk.path("elsewhere")).unwrap();
    let plan = desk.path("work/plan.json").display().to_string();
    let elsewhere = desk.path("elsewhere");
    let ran = desk.command(&["run", "--plan", &plan, "the other"]).current_dir(&elsewhere).output().unwrap();
    assert!(ran.status.success());
    let terminal = open(&desk, WIDE);
    // All begin alike: they were made in the same hour.
    terminal.types(&format!("/resume {}\t", &here[..6]));
    let screen = terminal.sees(&format!("/resume {here}"));
    assert!(!screen.contains("the other"), "{screen}");
    terminal.types("\r");
    terminal.sees("this is session");
    terminal.prompt();
    terminal.types("/status\r");
    terminal.sees(&here);
}

#[test]
fn calls_and_thoughts_are_unfolded() {
    let think = json!({
        "thinking": "First I look at the list. Then I say what is in it.",
        "tool_calls": [{"name": "echo", "input": {"text": "the whole text"}}],
    });
    let desk = desk(json!([think, "Done."]), json!({"tools": [{"module": "tool-echo"}]}));
    let terminal = open(&desk, (100, 40));
    terminal.types("go\r");
    let screen = terminal.sees("Done.");
    assert!(screen.contains("thought for") && screen.contains("✓ echo"), "{screen}");
    terminal.prompt();
    terminal.types("/think\r");
    terminal.sees("  First I look at the list. Then I say what is in it.");
    terminal.types("/expand 1\r");
    terminal.sees("  \"text\": \"the whole text\"");
    terminal.prompt();
    terminal.types("/expand 7\r");
    terminal.sees("there is no such tool call");
}

#[test]
fn a_whole_turn_fits_a_terminal_of_80_by_24() {
    let edit = json!({"file_path": "lib.rs", "old_string": "a - b", "new_string": "a + b"});
    let responses = json!([
        {"tool_calls": [{"name": "edit_file", "input": edit}]},
        {"text": "I mended **add** in `lib.rs`; a test was missing.", "usage": {"input_tokens": 1234, "output_tokens": 56, "cost_usd": "0.0123"}},
    ]);
    let more = json!({"tools": [{"module": "tool-filesystem"}], "hooks": [{"module": "hooks-approval"}]});
    let desk = desk(responses, more);
    desk.file("lib.rs", "fn add(a: u32, b: u32) -> u32 {\n    a - b\n}\n");
    let terminal = open(&desk, (80, 24));
    terminal.types("fix add\r");
    terminal.question();
    terminal.types("y\r");
    terminal.sees("in · ");
    insta::assert_snapshot!("chat_80x24", steady(&desk, &terminal.prompt()));
}

#[test]
fn a_dumb_terminal_is_asked_in_plain_lines() {
    let write =
        json!({"tool_calls": [{"name": "write_file", "input": {"file_path": "a", "content": "x\n"}}]});
    let more = json!({"tools": [{"module": "tool-filesystem"}], "hooks": [{"module": "hooks-approval"}]});
    let desk = desk(json!([write, "Done."]), more);
    let terminal = Terminal::open(&desk, &["--plan", "plan.json"], WIDE, "dumb");
    terminal.prompt();
    terminal.types("go\n");
    let screen = terminal.sees("y once");
    assert!(screen.contains("+x") && screen.contains("every call of `write_file`"), "{screen}");
    terminal.question();
    terminal.types("y\n");
    terminal.sees("Done.");
    assert_eq!(read(&desk.work().join("a")), "x\n");
}

#[cfg(unix)]
#[test]
fn what_is_typed_while_a_command_works_is_said_when_it_is_done() {
    let desk = desk(json!(["Near."]), json!({}));
    let mut far = crate::chat::plan(json!(["Far."]), json!({}));
    far["bundle"] = json!({"name": "far"});
    let (uri, _) = desk.commit("far", &[("bundle.yaml", &far.to_string())]);
    let (began, go_on) = (desk.path("began"), desk.path("go-on"));
    let wait =
        format!("touch '{}'\nwhile [ ! -e '{}' ]; do sleep 0.02; done", began.display(), go_on.display());
    let path = crate::fetching::git_that_first(&desk, &wait);
    let home = desk.path("").display().to_string();
    let variables = [("TERM", "xterm-256color"), ("HOME", home.as_str()), ("PATH", path.as_str())];
    let terminal = Terminal::open_with(&desk, &["--plan", "plan.json"], WIDE, &variables);
    terminal.prompt();
    terminal.types(&format!("/bundle {uri}\r"));
    let since = Instant::now();
    while !began.exists() {
        assert!(since.elapsed() < PATIENCE, "{}", terminal.screen());
        std::thread::yield_now();
    }
    terminal.types("typed ahead\r");
    assert!(!terminal.screen().contains("typed ahead"), "it stands in the way of what the command says");
    std::fs::write(go_on, "").unwrap();
    let screen = terminal.sees("Far.");
    assert_eq!(screen.matches("typed ahead").count(), 1, "{screen}");
}
