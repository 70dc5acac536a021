//! `amplifier tool list`, `tool info` and `tool invoke`.

use std::net::TcpListener;
use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::desk::{Desk, Ran, git_variables, read, wait_until};

fn desk(hooks: Value) -> Desk {
    let desk = Desk::new();
    let plan = json!({
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-mock"}],
        "tools": [{"module": "tool-filesystem"}, {"module": "tool-echo"}, {"module": "tool-nowhere"}],
        "hooks": hooks,
    });
    desk.plan("p.json", &plan).file("a.txt", "one\ntwo\n");
    desk
}

fn invoke(desk: &Desk, words: &[&str]) -> crate::desk::Ran {
    desk.amplifier(&[&["tool", "invoke"], words, &["--plan", "p.json"]].concat())
}

#[test]
fn the_tools_of_a_plan_are_listed_and_nothing_is_left_behind() {
    let desk = desk(json!([]));
    let ran = desk.amplifier(&["tool", "list", "--plan", "p.json"]);
    assert_snapshot!("list", desk.seen(&ran));
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ran.stdout);
    let listed = desk.amplifier(&["tool", "list", "--plan", "p.json", "--output", "json"]).json();
    let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert!(names.contains(&&json!("read_file")) && names.contains(&&json!("echo")), "{names:?}");
    assert_eq!(listed["tools"][0]["module"], "tool-filesystem");
    assert_eq!(listed["missing"].as_array().unwrap().len(), 1);
    assert_snapshot!("info", desk.seen(&desk.amplifier(&["tool", "info", "echo", "--plan", "p.json"])));
    assert_snapshot!(
        "info_unknown",
        desk.seen(&desk.amplifier(&["tool", "info", "eco", "--plan", "p.json"]))
    );
    assert!(!desk.home().exists(), "looking makes nothing");
}

#[test]
fn the_built_in_bundle_has_tools_without_a_provider() {
    let desk = Desk::new();
    let listed = desk.amplifier(&["tool", "list", "--output", "json"]);
    assert_eq!(listed.code, 0, "{}", listed.seen());
    let names = listed.json()["tools"].to_string();
    assert!(names.contains("\"bash\"") && names.contains("\"task\""), "{names}");
}

#[test]
fn a_tool_is_called_by_hand_and_its_session_is_gone() {
    let desk = desk(json!([]));
    let ran = invoke(&desk, &["read_file", "file_path=a.txt", "limit=1"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert!(ran.stdout.contains("one") && !ran.stdout.contains("two"), "{}", ran.stdout);
    assert_eq!(desk.sessions().len(), 0);
    let told = invoke(&desk, &["echo", "--json", r#"{"text": "a"}"#, "text=b", "--output", "json"]).json();
    assert_eq!((&told["success"], &told["session_id"]), (&json!(true), &Value::Null));
    assert!(told["output"].to_string().contains('b'), "{told}");
    let piped = desk.amplifier_with_input(
        &["tool", "invoke", "echo", "--json", "-", "--plan", "p.json"],
        br#"{"text": "from a pipe"}"#,
    );
    assert!(piped.stdout.contains("from a pipe"), "{}", piped.seen());
}

#[test]
fn a_call_that_is_kept_has_its_journal() {
    let desk = desk(json!([]));
    let ran = invoke(&desk, &["write_file", "file_path=b.txt", "content=new", "--keep", "--output", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert_eq!(read(&desk.work().join("b.txt")), "new");
    let sessions = desk.sessions();
    assert_eq!(sessions.len(), 1);
    assert!(sessions[0].ends_with(ran.json()["session_id"].as_str().unwrap()), "{sessions:?}");
    assert!(read(&sessions[0].join("events.jsonl")).contains("write_file"));
}

#[test]
fn wrong_calls_say_what_would_be_right() {
    let desk = desk(json!([]));
    assert_snapshot!("unknown", desk.seen(&invoke(&desk, &["read_fil"])));
    assert_snapshot!("unfit", desk.seen(&invoke(&desk, &["read_file", "limit=many", "nonsense=1"])));
    assert_snapshot!("no_pair", desk.seen(&invoke(&desk, &["read_file", "a.txt"])));
    let failed = invoke(&desk, &["read_file", "file_path=missing.txt"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (1, ""), "{}", failed.seen());
    assert!(failed.stderr.contains("error: ") && failed.stderr.contains("missing.txt"), "{}", failed.stderr);
    let failed = invoke(&desk, &["read_file", "file_path=missing.txt", "--output", "json"]);
    assert_eq!((failed.code, &failed.json()["success"]), (1, &json!(false)));
}

#[test]
fn standard_input_is_the_plan_or_the_input_and_not_both() {
    let desk = desk(json!([]));
    let plan = read(&desk.work().join("p.json"));
    let piped = |words: &[&str]| {
        let args = [&["tool", "invoke", "echo"], words, &["--plan", "/dev/stdin"]].concat();
        desk.amplifier_with_input(&args, plan.as_bytes())
    };
    let called = piped(&["text=a"]);
    assert_eq!((called.code, called.stdout.as_str()), (0, "a\n"), "{}", called.seen());
    // Nothing is read, so nothing is piped in: whoever writes might find nobody.
    let refused = desk.amplifier(&["tool", "invoke", "echo", "--json", "-", "--plan", "/dev/stdin"]);
    assert_eq!(refused.code, 2, "{}", refused.seen());
    assert!(refused.stderr.contains("error: the plan is read from standard input"), "{}", refused.seen());
}

#[test]
fn gates_and_rules_hold_for_calls_by_hand_too() {
    let rules = json!([{"tool": "write_file", "action": "ask"}, {"tool": "echo", "action": "deny"}]);
    let desk = desk(json!([{"module": "hooks-approval", "config": {"rules": rules}}]));
    let call = ["write_file", "file_path=b.txt", "content=new"];
    let refused = invoke(&desk, &call);
    assert_eq!(refused.code, 3, "{}", refused.seen());
    assert!(refused.stderr.contains("error: `write_file` was refused: "), "{}", refused.stderr);
    assert!(!desk.work().join("b.txt").exists());
    let allowed = invoke(&desk, &[call.as_slice(), &["--approve", "all"]].concat());
    assert_eq!(allowed.code, 0, "{}", allowed.seen());
    assert!(desk.work().join("b.txt").exists());
    let denied = invoke(&desk, &["echo", "text=a", "--approve", "all"]);
    assert_eq!(denied.code, 3, "{}", denied.seen());
    assert_eq!(desk.sessions().len(), 0);
}

/// A desk whose plan has a shell.
fn shell() -> Desk {
    let desk = Desk::new();
    let plan = json!({
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-mock"}],
        "tools": [{"module": "tool-filesystem"}, {"module": "tool-bash"}],
        "hooks": [{"module": "hooks-approval"}],
    });
    desk.plan("p.json", &plan).file("a.txt", "one\ntwo\n");
    desk
}

fn in_shell(desk: &Desk, words: &[&str]) -> Command {
    let mut command = desk.command(&[&["tool", "invoke"], words, &["--plan", "p.json"]].concat());
    let path = git_variables(&desk.path("user")).into_iter().find(|(name, _)| name == "PATH").unwrap().1;
    command.env("PATH", path);
    command
}

#[test]
fn what_a_tool_gave_is_on_standard_output_also_when_it_failed() {
    let desk = shell();
    let call =
        |words: &[&str]| Ran::of(in_shell(&desk, &[words, &["--approve", "all"]].concat()).output().unwrap());
    assert_snapshot!("succeeds", desk.seen(&call(&["bash", "command=echo hi"])));
    assert_snapshot!("exit_code", desk.seen(&call(&["bash", "command=echo hi; exit 3"])));
    let denied = call(&["bash", "command=sudo true"]);
    assert_eq!((denied.code, denied.stdout.as_str()), (3, ""), "{}", denied.seen());
    assert!(denied.stderr.starts_with("error: Command denied for safety"), "{}", denied.seen());
    let outside = call(&["read_file", "file_path=/etc/passwd"]);
    assert_eq!((outside.code, outside.stdout.as_str()), (3, ""), "{}", outside.seen());
    let late = call(&["bash", "command=echo begun; sleep 60", "timeout=1"]);
    assert_eq!(late.code, 124, "{}", late.seen());
    assert!(
        late.stdout.contains("begun") && late.stderr.contains("error: Command timed out"),
        "{}",
        late.seen()
    );
    assert_eq!(desk.sessions().len(), 0);
}

#[test]
fn a_refusal_is_told_once_and_by_whom() {
    let desk = shell();
    let call = ["edit_file", "file_path=a.txt", "old_string=one", "new_string=three"];
    let ran = |approve: &[&str]| Ran::of(in_shell(&desk, &[&call[..], approve].concat()).output().unwrap());
    assert_snapshot!("refused_by_safe", desk.seen(&ran(&["--approve", "safe"])));
    assert_snapshot!("refused_by_nobody", desk.seen(&ran(&[])));
    assert_eq!(read(&desk.work().join("a.txt")), "one\ntwo\n");
}

fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn a_call_that_is_stopped_leaves_nothing_behind() {
    for (name, code) in [("-TERM", 143), ("-HUP", 129)] {
        let desk = shell();
        let child =
            in_shell(&desk, &["bash", "command=touch begun; sleep 60", "--approve", "all"]).spawn().unwrap();
        wait_until(|| desk.work().join("begun").exists());
        signal(child.id(), name);
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.code, code, "{name}: {}", ran.seen());
        assert_eq!(desk.sessions().len(), 0, "{name}: {}", ran.seen());
    }
}

#[test]
fn a_call_can_be_stopped_before_its_session_is_open() {
    let desk = shell();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let far = format!("http://{}/bundle.md", listener.local_addr().unwrap());
    let child = desk.spawn(&["tool", "invoke", "echo", "text=a", "--bundle", &far]);
    // It waits for an answer that never comes.
    let held = listener.accept().unwrap();
    signal(child.id(), "-TERM");
    let ran = Ran::of(child.wait_with_output().unwrap());
    drop(held);
    assert_eq!(ran.code, 143, "{}", ran.seen());
    assert_eq!(desk.sessions().len(), 0);
}

#[test]
fn an_input_without_end_is_refused() {
    let desk = desk(json!([]));
    let huge = vec![b' '; 8 * 1024 * 1024 + 1];
    let ran =
        desk.amplifier_with_input(&["tool", "invoke", "echo", "--json", "-", "--plan", "p.json"], &huge);
    assert_eq!(ran.code, 2, "{}", ran.seen());
    assert!(ran.stderr.contains("error: standard input holds more than 8.0 MiB"), "{}", ran.seen());
}
