//! The sandbox around commands, with the program's own output in a pipe, as scripts have it.

use serde_json::json;

use crate::desk::{Desk, plan};

#[test]
fn a_pipe_for_output_takes_nothing_from_the_sandbox() {
    let desk = Desk::new();
    let told = desk.with_git(&["doctor", "--offline", "--output", "json"]).json();
    let findings = told["findings"].as_array().unwrap().clone();
    let found = findings.iter().find(|finding| finding["check"] == "sandbox").unwrap();
    assert!(!found["message"].as_str().unwrap().contains("bad state"), "{found}");
    if found["level"] != "ok" {
        return println!("SKIPPED: {found}");
    }
    let outside = desk.path("outside.txt");
    let command = format!("echo in > in.txt; echo out > {}; echo done > /dev/stdout", outside.display());
    let mut whole = plan(
        json!({"responses": [{"tool_calls": [{"name": "bash", "arguments": {"command": command}}]}, "ok"]}),
    );
    let config = json!({"sandbox": "workspace-write", "sandbox_required": false});
    whole["tools"] = json!([{"module": "tool-bash", "config": config}]);
    desk.plan("plan.json", &whole);
    let ran = desk.with_git(&["run", "--approve", "all", "--plan", "plan.json", "hi"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert!(!ran.stderr.contains("without a sandbox"), "{}", ran.stderr);
    assert!(desk.work().join("in.txt").exists(), "{}", ran.seen());
    assert!(!outside.exists(), "{}", ran.seen());
}
