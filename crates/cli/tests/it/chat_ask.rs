//! Questions in the chat: what is asked is exactly what would be done, and what is answered holds as long as it says.

use serde_json::{Value, json};

use crate::chat::{WIDE, desk, open};
use crate::desk::{Desk, read};

fn call(name: &str, input: Value) -> Value {
    json!({"tool_calls": [{"name": name, "input": input}]})
}

/// A desk whose model makes these calls, each followed by a word, and where every change is asked about.
fn asking(calls: &[Value], policy: Value) -> Desk {
    let mut responses = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        responses.extend([call.clone(), json!(format!("Word {at}."))]);
    }
    let tools =
        json!([{"module": "tool-filesystem"}, {"module": "tool-bash"}, {"module": "tool-apply-patch"}]);
    let hooks = json!([{"module": "hooks-approval", "config": policy}]);
    desk(json!(responses), json!({"tools": tools, "hooks": hooks}))
}

#[test]
fn a_command_is_shown_with_its_blanks_and_what_an_answer_covers() {
    let script = "python3 - <<'E'\nfor x in [1]:\n    if x:\n        print(x)\nE";
    let desk = asking(&[call("bash", json!({ "command": script }))], json!({}));
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    let screen = terminal.sees("y once");
    for line in ["  for x in [1]:\n", "      if x:\n", "          print(x)\n"] {
        assert!(screen.contains(line), "{screen}");
    }
    assert!(screen.contains("session, always (in this folder): exactly this call"), "{screen}");
    assert!(!screen.contains("Allow always"), "{screen}");
    terminal.question();
    terminal.types("n\r");
    let screen = terminal.sees("Word 0.");
    assert!(screen.contains("you did not allow it") && !screen.contains("Denied by hook"), "{screen}");
    assert!(screen.contains("not run #1"), "{screen}");
}

#[test]
fn a_patch_and_several_edits_are_asked_about_and_shown_with_their_diffs() {
    let patch = "*** Begin Patch\n*** Update File: a.py\n@@\n def f():\n-    return 1\n+    return 2\n*** Add File: b.py\n+x = 1\n*** End Patch";
    let edits = json!({"file_path": "a.py", "edits": [{"old_string": "return 2", "new_string": "return 3"}]});
    let calls = [call("apply_patch", json!({ "patch": patch })), call("multi_edit", edits)];
    let desk = asking(&calls, json!({}));
    desk.file("a.py", "def f():\n    return 1\n");
    let terminal = open(&desk, (80, 50));
    terminal.types("patch\r");
    let screen = terminal.sees("y once");
    let asked = [
        "? apply_patch a.py, b.py",
        "  a.py\n",
        "   def f():\n",
        "  -    return 1\n",
        "  +    return 2\n",
        "  b.py: a new file\n",
        "  +x = 1\n",
        "session, always (in this folder): every call of `apply_patch`",
    ];
    for line in asked {
        assert!(screen.contains(line), "`{line}` in\n{screen}");
    }
    terminal.question();
    terminal.types("y\r");
    let screen = terminal.sees("Word 0.");
    let after = screen.split("allowed once").nth(1).unwrap();
    assert!(after.contains("✓ apply_patch  a.py, b.py") && !after.contains("Begin Patch"), "{screen}");
    assert!(after.contains("  -    return 1") && after.contains("  +x = 1"), "{screen}");
    assert_eq!(read(&desk.work().join("a.py")), "def f():\n    return 2\n");
    terminal.prompt();
    terminal.types("edit\r");
    let screen = terminal.sees("? multi_edit a.py");
    assert!(screen.contains("  +    return 3"), "{screen}");
    terminal.question();
    terminal.types("y\r");
    terminal.sees("Word 1.");
    assert_eq!(read(&desk.work().join("a.py")), "def f():\n    return 3\n");
}

#[test]
fn a_long_question_is_seen_to_its_end() {
    let content: String = (0..100).map(|at| format!("line {at}\n")).collect();
    let desk = asking(&[call("write_file", json!({"file_path": "long.txt", "content": content}))], json!({}));
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    let screen = terminal.sees("v view all first");
    assert!(screen.contains("+line 99") && !screen.contains("+line 50"), "{screen}");
    terminal.types("v\r");
    terminal.sees("y once");
    assert!(!desk.work().join("long.txt").exists());
    terminal.question();
    terminal.types("y\r");
    terminal.sees("Word 0.");
    assert_eq!(read(&desk.work().join("long.txt")), content);
}

/// Part C of issue 25: the end of a long command was behind a key, and `y` allowed it unseen.
#[test]
fn a_long_command_is_allowed_only_after_it_was_shown_whole() {
    for (middle, rows) in [("echo a line\n".repeat(40), 24), (format!("echo {}", " ".repeat(3_000)), 24)] {
        let command = format!("{middle}; touch ran-{rows}");
        let command = command.replace("\n;", "\n");
        let desk = asking(&[call("bash", json!({ "command": command }))], json!({}));
        let terminal = open(&desk, (80, rows));
        terminal.types("go\r");
        let screen = terminal.question();
        // Its end is seen at once.
        assert!(
            screen.contains("touch ran-") && screen.contains(" lines left out; `v` shows all"),
            "{screen}"
        );
        terminal.types("y\r");
        let screen = terminal.sees("not allowed yet: part of it was left out");
        assert!(!desk.work().join(format!("ran-{rows}")).exists(), "{screen}");
        terminal.types("v\r");
        terminal.sees("y once");
        terminal.types("y\r");
        terminal.sees("Word 0.");
        assert!(desk.work().join(format!("ran-{rows}")).exists(), "{}", terminal.screen());
    }
}

#[test]
fn what_is_dangerous_in_a_command_is_named_below_the_question() {
    let command = format!("{}sudo rm x; echo done\n{}", "echo a\n".repeat(20), "echo b\n".repeat(20));
    let desk = asking(&[call("bash", json!({ "command": command }))], json!({}));
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    let screen = terminal.question();
    assert!(screen.contains("lines left out") && screen.contains("`sudo rm x`"), "{screen}");
    terminal.types("n\r");
    terminal.sees("Word 0.");
}

#[test]
fn an_absurd_time_of_a_question_breaks_nothing() {
    let desk = asking(&[call("bash", json!({"command": "true"}))], json!({"default_timeout": 1e19}));
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    let screen = terminal.question();
    assert!(screen.contains("· in 4m 5"), "the usual time: {screen}");
    terminal.types("y\r");
    terminal.sees("Word 0.");
}

#[test]
fn a_hook_that_denies_it_keeps_the_conversation_as_it_was() {
    let gate =
        json!({"event": "context:pre_compact", "command": "echo 'not this one' >&2; exit 2", "timeout": 60});
    let hooks = json!([{"module": "hooks-shell", "config": {"hooks": [gate]}}]);
    let desk = desk(json!(["First.", "A summary."]), json!({ "hooks": hooks }));
    let terminal = open(&desk, WIDE);
    terminal.types("hi\r");
    terminal.sees("First.");
    terminal.prompt();
    terminal.types("/compact\r");
    let screen = terminal.sees("a hook denied it");
    assert!(screen.contains("not this one") && !screen.contains("A summary."), "{screen}");
    terminal.prompt();
    terminal.types("go on\r");
    // It is the next answer of the script: no model was asked for a summary.
    terminal.sees("A summary.");
}

#[test]
fn what_is_allowed_for_the_session_ends_with_it() {
    let write = |name: &str| call("write_file", json!({"file_path": name, "content": "x"}));
    let desk = asking(&[write("a"), write("b")], json!({}));
    let mut terminal = open(&desk, WIDE);
    terminal.types("go\r");
    terminal.sees("session, always (in this folder): every call of `write_file`");
    terminal.question();
    terminal.types("s\r");
    terminal.sees("allowed for this session");
    terminal.sees("Word 0.");
    terminal.prompt();
    terminal.types("again\r");
    let screen = terminal.sees("Word 1.");
    assert!(desk.work().join("b").exists(), "{screen}");
    terminal.prompt();
    terminal.types("/allow\r");
    terminal.sees("every call (this session)");
    terminal.prompt();
    terminal.types("/quit\r");
    assert_eq!(terminal.end(), 0);
    std::fs::remove_file(desk.work().join("a")).unwrap();
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    terminal.question();
    terminal.types("n\r");
    terminal.sees("Word 0.");
    assert!(!desk.work().join("a").exists());
}

#[test]
fn what_is_allowed_for_a_session_is_not_for_another_one() {
    let write = |name: &str| call("write_file", json!({"file_path": name, "content": "x"}));
    let desk = asking(&[write("a"), write("b")], json!({}));
    assert_eq!(desk.amplifier(&["run", "--plan", "plan.json", "--approve", "none", "hi"]).code, 0);
    let other = desk.sessions()[0].file_name().unwrap().to_string_lossy().into_owned();
    let terminal = open(&desk, (120, 50));
    let allow = || {
        terminal.types("go\r");
        terminal.question();
        terminal.types("s\r");
        terminal.sees("allowed for this session");
        terminal.prompt();
    };
    // A copy is another session too.
    for (command, there) in
        [("/fork".to_owned(), "this is a copy"), (format!("/resume {other}"), "this is session")]
    {
        allow();
        assert!(desk.work().join("a").exists());
        std::fs::remove_file(desk.work().join("a")).unwrap();
        terminal.types(&format!("{command}\r"));
        terminal.sees(there);
        terminal.sees("is asked about again");
        terminal.prompt();
        terminal.types("/allow\r");
        terminal.sees("everything that asks is asked about");
        terminal.prompt();
        terminal.types("\u{c}");
        terminal.prompt();
    }
    terminal.types("go\r");
    terminal.question();
    terminal.types("n\r");
    terminal.sees("you did not allow it");
    terminal.prompt();
    assert!(!desk.work().join("a").exists());
}

#[test]
fn what_is_not_offered_is_not_taken() {
    let write = |name: &str| call("write_file", json!({"file_path": name, "content": "x"}));
    let desk = asking(&[write("a"), write("b")], json!({"remember": "once"}));
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    let screen = terminal.sees("y once");
    assert!(!screen.contains("a always") && !screen.contains("s session"), "{screen}");
    terminal.question();
    terminal.types("a\r");
    terminal.sees("please answer with y or n");
    assert!(!desk.work().join("a").exists());
    terminal.question();
    terminal.types("y\r");
    terminal.sees("Word 0.");
    terminal.prompt();
    terminal.types("again\r");
    terminal.sees("? write_file b");
    terminal.question();
    terminal.types("n\r");
    terminal.sees("Word 1.");
    assert!(!desk.work().join("b").exists());
    assert!(!desk.home().join("state/approvals.json").exists());
}

#[test]
fn the_time_of_a_tool_is_its_own_and_not_that_of_the_person() {
    let desk = asking(&[call("bash", json!({"command": "true"}))], json!({}));
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    // The clock of the question says how long it waits already.
    let thinks = |screen: &str| (40..58).any(|left| screen.contains(&format!("in 4m {left}s: no")));
    terminal.until("a person who thinks for two seconds", thinks);
    terminal.question();
    terminal.types("y\r");
    let screen = terminal.sees("Word 0.");
    let line = screen.lines().find(|line| line.starts_with("✓ bash")).unwrap().to_owned();
    let time = line.split_whitespace().find(|word| word.ends_with('s') && word.contains('.')).unwrap();
    assert!(time.trim_end_matches('s').parse::<f64>().unwrap() < 2.0, "{line}");
}

#[test]
fn a_question_that_is_higher_than_the_screen_can_be_answered_on_a_small_one() {
    let command: String = (0..40).map(|at| format!("echo step {at} of them\n")).collect();
    let desk = asking(&[call("bash", json!({ "command": command }))], json!({}));
    for size in [(40, 12), (80, 24)] {
        let terminal = open(&desk, size);
        terminal.types("go\r");
        let screen = terminal.question();
        // It begins with what is asked, says how much is left out, and every key that can be used is seen.
        assert!(screen.contains("? Run with `bash`:") && screen.contains("echo step 0 of them"), "{screen}");
        assert!(screen.contains(" lines left out; `v` shows all"), "{screen}");
        for key in ["n no", "v view all first", "· in 4m 5"] {
            assert!(screen.contains(key), "`{key}` in\n{screen}");
        }
        assert!(!screen.contains("y once") && screen.contains("exactly this call"), "{screen}");
        terminal.types("v\r");
        let all = |screen: &str| screen.contains("echo step 39 of them") && screen.contains("y once");
        let screen =
            terminal.until("its end and its keys", |screen| all(screen) && screen.ends_with(": no\n>"));
        for key in ["y once", "s session", "a always", "n no", "v view all", "· in 4m 5"] {
            assert!(screen.contains(key), "`{key}` in\n{screen}");
        }
        terminal.types("n\r");
        terminal.sees("you did not allow it");
    }
}
