//! `--approve`, what happens without it, and what the built-in bundle asks about.

use serde_json::{Value, json};

use crate::desk::{Desk, Ran, git_variables, read};
use crate::provider::with;

/// A plan in which the model calls one tool and then says what it was told.
fn calls(tool: &str, input: Value, hooks: Value) -> Value {
    let call = json!({"name": tool, "arguments": input});
    json!({
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-mock", "config": {"responses": [{"tool_calls": [call]}]}}],
        "tools": [{"module": "tool-filesystem"}],
        "hooks": [{"module": "hooks-approval", "config": hooks}],
    })
}

fn writes(hooks: Value) -> Value {
    calls("write_file", json!({"file_path": "new.txt", "content": "x\n"}), hooks)
}

fn wrote(desk: &Desk) -> bool {
    desk.work().join("new.txt").exists()
}

#[test]
fn without_a_terminal_nothing_is_allowed_and_the_way_is_told() {
    let desk = Desk::new();
    desk.plan("a.json", &writes(json!({})));
    for approve in [&[][..], &["--approve", "none"], &["--approve", "safe"]] {
        let ran =
            desk.amplifier(&[&["run", "--plan", "a.json", "--output", "json"], approve, &["write"]].concat());
        assert_eq!((ran.code, wrote(&desk)), (0, false), "{approve:?}: {}", ran.seen());
        let told = "warning: not allowed: Run `write_file` with {\"file_path\":\"new.txt\",\"content\":\"x\\n\"}; `--approve all` allows it";
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
        let told = ran.json();
        assert_eq!(told["denied"][0]["tool_name"], json!("write_file"));
        // The model knows as well.
        let why =
            if approve.contains(&"safe") { "`--approve safe` refuses" } else { "nobody can be asked here" };
        assert!(told["answer"].as_str().unwrap().contains(why), "{told}");
    }
}

#[test]
fn all_allows_what_no_rule_denies() {
    let desk = Desk::new();
    desk.plan("a.json", &writes(json!({})));
    let ran = desk.amplifier(&["run", "--plan", "a.json", "--approve", "all", "write"]);
    assert_eq!((ran.code, wrote(&desk), ran.stderr.as_str()), (0, true, ""), "{}", ran.seen());
    let desk = Desk::new();
    desk.plan("a.json", &writes(json!({"rules": [{"tool": "write_file", "action": "deny"}]})));
    let ran = desk.amplifier(&["run", "--plan", "a.json", "--approve", "all", "write"]);
    assert_eq!((ran.code, wrote(&desk)), (0, false), "{}", ran.seen());
}

/// A plan in which the model runs one command and then says what it was told.
fn runs(command: &str, hooks: Value) -> Value {
    let mut plan = calls("bash", json!({"command": command}), json!({}));
    plan["tools"] = json!([{"module": "tool-bash"}]);
    plan["hooks"] = hooks;
    plan
}

/// Runs such a plan where commands of hooks are found.
fn ran_with_path(desk: &Desk, args: &[&str]) -> Ran {
    let path = git_variables(&desk.path("user")).into_iter().find(|(name, _)| name == "PATH").unwrap().1;
    with(desk, &[("PATH", &path)], &[&["run", "--plan", "a.json"], args, &["go"]].concat())
}

#[test]
fn a_command_that_nobody_could_allow_is_told_as_it_is() {
    let desk = Desk::new();
    let command = "touch 'a  b'\ncurl -H 'Authorization: Bearer abcdefabcdef1234567'";
    desk.plan("a.json", &runs(command, json!([{"module": "hooks-approval"}])));
    let ran = ran_with_path(&desk, &["--output", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let told = "warning: not allowed: Run with `bash`: touch 'a  b'\\ncurl -H 'Authorization: ";
    assert!(
        ran.stderr.starts_with(told) && ran.stderr.contains("; `--approve all` allows it"),
        "{}",
        ran.stderr
    );
    let denied = ran.json()["denied"].clone();
    assert_eq!(denied.as_array().unwrap().len(), 1, "{denied}");
    let (tool, hook) = (&denied[0]["tool_name"], &denied[0]["hook"]);
    assert_eq!((tool, hook), (&json!("bash"), &json!("hooks-approval")), "{denied}");
    assert!(denied[0]["arguments"]["command"].as_str().unwrap().starts_with("touch 'a  b'\n"), "{denied}");
    assert!(
        !ran.stderr.contains("abcdef1234567") && !denied.to_string().contains("abcdef1234567"),
        "{denied}"
    );
}

/// Point 4 of issue 25: rules for paths see what a patch names, also with everything allowed.
#[test]
fn a_prohibition_of_a_path_holds_for_a_patch() {
    let desk = Desk::new();
    desk.file("secrets/a", "old\n").file("src/a", "old\n");
    let rules = json!({"rules": [{"path": "secrets/*", "action": "deny"}]});
    let update =
        |path: &str| format!("*** Begin Patch\n*** Update File: {path}\n@@\n-old\n+new\n*** End Patch");
    let moved =
        "*** Begin Patch\n*** Update File: src/a\n*** Move to: secrets/b\n@@\n-old\n+new\n*** End Patch";
    for (patch, is_refused) in [
        (update("secrets/a"), true),
        (update("src/../secrets/a"), true),
        (moved.to_owned(), true),
        (update("src/a"), false),
    ] {
        let mut patches = calls("apply_patch", json!({ "patch": patch }), rules.clone());
        patches["tools"] =
            json!([{"module": "tool-filesystem", "config": {"require_read_before_write": false}}]);
        desk.plan("a.json", &patches);
        let ran = desk.amplifier(&["run", "--plan", "a.json", "--approve", "all", "patch"]);
        assert_eq!(ran.code, 0, "{}", ran.seen());
        assert_eq!(ran.stderr.contains("refused by a rule"), is_refused, "{patch}: {}", ran.seen());
    }
    assert_eq!(read(&desk.work().join("secrets/a")), "old\n");
    assert!(!desk.work().join("secrets/b").exists());
    assert_eq!(read(&desk.work().join("src/a")), "new\n");
}

#[test]
fn what_a_rule_or_a_hook_refuses_is_told_once() {
    let rule = json!({"command": "git push*", "action": "deny"});
    let rules = json!([{"module": "hooks-approval", "config": {"rules": [rule]}}]);
    let gate = json!({"event": "tool:pre", "command": "echo 'not today' >&2; exit 2", "timeout": 10});
    let gates = json!([{"module": "hooks-shell", "config": {"hooks": [gate]}}]);
    for (hooks, who, why) in
        [(rules, "hooks-approval", "refused by a rule"), (gates, "hooks-shell", "not today")]
    {
        let desk = Desk::new();
        desk.plan("a.json", &runs("git push origin main", hooks));
        for form in ["text", "json"] {
            let ran = ran_with_path(&desk, &["--approve", "all", "--output", form]);
            assert_eq!(ran.code, 0, "{}", ran.seen());
            let told = format!("warning: not allowed: Run with `bash`: git push origin main; `{who}");
            assert!(ran.stderr.starts_with(&told) && ran.stderr.contains(why), "{}", ran.stderr);
            assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
            if form == "json" {
                let denied = ran.json()["denied"].clone();
                assert_eq!(denied.as_array().unwrap().len(), 1, "{denied}");
                assert_eq!(denied[0]["arguments"], json!({"command": "git push origin main"}));
                assert!(denied[0]["hook"].as_str().unwrap().starts_with(who), "{denied}");
                assert!(denied[0]["reason"].as_str().unwrap().contains(why), "{denied}");
            }
        }
    }
}

#[test]
fn safe_allows_what_declares_to_change_nothing() {
    let desk = Desk::new();
    let asks = json!({"rules": [{"tool": "list_directory", "action": "ask"}]});
    desk.plan("a.json", &calls("list_directory", json!({}), asks));
    let answer = |approve: &str| {
        let ran = desk.amplifier(&["run", "--plan", "a.json", "--approve", approve, "look"]);
        assert_eq!(ran.code, 0, "{}", ran.seen());
        ran
    };
    assert!(answer("safe").stdout.contains("a.json"));
    let none = answer("none");
    assert!(
        !none.stdout.contains("\"a.json\"") && none.stderr.contains("`--approve safe`"),
        "{}",
        none.seen()
    );
}

#[test]
fn a_prompt_that_is_refused_is_exit_3_and_no_answer() {
    let desk = Desk::new();
    let mut plan = writes(json!({}));
    let gate = json!({"event": "UserPromptSubmit", "command": "echo 'not today' >&2; exit 2", "timeout": 10});
    plan["hooks"] = json!([{"module": "hooks-shell", "config": {"hooks": [gate]}}]);
    desk.plan("a.json", &plan);
    let path = git_variables(&desk.path("user")).into_iter().find(|(name, _)| name == "PATH").unwrap().1;
    let run = |form: &str| {
        let mut command = desk.command(&["run", "--plan", "a.json", "--output", form, "hi"]);
        Ran::of(command.env("PATH", &path).output().unwrap())
    };
    let ran = run("text");
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{}", ran.seen());
    assert!(ran.stderr.contains("not today"), "{}", ran.stderr);
    let told = run("json").json();
    assert_eq!((&told["status"], &told["answer"]), (&json!("denied"), &Value::Null), "{told}");
}

#[test]
fn the_built_in_bundle_asks_once_before_it_changes_or_starts_something() {
    let desk = Desk::new();
    let path = git_variables(&desk.path("user")).into_iter().find(|(name, _)| name == "PATH").unwrap().1;
    let run = |approve: &str, prompt: &str| {
        with(
            &desk,
            &[("PATH", &path)],
            &["run", "-p", "mock", "--approve", approve, "--output", "json", prompt],
        )
    };
    let write = "write_file {\"file_path\": \"new.txt\", \"content\": \"x\"}";
    let denied = run("none", write);
    assert_eq!((denied.code, wrote(&desk)), (0, false), "{}", denied.seen());
    assert_eq!(denied.json()["denied"].as_array().unwrap().len(), 1, "{}", denied.seen());
    let allowed = run("all", write);
    assert_eq!((allowed.code, wrote(&desk)), (0, true), "{}", allowed.seen());
    let command = "bash {\"command\": \"rm new.txt\"}";
    let denied = run("safe", command);
    assert_eq!((denied.code, wrote(&desk)), (0, true), "{}", denied.seen());
    assert_eq!(denied.json()["denied"].as_array().unwrap().len(), 1, "{}", denied.seen());
    let allowed = run("all", command);
    assert_eq!((allowed.code, wrote(&desk)), (0, false), "{}", allowed.seen());
    // Looking asks nobody.
    let looked = run("none", "list_directory {}");
    assert_eq!(looked.json()["denied"], json!([]), "{}", looked.seen());
}

/// Runs a command in a pseudo-terminal, types the answers when a question shows, and prints all that was shown.
const TYPIST: &str = r#"
import os, pty, select, sys, time
answers = sys.argv[1].split(",")
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
shown, asked, end = b"", 0, time.time() + 60
while time.time() < end:
    if select.select([fd], [], [], 0.1)[0]:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
        if shown.count(b"[y] once") > asked and asked < len(answers):
            os.write(fd, answers[asked].encode() + b"\n")
            asked += 1
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.stdout.buffer.write(shown)
sys.exit(code)
"#;

/// What a person sees who answers so.
pub fn at_a_terminal(desk: &Desk, answers: &str, args: &[&str]) -> Ran {
    let command = desk.command(args);
    let path = git_variables(&desk.path("user")).into_iter().find(|(name, _)| name == "PATH").unwrap().1;
    let mut python = std::process::Command::new("python3");
    python.current_dir(desk.work()).env_clear().env("AMPLIFIER_HOME", desk.home()).env("PATH", path);
    python.args(["-c", TYPIST, answers]).arg(command.get_program()).args(command.get_args());
    Ran::of(python.output().expect("python3 is needed for a pseudo-terminal; install it"))
}

#[test]
fn at_a_terminal_the_change_is_shown_and_what_is_not_offered_is_not_taken() {
    let desk = Desk::new();
    desk.file("new.txt", "old\n").plan("a.json", &writes(json!({"remember": "once"})));
    let args = ["run", "--plan", "a.json", "write"];
    let ran = at_a_terminal(&desk, "a,y", &args);
    assert!(ran.stdout.contains("-old\r\n+x"), "{}", ran.stdout);
    assert_eq!(ran.stdout.matches("[y] once  [n] no").count(), 2, "{}", ran.stdout);
    assert!(!desk.home().join("state/approvals.json").exists());
    let desk = Desk::new();
    desk.plan("a.json", &writes(json!({})));
    let ran = at_a_terminal(&desk, "n", &args);
    assert!(ran.stdout.contains("[s] and [a] cover every call of `write_file`"), "{}", ran.stdout);
}

#[test]
fn at_a_terminal_the_person_is_asked_with_the_exact_command() {
    let desk = Desk::new();
    desk.plan("a.json", &writes(json!({})));
    let args = ["run", "--plan", "a.json", "write"];
    let no = at_a_terminal(&desk, "hm,n", &args);
    assert_eq!((no.code, wrote(&desk)), (0, false), "{}", no.seen());
    assert!(no.stdout.contains("\"file_path\":\"new.txt\""), "{}", no.stdout);
    assert_eq!(no.stdout.matches("[y] once").count(), 2, "{}", no.stdout);
    let yes = at_a_terminal(&desk, "y", &args);
    assert_eq!((yes.code, wrote(&desk)), (0, true), "{}", yes.seen());
    std::fs::remove_file(desk.work().join("new.txt")).unwrap();
    // What is allowed for good is not asked again, in this folder.
    let always = at_a_terminal(&desk, "a", &args);
    assert_eq!((always.code, wrote(&desk)), (0, true), "{}", always.seen());
    std::fs::remove_file(desk.work().join("new.txt")).unwrap();
    let again = at_a_terminal(&desk, "", &args);
    assert_eq!((again.code, wrote(&desk)), (0, true), "{}", again.seen());
    assert!(!again.stdout.contains("[y] once"), "{}", again.stdout);
}

#[test]
fn what_a_scheduler_refuses_does_not_run_and_the_model_is_told_why() {
    let writes =
        json!({"tool_calls": [{"name": "write_file", "arguments": {"file_path": "a.txt", "content": "x"}}]});
    let nowhere = json!({"tool_calls": [{"name": "nowhere", "arguments": {}}]});
    let too_dear = ("hooks-scheduler-cost-aware", json!({"max_cost": 0.5}), writes, "do without it");
    let unknown = ("hooks-scheduler-heuristic", json!({}), nowhere, "is not available; use one of");
    for (module, config, call, why) in [too_dear, unknown] {
        let desk = Desk::new();
        desk.plan(
            "plan.json",
            &json!({
                "session": {"orchestrator": "loop-events", "context": "context-simple"},
                "providers": [{"module": "provider-mock", "config": {"responses": [call, "done"]}}],
                "tools": [{"module": "tool-filesystem"}],
                "hooks": [{"module": module, "config": config}],
            }),
        );
        let ran = desk.amplifier(&["run", "--output", "json", "--plan", "plan.json", "go"]);
        assert_eq!((ran.code, desk.work().join("a.txt").exists()), (0, false), "{}", ran.seen());
        let denied = ran.json()["denied"].clone();
        assert_eq!(denied.as_array().unwrap().len(), 1, "{module}: {denied}");
        // By what it gathers, before anything is chosen.
        assert_eq!(denied[0]["hook"], json!("scheduler"), "{denied}");
        let transcript = read(&desk.sessions()[0].join("transcript.jsonl"));
        assert!(
            transcript.contains("Denied by hook: ") && transcript.contains(why),
            "{module}: {transcript}"
        );
    }
}
