//! `tool-bash`: what commands give, what is refused, who is asked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amplifier_core::contracts::{Capability, HookHandler};
use amplifier_core::hooks::HookSpec;
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::tool::ToolCall;
use amplifier_testing::{ScriptedApproval, ScriptedProvider, Step, TestSession};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kit::{Always, built_in, lines, looping, object, stored};
use crate::workshop::Workshop;

pub async fn bench(config: Value) -> Workshop {
    Workshop::new("tool-bash", config).await
}

pub fn command(text: &str) -> Value {
    json!({"command": text})
}

async fn stdout(bench: &Workshop, text: &str) -> String {
    bench.call("bash", command(text)).await.unwrap()["stdout"].as_str().unwrap().to_owned()
}

/// Golden case 11.2: `echo hi`.
#[tokio::test]
async fn output_and_exit_code_come_back() {
    let bench = bench(json!({})).await;
    assert_eq!(
        bench.call("bash", command("echo hi")).await.unwrap(),
        json!({"stdout": "hi\n", "stderr": "", "returncode": 0})
    );
    assert_eq!(stdout(&bench, "echo a; echo b >&2; cat").await, "a\n", "no input, so `cat` ends at once");
}

/// The Python module leaves the error empty; here it names the exit code, and the output is kept all the same.
/// Golden case 11.2: `exit 3`.
#[tokio::test]
async fn a_failing_command_is_a_failure_with_its_output() {
    let bench = bench(json!({})).await;
    let failure = bench.refused("bash", command("echo out; echo err >&2; exit 3")).await;
    assert_eq!(failure.message, "Command ended with exit code 3");
    assert_eq!(failure.output, Some(json!({"stdout": "out\n", "stderr": "err\n", "returncode": 3})));
    let killed = bench.refused("bash", command("kill -TERM $$")).await;
    assert_eq!(killed.output.unwrap()["returncode"], json!(-15));
}

/// Golden case 11.2: `sudo ls`, and an empty command.
#[tokio::test]
async fn what_is_refused_says_why_and_does_not_run() {
    let bench = bench(json!({})).await;
    let sudo = bench.refused("bash", command("sudo ls")).await.message;
    assert!(
        sudo.starts_with(
            "Command denied for safety: Privilege escalation not allowed in strict mode\n  Hint: "
        ),
        "{sudo}"
    );
    assert_eq!(bench.refused("bash", command("  ")).await.message, "Command is required");
    let late = bench.refused("bash", json!({"command": "ls", "timeout": 120_000})).await.message;
    assert!(late.contains("seconds, from 1 to 3600"), "{late}");
    bench.refused("bash", command("touch made; rm -rf /")).await;
    assert!(!bench.has("made"));
}

/// The Python module loses what was written before the time-out.
/// Golden case 11.2: a time-out. Better: what was written is kept.
#[tokio::test]
async fn a_command_that_takes_too_long_ends_and_keeps_what_it_wrote() {
    let bench = bench(json!({})).await;
    let began = Instant::now();
    let failure = bench.refused("bash", json!({"command": "echo a; sleep 50", "timeout": 1})).await;
    assert_eq!(failure.message, "Command timed out after 1 seconds");
    let output = failure.output.unwrap();
    assert_eq!((&output["stdout"], &output["timed_out"]), (&json!("a\n"), &json!(true)));
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn the_working_folder_stays_where_a_command_went() {
    let bench = bench(json!({})).await;
    bench.put("sub dir/x", "").put("other/y", "");
    bench.call("bash", command("cd 'sub dir'")).await.unwrap();
    assert_eq!(stdout(&bench, "ls").await, "x\n");
    bench.refused("bash", command("cd ../other; exit 1")).await;
    assert_eq!(stdout(&bench, "ls; (cd /)").await, "y\n");
    assert_eq!(stdout(&bench, "ls").await, "y\n", "a subshell moves nobody");
    bench.call("bash", command("cd ..; rm -r other")).await.unwrap();
    bench.call("bash", command("mkdir gone && cd gone && rmdir ../gone")).await.unwrap();
    assert!(stdout(&bench, "ls").await.contains("sub dir"));
}

#[tokio::test]
async fn keys_of_this_process_do_not_reach_commands() {
    let bench = bench(json!({"env": {"GREETING": "hello"}})).await;
    let seen = stdout(&bench, "env").await;
    assert!(seen.contains("GREETING=hello") && seen.contains("PATH="), "{seen}");
    assert!(!seen.contains("CARGO_PKG_NAME"), "{seen}");
    assert!(!seen.lines().any(|line| line.contains("_API_KEY=") || line.contains("_TOKEN=")), "{seen}");
}

/// The numbers of the Python module differ in the words of the gap only; that both totals are told is better here.
/// Golden case 11.2: 288894 bytes of short lines, and one line of 300000.
#[tokio::test]
async fn long_output_shows_both_ends_in_whole_lines_and_counts_every_byte() {
    let bench = bench(json!({})).await;
    let told = bench.call("bash", command("seq 1 50000; seq 1 20000 >&2")).await.unwrap();
    assert_eq!((&told["truncated"], &told["stdout_total_bytes"]), (&json!(true), &json!(288_894)));
    assert_eq!(told["stderr_total_bytes"], json!(108_894));
    let text = told["stdout"].as_str().unwrap();
    assert!(text.starts_with("1\n2\n") && text.ends_with("49999\n50000\n") && text.len() < 100_000);
    let line = bench.call("bash", command("head -c 300000 /dev/zero | tr '\\0' x")).await.unwrap();
    let text = line["stdout"].as_str().unwrap();
    assert_eq!(
        (line["stdout_total_bytes"].clone(), text.starts_with("xxx"), text.ends_with("xxx")),
        (json!(300_000), true, true)
    );
    assert!((80_000..81_000).contains(&text.len()), "{}", text.len());
}

#[tokio::test]
async fn unicode_arrives_whole_and_binary_is_no_harm() {
    let bench = bench(json!({})).await;
    assert_eq!(stdout(&bench, "printf 'äöü €😀'").await, "äöü €😀");
    let told = bench.call("bash", command("head -c 5000 /dev/urandom")).await.unwrap();
    assert_eq!(told["returncode"], json!(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_output_stays_bounded() {
    let bench = bench(json!({})).await;
    let before = resident_kilobytes();
    let told =
        bench.call("bash", json!({"command": "head -c 1073741824 /dev/zero", "timeout": 120})).await.unwrap();
    assert_eq!(told["stdout_total_bytes"], json!(1_073_741_824_u64));
    let grown = resident_kilobytes().saturating_sub(before);
    // The other tests of this process count too; without a bound it would be the whole gigabyte.
    assert!(grown < 400_000, "{grown} kB more than before");
}

fn resident_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)).and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn commands_run_side_by_side_up_to_the_limit() {
    let bench = bench(json!({"max_concurrent": 2})).await;
    // Each waits for the other: one after the other they would never end.
    let one = "touch one; for i in $(seq 200); do [ -f two ] && exit 0; sleep 0.05; done; exit 1";
    let two = "touch two; for i in $(seq 200); do [ -f one ] && exit 0; sleep 0.05; done; exit 1";
    let (one, two, three) = tokio::join!(
        bench.call("bash", command(one)),
        bench.call("bash", command(two)),
        bench.call("bash", command("echo third")),
    );
    assert_eq!(
        (one.unwrap()["returncode"].clone(), two.unwrap()["returncode"].clone()),
        (json!(0), json!(0))
    );
    assert_eq!(three.unwrap_err().message, "Command rejected: concurrent command limit of 2 reached");
}

#[tokio::test]
async fn what_the_policy_is_unsure_about_does_not_run_when_nobody_was_asked() {
    let bench = bench(json!({})).await;
    bench.put("a", "");
    let failure = bench.refused("bash", command("find . -name a -delete")).await;
    assert_eq!(failure.kind.as_deref(), Some("ApprovalRequired"));
    assert!(bench.has("a"));
    let free = Workshop::new("tool-bash", json!({"require_approval": false})).await;
    free.put("a", "");
    free.call("bash", command("find . -name a -delete")).await.unwrap();
    assert!(!free.has("a"));
}

/// A session whose model wants one command.
async fn asking(
    config: Value,
    wanted: &str,
    approval: Arc<ScriptedApproval>,
    hook: Option<(HookSpec, Arc<dyn HookHandler>)>,
) -> (TestSession, TempDir) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    std::fs::write(folder.path().join("a"), "").unwrap();
    let call = ToolCall::new("c1", "bash", command(wanted));
    let provider = Arc::new(ScriptedProvider::new([Step::call([call]), Step::say("done")]));
    let mut builder =
        looping(json!({})).await.module_with(built_in("tool-bash").await, object(config)).provider(provider);
    if let Some((spec, hook)) = hook {
        builder = builder.hook(spec, hook);
    }
    let builder = builder.configure(move |builder| {
        builder.capability("session.working_dir", Capability::Value(json!(path))).approval(approval)
    });
    (builder.open().await.unwrap(), folder)
}

#[tokio::test]
async fn a_person_is_asked_with_the_exact_command_and_their_word_counts() {
    let wanted = "find . -name 'a' -delete";
    let yes = Arc::new(ScriptedApproval::allowing());
    let (session, folder) = asking(json!({}), wanted, Arc::clone(&yes), None).await;
    session.execute("go").await.unwrap();
    assert!(!folder.path().join("a").exists());
    let questions = yes.questions();
    assert_eq!(questions.len(), 1);
    assert!(questions[0].prompt.contains(wanted), "{}", questions[0].prompt);

    let no = Arc::new(ScriptedApproval::denying());
    let (session, folder) = asking(json!({}), wanted, Arc::clone(&no), None).await;
    session.execute("go").await.unwrap();
    assert!(folder.path().join("a").exists());
    assert!(lines(&stored(&session).await).iter().any(|line| line.contains("Denied by hook")));
}

#[tokio::test]
async fn harmless_and_denied_commands_ask_nobody_unless_every_command_is_asked() {
    for (config, wanted, questions) in [
        (json!({}), "ls", 0),
        (json!({}), "sudo ls", 0),
        (json!({"require_approval": true}), "ls", 1),
        (json!({"require_approval": "never"}), "find . -delete", 0),
        (json!({"allowed_commands": ["git push *"]}), "git push --force", 0),
    ] {
        let approval = Arc::new(ScriptedApproval::denying());
        let (session, _folder) = asking(config, wanted, Arc::clone(&approval), None).await;
        session.execute("go").await.unwrap();
        assert_eq!(approval.questions().len(), questions, "{wanted}");
    }
}

#[tokio::test]
async fn a_command_that_a_later_hook_puts_in_its_place_does_not_run() {
    let changed = json!({"tool_name": "bash", "tool_input": {"command": "rm -rf ../a*; find . -delete"}, "tool_call_id": "c1"});
    let hook = HookSpec::new("tool:pre".parse().unwrap(), "changer").priority(5_000);
    let answer: Arc<dyn HookHandler> = Arc::new(Always(HookResult::modify(object(changed))));
    let yes = Arc::new(ScriptedApproval::allowing());
    let (session, folder) = asking(json!({}), "find . -name 'a' -delete", yes, Some((hook, answer))).await;
    session.execute("go").await.unwrap();
    assert!(folder.path().join("a").exists());
    assert!(lines(&stored(&session).await).iter().any(|line| line.contains("nobody was asked")));
}

#[tokio::test]
async fn a_foolish_config_is_refused_and_a_misspelt_key_is_told() {
    for config in [
        json!({"safety_profile": "lax"}),
        json!({"timeout": 0}),
        json!({"max_concurrent": 0}),
        json!({"max_output_bytes": 5}),
        json!({"require_approval": "sometimes"}),
        json!({"sandbox": "yes"}),
    ] {
        let hub = amplifier_testing::TestCoordinator::new();
        assert!(hub.mount(&*built_in("tool-bash").await, config.clone()).await.is_err(), "{config}");
    }
    let hub = amplifier_testing::TestCoordinator::new();
    let (_, warnings) =
        hub.mount(&*built_in("tool-bash").await, json!({"allow_commands": []})).await.unwrap();
    assert!(warnings[0].contains("allowed_commands"), "{warnings:?}");
}
