//! `tool-bash`: what commands can reach inside a sandbox, by trying it.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use amplifier_core::contracts::Capability;
use amplifier_testing::TestCoordinator;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bash::command;
use crate::kit::built_in;
use crate::workshop::Workshop;

/// A workshop in a sandbox, or a loud word about why not.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
async fn fenced(level: &str) -> Option<Workshop> {
    // Not under `/tmp`: there the sandbox has a folder of its own anyway.
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (folder, hub) = (TempDir::new_in(parent).unwrap(), TestCoordinator::new());
    hub.register_capability("session.working_dir", Capability::Value(json!(folder.path().to_str().unwrap())));
    let config = json!({"sandbox": level, "safety_profile": "unrestricted"});
    let (_, warnings) = hub.mount(&*built_in("tool-bash").await, config).await.unwrap();
    if warnings.iter().any(|warning| warning.contains("no command will run")) {
        eprintln!("SKIPPED: this machine has no sandbox: {warnings:?}");
        return None;
    }
    Some(Workshop { folder, hub })
}

/// A server on loopback that answers once, if anybody comes.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        if let Ok((mut stream, _)) = listener.accept() {
            let mut asked = [0; 1];
            drop(stream.read(&mut asked));
            drop(stream.write_all(b"reached"));
        }
    });
    port
}

fn reach(port: u16) -> Value {
    command(&format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo >&3 && head -c 7 <&3"))
}

#[tokio::test]
async fn workspace_write_writes_the_workspace_and_its_own_temporary_folder_only() {
    let Some(bench) = fenced("workspace-write").await else { return };
    let outside = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let target = outside.path().join("x");
    bench.call("bash", command("echo in > x; mkdir d && cd d && pwd")).await.unwrap();
    assert_eq!(bench.text("x"), "in\n");
    assert!(bench.call("bash", command("pwd")).await.unwrap()["stdout"].as_str().unwrap().ends_with("/d\n"));
    let failure = bench.refused("bash", command(&format!("echo out > {}", target.display()))).await;
    assert!(failure.output.unwrap()["stderr"].as_str().unwrap().contains("x"), "the shell says which file");
    assert!(!target.exists());
    bench.refused("bash", command("touch /etc/amplifier-was-here")).await;
    assert!(!Path::new("/etc/amplifier-was-here").exists());
    bench.call("bash", command("echo t > \"$TMPDIR/amplifier-private\"")).await.unwrap();
    assert!(!Path::new("/tmp/amplifier-private").exists());
    let again = bench.call("bash", command("cat \"$TMPDIR/amplifier-private\"")).await.unwrap();
    assert_eq!(again["stdout"], json!("t\n"), "private, but for the whole session");
}

#[tokio::test]
async fn read_only_writes_nothing_and_reaches_nobody() {
    let Some(bench) = fenced("read-only").await else { return };
    bench.put("x", "before");
    assert_eq!(bench.call("bash", command("cat x")).await.unwrap()["stdout"], json!("before"));
    bench.refused("bash", command("echo after > x")).await;
    assert_eq!(bench.text("x"), "before");
    let failure = bench.refused("bash", reach(server())).await;
    assert_eq!(failure.output.unwrap()["stdout"], json!(""));
}

#[tokio::test]
async fn off_and_workspace_write_reach_the_network() {
    let off = Workshop::new("tool-bash", json!({"safety_profile": "unrestricted"})).await;
    assert_eq!(off.call("bash", reach(server())).await.unwrap()["stdout"], json!("reached"));
    let Some(bench) = fenced("workspace-write").await else { return };
    assert_eq!(bench.call("bash", reach(server())).await.unwrap()["stdout"], json!("reached"));
}

#[tokio::test]
async fn a_time_out_inside_the_sandbox_ends_everything_in_it() {
    let Some(bench) = fenced("workspace-write").await else { return };
    let text = "setsid sleep 12345 & echo a; sleep 12345";
    let failure = bench.refused("bash", json!({"command": text, "timeout": 1})).await;
    assert_eq!(failure.output.unwrap()["stdout"], json!("a\n"));
    let began = std::time::Instant::now();
    while sleepers() > 0 {
        assert!(began.elapsed().as_secs() < 10, "still asleep");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

fn sleepers() -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.starts_with(b"sleep\x0012345\0")).count()
}

#[tokio::test]
async fn hooks_of_git_cannot_be_planted_from_inside() {
    let Some(bench) = fenced("workspace-write").await else { return };
    if !Path::new("/usr/bin/bwrap").exists() {
        return eprintln!("SKIPPED: only bubblewrap can keep a part of a writable folder");
    }
    bench.put(".git/hooks/sample", "");
    bench.refused("bash", command("echo evil > .git/hooks/pre-commit")).await;
    assert!(!bench.has(".git/hooks/pre-commit"));
}
