//! What the chat promises: everything that would be done is shown before it is, what was allowed can be taken back, and
//! nothing that was typed, put out or written is lost.

use serde_json::{Value, json};

use crate::chat::{WIDE, desk, open, plan};
use crate::desk::{Desk, read};
use crate::terminal::Terminal;

const TALL: (u16, u16) = (100, 50);

fn call(name: &str, input: Value) -> Value {
    json!({"tool_calls": [{"name": name, "input": input}]})
}

/// What stands behind the last of these words on the screen.
fn behind<'a>(screen: &'a str, word: &str) -> &'a str {
    screen.rsplit_once(word).map_or("", |(_, rest)| rest)
}

/// Text that was broken into lines, in one.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn asking(responses: Value) -> Desk {
    let tools = json!([{"module": "tool-filesystem"}, {"module": "tool-bash", "config": {"require_approval": "never"}}]);
    desk(responses, json!({"tools": tools, "hooks": [{"module": "hooks-approval"}]}))
}

#[test]
fn what_would_be_written_is_shown_to_the_last_character() {
    let content = "echo hi\n\u{1b}] ; curl evil ; echo \u{7}done\nlast \u{202e}x\n";
    let write = call("write_file", json!({"file_path": "a.sh", "content": content}));
    let edit = json!({"file_path": "b.sh", "old_string": "two", "new_string": "\u{1b}Prm -rf x\u{1b}\\ \u{1b}[8mhidden"});
    for term in ["xterm-256color", "dumb"] {
        let desk = asking(json!([write, call("edit_file", edit.clone()), "Word."]));
        desk.file("b.sh", "one\ntwo\n");
        let terminal = Terminal::open(&desk, &["--plan", "plan.json"], TALL, term);
        terminal.prompt();
        terminal.types("go\r");
        let screen = terminal.sees("y once");
        for line in ["+echo hi\n", "+^[] ; curl evil ; echo ^Gdone\n", "+last \\u{202e}x\n"] {
            assert!(screen.contains(line), "{term}: `{line}` in\n{screen}");
        }
        terminal.question();
        terminal.types("n\r");
        let screen = terminal.sees("? edit_file");
        assert!(screen.contains("+^[Prm -rf x^[\\ ^[[8mhidden"), "{term}:\n{screen}");
        terminal.question();
        terminal.types("n\r");
        terminal.sees("Word.");
        assert!(!desk.work().join("a.sh").exists());
    }
}

#[test]
fn a_command_is_shown_with_what_erases_on_a_terminal() {
    let command = "printf hello\u{8}\u{8}\u{8}\u{8}\u{8}rm -rf x";
    let desk = asking(json!([call("bash", json!({ "command": command })), "Word."]));
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    let screen = terminal.sees("y once");
    assert!(screen.contains("  printf hello^H^H^H^H^Hrm -rf x\n"), "{screen}");
    assert!(screen.contains("[not shown as it is; fingerprint "), "{screen}");
}

#[test]
fn what_is_forgotten_is_asked_about_again() {
    let bash = call("bash", json!({"command": "printf x"}));
    let desk = asking(json!([bash, "One.", bash, "Two.", bash, "Three."]));
    let terminal = open(&desk, TALL);
    terminal.types("go\r");
    terminal.question();
    terminal.types("s\r");
    terminal.sees("One.");
    terminal.prompt();
    terminal.types("again\r");
    let screen = terminal.sees("Two.");
    assert_eq!(screen.matches("? Run with `bash`").count(), 1, "{screen}");
    terminal.prompt();
    terminal.types("/allow forget\r");
    terminal.sees("it is asked about again");
    terminal.prompt();
    terminal.types("and again\r");
    let asked = |screen: &str| screen.matches("? Run with `bash`").count() == 2;
    terminal.until("the second question", asked);
    terminal.question();
    terminal.types("n\r");
    terminal.sees("Three.");
}

#[test]
fn changes_of_the_standard_bundle_can_be_allowed_for_longer() {
    let write = |name: &str| call("write_file", json!({"file_path": name, "content": "x\n"}));
    let desk = Desk::new();
    let responses =
        json!([write("a"), "One.", write("b"), "Two.", write("c"), "Three.", write("d"), "Four."]);
    let mut bundle = plan(responses, json!({"includes": ["foundation"], "bundle": {"name": "mine"}}));
    bundle.as_object_mut().unwrap().remove("session");
    desk.file("mine.yaml", bundle.to_string());
    let home = desk.path("").display().to_string();
    let variables = [("TERM", "xterm-256color"), ("HOME", home.as_str())];
    let terminal = Terminal::open_with(&desk, &["--bundle", "./mine.yaml"], TALL, &variables);
    terminal.prompt();
    terminal.types("go\r");
    let screen = terminal.sees("y once");
    assert!(screen.contains("y once  s session  a always  n no"), "{screen}");
    assert!(screen.contains("session, always (in this folder): every call of `write_file`"), "{screen}");
    terminal.question();
    terminal.types("s\r");
    terminal.sees("One.");
    terminal.prompt();
    terminal.types("again\r");
    terminal.sees("Two.");
    assert_eq!(read(&desk.work().join("b")), "x\n");
    terminal.prompt();
    terminal.types("/allow forget\r");
    terminal.prompt();
    terminal.types("more\r");
    terminal.sees("? write_file c");
    terminal.question();
    terminal.types("n\r");
    terminal.sees("Three.");
    assert!(!desk.work().join("c").exists());
    terminal.prompt();
    // Said beforehand, it means the same.
    terminal.types("/allow write_file\r");
    terminal.sees("`write_file` is not asked about in this session");
    terminal.prompt();
    terminal.types("last\r");
    terminal.sees("Four.");
    assert_eq!(read(&desk.work().join("d")), "x\n");
}

#[test]
fn what_a_failed_command_put_out_can_be_read() {
    let command = "echo OUT; echo ERR >&2; printf 'a\\033_apc\\nrest\\n'; false";
    let tools = json!([{"module": "tool-bash", "config": {"require_approval": "never"}}]);
    let desk = desk(json!([call("bash", json!({ "command": command })), "Word."]), json!({ "tools": tools }));
    let terminal = open(&desk, TALL);
    terminal.types("go\r");
    let screen = terminal.sees("Word.");
    assert!(screen.contains("Command ended with exit code 1") && !screen.contains("· 30 B"), "{screen}");
    terminal.prompt();
    terminal.types("/expand\r");
    let screen = terminal.sees("  ERR");
    let shown = behind(&screen, "\"command\":");
    for line in ["  OUT\n", "  aapc\n", "  rest\n", "returncode: 1"] {
        assert!(shown.contains(line), "`{line}` in\n{screen}");
    }
}

#[test]
fn a_file_that_is_there_is_not_replaced_unasked() {
    let desk = desk(json!(["Word."]), json!({}));
    desk.file("mine.md", "mine");
    let lines = "hi\n/export mine.md\n/save mine.md\n/save nosuch/x.json\n/export .\n/export mine.md --force\n/save\n/save\n";
    let ran = desk.amplifier_with_input(&["--plan", "plan.json"], lines.as_bytes());
    let told = unwrapped(&ran.stderr);
    let there = "mine.md` is there already; give another name, or say `--force` behind it to replace it";
    assert_eq!(told.matches(there).count(), 2, "{}", told);
    assert!(told.contains("nosuch`; make it first, or name a file elsewhere"), "{}", told);
    assert!(told.contains("is a folder; name a file in it"), "{}", told);
    assert!(read(&desk.work().join("mine.md")).contains("Word."), "{}", told);
    // Also under the usual name.
    assert_eq!(told.matches(".json` is there already").count(), 1, "{}", told);
    assert_eq!(ran.code, 1);
}

/// A desk whose model runs a program that does not end.
fn busy() -> Desk {
    let bash = call("bash", json!({"command": "exec sleep 600", "timeout": 600}));
    let tools = json!([{"module": "tool-bash", "config": {"require_approval": "never"}}]);
    desk(json!([bash, "Over."]), json!({ "tools": tools }))
}

#[test]
fn a_line_that_ctrl_c_takes_away_is_in_the_history() {
    let desk = desk(json!(["Word."]), json!({}));
    let mut terminal = open(&desk, WIDE);
    terminal.types("\u{3}");
    terminal.sees("Ctrl-C again or Ctrl-D leaves");
    terminal.prompt();
    // This one only takes the line away, and the next one is a first one again.
    terminal.types("a long thought\u{a}of two lines");
    terminal.sees("of two lines");
    terminal.types("\u{3}");
    let screen = terminal.prompt();
    assert!(!screen.contains("of two lines"), "{screen}");
    terminal.types("\u{3}");
    terminal
        .until("a first Ctrl-C again", |screen| screen.matches("Ctrl-C again or Ctrl-D leaves").count() == 2);
    terminal.prompt();
    terminal.types("\u{1b}[A");
    let screen = terminal.sees("of two lines");
    assert!(screen.contains("> a long thought"), "{screen}");
    terminal.types("\r");
    terminal.sees("Word.");
    terminal.prompt();
    terminal.types("\u{3}");
    terminal.until("a warning", |screen| behind(screen, "Word.").contains("Ctrl-C again or Ctrl-D leaves"));
    terminal.prompt();
    terminal.types("\u{3}");
    assert_eq!(terminal.end(), 130);
}

#[test]
fn what_is_typed_while_a_turn_works_is_in_the_history() {
    let desk = busy();
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    terminal.sees("running ·");
    terminal.types("and then this\r");
    terminal.sees("queued: and then this");
    terminal.types("\u{3}\u{3}");
    // It is put back on the line, and Ctrl-C takes it away again.
    terminal.until("the line", |screen| screen.lines().last() == Some("> and then this"));
    terminal.types("\u{3}");
    terminal.prompt();
    terminal.types("\u{1b}[A");
    terminal.until("the line", |screen| screen.lines().last() == Some("> and then this"));
    let screen = terminal.screen();
    assert!(screen.contains("stopped") && !screen.contains("0 in"), "{screen}");
}

/// A desk whose model runs something until a file is there, and then wants to do what is asked about.
fn asks_later() -> Desk {
    let slow =
        call("bash", json!({"command": "ls; while [ ! -e go-on ]; do sleep 0.02; done", "timeout": 600}));
    let ask = call("bash", json!({"command": "touch x"}));
    let tools = json!([{"module": "tool-bash", "config": {"require_approval": "never"}}]);
    let rules = json!([{"command": "touch*", "action": "ask"}]);
    let hooks = json!([{"module": "hooks-approval", "config": {"rules": rules, "policy_driven_only": true}}]);
    desk(json!([slow, ask, "Word."]), json!({"tools": tools, "hooks": hooks}))
}

const FIRST: &str = "a question: Enter first sends what you were typing, Esc sets it aside";

#[test]
fn what_was_being_typed_when_a_question_came_outlives_it() {
    let desk = asks_later();
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    terminal.sees("running ·");
    terminal.types("half a sen");
    terminal.sees("> half a sen");
    desk.file("go-on", "");
    terminal.sees(FIRST);
    terminal.types("\u{3}");
    terminal.until("what was typed", |screen| {
        screen.contains("stopped") && screen.lines().last() == Some("> half a sen")
    });
}

#[test]
fn what_was_being_typed_when_a_question_came_is_no_answer_to_it() {
    let desk = asks_later();
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    terminal.sees("running ·");
    terminal.types("are there an");
    terminal.sees("> are there an");
    desk.file("go-on", "");
    terminal.sees(FIRST);
    // The word is ended: it is a message, whatever its last letter would mean.
    terminal.types("y\r");
    terminal.sees("y once");
    assert!(!desk.work().join("x").exists());
    // Enter alone is no answer.
    terminal.types("\r");
    terminal.sees("please answer with y");
    terminal.question();
    terminal.types("n\r");
    let screen = terminal.sees("Word.");
    assert!(
        screen.contains("you did not allow it") && screen.contains("taken up: are there any"),
        "{screen}"
    );
    assert!(!desk.work().join("x").exists());
}

#[test]
fn what_was_being_typed_can_be_set_aside_for_a_question() {
    let desk = asks_later();
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    terminal.sees("running ·");
    terminal.types("half a sen");
    terminal.sees("> half a sen");
    desk.file("go-on", "");
    terminal.sees(FIRST);
    terminal.types("\u{1b}");
    terminal.question();
    terminal.types("y\r");
    terminal.sees("Word.");
    terminal.until("what was typed", |screen| screen.lines().last() == Some("> half a sen"));
    assert!(desk.work().join("x").exists());
}

#[test]
fn ctrl_c_takes_a_question_back_while_something_else_runs() {
    let both = json!({"tool_calls": [
        {"name": "bash", "input": {"command": "while [ ! -e go-on ]; do sleep 0.02; done", "timeout": 600}},
        {"name": "bash", "input": {"command": "touch x"}},
    ]});
    let tools = json!([{"module": "tool-bash", "config": {"require_approval": "never"}}]);
    let rules = json!([{"command": "touch*", "action": "ask"}]);
    let hooks = json!([{"module": "hooks-approval", "config": {"rules": rules, "policy_driven_only": true}}]);
    let desk = desk(json!([both, "Word."]), json!({"tools": tools, "hooks": hooks}));
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    terminal.sees("y once");
    terminal.types("\u{3}");
    let screen = terminal.sees("stopping; waiting for bash");
    assert!(!screen.contains("nobody answered"), "{screen}");
    terminal.until("no question", |screen| !screen.contains("y once"));
    desk.file("go-on", "");
    terminal.sees("stopped");
    terminal.prompt();
    assert!(!desk.work().join("x").exists());
}

#[test]
fn what_was_not_sent_is_told_and_in_the_history() {
    let desk = busy();
    let mut terminal = open(&desk, WIDE);
    terminal.types("go\r");
    terminal.sees("running ·");
    terminal.types("and then this\r");
    terminal.sees("queued: and then this");
    terminal.types("\u{4}");
    assert_eq!(terminal.end(), 0);
    let screen = terminal.screen();
    assert!(screen.contains("not sent, but in the history: and then this"), "{screen}");
    // Also what stood on the line when the terminal was closed, in a turn and at the prompt.
    let mut terminal = open(&desk, WIDE);
    terminal.types("go\r");
    terminal.sees("running ·");
    terminal.types("half of it");
    terminal.sees("> half of it");
    hang_up(&terminal);
    assert_eq!(terminal.end(), 129);
    let mut terminal = open(&desk, WIDE);
    terminal.types("\u{1b}[A");
    terminal.sees("> half of it");
    terminal.types("\u{15}at the prompt");
    terminal.sees("> at the prompt");
    hang_up(&terminal);
    assert_eq!(terminal.end(), 129);
    let terminal = open(&desk, WIDE);
    terminal.types("\u{1b}[A");
    terminal.sees("> at the prompt");
}

fn hang_up(terminal: &Terminal) {
    let chat = terminal.pid().to_string();
    assert!(std::process::Command::new("kill").args(["-HUP", &chat]).status().unwrap().success());
}

#[test]
fn after_a_stop_messages_are_put_back_and_commands_are_done() {
    let desk = busy();
    let terminal = open(&desk, TALL);
    terminal.types("go\r");
    terminal.sees("running ·");
    for line in ["one more thing\r", "/cost\r", "/etc/hosts has what?\r"] {
        terminal.types(line);
    }
    terminal.sees("queued: /etc/hosts has what?");
    terminal.types("\u{3}\u{3}");
    let screen = terminal
        .until("what was typed", |screen| screen.ends_with("> one more thing\n  /etc/hosts has what?"));
    assert!(screen.contains("> /cost\n") && screen.contains("total"), "{screen}");
}

#[test]
fn a_resumed_session_says_what_it_is_made_of_and_how_far_it_goes() {
    let desk = desk(json!(["One.", "Two.", "Three."]), json!({}));
    let said = desk.amplifier_with_input(&["--plan", "plan.json"], b"a\nb\nc\n/rewind 2\n/status\n");
    let told = "turns       2 (1 more is no part of the conversation now)";
    assert!(said.stderr.contains(told), "{}", said.stderr);
    let id = desk.sessions()[0].file_name().unwrap().to_string_lossy().into_owned();
    let again = desk.amplifier_with_input(&["resume", &id], b"/status\n");
    assert!(
        again.stderr.contains("made of     plan.json") || again.stderr.contains("/plan.json\n"),
        "{}",
        again.stderr
    );
    assert!(again.stderr.contains(told), "{}", again.stderr);
}

#[test]
fn words_that_a_command_does_not_take_are_refused() {
    let desk = desk(json!(["Word."]), json!({}));
    let ran =
        desk.amplifier_with_input(&["--plan", "plan.json"], b"/quit now\n/status foo\n/think maybe\nhi\n");
    let said = unwrapped(&ran.stderr);
    assert_eq!(ran.stdout, "Word.\n", "{}", said);
    for told in ["`/quit` takes nothing", "`/status` takes nothing", "`/think on`, `/think off` or alone"] {
        assert!(said.contains(told), "{}", said);
    }
}

#[test]
fn tab_finds_names_with_blanks_and_is_quiet_where_there_is_nothing() {
    let desk = desk(json!(["Word."]), json!({}));
    desk.file("sub dir/deep file.md", "DEEP");
    let terminal = open(&desk, WIDE);
    terminal.types("see @sub\t");
    terminal.sees("> see @\"sub dir/");
    terminal.types("\t");
    terminal.sees("> see @\"sub dir/deep file.md\"");
    terminal.types("@nothing\tx");
    let screen = terminal.sees("@nothingx");
    assert!(!screen.contains("NO RECORDS"), "{screen}");
    terminal.types("\u{15}see @\"sub dir/deep file.md\"\r");
    terminal.sees("Word.");
    terminal.prompt();
    let said = read(&desk.sessions()[0].join("transcript.jsonl"));
    assert!(said.contains("DEEP"), "{said}");
}
