//! `tool-bash`: background jobs, and that nothing outlives its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amplifier_core::contracts::{Capability, ToolCx};
use amplifier_protocol::tool::ToolCall;
use amplifier_testing::TestSession;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bash::{bench, command};
use crate::kit::{built_in, object};
use crate::workshop::Workshop;

/// Waits for something that is about to happen.
async fn soon(what: &str, mut seen: impl FnMut() -> bool) {
    let began = Instant::now();
    while !seen() {
        assert!(began.elapsed() < Duration::from_secs(10), "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Whether a process runs. One that has ended may stay a zombie for as long as the process that adopted it pleases.
fn running(id: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z ")
}

fn written(bench: &Workshop, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(bench.folder.path().join(name)).ok()?;
    text.ends_with('\n').then(|| text.trim().to_owned())
}

/// A shell whose child and grandchild sleep, each telling its id.
const FAMILY: &str = "echo $$ > parent; bash -c 'sleep 300 & echo $! > grandchild; wait' & wait";

#[tokio::test]
async fn a_cancel_ends_grandchildren_and_leaves_no_zombie() {
    let bench = bench(json!({})).await;
    let tool = bench.hub.tool("bash").unwrap();
    let cx = ToolCx::default();
    let cancel = cx.cancel.clone();
    let call = tokio::spawn(async move { tool.execute(command(FAMILY), &cx).await });
    soon("the grandchild", || written(&bench, "grandchild").is_some()).await;
    let family = [written(&bench, "parent").unwrap(), written(&bench, "grandchild").unwrap()];
    assert!(family.iter().all(|id| running(id)));
    cancel.request_immediate();
    let failure = call.await.unwrap().unwrap_err();
    assert_eq!(failure.kind.as_deref(), Some("Cancelled"));
    soon("the end of the family", || !family.iter().any(|id| running(id))).await;
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_its_family_too() {
    let bench = bench(json!({})).await;
    let tool = bench.hub.tool("bash").unwrap();
    let call = tokio::spawn(async move { tool.execute(command(FAMILY), &ToolCx::default()).await });
    soon("the grandchild", || written(&bench, "grandchild").is_some()).await;
    let family = [written(&bench, "parent").unwrap(), written(&bench, "grandchild").unwrap()];
    call.abort();
    soon("the end of the family", || !family.iter().any(|id| running(id))).await;
}

#[tokio::test]
async fn a_time_out_ends_what_left_its_session_and_what_ignores_a_polite_word() {
    let bench = bench(json!({})).await;
    let text = "setsid bash -c 'trap \"\" TERM; echo $$ > escaped; while :; do sleep 1; done' & trap '' TERM; sleep 300";
    let failure = bench.refused("bash", json!({"command": text, "timeout": 1})).await;
    assert_eq!(failure.kind.as_deref(), Some("Timeout"));
    let escaped = written(&bench, "escaped").unwrap();
    soon("the end of what escaped", || !running(&escaped)).await;
}

/// In the Python module a child that holds the pipe keeps the call open until the time-out.
#[tokio::test]
async fn something_left_running_does_not_hold_up_the_answer() {
    let bench = bench(json!({})).await;
    let began = Instant::now();
    let told = bench.call("bash", command("sleep 20 & echo $! > left; echo started")).await.unwrap();
    assert_eq!(told["stdout"], json!("started\n"));
    assert!(told["note"].as_str().unwrap().contains("still runs"), "{told}");
    assert!(began.elapsed() < Duration::from_secs(10));
    let left = written(&bench, "left").unwrap();
    assert!(running(&left));
    bench.call("bash", command(&format!("kill {left}"))).await.unwrap();
}

/// Golden case 11.2: in the background.
#[tokio::test]
async fn a_job_in_the_background_is_read_in_pieces_and_ended() {
    let bench = bench(json!({})).await;
    let wanted = json!({"command": "echo one; until [ -f go ]; do sleep 0.02; done; echo two; sleep 300", "run_in_background": true});
    let told = bench.call("bash", wanted).await.unwrap();
    let id = told["id"].as_str().unwrap().to_owned();
    assert!(told["pid"].is_i64() && told["message"].is_string() && told["note"].is_string(), "{told}");
    let mut read = String::new();
    read_until(&bench, &id, &mut read, "one\n").await;
    bench.put("go", "");
    read.clear();
    read_until(&bench, &id, &mut read, "two\n").await;
    assert_eq!(read, "two\n", "what was read is not read again");
    let ended = bench.call("bash_kill", json!({"id": id})).await.unwrap();
    assert_eq!((&ended["running"], &ended["returncode"]), (&json!(false), &json!(-15)));
    let again = bench.call("bash_kill", json!({"id": id})).await.unwrap();
    assert_eq!(again["running"], json!(false));
    let unknown = bench.refused("bash_output", json!({"id": "bash_99"})).await.message;
    assert!(unknown.contains("`bash_99`") && unknown.contains(&id), "{unknown}");
}

async fn read_until(bench: &Workshop, id: &str, read: &mut String, wanted: &str) {
    let began = Instant::now();
    while !read.contains(wanted) {
        assert!(began.elapsed() < Duration::from_secs(10), "{read:?}");
        let told = bench.call("bash_output", json!({"id": id})).await.unwrap();
        read.push_str(told["stdout"].as_str().unwrap());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_job_that_ends_says_how_and_a_reader_may_wait_for_it() {
    let bench = bench(json!({})).await;
    let told =
        bench.call("bash", json!({"command": "echo x; exit 4", "run_in_background": true})).await.unwrap();
    let ended = bench.call("bash_output", json!({"id": told["id"], "wait": 30})).await.unwrap();
    assert_eq!((&ended["returncode"], &ended["stdout"]), (&json!(4), &json!("x\n")));
}

#[tokio::test]
async fn jobs_are_bounded_in_number() {
    let bench = bench(json!({"max_background": 1})).await;
    let sleeper = json!({"command": "sleep 300", "run_in_background": true});
    let first = bench.call("bash", sleeper.clone()).await.unwrap();
    let refused = bench.refused("bash", sleeper.clone()).await.message;
    assert!(refused.contains("`bash_kill`"), "{refused}");
    bench.call("bash_kill", json!({"id": first["id"]})).await.unwrap();
    let second = bench.call("bash", sleeper).await.unwrap();
    bench.call("bash_kill", json!({"id": second["id"]})).await.unwrap();
}

/// A session with the tool in a folder of its own.
async fn session(config: Value) -> (TestSession, TempDir) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    let builder = TestSession::builder().module_with(built_in("tool-bash").await, object(config));
    let builder = builder
        .configure(move |builder| builder.capability("session.working_dir", Capability::Value(json!(path))));
    (builder.open().await.unwrap(), folder)
}

#[tokio::test]
async fn the_end_of_the_session_ends_jobs_and_whatever_commands_left() {
    let (session, folder) = session(json!({})).await;
    let call = |id: &str, input: Value| ToolCall::new(id, "bash", input);
    let job = json!({"command": "sleep 300 & echo $! > job; wait", "run_in_background": true});
    session.coordinator().call_tool(&call("1", job)).await.unwrap();
    let left = command("nohup setsid sleep 300 >/dev/null 2>&1 & echo $! > left");
    assert!(session.coordinator().call_tool(&call("2", left)).await.unwrap().success);
    let read =
        |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default().trim().to_owned();
    soon("the job", || !read("job").is_empty()).await;
    let (job, left) = (read("job"), read("left"));
    assert!(running(&job) && running(&left));
    assert_eq!(session.cleanup().await.failed, Vec::<String>::new());
    soon("the end of both", || !running(&job) && !running(&left)).await;
}

#[tokio::test]
async fn many_commands_leave_no_zombies_behind() {
    let bench = Arc::new(bench(json!({})).await);
    for _ in 0..20 {
        bench.call("bash", command("true | true; (exit 0)")).await.unwrap();
    }
    let told = bench.call("bash", command("echo $PPID")).await.unwrap();
    let ours = told["stdout"].as_str().unwrap().trim().to_owned();
    soon("no zombie of ours", || zombies(&ours) == 0).await;
}

fn zombies(parent: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter(|stat| stat.contains(&format!("(bash) Z {parent} "))).count()
}
