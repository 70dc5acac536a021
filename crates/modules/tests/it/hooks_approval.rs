//! `hooks-approval` in real sessions, and the golden cases of the public implementation with what is better here.

use std::sync::Arc;

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler};
use amplifier_protocol::hook::{ApprovalOption, HookResult};
use amplifier_protocol::tool::{EffectClass, Effects, ToolCall};
use amplifier_testing::{
    MockTool, ScriptedApproval, ScriptedProvider, Step, TestSession, TestSessionBuilder,
};
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::hooks_kit::{Desk, call, looping};
use crate::stage::offer;

/// A hook with one answer.
pub(crate) struct Denying(pub(crate) HookResult);

#[async_trait]
impl HookHandler for Denying {
    async fn handle(&self, _event: &HookEvent) -> Result<HookResult, HookFailure> {
        Ok(self.0.clone())
    }
}

const RUNS: Effects = Effects { executes: true, ..Effects::WRITES };
const FETCHES: Effects = Effects { network: true, class: EffectClass::Read, ..Effects::PURE };

fn tools(builder: TestSessionBuilder) -> TestSessionBuilder {
    let named = [
        ("bash", RUNS),
        ("write", Effects::WRITES),
        ("write_file", Effects::WRITES),
        ("edit_file", Effects::WRITES),
        ("apply_patch", Effects::WRITES),
        ("read_file", Effects::READS),
        ("web_fetch", FETCHES),
        ("echo", Effects::PURE),
    ];
    named.into_iter().fold(builder, |builder, (name, effects)| {
        builder.tool(Arc::new(MockTool::new(name).effects(effects)))
    })
}

async fn gated(desk: &Desk, config: Value, approval: Option<Arc<ScriptedApproval>>) -> TestSession {
    let builder = tools(desk.with_hook("hooks-approval", config).await);
    let builder = match approval {
        Some(approval) => builder.configure(move |builder| builder.approval(approval)),
        None => builder,
    };
    builder.open().await.unwrap()
}

/// Why a call may not go on, if it may not.
async fn verdict(session: &TestSession, tool: &str, input: Value) -> Option<String> {
    session.coordinator().emit(call(tool, input)).await.denied().map(str::to_owned)
}

fn run(command: &str) -> Value {
    json!({ "command": command })
}

/// Golden case 11.8: approval with its defaults.
#[tokio::test]
async fn golden_harmless_commands_go_on_and_the_rest_needs_somebody_to_ask() {
    let desk = Desk::new();
    let session = gated(&desk, json!({}), None).await;
    for command in ["ls", "ls -la", "pwd", "echo hi"] {
        assert_eq!(verdict(&session, "bash", run(command)).await, None, "{command}");
    }
    for command in ["pwd -P", "rm x"] {
        assert!(verdict(&session, "bash", run(command)).await.is_some(), "{command}");
    }
    let nobody = verdict(&session, "write", json!({})).await.unwrap();
    assert!(nobody.contains("No approval system available"), "{nobody}");
    assert_eq!(verdict(&session, "read_file", json!({"file_path": "a"})).await, None);
}

/// Better than the golden cases: there `ls*` lets `ls; rm -rf ~`, `lsof` and a redirection through, and `write_file`,
/// `edit_file` and `apply_patch` are never asked about.
/// Golden case 11.8: approval.
#[tokio::test]
async fn better_a_prefix_is_no_permission_and_every_declared_write_is_asked_about() {
    let desk = Desk::new();
    let session = gated(&desk, json!({}), None).await;
    for command in ["ls; rm -rf ~", "lsof", "echo x > /etc/passwd", "ls $(rm x)", "ls\nrm x", "ls & rm x"] {
        assert!(verdict(&session, "bash", run(command)).await.is_some(), "{command}");
    }
    for tool in ["write_file", "edit_file", "apply_patch", "web_fetch", "nobody_mounted_this"] {
        assert!(verdict(&session, tool, json!({})).await.is_some(), "{tool}");
    }
    assert_eq!(verdict(&session, "echo", json!({})).await, None);
}

#[tokio::test]
async fn deny_beats_ask_and_ask_beats_allow() {
    let desk = Desk::new();
    let approval = Arc::new(ScriptedApproval::allowing());
    let rules = json!([
        {"tool": "bash", "command": "git*", "action": "allow"},
        {"tool": "bash", "command": "git push*", "action": "ask"},
        {"tool": "bash", "command": "*--force*", "action": "deny"},
        {"effect": "network", "action": "deny"},
        {"tool": "write_file", "path": "src/*", "action": "allow"}
    ]);
    let session = gated(&desk, json!({"rules": rules, "remember": "once"}), Some(approval.clone())).await;
    assert_eq!(verdict(&session, "bash", run("git status")).await, None);
    assert_eq!(approval.questions().len(), 0);
    assert_eq!(verdict(&session, "bash", run("git push")).await, None);
    assert_eq!(approval.questions().len(), 1);
    let refused = verdict(&session, "bash", run("git push --force")).await.unwrap();
    assert!(refused.contains("refused by a rule"), "{refused}");
    assert!(verdict(&session, "web_fetch", json!({"url": "x"})).await.is_some());
    assert_eq!(verdict(&session, "write_file", json!({"file_path": "src/a"})).await, None);
    assert_eq!(approval.questions().len(), 1);
    verdict(&session, "write_file", json!({"file_path": "src/../a"})).await;
    assert_eq!(approval.questions().len(), 2, "a path that climbs fits no permission");
    assert_eq!(approval.questions()[0].options, ApprovalOption::once());
    assert_eq!(session.recorder().count("approval:required"), 2);
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_does_not_widen_a_permission_or_slip_past_a_prohibition() {
    let desk = Desk::new();
    desk.write("src/a", "");
    desk.write("secret/key", "");
    std::os::unix::fs::symlink(desk.path("secret"), desk.path("src/out")).unwrap();
    let rules = json!([{"path": "src/*", "action": "allow"}, {"path": "secret/*", "action": "deny"}]);
    let session = gated(&desk, json!({"rules": rules}), Some(Arc::new(ScriptedApproval::allowing()))).await;
    assert_eq!(verdict(&session, "write_file", json!({"file_path": "src/a"})).await, None);
    for path in ["src/out/key", "secret/key", "src/../secret/key"] {
        assert!(verdict(&session, "write_file", json!({"file_path": path})).await.is_some(), "{path}");
    }
    assert_eq!(session.recorder().count("approval:required"), 0);
}

#[tokio::test]
async fn a_prohibition_of_a_path_holds_for_every_tool_that_names_it() {
    let desk = Desk::new();
    let rules = json!([{"path": "secrets/*", "action": "deny"}, {"path": "src/*", "action": "allow"}]);
    let approval = Arc::new(ScriptedApproval::allowing());
    let session = gated(&desk, json!({"rules": rules, "remember": "once"}), Some(approval.clone())).await;
    let patch = |lines: &str| json!({"patch": format!("*** Begin Patch\n{lines}\n*** End Patch")});
    let update = |path: &str| patch(&format!("*** Update File: {path}\n@@\n-a\n+b"));
    let refused = [
        ("apply_patch", update("secrets/a")),
        ("apply_patch", patch("*** Update File: src/a\n*** Move to: secrets/a\n@@\n-a\n+b")),
        ("apply_patch", patch("*** Add File:secrets/a\n+x")),
        ("apply_patch", json!({"type": "delete_file", "path": "src/../secrets/a"})),
        ("web_fetch", json!({"url": "https://h/x", "save_to_file": "secrets/a"})),
        ("write", json!({"items": [{"outputPath": "./secrets/a"}]})),
    ];
    for (tool, input) in refused {
        let told = verdict(&session, tool, input.clone()).await.unwrap_or_default();
        assert!(told.contains("refused by a rule"), "{tool} {input}: {told}");
    }
    assert_eq!(approval.questions().len(), 0);
    assert_eq!(verdict(&session, "apply_patch", update("src/a")).await, None);
    assert_eq!(approval.questions().len(), 0, "what is allowed is not asked about");
    let both = patch("*** Update File: src/a\n@@\n-a\n+b\n*** Delete File: b");
    assert_eq!(verdict(&session, "apply_patch", both).await, None);
    assert_eq!(approval.questions().len(), 1, "one path of two is no permission");
}

#[tokio::test]
async fn a_command_that_cannot_be_shown_whole_is_refused() {
    let desk = Desk::new();
    let approval = Arc::new(ScriptedApproval::allowing());
    let session = gated(&desk, json!({}), Some(approval.clone())).await;
    let long = |many: usize| run(&format!("rm {}", "x".repeat(many)));
    let refused = verdict(&session, "bash", long(40_000)).await.unwrap();
    assert!(refused.contains("too long to be shown"), "{refused}");
    assert_eq!((verdict(&session, "bash", long(20_000)).await, approval.questions().len()), (None, 1));
}

#[tokio::test]
async fn silence_is_a_no_whatever_the_plan_says() {
    let desk = Desk::new();
    let config = json!({"default_action": "continue", "default_timeout": 0.05});
    let session = gated(&desk, config, Some(Arc::new(ScriptedApproval::silent()))).await;
    let late = verdict(&session, "bash", run("rm x")).await.unwrap();
    assert!(late.contains("timeout"), "{late}");
    assert!(session.report().modules.iter().any(|entry| entry.to_string().contains("default_action")));
}

#[tokio::test]
async fn a_yes_for_the_session_covers_the_same_command_and_every_call_of_a_tool_without_one() {
    let desk = Desk::new();
    let always = || Ok("Allow always".to_owned());
    let approval = Arc::new(ScriptedApproval::new([always(), always()]));
    let session = gated(&desk, json!({}), Some(approval.clone())).await;
    for _ in 0..2 {
        assert_eq!(verdict(&session, "bash", run("make")).await, None);
        assert_eq!(verdict(&session, "write_file", json!({"file_path": "a"})).await, None);
    }
    assert_eq!(verdict(&session, "write_file", json!({"file_path": "b"})).await, None);
    assert_eq!(approval.questions().len(), 2);
    assert!(approval.questions()[1].prompt.contains("every call of `write_file`"));
    assert!(verdict(&session, "bash", run("make install")).await.is_some());
    assert!(verdict(&session, "bash", json!({"command": "make", "cwd": "/"})).await.is_some());
}

#[tokio::test]
async fn a_yes_once_is_asked_again() {
    let desk = Desk::new();
    let once = || Ok("Allow once".to_owned());
    let approval = Arc::new(ScriptedApproval::new([once(), once()]));
    let session = gated(&desk, json!({}), Some(approval.clone())).await;
    for _ in 0..2 {
        assert_eq!(verdict(&session, "bash", run("make")).await, None);
    }
    assert_eq!(approval.questions().len(), 2);
}

#[tokio::test]
async fn a_yes_for_good_outlives_the_session_and_its_file_cannot_be_written_by_a_tool() {
    let desk = Desk::new();
    let config = json!({"remember": "always", "remember_file": "keep/approvals.json"});
    let approval = Arc::new(ScriptedApproval::new([Ok("Allow always".to_owned())]));
    let session = gated(&desk, config.clone(), Some(approval)).await;
    assert_eq!(verdict(&session, "bash", run("make")).await, None);
    session.cleanup().await;
    let next = gated(&desk, config.clone(), None).await;
    assert_eq!(verdict(&next, "bash", run("make")).await, None, "nobody has to be asked again");
    let rules = json!([{"tool": "write_file", "action": "allow"}]);
    let open = json!({"remember": "always", "remember_file": "keep/approvals.json", "rules": rules});
    let open = gated(&desk, open, None).await;
    assert_eq!(verdict(&open, "write_file", json!({"file_path": "a"})).await, None);
    assert!(
        verdict(&open, "write_file", json!({"file_path": "keep/../keep/approvals.json"})).await.is_some()
    );
    desk.write("keep/approvals.json", "{bad");
    let broken = gated(&desk, config, None).await;
    assert_eq!(
        broken.report().failed().count(),
        1,
        "a file that cannot be read is told, not taken for empty"
    );
}

#[tokio::test]
async fn what_was_allowed_for_good_is_kept_without_secrets_and_files_of_before_still_count() {
    let desk = Desk::new();
    let config = json!({"remember": "always", "remember_file": "keep/approvals.json"});
    let secret = "plain-words-make-a-key";
    let hide = offer(move |value: Value| {
        let hidden = value.as_str().unwrap().replace(secret, "[REDACTED]");
        async move { Ok(json!(hidden)) }
    });
    let approval = Arc::new(ScriptedApproval::new([Ok("Allow always".to_owned())]));
    let builder = tools(desk.with_hook("hooks-approval", config.clone()).await);
    let session = builder
        .configure(move |builder| builder.approval(approval).capability("secrets.hide", hide))
        .open()
        .await
        .unwrap();
    let command = format!("deploy --token {secret}");
    assert_eq!(verdict(&session, "bash", run(&command)).await, None);
    session.cleanup().await;
    let kept = std::fs::read_to_string(desk.path("keep/approvals.json")).unwrap();
    assert!(kept.contains("deploy --token [REDACTED]") && !kept.contains(secret), "{kept}");
    let next = gated(&desk, config.clone(), None).await;
    assert_eq!(verdict(&next, "bash", run(&command)).await, None, "the very command is known");
    assert!(verdict(&next, "bash", run("deploy --token [REDACTED]")).await.is_some(), "and no other");

    let input = run("make").to_string();
    desk.write(
        "keep/approvals.json",
        &json!({"version": 1, "grants": [{"tool": "bash", "input": input}]}).to_string(),
    );
    let next = gated(&desk, config, None).await;
    assert_eq!(verdict(&next, "bash", run("make")).await, None);
    assert!(verdict(&next, "bash", run("make all")).await.is_some());
}

#[tokio::test]
async fn what_an_older_program_wrote_down_as_it_was_said_is_not_written_again() {
    let desk = Desk::new();
    let config = json!({"remember": "always", "remember_file": "keep/approvals.json"});
    let input = run("deploy --to plain-words-make-a-key").to_string();
    desk.write(
        "keep/approvals.json",
        &json!({"version": 1, "grants": [{"tool": "bash", "input": input}]}).to_string(),
    );
    let approval = Arc::new(ScriptedApproval::new([Ok("Allow always".to_owned())]));
    let session = gated(&desk, config.clone(), Some(approval)).await;
    assert_eq!(verdict(&session, "bash", run("make")).await, None);
    session.cleanup().await;
    let kept = std::fs::read_to_string(desk.path("keep/approvals.json")).unwrap();
    assert!(kept.contains("make") && !kept.contains("plain-words-make-a-key"), "{kept}");
    let next = gated(&desk, config, None).await;
    for known in ["make", "deploy --to plain-words-make-a-key"] {
        assert_eq!(verdict(&next, "bash", run(known)).await, None, "{known}");
    }
}

#[tokio::test]
async fn the_sessions_own_list_and_single_tools_are_heard() {
    let desk = Desk::new();
    let config = json!({
        "policy_driven_only": true,
        "tools": {"read_file": {"require_approval": true}, "write_file": {"require_approval": false}}
    });
    let session = gated(&desk, config, None).await;
    assert_eq!(verdict(&session, "bash", run("rm x")).await, None, "no defaults when only the policy counts");
    session
        .coordinator()
        .with_state(|state| state.insert("require_approval_tools".to_owned(), json!(["bash"])));
    assert!(verdict(&session, "bash", run("rm x")).await.is_some());
    assert!(verdict(&session, "read_file", json!({})).await.is_some());
    assert_eq!(verdict(&session, "write_file", json!({})).await, None);
}

#[tokio::test]
async fn a_call_that_cannot_be_read_does_not_go_on() {
    let desk = Desk::new();
    let session = gated(&desk, json!({}), Some(Arc::new(ScriptedApproval::allowing()))).await;
    let Value::Object(odd) = json!({"tool_name": 7}) else { panic!("an object") };
    let answer = session.coordinator().emit_named("tool:pre".parse().unwrap(), odd).await;
    assert!(answer.denied().is_some());
}

#[tokio::test]
async fn in_a_turn_the_model_reads_the_refusal_and_a_permitted_tool_runs() {
    let desk = Desk::new();
    let approval = Arc::new(ScriptedApproval::new([Ok("Deny".to_owned()), Ok("Allow once".to_owned())]));
    let tool = Arc::new(MockTool::new("save").effects(Effects::WRITES).return_value("saved"));
    let wish = |id: &str, n: u64| Step::call([ToolCall::new(id, "save", json!({ "n": n }))]);
    let provider = ScriptedProvider::new([wish("c1", 1), wish("c2", 2), Step::say("done")]);
    let context = Arc::new(amplifier_testing::MockContextManager::new());
    let builder =
        desk.with_hook("hooks-approval", json!({})).await.tool(tool.clone()).context(context.clone());
    let builder = builder.configure(move |builder| builder.approval(approval));
    let session = looping(builder, provider).await.open().await.unwrap();
    assert_eq!(session.execute("go").await.unwrap(), "done");
    assert_eq!(tool.inputs(), [json!({"n": 2})]);
    assert!(context.texts().iter().any(|text| text.starts_with("Denied by hook: User denied")));
    assert_eq!(session.recorder().count("approval:denied"), 1);
    assert_eq!(session.recorder().count("approval:granted"), 1);
}
