//! Stopping in the chat, wherever it is: at the prompt, in a command, while a session opens, when the time is up.

use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::chat::{WIDE, desk, open, plan};
use crate::chat_keys::{gone, is_alive};
use crate::desk::{Desk, git_variables, read};
use crate::terminal::Terminal;

/// How long anything may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);

fn send(signal: &str, terminal: &Terminal) {
    let chat = terminal.pid().to_string();
    assert!(Command::new("kill").args([signal, &chat]).status().unwrap().success());
}

/// A server that takes everybody in and says nothing; tells when somebody came.
fn silent() -> (String, Receiver<TcpStream>) {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("git+http://{}/far@main", server.local_addr().unwrap());
    let (sender, guests) = channel();
    std::thread::spawn(move || {
        for guest in server.incoming() {
            if sender.send(guest.unwrap()).is_err() {
                return;
            }
        }
    });
    (address, guests)
}

/// Waits for a file with a number in it.
fn number_in(desk: &Desk, name: &str) -> u32 {
    let began = Instant::now();
    loop {
        let text = std::fs::read_to_string(desk.work().join(name)).unwrap_or_default();
        match text.trim().parse() {
            Ok(number) => return number,
            Err(_) => assert!(began.elapsed() < PATIENCE, "`{name}` did not come"),
        }
        std::thread::yield_now();
    }
}

/// A tool module that waits for a server which never answers.
fn slow_server() -> serde_json::Value {
    let server = json!({"command": "sh", "args": ["-c", "echo $$ > pid; exec sleep 600"]});
    json!({"module": "tool-mcp", "config": {"servers": {"slow": server}, "wait": 40.0, "start_timeout": 60.0}})
}

/// A turn that runs until a file is there.
fn waiting() -> Desk {
    let bash = json!({"command": "while [ ! -e go-on ]; do sleep 0.02; done", "timeout": 600});
    let call = json!({"tool_calls": [{"name": "bash", "input": bash}]});
    let tools = json!([{"module": "tool-bash", "config": {"require_approval": "never"}}]);
    desk(json!([call, "Over.", "Next."]), json!({ "tools": tools }))
}

#[test]
fn a_signal_at_the_prompt_is_a_ctrl_c_there() {
    let desk = waiting();
    let mut terminal = open(&desk, WIDE);
    send("-INT", &terminal);
    terminal.sees("Ctrl-C again or Ctrl-D leaves");
    terminal.prompt();
    // On a line with something on it it takes that away, and the next one is a first one.
    terminal.types("half a line");
    terminal.sees("> half a line");
    send("-INT", &terminal);
    terminal.prompt();
    // Keys still go where they belong: to the turn, seen, and to the prompt after it.
    terminal.types("go\r");
    terminal.sees("running ·");
    terminal.types("and then");
    terminal.sees("> and then");
    desk.file("go-on", "");
    terminal.sees("Over.");
    terminal.prompt_with("and then");
    terminal.types("\r");
    terminal.sees("Next.");
    terminal.prompt();
    send("-TERM", &terminal);
    assert_eq!(terminal.end(), 143);
    assert!(read(&desk.sessions()[0].join("events.jsonl")).contains("session:end"), "it ended in order");
}

#[test]
fn two_signals_at_the_prompt_leave() {
    let desk = desk(json!(["Word."]), json!({}));
    let mut terminal = open(&desk, WIDE);
    send("-INT", &terminal);
    terminal.sees("Ctrl-C again or Ctrl-D leaves");
    terminal.prompt();
    send("-INT", &terminal);
    assert_eq!(terminal.end(), 130);
}

#[test]
fn a_command_that_takes_long_is_interrupted_and_the_next_one_is_not() {
    let desk = desk(json!(["Near."]), json!({}));
    let mut far = plan(json!(["Far."]), json!({}));
    far["bundle"] = json!({"name": "far"});
    let (uri, _) = desk.commit("far", &[("bundle.yaml", &far.to_string())]);
    let (silent, guests) = silent();
    let mut terminal = open(&desk, WIDE);
    terminal.types(&format!("/bundle {silent}\r"));
    let guest = guests.recv_timeout(PATIENCE).unwrap();
    terminal.types("\u{3}");
    terminal.sees("interrupted");
    terminal.prompt();
    drop(guest);
    // What was interrupted is over: the next one is fetched, keys are seen, and the session is the same.
    terminal.types(&format!("/bundle {uri}\r"));
    terminal.sees("the session goes on with");
    terminal.prompt();
    terminal.types("hi\r");
    terminal.sees("Far.");
    terminal.prompt();
    send("-TERM", &terminal);
    assert_eq!(terminal.end(), 143);
    assert_eq!(desk.sessions().len(), 1);
}

#[test]
fn a_session_that_opens_slowly_is_not_waited_for() {
    let desk = desk(json!(["Word."]), json!({"tools": [slow_server()]}));
    let variables = git_variables(&desk.path("user"));
    let path = &variables.iter().find(|(name, _)| name == "PATH").unwrap().1;
    let mut terminal = Terminal::open_with(
        &desk,
        &["--plan", "plan.json"],
        WIDE,
        &[("TERM", "xterm-256color"), ("PATH", path.as_str())],
    );
    let server = number_in(&desk, "pid");
    terminal.types("\u{3}");
    assert_eq!(terminal.end(), 130);
    assert!(terminal.screen().contains("error: interrupted"), "{}", terminal.screen());
    gone(server);
    assert!(desk.sessions().is_empty(), "nothing was said in it");
}

#[test]
fn a_session_that_is_left_for_one_that_opens_slowly_can_be_come_back_to() {
    let desk = desk(json!(["Near."]), json!({}));
    let mut far = plan(json!(["Far."]), json!({"tools": [slow_server()]}));
    far["bundle"] = json!({"name": "far"});
    desk.file("far.yaml", far.to_string());
    let terminal = open(&desk, WIDE);
    terminal.types("hi\r");
    terminal.sees("Near.");
    terminal.prompt();
    terminal.types("/bundle ./far.yaml\r");
    let server = number_in(&desk, "pid");
    assert!(is_alive(server));
    terminal.types("\u{3}");
    terminal.sees("error: interrupted");
    terminal.sees("the session goes on as it was");
    terminal.prompt();
    gone(server);
    terminal.types("and\r");
    terminal.until("another answer", |screen| screen.matches("Near.").count() == 2);
}

#[test]
fn a_turn_of_the_chat_has_the_time_that_the_settings_give() {
    let responses = json!([{"text": "late", "delay_ms": 600_000}, "In time."]);
    let desk = desk(responses, json!({}));
    assert_eq!(desk.amplifier(&["config", "set", "limits.timeout_seconds", "5"]).code, 0);
    let mut terminal = open(&desk, WIDE);
    terminal.types("go\r");
    let screen = terminal.sees("stopped: not done in the time that the settings give");
    assert!(!screen.contains("late"), "{screen}");
    terminal.sees("`amplifier config get limits.timeout_seconds");
    terminal.prompt();
    terminal.types("again\r");
    terminal.sees("In time.");
    terminal.prompt();
    terminal.types("\u{4}");
    assert_eq!(terminal.end(), 0);
    // For a script it is the exit code of `run`.
    let ran = desk.amplifier_with_input(&["--plan", "plan.json"], b"go\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (124, ""), "{}", ran.stderr);
}

#[test]
fn a_tool_that_outlives_the_time_is_ended() {
    let bash = json!({"command": "echo $$ > pid; exec sleep 600", "timeout": 600});
    let call = json!({"tool_calls": [{"name": "bash", "input": bash}]});
    let tools = json!([{"module": "tool-bash", "config": {"require_approval": "never"}}]);
    let desk = desk(json!([call, "Over."]), json!({ "tools": tools }));
    assert_eq!(desk.amplifier(&["config", "set", "limits.timeout_seconds", "5"]).code, 0);
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    let pid = number_in(&desk, "pid");
    terminal.sees("stopped: not done in the time that the settings give");
    terminal.prompt();
    gone(pid);
}
