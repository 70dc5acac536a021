//! The chat as a job of a shell: Ctrl-Z gives the terminal back as it was, `fg` takes it again, and nothing is lost meanwhile.

use serde_json::{Value, json};

use crate::chat::{WIDE, desk};
use crate::desk::{Desk, git_variables, read, wait_until};
use crate::terminal::Terminal;

/// A shell in whose foreground the chat is.
fn shell(desk: &Desk) -> Terminal {
    let variables = git_variables(&desk.path("user"));
    let path = &variables.iter().find(|(name, _)| name == "PATH").unwrap().1;
    let home = desk.path("").display().to_string();
    // Shells differ in what they make of the terminal for their own prompt; this one leaves it as it was.
    desk.file("inputrc", "set enable-bracketed-paste off\n");
    let keys = desk.work().join("inputrc").display().to_string();
    let variables = [
        ("TERM", "xterm-256color"),
        ("HOME", home.as_str()),
        ("PATH", path.as_str()),
        ("INPUTRC", keys.as_str()),
    ];
    let terminal = Terminal::open_shell(desk, WIDE, &variables);
    shell_prompt(&terminal);
    terminal.types("$AMPLIFIER --plan plan.json\r");
    terminal.prompt();
    terminal
}

fn shell_prompt(terminal: &Terminal) -> String {
    terminal.until("the prompt of the shell", |screen| {
        screen.lines().last().is_some_and(|line| line.trim() == "$")
    })
}

/// Suspends the chat and looks whether the shell has a terminal that can be used.
fn suspend(terminal: &Terminal) {
    terminal.types("\u{1a}");
    usable(terminal);
}

fn usable(terminal: &Terminal) {
    shell_prompt(terminal);
    assert!(terminal.with_screen(|screen| !screen.bracketed_paste() && !screen.hide_cursor()));
    terminal.types("stty -a\r");
    terminal.until("the terminal's state", |screen| {
        let told = screen.rsplit("stty -a").next().unwrap_or_default();
        told.contains(" icanon") && told.contains(" echo ") && told.contains(" icrnl")
    });
    shell_prompt(terminal);
    terminal.types("clear\r");
    terminal.until("a clean screen", |screen| screen == "$");
}

fn waiting(then: Value) -> Desk {
    let bash = json!({"command": "touch begun; while [ ! -e go-on ]; do sleep 0.02; done; touch done", "timeout": 600});
    let call = json!({"tool_calls": [{"name": "bash", "input": bash}]});
    let tools = json!([{"module": "tool-bash", "config": {"require_approval": "never"}}, {"module": "tool-filesystem"}]);
    desk(json!([call, then, "Over."]), json!({ "tools": tools, "hooks": [hook()] }))
}

/// Asks about what is written, and about nothing else.
fn hook() -> Value {
    let rules = json!([{"tool": "write_file", "action": "ask"}]);
    json!({"module": "hooks-approval", "config": {"rules": rules, "policy_driven_only": true}})
}

#[test]
fn the_prompt_is_suspended_and_goes_on_with_its_line() {
    let desk = desk(json!(["Seen.", "Again."]), json!({}));
    let terminal = shell(&desk);
    terminal.types("half a line");
    terminal.sees("> half a line");
    suspend(&terminal);
    terminal.types("fg\r");
    terminal.until("the line", |screen| screen.lines().last() == Some("> half a line"));
    assert!(terminal.with_screen(vt100::Screen::bracketed_paste));
    // Raw again: an Enter is one, and what is pasted is one line with all its lines.
    terminal.types("\u{1b}[200~ and\rmore\u{1b}[201~\r");
    terminal.sees("Seen.");
    terminal.prompt();
    let said = read(&desk.sessions()[0].join("transcript.jsonl"));
    assert!(said.contains("half a line and\\nmore"), "{said}");
    // As often as somebody wants, and the shell is left as it was found.
    suspend(&terminal);
    terminal.types("fg\r");
    terminal.prompt();
    terminal.types("\u{4}");
    terminal.sees("go on with");
    usable(&terminal);
}

/// What was typed in one burst with Ctrl-Z was meant for the shell, perhaps: it is never sent by itself.
#[test]
fn a_line_behind_a_suspend_comes_back_as_text() {
    let desk = waiting(json!("First."));
    let terminal = shell(&desk);
    terminal.types("\u{1a}ls\r");
    shell_prompt(&terminal);
    terminal.types("fg\r");
    terminal.until("the line", |screen| screen.lines().last() == Some("> ls"));
    terminal.types("\u{15}go\r");
    terminal.sees("running ·");
    terminal.types("\u{1a}make\r");
    shell_prompt(&terminal);
    terminal.types("fg\r");
    terminal.until("the line", |screen| screen.lines().last() == Some("> make"));
    desk.file("go-on", "");
    terminal.sees("First.");
    terminal.types("\u{15}last\r");
    terminal.sees("Over.");
    terminal.prompt();
    let said = read(&desk.sessions()[0].join("transcript.jsonl"));
    let prompts = said.lines().filter(|line| line.contains("\"role\":\"user\"")).count();
    assert!(prompts == 2 && !said.contains("\"ls\"") && !said.contains("make"), "{said}");
}

/// The views of a session wait for who has the lock of all sessions: the time between a turn and the next prompt.
#[test]
fn a_suspend_as_a_turn_ends_gives_the_whole_terminal_back() {
    let desk = desk(json!(["Seen.", "Again."]), json!({}));
    let terminal = shell(&desk);
    let lock = std::fs::File::create(desk.home().join("state/sessions.lock")).unwrap();
    lock.lock().unwrap();
    terminal.types("go\r");
    terminal.sees("Seen.");
    suspend(&terminal);
    lock.unlock().unwrap();
    terminal.types("fg\r");
    terminal.prompt();
    terminal.types("more\r");
    terminal.sees("Again.");
}

#[test]
fn a_turn_is_suspended_and_what_ran_meanwhile_is_shown() {
    let desk = waiting(json!("First."));
    let terminal = shell(&desk);
    terminal.types("go\r");
    terminal.sees("running ·");
    terminal.types("and then");
    terminal.sees("> and then");
    wait_until(|| desk.work().join("begun").exists());
    suspend(&terminal);
    // The tool has a life of its own.
    desk.file("go-on", "");
    wait_until(|| desk.work().join("done").exists());
    terminal.types("fg\r");
    let screen = terminal.sees("First.");
    assert_eq!(screen.matches("✓ bash").count(), 1, "{screen}");
    terminal.prompt_with("and then");
    terminal.types("\r");
    terminal.sees("Over.");
}

#[test]
fn a_question_is_suspended_and_asked_again() {
    let write =
        json!({"tool_calls": [{"name": "write_file", "input": {"file_path": "a", "content": "x\n"}}]});
    let desk = waiting(write);
    desk.file("go-on", "");
    let terminal = shell(&desk);
    terminal.types("go\r");
    terminal.question();
    suspend(&terminal);
    terminal.types("fg\r");
    terminal.question();
    assert!(!desk.work().join("a").exists());
    terminal.types("y\r");
    terminal.sees("Over.");
    assert_eq!(read(&desk.work().join("a")), "x\n");
}

/// The process of the chat that runs in the shell.
#[cfg(target_os = "linux")]
fn chat_of(terminal: &Terminal) -> String {
    let shell = terminal.pid();
    let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
    children.split_whitespace().next_back().unwrap().to_owned()
}

#[cfg(target_os = "linux")]
fn send(signal: &str, process: &str) {
    assert!(std::process::Command::new("kill").args([signal, process]).status().unwrap().success());
}

#[cfg(target_os = "linux")]
#[test]
fn who_is_stopped_by_somebody_else_takes_the_terminal_again() {
    let desk = waiting(json!("First."));
    let terminal = shell(&desk);
    let chat = chat_of(&terminal);
    for signal in ["-STOP", "-TSTP"] {
        terminal.types("abc");
        terminal.sees("> abc");
        send(signal, &chat);
        shell_prompt(&terminal);
        // Whatever the shell makes of the terminal.
        terminal.types("stty sane; clear\n");
        terminal.until("a clean screen", |screen| screen == "$");
        terminal.types("fg\r");
        terminal.until("the line", |screen| screen.lines().last() == Some("> abc"));
        terminal.types("\u{15}");
        terminal.prompt();
    }
    terminal.types("go\r");
    terminal.sees("running ·");
    send("-STOP", &chat);
    shell_prompt(&terminal);
    terminal.types("stty sane; clear; fg\n");
    // The shell says what goes on, in its own spelling; before, the line stood there that started it.
    terminal.until("the turn", |screen| {
        let first = screen.lines().next().unwrap_or_default();
        first.contains("AMPLIFIER") && !first.starts_with("$ ") && screen.contains("running ·")
    });
    terminal.types("more");
    terminal.until("a draft", |screen| screen.lines().last() == Some("> more"));
    desk.file("go-on", "");
    terminal.sees("First.");
}

#[test]
fn where_no_shell_is_there_ctrl_z_stops_nothing() {
    let desk = waiting(json!("First."));
    let terminal = crate::chat::open(&desk, WIDE);
    terminal.types("a\u{1a}b");
    terminal.sees("> ab");
    terminal.types("\u{15}go\r");
    terminal.sees("running ·");
    terminal.types("c\u{1a}d");
    terminal.sees("> cd");
    desk.file("go-on", "");
    terminal.sees("First.");
}
