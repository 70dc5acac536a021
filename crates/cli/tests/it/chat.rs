//! The chat in a terminal: typing, streaming, questions, stopping, completing; in a dumb terminal and in a pipe.

use serde_json::{Value, json};

use crate::desk::{Desk, git_variables};
use crate::terminal::Terminal;

pub const WIDE: (u16, u16) = (80, 24);
const NARROW: (u16, u16) = (40, 24);
const TERM: &str = "xterm-256color";

/// A plan whose model says these things, one after the other.
pub fn plan(responses: Value, more: Value) -> Value {
    let mut plan = json!({
        "session": {"orchestrator": {"module": "loop-streaming"}, "context": {"module": "context-simple"}},
        "providers": [{"module": "provider-mock", "config": {"responses": responses}}],
    });
    plan.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    plan
}

pub fn desk(responses: Value, more: Value) -> Desk {
    let desk = Desk::new();
    desk.plan("plan.json", &plan(responses, more));
    desk
}

/// A desk whose model runs something until the file `go-on` is there, and then says these things.
pub fn waiting(says: Value) -> Desk {
    let bash = json!({"command": "while [ ! -e go-on ]; do sleep 0.02; done", "timeout": 600});
    let mut responses = vec![json!({"tool_calls": [{"name": "bash", "input": bash}]})];
    responses.extend(says.as_array().unwrap().iter().cloned());
    let tools = json!([{"module": "tool-bash", "config": {"require_approval": "never"}}]);
    desk(json!(responses), json!({ "tools": tools }))
}

pub fn open(desk: &Desk, size: (u16, u16)) -> Terminal {
    let home = desk.path("").display().to_string();
    let variables = git_variables(&desk.path("user"));
    let path = &variables.iter().find(|(name, _)| name == "PATH").unwrap().1;
    let variables = [("TERM", TERM), ("HOME", home.as_str()), ("PATH", path.as_str())];
    let terminal = Terminal::open_with(desk, &["--plan", "plan.json"], size, &variables);
    terminal.prompt();
    terminal
}

/// The screen without what differs from run to run.
pub fn steady(desk: &Desk, screen: &str) -> String {
    let mut text = screen.to_owned();
    for session in desk.sessions() {
        let id = session.file_name().unwrap().to_string_lossy().into_owned();
        text = text.replace(&id, "SESSION").replace(&id[..13], "SESSION");
    }
    text = text.replace(&desk.work().canonicalize().unwrap().display().to_string(), "WORK");
    // Results name the folder, so their sizes differ too.
    let sized = |line: &str| match line.rsplit_once(" · ") {
        Some((before, size)) if size.contains(" #") => {
            format!("{before} · SIZE{}", &size[size.find(" #").unwrap()..])
        }
        _ => line.to_owned(),
    };
    without_times(&text.lines().map(sized).collect::<Vec<_>>().join("\n"))
}

/// Numbers of seconds and minutes differ from run to run.
fn without_times(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, digits) = rest.split_at(at);
        let length = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
        let (number, after) = digits.split_at(length);
        let is_word = before.ends_with(|c: char| c.is_alphanumeric());
        let is_time = after.starts_with(['s', 'm']) && !after[1..].starts_with(|c: char| c.is_alphanumeric());
        out.push_str(before);
        let (shown, left) = if is_time && !is_word { ("TIME", &after[1..]) } else { (number, after) };
        out.push_str(shown);
        rest = left;
    }
    out + rest
}

#[test]
fn a_prompt_is_answered_and_the_way_back_is_told() {
    let desk = desk(json!(["Hello **there**."]), json!({}));
    let mut terminal = open(&desk, WIDE);
    terminal.types("hi\r");
    terminal.sees("Hello there.");
    terminal.prompt();
    terminal.types("\u{4}");
    assert_eq!(terminal.end(), 0);
    let id = desk.sessions()[0].file_name().unwrap().to_string_lossy().into_owned();
    assert!(terminal.screen().contains(&id), "{}", terminal.screen());
}

#[test]
fn an_answer_is_seen_while_it_forms() {
    let mut slow = plan(json!([{"chunks": ["first ", "second ", "third"]}]), json!({}));
    slow["session"]["orchestrator"]["config"] = json!({"stream_delay": 2.0});
    let desk = Desk::new();
    desk.plan("plan.json", &slow);
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    let screen = terminal.sees("first");
    assert!(!screen.contains("third"), "{screen}");
    terminal.sees("first second third");
    terminal.prompt();
}

#[test]
fn an_interrupt_brings_the_prompt_back_at_once() {
    // Far longer than anybody waits for the prompt below.
    let desk = desk(json!([{"text": "late", "delay_ms": 600_000}]), json!({}));
    let mut terminal = open(&desk, WIDE);
    terminal.types("go\r");
    terminal.sees("working");
    terminal.types("\u{3}");
    terminal.sees("stopped");
    terminal.prompt();
    terminal.types("/mode\r");
    terminal.sees("normal");
    terminal.prompt();
    terminal.types("\u{3}");
    terminal.sees("Ctrl-C again");
    terminal.types("\u{3}");
    assert_eq!(terminal.end(), 130);
}

#[test]
fn a_write_is_asked_about_with_its_diff_and_shown_when_it_is_done() {
    let call = |name: &str, input: Value| json!({"tool_calls": [{"name": name, "input": input}]});
    let read = call("read_file", json!({"file_path": "a.txt"}));
    let write = call("write_file", json!({"file_path": "a.txt", "content": "one\n2\n"}));
    let desk = desk(
        json!([read, write, "Done.", write, "I did not."]),
        json!({"tools": [{"module": "tool-filesystem"}], "hooks": [{"module": "hooks-approval"}]}),
    );
    desk.file("a.txt", "one\ntwo\n");
    let terminal = open(&desk, WIDE);
    terminal.types("change it\r");
    terminal.sees("y once");
    terminal.prompt();
    insta::assert_snapshot!("chat_question", steady(&desk, &terminal.screen()));
    // Not an answer: asked again, and nothing was done.
    terminal.types("perhaps\r");
    terminal.sees("please answer");
    assert_eq!(std::fs::read_to_string(desk.work().join("a.txt")).unwrap(), "one\ntwo\n");
    terminal.question();
    terminal.types("y\r");
    terminal.sees("Done.");
    terminal.prompt();
    assert_eq!(std::fs::read_to_string(desk.work().join("a.txt")).unwrap(), "one\n2\n");
    desk.file("a.txt", "three\n");
    terminal.types("again\r");
    terminal.until("the second question", |screen| {
        screen.matches("y once").count() == 1 && screen.contains("-three")
    });
    terminal.types("\r");
    // An empty line is no answer either.
    terminal.until("the question again", |screen| screen.contains("please answer with y, s, a or n\ny once"));
    terminal.types("n\r");
    terminal.sees("I did not.");
    assert_eq!(std::fs::read_to_string(desk.work().join("a.txt")).unwrap(), "three\n");
}

#[test]
fn what_is_allowed_always_is_not_asked_about_again() {
    let write = |name: &str| json!({"tool_calls": [{"name": "write_file", "input": {"file_path": name, "content": "x"}}]});
    let desk = desk(
        json!([write("a"), "First.", write("b"), "Second."]),
        json!({"tools": [{"module": "tool-filesystem"}], "hooks": [{"module": "hooks-approval"}]}),
    );
    let mut terminal = open(&desk, WIDE);
    terminal.types("go\r");
    terminal.question();
    terminal.types("a\r");
    terminal.sees("First.");
    terminal.prompt();
    terminal.types("/quit\r");
    assert_eq!(terminal.end(), 0);
    std::fs::remove_file(desk.work().join("a")).unwrap();
    // Another session, in the same folder.
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    let screen = terminal.sees("First.");
    assert!(!screen.contains("y once") && desk.work().join("a").exists(), "{screen}");
    terminal.prompt();
    terminal.types("/allow\r");
    terminal.sees("every call (always, in this folder)");
}

#[test]
fn a_session_is_forked_left_and_gone_on_with() {
    let desk = desk(json!(["one", "two"]), json!({}));
    let mut terminal = open(&desk, WIDE);
    terminal.types("first\r");
    terminal.sees("one");
    terminal.prompt();
    terminal.types("/fork\r");
    terminal.sees("a copy up to turn 1");
    terminal.prompt();
    terminal.types("\u{4}");
    assert_eq!(terminal.end(), 0);
    let fork = desk.sessions()[1].file_name().unwrap().to_string_lossy().into_owned();
    let terminal = Terminal::open(&desk, &["resume", &fork], WIDE, TERM);
    terminal.prompt();
    terminal.types("/rewind\r");
    terminal.sees("1  first");
}

#[test]
fn what_is_typed_while_a_turn_runs_is_taken_up_at_its_next_step() {
    let desk = waiting(json!(["I heard you."]));
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    terminal.sees("running ·");
    terminal.types("be quick\r");
    terminal.sees("queued: be quick");
    desk.file("go-on", "");
    terminal.sees("taken up: be quick");
    terminal.sees("I heard you.");
    terminal.prompt();
}

#[test]
fn what_comes_too_late_for_a_turn_is_the_next_prompt() {
    let desk = waiting(json!(["one", "two"]));
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    terminal.sees("running ·");
    terminal.types("/help clear\r");
    terminal.sees("after this turn: /help clear");
    desk.file("go-on", "");
    terminal.sees("one");
    terminal.sees("forget the conversation");
    terminal.prompt();
}

#[test]
fn commands_and_paths_are_completed() {
    let desk = desk(json!(["seen"]), json!({}));
    desk.file("src/main.rs", "").file("src/mind.rs", "");
    let terminal = open(&desk, WIDE);
    terminal.types("look at @src/mai\t");
    terminal.sees("look at @src/main.rs");
    terminal.types("\u{15}/comp\t");
    terminal.sees("/compact");
    terminal.types("\u{15}");
    terminal.prompt();
}

#[test]
fn an_unknown_command_is_told_and_never_sent() {
    let desk = desk(json!(["must not be seen"]), json!({}));
    let terminal = open(&desk, WIDE);
    terminal.types("/modle x\r");
    let screen = terminal.sees("did you mean `/model`?");
    assert!(!screen.contains("must not be seen"));
    terminal.prompt();
}

/// An answer with everything in it, after a tool call and a thought.
fn rich() -> Desk {
    let answer = "## Result\n\nThe function `add` was **wrong**:\n\n```rust\nfn add(a: u32, b: u32) -> u32 {\n    a + b // was a - b\n}\n```\n\n\
        - it subtracts, which nobody noticed for a long time\n- tests were missing\n\n| file | lines |\n|---|--:|\n| src/lib.rs | 12 |\n";
    let edit = json!({"file_path": "lib.rs", "old_string": "a - b", "new_string": "a + b"});
    let read = json!({"file_path": "lib.rs"});
    let desk = desk(
        json!([
            {"thinking": "The person wants the bug found, so I look at the file first.", "tool_calls": [{"name": "read_file", "input": read}]},
            {"tool_calls": [{"name": "edit_file", "input": edit}]},
            {"text": answer, "chunks": 9, "usage": {"input_tokens": 1234, "output_tokens": 56, "cost_usd": "0.0123"}},
        ]),
        json!({"tools": [{"module": "tool-filesystem"}]}),
    );
    desk.file("lib.rs", "fn add(a: u32, b: u32) -> u32 {\n    a - b\n}\n");
    desk
}

#[test]
fn a_turn_reads_well_in_a_terminal_of_the_usual_size() {
    let desk = rich();
    let terminal = open(&desk, (80, 50));
    terminal.types("fix add\r");
    terminal.sees("in · ");
    insta::assert_snapshot!("chat_80", steady(&desk, &terminal.prompt()));
}

#[test]
fn a_turn_reads_well_in_a_narrow_terminal() {
    let desk = rich();
    let terminal = open(&desk, (NARROW.0, 60));
    terminal.types("fix add\r");
    terminal.sees("in · ");
    insta::assert_snapshot!("chat_40", steady(&desk, &terminal.prompt()));
}

#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let desk = desk(json!(["Hello **there**."]), json!({}));
    let mut terminal = Terminal::open(&desk, &["--plan", "plan.json"], WIDE, "dumb");
    terminal.prompt();
    terminal.types("hi\n");
    terminal.sees("Hello there.");
    terminal.types("exit\n");
    assert_eq!(terminal.end(), 0);
    assert!(!terminal.bytes().contains(&0x1b), "{}", String::from_utf8_lossy(&terminal.bytes()));
}

#[test]
fn in_a_pipe_each_line_is_a_prompt() {
    let desk = desk(json!(["**one**", "two"]), json!({}));
    let ran = desk.amplifier_with_input(&["chat", "--plan", "plan.json"], b"first\n\nsecond\n");
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "**one**\ntwo\n", ""));
    let ran = desk.amplifier_with_input(&["--plan", "plan.json"], b"/nonsense\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("there is no command `/nonsense`"), "{}", ran.stderr);
}

#[test]
fn what_is_said_before_and_after_a_tool_are_lines_of_their_own_in_a_pipe() {
    let call =
        json!({"text": "I look.", "tool_calls": [{"id": "1", "name": "list_directory", "arguments": {}}]});
    let desk = desk(json!([call, "I saw it."]), json!({"tools": [{"module": "tool-filesystem"}]}));
    let ran = desk.amplifier_with_input(&["--plan", "plan.json"], b"look\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "I look.\nI saw it.\n"), "{}", ran.seen());
}

#[test]
fn flags_of_the_chat_before_a_command_are_an_error() {
    let desk = Desk::new();
    let ran = desk.amplifier(&["--bundle", "x", "run", "hi"]);
    let told = "error: `--bundle` stands before `run`, which does not see it there\n  hint: write `amplifier run --bundle …`\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (2, told));
    // The hint is only given where it works.
    let ran = desk.amplifier(&["--strict", "bundle", "validate", "x"]);
    assert!(ran.stderr.contains("hint: write `amplifier bundle validate --strict …`"), "{}", ran.stderr);
    let ran = desk.amplifier(&["--model", "x", "config", "show"]);
    assert!(ran.stderr.contains("hint: leave it out"), "{}", ran.stderr);
    let ran = desk.amplifier(&["--home", "elsewhere", "module", "list"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}
