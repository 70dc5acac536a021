//! `amplifier tool list`, `tool info` and `tool invoke`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::desk::{Desk, read};

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
