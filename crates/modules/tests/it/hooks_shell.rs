//! `hooks-shell` with real processes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amplifier_protocol::event::{PromptSubmit, ToolPost};
use amplifier_protocol::tool::ToolCall;
use amplifier_testing::{MockTool, ScriptedProvider, Step, TestSession};
use serde_json::{Value, json};

use crate::hooks_kit::{Desk, call, looping};

async fn with(desk: &Desk, hooks: Value) -> TestSession {
    let session = desk.with_hook("hooks-shell", json!({ "hooks": hooks })).await.open().await.unwrap();
    assert_eq!(session.report().failed().count(), 0, "{:?}", session.report());
    session
}

fn hook(event: &str, command: &str) -> Value {
    json!({"event": event, "command": command, "timeout": 10})
}

#[tokio::test]
async fn a_command_gets_the_event_and_exit_code_two_refuses_with_its_words() {
    let desk = Desk::new();
    let session =
        with(&desk, json!([hook("PreToolUse", "cat > got.json; echo 'not here' >&2; exit 2")])).await;
    let emitted = session.coordinator().emit(call("bash", json!({"command": "ls"}))).await;
    assert_eq!(emitted.denied(), Some("not here"));
    let got: Value = serde_json::from_str(&std::fs::read_to_string(desk.path("got.json")).unwrap()).unwrap();
    assert_eq!(got["hook_event_name"], json!("PreToolUse"));
    assert_eq!((&got["event"], &got["session_id"]), (&json!("tool:pre"), &json!("test-session")));
    // The public implementation sends these two empty.
    assert_eq!((&got["tool_name"], &got["tool_input"]), (&json!("bash"), &json!({"command": "ls"})));
    assert_eq!(got["cwd"], json!(desk.dir().display().to_string()));
}

fn question(event: &str, prompt: &str) -> Value {
    json!({"event": event, "prompt": prompt})
}

#[tokio::test]
async fn a_question_to_the_model_decides_whether_an_event_goes_on() {
    let desk = Desk::new();
    let answers = ["{\"ok\": true}", "{\"ok\": false, \"reason\": \"too bold\"}", "hm"];
    let model = Arc::new(ScriptedProvider::new(answers));
    let hooks = json!({"hooks": [question("PreToolUse", "Is this safe?")]});
    let builder = desk.with_hook("hooks-shell", hooks).await.without_provider().provider(model.clone());
    let session = builder.open().await.unwrap();
    let ask = async || session.coordinator().emit(call("bash", json!({"command": "ls"}))).await;
    assert_eq!(ask().await.denied(), None);
    assert_eq!(ask().await.denied(), Some("too bold"));
    // Like the public implementation it goes on when nobody decides, and says so.
    assert_eq!(ask().await.denied(), None);
    assert!(desk.shown()[0].contains("`Is this safe?` was answered with something that is no decision"));
    let request = &model.requests()[0];
    assert_eq!((request.max_output_tokens, request.tools.as_ref()), (Some(256), None));
    let asked = request.messages[1].content.visible_text();
    assert!(
        asked.starts_with("Is this safe?\n\n<event>\n{") && asked.contains("\"command\":\"ls\""),
        "{asked}"
    );
}

#[tokio::test]
async fn a_question_that_breaks_refuses_when_the_plan_says_so_and_none_is_asked_about_asking() {
    let desk = Desk::new();
    let model = Arc::new(ScriptedProvider::new(["no idea"]));
    let mut gate = question("tool:pre", "Safe? $ARGUMENTS");
    gate["on_failure"] = json!("deny");
    let builder = desk.with_hook("hooks-shell", json!({"hooks": [gate]})).await;
    let session = builder.without_provider().provider(model).open().await.unwrap();
    let denied = session.coordinator().emit(call("bash", json!({}))).await;
    assert!(denied.denied().unwrap().contains("no decision"), "{:?}", denied.denied());
    for (hook, words) in [
        (question("provider:*", "x"), "asking tells it again"),
        (json!({"event": "tool:pre"}), "either `command` or `prompt`"),
        (json!({"event": "tool:pre", "command": "true", "prompt": "x"}), "either `command` or `prompt`"),
    ] {
        let refused = desk.with_hook("hooks-shell", json!({"hooks": [hook]})).await.open().await.unwrap();
        let report = format!("{:?}", refused.report());
        assert!(report.contains(words), "{report}");
    }
}

#[tokio::test]
async fn the_other_name_of_the_module_is_known_and_told() {
    let desk = Desk::new();
    let hooks = json!({"hooks": [hook("tool:pre", "exit 2")]});
    let session = desk.with_hook("hook-shell", hooks).await.open().await.unwrap();
    assert!(session.coordinator().emit(call("bash", json!({}))).await.denied().is_some());
    let report = format!("{:?}", session.report());
    assert!(report.contains("`hook-shell` is another name of `hooks-shell`"), "{report}");
}

#[tokio::test]
async fn matchers_are_whole_names_without_case() {
    let desk = Desk::new();
    let mut gate = hook("tool:pre", "exit 2");
    gate["matcher"] = json!("Bash|write_.*");
    let session = with(&desk, json!([gate])).await;
    for (tool, denied) in [("bash", true), ("WRITE_FILE", true), ("bashful", false), ("read_file", false)] {
        assert_eq!(
            session.coordinator().emit(call(tool, json!({}))).await.denied().is_some(),
            denied,
            "{tool}"
        );
    }
    assert_eq!(session.coordinator().emit(ToolPost::default()).await.denied(), None);
}

#[tokio::test]
async fn json_on_standard_output_changes_the_call_and_tells_the_model() {
    let desk = Desk::new();
    let change = r#"echo '{"hookSpecificOutput": {"updatedInput": {"n": 2}}, "systemMessage": "changed"}'"#;
    let note = r#"echo '{"contextInjection": "mind the gap"}'"#;
    let tool = Arc::new(MockTool::new("t"));
    let calls = [ToolCall::new("c1", "t", json!({"n": 1}))];
    let provider = ScriptedProvider::new([Step::call(calls), Step::say("done")]);
    let context = Arc::new(amplifier_testing::MockContextManager::new());
    let hooks = json!([hook("PreToolUse", change), hook("PostToolUse", note)]);
    let builder = desk.with_hook("hooks-shell", json!({ "hooks": hooks })).await;
    let builder = builder.tool(tool.clone()).context(context.clone());
    let session = looping(builder, provider).await.open().await.unwrap();
    session.execute("go").await.unwrap();
    assert_eq!(tool.inputs(), [json!({"n": 2})]);
    assert!(context.texts().iter().any(|text| text == "mind the gap"), "{:?}", context.texts());
    assert_eq!(desk.shown(), ["changed"]);
}

#[tokio::test]
async fn other_exit_codes_warn_and_the_event_goes_on_unless_the_command_is_a_gate() {
    let desk = Desk::new();
    let session = with(&desk, json!([hook("tool:pre", "echo oops >&2; exit 3")])).await;
    assert_eq!(session.coordinator().emit(call("t", json!({}))).await.denied(), None);
    let shown = desk.shown();
    assert!(shown.len() == 1 && shown[0].contains("code 3") && shown[0].contains("oops"), "{shown:?}");
    let mut gate = hook("tool:pre", "no-such-program-anywhere");
    gate["on_failure"] = json!("deny");
    let session = with(&desk, json!([gate])).await;
    let denied = session.coordinator().emit(call("t", json!({}))).await;
    assert!(denied.denied().unwrap().contains("code 127"), "{denied:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_late_command_is_killed_with_everything_it_started() {
    let desk = Desk::new();
    let mut slow = hook("tool:pre", "sleep 300 & echo $! > child; echo $$ > leader; sleep 300");
    slow["timeout"] = json!(0.5);
    let session = with(&desk, json!([slow])).await;
    let began = Instant::now();
    assert_eq!(session.coordinator().emit(call("t", json!({}))).await.denied(), None);
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(desk.shown()[0].contains("took longer than"), "{:?}", desk.shown());
    for name in ["child", "leader"] {
        let pid = std::fs::read_to_string(desk.path(name)).unwrap();
        assert!(ends(pid.trim()).await, "{name} {pid} still runs");
    }
}

/// Whether a process is gone or a zombie, soon.
#[cfg(target_os = "linux")]
async fn ends(pid: &str) -> bool {
    for _ in 0..100 {
        match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            Err(_) => return true,
            Ok(stat) if stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')) => return true,
            Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    false
}

#[tokio::test]
async fn a_command_that_leaves_something_in_the_background_does_not_hold_the_turn() {
    let desk = Desk::new();
    let session = with(&desk, json!([hook("tool:pre", "sleep 300 & exit 0")])).await;
    let began = Instant::now();
    assert_eq!(session.coordinator().emit(call("t", json!({}))).await.denied(), None);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn an_immediate_cancel_stops_a_running_command() {
    let desk = Desk::new();
    let session =
        with(&desk, json!([{"event": "tool:pre", "command": "touch began; sleep 300", "timeout": 100}]))
            .await;
    let began = Instant::now();
    let hub = session.coordinator().clone();
    let running = tokio::spawn(async move { hub.emit(call("t", json!({}))).await });
    while !desk.path("began").exists() {
        assert!(began.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    session.coordinator().cancel().request_immediate();
    assert_eq!(running.await.unwrap().denied(), Some("cancelled"));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn output_is_bounded_and_large_input_does_not_stand_still() {
    let desk = Desk::new();
    // Neither reads its input, and it says more than any pipe holds.
    let noisy = hook("tool:pre", "head -c 3000000 /dev/zero | tr '\\0' x >&2; exit 2");
    let session = with(&desk, json!([noisy])).await;
    let input = json!({"text": "y".repeat(2_000_000)});
    let denied = session.coordinator().emit(call("t", input)).await;
    assert!(denied.denied().unwrap().len() < 10_000);
}

#[tokio::test]
async fn commands_get_a_small_environment() {
    let desk = Desk::new();
    let session = with(&desk, json!([hook("tool:pre", "env > env.txt")])).await;
    session.coordinator().emit(call("t", json!({}))).await;
    let env = std::fs::read_to_string(desk.path("env.txt")).unwrap();
    let names: Vec<_> = env.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    assert!(names.contains(&"PATH") && names.contains(&"AMPLIFIER_SESSION_ID"), "{names:?}");
    // Set for every test by cargo, and none of a command's business.
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
    assert!(env.contains(&format!("CLAUDE_PROJECT_DIR={}", desk.dir().display())));
}

#[tokio::test]
async fn files_of_the_project_are_read_and_what_is_wrong_in_them_is_in_the_load_report() {
    let desk = Desk::new();
    let file = json!({"hooks": {
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo \"from $AMPLIFIER_HOOKS_DIR\" >&2; exit 2"}]}],
        "PreToolUse": [{"matcher": "(", "hooks": [{"type": "command", "command": "exit 2"}]}]
    }});
    desk.write(".amplifier/hooks/guard/hooks.json", &file.to_string());
    let session = desk.with_hook("hooks-shell", json!({})).await.open().await.unwrap();
    let denied = session.coordinator().emit(PromptSubmit { prompt: "hi".to_owned() }).await;
    let folder = desk.path(".amplifier/hooks/guard");
    assert_eq!(denied.denied(), Some(format!("from {}", folder.display()).as_str()));
    let entries: Vec<_> = session.report().modules.iter().map(ToString::to_string).collect();
    assert!(entries.iter().any(|entry| entry.contains("matcher `(` cannot be read")), "{entries:?}");
    let without = desk.with_hook("hooks-shell", json!({"load_files": false})).await.open().await.unwrap();
    assert_eq!(without.coordinator().emit(PromptSubmit { prompt: "hi".to_owned() }).await.denied(), None);
}
